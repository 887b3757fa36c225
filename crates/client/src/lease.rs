//! For how long a session is certain to live, seen from its client.

use std::collections::VecDeque;
use std::time::Duration;

use catraca_group::Time;

/// A busy system may need so long to end a process, however short the time to live is.
const MARGIN: Duration = Duration::from_millis(500);

/// What the client knows of its session's time to live.
///
/// The node counts from when a renewal comes in; the client counts from when it sent it. So the
/// client's deadline is never later than the node's, however slow the connection is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    ttl: Duration,
    /// When the last renewal was sent that the node has answered.
    confirmed: Time,
    /// When those were sent that it has not answered yet.
    unanswered: VecDeque<Time>,
}

impl Lease {
    /// The lease of a session that was asked for at `sent` and has been opened.
    pub(crate) fn new(ttl: Duration, sent: Time) -> Self {
        Lease { ttl, confirmed: sent, unanswered: VecDeque::new() }
    }

    /// A renewal is sent.
    pub(crate) fn renewal_sent(&mut self, now: Time) {
        self.unanswered.push_back(now);
    }

    /// The node has answered the oldest renewal.
    pub(crate) fn renewal_answered(&mut self) {
        self.confirmed = self.unanswered.pop_front().unwrap_or(self.confirmed);
    }

    /// The connection is gone, and with it the answers that were under way.
    pub(crate) fn disconnected(&mut self) {
        self.unanswered.clear();
    }

    /// When the next renewal is due.
    pub(crate) fn renewal_due(&self) -> Time {
        *self.unanswered.back().unwrap_or(&self.confirmed) + self.ttl / 3
    }

    /// From then on, what was granted must be given up: there is just time enough to do so.
    pub(crate) fn lost_at(&self) -> Time {
        self.confirmed + self.certain() * 2 / 3
    }

    /// From then on nobody may act on what was granted.
    pub(crate) fn valid_until(&self) -> Time {
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

    fn at(seconds: u64) -> Time {
        Time(0) + Duration::from_secs(1000 + seconds)
    }

    #[test]
    fn what_counts_is_when_the_answered_renewal_was_sent() {
        let mut lease = Lease::new(TTL, at(0));
        assert_eq!(lease.renewal_due(), at(20));
        lease.renewal_sent(at(20));
        assert_eq!((lease.renewal_due(), lease.valid_until()), (at(40), at(57)));
        lease.renewal_sent(at(40));
        lease.renewal_answered();
        assert_eq!((lease.lost_at(), lease.valid_until()), (at(58), at(77)));
    }

    #[test]
    fn a_short_time_to_live_leaves_time_to_end_a_process() {
        let certain = |ttl: u64| {
            let lease = Lease::new(Duration::from_millis(ttl), at(0));
            lease.valid_until().millis_since(at(0))
        };
        assert_eq!([500, 2_000, 10_000, 20_000].map(certain), [375, 1_500, 9_500, 19_000]);
    }

    #[test]
    fn a_renewal_is_due_before_anything_is_lost_whatever_the_time_to_live() {
        for millis in [100, 500, 1_999, 2_000, 10_000, 86_400_000] {
            let lease = Lease::new(Duration::from_millis(millis), at(0));
            assert!(lease.renewal_due() < lease.lost_at(), "{millis}");
            assert!(lease.lost_at() < lease.valid_until(), "{millis}");
        }
    }

    #[test]
    fn answers_that_were_under_way_do_not_count_on_another_connection() {
        let mut lease = Lease::new(TTL, at(0));
        lease.renewal_sent(at(20));
        lease.disconnected();
        lease.renewal_sent(at(30));
        lease.renewal_answered();
        assert_eq!(lease.valid_until(), at(87));
    }

    #[test]
    fn an_answer_that_was_not_asked_for_prolongs_nothing() {
        let mut lease = Lease::new(TTL, at(0));
        lease.renewal_answered();
        assert_eq!(lease.valid_until(), at(57));
    }
}
