//! One instant of a run, for pictures and tests.

use catraca_algorithms::relabelling::Pending;
use catraca_core::{NodeId, Phase};

/// What can be seen of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Idle, requesting or using.
    pub phase: Phase,
    /// Whether it has the token.
    pub has_token: bool,
    /// The requests that it takes for unserved.
    pub pending: Vec<Pending>,
}

/// The graph and the labels at the end of an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The instant.
    pub at: u64,
    /// Who are neighbours.
    pub edges: Vec<(NodeId, NodeId)>,
    /// By node.
    pub nodes: Vec<NodeView>,
}
