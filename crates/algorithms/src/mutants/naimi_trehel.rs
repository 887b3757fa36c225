//! Broken variants of Naimi-Trehel.

use catraca_core::{Algorithm, Effects, Fence, NodeId, Phase, property};
use catraca_topology::Members;

use super::{Caught, Listed, Mutation};
use crate::naimi_trehel::{Msg, NaimiTrehel};

pub(crate) const ALL: &[&dyn Mutation<NaimiTrehel>] =
    &[&TokenCloned, &NextOverwritten, &FenceLeftBehind];

/// Sends a copy of its token and keeps it.
struct TokenCloned;

impl Mutation<NaimiTrehel> for TokenCloned {
    fn listed(&self) -> Listed {
        Listed {
            name: "token-cloned",
            breaks: "an idle holder that is asked sends a copy of the token and keeps its own",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::ONE_TOKEN },
        }
    }

    fn on_message(
        &self,
        node: &mut NaimiTrehel,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        let (had, fence) = (node.token, node.fence);
        node.on_message(config, from, message, out);
        if had && !node.token {
            node.token = true;
            node.fence = fence;
        }
    }
}

/// Stays the root after it has been asked.
struct NextOverwritten;

impl Mutation<NaimiTrehel> for NextOverwritten {
    fn listed(&self) -> Listed {
        Listed {
            name: "next-overwritten",
            breaks: "a root that is waiting or inside does not point to the node that asks it, and forgets all but \
         the last of them",
            caught: Caught::Checked {
                nodes: 3,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_release(&self, node: &mut NaimiTrehel, config: &Members, out: &mut Effects<Msg>) {
        // Without the token it can no longer be the root: its own next request would go to itself.
        node.last = node.next.unwrap_or(node.last);
        node.on_release(config, out);
    }

    fn on_message(
        &self,
        node: &mut NaimiTrehel,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        let stays = node.last == node.me && node.phase != Phase::Idle;
        node.on_message(config, from, message, out);
        if stays {
            node.last = node.me;
        }
    }
}

/// Takes the token without the count that came with it.
struct FenceLeftBehind;

impl Mutation<NaimiTrehel> for FenceLeftBehind {
    fn listed(&self) -> Listed {
        Listed {
            name: "fence-left-behind",
            breaks: "a node that gets the token starts to count entries again from the beginning",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::FENCES_INCREASE },
        }
    }

    fn on_message(
        &self,
        node: &mut NaimiTrehel,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        let message = match message {
            Msg::Token(_) => Msg::Token(Fence::NONE),
            Msg::Request(requester) => Msg::Request(requester),
        };
        node.on_message(config, from, message, out);
    }
}
