//! Broken variants of Bertier's algorithm.

use catraca_core::{Algorithm, Effect, Effects, NodeId, Phase, property};

use super::{Caught, Listed, Mutation};
use crate::bertier::{Bertier, Config, Msg};

pub(crate) const ALL: &[&dyn Mutation<Bertier>] =
    &[&TokenCloned, &ForgetsTheRest, &ForgetsRemote, &ForgetsThatItLeft, &LocalAlwaysFirst];

/// Sends a copy of its token and keeps it.
struct TokenCloned;

impl Mutation<Bertier> for TokenCloned {
    fn listed(&self) -> Listed {
        Listed {
            name: "token-cloned",
            breaks: "an idle holder that is asked sends a copy of the token and keeps its own",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::ONE_TOKEN },
        }
    }

    fn on_message(
        &self,
        node: &mut Bertier,
        config: &Config,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        let kept = node.token.clone();
        node.on_message(config, from, message, out);
        node.token = node.token.take().or(kept);
    }
}

/// Leaves, and changes or drops what the correct node would send.
fn leave(
    node: &mut Bertier,
    config: &Config,
    out: &mut Effects<Msg>,
    change: impl Fn(Msg) -> Option<Msg>,
) {
    let mut meant = Effects::new();
    node.on_release(config, &mut meant);
    for effect in meant.drain() {
        if let Effect::Send { to, message } = effect
            && let Some(message) = change(message)
        {
            out.send(to, message);
        }
    }
}

/// Sends the token out of the cluster without asking for it again.
struct ForgetsTheRest;

impl Mutation<Bertier> for ForgetsTheRest {
    fn listed(&self) -> Listed {
        Listed {
            name: "forgets-the-rest",
            breaks: "who sends the token out of the cluster does not ask again for the local queue left behind",
            caught: Caught::Checked {
                nodes: 3,
                requests: 2,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_release(&self, node: &mut Bertier, config: &Config, out: &mut Effects<Msg>) {
        leave(node, config, out, |message| matches!(message, Msg::Token { .. }).then_some(message));
    }
}

/// Passes the token on within the cluster without the remote node that waits.
struct ForgetsRemote;

impl Mutation<Bertier> for ForgetsRemote {
    fn listed(&self) -> Listed {
        Listed {
            name: "forgets-remote",
            breaks: "the remote node that a local one overtakes is not passed on with the token",
            caught: Caught::Checked {
                nodes: 3,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_release(&self, node: &mut Bertier, config: &Config, out: &mut Effects<Msg>) {
        leave(node, config, out, |message| match message {
            Msg::Token { token, .. } => Some(Msg::Token { token, remote: None }),
            other => Some(other),
        });
    }
}

/// Does not remember that the cluster has to ask outside again.
struct ForgetsThatItLeft;

impl Mutation<Bertier> for ForgetsThatItLeft {
    fn listed(&self) -> Listed {
        Listed {
            name: "forgets-that-it-left",
            breaks: "the last of a cluster that sends the token away takes local requests as if it would return",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::NO_ANOMALY },
        }
    }

    fn on_message(
        &self,
        node: &mut Bertier,
        config: &Config,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        let had = node.holds_token() && node.phase == Phase::Idle;
        node.on_message(config, from, message, out);
        node.gone &= !had;
    }
}

/// Lets the requests of its own cluster overtake the remote one for ever.
struct LocalAlwaysFirst;

impl Mutation<Bertier> for LocalAlwaysFirst {
    fn listed(&self) -> Listed {
        Listed {
            name: "local-always-first",
            breaks: "a remote request is overtaken as long as there are local ones, whatever max_preempt says",
            // Three that keep asking, and one that waits outside. Under the bound one of the three
            // overtakes it, once.
            caught: Caught::Simulated {
                scenario: &[
                    ("clusters", "3,1"),
                    ("max-preempt", "1"),
                    ("run.entries", "1000"),
                    ("run.max-bypass", "1"),
                ],
                property: property::BOUNDED_BYPASS,
            },
        }
    }

    fn on_release(&self, node: &mut Bertier, config: &Config, out: &mut Effects<Msg>) {
        let boundless = Config { max_preempt: u32::MAX, ..config.clone() };
        node.on_release(&boundless, out);
    }
}
