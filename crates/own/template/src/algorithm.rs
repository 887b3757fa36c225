//! **Idea.** A token goes round a ring of nodes, from each to the next, for ever. Whoever has asked keeps
//! it while inside. There is one token, so at most one is inside; the token comes by everybody, so
//! nobody waits for ever.
//!
//! **Source.** G. Le Lann, "Distributed Systems: Towards a Formal Approach", Proceedings of the IFIP
//! Congress, 1977, pages 155 to 160.
//!
//! **Assumes.** Reliable channels in any order. Nobody crashes.
//!
//! **Cost.** 1 message per entry if everybody asks all the time. If few ask, messages go on all the same:
//! N for each time round. An entry waits for at most N - 1 messages and the others' stays.
//!
//! **Departs.** The token carries the number of entries so far, for the fences.

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, Fence, Message, NodeId, Phase, Snapshot, Start, Variables,
};
use catraca_own::{Channels, Mutation, OwnAlgorithm};
use serde::{Deserialize, Serialize};

/// What nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Msg {
    /// The token, with the number of entries so far.
    Token {
        /// The last fence.
        entries: u64,
    },
}

impl Message for Msg {
    const KINDS: &'static [&'static str] = &["token"];

    fn kind(&self) -> usize {
        match self {
            Msg::Token { .. } => 0,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match *self {
            Msg::Token { entries } => bounds.has_count(entries),
        }
    }

    fn carries_token(&self) -> bool {
        match self {
            Msg::Token { .. } => true,
        }
    }
}

/// What all nodes know: how many they are.
#[derive(Debug)]
pub(crate) struct Config {
    /// The size of the ring.
    pub(crate) nodes: u32,
}

/// One node of the ring.
///
/// Everything in it is part of the states that the checker tells apart. What grows without anybody
/// entering, as a count of the rounds of the token would, makes them infinitely many.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) me: NodeId,
    pub(crate) phase: Phase,
    /// The number of entries so far, while the token is here.
    pub(crate) token: Option<u64>,
}

impl Node {
    /// Sends the token to the next node. A ring of one keeps it.
    pub(crate) fn pass_on(&mut self, config: &Config, out: &mut Effects<Msg>) {
        let next = NodeId((self.me.0 + 1) % config.nodes);
        if next == self.me {
            return;
        }
        if let Some(entries) = self.token.take() {
            out.send(next, Msg::Token { entries });
        }
    }

    /// Lets the application in: the token is here.
    pub(crate) fn enter(&mut self, entries: u64, out: &mut Effects<Msg>) {
        self.phase = Phase::Inside;
        self.token = Some(entries + 1);
        out.granted(Fence(entries + 1));
    }
}

impl Algorithm for Node {
    type Message = Msg;
    type Config = Config;

    const TOKEN: bool = true;

    /// The token is on its way also when nobody asks: a run ends when everybody has been served.
    const RESTLESS: bool = true;

    fn new(me: NodeId, _config: &Config, start: &Start) -> Self {
        Node { me, phase: start.phase_of(me), token: (start.token() == me).then_some(0) }
    }

    fn on_start(&mut self, config: &Config, out: &mut Effects<Msg>) {
        if self.phase != Phase::Inside {
            self.pass_on(config, out);
        }
    }

    fn on_request(&mut self, _config: &Config, _claim: Claim, out: &mut Effects<Msg>) {
        self.phase = Phase::Waiting;
        // Only a ring of one has the token while nobody is inside.
        if let Some(entries) = self.token {
            self.enter(entries, out);
        }
    }

    fn on_release(&mut self, config: &Config, out: &mut Effects<Msg>) {
        self.phase = Phase::Idle;
        self.pass_on(config, out);
    }

    fn on_message(&mut self, config: &Config, _from: NodeId, message: Msg, out: &mut Effects<Msg>) {
        let Msg::Token { entries } = message;
        if self.token.is_some() {
            return out.anomaly("a second token has come");
        }
        match self.phase {
            Phase::Waiting => self.enter(entries, out),
            Phase::Idle | Phase::Inside => {
                self.token = Some(entries);
                self.pass_on(config, out);
            }
        }
    }

    fn holds_token(&self) -> bool {
        self.token.is_some()
    }

    fn variables(&self, out: &mut Variables) {
        out.phase(self.phase);
        out.flag("token", self.token.is_some());
    }

    /// Whoever is inside has the token.
    fn invariant(group: &Snapshot<'_, Self>) -> Result<(), &'static str> {
        let has_none = |node: &Node| node.phase == Phase::Inside && node.token.is_none();
        if group.nodes.iter().any(has_none) {
            return Err("a node is inside without the token");
        }
        Ok(())
    }
}

impl OwnAlgorithm for Node {
    const NAME: &'static str = env!("CARGO_PKG_NAME");
    const CHANNELS: Channels = Channels::Any;

    fn config(nodes: u32) -> Config {
        Config { nodes }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        crate::mutants::ALL
    }
}
