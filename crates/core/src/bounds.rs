//! By what a message from the network is judged before any node sees it.

use crate::{Claim, Fence, NodeId, NodeSet, ResourceId};

/// Counters in messages stay below this, so that a node can go on counting from any of them without
/// an overflow. Nobody counts so far: at a million steps a second it takes more than 100 000 years.
const COUNT_END: u64 = 1 << 62;

/// The size of a group. [`Message::is_possible`](crate::Message::is_possible) compares every field of
/// a message with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    nodes: u32,
    resources: u32,
}

impl Bounds {
    /// The bounds of a group of `nodes` that share `resources`.
    pub const fn new(nodes: u32, resources: u32) -> Self {
        Bounds { nodes, resources }
    }

    /// The same nodes with one resource, as an instance of a group with a lock per resource sees it.
    pub const fn of_one_resource(self) -> Self {
        Bounds { resources: 1, ..self }
    }

    /// How many nodes there are.
    pub const fn nodes(self) -> u32 {
        self.nodes
    }

    /// Whether `node` exists.
    pub const fn has_node(self, node: NodeId) -> bool {
        node.0 < self.nodes
    }

    /// Whether all of `nodes` exist.
    pub fn has_nodes(self, nodes: &NodeSet) -> bool {
        nodes.last().is_none_or(|node| self.has_node(node))
    }

    /// Whether `resource` exists.
    pub const fn has_resource(self, resource: ResourceId) -> bool {
        resource.0 < self.resources
    }

    /// Whether all resources of `claim` exist.
    pub fn has_claim(self, claim: &Claim) -> bool {
        claim.resources().last().is_none_or(|&resource| self.has_resource(resource))
    }

    /// Whether a node can have counted up to `count`.
    pub const fn has_count(self, count: u64) -> bool {
        count < COUNT_END
    }

    /// Whether a logical clock can show `time`: also the fence made of a later time is a number.
    pub fn has_time(self, time: u64) -> bool {
        time < COUNT_END / u64::from(self.nodes.max(1))
    }

    /// Whether an entry can have had `fence`.
    pub const fn has_fence(self, fence: Fence) -> bool {
        self.has_count(fence.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamp;

    const GROUP: Bounds = Bounds::new(3, 2);

    #[test]
    fn nodes_and_resources_are_numbered_from_zero() {
        assert!(GROUP.has_node(NodeId(2)) && !GROUP.has_node(NodeId(3)));
        assert!(GROUP.has_resource(ResourceId(1)) && !GROUP.has_resource(ResourceId(2)));
        assert!(!GROUP.of_one_resource().has_resource(ResourceId(1)));
        let claim = |resources: [u32; 2]| Claim::of(resources.map(ResourceId));
        assert!(GROUP.has_claim(&claim([0, 1])) && !GROUP.has_claim(&claim([0, 2])));
        let set = |nodes: [u32; 2]| NodeSet::from_iter(nodes.map(NodeId));
        assert!(GROUP.has_nodes(&set([0, 2])) && !GROUP.has_nodes(&set([0, 3])));
        assert!(GROUP.has_claim(&Claim::of([])) && GROUP.has_nodes(&NodeSet::new()));
    }

    #[test]
    fn the_largest_possible_numbers_can_be_counted_on_from() {
        let times = [1, 7, 1_000_000].map(|nodes| (nodes, COUNT_END / u64::from(nodes)));
        for (nodes, end) in times {
            let bounds = Bounds::new(nodes, 1);
            assert!(bounds.has_time(end - 1) && !bounds.has_time(end));
            let latest = Stamp { time: end - 1, node: NodeId(nodes - 1) }.fence(nodes);
            assert!(Stamp { time: end, node: NodeId(0) }.fence(nodes) > latest, "{nodes}");
        }
        assert!(GROUP.has_fence(Fence(COUNT_END - 1)) && !GROUP.has_fence(Fence(COUNT_END)));
    }
}
