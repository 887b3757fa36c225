//! For how long a session is certain to live, seen from its client.

use std::collections::VecDeque;
use std::time::Duration;

use catraca_group::Time;

/// A busy system may need so long to end a process, however short the time to live is.
const MARGIN: Duration = Duration::from_millis(500);

/// A node that is not certain of anything is asked again so often.
const SOON: Duration = Duration::from_millis(100);

/// What the client knows of its session's time to live, and of its node's.
///
/// The node counts from when a renewal comes in; the client counts from when it sent it. So the
/// client's deadline is never later than the node's, however slow the connection is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    ttl: Duration,
    /// When the last renewal was sent that the node has answered.
    confirmed: Time,
    /// For how long the node was certain, then, that nobody else is let in.
    certain: Duration,
    /// When those were sent that it has not answered yet.
    unanswered: VecDeque<Time>,
    /// Whether something waits for the next renewal.
    is_awaited: bool,
}

impl Lease {
    /// The lease of a session that was asked for at `sent` and has been opened, by a node that was
    /// certain of what it grants for so long.
    pub(crate) fn new(ttl: Duration, certain: Duration, sent: Time) -> Self {
        let unanswered = VecDeque::new();
        Lease { ttl, confirmed: sent, certain, unanswered, is_awaited: false }
    }

    /// A renewal is sent.
    pub(crate) fn renewal_sent(&mut self, now: Time) {
        self.unanswered.push_back(now);
        self.is_awaited = false;
    }

    /// The node has answered the oldest renewal, and is certain for so long.
    pub(crate) fn renewal_answered(&mut self, certain: Duration) {
        if let Some(sent) = self.unanswered.pop_front() {
            (self.confirmed, self.certain) = (sent, certain);
        }
    }

    /// Something was granted that the present lease is too old for.
    pub(crate) fn await_renewal(&mut self) {
        self.is_awaited = self.unanswered.is_empty();
    }

    /// The connection is gone, and with it the answers that were under way.
    pub(crate) fn disconnected(&mut self) {
        self.unanswered.clear();
    }

    /// When the next renewal is due.
    pub(crate) fn renewal_due(&self) -> Time {
        let last = *self.unanswered.back().unwrap_or(&self.confirmed);
        if self.is_awaited {
            return last;
        }
        last + (self.ttl.min(self.certain) / 3).max(SOON).min(self.ttl / 3)
    }

    /// From then on, what was granted must be given up: there is just time enough to do so.
    pub(crate) fn lost_at(&self) -> Time {
        self.confirmed + self.held() * 2 / 3
    }

    /// From then on nobody may act on what was granted.
    pub(crate) fn valid_until(&self) -> Time {
        self.confirmed + self.held()
    }

    /// From then on the node may have ended the session.
    pub(crate) fn ends_at(&self) -> Time {
        self.confirmed + self.lived()
    }

    /// For how long what was granted is certain.
    fn held(&self) -> Duration {
        self.lived().min(self.certain)
    }

    /// The time to live, less what clocks may differ and a busy system may need to end a process.
    fn lived(&self) -> Duration {
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
        let mut lease = Lease::new(TTL, Duration::MAX, at(0));
        assert_eq!(lease.renewal_due(), at(20));
        lease.renewal_sent(at(20));
        assert_eq!((lease.renewal_due(), lease.valid_until()), (at(40), at(57)));
        lease.renewal_sent(at(40));
        lease.renewal_answered(Duration::MAX);
        assert_eq!((lease.lost_at(), lease.valid_until()), (at(58), at(77)));
    }

    #[test]
    fn a_short_time_to_live_leaves_time_to_end_a_process() {
        let certain = |ttl: u64| {
            let lease = Lease::new(Duration::from_millis(ttl), Duration::MAX, at(0));
            lease.valid_until().millis_since(at(0))
        };
        assert_eq!([500, 2_000, 10_000, 20_000].map(certain), [375, 1_500, 9_500, 19_000]);
    }

    #[test]
    fn a_renewal_is_due_before_anything_is_lost_whatever_the_time_to_live() {
        for millis in [100, 500, 1_999, 2_000, 10_000, 86_400_000] {
            let lease = Lease::new(Duration::from_millis(millis), Duration::MAX, at(0));
            assert!(lease.renewal_due() < lease.lost_at(), "{millis}");
            assert!(lease.lost_at() < lease.valid_until(), "{millis}");
        }
    }

    #[test]
    fn answers_that_were_under_way_do_not_count_on_another_connection() {
        let mut lease = Lease::new(TTL, Duration::MAX, at(0));
        lease.renewal_sent(at(20));
        lease.disconnected();
        lease.renewal_sent(at(30));
        lease.renewal_answered(Duration::MAX);
        assert_eq!(lease.valid_until(), at(87));
    }

    #[test]
    fn an_answer_that_was_not_asked_for_prolongs_nothing() {
        let mut lease = Lease::new(TTL, Duration::MAX, at(0));
        lease.renewal_answered(Duration::MAX);
        assert_eq!(lease.valid_until(), at(57));
    }

    #[test]
    fn nothing_is_certain_for_longer_than_the_node_is() {
        let mut lease = Lease::new(TTL, Duration::from_secs(3), at(0));
        assert_eq!((lease.renewal_due(), lease.lost_at()), (at(1), at(2)));
        assert_eq!((lease.valid_until(), lease.ends_at()), (at(3), at(57)));
        lease.renewal_sent(at(1));
        lease.renewal_answered(Duration::ZERO);
        assert_eq!((lease.valid_until(), lease.ends_at()), (at(1), at(58)));
        assert!(lease.renewal_due() > at(1), "it is not asked again and again");
        lease.await_renewal();
        assert_eq!(lease.renewal_due(), at(1), "but at once if that is what is waited for");
    }
}
