//! A clock of one machine: it begins anywhere and runs at a rate of its own.

use std::time::Duration;

use crate::time::Time;

const MILLION: u128 = 1_000_000;

/// A clock. A tick of true time is a microsecond.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// What it shows at the beginning, in nanoseconds.
    pub(super) offset: u64,
    /// So many millionths faster than true time, or slower.
    pub(super) drift: i64,
}

impl Clock {
    fn rate(self) -> u128 {
        (MILLION as i64 + self.drift).max(1) as u128
    }

    /// What it shows.
    pub(super) fn at(self, Time(ticks): Time) -> catraca_group::Time {
        let passed = u128::from(ticks) * 1000 * self.rate() / MILLION;
        catraca_group::Time(self.offset + passed as u64)
    }

    /// How much true time passes while it counts `duration`, rounded up.
    pub(super) fn ticks(self, duration: Duration) -> Time {
        let ticks = (duration.as_nanos() * MILLION).div_ceil(self.rate() * 1000);
        Time(u64::try_from(ticks).unwrap_or(u64::MAX / 2).min(u64::MAX / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_clock_counts_a_second_in_less_than_one() {
        let clock = Clock { offset: 5, drift: 100_000 };
        assert_eq!(clock.at(Time(1_000_000)).0, 5 + 1_100_000_000);
        assert_eq!(clock.ticks(Duration::from_millis(1100)), Time(1_000_000));
        let slow = Clock { offset: 0, drift: -100_000 };
        assert_eq!(slow.ticks(Duration::from_millis(900)), Time(1_000_000));
    }
}
