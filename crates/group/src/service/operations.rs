//! What is to be done with timed holds, at whichever member they are.
//!
//! What is not here may be elsewhere, so the other members are asked; only if all of them say no, there is
//! none. A view change in between has the question asked anew, or it ends with a refusal.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use super::asking::Answers;
use super::timed::{MOST_WAITING, ONLY, Reply, told};
use super::{Asking, Host, Output, Phase, Service};
use crate::driver::Timer;
use crate::durable::HoldId;
use crate::lock::Owner;
use crate::question::Question;
use crate::refusal::Refusal;
use crate::request;
use crate::session::Over;
use crate::timed::{Operation, Renewal, TimedHold, Which};

/// Something that is to be done with a timed hold, wherever it is.
#[derive(Clone, Debug)]
pub(super) struct PendingOperation {
    pub(super) asker: u64,
    which: Which,
    operation: Operation,
    /// Who has yet to answer. A member that is silent may have the hold.
    pub(super) answers: Answers,
    /// What a member has said where somebody else has the lock. Another one may have had the hold until a
    /// moment ago.
    other: Option<Refusal>,
}

impl PendingOperation {
    fn new(asker: u64, which: Which, operation: Operation) -> Self {
        PendingOperation { asker, which, operation, answers: Answers::default(), other: None }
    }

    /// What there is to say if nobody has the hold. A release that some member may have carried out is
    /// not known to have failed.
    fn result(self) -> Refusal {
        let PendingOperation { which, operation, answers, other, .. } = self;
        let silent = answers.silent.map(Refusal::Silent);
        let known = match operation {
            Operation::Release => silent.or(other),
            Operation::Look | Operation::Renew(_) => other.or(silent),
        };
        known.unwrap_or_else(|| Refusal::NoSuchHold(which.called()))
    }

    /// A member has not got the hold, and says so. Returns whether none has.
    pub(super) fn is_not_at(&mut self, member: usize, why: Refusal) -> bool {
        let was_asked = self.answers.answered(member);
        if was_asked && let Refusal::OtherHolder(_) = why {
            self.other = Some(why);
        }
        was_asked && self.answers.is_done()
    }
}

impl Service {
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
        if self.phase == Phase::Stopped {
            // What was here is elsewhere, or nowhere: that it is not here says nothing.
            return out.push(Output::Timed(asker, Err(Refusal::Stopped)));
        }
        self.run(PendingOperation::new(asker, which, operation), host, out);
        self.absorb(host, out);
    }

    pub(super) fn run(
        &mut self,
        mut pending: PendingOperation,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let (asker, operation) = (pending.asker, pending.operation);
        let result = match self.operate(&pending.which, operation, Reply::Asker(asker), host, out) {
            None => return,
            Some(Err(Refusal::NoSuchHold(_))) => match self.ask_others(pending, host, out) {
                Ok(()) => return,
                Err(why) => Err(why),
            },
            Some(Err(why @ Refusal::OtherHolder(_))) => {
                pending.other = Some(why);
                Err(pending.result())
            }
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
            Which::Name { name, .. } | Which::Alone { name, .. } => {
                self.timed.by_name.get(name).copied()
            }
        };
        if let Some(id) = id
            && let Some(entry) = self.timed.entries.get(&id)
            && let Some(session) = self.sessions.get(&entry.owner)
        {
            let owner = entry.owner;
            let request = session.requests.get(&ONLY).and_then(|it| self.requests.get(it));
            let locks = request.map_or(0, |request| request.names.len());
            match () {
                () if now >= session.deadline => self.end(owner, Over::Expired, host, out),
                // What a member says without a lease may not be so.
                () if !host.is_valid() => return Err(Refusal::Lapsed),
                () if which.admits(&entry.token, locks) => return Ok((id, owner)),
                () => return Err(Refusal::OtherHolder(which.called())),
            }
        }
        match which.name() {
            Some(name) if self.is_held_otherwise(name, host)? => match host.is_valid() {
                true => Err(Refusal::OtherHolder(name.into())),
                false => Err(Refusal::Lapsed),
            },
            _ => Err(Refusal::NoSuchHold(which.called())),
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
        mut pending: PendingOperation,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let question = Question::Timed(pending.which.clone(), pending.operation);
        let answers = core::mem::take(&mut pending.answers);
        let asking = |answers| Asking::Timed(PendingOperation { answers, ..pending });
        self.ask_everybody(&question, answers, asking, host, out)
    }

    /// The member that has the hold has answered.
    pub(super) fn take_timed(
        &mut self,
        number: u64,
        result: Result<Box<TimedHold>, Refusal>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        if let Some(Asking::Timed(pending)) = self.questions.remove(&number) {
            host.set_timer(Timer::Question(number), None);
            out.push(Output::Timed(pending.asker, result));
        }
    }

    /// Nobody waits for more answers: none of those that came was from the member that has the hold.
    pub(super) fn end_operation(&self, mut pending: PendingOperation, out: &mut Vec<Output>) {
        // Whoever has not answered may have done what it was asked for.
        pending.answers.end(&self.view);
        out.push(Output::Timed(pending.asker, Err(pending.result())));
    }

    /// Goes on with a pending operation of the view before.
    pub(super) fn run_again(
        &mut self,
        mut pending: PendingOperation,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        match pending.operation {
            // Whoever was asked may have done it, and must not do it twice.
            Operation::Renew(Renewal::By(_)) => return self.end_operation(pending, out),
            // If it is not found, whoever was asked may have done it.
            Operation::Release => {}
            Operation::Look | Operation::Renew(Renewal::To(_)) => pending.answers.silent = None,
        }
        pending.other = None;
        self.run(pending, host, out);
    }
}
