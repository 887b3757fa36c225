//! The other members: who is connected, and what they say.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::{Asking, Host, Output, Phase, Service};
use crate::name::LockName;
use crate::question::{Answer, PeerMessage, Question};
use crate::refusal::Refusal;
use crate::request::{self, RequestId};
use crate::status::Readiness;

impl Service {
    /// There is a connection to this run of another member. When every member has been connected,
    /// the group begins.
    pub fn link_up(
        &mut self,
        member: usize,
        incarnation: u64,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let peer = &mut self.peers[member];
        (peer.incarnation, peer.is_up) = (Some(incarnation), true);
        if self.phase != Phase::Gathering || self.absent().next().is_some() {
            return;
        }
        self.phase = Phase::Granting;
        out.push(Output::Ready);
        if let Some(detector) = &mut self.detector {
            let findings = detector.begin(host);
            self.act_on(findings, host, out);
        }
        self.begin_queued(host, out);
        self.absorb(host, out);
    }

    /// The connection to another member is gone. Whatever it was asked, it does not answer.
    pub fn link_down(&mut self, member: usize, host: &mut dyn Host, out: &mut Vec<Output>) {
        self.peers[member].is_up = false;
        self.no_answer_from(member, host, out);
    }

    /// Another member has said that this one does not belong to the group any more.
    pub fn expel(&mut self, why: &str, host: &mut dyn Host, out: &mut Vec<Output>) {
        if self.phase != Phase::Gathering {
            return;
        }
        self.phase = Phase::Expelled(why.into());
        out.push(Output::Expelled(why.into()));
        let waiting: Vec<RequestId> = self.requests.keys().copied().collect();
        for id in waiting {
            self.refuse(id, Refusal::Expelled(why.into()), host, out);
        }
    }

    /// Another member says something, though not to a lock.
    pub fn hear(
        &mut self,
        member: usize,
        message: PeerMessage<'_>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let epoch = match &message {
            PeerMessage::Step(step) => step.epoch,
            PeerMessage::Aside(_) => return,
            PeerMessage::View(_) => {
                return out.push(Output::Anomaly("a message about a view came to a fixed group"));
            }
            PeerMessage::Detector { epoch, .. }
            | PeerMessage::Ask { epoch, .. }
            | PeerMessage::Answer { epoch, .. } => *epoch,
        };
        if epoch != self.view.epoch {
            return;
        }
        match message {
            PeerMessage::Step(_) | PeerMessage::View(_) | PeerMessage::Aside(_) => {
                out.push(Output::Anomaly("a message of a lock is for its shard"));
            }
            PeerMessage::Detector { body, .. } => match &mut self.detector {
                Some(detector) => {
                    let findings = detector.hear(member, body, host);
                    self.act_on(findings, host, out);
                }
                None => out.push(Output::Anomaly("a detector speaks to a member that has none")),
            },
            PeerMessage::Ask { number, question: Question::Order(order), .. } => {
                self.obey_member(member, number, order, host, out);
            }
            PeerMessage::Ask { number, question, .. } => {
                self.be_asked(member, number, question, host, out);
            }
            PeerMessage::Answer { number, answer, .. } => {
                self.take_answer(member, number, answer, host, out);
            }
        }
        self.absorb(host, out);
    }

    /// Another member asks something.
    fn be_asked(
        &mut self,
        member: usize,
        number: u64,
        question: Question,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let answer = match question {
            Question::Timed(which, operation) => {
                return self.operate_for(member, number, &which, operation, host, out);
            }
            Question::Remember(copy) => {
                copy.is_possible(&self.view).then(|| self.remember(member, *copy, host))
            }
            Question::Forget(id) => Some(self.forget_copy(id)),
            question => self.reply(question, host),
        };
        out.push(match answer {
            Some(answer) => Output::Answer(member, number, answer),
            None => Output::Anomaly("a question came that cannot be asked"),
        });
    }

    /// The answer to a question about what is here; nothing if it cannot be asked.
    fn reply(&self, question: Question, host: &mut dyn Host) -> Option<Answer> {
        match question {
            Question::IsHeld(names) => {
                let parts = request::parts(&names, 1, &self.view).ok()?;
                let is_held = parts
                    .iter()
                    .any(|part| host.is_held(part.key(1), part.set.as_ref().map(|set| &set.claim)));
                Some(Answer::IsHeld(is_held))
            }
            Question::List(query) => Some(Answer::List(self.page_here(&query, host))),
            // It is answered when it is carried out.
            Question::Order(_) => None,
            Question::NewestFence(name, permits) => {
                let fence = self.newest_fence_here(&name, permits, host).ok()?;
                Some(Answer::NewestFence(fence))
            }
            Question::Anatomy(name) => {
                LockName::new(&name).ok()?;
                Some(Answer::Anatomy(Box::new(self.anatomy_here(&name, host))))
            }
            Question::Links => Some(Answer::Links(self.links_here())),
            Question::Timed(..) | Question::Remember(_) | Question::Forget(_) => None,
        }
    }

    fn take_answer(
        &mut self,
        member: usize,
        number: u64,
        answer: Answer,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        match answer {
            Answer::Remembered(is_kept) => return self.remembered(number, is_kept, host, out),
            Answer::Forgotten => return self.forgotten(number, host),
            _ => {}
        }
        // An answer to another question comes too late, or makes no difference.
        let is_done = match (self.questions.get_mut(&number), answer) {
            (Some(Asking::IsHeld(id)), Answer::IsHeld(true)) => {
                let id = *id;
                self.is_held_elsewhere(id, host, out);
                false
            }
            (Some(Asking::List(gathering)), Answer::List(page)) => gathering.answer(member, page),
            (Some(Asking::Anatomy(sitting)), Answer::Anatomy(told)) => {
                sitting.answer(member, *told)
            }
            (Some(Asking::Links(round)), Answer::Links(told)) => round.answer(member, told),
            (Some(Asking::Fence(comparison)), Answer::NewestFence(fence)) => {
                comparison.answer(member, fence)
            }
            (
                Some(Asking::Timed(pending)),
                Answer::Timed(Err(why @ (Refusal::NoSuchHold(_) | Refusal::OtherHolder(_)))),
            ) => pending.is_not_at(member, why),
            (Some(Asking::Order(_, its)), Answer::Obeyed(result)) if *its == member => {
                self.close_order(number, Some(result), host, out);
                false
            }
            // In the next view it can be done, by this member or by another one.
            (Some(Asking::Timed(_)), Answer::Timed(Err(Refusal::Lapsed | Refusal::Leaving))) => {
                false
            }
            (Some(Asking::Timed(_)), Answer::Timed(result)) => {
                self.take_timed(number, result, host, out);
                false
            }
            _ => false,
        };
        if is_done {
            self.close_question(number, host, out);
        }
    }

    /// Which members have never been connected.
    pub(super) fn absent(&self) -> impl Iterator<Item = &str> {
        let absent = self.view.others().filter(|&member| self.peers[member].incarnation.is_none());
        absent.map(|member| self.view.members[member].name.as_str())
    }

    /// A member that is not connected, if there is one.
    pub(super) fn missing(&self) -> Option<String> {
        let missing = self.view.others().find(|&member| !self.peers[member].is_up)?;
        Some(self.view.members[missing].name.clone())
    }

    /// Why nothing is granted, if the group has not begun.
    pub(super) fn not_ready(&self) -> Option<Refusal> {
        if self.phase != Phase::Gathering {
            return None;
        }
        if let Some(membership) = self.membership() {
            let obstacle = membership.obstacle().unwrap_or("the view has yet to begin");
            return Some(Refusal::NotInGroup(obstacle.into()));
        }
        let absent: Vec<String> = self.absent().map(|name| format!("'{name}'")).collect();
        Some(Refusal::NotReady(absent.join(", ")))
    }

    /// Whether the member grants locks.
    pub fn readiness(&self) -> Readiness {
        match (&self.phase, self.excluded_by) {
            (Phase::Gathering, _) if self.membership().is_some() => {
                let obstacle = self.membership().and_then(|membership| membership.obstacle());
                Readiness::Joining(obstacle.unwrap_or("the view has yet to begin").into())
            }
            (Phase::Gathering, _) => Readiness::Waiting(self.absent().map(String::from).collect()),
            (Phase::Expelled(why), _) => Readiness::Expelled(why.clone()),
            (_, Some(by)) => Readiness::Excluded(self.view.members[by].name.clone()),
            (Phase::Granting | Phase::Stopped, None) => Readiness::Ready,
        }
    }

    /// The id of the next request.
    pub(super) fn next_request(&self) -> RequestId {
        RequestId(NonZeroU64::MIN.saturating_add(self.last_request))
    }
}
