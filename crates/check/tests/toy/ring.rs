//! A token that goes round a ring of three nodes for ever, whether somebody wants it or not.

use std::time::Duration;

use catraca_algorithms::Spec;
use catraca_check::{Network, Options, Report, check_group};
use catraca_core::{
    Algorithm, Bounds, Claim, Effects, Fence, Message, NodeId, Phase, Start, TimerTag,
};
use serde::{Deserialize, Serialize};

const NODES: u32 = 3;

/// How the ring differs from the plain one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ring {
    /// Node 1 passes the token on even when it waits for it.
    pub(crate) node_1_never_takes_it: bool,
    /// Nodes 0 and 2 send each other a message for ever, which changes nothing.
    pub(crate) chatters: bool,
    /// A node keeps the token until a timer runs out.
    pub(crate) by_timer: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Msg {
    Token(u64),
    Chat,
}

impl Message for Msg {
    const KINDS: &'static [&'static str] = &["token", "chat"];

    fn kind(&self) -> usize {
        match self {
            Msg::Token(_) => 0,
            Msg::Chat => 1,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match *self {
            Msg::Token(fence) => bounds.has_count(fence),
            Msg::Chat => true,
        }
    }

    fn carries_token(&self) -> bool {
        matches!(self, Msg::Token(_))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    me: NodeId,
    phase: Phase,
    token: Option<u64>,
}

impl Node {
    fn pass(&mut self, ring: &Ring, out: &mut Effects<Msg>) {
        if ring.by_timer {
            out.set_timer(TimerTag(0), Duration::from_secs(1));
        } else {
            self.send_on(out);
        }
    }

    fn send_on(&mut self, out: &mut Effects<Msg>) {
        if let Some(fence) = self.token.take() {
            out.send(NodeId((self.me.0 + 1) % NODES), Msg::Token(fence));
        }
    }
}

impl Algorithm for Node {
    type Message = Msg;
    type Config = Ring;

    const TOKEN: bool = true;

    fn new(me: NodeId, _ring: &Ring, start: &Start) -> Self {
        Node { me, phase: start.phase_of(me), token: (start.token() == me).then_some(0) }
    }

    fn on_start(&mut self, ring: &Ring, out: &mut Effects<Msg>) {
        if self.token.is_some() {
            self.pass(ring, out);
        }
        if ring.chatters && self.me == NodeId(0) {
            out.send(NodeId(2), Msg::Chat);
        }
    }

    fn on_request(&mut self, _ring: &Ring, _claim: Claim, _out: &mut Effects<Msg>) {
        self.phase = Phase::Waiting;
    }

    fn on_release(&mut self, ring: &Ring, out: &mut Effects<Msg>) {
        self.phase = Phase::Idle;
        self.pass(ring, out);
    }

    fn on_message(&mut self, ring: &Ring, from: NodeId, message: Msg, out: &mut Effects<Msg>) {
        match message {
            Msg::Chat => out.send(from, Msg::Chat),
            Msg::Token(fence) => {
                let takes = !(ring.node_1_never_takes_it && self.me == NodeId(1));
                if self.phase == Phase::Waiting && takes {
                    self.phase = Phase::Inside;
                    self.token = Some(fence + 1);
                    out.granted(Fence(fence + 1));
                } else {
                    self.token = Some(fence);
                    self.pass(ring, out);
                }
            }
        }
    }

    fn on_timer(&mut self, _ring: &Ring, _tag: TimerTag, out: &mut Effects<Msg>) {
        self.send_on(out);
    }

    fn holds_token(&self) -> bool {
        self.token.is_some()
    }
}

/// Checks three nodes that ask once each.
pub(crate) fn check_ring(ring: Ring, network: Network, threads: usize) -> Report {
    let spec = Spec::new("ring", NODES);
    let options = Options {
        requests: 1,
        crashes: 0,
        claims: Vec::new(),
        network,
        threads,
        memory_limit: None,
        state_limit: None,
        stop: None,
    };
    check_group::<Node>(ring, &spec, &options, &mut |_| {})
}
