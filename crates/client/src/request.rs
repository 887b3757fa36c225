//! One request of a client, and how far it has come.

use std::time::Duration;

use catraca_group::{Time, Wait};

use crate::protocol::ClientMessage;

/// The node says itself that a request has taken too long; the client waits so much longer for that.
pub(crate) const LATENESS: Duration = Duration::from_millis(100);
/// The same for a request that does not wait for others.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// What tells the requests of a client apart. It is never used again, unlike a request's number.
pub(crate) type Ticket = u64;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) names: Vec<String>,
    pub(crate) permits: u32,
    pub(crate) wait: Wait,
}

/// How far a request has come.
#[derive(Debug)]
pub(crate) enum State {
    Waiting,
    /// Granted, but the lease is too old to rely on it: the next answer to a renewal decides.
    Granted(Vec<u64>),
    Held,
    Releasing,
}

/// A request of a client.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) ticket: Ticket,
    pub(crate) ask: Ask,
    pub(crate) asked: Time,
    pub(crate) state: State,
}

impl Request {
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting | State::Granted(_))
    }

    /// What to send; the time that it has waited already is not waited again.
    pub(crate) fn message(&self, number: u32, now: Time) -> ClientMessage {
        let Ask { names, permits, wait } = &self.ask;
        let wait = wait.after(now.since(self.asked));
        ClientMessage::Acquire { request: number, names: names.clone(), permits: *permits, wait }
    }

    /// When the client stops waiting for the node's answer.
    pub(crate) fn end(&self) -> Option<Time> {
        match self.ask.wait {
            Wait::Forever => None,
            Wait::AtMost(limit) => Some(self.asked + limit + LATENESS),
            Wait::No(limit) => Some(self.asked + limit + ANSWER_TIME),
        }
    }
}
