//! Instants as people write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// So long after now, as in `2026-07-01T12:00:00.000Z`.
pub(super) fn after(left: Duration) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let millis = since.saturating_add(left).as_millis();
    at(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// So many milliseconds after the beginning of 1970.
pub(super) fn at(unix_millis: u64) -> String {
    let millis = i64::try_from(unix_millis).unwrap_or(i64::MAX);
    let instant = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    format!("{instant:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_have_milliseconds_and_an_end() {
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(1_782_907_200_007), "2026-07-01T12:00:00.007Z");
        assert!(at(u64::MAX).starts_with("9999-12-30"));
    }
}
