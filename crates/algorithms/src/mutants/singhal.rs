//! Broken variants of Singhal's heuristic.

use catraca_core::{Algorithm, Effects, NodeId, Start, property};
use catraca_topology::Members;

use super::{Caught, Listed, Mutation};
use crate::singhal::{Msg, Singhal, Site};

pub(crate) const ALL: &[&dyn Mutation<Singhal>] =
    &[&NoStaircase, &TokenCloned, &NeverAsksBack, &DropsOutdated, &LearnsOnLeaving];

/// Starts with the guess that nobody is requesting.
struct NoStaircase;

impl Mutation<Singhal> for NoStaircase {
    fn listed(&self) -> Listed {
        Listed {
            name: "no-staircase",
            breaks: "at the start everybody takes everybody for idle, so a requester asks nobody",
            caught: Caught::Checked {
                nodes: 2,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn create(&self, me: NodeId, config: &Members, start: &Start) -> Singhal {
        let mut node = Singhal::new(me, config, start);
        for site in node.sv.iter_mut().filter(|site| **site == Site::Requesting) {
            *site = Site::Neither;
        }
        node
    }
}

/// Sends a copy of its token and keeps it.
struct TokenCloned;

impl Mutation<Singhal> for TokenCloned {
    fn listed(&self) -> Listed {
        Listed {
            name: "token-cloned",
            breaks: "an idle holder that is asked sends a copy of the token and keeps its own",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::ONE_TOKEN },
        }
    }

    fn on_message(
        &self,
        node: &mut Singhal,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        let kept = node.token.clone();
        node.on_message(config, from, message, out);
        if node.token.is_none() && kept.is_some() {
            node.token = kept;
            node.sv[node.me.index()] = Site::Holding;
        }
    }
}

/// Takes note of other requesters without asking them.
struct NeverAsksBack;

impl Mutation<Singhal> for NeverAsksBack {
    fn listed(&self) -> Listed {
        Listed {
            name: "never-asks-back",
            breaks: "a waiting node does not ask a requester that it had taken for idle",
            caught: Caught::Checked {
                nodes: 3,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_message(
        &self,
        node: &mut Singhal,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        if let (Msg::Request(_), Site::Requesting) = (&message, node.sv[node.me.index()]) {
            // A node that is known to be requesting is not asked back.
            node.sv[from.index()] = Site::Requesting;
        }
        node.on_message(config, from, message, out);
    }
}

/// Takes no notice of outdated requests, as the usual rules do.
struct DropsOutdated;

impl Mutation<Singhal> for DropsOutdated {
    fn listed(&self) -> Listed {
        Listed {
            name: "drops-outdated",
            breaks: "a request that the token was faster than is dropped, as the usual rules have it",
            caught: Caught::Checked {
                nodes: 3,
                requests: 2,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_message(
        &self,
        node: &mut Singhal,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Request(number) if number <= node.sn[from.index()] => {}
            _ => node.on_message(config, from, message, out),
        }
    }
}

/// Learns from the token when it leaves, as the usual rules do.
struct LearnsOnLeaving;

impl Mutation<Singhal> for LearnsOnLeaving {
    fn listed(&self) -> Listed {
        Listed {
            name: "learns-on-leaving",
            breaks: "a node learns from the token on leaving, and forgets who asked while it was inside",
            caught: Caught::Checked {
                nodes: 3,
                requests: 2,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_message(
        &self,
        node: &mut Singhal,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Token(token) => node.enter(token, out),
            Msg::Request(_) => node.on_message(config, from, message, out),
        }
    }

    fn on_release(&self, node: &mut Singhal, config: &Members, out: &mut Effects<Msg>) {
        if let Some(mut token) = node.token.take() {
            node.update_token(&mut token);
            node.learn(&token);
            node.token = Some(token);
        }
        node.on_release(config, out);
    }
}
