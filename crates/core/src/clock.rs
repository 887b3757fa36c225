//! Lamport's logical clock and the total order it gives.

use serde::{Deserialize, Serialize};

use crate::{Fence, NodeId};

/// A logical clock: it counts events and never falls behind a time it has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LogicalClock(u64);

impl LogicalClock {
    /// The time of the last event.
    pub const fn now(self) -> u64 {
        self.0
    }

    /// Advances by one event and returns its time. It stops at the largest number, which no clock
    /// reaches: [`Bounds`](crate::Bounds) keeps larger times than can be out of a group.
    pub fn tick(&mut self) -> u64 {
        self.0 = self.0.saturating_add(1);
        self.0
    }

    /// Takes note of a time that somebody else has reached.
    pub fn witness(&mut self, time: u64) {
        self.0 = self.0.max(time);
    }
}

/// A logical time made unique by the node that took it; stamps are totally ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// The logical time. Compared first.
    pub time: u64,
    /// The node that took it. Breaks ties.
    pub node: NodeId,
}

impl Stamp {
    /// The stamp as one number: the order of stamps is the order of their fences.
    pub fn fence(self, nodes: u32) -> Fence {
        let before = self.time.saturating_mul(u64::from(nodes));
        Fence(before.saturating_add(u64::from(self.node.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_passes_every_time_it_has_witnessed() {
        let mut clock = LogicalClock::default();
        clock.witness(7);
        assert_eq!(clock.tick(), 8);
        clock.witness(3);
        assert_eq!(clock.now(), 8);
    }

    #[test]
    fn a_clock_at_the_largest_number_stays_there() {
        let mut clock = LogicalClock::default();
        clock.witness(u64::MAX);
        assert_eq!(clock.tick(), u64::MAX);
        let last = Stamp { time: u64::MAX, node: NodeId(1) };
        assert_eq!((last.fence(2), last.fence(2).next()), (Fence(u64::MAX), Fence(u64::MAX)));
    }

    #[test]
    fn fences_are_ordered_as_their_stamps() {
        let early = Stamp { time: 1, node: NodeId(2) };
        let tie = Stamp { time: 2, node: NodeId(0) };
        let late = Stamp { time: 2, node: NodeId(1) };
        assert!(early < tie && tie < late);
        assert!(early.fence(3) < tie.fence(3) && tie.fence(3) < late.fence(3));
    }
}
