//! Broken variants of Lamport's algorithm.

use catraca_core::{Algorithm, Claim, Effects, NodeId, Phase, property};
use catraca_topology::Members;

use super::{Caught, Listed, Mutation};
use crate::lamport::{Lamport, Msg};

pub(crate) const ALL: &[&dyn Mutation<Lamport>] =
    &[&EntersUnheard, &NoTieBreak, &OnlyRequestsCount, &ReleaseNotSent];

/// Keeps rule L2 and drops rule L1.
struct EntersUnheard;

impl Mutation<Lamport> for EntersUnheard {
    fn listed(&self) -> Listed {
        Listed {
            name: "enters-unheard",
            breaks: "a node enters as soon as it heads its own queue, without a message from the others",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn on_request(
        &self,
        node: &mut Lamport,
        config: &Members,
        claim: Claim,
        out: &mut Effects<Msg>,
    ) {
        node.on_request(config, claim, out);
        node.heard = NodeId::all(config.nodes).collect();
        node.awaited = 0;
        node.enter_if_first(config, out);
    }
}

/// Takes its own request for the first among those of the same time.
struct NoTieBreak;

impl Mutation<Lamport> for NoTieBreak {
    fn listed(&self) -> Listed {
        Listed {
            name: "no-tie-break",
            breaks: "two requests with the same time each head their own queue; the ids do not decide",
            caught: Caught::Checked { nodes: 2, requests: 1, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn on_message(
        &self,
        node: &mut Lamport,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        node.on_message(config, from, message, out);
        let is_tied = node.queue.front().is_some_and(|first| first.time == node.requested);
        if node.phase == Phase::Waiting && node.awaited == 0 && is_tied {
            node.enter(config, out);
        }
    }
}

/// Takes rule L1 as S2 words it.
struct OnlyRequestsCount;

impl Mutation<Lamport> for OnlyRequestsCount {
    fn listed(&self) -> Listed {
        Listed {
            name: "only-requests-count",
            breaks: "for rule L1 a node counts only the REQUESTs of the others, as S2 words it, not any message",
            caught: Caught::Checked {
                nodes: 2,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_message(
        &self,
        node: &mut Lamport,
        config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Request(_) => node.on_message(config, from, message, out),
            Msg::Reply(time) => node.clock.witness(time),
            Msg::Release(time) => {
                node.clock.witness(time);
                node.dequeue(from, out);
                node.enter_if_first(config, out);
            }
        }
    }
}

/// Takes its request out of its own queue and sends no release.
struct ReleaseNotSent;

impl Mutation<Lamport> for ReleaseNotSent {
    fn listed(&self) -> Listed {
        Listed {
            name: "release-not-sent",
            breaks: "a node that leaves does not tell the others",
            caught: Caught::Checked {
                nodes: 2,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_release(&self, node: &mut Lamport, config: &Members, _out: &mut Effects<Msg>) {
        node.on_release(config, &mut Effects::new());
    }
}
