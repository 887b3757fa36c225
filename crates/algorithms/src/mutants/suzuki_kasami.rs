//! Broken variants of Suzuki-Kasami.

use catraca_core::{Algorithm, Effects, NodeId, Phase, property};
use catraca_topology::Members;

use super::{Caught, Listed, Mutation};
use crate::suzuki_kasami::{Msg, SuzukiKasami};

pub(crate) const ALL: &[&dyn Mutation<SuzukiKasami>] =
    &[&TokenCloned, &ForgetsServed, &ServesOldRequests];

/// Sends a copy of its token and keeps it.
struct TokenCloned;

impl Mutation<SuzukiKasami> for TokenCloned {
    fn listed(&self) -> Listed {
        Listed {
            name: "token-cloned",
            breaks: "an idle holder that is asked sends a copy of the token and keeps its own",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::ONE_TOKEN },
        }
    }

    fn on_message(
        &self,
        node: &mut SuzukiKasami,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        let kept = node.token.clone();
        node.on_message(config, from, message, out);
        node.token = node.token.take().or(kept);
    }
}

/// Leaves without writing into the token that its request has been served.
struct ForgetsServed;

impl Mutation<SuzukiKasami> for ForgetsServed {
    fn listed(&self) -> Listed {
        Listed {
            name: "forgets-served",
            breaks: "a leaving node does not record its request as served, so it looks unserved to others",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::ONE_TOKEN },
        }
    }

    fn on_release(&self, node: &mut SuzukiKasami, config: &Members, out: &mut Effects<Msg>) {
        let me = node.me.index();
        let requested = node.rn[me];
        node.rn[me] = node.token.as_ref().map_or(requested, |token| token.ln[me]);
        node.on_release(config, out);
        node.rn[me] = requested;
    }
}

/// Gives its idle token to any request, served elsewhere or not.
struct ServesOldRequests;

impl Mutation<SuzukiKasami> for ServesOldRequests {
    fn listed(&self) -> Listed {
        Listed {
            name: "serves-old-requests",
            breaks: "an idle holder does not look at request numbers and sends the token to one that is served",
            caught: Caught::Checked { nodes: 3, requests: 1, property: property::ONE_TOKEN },
        }
    }

    fn on_message(
        &self,
        node: &mut SuzukiKasami,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        if matches!(message, Msg::Request(_))
            && node.phase == Phase::Idle
            && let Some(token) = node.token.take()
        {
            return out.send(from, Msg::Token(token));
        }
        node.on_message(config, from, message, out);
    }
}
