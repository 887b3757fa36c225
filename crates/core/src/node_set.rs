//! A set of nodes that costs no allocation in groups of up to 64.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::NodeId;

const BITS: u32 = u64::BITS;

/// One more than the largest node of a set that is read. A set has a bit for every node up to its
/// largest, so a few bytes that name a large one could take much memory. The algorithms whose messages
/// carry sets run on fewer nodes.
const READ_END: u32 = 1 << 16;

/// An ordered set of nodes, one bit each. Nodes 0 to 63 live inline, the rest on the heap. Written
/// as the list of its nodes; a list with nodes from 65536 on is not read.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<NodeId>", into = "Vec<NodeId>")]
pub struct NodeSet {
    low: u64,
    high: Vec<u64>,
}

impl NodeSet {
    /// The empty set.
    pub const fn new() -> Self {
        NodeSet { low: 0, high: Vec::new() }
    }

    fn word(&self, index: usize) -> u64 {
        match index {
            0 => self.low,
            _ => self.high.get(index - 1).copied().unwrap_or(0),
        }
    }

    #[inline]
    fn word_mut(&mut self, node: NodeId) -> &mut u64 {
        let index = (node.0 / BITS) as usize;
        if index == 0 {
            return &mut self.low;
        }
        if self.high.len() < index {
            self.high.resize(index, 0);
        }
        &mut self.high[index - 1]
    }

    /// Adds `node`; false if it was there already.
    #[inline]
    pub fn insert(&mut self, node: NodeId) -> bool {
        let bit = 1 << (node.0 % BITS);
        let word = self.word_mut(node);
        let added = *word & bit == 0;
        *word |= bit;
        added
    }

    /// Takes `node` out; false if it was not there.
    #[inline]
    pub fn remove(&mut self, node: NodeId) -> bool {
        let present = self.contains(node);
        if present {
            *self.word_mut(node) &= !(1 << (node.0 % BITS));
        }
        present
    }

    /// Whether `node` is in the set.
    #[inline]
    pub fn contains(&self, node: NodeId) -> bool {
        self.word((node.0 / BITS) as usize) & (1 << (node.0 % BITS)) != 0
    }

    /// How many nodes are in the set.
    pub fn len(&self) -> usize {
        self.words().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words().all(|word| word == 0)
    }

    /// Takes everything out and keeps the memory.
    pub fn clear(&mut self) {
        self.low = 0;
        self.high.fill(0);
    }

    /// The largest node.
    pub fn last(&self) -> Option<NodeId> {
        let words = 1 + self.high.len();
        let (index, word) =
            (0..words).rev().map(|index| (index, self.word(index))).find(|(_, word)| *word != 0)?;
        Some(NodeId(index as u32 * BITS + word.ilog2()))
    }

    /// The nodes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.words().enumerate().flat_map(|(index, mut word)| {
            core::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros())?;
                word &= word - 1;
                Some(NodeId(index as u32 * BITS + bit))
            })
        })
    }

    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        core::iter::once(self.low).chain(self.high.iter().copied())
    }

    /// The heap words without trailing zeros, so that equal sets compare and hash alike.
    fn significant(&self) -> &[u64] {
        let len = self.high.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        &self.high[..len]
    }
}

impl PartialEq for NodeSet {
    fn eq(&self, other: &Self) -> bool {
        self.low == other.low && self.significant() == other.significant()
    }
}

impl Eq for NodeSet {}

impl Ord for NodeSet {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl PartialOrd for NodeSet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for NodeSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.low.hash(state);
        self.significant().hash(state);
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        let mut set = NodeSet::new();
        for node in nodes {
            set.insert(node);
        }
        set
    }
}

/// Why a list of nodes is not read as a set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a set of nodes names node {0}, but sets are read up to node {last}", last = READ_END - 1)]
pub struct NodeSetError(NodeId);

impl TryFrom<Vec<NodeId>> for NodeSet {
    type Error = NodeSetError;

    fn try_from(nodes: Vec<NodeId>) -> Result<Self, NodeSetError> {
        match nodes.iter().find(|node| node.0 >= READ_END) {
            Some(&node) => Err(NodeSetError(node)),
            None => Ok(NodeSet::from_iter(nodes)),
        }
    }
}

impl From<NodeSet> for Vec<NodeId> {
    fn from(set: NodeSet) -> Self {
        set.iter().collect()
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_an_ordered_set(steps in prop::collection::vec((0u32..200, any::<bool>()), 0..200)) {
            let mut set = NodeSet::new();
            let mut model = BTreeSet::new();
            for (node, add) in steps {
                let node = NodeId(node);
                if add {
                    prop_assert_eq!(set.insert(node), model.insert(node));
                } else {
                    prop_assert_eq!(set.remove(node), model.remove(&node));
                }
                prop_assert_eq!(set.len(), model.len());
                prop_assert_eq!(set.is_empty(), model.is_empty());
                prop_assert_eq!(set.last(), model.last().copied());
            }
            prop_assert!(set.iter().eq(model.iter().copied()));
            prop_assert_eq!(&set, &model.iter().copied().collect());
        }
    }

    #[test]
    fn a_list_that_names_a_far_node_is_not_read() {
        assert!(NodeSet::try_from(vec![NodeId(0), NodeId(READ_END - 1)]).is_ok());
        for far in [READ_END, u32::MAX] {
            assert_eq!(NodeSet::try_from(vec![NodeId(far)]), Err(NodeSetError(NodeId(far))));
        }
    }

    #[test]
    fn a_set_that_once_was_larger_equals_one_that_never_was() {
        let mut set = NodeSet::from_iter([NodeId(1), NodeId(500)]);
        set.remove(NodeId(500));
        assert_eq!(set, NodeSet::from_iter([NodeId(1)]));
    }
}
