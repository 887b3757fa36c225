//! What the nodes say to each other, and the token.

use catraca_core::{Bounds, Fence, Message, NodeId};
use serde::{Deserialize, Serialize};

use super::MAX_HOPS;

/// What the nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// Within a cluster, along `owner`: 'This node of ours wants to enter.'
    Request(NodeId),
    /// To one's proxy: 'The token has left us; ask outside for this node of ours.'
    Outside(NodeId),
    /// From proxy to proxy, along `last`: 'This node of another cluster wants to enter.'
    Remote(NodeId),
    /// Within a cluster, along `owner`: 'This node of another cluster comes after our last one.'
    Behind {
        /// The node of the other cluster.
        node: NodeId,
        /// How often this has been passed on.
        hops: u32,
    },
    /// To one's proxy: 'Local requests have kept this one of another cluster from our last node.'
    Overtaken(NodeId),
    /// As `Behind`, but later local requests go to the proxy instead of overtaking it.
    Turn(NodeId),
    /// 'You may enter.'
    Token {
        /// The token itself.
        token: Token,
        /// The node of another cluster that comes after this cluster, where it is known.
        remote: Option<NodeId>,
    },
}

impl Message for Msg {
    const KINDS: &'static [&'static str] =
        &["request", "outside", "remote", "behind", "overtaken", "turn", "token"];

    fn kind(&self) -> usize {
        match self {
            Msg::Request(_) => 0,
            Msg::Outside(_) => 1,
            Msg::Remote(_) => 2,
            Msg::Behind { .. } => 3,
            Msg::Overtaken(_) => 4,
            Msg::Turn(_) => 5,
            Msg::Token { .. } => 6,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match *self {
            Msg::Request(node)
            | Msg::Outside(node)
            | Msg::Remote(node)
            | Msg::Overtaken(node)
            | Msg::Turn(node) => bounds.has_node(node),
            Msg::Behind { node, hops } => bounds.has_node(node) && hops <= MAX_HOPS,
            // Any count of overtakings is one that some group allows.
            Msg::Token { token: Token { fence, nb_preempt: _ }, remote } => {
                bounds.has_fence(fence) && remote.is_none_or(|node| bounds.has_node(node))
            }
        }
    }

    fn carries_token(&self) -> bool {
        matches!(self, Msg::Token { .. })
    }
}

/// The token. There is one, and it is moved from node to node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token {
    /// The fence of the last entry.
    pub(crate) fence: Fence,
    /// How many local requests have overtaken the remote one that waits.
    pub(crate) nb_preempt: u32,
}
