//! What the nodes say to each other, and the control token.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use catraca_core::{Bounds, Claim, Fence, Message, NodeId, ResourceId};
use serde::{Deserialize, Serialize};

/// What the nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// 'This node wants the control token.' It is passed on unchanged.
    Request(NodeId),
    /// The control token.
    Control(Box<Control>),
    /// 'I want these; you are the last who has or will have them.'
    Inquire(Claim),
    /// 'Of what you asked for, here is what I do not use. The rest follows.'
    InqAck1(Claim),
    /// 'Here is the rest.'
    InqAck2(Claim),
}

impl Message for Msg {
    const KINDS: &'static [&'static str] =
        &["request", "control", "inquire", "inq-ack1", "inq-ack2"];

    fn kind(&self) -> usize {
        match self {
            Msg::Request(_) => 0,
            Msg::Control(_) => 1,
            Msg::Inquire(_) => 2,
            Msg::InqAck1(_) => 3,
            Msg::InqAck2(_) => 4,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match self {
            Msg::Request(node) => bounds.has_node(*node),
            Msg::Control(control) => {
                let Control { last, fence } = &**control;
                last.keys().all(|&resource| bounds.has_resource(resource))
                    && last.values().all(|&node| bounds.has_node(node))
                    && bounds.has_fence(*fence)
            }
            Msg::Inquire(claim) | Msg::InqAck1(claim) | Msg::InqAck2(claim) => {
                bounds.has_claim(claim)
            }
        }
    }

    fn carries_token(&self) -> bool {
        matches!(self, Msg::Control(_))
    }
}

/// The control token. There is one, and it is moved from node to node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Control {
    /// Who has, or will have, each resource's token last. The tokens of the resources that do not
    /// occur are free: they travel with the control token.
    pub(crate) last: BTreeMap<ResourceId, NodeId>,
    /// The fence of the last requester.
    pub(crate) fence: Fence,
}
