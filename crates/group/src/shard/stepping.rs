//! One step of a seat, and everything that follows from it at this member.

use alloc::boxed::Box;
use alloc::string::ToString;

use catraca_core::{Fence, NodeId};

use super::{Key, Shard};
use crate::driver::{LockIndex, Outcome, Outputs, Place, SeatTimer, Settled, StepMessage, Timer};
use crate::fence;
use crate::kind::Stimulus;
use crate::lock::{Admitted, Asker, Ticket};
use crate::refusal::Refusal;
use crate::view::Seating;

/// A step between seats of this member that has yet to be made.
#[derive(Clone, Debug)]
pub(super) enum Internal {
    Deliver { seat: usize, from: NodeId, body: Box<[u8]> },
    Release { seat: usize },
}

impl Shard {
    /// Lets a seat step, and everything here that follows from it.
    #[inline]
    pub(super) fn drive(
        &mut self,
        index: LockIndex,
        seat: usize,
        stimulus: Stimulus<'_>,
        newcomer: &mut Option<(Ticket, Asker)>,
        out: &mut Outputs<'_>,
    ) {
        self.step_seat(index, seat, stimulus, newcomer, out);
        self.go_on(index, newcomer, out);
    }

    /// Everything that is to be done at a lock of this member.
    #[inline]
    pub(super) fn go_on(
        &mut self,
        index: LockIndex,
        newcomer: &mut Option<(Ticket, Asker)>,
        out: &mut Outputs<'_>,
    ) {
        loop {
            while let Some(internal) = self.internal.pop_front() {
                match internal {
                    Internal::Deliver { seat, from, body } => {
                        let stimulus = Stimulus::Deliver { from, bytes: &body };
                        self.step_seat(index, seat, stimulus, newcomer, out);
                    }
                    Internal::Release { seat } => {
                        self.step_seat(index, seat, Stimulus::Release, newcomer, out);
                    }
                }
            }
            if self.is_frozen {
                break;
            }
            let lock = &mut self.locks[index.0 as usize];
            let rules = self.families[usize::from(lock.kind)].rules;
            let Some((seat, claim)) = lock.next_request(rules) else { break };
            self.step_seat(index, seat, Stimulus::Request(claim), newcomer, out);
        }
    }

    #[inline]
    pub(super) fn step_seat(
        &mut self,
        index: LockIndex,
        seat: usize,
        stimulus: Stimulus<'_>,
        newcomer: &mut Option<(Ticket, Asker)>,
        out: &mut Outputs<'_>,
    ) {
        let lock = &mut self.locks[index.0 as usize];
        let family = &mut self.families[usize::from(lock.kind)];
        let Some(slot) = lock.slot(seat) else { return };
        family.kind.step(slot, stimulus, &mut self.step);
        let seating = Seating { home: lock.home, ..family.seating };
        for sent in &self.step.sent {
            let body = &self.step.bytes[sent.start..sent.end];
            match seating.place(sent.to) {
                Some((member, receiver)) if member == self.view.me => {
                    let from = seating.node(member, seat);
                    let (seat, body) = (receiver, body.into());
                    self.internal.push_back(Internal::Deliver { seat, from, body });
                }
                Some((member, _)) => {
                    let key = Key { name: &lock.name, permits: lock.permits };
                    let (epoch, to) = (self.view.epoch, sent.to);
                    let from = seating.node(self.view.me, seat);
                    out.driver.send(member, StepMessage { epoch, key, from, to, body });
                    out.sent_to |= 1 << member;
                    self.counts.messages += 1;
                }
                None => out.anomalies.push("a message is for a node that does not exist"),
            }
        }
        for &(tag, after) in &self.step.timers {
            let timer = SeatTimer { epoch: self.view.epoch, lock: index, seat: seat as u16, tag };
            out.driver.set_timer(Timer::Seat(out.shard, timer), after);
        }
        out.anomalies.extend(self.step.anomalies.iter().copied());
        if let Some(number) = self.step.granted {
            let number = Fence(number.0.saturating_add(self.first_number));
            if number >= fence::LATE && self.has_next_view && !self.is_used_up {
                self.is_used_up = true;
                out.used_up = Some(lock.name.clone());
            }
            let (rules, driver) = (family.rules, &mut out.driver);
            let admitted = match self.mutation {
                None => lock.admit(seat, number, rules, newcomer, || driver.now()),
                Some(it) => it.admit(lock, seat, number, rules, newcomer, driver.now()),
            };
            match admitted {
                Admitted::Client(grant) => self.grant(index, grant, out),
                Admitted::Nobody => self.internal.push_back(Internal::Release { seat }),
                Admitted::Exhausted => self.exhausted(index, seat, newcomer, out),
                Admitted::Unasked => out.anomalies.push("a grant came that was not asked for"),
            }
        }
    }

    /// The numbers of a lock are used up. If there will be another view, everybody waits for it: the
    /// seat keeps what it was given, which nobody has heard of. Else everybody who waits is told so, and
    /// the group gets the lock back.
    #[cold]
    fn exhausted(
        &mut self,
        index: LockIndex,
        seat: usize,
        newcomer: &mut Option<(Ticket, Asker)>,
        out: &mut Outputs<'_>,
    ) {
        if self.has_next_view {
            return;
        }
        self.locks[index.0 as usize].decline(seat);
        self.internal.push_back(Internal::Release { seat });
        let why = Refusal::Exhausted(self.locks[index.0 as usize].name.to_string());
        if let Some((ticket, asker)) = newcomer.take() {
            let place = Place { shard: out.shard, lock: index, ticket };
            let outcome = Outcome::Refused(Box::new(why.clone()));
            out.settled.push(Settled { place, request: asker.request, outcome });
        }
        self.refuse_all(index, &why, out);
    }
}
