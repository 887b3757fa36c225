//! Small numbers with a meaning.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A node of the group, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The node's place in an array of all nodes.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Every node of a group of `nodes`, in ascending order.
    pub fn all(nodes: u32) -> impl DoubleEndedIterator<Item = NodeId> + Clone {
        (0..nodes).map(NodeId)
    }

    /// The nodes that follow `self` in a ring of `nodes`, up to but without `self`.
    pub fn others_after(self, nodes: u32) -> impl Iterator<Item = NodeId> + Clone {
        (self.0 + 1..nodes).chain(0..self.0).map(NodeId)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number that comes with every entry.
///
/// Over the successive entries of one lock the numbers strictly increase, so whatever the lock
/// protects can refuse a holder that is out of date. Where several may be inside at once there is no
/// such order; the numbers are unique then. A group that is started anew counts anew: who
/// starts it puts the number of the start in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub u64);

impl Fence {
    /// Smaller than every fence that is handed out.
    pub const NONE: Fence = Fence(0);

    /// The number after this one. The largest has none and stays.
    pub const fn next(self) -> Fence {
        Fence(self.0.saturating_add(1))
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Tells the timers of one node apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimerTag(pub u32);

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn the_others_are_visited_once_each_starting_after_oneself() {
        let others: Vec<u32> = NodeId(1).others_after(4).map(|n| n.0).collect();
        assert_eq!(others, [2, 3, 0]);
        assert_eq!(NodeId(0).others_after(1).count(), 0);
    }
}
