//! Integer time: runs must give the same bytes on every machine, so nothing is a float.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

/// A point in simulated time, or a length of it, in ticks.
///
/// People write units and read units: what a unit is (a message delay, a second) is up to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A unit is a million ticks.
pub const TICKS_PER_UNIT: u64 = 1_000_000;

/// The longest time that can be asked for, in units. Sums of such times stay far from overflow.
pub const MAX_UNITS: u64 = 1_000_000_000;

/// Why a text is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no time: give a decimal number of units from 0 to {MAX_UNITS} with at most 6 decimals"
)]
pub struct TimeError(pub String);

impl Time {
    /// The beginning of a run.
    pub const ZERO: Time = Time(0);

    /// So many whole units.
    pub const fn units(units: u64) -> Self {
        Time(units * TICKS_PER_UNIT)
    }

    /// In units, for statistics.
    pub fn as_units(self) -> f64 {
        self.0 as f64 / TICKS_PER_UNIT as f64
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, ticks) = (self.0 / TICKS_PER_UNIT, self.0 % TICKS_PER_UNIT);
        if ticks == 0 {
            return write!(f, "{units}");
        }
        let decimals = format!("{ticks:06}");
        write!(f, "{units}.{}", decimals.trim_end_matches('0'))
    }
}

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let error = || TimeError(text.to_string());
        let (units, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if units.is_empty() || !digits(units) || !digits(decimals) || decimals.len() > 6 {
            return Err(error());
        }
        let units: u64 = units.parse().map_err(|_| error())?;
        let ticks: u64 = format!("{decimals:0<6}").parse().map_err(|_| error())?;
        if units > MAX_UNITS || (units == MAX_UNITS && ticks > 0) {
            return Err(error());
        }
        Ok(Time(units * TICKS_PER_UNIT + ticks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_back_as_they_are_written() {
        for text in ["0", "1", "0.5", "12.000001", "1000000000"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        assert_eq!("2.50".parse(), Ok(Time(2_500_000)));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in
            ["", "-1", "1e9", ".5", "1.0000001", "1000000000.1", "99999999999999999999", "x"]
        {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }
}
