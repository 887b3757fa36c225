//! Sessions: what a client of another process has asked for and holds, and when that ends.

use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;
use core::ops::RangeInclusive;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::durable::HoldId;
use crate::refusal::Refusal;
use crate::request::RequestId;
use crate::time::Time;

/// A time to live is not shorter, as it could not be kept up, and not longer, as it would be none.
pub const TTL_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(86_400);
/// A member has at most so many sessions.
pub const MOST_SESSIONS: usize = 100_000;
/// A session has at most so many requests at a time.
pub const MOST_REQUESTS: usize = 10_000;
/// All sessions of a member together have at most so many.
pub const MOST_REQUESTS_IN_ALL: usize = 200_000;
/// The names of all requests of a member together have at most so many bytes, where each name counts for
/// [`BYTES_OF_A_NAME`] more than it is long. Requests for one lock each always fit.
pub const MOST_NAME_BYTES: usize = 64 << 20;
/// What is kept with each name of a request.
pub const BYTES_OF_A_NAME: usize = 64;
/// What a client says of itself is cut to so many characters.
const LONGEST_LABEL: usize = 255;

/// Who a client is, as lists of locks show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Who {
    /// What the client calls itself.
    pub label: String,
    /// Its process.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// Who it has shown to be, by the word of the member that it asked; empty if nobody knows.
    pub identity: String,
}

impl Who {
    /// The same, with texts of a bounded length.
    pub fn cut(self) -> Self {
        let cut = |text: String| text.chars().take(LONGEST_LABEL).collect();
        let (label, host, identity) = (cut(self.label), cut(self.host), cut(self.identity));
        Who { label, pid: self.pid, host, identity }
    }
}

/// What a client proves with that a session is its own.
///
/// It belongs to one incarnation of one member: after a restart it is of no use. The secret is drawn
/// by the driver from the system's random source, is compared in constant time, and is not printed.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct SessionId {
    /// Which run of the member.
    pub incarnation: u64,
    /// Which session of it.
    pub number: u64,
    secret: [u8; 16],
}

impl SessionId {
    /// The session with this number. `secret` comes from a source that nobody can guess.
    pub fn new(incarnation: u64, number: u64, secret: [u8; 16]) -> Self {
        SessionId { incarnation, number, secret }
    }
}

impl PartialEq for SessionId {
    fn eq(&self, other: &Self) -> bool {
        (self.incarnation, self.number) == (other.incarnation, other.number)
            && is_same_secret(&self.secret, &other.secret)
    }
}

/// Whether two secrets are the same. Every byte is looked at, so the time tells nothing about where they
/// differ.
pub(crate) fn is_same_secret(one: &[u8], two: &[u8]) -> bool {
    let differences = one.iter().zip(two).map(|(one, two)| one ^ two);
    let differs = differences.fold(0, |all, one| core::hint::black_box(all | one));
    one.len() == two.len() && differs == 0
}

impl Eq for SessionId {}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({})", self.number)
    }
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Over {
    /// The client has closed it, or its connection is gone and it had no time to live.
    Closed,
    /// It was not renewed in time.
    Expired,
    /// The node stops. What the session held is given to nobody until the node is started again.
    Stopping,
    /// The group goes on without this node, and may have given away what the session held.
    Excluded(Refusal),
    /// The node does not know the session: it has ended before, or the node was restarted.
    Unknown,
    /// The client said something out of turn.
    Protocol,
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Over::Closed => "the session was closed",
            Over::Expired => "the session was not renewed in time",
            Over::Stopping => "the node has stopped",
            Over::Excluded(why) => return why.fmt(f),
            Over::Unknown => "the node was restarted, or the session had ended before",
            Over::Protocol => "client and node do not understand each other",
        })
    }
}

/// One session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) who: Who,
    /// Without one it ends with its connection.
    pub(crate) ttl: Option<Duration>,
    /// When it ends unless it is renewed.
    pub(crate) deadline: Time,
    /// What it has asked for or holds, by the client's own numbers.
    pub(crate) requests: BTreeMap<u32, RequestId>,
    /// The timed hold that it is the session of, if it is no client's.
    pub(crate) timed: Option<HoldId>,
}

impl Session {
    pub(crate) fn new(id: SessionId, who: Who, ttl: Option<Duration>, now: Time) -> Self {
        let (who, requests, timed) = (who.cut(), BTreeMap::new(), None);
        let mut session = Session { id, who, ttl, deadline: now, requests, timed };
        session.renew(now);
        session
    }

    /// It ends a whole time to live after `now`.
    pub(crate) fn renew(&mut self, now: Time) {
        self.deadline = self.ttl.map_or(Time(u64::MAX), |ttl| now + ttl);
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn the_names_of_as_many_requests_as_there_may_be_fit_if_each_has_one() {
        let one = crate::name::LONGEST_NAME + BYTES_OF_A_NAME;
        assert!(MOST_REQUESTS_IN_ALL * one <= MOST_NAME_BYTES);
    }

    #[test]
    fn a_session_is_known_by_all_of_its_id_and_prints_no_secret() {
        let id = SessionId::new(1, 2, [7; 16]);
        assert_eq!(id, SessionId::new(1, 2, [7; 16]));
        for place in 0..16 {
            let mut secret = [7; 16];
            secret[place] = 8;
            assert_ne!(id, SessionId::new(1, 2, secret));
        }
        assert_ne!(id, SessionId::new(2, 2, [7; 16]));
        assert_ne!(id, SessionId::new(1, 3, [7; 16]));
        assert_eq!(format!("{id:?}"), "SessionId(2)");
    }
}
