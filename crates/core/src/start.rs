//! Where a group begins: who is inside already, and where the token is.

use alloc::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Claim, NodeId, Phase};

/// The state of affairs in which all nodes of a group are created.
///
/// A group can be restarted while somebody is inside; the new group has to begin with that holder
/// inside, and with the token, where there is one, at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    inside: BTreeMap<NodeId, Claim>,
    token: NodeId,
}

impl Start {
    /// Nobody is inside; the token is at node 0.
    pub fn idle() -> Self {
        Self::token_at(NodeId(0))
    }

    /// Nobody is inside; the token is at `node`.
    pub fn token_at(node: NodeId) -> Self {
        Start { inside: BTreeMap::new(), token: node }
    }

    /// `node` is inside, with the token.
    pub fn inside(node: NodeId) -> Self {
        Self::token_at(node).and_inside(node, Claim::single())
    }

    /// The same, and `node` is inside with `claim`.
    pub fn and_inside(mut self, node: NodeId, claim: Claim) -> Self {
        self.inside.insert(node, claim);
        self
    }

    /// The node where the token is, for algorithms that have one.
    pub fn token(&self) -> NodeId {
        self.token
    }

    /// What `node` holds, if it is inside.
    pub fn claim_of(&self, node: NodeId) -> Option<&Claim> {
        self.inside.get(&node)
    }

    /// Whether `node` is inside.
    pub fn is_inside(&self, node: NodeId) -> bool {
        self.inside.contains_key(&node)
    }

    /// Where the application at `node` stands: inside or idle, since nobody waits yet.
    pub fn phase_of(&self, node: NodeId) -> Phase {
        if self.is_inside(node) { Phase::Inside } else { Phase::Idle }
    }

    /// Everybody who is inside, in ascending order.
    pub fn holders(&self) -> impl Iterator<Item = (NodeId, &Claim)> {
        self.inside.iter().map(|(&node, claim)| (node, claim))
    }
}

impl Default for Start {
    fn default() -> Self {
        Self::idle()
    }
}
