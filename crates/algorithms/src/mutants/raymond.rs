//! Broken variants of Raymond's tree.

use catraca_core::{Algorithm, Effects, Fence, NodeId, property};
use catraca_topology::Tree;

use super::{Caught, Listed, Mutation};
use crate::raymond::{Msg, Raymond};

pub(crate) const ALL: &[&dyn Mutation<Raymond>] =
    &[&TokenCloned, &ForgetsToAskAgain, &FenceLeftBehind];

/// Sends a copy of its token and keeps it.
struct TokenCloned;

impl Mutation<Raymond> for TokenCloned {
    fn listed(&self) -> Listed {
        Listed {
            name: "token-cloned",
            breaks: "an idle holder that is asked sends a copy of the token and keeps its own",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::ONE_TOKEN },
        }
    }

    fn on_message(
        &self,
        node: &mut Raymond,
        config: &Tree,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        let (had, fence) = (node.holds_token(), node.fence);
        node.on_message(config, from, message, out);
        if had && !node.holds_token() {
            node.holder = node.me;
            node.fence = fence;
        }
    }
}

/// Sends the token away without a request behind it for those who still wait.
struct ForgetsToAskAgain;

impl Mutation<Raymond> for ForgetsToAskAgain {
    fn listed(&self) -> Listed {
        Listed {
            name: "forgets-to-ask-again",
            breaks: "a leaving node sends no request behind the token for the rest of its queue",
            caught: Caught::Checked {
                nodes: 3,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_release(&self, node: &mut Raymond, _config: &Tree, out: &mut Effects<Msg>) {
        node.using = false;
        node.assign_privilege(out);
    }
}

/// Takes the token without the count that came with it.
struct FenceLeftBehind;

impl Mutation<Raymond> for FenceLeftBehind {
    fn listed(&self) -> Listed {
        Listed {
            name: "fence-left-behind",
            breaks: "a node that gets the token starts to count entries again from the beginning",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::FENCES_INCREASE },
        }
    }

    fn on_message(
        &self,
        node: &mut Raymond,
        config: &Tree,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        let message = match message {
            Msg::Token(_) => Msg::Token(Fence::NONE),
            Msg::Request => Msg::Request,
        };
        node.on_message(config, from, message, out);
    }
}
