//! Why something that was asked for is not done: one vocabulary for every interface.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::name::NameError;
use crate::request::MOST_NAMES;
use crate::session::TTL_RANGE;
use crate::timed::LONGEST_TOKEN;
use crate::view::MOST_PERMITS;

/// A refusal. Its [`code`](Self::code) is stable: programs may rely on it. Its text is for people and
/// names no flag of any command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// A text that names no lock.
    #[error(transparent)]
    Name(#[from] NameError),
    /// No names at all.
    #[error("name at least one lock")]
    NoNames,
    /// Too many names in one request.
    #[error("{0} locks at once are too many; {MOST_NAMES} are the most")]
    TooManyNames(usize),
    /// A number of permits that cannot be.
    #[error("a semaphore has 1 to {MOST_PERMITS} permits, not {0}")]
    Permits(u32),
    /// More seats than the algorithm can have.
    #[error(
        "a semaphore of {permits} permits is more than the algorithm of '{name}' can seat in this group"
    )]
    Seats {
        /// The name.
        name: String,
        /// How many permits were asked for.
        permits: u32,
    },
    /// The semaphore is in use with another number of permits.
    #[error(
        "'{name}' was asked for with {permits} permits, but is in use with {other}; everybody has to give the same number"
    )]
    OtherPermits {
        /// The name.
        name: String,
        /// How many this request gave.
        permits: u32,
        /// How many those gave who hold it, or wait for it, at this member.
        other: u32,
    },
    /// Several names with more than one permit.
    #[error("a request for more than one permit names one semaphore; name one, or ask for locks")]
    SetOfSemaphores,
    /// A time to live out of its range.
    #[error(
        "a time to live goes from {least:?} to {most:?}, not {ttl:?}",
        most = TTL_RANGE.end()
    )]
    Ttl {
        /// The client's.
        ttl: Duration,
        /// The shortest that can be.
        least: Duration,
    },
    /// A time to live with which the client could go on after its member was taken for crashed.
    #[error(
        "this group takes a silent member for crashed after {most:?}: the time to live can be at most that, not {ttl:?}"
    )]
    LongTtl {
        /// The client's.
        ttl: Duration,
        /// The longest that can be.
        most: Duration,
    },
    /// A token that is too long.
    #[error("a token of {0} bytes is too long; {LONGEST_TOKEN} are the most")]
    LongToken(usize),
    /// The session, or whoever asks without one, has as many requests as it may have.
    #[error("this client has too many requests at a time; release some, or wait")]
    TooManyRequests,
    /// Somebody else holds it.
    #[error("somebody else holds the lock")]
    Taken,
    /// The lock is held, but not with this token.
    #[error("'{0}' is held by somebody else: the token is not that of the holder")]
    OtherHolder(String),
    /// Whoever administers the group has ended the hold.
    #[error("released by force by {0}")]
    Forced(String),
    /// It was not granted in time.
    #[error("the lock was not granted in time")]
    TimedOut,
    /// The member keeps as many locks as it may.
    #[error("this node keeps no more locks; raise 'locks' in its configuration")]
    Full,
    /// The member has as many sessions as it may have.
    #[error("this node has too many sessions; see its status")]
    TooManySessions,
    /// The member has as many requests as it may have.
    #[error("this node has too many requests at a time; try again later")]
    Busy,
    /// As many clients of the member wait for the lock as may.
    #[error("so many wait for '{0}' at this node that nobody else may; try again later")]
    Crowded(String),
    /// A member has not taken messages for long.
    #[error("member '{0}' is too far behind to begin anything new; see the status")]
    Behind(String),
    /// It was not granted at once, perhaps because a member is not connected.
    #[error("nobody at this node holds the lock, but member '{0}' does not answer; see the status")]
    Silent(String),
    /// Not all members have been connected yet.
    #[error(
        "the group grants locks once all members have been connected, and {0} has not been yet; see the status"
    )]
    NotReady(String),
    /// The member is not in a view of its group yet.
    #[error("this node is not in its group yet: {0}")]
    NotInGroup(String),
    /// The member is about to leave its group.
    #[error("this node is leaving its group; ask another one")]
    Leaving,
    /// The lease of the member is over.
    #[error("this node lost its lease: what it granted may be somebody else's now")]
    Lapsed,
    /// The lock's numbers are used up.
    #[error(
        "the fences of '{0}' are used up: every larger number would not fit; restart the group"
    )]
    Exhausted(String),
    /// The member does not belong to its group any more.
    #[error("{0}")]
    Expelled(String),
    /// The others go on without this member.
    #[error(
        "member '{0}' takes this node for crashed, and the group goes on without it; restart the whole group"
    )]
    Excluded(String),
    /// The member has stopped.
    #[error("the node has stopped")]
    Stopped,
    /// A text of a durable hold that cannot be.
    #[error("{0} of a durable hold has at most {1} bytes, and is not empty unless it is a note")]
    DurableText(String, usize),
    /// A durable hold that does not fit into the registry.
    #[error("a durable hold of so many long names does not fit into the registry; ask for fewer")]
    DurableSize,
    /// The group has no registry.
    #[error("this group keeps no durable holds: it has no registry")]
    NoRegistry,
    /// The registry could not do its part, and why.
    #[error("nothing was written: {0}")]
    Registry(String),
    /// The registry has not said whether it did.
    #[error(
        "the registry has not answered: whether it was done is found out by asking again in the same way"
    )]
    Unsure,
    /// The name of the request was used before.
    #[error(
        "the request '{0}' of this owner was for something else; give each request another name"
    )]
    OtherRequest(String),
    /// There is no such hold.
    #[error("there is no hold '{0}', or not any more; see who holds the lock")]
    NoSuchHold(String),
    /// The durable hold belongs to somebody else.
    #[error(
        "the hold belongs to '{0}'; only the owner can release it, or an administrator by force"
    )]
    NotOwner(String),
    /// Several durable holds have this name.
    #[error("there are {1} durable holds of '{0}'; say which one by its id")]
    SeveralHolds(String, usize),
    /// Whoever asks may not do this, and why.
    #[error("{0}")]
    Denied(String),
    /// There is no such session, or not any more.
    #[error("the node does not know this session: it has ended, or the node was restarted")]
    UnknownSession,
}

/// What a refusal means for whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The request itself is wrong: asking again in the same way is of no use.
    Input,
    /// Somebody else holds it.
    Taken,
    /// It was not granted in time.
    TimedOut,
    /// The group or the member cannot serve this now.
    Unavailable,
    /// The session is over.
    Gone,
}

impl Refusal {
    /// A short name that does not change from release to release.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::Name(_) => "bad-name",
            Refusal::NoNames => "no-names",
            Refusal::TooManyNames(_) => "too-many-names",
            Refusal::Permits(_) => "bad-permits",
            Refusal::Seats { .. } => "too-many-seats",
            Refusal::OtherPermits { .. } => "other-permits",
            Refusal::SetOfSemaphores => "set-of-semaphores",
            Refusal::Ttl { .. } => "bad-ttl",
            Refusal::LongTtl { .. } => "long-ttl",
            Refusal::LongToken(_) => "long-token",
            Refusal::TooManyRequests => "too-many-requests",
            Refusal::Taken => "taken",
            Refusal::OtherHolder(_) => "other-holder",
            Refusal::Forced(_) => "forced",
            Refusal::TimedOut => "timed-out",
            Refusal::Full => "full",
            Refusal::TooManySessions => "too-many-sessions",
            Refusal::Busy => "busy",
            Refusal::Crowded(_) => "crowded",
            Refusal::Behind(_) => "member-behind",
            Refusal::Silent(_) => "member-silent",
            Refusal::NotReady(_) => "not-ready",
            Refusal::NotInGroup(_) => "not-in-group",
            Refusal::Leaving => "leaving",
            Refusal::Lapsed => "lease-over",
            Refusal::Exhausted(_) => "fences-exhausted",
            Refusal::Expelled(_) => "expelled",
            Refusal::Excluded(_) => "excluded",
            Refusal::Stopped => "stopped",
            Refusal::DurableText(..) => "bad-durable-text",
            Refusal::DurableSize => "durable-too-large",
            Refusal::NoRegistry => "no-registry",
            Refusal::Registry(_) => "registry-unavailable",
            Refusal::Unsure => "outcome-unknown",
            Refusal::OtherRequest(_) => "other-request",
            Refusal::NoSuchHold(_) => "no-such-hold",
            Refusal::NotOwner(_) => "not-owner",
            Refusal::SeveralHolds(..) => "several-holds",
            Refusal::Denied(_) => "denied",
            Refusal::UnknownSession => "unknown-session",
        }
    }

    /// What it means for whoever asked.
    pub fn class(&self) -> Class {
        match self {
            Refusal::Name(_)
            | Refusal::NoNames
            | Refusal::TooManyNames(_)
            | Refusal::Permits(_)
            | Refusal::Seats { .. }
            | Refusal::OtherPermits { .. }
            | Refusal::SetOfSemaphores
            | Refusal::Ttl { .. }
            | Refusal::LongTtl { .. }
            | Refusal::LongToken(_)
            | Refusal::TooManyRequests
            | Refusal::DurableText(..)
            | Refusal::DurableSize
            | Refusal::OtherRequest(_)
            | Refusal::NoSuchHold(_)
            | Refusal::NotOwner(_)
            | Refusal::SeveralHolds(..)
            | Refusal::Denied(_) => Class::Input,
            Refusal::Taken | Refusal::OtherHolder(_) => Class::Taken,
            Refusal::TimedOut => Class::TimedOut,
            Refusal::Full
            | Refusal::TooManySessions
            | Refusal::Busy
            | Refusal::Crowded(_)
            | Refusal::Behind(_)
            | Refusal::Silent(_)
            | Refusal::NotReady(_)
            | Refusal::NotInGroup(_)
            | Refusal::Leaving
            | Refusal::Lapsed
            | Refusal::Exhausted(_)
            | Refusal::Expelled(_)
            | Refusal::Excluded(_)
            | Refusal::Stopped
            | Refusal::NoRegistry
            | Refusal::Registry(_)
            | Refusal::Unsure => Class::Unavailable,
            Refusal::Forced(_) | Refusal::UnknownSession => Class::Gone,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Input => "input",
            Class::Taken => "taken",
            Class::TimedOut => "timed-out",
            Class::Unavailable => "unavailable",
            Class::Gone => "gone",
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::string::ToString;

    use super::*;

    fn all() -> [Refusal; 40] {
        let name = || "a".to_string();
        let time = Duration::from_secs(1);
        [
            Refusal::Name(NameError::Empty),
            Refusal::NoNames,
            Refusal::TooManyNames(300),
            Refusal::Permits(0),
            Refusal::Seats { name: name(), permits: 64 },
            Refusal::OtherPermits { name: name(), permits: 2, other: 3 },
            Refusal::SetOfSemaphores,
            Refusal::Ttl { ttl: time, least: time },
            Refusal::LongTtl { ttl: time, most: time },
            Refusal::LongToken(9),
            Refusal::TooManyRequests,
            Refusal::Taken,
            Refusal::OtherHolder(name()),
            Refusal::Forced(name()),
            Refusal::TimedOut,
            Refusal::Full,
            Refusal::TooManySessions,
            Refusal::Busy,
            Refusal::Crowded(name()),
            Refusal::Behind(name()),
            Refusal::Silent(name()),
            Refusal::NotReady(name()),
            Refusal::NotInGroup("why".to_string()),
            Refusal::Leaving,
            Refusal::Lapsed,
            Refusal::Exhausted(name()),
            Refusal::Expelled("why".to_string()),
            Refusal::Excluded(name()),
            Refusal::Stopped,
            Refusal::DurableText(name(), 9),
            Refusal::DurableSize,
            Refusal::NoRegistry,
            Refusal::Registry("why".to_string()),
            Refusal::Unsure,
            Refusal::OtherRequest(name()),
            Refusal::NoSuchHold(name()),
            Refusal::NotOwner(name()),
            Refusal::SeveralHolds(name(), 2),
            Refusal::Denied("why".to_string()),
            Refusal::UnknownSession,
        ]
    }

    #[test]
    fn every_refusal_has_a_code_of_its_own_and_no_text_names_a_flag() {
        let codes: BTreeSet<&str> = all().iter().map(Refusal::code).collect();
        assert_eq!(codes.len(), all().len());
        for refusal in all() {
            assert!(!refusal.to_string().contains("--"), "{refusal}");
        }
    }
}
