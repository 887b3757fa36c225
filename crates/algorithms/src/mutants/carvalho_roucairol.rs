//! Broken variants of Carvalho-Roucairol.

use catraca_core::{Algorithm, Claim, Effect, Effects, NodeId, Phase, Stamp, property};
use catraca_topology::Members;

use super::{Caught, Listed, Mutation};
use crate::carvalho_roucairol::{CarvalhoRoucairol, Msg};

pub(crate) const ALL: &[&dyn Mutation<CarvalhoRoucairol>] =
    &[&KeepsAuthorisationAfterReply, &NoReask, &FenceFromRequest];

/// Gives a permission away and counts on it all the same.
struct KeepsAuthorisationAfterReply;

impl Mutation<CarvalhoRoucairol> for KeepsAuthorisationAfterReply {
    fn listed(&self) -> Listed {
        Listed {
            name: "keeps-authorisation-after-reply",
            breaks: "a node that answers a request keeps the permission that it gives away",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn on_message(
        &self,
        node: &mut CarvalhoRoucairol,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Request(time) if !node.goes_before(Stamp { time, node: from }) => {
                node.clock.witness(time);
                out.send(from, Msg::Reply(node.clock.now()));
            }
            _ => node.on_message(config, from, message, out),
        }
    }
}

/// Yields to an earlier request, and waits for a permission that it never asks for.
struct NoReask;

impl Mutation<CarvalhoRoucairol> for NoReask {
    fn listed(&self) -> Listed {
        Listed {
            name: "no-reask",
            breaks: "a waiting node that yields a permission does not ask for it again",
            caught: Caught::Checked {
                nodes: 3,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_message(
        &self,
        node: &mut CarvalhoRoucairol,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Request(time)
                if node.phase == Phase::Waiting
                    && !node.goes_before(Stamp { time, node: from }) =>
            {
                node.clock.witness(time);
                node.yield_permission(from, out);
            }
            _ => node.on_message(config, from, message, out),
        }
    }
}

/// Numbers an entry by its request, as is right in Ricart-Agrawala.
struct FenceFromRequest;

impl FenceFromRequest {
    fn renumber(
        node: &CarvalhoRoucairol,
        config: &Members,
        mut done: Effects<Msg>,
        out: &mut Effects<Msg>,
    ) {
        for effect in done.drain() {
            match effect {
                Effect::Granted(_) => out.granted(node.my_request().fence(config.nodes)),
                Effect::Send { to, message } => out.send(to, message),
                _ => out.anomaly("an effect that this algorithm does not have"),
            }
        }
    }
}

impl Mutation<CarvalhoRoucairol> for FenceFromRequest {
    fn listed(&self) -> Listed {
        Listed {
            name: "fence-from-request",
            breaks: "the fence is made of the request's time instead of a new time on entry",
            caught: Caught::Checked { nodes: 2, requests: 2, property: property::FENCES_INCREASE },
        }
    }

    fn on_request(
        &self,
        node: &mut CarvalhoRoucairol,
        config: &Members,
        claim: Claim,
        out: &mut Effects<Msg>,
    ) {
        let mut done = Effects::new();
        node.on_request(config, claim, &mut done);
        Self::renumber(node, config, done, out);
    }

    fn on_message(
        &self,
        node: &mut CarvalhoRoucairol,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        let mut done = Effects::new();
        node.on_message(config, from, message, &mut done);
        Self::renumber(node, config, done, out);
    }
}
