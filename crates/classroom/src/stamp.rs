//! Instants as S3 writes them: `2025-07-17 01:28:30.119990`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{RoundMode, Timestamp, TimestampRound, Unit};

const FORMAT: &str = "%Y-%m-%d %H:%M:%S.%6f";

/// An instant to the microsecond. The format names no time zone, so it is UTC: local time jumps
/// twice a year, and what was in order would not be in order any more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(Timestamp);

impl Stamp {
    /// By the system's clock, cut to the microsecond.
    pub fn now() -> Self {
        let cut = TimestampRound::new().smallest(Unit::Microsecond).mode(RoundMode::Trunc);
        let now = Timestamp::now();
        Stamp(now.round(cut).unwrap_or(now))
    }

    /// How long after `earlier` this is, nothing if it is before.
    pub fn since(self, earlier: Stamp) -> Duration {
        self.0.duration_since(earlier.0).try_into().unwrap_or_default()
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.strftime(FORMAT).fmt(f)
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Stamp {
    type Err = NoStamp;

    fn from_str(text: &str) -> Result<Self, NoStamp> {
        let stamp = DateTime::strptime(FORMAT, text)
            .and_then(|local| local.to_zoned(TimeZone::UTC))
            .map(|zoned| Stamp(zoned.timestamp()))
            .map_err(|_| NoStamp)?;
        // Fewer digits would be read too, as what they do not mean.
        if stamp.to_string() == text { Ok(stamp) } else { Err(NoStamp) }
    }
}

/// The text is no instant in S3's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has no time such as 2025-07-17 01:28:30.119990")]
pub struct NoStamp;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reference: S3, section 3, the two excerpts.
    #[test]
    fn paper_stamps_are_read_and_written_as_they_are() {
        let granted: Stamp = "2025-07-17 01:28:30.120578".parse().unwrap();
        let entered: Stamp = "2025-07-17 01:28:31.827072".parse().unwrap();
        assert_eq!(entered.since(granted), Duration::from_micros(1_706_494));
        assert_eq!(granted.since(entered), Duration::ZERO);
        assert_eq!(granted.to_string(), "2025-07-17 01:28:30.120578");
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in [
            "",
            "2025-07-17",
            "2025-07-17 01:28:30",
            "2025-07-17 01:28:30.12",
            "2025-07-17 01:28:30.1205781",
            "2025-02-30 01:28:30.120578",
            "2025-07-17 25:28:30.120578",
            "2025-7-17 01:28:30.120578",
            " 2025-07-17 01:28:30.120578",
        ] {
            assert_eq!(text.parse::<Stamp>(), Err(NoStamp), "{text:?}");
        }
    }

    #[test]
    fn now_has_whole_microseconds() {
        let now = Stamp::now();
        assert_eq!(now.to_string().parse(), Ok(now));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(micros in 0i64..4_000_000_000_000_000) {
            let stamp = Stamp(Timestamp::from_microsecond(micros).unwrap());
            prop_assert_eq!(stamp.to_string().parse(), Ok(stamp));
        }
    }
}
