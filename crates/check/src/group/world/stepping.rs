//! One step of the world: a member is given an input, and what follows is carried out.

use std::sync::Arc;

use ahash::RandomState;
use catraca_core::Fence;
use catraca_group::{
    Epoch, Held, Input, Notice, Output, PeerMessage, Timer, Who, WholeMember, unpack_fence,
};
use smallvec::SmallVec;

use super::{Action, Fault, Phase, Recorder, Turn, World};
use crate::group::model::MemberModel;
use crate::group::{NextView, Setting};

/// What follows from a step, for whoever tells of it. Clients and members by their places.
#[derive(Clone, Debug)]
pub(in crate::group) enum Effect<'a> {
    Granted(usize, &'a [Fence]),
    Refused(usize, String),
    Sent(usize, usize),
    /// A message of an earlier view is not listened to.
    Ignored(usize),
}

/// Where effects are told.
type Tell<'a> = &'a mut dyn FnMut(Effect<'_>);

impl World {
    /// Connects everybody and opens the sessions of all clients. Nothing has been asked for, so what
    /// follows is of no interest.
    pub(super) fn begin(&mut self, setting: &Setting) {
        let members = 0..setting.members;
        for (me, member) in self.members.iter_mut().enumerate() {
            let Some(member) = member.as_mut().map(Arc::make_mut) else { continue };
            let (mut driver, mut out) = (Recorder::default(), Vec::new());
            for other in members.clone().filter(|&other| other != me) {
                member.step(Input::LinkUp(other, 1), &mut driver, &mut out);
            }
            for _ in 0..setting.clients {
                member.step(Input::Open(Who::default(), None), &mut driver, &mut out);
            }
        }
    }

    /// Takes `action`, which is one of those that [`actions`](Self::actions) listed.
    pub(in crate::group) fn take(&mut self, model: &MemberModel, action: Action, tell: Tell<'_>) {
        let setting = &model.setting;
        match action {
            Action::Ask(client) => {
                let member = setting.member_of(client);
                let number = setting.requests - self.clients[client].remaining;
                self.clients[client].phase = Phase::Waiting;
                self.clients[client].remaining -= 1;
                self.queues[member].push(client);
                let asked = setting.asked(client);
                let input = Input::Request(setting.owner_of(client), number, asked);
                self.step(model, member, input, tell);
            }
            Action::Cancel(client) => {
                self.cancels -= 1;
                self.give_back(model, client, tell);
            }
            Action::Leave(client) => self.give_back(model, client, tell),
            Action::Deliver(from, to) => self.deliver(model, from, to, tell),
            Action::Fire(member, timer) => {
                self.timers.remove(&(member, timer));
                self.step(model, member, Input::Timer(timer), tell);
            }
            Action::ChangeView => self.change_view(model, tell),
        }
        self.forget_past_turns(model);
    }

    /// A client takes back or releases what it has asked for last.
    fn give_back(&mut self, model: &MemberModel, client: usize, tell: Tell<'_>) {
        let setting = &model.setting;
        let number = setting.requests - self.clients[client].remaining - 1;
        self.end_wait(setting, client, Phase::Idle);
        let input = Input::Release(setting.owner_of(client), number);
        self.step(model, setting.member_of(client), input, tell);
    }

    /// A client is in `phase` from now on, and so does not wait.
    fn end_wait(&mut self, setting: &Setting, client: usize, phase: Phase) {
        self.clients[client].phase = phase;
        self.queues[setting.member_of(client)].retain(|waiter| *waiter != client);
    }

    /// Turns that are over cannot come back: states that differ only in them are the same.
    fn forget_past_turns(&mut self, model: &MemberModel) {
        let mut present: SmallVec<[Turn; 4]> = SmallVec::new();
        for (client, wanted) in self.clients.iter().zip(&model.wanted) {
            if let Phase::Inside(fences) = &client.phase {
                present.extend(wanted.iter().zip(fences).map(|(&name, &fence)| turn(name, fence)));
            }
        }
        self.turns.retain(|turn, _| present.contains(turn));
    }

    fn deliver(&mut self, model: &MemberModel, from: usize, to: usize, tell: Tell<'_>) {
        let Some(channel) = self.channels.get_mut(&(from, to)) else { return };
        let Some(bytes) = channel.pop_front() else { return };
        if channel.is_empty() {
            self.channels.remove(&(from, to));
        }
        let Ok(mut message) = postcard::from_bytes::<PeerMessage<'_>>(&bytes) else {
            return self.blame(Fault::Anomaly(to, "a message cannot be read from its bytes"));
        };
        let sender = self.place_in_view(from);
        let Some(epoch) = epoch_of(&mut message) else {
            return self.blame(Fault::Anomaly(to, "a message about a view came to a fixed group"));
        };
        if *epoch == self.epoch {
            return self.step(model, to, Input::Message(sender, message), tell);
        }
        if model.setting.mutant.is_some_and(|mutant| mutant.listens_to_old_messages()) {
            *epoch = self.epoch;
            return self.step(model, to, Input::Message(sender, message), tell);
        }
        if self.listens(to, Input::Message(sender, message)) {
            self.blame(Fault::OldMessage(to));
        }
        tell(Effect::Ignored(to));
    }

    /// Whether anything follows from an input of which nothing may follow.
    fn listens(&mut self, member: usize, input: Input<'_>) -> bool {
        let Some(it) = self.members[member].as_mut().map(Arc::make_mut) else { return false };
        let (mut driver, mut out) = (Recorder::default(), Vec::new());
        let hasher = RandomState::with_seeds(1, 2, 3, 4);
        let before = hasher.hash_one(&*it);
        it.step(input, &mut driver, &mut out);
        let is_silent = driver.sent.is_empty() && driver.timers.is_empty();
        before != hasher.hash_one(&*it) || !is_silent || !out.is_empty()
    }

    /// The place of a member in the present view.
    fn place_in_view(&self, member: usize) -> usize {
        self.members[..member].iter().flatten().count()
    }

    /// Lets a member step and carries out what follows.
    fn step(&mut self, model: &MemberModel, member: usize, input: Input<'_>, tell: Tell<'_>) {
        let (mut driver, mut out) = (Recorder::default(), Vec::new());
        if let Some(it) = self.members[member].as_mut().map(Arc::make_mut) {
            it.step(input, &mut driver, &mut out);
        }
        self.carry_out(model, member, driver, out, tell);
    }

    fn carry_out(
        &mut self,
        model: &MemberModel,
        member: usize,
        mut driver: Recorder,
        out: Vec<Output>,
        tell: Tell<'_>,
    ) {
        for (lock, owner, fence) in std::mem::take(&mut driver.let_in) {
            if let Some(client) = model.setting.client_of(member, owner) {
                self.note_grant(model, &lock, client, fence);
            }
        }
        for output in out {
            let epoch = self.epoch;
            match output {
                Output::Ask(to, number, question) => {
                    driver.post(to, &PeerMessage::Ask { epoch, number, question });
                }
                Output::Answer(to, number, answer) => {
                    driver.post(to, &PeerMessage::Answer { epoch, number, answer });
                }
                Output::Notice(owner, notice) => {
                    if let Some(client) = model.setting.client_of(member, owner) {
                        self.notify(model, client, notice, tell);
                    }
                }
                Output::Anomaly(what) => self.blame(Fault::Anomaly(member, what)),
                // The detector is not explored; the rest tells of what is seen otherwise.
                _ => {}
            }
        }
        if driver.unwritten {
            self.blame(Fault::Anomaly(member, "a message cannot be written as bytes"));
        }
        let present: Vec<usize> = self.members().map(|(place, _)| place).collect();
        for (to, bytes) in driver.sent {
            tell(Effect::Sent(member, present[to]));
            self.channels.entry((member, present[to])).or_default().push_back(bytes.into());
        }
        for (timer, is_set) in driver.timers {
            match (timer, is_set) {
                (Timer::Detector(_), _) => {}
                (_, true) => drop(self.timers.insert((member, timer))),
                (_, false) => drop(self.timers.remove(&(member, timer))),
            }
        }
    }

    /// A client is told something.
    fn notify(&mut self, model: &MemberModel, client: usize, notice: Notice, tell: Tell<'_>) {
        match notice {
            Notice::Granted { fences, .. } => {
                let fences: SmallVec<[Fence; 2]> = fences.into_iter().map(Fence).collect();
                tell(Effect::Granted(client, &fences));
                self.let_in(model, client, fences);
            }
            Notice::Refused { why, .. } => {
                tell(Effect::Refused(client, why.to_string()));
                if model.setting.wait.limit().is_none() {
                    self.blame(Fault::Refused(client, why.to_string()));
                }
                self.end_wait(&model.setting, client, Phase::Idle);
            }
            Notice::Lost { .. } | Notice::Released { .. } | Notice::Over(_) => {}
        }
    }

    fn let_in(&mut self, model: &MemberModel, client: usize, fences: SmallVec<[Fence; 2]>) {
        let setting = &model.setting;
        if self.clients[client].phase != Phase::Waiting {
            return self.blame(Fault::NotWaiting(client));
        }
        let before = self.queues[setting.member_of(client)].iter();
        let mut before = before.take_while(|&&waiter| waiter != client);
        if let Some(&first) = before.find(|&&other| model.wanted[other] == model.wanted[client]) {
            self.blame(Fault::Overtaken { first, granted: client });
        }
        self.end_wait(setting, client, Phase::Inside(fences));
    }

    /// A client was let into an instance: a lock, or all locks of which it asks for a set. It may still
    /// have to wait for another, and take back what it has.
    fn note_grant(&mut self, model: &MemberModel, lock: &str, client: usize, fence: Fence) {
        if !matches!(self.clients[client].phase, Phase::Waiting) {
            return self.blame(Fault::NotWaiting(client));
        }
        for &name in &model.wanted[client] {
            if (model.knows_sets || model.names[name] == lock)
                && let Err(fault) = self
                    .note_fence(&model.setting, name, fence)
                    .and_then(|()| self.note_turn(model, name, client, fence))
            {
                self.blame(fault);
            }
        }
    }

    /// Takes note of the fence of a grant of the lock at place `name`.
    fn note_fence(&mut self, setting: &Setting, name: usize, fence: Fence) -> Result<(), Fault> {
        let earlier = &mut self.fences[name];
        let (epoch, _, handovers) = unpack_fence(fence);
        let follows = earlier.contains(&Fence(fence.0.wrapping_sub(1)));
        if setting.permits == 1 {
            let last = earlier.pop().unwrap_or(Fence::NONE);
            earlier.push(fence);
            if fence <= last {
                return Err(Fault::FenceOrder { name, last, granted: fence });
            }
        } else {
            match earlier.binary_search(&fence) {
                Ok(_) => return Err(Fault::FenceTwice(name, fence)),
                Err(place) => earlier.insert(place, fence),
            }
        }
        if i64::try_from(fence.0).is_err() {
            return Err(Fault::FenceParts(fence, "is negative as a signed number"));
        }
        match handovers {
            0 if epoch != self.epoch => Err(Fault::FenceParts(fence, "is of another epoch")),
            1.. if !follows => {
                Err(Fault::FenceParts(fence, "counts a hand-over that did not happen"))
            }
            _ if handovers > setting.turns.handovers => Err(Fault::TooManyHandovers(fence)),
            _ => Ok(()),
        }
    }

    /// Takes note of the turn that a grant of the lock at place `name` belongs to. It begins with
    /// whoever waits at that moment.
    fn note_turn(
        &mut self,
        model: &MemberModel,
        name: usize,
        client: usize,
        fence: Fence,
    ) -> Result<(), Fault> {
        let (.., handover) = unpack_fence(fence);
        if handover == 0 {
            let waiting = self.queues[model.setting.member_of(client)].iter();
            let queue = waiting.filter(|&&waiter| model.wanted[waiter].contains(&name)).count();
            self.turns.insert(turn(name, fence), model.setting.turns.handovers_for(queue));
        }
        match self.turns.get(&turn(name, fence)) {
            Some(&handovers) if handover > handovers => Err(Fault::LongTurn { fence, handovers }),
            _ => Ok(()),
        }
    }

    /// The next view begins at all of its members, with the table of what they hold.
    fn change_view(&mut self, model: &MemberModel, tell: Tell<'_>) {
        let setting = &model.setting;
        self.changes -= 1;
        self.epoch = Epoch(self.epoch.0 + 1);
        if let Some(NextView::Without(gone)) = setting.next_view {
            self.remove(setting, gone);
        }
        let mut held: Held = self.members().flat_map(|(_, member)| member.held()).collect();
        if setting.mutant.is_some_and(|mutant| mutant.forgets_holders()) {
            held = Held::default();
        }
        let held = Arc::new(held);
        let view = |member: &WholeMember| member.service().view().own().clone();
        let members: Vec<_> = self.members().map(|(_, member)| view(member)).collect();
        for place in 0..self.members.len() {
            let Some(member) = self.members[place].as_mut().map(Arc::make_mut) else { continue };
            let Some(view) = member.service().view().next(members.clone()) else { continue };
            let others = view.others();
            let (mut driver, mut out) = (Recorder::default(), Vec::new());
            member.change_view(view, Arc::clone(&held), &mut driver, &mut out);
            for other in others {
                member.step(Input::LinkUp(other, 1), &mut driver, &mut out);
            }
            self.carry_out(model, place, driver, out, tell);
        }
    }

    /// A member is gone, with its clients and everything from it and to it.
    fn remove(&mut self, setting: &Setting, gone: usize) {
        self.members[gone] = None;
        self.channels.retain(|&(from, to), _| from != gone && to != gone);
        self.timers.retain(|&(member, _)| member != gone);
        for client in setting.clients_of(gone) {
            self.end_wait(setting, client, Phase::Gone);
            self.clients[client].remaining = 0;
        }
    }
}

fn turn(name: usize, fence: Fence) -> Turn {
    let (epoch, number, _) = unpack_fence(fence);
    (name, epoch, number)
}

fn epoch_of<'a>(message: &'a mut PeerMessage<'_>) -> Option<&'a mut Epoch> {
    match message {
        PeerMessage::Step(step) => Some(&mut step.epoch),
        PeerMessage::Detector { epoch, .. }
        | PeerMessage::Ask { epoch, .. }
        | PeerMessage::Answer { epoch, .. } => Some(epoch),
        PeerMessage::View(_) | PeerMessage::Aside(_) => None,
    }
}
