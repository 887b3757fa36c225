//! Asking for locks, on behalf of anybody.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::{Asking, Host, Notice, Output, Phase, Service};
use crate::driver::{Ending, Outcome, Settled, Timer};
use crate::question::Question;
use crate::refusal::Refusal;
use crate::request::{Acquire, Origin, Request, RequestId, State};
use crate::session::MOST_NAME_BYTES;
use crate::shard::Ask;

impl Service {
    /// Asks for locks. What comes of it is told by a [`Notice`] or [`Output::Settled`], which may be
    /// among the outputs already; a request that is refused at once leaves nothing behind.
    pub fn acquire(
        &mut self,
        origin: Origin,
        asked: Acquire,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Result<RequestId, Refusal> {
        let limit = asked.wait.limit();
        match &self.phase {
            Phase::Stopped => return Err(Refusal::Stopped),
            Phase::Expelled(why) => return Err(Refusal::Expelled(why.clone())),
            Phase::Gathering | Phase::Granting if self.is_departing() => {
                return Err(Refusal::Leaving);
            }
            Phase::Gathering | Phase::Granting => {}
        }
        let request = Request::new(origin, asked, &self.view)?;
        self.check_exclusion(&request)?;
        // The program itself is trusted.
        let is_foreign = request.origin != Origin::Program;
        if is_foreign && self.name_bytes + request.name_bytes() > MOST_NAME_BYTES {
            return Err(Refusal::Busy);
        }
        self.last_request += 1;
        let id = RequestId(NonZeroU64::new(self.last_request).unwrap_or(NonZeroU64::MIN));
        self.keep_request(id, request);
        if self.phase == Phase::Granting
            && let Err(why) = self.begin(id, host)
        {
            self.withdraw(id, host);
            return Err(why);
        }
        self.progress(id, host, out);
        if let Some(limit) = limit
            && self.is_waiting(id)
        {
            host.set_timer(Timer::Request(id), Some(limit));
            if let Some(request) = self.requests.get_mut(&id) {
                request.has_timer = true;
            }
        }
        Ok(id)
    }

    /// One more request.
    pub(super) fn keep_request(&mut self, id: RequestId, request: Request) {
        self.name_bytes += request.name_bytes();
        self.requests.insert(id, request);
    }

    /// A request takes its first step: from now on it waits in queues.
    fn begin(&mut self, id: RequestId, host: &mut dyn Host) -> Result<(), Refusal> {
        let Some(request) = self.requests.get(&id) else { return Ok(()) };
        if request.refuses {
            // Nothing of this request is held yet: these are others.
            let permits = request.permits;
            let is_taken = request.parts.iter().any(|part| match &part.set {
                Some(set) => host.is_held(part.key(permits), Some(&set.claim)),
                None => !host.is_free_here(part.key(permits)),
            });
            if is_taken {
                return Err(if host.is_valid() { Refusal::Taken } else { Refusal::Lapsed });
            }
        }
        self.ask_next(id, host)
    }

    /// Asks for the parts of a request, one after the other, until it has to wait for one or has all.
    fn ask_next(&mut self, id: RequestId, host: &mut dyn Host) -> Result<(), Refusal> {
        loop {
            let Some(request) = self.requests.get_mut(&id) else { return Ok(()) };
            let Some(part) = request.next() else {
                request.state = State::Held(host.now());
                return Ok(());
            };
            let owner = request.origin.owner();
            let (set, full) = (part.set.clone(), host.full());
            let ask = Ask { owner, request: Some(id), set, full };
            let asked = host.acquire(part.key(request.permits), ask)?;
            match asked.fence {
                Some(fence) => request.advance(asked.place, fence),
                None => {
                    request.state = State::Waiting(asked.place);
                    return Ok(());
                }
            }
        }
    }

    /// Says what has become of a request that has just taken a step.
    fn progress(&mut self, id: RequestId, host: &mut dyn Host, out: &mut Vec<Output>) {
        let Some(request) = self.requests.get(&id) else { return };
        match request.state {
            State::Queued => {}
            State::Waiting(_) => {
                if request.refuses && request.question.is_none() && request.permits == 1 {
                    self.ask_whether_held(id, out);
                }
            }
            State::Held(_) => {
                let (origin, fences) = (request.origin, request.fences());
                self.forget_question(id);
                if let Origin::Timed(owner) = origin {
                    return self.keep_timed(owner, host, out);
                }
                self.cancel_timer(id, host);
                match origin {
                    Origin::Durable(hold) => self.write_durable(hold, host, out),
                    _ => out.extend(answer(origin, id, Ok(fences))),
                }
            }
        }
    }

    /// Asks the other members whether somebody there is inside.
    ///
    /// A semaphore is not asked about: members are not counted at one instant, so their counts could
    /// not be added up.
    pub(super) fn ask_whether_held(&mut self, id: RequestId, out: &mut Vec<Output>) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        self.last_question += 1;
        request.question = Some(self.last_question);
        self.questions.insert(self.last_question, Asking::IsHeld(id));
        for member in self.view.others().filter(|&member| self.peers[member].is_up) {
            let question = Question::IsHeld(request.names.clone());
            out.push(Output::Ask(member, self.last_question, question));
        }
    }

    /// Another member has said whether somebody there is inside what a request asks for.
    pub(super) fn is_held_elsewhere(
        &mut self,
        id: RequestId,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        // Whoever is inside by the time that the answer is read is not sent away.
        if self.is_waiting(id) {
            self.refuse(id, Refusal::Taken, host, out);
        }
    }

    /// A part of a request has come to the end of waiting.
    pub(super) fn settle(&mut self, settled: Settled, host: &mut dyn Host, out: &mut Vec<Output>) {
        let Settled { place, request, outcome } = settled;
        let Some(id) = request else { return };
        let expected = |request: &&mut Request| request.state == State::Waiting(place);
        let Some(request) = self.requests.get_mut(&id).filter(expected) else {
            // It was taken back meanwhile.
            if let Outcome::Granted(_) = outcome {
                host.release(place);
            }
            return;
        };
        let fence = match outcome {
            Outcome::Granted(fence) => fence,
            Outcome::Refused(why) => return self.refuse(id, *why, host, out),
        };
        request.advance(place, fence);
        request.state = State::Queued;
        let request = &self.requests[&id];
        let next = self.check_exclusion(request).and_then(|()| self.ask_next(id, host));
        match next {
            Ok(()) => self.progress(id, host, out),
            Err(why) => self.refuse(id, why, host, out),
        }
    }

    /// What was granted to an excluded member may be somebody else's already.
    pub(super) fn check_exclusion(&self, request: &Request) -> Result<(), Refusal> {
        match self.exclusion() {
            Some(why) if request.listens(&self.view) => Err(why),
            _ => Ok(()),
        }
    }

    /// The patience of a request is over.
    pub(super) fn give_up(&mut self, id: RequestId, host: &mut dyn Host, out: &mut Vec<Output>) {
        let Some(request) = self.requests.get(&id) else { return };
        if !self.is_waiting(id) {
            return;
        }
        if let State::Held(_) = request.state {
            let origin = request.origin;
            return self.give_up_unconfirmed(origin, host, out);
        }
        let usual = if request.refuses { Refusal::Taken } else { Refusal::TimedOut };
        let missing = self.missing().filter(|_| request.refuses).map(Refusal::Silent);
        // Without a lease nothing was granted here, whoever has it: nobody may take that for an answer.
        let lapsed = (!host.is_valid()).then_some(Refusal::Lapsed);
        let why = self.not_ready().or(lapsed).or(missing).unwrap_or(usual);
        self.refuse(id, why, host, out);
    }

    fn is_waiting(&self, id: RequestId) -> bool {
        let request = self.requests.get(&id);
        request.is_some_and(|request| match request.state {
            State::Held(_) => self.is_unconfirmed(request.origin),
            State::Queued | State::Waiting(_) => true,
        })
    }

    /// Ends a request that is not granted.
    pub(super) fn refuse(
        &mut self,
        id: RequestId,
        why: Refusal,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        if let Some(request) = self.withdraw(id, host) {
            if let Origin::Session(owner, number) = request.origin
                && let Some(session) = self.sessions.get_mut(&owner)
            {
                session.requests.remove(&number);
            }
            match request.origin {
                Origin::Durable(hold) => self.refuse_durable(hold, why, out),
                Origin::Timed(owner) => self.refuse_timed(owner, why, out),
                origin => out.extend(answer(origin, id, Err(why))),
            }
        }
    }

    /// Takes a request back, or releases what it holds. Returns false if there is none.
    pub fn release(&mut self, id: RequestId, host: &mut dyn Host, out: &mut Vec<Output>) -> bool {
        let is_known = self.withdraw(id, host).is_some();
        self.absorb(host, out);
        is_known
    }

    /// A request is no more, and everything that it held or awaited is given back.
    pub(super) fn withdraw(&mut self, id: RequestId, host: &mut dyn Host) -> Option<Box<Request>> {
        self.take_out(id, Ending::Released, host)
    }

    /// The same, for another reason.
    pub(super) fn take_out(
        &mut self,
        id: RequestId,
        ending: Ending,
        host: &mut dyn Host,
    ) -> Option<Box<Request>> {
        let is_forced = ending == Ending::Released && self.forced_by(id).is_some();
        let ending = if is_forced { Ending::Forced } else { ending };
        if host.is_watched()
            && let Some(client) = self.client(id)
        {
            host.identify(id, client);
        }
        self.cancel_timer(id, host);
        let request = self.requests.remove(&id)?;
        self.name_bytes -= request.name_bytes();
        if let Some(question) = request.question {
            self.questions.remove(&question);
        }
        for place in request.places() {
            host.end(place, ending);
        }
        Some(Box::new(request))
    }

    /// The patience of a request does not matter any more. Most have never waited, and set no timer.
    pub(super) fn cancel_timer(&mut self, id: RequestId, host: &mut dyn Host) {
        let request = self.requests.get_mut(&id);
        if request.is_some_and(|request| core::mem::take(&mut request.has_timer)) {
            host.set_timer(Timer::Request(id), None);
        }
    }

    fn forget_question(&mut self, id: RequestId) {
        let question = self.requests.get_mut(&id).and_then(|request| request.question.take());
        if let Some(question) = question {
            self.questions.remove(&question);
        }
    }

    /// Requests that came before the member granted anything take their first step, in order.
    pub(super) fn begin_queued(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        let is_queued = |request: &Request| request.state == State::Queued;
        let queued = self.requests.iter().filter(|(_, request)| is_queued(request));
        let queued: Vec<RequestId> = queued.map(|(&id, _)| id).collect();
        for id in queued {
            match self.begin(id, host) {
                Ok(()) => self.progress(id, host, out),
                Err(why) => self.refuse(id, why, host, out),
            }
        }
    }
}

/// What whoever made a request is told. Of durable holds the registry has to know first, and of timed holds
/// there is more to tell.
fn answer(origin: Origin, id: RequestId, result: Result<Vec<u64>, Refusal>) -> Option<Output> {
    match (origin, result) {
        (Origin::Durable(_) | Origin::Timed(_), _) => None,
        (Origin::Program, result) => Some(Output::Settled(id, result)),
        (Origin::Session(owner, request), Ok(fences)) => {
            Some(Output::Notice(owner, Notice::Granted { request, fences }))
        }
        (Origin::Session(owner, request), Err(why)) => {
            Some(Output::Notice(owner, Notice::Refused { request, why }))
        }
    }
}
