//! Timed holds: asked for as any other, and then looked at, renewed and released at whichever member.
//!
//! Every timed hold has a session of its own, with one request. While it waits the session has no time to
//! live: that begins with the grant. Whoever gives the name of a lock instead of the id proves with the
//! token that the hold is its own. What is not here may be elsewhere, so the other members are asked;
//! only if all of them say no, there is none.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use super::{Asking, Host, Output, Phase, Service};
use crate::driver::Timer;
use crate::durable::HoldId;
use crate::lock::Owner;
use crate::question::{ANSWER_TIME, Question};
use crate::refusal::Refusal;
use crate::request::{self, Acquire, Hold, Origin};
use crate::session::{MOST_REQUESTS_IN_ALL, Over, is_same_secret};
use crate::time::Time;
use crate::timed::{AcquireTimed, MOST_QUESTIONS, Operation, Renewal, TimedHold, Which};

/// The number of the one request of a session that belongs to a timed hold.
const ONLY: u32 = 0;

/// What was asked for here or is held here by time to live.
#[derive(Clone, Debug, Default)]
pub(super) struct Timed {
    entries: BTreeMap<HoldId, Entry>,
    /// Which of them holds which lock, of those with one permit.
    by_name: BTreeMap<String, HoldId>,
}

/// A timed hold, or a request for one.
#[derive(Clone, Debug)]
struct Entry {
    owner: Owner,
    /// Who waits for the grant, until it is told.
    asker: Option<u64>,
    ttl: Duration,
    token: Vec<u8>,
}

/// Times do not matter.
impl Hash for Timed {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for (id, Entry { owner, asker, token, .. }) in &self.entries {
            (id, owner, asker, token).hash(hasher);
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
    /// A member that did not answer, or could not be asked. It may have the hold.
    silent: Option<String>,
}

impl Errand {
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
        let session = self.open(who, None, id.0.to_be_bytes(), host)?;
        let owner = Owner(session.number);
        // The answer may be among the outputs of asking: everything has to be known then.
        let request = self.next_request();
        if let Some(session) = self.sessions.get_mut(&owner) {
            session.timed = Some(id);
            session.requests.insert(ONLY, request);
        }
        self.timed.entries.insert(id, Entry { owner, asker: Some(asker), ttl, token });
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
            let owner = entry.owner;
            self.end(owner, Over::Closed, host, out);
        }
        self.absorb(host, out);
    }

    /// All locks of a timed hold are granted: from now on its time counts.
    pub(super) fn keep_timed(&mut self, owner: Owner, host: &mut dyn Host, out: &mut Vec<Output>) {
        let now = host.now();
        let Some(id) = self.sessions.get(&owner).and_then(|session| session.timed) else { return };
        let Some(entry) = self.timed.entries.get_mut(&id) else { return };
        let (ttl, asker) = (entry.ttl, entry.asker.take());
        self.set_left(owner, ttl, host);
        let Some(hold) = self.timed_hold(id, now) else { return };
        if hold.permits == 1 {
            for name in &hold.names {
                self.timed.by_name.insert(name.clone(), id);
            }
        }
        if let Some(asker) = asker {
            out.push(Output::Timed(asker, Ok(Box::new(hold))));
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

    /// The session of a timed hold of these locks is over.
    pub(super) fn forget_timed(&mut self, id: HoldId, names: Vec<String>, out: &mut Vec<Output>) {
        let Some(entry) = self.timed.entries.remove(&id) else { return };
        for name in names {
            if self.timed.by_name.get(&name) == Some(&id) {
                self.timed.by_name.remove(&name);
            }
        }
        if let Some(asker) = entry.asker {
            out.push(Output::Timed(asker, Err(Refusal::Lapsed)));
        }
    }

    /// It ends so long from now.
    fn set_left(&mut self, owner: Owner, left: Duration, host: &mut dyn Host) {
        if let Some(session) = self.sessions.get_mut(&owner) {
            session.ttl = Some(left);
            session.renew(host.now());
            host.set_timer(Timer::Session(owner), Some(left));
        }
    }

    fn timed_hold(&self, id: HoldId, now: Time) -> Option<TimedHold> {
        let entry = self.timed.entries.get(&id)?;
        let session = self.sessions.get(&entry.owner)?;
        let Hold { names, permits, fences, .. } = self.hold(*session.requests.get(&ONLY)?)?;
        Some(TimedHold {
            id,
            names,
            permits,
            fences,
            who: session.who.clone(),
            token: entry.token.clone(),
            member: self.view.own().name.clone(),
            ttl: session.ttl?,
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

    fn run(&mut self, errand: Errand, host: &mut dyn Host, out: &mut Vec<Output>) {
        let done = match self.operate(&errand.which, errand.operation, host, out) {
            Err(Refusal::NoSuchHold(_)) => match self.ask_others(errand, host, out) {
                Ok(()) => return,
                Err((asker, why)) => (asker, Err(why)),
            },
            done => (errand.asker, done),
        };
        out.push(Output::Timed(done.0, done.1));
    }

    /// Does it if the hold is here.
    pub(super) fn operate(
        &mut self,
        which: &Which,
        operation: Operation,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Result<Box<TimedHold>, Refusal> {
        let (id, owner) = self.find_timed(which, host, out)?;
        if operation != Operation::Release {
            self.check_forced(owner, host, out)?;
        }
        let now = host.now();
        let hold = self.timed_hold(id, now).ok_or(Refusal::NoSuchHold(which.called()))?;
        let hold = match operation {
            Operation::Release => {
                self.end(owner, Over::Closed, host, out);
                hold
            }
            // What a member says without a lease may not be so.
            _ if !host.is_valid() => return Err(Refusal::Lapsed),
            Operation::Look => hold,
            Operation::Renew(_) if self.prolongs_nothing() => return Err(Refusal::Leaving),
            Operation::Renew(renewal) => {
                let left = renewal.left(hold.left)?;
                self.set_left(owner, left, host);
                TimedHold { ttl: left, left, ..hold }
            }
        };
        Ok(Box::new(hold))
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
    ) -> Result<(), (u64, Refusal)> {
        let refused = match &self.phase {
            Phase::Stopped => Some(Refusal::Stopped),
            Phase::Expelled(why) => Some(Refusal::Expelled(why.clone())),
            Phase::Gathering | Phase::Granting => self.not_ready(),
        };
        let is_full = self.questions.len() >= MOST_QUESTIONS;
        if let Some(why) = refused.or(is_full.then_some(Refusal::Busy)) {
            return Err((errand.asker, why));
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

    /// Takes back every question about timed holds, because the view ends in which they were asked.
    pub(super) fn take_errands(&mut self, host: &mut dyn Host) -> Vec<Errand> {
        let asked = self.questions.iter();
        let asked = asked.filter(|(_, asking)| matches!(asking, Asking::Timed(_)));
        let numbers: Vec<u64> = asked.map(|(&number, _)| number).collect();
        let mut errands = Vec::new();
        for number in numbers {
            host.set_timer(Timer::Question(number), None);
            if let Some(Asking::Timed(errand)) = self.questions.remove(&number) {
                errands.push(errand);
            }
        }
        errands
    }

    /// Goes on with errands of the view before.
    pub(super) fn run_again(
        &mut self,
        errands: Vec<Errand>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        for errand in errands {
            match errand.operation {
                // Whoever was asked may have done it, and must not do it twice.
                Operation::Renew(Renewal::By(_)) => self.end_errand(errand, out),
                _ => self.run(errand, host, out),
            }
        }
    }

    /// The member stops: whoever waits for a timed hold, or for word of one, will not be answered.
    pub(super) fn leave_timed_unanswered(&mut self, out: &mut Vec<Output>) {
        let waiting = self.timed.entries.values_mut().filter_map(|entry| entry.asker.take());
        let mut askers: Vec<u64> = waiting.collect();
        self.questions.retain(|_, asking| match asking {
            Asking::Timed(errand) => {
                askers.push(errand.asker);
                false
            }
            _ => true,
        });
        for asker in askers {
            out.push(Output::Timed(asker, Err(Refusal::Stopped)));
        }
    }
}

#[cfg(test)]
mod tests;
