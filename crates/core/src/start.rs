//! Where a group begins: who is inside already, and where the token is.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Claim, ClaimError, NodeId, Phase};

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

/// Why a text is no start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Not one of the forms.
    #[error(
        "'{0}' is no start: say idle, inside:NODE or token:NODE, as in inside:0, or name claims as in inside:0=0,1|2=2"
    )]
    Form(String),
    /// A node that is named twice.
    #[error("'{0}' has a node inside twice; name it once, with all that it holds")]
    Twice(String),
    /// A claim that is none.
    #[error(transparent)]
    Claim(#[from] ClaimError),
}

/// Written as `idle`, as `token:2`, or as who is inside: `inside:1`, or `inside:0=0,1|2=2` with
/// what each holds. The token is at the first of them, unless it is said, as in
/// `inside:0=0|2=2 token:1`.
impl FromStr for Start {
    type Err = StartError;

    fn from_str(text: &str) -> Result<Self, StartError> {
        let form = || StartError::Form(text.to_string());
        let node = |word: &str| word.trim().parse().map(NodeId).map_err(|_| form());
        if text == "idle" {
            return Ok(Start::idle());
        }
        let (mut inside, mut token) = (BTreeMap::new(), None);
        let mut first = None;
        for part in text.split_whitespace() {
            match part.split_once(':').ok_or_else(form)? {
                ("token", at) if token.is_none() => token = Some(node(at)?),
                ("inside", holders) if first.is_none() => {
                    for holder in holders.split('|') {
                        let (at, claim) = match holder.split_once('=') {
                            Some((at, claim)) => (node(at)?, claim.parse()?),
                            None => (node(holder)?, Claim::single()),
                        };
                        first.get_or_insert(at);
                        if inside.insert(at, claim).is_some() {
                            return Err(StartError::Twice(text.to_string()));
                        }
                    }
                }
                _ => return Err(form()),
            }
        }
        Ok(Start { inside, token: token.or(first).ok_or_else(form)? })
    }
}

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
    use super::*;
    use crate::ResourceId;

    #[test]
    fn a_start_reads_back_as_it_is_written() {
        let texts = ["idle", "token:2", "inside:1", "inside:0=0,1|2=2", "inside:0|2=2 token:1"];
        for text in texts {
            assert_eq!(text.parse::<Start>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_token_is_at_the_first_that_is_named_unless_it_is_said() {
        let start: Start = "inside:2=2|0=0,1".parse().unwrap();
        assert_eq!(start.token(), NodeId(2));
        assert_eq!(start.claim_of(NodeId(0)), Some(&Claim::of([0, 1].map(ResourceId))));
        let elsewhere: Start = "inside:2=2|0=0 token:1".parse().unwrap();
        assert_eq!(elsewhere.token(), NodeId(1));
    }

    #[test]
    fn what_is_no_start_is_refused() {
        let texts = ["", "asleep", "inside:", "inside:x", "token:1 token:2", "inside:0 inside:1"];
        for text in texts {
            assert_eq!(text.parse::<Start>(), Err(StartError::Form(text.into())));
        }
        assert!(matches!("inside:0=0|0=1".parse::<Start>(), Err(StartError::Twice(_))));
        assert!(matches!("inside:0=1,1".parse::<Start>(), Err(StartError::Claim(_))));
    }
}
