//! Clients: what they ask, what they are told, and for how long they trust it.

use catraca_core::Fence;
use catraca_group::{Input, Notice, Owner, Time, Who};
use smallvec::SmallVec;

use super::{Effect, Fault, Phase, World};
use crate::views::model::ViewModel;
use crate::views::world::stepping::Tell;

impl World {
    /// A client asks, in a session that it opens if it has none.
    pub(super) fn ask(&mut self, model: &ViewModel, client: usize, tell: Tell<'_>) {
        let place = model.setting.member_of(client);
        if self.clients[client].owner.is_none() {
            self.step(model, place, Input::Open(Who::default(), None), tell);
            let member = self.sites[place].member.as_ref();
            let opened = member.and_then(|member| member.last_session());
            self.clients[client].owner = opened.map(|session| Owner(session.number));
        }
        let Some(owner) = self.clients[client].owner else { return };
        self.clients[client].remaining -= 1;
        self.clients[client].phase = Phase::Waiting;
        let number = self.clients[client].remaining;
        let asked = model.setting.asked(client);
        self.step(model, place, Input::Request(owner, number, asked), tell);
    }

    /// A client that is inside leaves.
    pub(super) fn leave(&mut self, model: &ViewModel, client: usize, tell: Tell<'_>) {
        let place = model.setting.member_of(client);
        self.clients[client].phase = Phase::Idle;
        let Some(owner) = self.clients[client].owner else { return };
        let number = self.clients[client].remaining;
        self.step(model, place, Input::Release(owner, number), tell);
    }

    /// The client behind a session of a member.
    pub(super) fn client_of(&self, model: &ViewModel, place: usize, owner: Owner) -> Option<usize> {
        let per_member = model.setting.clients;
        let clients = place * per_member..(place + 1) * per_member;
        clients.into_iter().find(|&client| self.clients[client].owner == Some(owner))
    }

    /// A client is told something.
    pub(super) fn notify(
        &mut self,
        model: &ViewModel,
        client: usize,
        notice: Notice,
        tell: Tell<'_>,
    ) {
        match notice {
            Notice::Granted { fences, .. } => {
                let fences: SmallVec<[Fence; 2]> = fences.into_iter().map(Fence).collect();
                tell(Effect::Granted(client, &fences));
                self.let_in(model, client, fences);
            }
            Notice::Refused { why, .. } => {
                tell(Effect::Refused(client, why.to_string()));
                self.blame(Fault::Refused(client, why.to_string()));
                self.clients[client].phase = Phase::Idle;
            }
            Notice::Over(why) => {
                tell(Effect::Lost(client, why.to_string()));
                if self.is_waiting(client) {
                    self.blame(Fault::SentAway(client));
                }
                (self.clients[client].phase, self.clients[client].owner) = (Phase::Idle, None);
            }
            Notice::Lost { .. } | Notice::Released { .. } => {}
        }
    }

    fn let_in(&mut self, model: &ViewModel, client: usize, fences: SmallVec<[Fence; 2]>) {
        let place = model.setting.member_of(client);
        if !self.is_waiting(client) {
            return self.blame(Fault::NotWaiting(client));
        }
        if self.sites[place].is_excluded {
            self.blame(Fault::LetInByExcluded(client));
        }
        for (&name, &fence) in model.wanted[client].iter().zip(&fences) {
            self.note_fence(model.setting.permits, name, fence);
        }
        let until = self.trusted_until(place);
        self.clients[client].phase = Phase::Inside(fences, until);
    }

    /// Until when clients may trust what a member tells them now.
    fn trusted_until(&self, place: usize) -> Time {
        let member = self.sites[place].member.as_ref();
        member.map_or(Time(0), |member| self.now + member.service().certain(self.now))
    }

    /// The clients of a member that are inside ask it again how long they may trust it.
    pub(super) fn renew_trust(&mut self, model: &ViewModel, place: usize) {
        let trusted = self.trusted_until(place);
        let per_member = model.setting.clients;
        for client in &mut self.clients[place * per_member..(place + 1) * per_member] {
            if let Phase::Inside(_, until) = &mut client.phase {
                *until = trusted.max(*until);
            }
        }
    }

    /// Takes note of the fence of a grant of the lock at place `name`.
    fn note_fence(&mut self, permits: u32, name: usize, fence: Fence) {
        let earlier = &mut self.fences[name];
        if permits == 1 {
            let last = earlier.pop().unwrap_or(Fence::NONE);
            earlier.push(fence.max(last));
            if fence <= last {
                self.blame(Fault::FenceOrder { name, last, granted: fence });
            }
            return;
        }
        match earlier.binary_search(&fence) {
            Ok(_) => self.blame(Fault::FenceTwice(name, fence)),
            Err(place) => earlier.insert(place, fence),
        }
    }
}
