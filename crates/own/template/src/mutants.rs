//! Ways to break the algorithm, each in one handler. What catches them shows that tests can fail.

use catraca_core::{Algorithm, Effects, NodeId, Phase, property};
use catraca_own::{Caught, Listed, Mutation};

use crate::algorithm::{Config, Msg, Node};

/// All of them, for `--mutant`.
pub(crate) const ALL: &[&dyn Mutation<Node>] = &[&KeepsACopy, &PassesBy];

/// A node that is inside passes the token on when it leaves, and keeps it too.
struct KeepsACopy;

impl Mutation<Node> for KeepsACopy {
    fn listed(&self) -> Listed {
        Listed {
            name: "keeps-a-copy",
            breaks: "Whoever leaves keeps the token that it passes on.",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::ONE_TOKEN },
        }
    }

    fn on_release(&self, node: &mut Node, config: &Config, out: &mut Effects<Msg>) {
        let token = node.token;
        node.on_release(config, out);
        node.token = token;
    }
}

/// Node 1 passes the token on although it waits for it. Messages go on for ever, so this is no
/// deadlock: the checker finds the cycle in which node 1 starves.
struct PassesBy;

impl Mutation<Node> for PassesBy {
    fn listed(&self) -> Listed {
        Listed {
            name: "passes-by",
            breaks: "Node 1 passes the token on although it waits for it.",
            caught: Caught::Checked {
                nodes: 2,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_message(
        &self,
        node: &mut Node,
        config: &Config,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        if node.me == NodeId(1) && node.phase == Phase::Waiting {
            let Msg::Token { entries } = message;
            node.token = Some(entries);
            return node.pass_on(config, out);
        }
        node.on_message(config, from, message, out);
    }
}
