//! The clock of leases.

use std::time::Duration;

use catraca_group::Time;
use rustix::time::{ClockId, clock_gettime};

/// Goes on while the machine sleeps: a lease that runs out meanwhile has run out.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// After a machine has slept, the clock is looked at again within this time.
const LOOK: Duration = Duration::from_secs(1);

/// The time now.
#[inline]
pub fn now() -> Time {
    let now = clock_gettime(CLOCK);
    Time(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Waits until `time`. The clock is looked at now and then: the runtime's own timers stand still while
/// the machine sleeps.
pub async fn sleep_until(time: Time) {
    loop {
        let left = time.since(now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK)).await;
    }
}
