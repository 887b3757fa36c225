//! Timed holds: asked for as any other, and then looked at, renewed and released at whichever member.
//!
//! Every timed hold has a session of its own, with one request. While it waits the session has no time to
//! live: that begins with the grant. Whoever gives the name of a lock instead of the id proves with the
//! token that the hold is its own.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use super::{Asking, Host, Output, Service};
use crate::driver::{Ending, Timer};
use crate::durable::HoldId;
use crate::lock::Owner;
use crate::membership::Run;
use crate::question::Answer;
use crate::refusal::Refusal;
use crate::request::{Acquire, Hold, Origin, RequestId};
use crate::session::{MOST_REQUESTS_IN_ALL, Over};
use crate::time::Time;
use crate::timed::{AcquireTimed, TimedHold, Which};

/// The number of the one request of a session that belongs to a timed hold.
pub(super) const ONLY: u32 = 0;
/// So many wait at a time for the standby to remember one hold.
pub(super) const MOST_WAITING: usize = 1000;

/// What was asked for here or is held here by time to live.
#[derive(Clone, Debug, Default)]
pub(super) struct Timed {
    pub(super) entries: BTreeMap<HoldId, Entry>,
    /// Which of them holds which lock, of those with one permit.
    pub(super) by_name: BTreeMap<String, HoldId>,
    /// Those that were taken over, and that the standby does not know yet.
    pub(super) unprotected: VecDeque<HoldId>,
}

impl Timed {
    /// A hold is found by its locks, if there is one permit.
    pub(super) fn name(&mut self, id: HoldId, names: &[String], permits: u32) {
        if permits == 1 {
            for name in names {
                self.by_name.insert(name.clone(), id);
            }
        }
    }
}

/// A timed hold, or a request for one.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) owner: Owner,
    /// Who waits for the locks, until they are granted.
    pub(super) asker: Option<u64>,
    pub(super) ttl: Duration,
    pub(super) token: Vec<u8>,
    /// Who waits until the standby remembers the hold as it is.
    pub(super) waiting: Vec<Reply>,
    /// Whether anybody was told that it is held.
    pub(super) is_confirmed: bool,
    /// The last question to the standby, until it is answered.
    pub(super) asked: Option<u64>,
    /// Who may remember it.
    pub(super) keepers: BTreeSet<Run>,
}

impl Entry {
    /// A request that waits for its locks.
    fn new(owner: Owner, asker: u64, ttl: Duration, token: Vec<u8>) -> Self {
        Entry {
            owner,
            asker: Some(asker),
            ttl,
            token,
            waiting: Vec::new(),
            is_confirmed: false,
            asked: None,
            keepers: BTreeSet::new(),
        }
    }
}

/// Who is to be told what has come of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reply {
    /// Somebody of this member.
    Asker(u64),
    /// Another member, which has this number for its question.
    Member(usize, u64),
}

/// Times do not matter.
impl Hash for Timed {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for (id, entry) in &self.entries {
            let Entry { owner, asker, token, waiting, is_confirmed, keepers, .. } = entry;
            (id, owner, asker, token, waiting).hash(hasher);
            (is_confirmed, entry.asked.is_some(), keepers).hash(hasher);
        }
    }
}

impl Service {
    /// Asks for a timed hold. What comes of it is told `asker` by [`Output::Timed`].
    pub fn acquire_timed(
        &mut self,
        asker: u64,
        asked: AcquireTimed,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        if let Err(why) = self.begin_timed(asker, asked, host, out) {
            out.push(Output::Timed(asker, Err(why)));
        }
        self.absorb(host, out);
    }

    fn begin_timed(
        &mut self,
        asker: u64,
        asked: AcquireTimed,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        asked.check()?;
        let AcquireTimed { id, names, permits, wait, ttl, who, token } = asked;
        let acquire = Acquire { names, permits, wait };
        self.check_ttl(ttl, &acquire)?;
        if self.timed.entries.contains_key(&id) {
            return Err(Refusal::OtherRequest(Which::Id(id).called()));
        }
        if self.requests.len() >= MOST_REQUESTS_IN_ALL {
            return Err(Refusal::Busy);
        }
        self.check_standby(host)?;
        let session = self.open(who, None, id.0.to_be_bytes(), host)?;
        let owner = Owner(session.number);
        // The answer may be among the outputs of asking: everything has to be known then.
        let request = self.next_request();
        if let Some(session) = self.sessions.get_mut(&owner) {
            session.timed = Some(id);
            session.requests.insert(ONLY, request);
        }
        self.timed.entries.insert(id, Entry::new(owner, asker, ttl, token));
        if let Err(why) = self.acquire(Origin::Timed(owner), acquire, host, out) {
            self.sessions.remove(&owner);
            self.timed.entries.remove(&id);
            return Err(why);
        }
        Ok(())
    }

    /// Nobody waits for this hold any more. If it was granted meanwhile, it is released.
    pub fn cancel_timed(&mut self, id: HoldId, host: &mut dyn Host, out: &mut Vec<Output>) {
        if let Some(entry) = self.timed.entries.get_mut(&id) {
            entry.asker = None;
            entry.waiting.clear();
            let owner = entry.owner;
            self.end(owner, Over::Closed, host, out);
        }
        self.absorb(host, out);
    }

    /// All locks of a timed hold are granted: from now on its time counts. It is confirmed when the standby
    /// remembers it.
    pub(super) fn keep_timed(&mut self, owner: Owner, host: &mut dyn Host, out: &mut Vec<Output>) {
        let Some(id) = self.sessions.get(&owner).and_then(|session| session.timed) else { return };
        let Some(entry) = self.timed.entries.get_mut(&id) else { return };
        let ttl = entry.ttl;
        entry.waiting.extend(entry.asker.take().map(Reply::Asker));
        self.set_left(owner, ttl, host);
        let request = self.timed_request(id).and_then(|request| self.requests.get(request));
        let Some(request) = request else { return };
        self.timed.name(id, &request.names, request.permits);
        self.protect(id, host, out);
    }

    /// Whether a request has its locks, and nobody was told.
    pub(super) fn is_unconfirmed(&self, origin: Origin) -> bool {
        let Origin::Timed(owner) = origin else { return false };
        let id = self.sessions.get(&owner).and_then(|session| session.timed);
        let entry = id.and_then(|id| self.timed.entries.get(&id));
        entry.is_some_and(|entry| entry.asker.is_none() && !entry.is_confirmed)
    }

    /// The patience of somebody is over who waits for the standby to remember its hold.
    pub(super) fn give_up_unconfirmed(
        &mut self,
        origin: Origin,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Origin::Timed(owner) = origin else { return };
        let why = self.standby_name().map_or(Refusal::TimedOut, |it| Refusal::Silent(it.into()));
        if let Some(id) = self.sessions.get(&owner).and_then(|session| session.timed) {
            self.tell_waiting(id, Err(why), out);
        }
        self.end(owner, Over::Closed, host, out);
    }

    /// Whoever waits for the standby is told.
    pub(super) fn tell_waiting(
        &mut self,
        id: HoldId,
        result: Result<Box<TimedHold>, Refusal>,
        out: &mut Vec<Output>,
    ) {
        let Some(entry) = self.timed.entries.get_mut(&id) else { return };
        let mut waiting = core::mem::take(&mut entry.waiting);
        // Mostly there is one, and nothing has to be copied.
        let Some(last) = waiting.pop() else { return };
        out.extend(waiting.into_iter().map(|reply| told(reply, result.clone())));
        out.push(told(last, result));
    }

    /// A request for a timed hold is not granted, and is no more.
    pub(super) fn refuse_timed(&mut self, owner: Owner, why: Refusal, out: &mut Vec<Output>) {
        let Some(id) = self.sessions.remove(&owner).and_then(|session| session.timed) else {
            return;
        };
        if let Some(asker) = self.timed.entries.remove(&id).and_then(|entry| entry.asker) {
            out.push(Output::Timed(asker, Err(why)));
        }
    }

    /// The session of a timed hold is over, and with it what the request holds or awaits.
    pub(super) fn end_timed(
        &mut self,
        id: HoldId,
        request: RequestId,
        ending: Ending,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let why = match self.timed.entries.get(&id) {
            Some(entry) if entry.is_confirmed => Refusal::NoSuchHold(Which::Id(id).called()),
            _ => Refusal::TimedOut,
        };
        self.tell_waiting(id, Err(why), out);
        let Some(entry) = self.timed.entries.remove(&id) else { return };
        let names = self.requests.get(&request).map_or(&[][..], |request| &request.names);
        for name in names {
            if self.timed.by_name.get(name) == Some(&id) {
                self.timed.by_name.remove(name);
            }
        }
        self.let_go(id, entry.keepers, (request, ending), host, out);
    }

    /// The one request of a timed hold.
    pub(super) fn timed_request(&self, id: HoldId) -> Option<&RequestId> {
        let session = self.sessions.get(&self.timed.entries.get(&id)?.owner)?;
        session.requests.get(&ONLY)
    }

    /// It ends so long from now.
    pub(super) fn set_left(&mut self, owner: Owner, left: Duration, host: &mut dyn Host) {
        if let Some(session) = self.sessions.get_mut(&owner) {
            session.ttl = Some(left);
            session.renew(host.now());
            host.set_timer(Timer::Session(owner), Some(left));
        }
    }

    pub(super) fn timed_hold(&self, id: HoldId, now: Time) -> Option<TimedHold> {
        let entry = self.timed.entries.get(&id)?;
        let session = self.sessions.get(&entry.owner)?;
        let Hold { names, permits, fences, .. } = self.hold(*self.timed_request(id)?)?;
        Some(TimedHold {
            id,
            names,
            permits,
            fences,
            who: session.who.clone(),
            token: entry.token.clone(),
            member: self.view.own().name.clone(),
            ttl: entry.ttl,
            left: session.deadline.since(now),
        })
    }

    /// The member stops: whoever waits for a timed hold, or for word of one, will not be answered.
    pub(super) fn leave_timed_unanswered(&mut self, out: &mut Vec<Output>) {
        for entry in self.timed.entries.values_mut() {
            let waiting =
                entry.asker.take().map(Reply::Asker).into_iter().chain(entry.waiting.drain(..));
            out.extend(waiting.map(|reply| told(reply, Err(Refusal::Stopped))));
        }
        self.questions.retain(|_, asking| match asking {
            Asking::Timed(pending) => {
                out.push(Output::Timed(pending.asker, Err(Refusal::Stopped)));
                false
            }
            Asking::Fence(comparison) => {
                out.push(Output::Fence(comparison.asker, Err(Refusal::Stopped)));
                false
            }
            _ => true,
        });
    }
}

/// Somebody is told what has come of something.
pub(super) fn told(reply: Reply, result: Result<Box<TimedHold>, Refusal>) -> Output {
    match reply {
        Reply::Asker(asker) => Output::Timed(asker, result),
        Reply::Member(member, number) => Output::Answer(member, number, Answer::Timed(result)),
    }
}

#[cfg(test)]
mod tests;
