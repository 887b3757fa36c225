//! Timed holds: asked for as any other, and then looked at, renewed and released at whichever member.
//!
//! Every timed hold has a session of its own, with one request. While it waits the session has no time to
//! live: that begins with the grant. Whoever gives the name of a lock instead of the id proves with the
//! token that the hold is its own. What is not here may be elsewhere, so the other members are asked;
//! only if all of them say no, there is none.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use super::{Asking, Host, Output, Phase, Service};
use crate::driver::{Ending, Timer};
use crate::durable::HoldId;
use crate::lock::Owner;
use crate::membership::Run;
use crate::question::{ANSWER_TIME, Answer, Question};
use crate::refusal::Refusal;
use crate::request::{self, Acquire, Hold, Origin, RequestId};
use crate::session::{MOST_REQUESTS_IN_ALL, Over, is_same_secret};
use crate::time::Time;
use crate::timed::{AcquireTimed, MOST_QUESTIONS, Operation, Renewal, TimedHold, Which};
use crate::view::View;

/// The number of the one request of a session that belongs to a timed hold.
pub(super) const ONLY: u32 = 0;
/// So many wait at a time for the standby to remember one hold.
const MOST_WAITING: usize = 1000;

/// What was asked for here or is held here by time to live.
#[derive(Clone, Debug, Default)]
pub(super) struct Timed {
    pub(super) entries: BTreeMap<HoldId, Entry>,
    /// Which of them holds which lock, of those with one permit.
    by_name: BTreeMap<String, HoldId>,
    /// Those that were taken over, and that the standby does not know yet.
    pub(super) unprotected: VecDeque<HoldId>,
}

impl Timed {
    /// A hold is found by its locks, if there is one permit.
    pub(super) fn name(&mut self, id: HoldId, hold: &TimedHold) {
        if hold.permits == 1 {
            for name in &hold.names {
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

/// Something that is to be done with a timed hold, wherever it is.
#[derive(Clone, Debug)]
pub(super) struct Errand {
    asker: u64,
    which: Which,
    operation: Operation,
    /// The members that have not answered.
    waiting: BTreeSet<usize>,
    /// A member that did not answer, now or in an earlier view, or could not be asked. It may have the hold.
    silent: Option<String>,
}

impl Errand {
    /// The view ends. Whoever has not answered may have done what it was asked for.
    pub(super) fn end_view(&mut self, view: &View) {
        if let Some(member) = core::mem::take(&mut self.waiting).pop_first() {
            self.silent = Some(view.members[member].name.clone());
        }
    }

    /// A member has not got the hold. Returns whether none has.
    pub(super) fn is_not_at(&mut self, member: usize) -> bool {
        self.waiting.remove(&member) && self.waiting.is_empty()
    }

    /// A member called `name` will not answer. Returns whether nobody will.
    pub(super) fn no_answer_from(&mut self, member: usize, name: &str) -> bool {
        let was_asked = self.waiting.remove(&member);
        if was_asked {
            self.silent = Some(name.into());
        }
        was_asked && self.waiting.is_empty()
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
        let now = host.now();
        let Some(id) = self.sessions.get(&owner).and_then(|session| session.timed) else { return };
        let Some(entry) = self.timed.entries.get_mut(&id) else { return };
        let ttl = entry.ttl;
        entry.waiting.extend(entry.asker.take().map(Reply::Asker));
        self.set_left(owner, ttl, host);
        let Some(hold) = self.timed_hold(id, now) else { return };
        self.timed.name(id, &hold);
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
            self.tell_waiting(id, &Err(why), out);
        }
        self.end(owner, Over::Closed, host, out);
    }

    /// Whoever waits for the standby is told.
    pub(super) fn tell_waiting(
        &mut self,
        id: HoldId,
        result: &Result<Box<TimedHold>, Refusal>,
        out: &mut Vec<Output>,
    ) {
        let Some(entry) = self.timed.entries.get_mut(&id) else { return };
        for reply in core::mem::take(&mut entry.waiting) {
            out.push(told(reply, result.clone()));
        }
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
        self.tell_waiting(id, &Err(why), out);
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
    fn set_left(&mut self, owner: Owner, left: Duration, host: &mut dyn Host) {
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

    // At whichever member it is.

    /// Looks at a timed hold, renews it or releases it, wherever it is. What comes of it is told `asker`
    /// by [`Output::Timed`]: the hold as it is then; of one that is released, as it was.
    pub fn timed(
        &mut self,
        asker: u64,
        which: Which,
        operation: Operation,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let (waiting, silent) = (BTreeSet::new(), None);
        self.run(Errand { asker, which, operation, waiting, silent }, host, out);
        self.absorb(host, out);
    }

    pub(super) fn run(&mut self, errand: Errand, host: &mut dyn Host, out: &mut Vec<Output>) {
        let (asker, operation) = (errand.asker, errand.operation);
        let result = match self.operate(&errand.which, operation, Reply::Asker(asker), host, out) {
            None => return,
            Some(Err(Refusal::NoSuchHold(_))) => match self.ask_others(errand, host, out) {
                Ok(()) => return,
                Err(why) => Err(why),
            },
            Some(result) => result,
        };
        out.push(Output::Timed(asker, result));
    }

    /// Another member wants something done with a timed hold, if it is here.
    pub(super) fn operate_for(
        &mut self,
        member: usize,
        number: u64,
        which: &Which,
        operation: Operation,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let reply = Reply::Member(member, number);
        if let Some(result) = self.operate(which, operation, reply, host, out) {
            out.push(told(reply, result));
        }
    }

    /// Does it if the hold is here. Returns nothing if that is told later.
    fn operate(
        &mut self,
        which: &Which,
        operation: Operation,
        reply: Reply,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Option<Result<Box<TimedHold>, Refusal>> {
        let done = self.find_timed(which, host, out).and_then(|(id, owner)| {
            if operation != Operation::Release {
                self.check_forced(owner, host, out)?;
            }
            let hold = self.timed_hold(id, host.now());
            let hold = hold.ok_or_else(|| Refusal::NoSuchHold(which.called()))?;
            match operation {
                // What a member says without a lease may not be so.
                _ if !host.is_valid() => return Err(Refusal::Lapsed),
                Operation::Look => {}
                // From now on somebody else has it.
                _ if self.is_drained() => return Err(Refusal::Leaving),
                Operation::Release => self.end(owner, Over::Closed, host, out),
                Operation::Renew(renewal) => {
                    let left = renewal.left(hold.left)?;
                    self.renew_timed(id, left, reply, host, out)?;
                    return Ok(None);
                }
            }
            Ok(Some(Box::new(hold)))
        });
        done.transpose()
    }

    /// A hold lives so long from now on, which is told when the standby knows.
    fn renew_timed(
        &mut self,
        id: HoldId,
        left: Duration,
        reply: Reply,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        self.check_standby(host)?;
        let Some(entry) = self.timed.entries.get_mut(&id) else { return Ok(()) };
        if entry.waiting.len() >= MOST_WAITING {
            return Err(Refusal::Busy);
        }
        entry.ttl = left;
        entry.waiting.push(reply);
        let owner = entry.owner;
        self.set_left(owner, left, host);
        self.protect(id, host, out);
        Ok(())
    }

    /// The hold that is meant, if it is here. Its time may be over although nobody has noticed yet.
    fn find_timed(
        &mut self,
        which: &Which,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Result<(HoldId, Owner), Refusal> {
        let now = host.now();
        let id = match which {
            Which::Id(id) => Some(*id),
            Which::Name { name, .. } => self.timed.by_name.get(name).copied(),
        };
        if let Some(id) = id
            && let Some(entry) = self.timed.entries.get(&id)
            && let Some(session) = self.sessions.get(&entry.owner)
        {
            let owner = entry.owner;
            match which {
                _ if now >= session.deadline => self.end(owner, Over::Expired, host, out),
                Which::Name { name, token: Some(token) }
                    if !is_same_secret(token, &entry.token) =>
                {
                    return Err(Refusal::OtherHolder(name.clone()));
                }
                _ => return Ok((id, owner)),
            }
        }
        match which {
            Which::Name { name, .. } if self.is_held_otherwise(name, host)? => {
                Err(Refusal::OtherHolder(name.clone()))
            }
            which => Err(Refusal::NoSuchHold(which.called())),
        }
    }

    /// Whether somebody here is inside a lock of which there is one permit.
    fn is_held_otherwise(&self, name: &str, host: &mut dyn Host) -> Result<bool, Refusal> {
        let parts = request::parts(&[name.into()], 1, &self.view)?;
        let claim = |part: &request::Part| part.set.as_ref().map(|set| set.claim.clone());
        Ok(parts.iter().any(|part| host.is_held(part.key(1), claim(part).as_ref())))
    }

    /// Asks the other members, if they can be asked.
    fn ask_others(
        &mut self,
        mut errand: Errand,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let refused = match &self.phase {
            Phase::Stopped => Some(Refusal::Stopped),
            Phase::Expelled(why) => Some(Refusal::Expelled(why.clone())),
            Phase::Gathering | Phase::Granting => self.not_ready(),
        };
        let is_full = self.questions.len() >= MOST_QUESTIONS;
        if let Some(why) = refused.or(is_full.then_some(Refusal::Busy)) {
            return Err(why);
        }
        self.last_question += 1;
        let number = self.last_question;
        for member in self.view.others() {
            if self.peers[member].is_up {
                errand.waiting.insert(member);
                let (which, operation) = (errand.which.clone(), errand.operation);
                out.push(Output::Ask(member, number, Question::Timed(which, operation)));
            } else {
                errand.silent = Some(self.view.members[member].name.clone());
            }
        }
        let is_done = errand.waiting.is_empty();
        self.questions.insert(number, Asking::Timed(errand));
        if is_done {
            self.close_question(number, host, out);
        } else {
            host.set_timer(Timer::Question(number), Some(ANSWER_TIME));
        }
        Ok(())
    }

    /// A member has the hold, or knows that somebody else has the lock.
    pub(super) fn take_timed(
        &mut self,
        number: u64,
        result: Result<Box<TimedHold>, Refusal>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        if let Some(Asking::Timed(errand)) = self.questions.remove(&number) {
            host.set_timer(Timer::Question(number), None);
            out.push(Output::Timed(errand.asker, result));
        }
    }

    /// Nobody waits for more answers: none of those that came was from the member that has the hold.
    pub(super) fn end_errand(&self, errand: Errand, out: &mut Vec<Output>) {
        let unheard = errand.waiting.first().map(|&member| self.view.members[member].name.clone());
        let why = match unheard.or(errand.silent) {
            Some(member) => Refusal::Silent(member),
            None => Refusal::NoSuchHold(errand.which.called()),
        };
        out.push(Output::Timed(errand.asker, Err(why)));
    }

    /// Goes on with an errand of the view before.
    pub(super) fn run_again(
        &mut self,
        mut errand: Errand,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        match errand.operation {
            // Whoever was asked may have done it, and must not do it twice.
            Operation::Renew(Renewal::By(_)) => return self.end_errand(errand, out),
            // If it is not found, whoever was asked may have done it.
            Operation::Release => {}
            Operation::Look | Operation::Renew(Renewal::To(_)) => errand.silent = None,
        }
        self.run(errand, host, out);
    }

    /// The member stops: whoever waits for a timed hold, or for word of one, will not be answered.
    pub(super) fn leave_timed_unanswered(&mut self, out: &mut Vec<Output>) {
        for entry in self.timed.entries.values_mut() {
            let waiting =
                entry.asker.take().map(Reply::Asker).into_iter().chain(entry.waiting.drain(..));
            out.extend(waiting.map(|reply| told(reply, Err(Refusal::Stopped))));
        }
        self.questions.retain(|_, asking| match asking {
            Asking::Timed(errand) => {
                out.push(Output::Timed(errand.asker, Err(Refusal::Stopped)));
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
fn told(reply: Reply, result: Result<Box<TimedHold>, Refusal>) -> Output {
    match reply {
        Reply::Asker(asker) => Output::Timed(asker, result),
        Reply::Member(member, number) => Output::Answer(member, number, Answer::Timed(result)),
    }
}

#[cfg(test)]
mod tests;
