//! Ending holds by force, and sending members away.
//!
//! Whoever holds a lock may act on it until it knows better, or until its certainty is over. So a hold
//! that is ended by force goes on until its client has released it, which it does when it is told, and
//! at most until the client cannot be certain of it any more: the end of its session, or of the lease of
//! this member, as both were when it was told. What prolongs the session afterwards reaches the client
//! after it was told, and prolongs this hold no more. Only then the next one is let in. So a force takes
//! effect within the time of one lease, also if the client is stopped or cut off.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Asking, Host, Notice, Output, Service};
use crate::driver::{Ending, Place, Timer};
use crate::force::{Force, Order};
use crate::lock::Owner;
use crate::membership::Leaving;
use crate::question::{ANSWER_TIME, Answer, Question};
use crate::refusal::Refusal;
use crate::request::{Hold, Origin, RequestId};
use crate::session::Over;
use crate::time::Time;
use crate::view::Epoch;

/// A member ends at most so many holds by force at a time.
pub const MOST_FORCED: usize = 1024;
/// A hold that is being ended is looked at so often.
const LOOK: Duration = Duration::from_millis(20);

/// A hold that is being ended.
#[derive(Clone, Debug, Hash)]
pub(super) struct Forced {
    force: Force,
    what: What,
    /// Nobody can be certain of it from then on.
    due: Time,
    askers: Vec<Asker>,
}

/// Where it is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Request(RequestId),
    /// With the lock itself.
    Direct(Place),
}

/// Who wants to know when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Asker {
    Here(u64),
    /// Another member of a view, by its number for the question.
    Member(Epoch, usize, u64),
}

impl Service {
    /// Has an order carried out by the member of this name. `asker` is told by [`Output::Obeyed`] when it
    /// is: true, or false if there was nothing to do. A hold that is ended by force has ended then.
    pub fn order(
        &mut self,
        asker: u64,
        member: &str,
        order: Order,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let place = self.view.members.iter().position(|it| it.name == member);
        match place {
            Some(place) if place == self.view.me => self.obey(Asker::Here(asker), order, host, out),
            Some(place) if self.peers[place].is_up => {
                self.last_question += 1;
                let number = self.last_question;
                self.questions.insert(number, Asking::Order(asker, place));
                out.push(Output::Ask(place, number, Question::Order(order)));
                let lease = self.membership().map_or(Duration::ZERO, |it| it.lease().ttl);
                host.set_timer(Timer::Question(number), Some(lease + ANSWER_TIME));
            }
            _ => out.push(Output::Obeyed(asker, Err(Refusal::Silent(member.into())))),
        }
        self.absorb(host, out);
    }

    /// Another member has sent an order.
    pub(super) fn obey_member(
        &mut self,
        member: usize,
        number: u64,
        order: Order,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        self.obey(Asker::Member(self.view.epoch, member, number), order, host, out);
    }

    fn obey(&mut self, asker: Asker, order: Order, host: &mut dyn Host, out: &mut Vec<Output>) {
        match order {
            Order::Force(force) => match self.begin_force(asker, force, host, out) {
                Ok(true) => self.look_at_forced(host, out),
                result => self.tell_obeyed(&[asker], result, out),
            },
            Order::Leave(by) => {
                self.tell_obeyed(&[asker], Ok(true), out);
                out.push(Output::Kicked(by));
                self.depart(Leaving::ForGood, Duration::ZERO, host, out);
            }
        }
    }

    /// Tells the holder. Returns whether there is one.
    fn begin_force(
        &mut self,
        asker: Asker,
        force: Force,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Result<bool, Refusal> {
        let holder = self.holder(&force, host);
        let Some((place, request)) = holder else { return Ok(false) };
        let what = request.map_or(What::Direct(place), What::Request);
        if let Some(known) = self.forced.iter_mut().find(|forced| forced.what == what) {
            known.askers.push(asker);
            return Ok(true);
        }
        if self.forced.len() >= MOST_FORCED {
            return Err(Refusal::Busy);
        }
        let origin = request.and_then(|id| self.origin(id));
        let mut due = self.membership().map_or(Time(u64::MAX), |it| it.valid_until());
        let deadline = |owner: &Owner| self.sessions.get(owner).map(|session| session.deadline);
        match origin {
            // The registry knows of it, and is asked by whoever wants it released.
            Some(Origin::Durable(_)) => return Ok(false),
            Some(Origin::Session(owner, number)) => {
                due = due.min(deadline(&owner).unwrap_or(due));
                let why = Refusal::Forced(force.by.clone());
                out.push(Output::Notice(owner, Notice::Lost { request: number, why }));
            }
            Some(Origin::Timed(owner)) => due = due.min(deadline(&owner).unwrap_or(due)),
            Some(Origin::Program) => out.extend(request.map(Output::Lost)),
            None => out.push(Output::LostAt(place)),
        }
        if let Some(membership) = self.membership() {
            due = membership.rules().forced_until(due, host.now());
        }
        self.forced.push(Forced { force, what, due, askers: Vec::from([asker]) });
        Ok(true)
    }

    /// Where whoever holds what is meant is, if it is here.
    fn holder(&self, force: &Force, host: &mut dyn Host) -> Option<(Place, Option<RequestId>)> {
        let namespace = self.view.namespace(&force.name);
        let pattern = &self.view.namespaces[namespace].pattern;
        // The names of a namespace that knows sets are guarded together, under its pattern.
        let found = host.holder(&force.name, &force.name, force.fence);
        found.or_else(|| host.holder(pattern, &force.name, force.fence))
    }

    /// Ends what is due, and says what has ended.
    pub(super) fn look_at_forced(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        let now = host.now();
        let mut left = Vec::new();
        for forced in core::mem::take(&mut self.forced) {
            let is_held = self.holder(&forced.force, host).is_some();
            if is_held && now < forced.due {
                left.push(forced);
                continue;
            }
            if is_held {
                self.end_by_force(forced.what, host, out);
            }
            self.tell_obeyed(&forced.askers, Ok(true), out);
        }
        let next = left.iter().map(|forced| forced.due.since(now).min(LOOK)).min();
        // Nobody else begins to end a hold meanwhile.
        self.forced = left;
        host.set_timer(Timer::Force, next);
    }

    fn end_by_force(&mut self, what: What, host: &mut dyn Host, out: &mut Vec<Output>) {
        let id = match what {
            What::Direct(place) => return host.end(place, Ending::Forced),
            What::Request(id) => id,
        };
        match self.origin(id) {
            Some(Origin::Timed(owner)) => {
                self.end_as(owner, Over::Expired, Ending::Forced, host, out);
            }
            Some(Origin::Session(owner, number)) => {
                if let Some(session) = self.sessions.get_mut(&owner) {
                    session.requests.remove(&number);
                }
                self.take_out(id, Ending::Forced, host);
            }
            _ => drop(self.take_out(id, Ending::Forced, host)),
        }
    }

    /// Who ends a request by force, if somebody does.
    pub(super) fn forced_by(&self, id: RequestId) -> Option<&str> {
        let forced = self.forced.iter().find(|forced| forced.what == What::Request(id));
        forced.map(|forced| forced.force.by.as_str())
    }

    /// The one who asks about a timed hold that is being ended is told so, and it ends at once.
    pub(super) fn check_forced(
        &mut self,
        owner: Owner,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let mut requests =
            self.sessions.get(&owner).into_iter().flat_map(|it| it.requests.values());
        let by = requests.find_map(|&id| self.forced_by(id).map(String::from));
        match by {
            Some(by) => {
                self.end_as(owner, Over::Expired, Ending::Forced, host, out);
                Err(Refusal::Forced(by))
            }
            None => Ok(()),
        }
    }

    /// Tells a session again what it has to give up: it may not have heard.
    pub(super) fn tell_forced(&self, owner: Owner, out: &mut Vec<Output>) {
        for forced in &self.forced {
            if let What::Request(id) = forced.what
                && let Some(Origin::Session(its, number)) = self.origin(id)
                && its == owner
            {
                self.tell_held(owner, number, id, out);
            }
        }
    }

    fn origin(&self, id: RequestId) -> Option<Origin> {
        self.requests.get(&id).map(|request| request.origin)
    }

    /// Tells a session what a request of it has come to, if it was granted.
    pub(super) fn tell_held(
        &self,
        owner: Owner,
        request: u32,
        id: RequestId,
        out: &mut Vec<Output>,
    ) {
        let Some(Hold { fences, .. }) = self.hold(id) else { return };
        let notice = match self.forced_by(id) {
            Some(by) => Notice::Lost { request, why: Refusal::Forced(by.into()) },
            None => Notice::Granted { request, fences },
        };
        out.push(Output::Notice(owner, notice));
    }

    fn tell_obeyed(&self, askers: &[Asker], result: Result<bool, Refusal>, out: &mut Vec<Output>) {
        for asker in askers {
            match *asker {
                Asker::Here(number) => out.push(Output::Obeyed(number, result.clone())),
                Asker::Member(epoch, member, number) if epoch == self.view.epoch => {
                    out.push(Output::Answer(member, number, Answer::Obeyed(result.clone())));
                }
                // It asks again in the view that has begun since.
                Asker::Member(..) => {}
            }
        }
    }

    /// A member has answered an order, or will not: then the asker is told so.
    pub(super) fn close_order(
        &mut self,
        number: u64,
        answer: Option<Result<bool, Refusal>>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Some(&Asking::Order(asker, member)) = self.questions.get(&number) else { return };
        self.questions.remove(&number);
        host.set_timer(Timer::Question(number), None);
        let silent = || Err(Refusal::Silent(self.view.members[member].name.clone()));
        out.push(Output::Obeyed(asker, answer.unwrap_or_else(silent)));
    }

    /// Whoever sent an order in the view that ends does not hear of it any more.
    pub(super) fn close_orders(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        let orders = self.questions.iter().filter(|(_, it)| matches!(it, Asking::Order(..)));
        let orders: Vec<u64> = orders.map(|(&number, _)| number).collect();
        for number in orders {
            self.close_order(number, None, host, out);
        }
    }
}

#[cfg(test)]
mod tests;
