//! Where a group begins: who is inside already, and where the token is.

use alloc::collections::BTreeMap;
use core::fmt;

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

/// Written as `idle`, as `token:2`, or as who is inside: `inside:1`, or `inside:0=0,1|2=2` with
/// what each holds. The token is at the first of them, unless it is said, as in
/// `inside:0=0|2=2 token:1`.
impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.inside.keys().next() else {
            return match self.token {
                NodeId(0) => f.write_str("idle"),
                token => write!(f, "token:{token}"),
            };
        };
        for (node, claim) in &self.inside {
            f.write_str(if node == first { "inside:" } else { "|" })?;
            write!(f, "{node}")?;
            if *claim != Claim::single() {
                write!(f, "={claim}")?;
            }
        }
        if self.token != *first {
            write!(f, " token:{}", self.token)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::ResourceId;

    #[test]
    fn a_start_is_written_as_who_is_inside_and_where_the_token_is() {
        let [first, second] = [0, 2].map(NodeId);
        let two = Claim::of([0, 1].map(ResourceId));
        let together = Start::inside(first).and_inside(second, two);
        assert_eq!(together.to_string(), "inside:0|2=0,1");
        let elsewhere = Start::token_at(NodeId(1)).and_inside(first, Claim::single());
        assert_eq!(elsewhere.to_string(), "inside:0 token:1");
        assert_eq!(
            [Start::idle(), Start::token_at(second)].map(|start| start.to_string()),
            ["idle", "token:2"]
        );
    }
}
