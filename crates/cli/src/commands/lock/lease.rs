//! For how long a session is surely alive, seen from its client.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A busy system may need so long to end a process, however short the time to live is.
const MARGIN: Duration = Duration::from_millis(500);

/// What the client knows of its session's time to live.
///
/// The node counts from when a sign of life comes in; the client counts from when it sent it. So
/// the client's deadline is never later than the node's, however slow the connection is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    ttl: Duration,
    /// When the last sign of life was sent that the node has answered.
    confirmed: Instant,
    /// When those were sent that it has not answered yet.
    unanswered: VecDeque<Instant>,
}

impl Lease {
    /// A session that was asked for at `sent` and has been opened.
    pub(crate) fn new(ttl: Duration, sent: Instant) -> Self {
        Lease { ttl, confirmed: sent, unanswered: VecDeque::new() }
    }

    /// A sign of life is sent.
    pub(crate) fn send(&mut self, now: Instant) {
        self.unanswered.push_back(now);
    }

    /// The node has answered the oldest sign of life.
    pub(crate) fn answered(&mut self) {
        self.confirmed = self.unanswered.pop_front().unwrap_or(self.confirmed);
    }

    /// The connection is gone, and with it the answers that were under way.
    pub(crate) fn disconnected(&mut self) {
        self.unanswered.clear();
    }

    /// When the next sign of life is due.
    pub(crate) fn beat(&self) -> Instant {
        self.unanswered
            .back()
            .unwrap_or(&self.confirmed)
            .checked_add(self.ttl / 3)
            .unwrap_or(self.confirmed)
    }

    /// From now on the lock must be taken for lost: what runs under it is asked to end.
    pub(crate) fn warning(&self) -> Instant {
        self.confirmed + self.certain() * 2 / 3
    }

    /// From now on nothing may run under the lock.
    pub(crate) fn deadline(&self) -> Instant {
        self.confirmed + self.certain()
    }

    /// The time to live, less what clocks may differ and a busy system may need to end a process.
    fn certain(&self) -> Duration {
        self.ttl - (self.ttl / 20).max(MARGIN).min(self.ttl / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn what_counts_is_when_the_answered_sign_of_life_was_sent() {
        let start = Instant::now();
        let mut lease = Lease::new(TTL, start);
        assert_eq!(lease.beat(), after(start, 20));
        lease.send(after(start, 20));
        assert_eq!((lease.beat(), lease.deadline()), (after(start, 40), after(start, 57)));
        lease.send(after(start, 40));
        lease.answered();
        assert_eq!((lease.warning(), lease.deadline()), (after(start, 58), after(start, 77)));
    }

    #[test]
    fn a_short_time_to_live_leaves_time_to_end_a_process() {
        let start = Instant::now();
        let certain = |ttl: u64| {
            let lease = Lease::new(Duration::from_millis(ttl), start);
            lease.deadline().duration_since(start).as_millis()
        };
        assert_eq!([500, 2_000, 10_000, 20_000].map(certain), [375, 1_500, 9_500, 19_000]);
    }

    #[test]
    fn answers_that_were_under_way_do_not_count_on_another_connection() {
        let start = Instant::now();
        let mut lease = Lease::new(TTL, start);
        lease.send(after(start, 20));
        lease.disconnected();
        lease.send(after(start, 30));
        lease.answered();
        assert_eq!(lease.deadline(), after(start, 87));
    }
}
