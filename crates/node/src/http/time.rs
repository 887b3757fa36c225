//! Instants as people write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::calendar::rfc3339;

/// So long after now, as in `2026-07-01T12:00:00.000Z`.
pub(super) fn after(left: Duration) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let millis = since.saturating_add(left).as_millis();
    rfc3339(u64::try_from(millis).unwrap_or(u64::MAX))
}
