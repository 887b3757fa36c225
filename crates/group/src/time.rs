//! A moment of a member's own clock.

use core::ops::Add;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment, in nanoseconds of a clock that nobody else shares. It comes in with every input: nothing
/// in this crate looks at a clock. On a real machine it is a clock that goes on while the machine
/// sleeps.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// How long ago `earlier` was; nothing if it is yet to come.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// How long ago `earlier` was, in milliseconds.
    pub fn millis_since(self, earlier: Time) -> u64 {
        self.since(earlier).as_millis() as u64
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// Later by `duration`; the end of time if that is too far away to be counted.
    fn add(self, duration: Duration) -> Time {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_neither_overflow_nor_go_below_zero() {
        assert_eq!(Time(5) + Duration::MAX, Time(u64::MAX));
        assert_eq!(Time(5).since(Time(7)), Duration::ZERO);
        assert_eq!((Time(5) + Duration::from_millis(3)).millis_since(Time(5)), 3);
    }
}
