//! Timed holds: they live by a time to live and not by a connection, and whoever knows the id, or the name
//! of the lock and the token, renews or releases them at whichever member it asks.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::durable::HoldId;
use crate::refusal::Refusal;
use crate::session::Who;
use crate::wait::Wait;

/// How long a timed hold may live unless it is renewed.
pub const TIMED_TTL_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(86_400);
/// The longest token, in bytes.
pub const LONGEST_TOKEN: usize = 1024;
/// A member asks at most so many questions about timed holds at a time.
pub const MOST_QUESTIONS: usize = 10_000;

/// A request for a hold that lives by a time to live and not by a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquireTimed {
    /// Which hold it is to be: drawn by the driver, so that nobody can guess it.
    pub id: HoldId,
    /// The locks: all of them, or none.
    pub names: Vec<String>,
    /// How many may be inside each at a time.
    pub permits: u32,
    /// How long to wait.
    pub wait: Wait,
    /// How long the hold lives from its grant on, unless it is renewed.
    pub ttl: Duration,
    /// Who asks, as lists show it.
    pub who: Who,
    /// What the client proves with that a hold is its own when it gives the name of the lock and not the
    /// id; empty if it never does.
    pub token: Vec<u8>,
}

impl AcquireTimed {
    /// Checks the time to live and the token.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_ttl(self.ttl)?;
        match self.token.len() > LONGEST_TOKEN {
            true => Err(Refusal::LongToken(self.token.len())),
            false => Ok(()),
        }
    }
}

/// Whether a timed hold can live so long.
pub(crate) fn check_ttl(ttl: Duration) -> Result<(), Refusal> {
    match TIMED_TTL_RANGE.contains(&ttl) {
        true => Ok(()),
        false => Err(Refusal::Ttl { ttl, least: *TIMED_TTL_RANGE.start() }),
    }
}

/// A timed hold as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedHold {
    /// Which one.
    pub id: HoldId,
    /// The locks, in the order of asking.
    pub names: Vec<String>,
    /// How many may be inside each at a time.
    pub permits: u32,
    /// A fence for each name.
    pub fences: Vec<u64>,
    /// Who has it.
    pub who: Who,
    /// What its client proves itself with.
    pub token: Vec<u8>,
    /// The member where it is.
    pub member: String,
    /// How long it was to live when it was granted or renewed last.
    pub ttl: Duration,
    /// How long it lives from now on, unless it is renewed.
    pub left: Duration,
}

/// Which timed hold is meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Which {
    /// The one with this id.
    Id(HoldId),
    /// The one that holds this lock, of which there is one permit.
    Name {
        /// The lock.
        name: String,
        /// The token that it has to have; nothing if it does not matter.
        token: Option<Vec<u8>>,
    },
}

impl Which {
    /// What it is called in a refusal.
    pub(crate) fn called(&self) -> String {
        match self {
            Which::Id(id) => id.to_string(),
            Which::Name { name, .. } => name.clone(),
        }
    }
}

/// How the time that a timed hold has left changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Renewal {
    /// It lives so long from now on.
    To(Duration),
    /// It lives so much longer, but never longer than the longest time to live.
    By(Duration),
}

impl Renewal {
    /// How long a hold lives from now on that had so much left.
    pub(crate) fn left(self, before: Duration) -> Result<Duration, Refusal> {
        match self {
            Renewal::To(ttl) => check_ttl(ttl).map(|()| ttl),
            Renewal::By(more) => Ok(before.saturating_add(more).min(*TIMED_TTL_RANGE.end())),
        }
    }
}

/// What is to be done with a timed hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// To tell how it is.
    Look,
    /// To change how long it lives.
    Renew(Renewal),
    /// To end it.
    Release,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_never_leaves_more_than_the_longest_time_to_live() {
        let (second, most) = (Duration::from_secs(1), *TIMED_TTL_RANGE.end());
        assert_eq!(Renewal::To(second).left(most), Ok(second));
        assert_eq!(Renewal::By(second).left(second), Ok(2 * second));
        assert_eq!(Renewal::By(most).left(second), Ok(most));
        assert_eq!(Renewal::By(Duration::MAX).left(Duration::MAX), Ok(most));
        assert_eq!(Renewal::By(Duration::ZERO).left(second), Ok(second));
        for ttl in [Duration::ZERO, Duration::from_micros(999), most + second, Duration::MAX] {
            let least = *TIMED_TTL_RANGE.start();
            assert_eq!(Renewal::To(ttl).left(second), Err(Refusal::Ttl { ttl, least }));
        }
    }
}
