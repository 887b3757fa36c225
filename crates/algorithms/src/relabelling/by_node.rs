//! A value for some of the nodes, joined node by node.

use alloc::vec::Vec;

use catraca_core::NodeId;

/// Sorted by node. Only nodes of which there is something to say take room.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ByNode<T>(Vec<(NodeId, T)>);

impl<T> Default for ByNode<T> {
    fn default() -> Self {
        ByNode(Vec::new())
    }
}

impl<T: Clone> ByNode<T> {
    pub(super) fn get(&self, node: NodeId) -> Option<&T> {
        let place = self.0.binary_search_by_key(&node, |(node, _)| *node).ok()?;
        Some(&self.0[place].1)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (NodeId, &T)> {
        self.0.iter().map(|(node, value)| (*node, value))
    }

    /// Joins one value to that of a node.
    pub(super) fn add(&mut self, node: NodeId, value: T, join: impl Fn(&mut T, &T)) {
        match self.0.binary_search_by_key(&node, |(node, _)| *node) {
            Ok(place) => join(&mut self.0[place].1, &value),
            Err(place) => self.0.insert(place, (node, value)),
        }
    }

    /// Joins all values of another.
    pub(super) fn join(&mut self, other: &Self, join: impl Fn(&mut T, &T)) {
        // Those of nodes that are known here already, in place; the others behind, then sorted in.
        // The other may be small, so nothing here goes through all of this one unless it has to.
        let (known, mut place) = (self.0.len(), 0);
        for (node, value) in &other.0 {
            // Often the next one is it.
            place += usize::from(place < known && self.0[place].0 < *node);
            if place < known && self.0[place].0 < *node {
                place += self.0[place..known].partition_point(|(known, _)| known < node);
            }
            if place < known && self.0[place].0 == *node {
                join(&mut self.0[place].1, value);
            } else {
                self.0.push((*node, value.clone()));
            }
        }
        let is_sorted =
            known == 0 || known == self.0.len() || self.0[known - 1].0 < self.0[known].0;
        if !is_sorted {
            self.0.sort_by_key(|(node, _)| *node); // Two sorted runs: linear.
        }
    }
}
