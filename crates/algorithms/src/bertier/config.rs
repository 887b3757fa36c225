//! The clusters of a group, as its nodes see them.

use catraca_core::NodeId;
use catraca_topology::Clusters;

/// The clusters, and how long a remote request can be overtaken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Who is in which cluster, and the proxies.
    pub(crate) clusters: Clusters,
    /// How often in a row a local request may overtake a remote one.
    pub(crate) max_preempt: u32,
    /// How many hops a remote request looks for the end of the local queue.
    pub(crate) max_hops: u32,
}

impl Config {
    fn knows(&self, node: NodeId) -> bool {
        node.0 < self.clusters.nodes()
    }

    /// Whether `node` exists and is in another cluster than `me`.
    pub(super) fn is_remote(&self, me: NodeId, node: NodeId) -> bool {
        self.knows(node) && !self.clusters.are_together(me, node)
    }

    /// Whether `node` exists and is another one of the cluster of `me`.
    pub(super) fn is_local(&self, me: NodeId, node: NodeId) -> bool {
        self.knows(node) && node != me && self.clusters.are_together(me, node)
    }
}
