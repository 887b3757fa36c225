//! Broken variants of the coordinator.

use catraca_core::{Algorithm, Effects, NodeId, property};
use catraca_topology::Members;

use super::{Caught, Listed, Mutation};
use crate::coordinator::{Coordinator, Msg};

pub(crate) const ALL: &[&dyn Mutation<Coordinator>] =
    &[&GrantsWithoutWaiting, &ForgetsQueueOnRelease];

/// Takes the critical section for free whenever a request arrives.
struct GrantsWithoutWaiting;

impl Mutation<Coordinator> for GrantsWithoutWaiting {
    fn listed(&self) -> Listed {
        Listed {
            name: "grants-without-waiting",
            breaks: "the coordinator grants a request although a node is inside",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn on_message(
        &self,
        node: &mut Coordinator,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        if let (Msg::Request, Some(state)) = (&message, &mut node.state) {
            state.holder = None;
        }
        node.on_message(config, from, message, out);
    }
}

/// Looks at the queue when a request arrives, but not when the holder leaves.
struct ForgetsQueueOnRelease;

impl Mutation<Coordinator> for ForgetsQueueOnRelease {
    fn listed(&self) -> Listed {
        Listed {
            name: "forgets-queue-on-release",
            breaks: "a release does not let the next one in",
            caught: Caught::Checked {
                nodes: 2,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_message(
        &self,
        node: &mut Coordinator,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match (&message, &mut node.state) {
            (Msg::Release, Some(state)) => state.holder = None,
            _ => node.on_message(config, from, message, out),
        }
    }
}
