//! Timed holds survive the loss of their member: the next member of the view remembers them.
//!
//! Whoever has a timed hold was told how long it lives, and believes that, whatever happens to the member.
//! So a grant or a renewal is confirmed when the standby, the next member of the view, has said that it
//! remembers the hold as it is then. When a member is gone, whoever remembers its timed holds reports
//! them, and in the next view another member has them, with the same ids, tokens and fences.
//!
//! Time is counted from the sending by the member and from the receipt by the standby, each by its own
//! clock: so the copy does not end before the hold, by more than clocks may differ.
//!
//! A copy may be there for longer than its hold, for word of a release can be lost with its member. What
//! is held by somebody else tells that a copy is of no use (`timed::take_over`). That does not tell which of
//! the permits of a semaphore is free, so these are passed on when nobody has a copy any more.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use catraca_core::Claim;

use super::{Host, Output, Service};
use crate::driver::Ending;
use crate::durable::{DurablePart, HoldId};
use crate::lock::Owner;
use crate::membership::Run;
use crate::question::{Answer, Question};
use crate::refusal::Refusal;
use crate::request::{self, Origin, RequestId, State};
use crate::session::{MOST_SESSIONS, Over};
use crate::time::Time;
use crate::timed::TimedCopy;

/// A member remembers at most so many timed holds of others.
const MOST_COPIES: usize = 2 * MOST_SESSIONS;
/// When a view begins, the standby is told of so many holds at a time.
const MOST_AT_ONCE: usize = 1000;

/// What a member remembers of others, and what others have yet to forget.
#[derive(Clone, Debug, Default)]
pub(super) struct Standby {
    /// The members of the present view, in order.
    pub(super) members: Vec<Run>,
    /// Who remembers the timed holds of this member.
    pub(super) standby: Option<usize>,
    pub(super) copies: BTreeMap<HoldId, Kept>,
    /// The same in the order of their ends.
    ends: BTreeSet<(Time, HoldId)>,
    /// What the standby was asked to remember and has not confirmed, by the number of the question.
    pub(super) asked: BTreeMap<u64, HoldId>,
    /// Who was asked to forget which hold, and has not confirmed it.
    pub(super) told: BTreeMap<u64, (HoldId, Run)>,
    /// Holds that are over, and who may still have a copy.
    pub(super) over: BTreeMap<HoldId, Ended>,
}

/// A timed hold of another member.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) holder: Run,
    pub(super) until: Time,
    pub(super) copy: TimedCopy,
}

/// A timed hold that is over.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) keepers: BTreeSet<Run>,
    /// What is passed on when nobody has a copy any more.
    request: Option<(RequestId, Ending)>,
}

/// Times do not matter, nor do the numbers of questions.
impl Hash for Standby {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for (id, kept) in &self.copies {
            (id, &kept.holder, kept.copy.version).hash(hasher);
        }
        for (id, ended) in &self.over {
            (id, &ended.keepers, ended.request.map(|(request, _)| request)).hash(hasher);
        }
        self.asked.values().for_each(|id| id.hash(hasher));
        self.told.values().for_each(|told| told.hash(hasher));
    }
}

impl Standby {
    pub(super) fn forget(&mut self, id: HoldId) {
        if let Some(kept) = self.copies.remove(&id) {
            self.ends.remove(&(kept.until, id));
        }
    }

    /// Forgets what is over.
    fn clear_up(&mut self, now: Time) {
        while let Some(&(until, id)) = self.ends.first()
            && until <= now
        {
            self.forget(id);
        }
    }

    fn place_of(&self, run: &Run) -> Option<usize> {
        self.members.iter().position(|member| member == run)
    }

    pub(super) fn standby(&self) -> Option<(usize, &Run)> {
        let place = self.standby?;
        Some((place, &self.members[place]))
    }
}

impl Service {
    // The member that has the hold.

    /// The standby is asked to remember a hold as it is now. Whoever waits for that is told when it does.
    pub(super) fn protect(&mut self, id: HoldId, host: &mut dyn Host, out: &mut Vec<Output>) {
        let now = host.now();
        let Some((place, standby)) = self.standby.standby() else {
            return self.confirm(id, host, out);
        };
        let standby = standby.clone();
        let is_early = self.membership().is_some_and(|it| it.rules().confirms_unremembered());
        self.last_question += 1;
        let number = self.last_question;
        let Some(copy) = self.copy_of(id, number, now) else { return };
        let Some(entry) = self.timed.entries.get_mut(&id) else { return };
        entry.keepers.insert(standby);
        entry.asked = Some(number);
        self.standby.asked.insert(number, id);
        out.push(Output::Ask(place, number, Question::Remember(Box::new(copy))));
        if is_early {
            self.confirm(id, host, out);
        }
    }

    /// Asks the standby to remember more of what it does not know yet: not everything at once, for it may
    /// have to keep that until the view begins there.
    pub(super) fn protect_more(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        while self.standby.asked.len() < MOST_AT_ONCE
            && let Some(id) = self.timed.unprotected.pop_front()
        {
            self.protect(id, host, out);
        }
    }

    fn copy_of(&self, id: HoldId, number: u64, now: Time) -> Option<TimedCopy> {
        let hold = self.timed_hold(id, now)?;
        let request = self.requests.get(self.timed_request(id)?)?;
        let part = |part: &request::Part| DurablePart {
            key: part.key(request.permits).name.into(),
            claim: part.set.as_ref().map_or_else(Claim::single, |set| set.claim.clone()),
        };
        let parts = request.parts.iter().map(part).collect();
        Some(TimedCopy { version: (self.view.epoch, number), hold, parts })
    }

    /// The standby has answered.
    pub(super) fn remembered(
        &mut self,
        number: u64,
        is_kept: bool,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Some(id) = self.standby.asked.remove(&number) else { return };
        self.protect_more(host, out);
        let Some(entry) = self.timed.entries.get_mut(&id) else { return };
        if entry.asked != Some(number) {
            // It was renewed meanwhile, and is asked about anew.
            return;
        }
        entry.asked = None;
        if !is_kept {
            let (owner, is_new) = (entry.owner, !entry.is_confirmed);
            self.tell_waiting(id, Err(Refusal::Busy), out);
            if is_new {
                self.end(owner, Over::Closed, host, out);
            }
        } else if host.is_valid() {
            self.confirm(id, host, out);
        }
        // Without a lease nothing is said: in the next view it is asked about anew, or is elsewhere.
    }

    /// A hold is safe: whoever waited for that is told.
    fn confirm(&mut self, id: HoldId, host: &mut dyn Host, out: &mut Vec<Output>) {
        let now = host.now();
        let request = self.timed_request(id).copied();
        let Some(entry) = self.timed.entries.get_mut(&id) else { return };
        let is_awaited = !entry.waiting.is_empty();
        if !core::mem::replace(&mut entry.is_confirmed, true)
            && let Some(request) = request
        {
            self.cancel_timer(request, host);
        }
        if is_awaited && let Some(hold) = self.timed_hold(id, now) {
            self.tell_waiting(id, Ok(Box::new(hold)), out);
        }
        // Others remember it as it was before.
        let standby = self.standby.standby().map(|(_, run)| run.clone());
        let Some(entry) = self.timed.entries.get(&id) else { return };
        let others: Vec<Run> =
            entry.keepers.iter().filter(|&run| Some(run) != standby.as_ref()).cloned().collect();
        for run in others {
            self.tell_to_forget(id, &run, out);
        }
    }

    /// Asks a member to forget a hold. Returns false if it is gone, and has nothing to forget.
    pub(super) fn tell_to_forget(&mut self, id: HoldId, run: &Run, out: &mut Vec<Output>) -> bool {
        let Some(place) = self.standby.place_of(run) else { return false };
        self.last_question += 1;
        self.standby.told.insert(self.last_question, (id, run.clone()));
        out.push(Output::Ask(place, self.last_question, Question::Forget(id)));
        true
    }

    /// A member has forgotten a hold.
    pub(super) fn forgotten(&mut self, number: u64, host: &mut dyn Host) {
        let Some((id, run)) = self.standby.told.remove(&number) else { return };
        if let Some(entry) = self.timed.entries.get_mut(&id) {
            entry.keepers.remove(&run);
        }
        if let Some(ended) = self.standby.over.get_mut(&id) {
            ended.keepers.remove(&run);
            self.pass_on(id, host);
        }
    }

    /// A hold is over. Whoever remembers it is told; of a semaphore, the permit is passed on afterwards.
    pub(super) fn let_go(
        &mut self,
        id: HoldId,
        mut keepers: BTreeSet<Run>,
        (request, ending): (RequestId, Ending),
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let is_told = self.membership().is_none_or(|it| it.rules().tells_of_timed_releases());
        keepers.retain(|run| is_told && self.tell_to_forget(id, run, out));
        let is_one_of_many = self.requests.get(&request).is_some_and(|it| it.permits > 1);
        let request = match is_one_of_many && !keepers.is_empty() {
            true => Some((request, ending)),
            false => {
                self.take_out(request, ending, host);
                None
            }
        };
        if !keepers.is_empty() {
            self.standby.over.insert(id, Ended { keepers, request });
        }
    }

    /// If nobody has a copy any more, what a hold had is passed on.
    pub(super) fn pass_on(&mut self, id: HoldId, host: &mut dyn Host) {
        if self.standby.over.get(&id).is_some_and(|ended| ended.keepers.is_empty())
            && let Some(Ended { request: Some((request, ending)), .. }) =
                self.standby.over.remove(&id)
        {
            self.take_out(request, ending, host);
        }
    }

    /// Whether a request is a timed hold that goes on without this member, or one that is over.
    pub(super) fn is_protected(&self, request: RequestId) -> bool {
        let Some(Origin::Timed(owner)) = self.requests.get(&request).map(|it| it.origin) else {
            return false;
        };
        let Some(session) = self.sessions.get(&owner) else { return true };
        let entry = session.timed.and_then(|id| self.timed.entries.get(&id));
        let standby = self.standby.standby();
        entry.is_some_and(|entry| {
            let is_kept = standby.is_some_and(|(_, run)| entry.keepers.contains(run));
            entry.is_confirmed && entry.asked.is_none() && is_kept
        })
    }

    /// The member leaves: what nobody else remembers ends with it.
    pub(super) fn end_unprotected(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        let held = self.requests.iter().filter(|(_, it)| matches!(it.state, State::Held(_)));
        let lost = held.filter(|&(&id, _)| !self.is_protected(id));
        let lost: Vec<Owner> = lost
            .filter_map(|(_, request)| match request.origin {
                Origin::Timed(owner) => Some(owner),
                _ => None,
            })
            .collect();
        for owner in lost {
            self.end(owner, Over::Stopping, host, out);
        }
    }

    /// The group goes on without this member: its timed holds are elsewhere, and it remembers nobody's.
    pub(super) fn give_up_timed(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        let over = core::mem::take(&mut self.standby).over;
        for (request, ending) in over.into_values().filter_map(|ended| ended.request) {
            self.take_out(request, ending, host);
        }
        let ids: Vec<HoldId> = self.timed.entries.keys().copied().collect();
        for id in ids {
            let is_held = self.timed_request(id).is_some_and(|it| self.hold(*it).is_some());
            if is_held && let Some(entry) = self.timed.entries.get_mut(&id) {
                entry.keepers.clear();
                let owner = entry.owner;
                self.tell_waiting(id, Err(Refusal::Lapsed), out);
                self.end_as(owner, Over::Closed, Ending::Moved, host, out);
            }
        }
    }

    // The member that remembers it.

    /// Another member wants a hold to be remembered.
    pub(super) fn remember(
        &mut self,
        member: usize,
        copy: TimedCopy,
        host: &mut dyn Host,
    ) -> Answer {
        let (id, left) = (copy.hold.id, copy.hold.left);
        let left = self.membership().map_or(left, |it| it.rules().remembers_for(left));
        let (now, standby) = (host.now(), &mut self.standby);
        let Some(holder) = standby.members.get(member).cloned() else {
            return Answer::Remembered(false);
        };
        standby.clear_up(now);
        standby.forget(id);
        if standby.copies.len() >= MOST_COPIES {
            return Answer::Remembered(false);
        }
        let until = now + left;
        standby.ends.insert((until, id));
        standby.copies.insert(id, Kept { holder, until, copy });
        Answer::Remembered(true)
    }

    /// Another member wants a hold to be forgotten.
    pub(super) fn forget_copy(&mut self, id: HoldId) -> Answer {
        self.standby.forget(id);
        Answer::Forgotten
    }

    /// The member that remembers the timed holds of this one, if there is one.
    pub(super) fn standby_name(&self) -> Option<&str> {
        self.standby.standby().map(|(_, run)| run.name.as_str())
    }

    /// Whether the standby can be told of more.
    pub(super) fn check_standby(&self, host: &dyn Host) -> Result<(), Refusal> {
        match self.standby.standby() {
            Some((place, run)) if host.full() & 1 << place != 0 => {
                Err(Refusal::Behind(run.name.clone()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
