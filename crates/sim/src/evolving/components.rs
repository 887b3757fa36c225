//! The connected components of one instant, in time proportional to its contacts.

use catraca_core::NodeId;

const NONE: u32 = u32::MAX;

/// Union-find that is reset only where it was used.
#[derive(Debug)]
pub(super) struct Components {
    parent: Vec<u32>,
    /// Lists of members, by root.
    first: Vec<u32>,
    next: Vec<u32>,
    /// By root, whether a member has learned something.
    has_learned: Vec<bool>,
    touched: Vec<NodeId>,
    roots: Vec<u32>,
}

impl Components {
    pub(super) fn new(nodes: u32) -> Self {
        Components {
            parent: (0..nodes).collect(),
            first: vec![NONE; nodes as usize],
            next: vec![NONE; nodes as usize],
            has_learned: vec![false; nodes as usize],
            touched: Vec::new(),
            roots: Vec::new(),
        }
    }

    /// Finds the components of the graph with these edges. Isolated nodes are in none.
    pub(super) fn find(&mut self, edges: impl Iterator<Item = (NodeId, NodeId)>) {
        for node in self.touched.drain(..) {
            let index = node.index();
            (self.parent[index], self.first[index]) = (node.0, NONE);
            self.has_learned[index] = false;
        }
        self.roots.clear();
        for (a, b) in edges {
            self.touched.extend([a, b]);
            let (a, b) = (self.root(a.0), self.root(b.0));
            self.parent[a.max(b) as usize] = a.min(b);
        }
        self.touched.sort_unstable();
        self.touched.dedup();
        // Backwards, so that each list is in ascending order.
        for place in (0..self.touched.len()).rev() {
            let node = self.touched[place].0;
            let root = self.root(node) as usize;
            self.next[node as usize] = self.first[root];
            self.first[root] = node;
        }
        for node in &self.touched {
            if self.parent[node.index()] == node.0 {
                self.roots.push(node.0);
            }
        }
    }

    fn root(&mut self, mut node: u32) -> u32 {
        while self.parent[node as usize] != node {
            let above = self.parent[self.parent[node as usize] as usize];
            self.parent[node as usize] = above;
            node = above;
        }
        node
    }

    /// How many components there are.
    pub(super) fn count(&self) -> usize {
        self.roots.len()
    }

    /// The members of a component, in ascending order, into `members`.
    pub(super) fn members(&self, component: usize, members: &mut Vec<NodeId>) {
        members.clear();
        let root = self.roots[component] as usize;
        let mut node = self.first[root];
        while node != NONE {
            members.push(NodeId(node));
            node = self.next[node as usize];
        }
    }

    /// A member of a component has learned something.
    pub(super) fn learn(&mut self, component: usize) {
        self.has_learned[self.roots[component] as usize] = true;
    }

    /// Whether a member of the component of `node` has.
    pub(super) fn has_learned(&self, node: NodeId) -> bool {
        let mut root = node.index();
        while self.parent[root] as usize != root {
            root = self.parent[root] as usize;
        }
        self.has_learned[root]
    }

    /// Whether `node` has a neighbour.
    pub(super) fn is_connected(&self, node: NodeId) -> bool {
        self.touched.binary_search(&node).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_found_anew_at_every_instant() {
        let mut components = Components::new(8);
        let mut find = |edges: &[(u32, u32)]| {
            components.find(edges.iter().map(|&(a, b)| (NodeId(a), NodeId(b))));
            let mut members = Vec::new();
            (0..components.count())
                .map(|component| {
                    components.members(component, &mut members);
                    members.iter().map(|node| node.0).collect::<Vec<_>>()
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(find(&[(5, 6), (1, 2), (6, 1), (0, 7)]), [vec![0, 7], vec![1, 2, 5, 6]]);
        assert_eq!(find(&[(2, 3)]), [[2, 3]]);
        assert_eq!(find(&[]), Vec::<Vec<u32>>::new());
    }
}
