//! Broken variants of Maekawa.

use catraca_core::{Algorithm, Effects, Fence, NodeId, Phase, Stamp, property};
use catraca_topology::Quorums;

use super::{Caught, Listed, Mutation};
use crate::maekawa::{Maekawa, Msg};

pub(crate) const ALL: &[&dyn Mutation<Maekawa>] =
    &[&NoDisplacedFailed, &DeafToFailed, &GrantWhileLocked, &YieldInside, &FenceNotReturned];

/// Fails newcomers only, as the algorithm was first published.
struct NoDisplacedFailed;

impl Mutation<Maekawa> for NoDisplacedFailed {
    fn listed(&self) -> Listed {
        Listed {
            name: "no-displaced-failed",
            breaks: "the best of the waiting requests is sent no FAILED when a better one displaces it",
            caught: Caught::Checked {
                nodes: 4,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_message(
        &self,
        node: &mut Maekawa,
        config: &Quorums,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        if let (&Msg::Request(time), Some(locked)) = (&message, node.locked) {
            let theirs = Stamp { time, node: from };
            if node.waiting.last().is_some_and(|&best| theirs < best && best < locked) {
                node.clock.witness(time);
                return node.enqueue(theirs);
            }
        }
        node.on_message(config, from, message, out);
    }
}

/// Takes no notice of FAILED, and so never yields to anybody.
struct DeafToFailed;

impl Mutation<Maekawa> for DeafToFailed {
    fn listed(&self) -> Listed {
        Listed {
            name: "deaf-to-failed",
            breaks: "a requester never yields, because it takes no notice of FAILED",
            caught: Caught::Checked {
                nodes: 2,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_message(
        &self,
        node: &mut Maekawa,
        config: &Quorums,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        if !matches!(message, Msg::Failed(_)) {
            node.on_message(config, from, message, out);
        }
    }
}

/// Grants to everybody who asks.
struct GrantWhileLocked;

impl Mutation<Maekawa> for GrantWhileLocked {
    fn listed(&self) -> Listed {
        Listed {
            name: "grant-while-locked",
            breaks: "an arbiter that is locked for one request grants to others too",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn on_message(
        &self,
        node: &mut Maekawa,
        config: &Quorums,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Request(time) if node.locked.is_some() => {
                node.clock.witness(time);
                out.send(from, Msg::Grant { time, fence: node.fence });
            }
            _ => node.on_message(config, from, message, out),
        }
    }
}

/// Gives the lock back although it relies on it.
struct YieldInside;

impl Mutation<Maekawa> for YieldInside {
    fn listed(&self) -> Listed {
        Listed {
            name: "yield-inside",
            breaks: "a node yields to an INQUIRE while it is inside",
            caught: Caught::Checked { nodes: 3, requests: 1, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn on_message(
        &self,
        node: &mut Maekawa,
        config: &Quorums,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Inquire(time) if node.phase == Phase::Inside && time == node.requested => {
                out.send(from, Msg::Yield(time));
            }
            _ => node.on_message(config, from, message, out),
        }
    }
}

/// Does not learn the fence of the entry that is over.
struct FenceNotReturned;

impl Mutation<Maekawa> for FenceNotReturned {
    fn listed(&self) -> Listed {
        Listed {
            name: "fence-not-returned",
            breaks: "a RELEASE does not bring the new fence to the arbiters",
            caught: Caught::Checked { nodes: 3, requests: 1, property: property::FENCES_INCREASE },
        }
    }

    fn on_message(
        &self,
        node: &mut Maekawa,
        config: &Quorums,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        let message = match message {
            Msg::Release { time, .. } => Msg::Release { time, fence: Fence::NONE },
            other => other,
        };
        node.on_message(config, from, message, out);
    }
}
