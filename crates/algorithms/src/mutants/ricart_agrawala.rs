//! Broken variants of Ricart-Agrawala.

use catraca_core::{Algorithm, Effects, NodeId, Phase, property};
use catraca_topology::Members;

use super::{Caught, Listed, Mutation};
use crate::ricart_agrawala::{Msg, RicartAgrawala};

pub(crate) const ALL: &[&dyn Mutation<RicartAgrawala>] = &[&NoTieBreak, &ReplyWhileInside];

/// Answers any request whose time is not larger than its own.
struct NoTieBreak;

impl Mutation<RicartAgrawala> for NoTieBreak {
    fn listed(&self) -> Listed {
        Listed {
            name: "no-tie-break",
            breaks: "two requests with the same time answer each other; the ids do not decide",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn on_message(
        &self,
        node: &mut RicartAgrawala,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        if node.phase == Phase::Waiting && message == Msg::Request(node.requested) {
            return out.send(from, Msg::Reply);
        }
        node.on_message(config, from, message, out);
    }
}

/// Answers at once even while it is inside.
struct ReplyWhileInside;

impl Mutation<RicartAgrawala> for ReplyWhileInside {
    fn listed(&self) -> Listed {
        Listed {
            name: "reply-while-inside",
            breaks: "a node answers requests while it is inside",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn on_message(
        &self,
        node: &mut RicartAgrawala,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Request(time) if node.phase == Phase::Inside => {
                node.clock.witness(time);
                out.send(from, Msg::Reply);
            }
            _ => node.on_message(config, from, message, out),
        }
    }
}
