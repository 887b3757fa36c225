//! What a client and a node say to each other.
//!
//! A connection begins with the handshake of [`crate::handshake`]; then frames go both ways, each one
//! message of these types.

use std::time::Duration;

pub use catraca_group::Over;
use catraca_group::{Page, Query, Refusal, SessionId, Status, Wait, Who};
use serde::{Deserialize, Serialize};

/// From a client to its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientMessage {
    /// Opens a session. Without a time to live it ends with the connection; with one it ends that
    /// long after the last renewal.
    Open {
        /// Who the client is.
        who: Who,
        /// The time to live.
        ttl: Option<Duration>,
    },
    /// Goes on with a session after its connection broke.
    Resume {
        /// The session.
        session: SessionId,
    },
    /// Renews the session's time to live.
    Renew,
    /// Asks for locks. The client numbers its requests; asking again under the same number, after a
    /// connection broke, asks for nothing new.
    Acquire {
        /// The client's number for the request.
        request: u32,
        /// The locks.
        names: Vec<String>,
        /// How many may hold each at a time.
        permits: u32,
        /// How long to wait.
        wait: Wait,
    },
    /// Takes a request back, or releases what it was granted.
    Release {
        /// The request.
        request: u32,
    },
    /// Ends the session: everything that it held is free when [`ServerMessage::Over`] comes.
    Close,
    /// Asks for a page of who holds and who waits.
    List(Query),
    /// Asks how the node and its links are doing.
    Status,
}

/// From a node to its client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerMessage {
    /// The session is open.
    Opened {
        /// What to resume it with.
        session: SessionId,
        /// For how long, from asking, what the node grants is certain, whatever happens to the node.
        certain: Duration,
    },
    /// The session is over, and why: what it held is no longer held. Nothing follows.
    Over(Over),
    /// The session was renewed.
    Renewed {
        /// For how long, from asking, what the session holds is certain, whatever happens to the node.
        certain: Duration,
    },
    /// The client holds the locks. There is one fence for each name, in the order of asking.
    Granted {
        /// The request.
        request: u32,
        /// The fences.
        fences: Vec<u64>,
    },
    /// The client does not hold the locks, and will not by this request.
    Refused {
        /// The request; 0 where a session was asked for.
        request: u32,
        /// Why.
        why: Refusal,
    },
    /// What the request held is free.
    Released {
        /// The request.
        request: u32,
    },
    /// The answer to [`ClientMessage::List`].
    Page(Page),
    /// The answer to [`ClientMessage::Status`].
    Status(Box<Status>),
}
