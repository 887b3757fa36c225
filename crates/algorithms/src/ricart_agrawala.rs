//! **Idea.** A node that wants to enter asks every other node with a time stamp. A node answers at
//! once unless it is inside or has asked earlier itself; then it answers when it leaves. A node that
//! has all answers enters, so entries happen in the order of the stamps.
//!
//! **Source.** S2, section 8.3.2; G. Ricart and A. Agrawala, 1981.
//!
//! **Assumes.** Reliable channels in any order; no crashes.
//!
//! **Cost.** 2(N-1) messages per entry at any load; delay T.
//!
//! **Departs.** S2 says that messages go 'only between the sites that compete'; every other site is
//! asked and answers, as in the original. Variables: `requested` is the original's
//! Our_Sequence_Number, `awaited` its Outstanding_Reply_Count, `deferred` its Reply_Deferred.

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, LogicalClock, Message, NodeId, NodeSet, Phase, Stamp, Start,
    Variables,
};
use catraca_topology::Members;
use serde::{Deserialize, Serialize};

use crate::mutants::{self, Mutation};
use crate::registry::{Channels, Entry, Family, Load, Range, Registered, Tabled, Theory};
use crate::{ASKS_TWICE, Spec, SpecError};

/// What the nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// 'I want to enter, and asked at this time.'
    Request(u64),
    /// 'Go ahead, as far as I am concerned.'
    Reply,
}

impl Message for Msg {
    const KINDS: &'static [&'static str] = &["request", "reply"];

    fn kind(&self) -> usize {
        match self {
            Msg::Request(_) => 0,
            Msg::Reply => 1,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match *self {
            Msg::Request(time) => bounds.has_time(time),
            Msg::Reply => true,
        }
    }
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RicartAgrawala {
    pub(crate) me: NodeId,
    pub(crate) clock: LogicalClock,
    pub(crate) phase: Phase,
    /// The time of the request that is being served. Zero while there is none.
    pub(crate) requested: u64,
    /// Answers still to come.
    pub(crate) awaited: u32,
    /// Nodes that get their answer when this one leaves.
    pub(crate) deferred: NodeSet,
}

impl RicartAgrawala {
    pub(crate) fn my_request(&self) -> Stamp {
        Stamp { time: self.requested, node: self.me }
    }

    fn on_ask(&mut self, from: NodeId, time: u64, out: &mut Effects<Msg>) {
        self.clock.witness(time);
        let theirs = Stamp { time, node: from };
        let mine_first = match self.phase {
            Phase::Idle => false,
            Phase::Waiting => self.my_request() < theirs,
            Phase::Inside => true,
        };
        if mine_first {
            self.deferred.insert(from);
        } else {
            out.send(from, Msg::Reply);
        }
    }

    fn on_reply(&mut self, config: &Members, out: &mut Effects<Msg>) {
        if self.phase != Phase::Waiting || self.awaited == 0 {
            return out.anomaly("a reply came that nobody waits for");
        }
        self.awaited -= 1;
        self.enter_if_answered(config, out);
    }

    fn enter_if_answered(&mut self, config: &Members, out: &mut Effects<Msg>) {
        if self.awaited == 0 {
            self.phase = Phase::Inside;
            out.granted(self.my_request().fence(config.nodes));
        }
    }
}

impl Algorithm for RicartAgrawala {
    type Message = Msg;
    type Config = Members;

    fn new(me: NodeId, _config: &Members, start: &Start) -> Self {
        // Nobody else needs to know of a holder: a node that asks it is deferred.
        let phase = start.phase_of(me);
        RicartAgrawala {
            me,
            clock: LogicalClock::default(),
            phase,
            requested: 0,
            awaited: 0,
            deferred: NodeSet::new(),
        }
    }

    fn on_request(&mut self, config: &Members, _claim: Claim, out: &mut Effects<Msg>) {
        if self.phase != Phase::Idle {
            return out.anomaly(ASKS_TWICE);
        }
        self.phase = Phase::Waiting;
        self.requested = self.clock.tick();
        self.awaited = config.nodes - 1;
        out.send_to_others(self.me, config.nodes, &Msg::Request(self.requested));
        self.enter_if_answered(config, out);
    }

    fn on_release(&mut self, _config: &Members, out: &mut Effects<Msg>) {
        self.phase = Phase::Idle;
        self.requested = 0;
        for node in self.deferred.iter() {
            out.send(node, Msg::Reply);
        }
        self.deferred.clear();
    }

    fn on_message(&mut self, config: &Members, from: NodeId, message: Msg, out: &mut Effects<Msg>) {
        match message {
            Msg::Request(time) => self.on_ask(from, time, out),
            Msg::Reply => self.on_reply(config, out),
        }
    }

    fn variables(&self, out: &mut Variables) {
        out.phase(self.phase);
        out.number("clock", self.clock.now());
        out.number("Our_Sequence_Number", self.requested);
        out.number("Outstanding_Reply_Count", self.awaited);
        out.set("Reply_Deferred", self.deferred.iter());
    }
}

impl Registered for RicartAgrawala {
    const ENTRY: Entry = Entry {
        name: "ricart-agrawala",
        title: "Ricart and Agrawala, 1981",
        family: Family::Permission,
        channels: Channels::Any,
        messages: "2(N-1)",
        delay: "T",
        fence: "(time, id) of the request",
        source: "S2 8.3.2",
        max_nodes: 16_384,
        parameters: &[],
        claims: Some(Tabled {
            messages: |nodes, load| match load {
                Load::Low => nodes - 1.0,
                Load::High => 2.0 * (nodes - 1.0),
            },
            delay: |_| Range::exactly(1.0),
        }),
        file: include_str!("ricart_agrawala.rs"),
    };

    fn config(spec: &Spec) -> Result<Members, SpecError> {
        Ok(Members { nodes: spec.nodes })
    }

    fn theory(config: &Members, _load: Load) -> Theory {
        let others = f64::from(config.nodes - 1);
        Theory { messages: Range::exactly(2.0 * others), delay: Range::exactly(1.0) }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::ricart_agrawala::ALL
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::{Effect, Fence, Input};

    use super::*;
    use crate::testing::{from, request, send, step};

    const GROUP: Members = Members { nodes: 3 };

    fn node(id: u32) -> RicartAgrawala {
        RicartAgrawala::new(NodeId(id), &GROUP, &Start::idle())
    }

    /// 'A site that wants to enter the CS sends REQUEST to all the others.' Reference: S2 8.3.2.
    #[test]
    fn paper_a_requester_asks_all_others_and_enters_with_the_last_reply() {
        let mut n1 = node(1);
        let asked = step(&mut n1, &GROUP, request());
        assert_eq!(asked, [send(0, Msg::Request(1)), send(2, Msg::Request(1))]);
        assert_eq!(step(&mut n1, &GROUP, from(0, Msg::Reply)), []);
        assert_eq!(step(&mut n1, &GROUP, from(2, Msg::Reply)), [Effect::Granted(Fence(4))]);
    }

    /// 'Each site decides whether it answers by the request's timestamp and its own state.'
    /// Reference: S2 8.3.2.
    #[test]
    fn paper_a_requester_answers_earlier_requests_and_defers_later_ones() {
        let mut n1 = node(1);
        step(&mut n1, &GROUP, request());
        assert_eq!(step(&mut n1, &GROUP, from(0, Msg::Request(1))), [send(0, Msg::Reply)]);
        assert_eq!(step(&mut n1, &GROUP, from(2, Msg::Request(1))), []);
    }

    /// 'After the CS the site sends REPLY to the next ones.' Reference: S2 8.3.2.
    #[test]
    fn paper_a_leaving_node_answers_whom_it_deferred() {
        let mut n0 = RicartAgrawala::new(NodeId(0), &GROUP, &Start::inside(NodeId(0)));
        assert_eq!(step(&mut n0, &GROUP, from(2, Msg::Request(5))), []);
        assert_eq!(step(&mut n0, &GROUP, from(1, Msg::Request(6))), []);
        let left = step(&mut n0, &GROUP, Input::Release);
        assert_eq!(left, [send(1, Msg::Reply), send(2, Msg::Reply)]);
        let next = step(&mut n0, &GROUP, request());
        assert_eq!(next[0], send(1, Msg::Request(7)), "the clock has passed what it has seen");
    }

    #[test]
    fn a_group_of_one_enters_at_once() {
        let alone = Members { nodes: 1 };
        let mut node = RicartAgrawala::new(NodeId(0), &alone, &Start::idle());
        assert_eq!(step(&mut node, &alone, request()), [Effect::Granted(Fence(1))]);
    }

    #[test]
    fn a_reply_to_nobody_is_an_anomaly() {
        let effects = step(&mut node(0), &GROUP, from(1, Msg::Reply));
        assert!(matches!(effects[..], [Effect::Anomaly(_)]));
    }
}
