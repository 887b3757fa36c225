//! What a client has asked for and holds, and how certain that is: a plain value.
//!
//! It knows no socket and no clock. Its owner tells it what came and what time it is, and takes from
//! it the messages that are to be sent and the outcomes that somebody waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use catraca_group::{Refusal, Time, Wait};

use crate::guard::{Loss, Validity};
use crate::lease::Lease;
use crate::protocol::{ClientMessage, Over, ServerMessage};
use crate::request::{Ask, Request, State, Ticket};

/// Whoever notices so late that a lease has run out did not run meanwhile.
const PAUSE_NOTICED: Duration = Duration::from_millis(500);

/// What comes of a request, or of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Granted(Vec<u64>),
    Refused(Refusal),
    /// The node has not answered in time.
    Unanswered,
    Released,
    /// The session was given up before the node has confirmed the release.
    Unconfirmed(Loss),
}

/// What is to be done about the session at the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    /// It is of no use any more, and nothing is held by it: it can be closed.
    Close,
    /// Its time is up. Somebody may still act on what it held, so it is left to end by itself.
    Abandon,
}

/// The session at a node.
#[derive(Debug)]
struct Open {
    lease: Lease,
    is_connected: bool,
    lost: Option<Loss>,
}

/// The requests of a client and the session that they are made in, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Session {
    requests: BTreeMap<u32, Request>,
    numbers: BTreeMap<Ticket, u32>,
    last_number: u32,
    /// When the client stops waiting for the answers to which requests.
    ends: BTreeSet<(Time, u32)>,
    /// How many requests wait, and how many are held.
    waiting: usize,
    held: usize,
    open: Option<Open>,
    messages: Vec<ClientMessage>,
    outcomes: Vec<(Ticket, Outcome)>,
    /// What is to be given up although the session goes on.
    losses: Vec<(Ticket, Refusal)>,
}

impl Session {
    /// A session was asked for at `sent`, and has been opened: whatever waits is asked for in it.
    pub(crate) fn opened(&mut self, ttl: Duration, certain: Duration, sent: Time, now: Time) {
        self.open =
            Some(Open { lease: Lease::new(ttl, certain, sent), is_connected: true, lost: None });
        self.ask_again(now);
    }

    /// The connection is gone.
    pub(crate) fn disconnected(&mut self) {
        self.messages.clear();
        if let Some(open) = &mut self.open {
            open.is_connected = false;
            open.lease.disconnected();
        }
    }

    /// The session goes on over another connection. The node may have seen what was sent before, or
    /// not.
    pub(crate) fn resumed(&mut self, now: Time) {
        let Some(open) = &mut self.open else { return };
        open.is_connected = true;
        open.lease.renewal_sent(now);
        self.messages.push(ClientMessage::Renew);
        self.ask_again(now);
    }

    fn ask_again(&mut self, now: Time) {
        for (&number, request) in &mut self.requests {
            self.messages.push(match request.state {
                State::Waiting | State::Granted(_) => {
                    // The node says again what it has granted.
                    request.state = State::Waiting;
                    request.message(number, now)
                }
                State::Releasing => ClientMessage::Release { request: number },
                State::Held => continue,
            });
        }
    }

    /// The session is over. What waits goes on waiting, for the next one.
    pub(crate) fn ended(&mut self, why: &Loss) {
        self.open = None;
        self.messages.clear();
        let gone = self.requests.iter_mut().filter_map(|(&number, request)| {
            if request.is_waiting() {
                request.state = State::Waiting;
                return None;
            }
            Some((number, matches!(request.state, State::Releasing)))
        });
        for (number, is_releasing) in gone.collect::<Vec<_>>() {
            let Some(request) = self.forget(number) else { continue };
            if is_releasing {
                let outcome = match why {
                    Loss::Over(_) => Outcome::Released,
                    _ => Outcome::Unconfirmed(why.clone()),
                };
                self.outcomes.push((request.ticket, outcome));
            }
        }
    }

    /// Asks for locks.
    pub(crate) fn ask(&mut self, ticket: Ticket, ask: Ask, now: Time) {
        let number = self.next_number();
        let request = Request { ticket, ask, asked: now, state: State::Waiting };
        if self.is_connected() {
            self.messages.push(request.message(number, now));
        }
        self.ends.extend(request.end().map(|end| (end, number)));
        self.waiting += 1;
        self.requests.insert(number, request);
        self.numbers.insert(ticket, number);
    }

    /// A number that no request has: zero stands for the session itself.
    fn next_number(&mut self) -> u32 {
        loop {
            self.last_number = self.last_number.wrapping_add(1);
            if self.last_number != 0 && !self.requests.contains_key(&self.last_number) {
                return self.last_number;
            }
        }
    }

    /// Takes a request back, or releases what it was granted.
    pub(crate) fn release(&mut self, ticket: Ticket) {
        match self.numbers.get(&ticket) {
            Some(&number) if self.is_open() => self.take_back(number),
            Some(&number) => self.settle(number, Outcome::Released),
            // It was lost, or refused, before.
            None => self.outcomes.push((ticket, Outcome::Released)),
        }
    }

    fn take_back(&mut self, number: u32) {
        if let Some(request) = self.requests.get(&number)
            && !matches!(request.state, State::Releasing)
        {
            self.enter(number, State::Releasing);
            if self.is_connected() {
                self.messages.push(ClientMessage::Release { request: number });
            }
        }
    }

    /// A request gets into another state.
    fn enter(&mut self, number: u32, state: State) {
        let Some(mut request) = self.requests.remove(&number) else { return };
        self.leave(number, &request);
        request.state = state;
        self.waiting += usize::from(request.is_waiting());
        self.held += usize::from(matches!(request.state, State::Held));
        self.requests.insert(number, request);
    }

    /// A request leaves the state that it is in.
    fn leave(&mut self, number: u32, request: &Request) {
        self.waiting -= usize::from(request.is_waiting());
        self.held -= usize::from(matches!(request.state, State::Held));
        if let Some(end) = request.end() {
            self.ends.remove(&(end, number));
        }
    }

    /// The node has said something. An error if it makes no sense.
    pub(crate) fn hear(&mut self, message: ServerMessage, now: Time) -> Result<(), Over> {
        match message {
            ServerMessage::Renewed { certain } => {
                if let Some(open) = &mut self.open {
                    open.lease.renewal_answered(certain);
                }
                self.deliver_all(now);
            }
            ServerMessage::Granted { request, fences } => {
                // It may be said again after another connection was made, or cross a release.
                let Some(known) = self.requests.get_mut(&request) else { return Ok(()) };
                if matches!(known.state, State::Waiting) {
                    if fences.len() != known.ask.names.len() {
                        return Err(Over::Protocol);
                    }
                    known.state = State::Granted(fences);
                    self.deliver(request, now);
                }
            }
            ServerMessage::Refused { request, why } => {
                if self.requests.get(&request).is_some_and(Request::is_waiting) {
                    self.settle(request, Outcome::Refused(why));
                }
            }
            ServerMessage::Lost { request, why } => self.lose(request, why),
            ServerMessage::Released { request } => {
                let known = self.requests.get(&request);
                if known.is_some_and(|known| matches!(known.state, State::Releasing)) {
                    self.settle(request, Outcome::Released);
                }
            }
            // Not asked for by this value.
            ServerMessage::Opened { .. }
            | ServerMessage::Over(_)
            | ServerMessage::Page(_)
            | ServerMessage::Status(_)
            | ServerMessage::Durable { .. }
            | ServerMessage::Description(_)
            | ServerMessage::Forced(_)
            | ServerMessage::Done(_) => {}
        }
        Ok(())
    }

    /// What a request was granted is to be given up. Whoever has it releases it then.
    fn lose(&mut self, number: u32, why: Refusal) {
        let Some(request) = self.requests.get(&number) else { return };
        let ticket = request.ticket;
        match request.state {
            State::Held => self.losses.push((ticket, why)),
            State::Waiting | State::Granted(_) => {
                self.outcomes.push((ticket, Outcome::Refused(why)));
                self.take_back(number);
            }
            State::Releasing => {}
        }
    }

    /// Hands out everything that was granted, if the lease is fresh.
    fn deliver_all(&mut self, now: Time) {
        let granted =
            self.requests.iter().filter(|(_, request)| matches!(request.state, State::Granted(_)));
        for number in granted.map(|(&number, _)| number).collect::<Vec<_>>() {
            self.deliver(number, now);
        }
    }

    /// Hands out what was granted, if the lease is fresh.
    fn deliver(&mut self, number: u32, now: Time) {
        let Some(Open { lease, lost: None, .. }) = &mut self.open else { return };
        if lease.lost_at() <= now {
            return lease.await_renewal();
        }
        if let Some(request) = self.requests.get_mut(&number)
            && let State::Granted(fences) = &mut request.state
        {
            let fences = std::mem::take(fences);
            self.outcomes.push((request.ticket, Outcome::Granted(fences)));
            self.enter(number, State::Held);
        }
    }

    fn settle(&mut self, number: u32, outcome: Outcome) {
        if let Some(request) = self.forget(number) {
            self.outcomes.push((request.ticket, outcome));
        }
    }

    fn forget(&mut self, number: u32) -> Option<Request> {
        let request = self.requests.remove(&number)?;
        self.leave(number, &request);
        self.numbers.remove(&request.ticket);
        Some(request)
    }

    /// Does what is due.
    pub(crate) fn tend(&mut self, now: Time) -> Verdict {
        self.give_up(now);
        let (holds, uses) = (self.holds(), self.uses());
        let Some(open) = &mut self.open else { return Verdict::Keep };
        let lost_at = open.lease.lost_at();
        if open.lost.is_none() && lost_at <= now && holds {
            let is_late = now.since(lost_at) > PAUSE_NOTICED;
            open.lost = Some(if is_late { Loss::Paused } else { Loss::Unrenewed });
        }
        let end = if uses { open.lease.valid_until() } else { open.lease.ends_at() };
        let is_over = end <= now;
        if (is_over || open.lost.is_some()) && !uses {
            return Verdict::Close;
        }
        if is_over {
            return Verdict::Abandon;
        }
        // A session that has lost its locks is not kept alive: it lasts until they were given up.
        if open.is_connected && open.lost.is_none() && open.lease.renewal_due() <= now {
            open.lease.renewal_sent(now);
            self.messages.push(ClientMessage::Renew);
        }
        Verdict::Keep
    }

    /// Ends the wait of those whose time is up and whom the node has not told so.
    fn give_up(&mut self, now: Time) {
        while let Some(&(end, number)) = self.ends.first()
            && end <= now
        {
            self.ends.pop_first();
            let Some(request) = self.requests.get(&number) else { continue };
            let outcome = match request.ask.wait {
                Wait::No(_) => Outcome::Unanswered,
                _ => Outcome::Refused(Refusal::TimedOut),
            };
            self.outcomes.push((request.ticket, outcome));
            if self.is_open() {
                self.take_back(number);
            } else {
                self.forget(number);
            }
        }
    }

    /// When there is something to be done next, if ever.
    pub(crate) fn next_time(&self) -> Option<Time> {
        let end = self.ends.first().map(|&(end, _)| end);
        let lease = self.open.as_ref().map(|open| {
            let lease = &open.lease;
            let mut next = if self.uses() { lease.valid_until() } else { lease.ends_at() };
            if open.lost.is_none() && open.is_connected {
                next = next.min(lease.renewal_due());
            }
            if open.lost.is_none() && self.holds() {
                next = next.min(lease.lost_at());
            }
            next
        });
        end.into_iter().chain(lease).min()
    }

    /// How certain what is held is. Nothing if no session is open.
    pub(crate) fn validity(&self) -> Option<Validity> {
        let Open { lease, lost, .. } = self.open.as_ref()?;
        Some(Validity { lost_at: lease.lost_at(), until: lease.valid_until(), lost: lost.clone() })
    }

    /// Why what is held is lost, if the session is not over yet.
    pub(crate) fn loss(&self) -> Option<&Loss> {
        self.open.as_ref()?.lost.as_ref()
    }

    fn is_connected(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.is_connected)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether somebody may act on something that was granted.
    pub(crate) fn holds(&self) -> bool {
        self.held > 0
    }

    /// Whether something was granted that the node has not been seen to take back.
    fn uses(&self) -> bool {
        self.requests.len() > self.waiting
    }

    /// Whether somebody waits.
    pub(crate) fn wants(&self) -> bool {
        self.waiting > 0
    }

    /// Nobody waits any more. Returns who has waited.
    pub(crate) fn dismiss(&mut self) -> Vec<Ticket> {
        let waiting = self.requests.iter().filter(|(_, request)| request.is_waiting());
        let numbers: Vec<u32> = waiting.map(|(&number, _)| number).collect();
        numbers.into_iter().filter_map(|number| Some(self.forget(number)?.ticket)).collect()
    }

    /// What is to be sent, in this order.
    pub(crate) fn take_messages(&mut self) -> Vec<ClientMessage> {
        std::mem::take(&mut self.messages)
    }

    /// What is to be given up although the session goes on, and why.
    pub(crate) fn take_losses(&mut self) -> Vec<(Ticket, Refusal)> {
        std::mem::take(&mut self.losses)
    }

    /// What has come of requests and releases.
    pub(crate) fn take_outcomes(&mut self) -> Vec<(Ticket, Outcome)> {
        std::mem::take(&mut self.outcomes)
    }
}

#[cfg(test)]
mod tests;
