//! The connected components of one instant, in time proportional to its contacts.

use catraca_core::NodeId;

const NONE: u32 = u32::MAX;

/// Union-find that is reset only where it was used.
#[derive(Debug)]
pub(super) struct Components {
    parent: Vec<u32>,
    /// Lists of members and counts of contacts, by root.
    first: Vec<u32>,
    next: Vec<u32>,
    contacts: Vec<u32>,
    touched: Vec<NodeId>,
    roots: Vec<u32>,
}

impl Components {
    pub(super) fn new(nodes: u32) -> Self {
        let all = |value| vec![value; nodes as usize];
        Components {
            parent: (0..nodes).collect(),
            first: all(NONE),
            next: all(NONE),
            contacts: all(0),
            touched: Vec::new(),
            roots: Vec::new(),
        }
    }

    /// Finds the components of the graph with these edges. Isolated nodes are in none.
    pub(super) fn find(&mut self, edges: impl Iterator<Item = (NodeId, NodeId)> + Clone) {
        for node in self.touched.drain(..) {
            let index = node.index();
            (self.parent[index], self.first[index], self.contacts[index]) = (node.0, NONE, 0);
        }
        self.roots.clear();
        for (a, b) in edges.clone() {
            self.touched.extend([a, b]);
            let (a, b) = (self.root(a.0), self.root(b.0));
            self.parent[a.max(b) as usize] = a.min(b);
        }
        for (a, _) in edges {
            let root = self.root(a.0);
            self.contacts[root as usize] += 1;
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

    /// The members of a component, in ascending order, into `members`; returns how many contacts
    /// it has.
    pub(super) fn members(&self, component: usize, members: &mut Vec<NodeId>) -> u64 {
        members.clear();
        let root = self.roots[component] as usize;
        let mut node = self.first[root];
        while node != NONE {
            members.push(NodeId(node));
            node = self.next[node as usize];
        }
        self.contacts[root].into()
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
                    let contacts = components.members(component, &mut members);
                    (members.iter().map(|node| node.0).collect::<Vec<_>>(), contacts)
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(
            find(&[(5, 6), (1, 2), (6, 1), (0, 7)]),
            [(vec![0, 7], 1), (vec![1, 2, 5, 6], 3)]
        );
        assert_eq!(find(&[(2, 3)]), [(vec![2, 3], 1)]);
        assert_eq!(find(&[]), []);
    }
}
