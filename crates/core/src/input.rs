//! What a driver may tell a node.

use serde::{Deserialize, Serialize};

use crate::{Claim, NodeId, TimerTag};

/// One thing that happens to a node.
///
/// Inputs and messages are different types: nothing local can arrive from the network.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Input<M> {
    /// The driver is ready to carry out effects. Given once, before anything else.
    Start,
    /// The application wants to enter. Only while it is neither waiting nor inside.
    Request(Claim),
    /// The application leaves. Only while it is inside.
    Release,
    /// A message has arrived.
    Message {
        /// The node that sent it.
        from: NodeId,
        /// What it says.
        message: M,
    },
    /// A timer that the node has set has run out.
    Timer(TimerTag),
    /// The failure detector takes a node for crashed.
    Suspect(NodeId),
    /// The failure detector takes a suspicion back.
    Trust(NodeId),
}

/// Where an application stands with respect to one lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It wants nothing.
    #[default]
    Idle,
    /// It has asked and has not been granted.
    Waiting,
    /// It has been granted and has not released.
    Inside,
}
