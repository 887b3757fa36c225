//! **Idea.** Up to k nodes may be inside at once. A node asks every other with a time stamp and
//! enters as soon as N-k have answered: the k-1 that have not may be inside. It does not wait for
//! the rest, so answers to earlier requests may still come; it counts the answers that each peer still has to send, and a
//! node that has deferred several requests of one peer answers them all with one count.
//!
//! **Source.** S4, section 2; K. Raymond, A distributed algorithm for multiple entries to a critical
//! section, 1989.
//!
//! **Assumes.** Reliable channels in any order. Without a detector it goes on while fewer than k
//! nodes have crashed; each crash takes one of the k places away.
//!
//! **Cost.** N-1 requests and, since deferred answers are gathered, up to N-1 answers per entry;
//! delay T.
//!
//! **Departs.** Nothing, but for the fence, which is the request's (time, id). Variables as in S4's algorithm 2: `perm_count`, `reply_count`,
//! `defer_count`; `requested` is its last.

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, LogicalClock, Message, NodeId, Phase, Stamp, Start,
    Variables,
};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::mutants::{self, Mutation};
use crate::registry::{Channels, Entry, Family, Load, Range, Registered, Theory};
use crate::{ASKS_TWICE, Spec, SpecError};

/// A count for every node; inline in groups of up to four.
pub(crate) type Counts = SmallVec<[u32; 4]>;

/// What the nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// 'I want to enter, and asked at this time.'
    Request(u64),
    /// 'Go ahead, as far as so many of your requests and I are concerned.'
    Reply(u32),
}

impl Message for Msg {
    const KINDS: &'static [&'static str] = &["request", "reply"];

    fn kind(&self) -> usize {
        match self {
            Msg::Request(_) => 0,
            Msg::Reply(_) => 1,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match *self {
            Msg::Request(time) => bounds.has_time(time),
            // A reply answers one request or several.
            Msg::Reply(count) => count > 0,
        }
    }
}

/// What all nodes know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many nodes there are.
    pub nodes: u32,
    /// How many may be inside at once.
    pub k: u32,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RaymondK {
    pub(crate) me: NodeId,
    pub(crate) clock: LogicalClock,
    pub(crate) phase: Phase,
    /// The time of the request that is being served. Zero while there is none.
    pub(crate) requested: u64,
    /// How many have answered all requests of this node, the present one included.
    pub(crate) perm_count: u32,
    /// How many answers of each peer this node still waits for.
    pub(crate) reply_count: Counts,
    /// How many requests of each peer wait until this node leaves.
    pub(crate) defer_count: Counts,
}

impl RaymondK {
    pub(crate) fn my_request(&self) -> Stamp {
        Stamp { time: self.requested, node: self.me }
    }

    /// Whether a request of this node goes before `theirs`.
    fn goes_first(&self, theirs: Stamp) -> bool {
        match self.phase {
            Phase::Idle => false,
            Phase::Waiting => self.my_request() < theirs,
            Phase::Inside => true,
        }
    }

    fn on_ask(&mut self, from: NodeId, time: u64, out: &mut Effects<Msg>) {
        self.clock.witness(time);
        if self.goes_first(Stamp { time, node: from }) {
            let deferred = &mut self.defer_count[from.index()];
            *deferred = deferred.saturating_add(1);
        } else {
            out.send(from, Msg::Reply(1));
        }
    }

    fn on_reply(&mut self, config: &Config, from: NodeId, count: u32, out: &mut Effects<Msg>) {
        let owed = &mut self.reply_count[from.index()];
        let Some(left) = owed.checked_sub(count) else {
            return out.anomaly("an answer came that nobody waits for");
        };
        *owed = left;
        // An answer to an earlier request says nothing of the present one.
        if self.phase == Phase::Waiting && left == 0 {
            self.perm_count += 1;
            self.enter_if_permitted(config, out);
        }
    }

    pub(crate) fn enter_if_permitted(&mut self, config: &Config, out: &mut Effects<Msg>) {
        if self.perm_count >= config.nodes - config.k {
            self.phase = Phase::Inside;
            self.perm_count = 0;
            out.granted(self.my_request().fence(config.nodes));
        }
    }
}

impl Algorithm for RaymondK {
    type Message = Msg;
    type Config = Config;

    fn new(me: NodeId, config: &Config, start: &Start) -> Self {
        // Nobody else needs to know of a holder: a node that asks it is deferred.
        let none = SmallVec::from_elem(0, config.nodes as usize);
        RaymondK {
            me,
            clock: LogicalClock::default(),
            phase: start.phase_of(me),
            requested: 0,
            perm_count: 0,
            reply_count: none.clone(),
            defer_count: none,
        }
    }

    fn on_request(&mut self, config: &Config, _claim: Claim, out: &mut Effects<Msg>) {
        if self.phase != Phase::Idle {
            return out.anomaly(ASKS_TWICE);
        }
        self.phase = Phase::Waiting;
        self.requested = self.clock.tick();
        out.send_to_others(self.me, config.nodes, &Msg::Request(self.requested));
        for peer in NodeId::all(config.nodes).filter(|&peer| peer != self.me) {
            let owed = &mut self.reply_count[peer.index()];
            *owed = owed.saturating_add(1);
        }
        self.enter_if_permitted(config, out);
    }

    fn on_release(&mut self, config: &Config, out: &mut Effects<Msg>) {
        self.phase = Phase::Idle;
        self.requested = 0;
        for peer in NodeId::all(config.nodes) {
            let deferred = core::mem::take(&mut self.defer_count[peer.index()]);
            if deferred > 0 {
                out.send(peer, Msg::Reply(deferred));
            }
        }
    }

    fn on_message(&mut self, config: &Config, from: NodeId, message: Msg, out: &mut Effects<Msg>) {
        match message {
            Msg::Request(time) => self.on_ask(from, time, out),
            Msg::Reply(count) => self.on_reply(config, from, count, out),
        }
    }

    fn variables(&self, out: &mut Variables) {
        out.phase(self.phase);
        out.number("clock", self.clock.now());
        out.number("last", self.requested);
        out.number("perm_count", self.perm_count);
        out.per_node("reply_count", self.reply_count.iter().copied());
        out.per_node("defer_count", self.defer_count.iter().copied());
    }
}

impl Registered for RaymondK {
    const ENTRY: Entry = Entry {
        name: "raymond-k",
        title: "Raymond's k-mutual exclusion, 1989",
        family: Family::Permission,
        channels: Channels::Any,
        messages: "N-1 to 2(N-1)",
        delay: "T",
        fence: "(time, id) of the request; unique",
        source: "S4 2",
        max_nodes: 4096,
        parameters: &["k"],
        claims: None,
        file: include_str!("raymond_k.rs"),
    };

    fn config(spec: &Spec) -> Result<Config, SpecError> {
        Ok(Config { nodes: spec.nodes, k: spec.capacity() })
    }

    fn theory(config: &Config, load: Load) -> Theory {
        let others = f64::from(config.nodes - 1);
        // Only deferred answers are gathered, and only where the requester need not wait for them.
        let messages = match load {
            Load::High if config.k > 1 => Range::between(others, 2.0 * others),
            _ => Range::exactly(2.0 * others),
        };
        let delay = match config.k {
            1 => Range::exactly(1.0),
            // Of several that are inside, another may leave while the answer is on its way.
            _ => Range::between(0.0, 1.0),
        };
        Theory { messages, delay }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::raymond_k::ALL
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::{Effect, Fence, Input};

    use super::*;
    use crate::testing::{from, request, send, step};

    const GROUP: Config = Config { nodes: 4, k: 2 };

    fn node(id: u32) -> RaymondK {
        RaymondK::new(NodeId(id), &GROUP, &Start::idle())
    }

    /// 'It sends requests to the n-1 others and waits for at least n-k permissions.' S4, section 2.
    #[test]
    fn paper_a_requester_asks_all_others_and_enters_with_n_minus_k_replies() {
        let mut n1 = node(1);
        let asked = step(&mut n1, &GROUP, request());
        assert_eq!(asked, [0, 2, 3].map(|to| send(to, Msg::Request(1))));
        assert_eq!(step(&mut n1, &GROUP, from(0, Msg::Reply(1))), []);
        assert_eq!(step(&mut n1, &GROUP, from(2, Msg::Reply(1))), [Effect::Granted(Fence(5))]);
        // The last answer comes while it is inside, and changes nothing.
        assert_eq!(step(&mut n1, &GROUP, from(3, Msg::Reply(1))), []);
    }

    /// 'When p0 releases, it sends the answers to the pending requests.' S4, section 2 and Figure 1.
    #[test]
    fn paper_a_leaving_node_answers_all_deferred_requests_of_a_peer_at_once() {
        let mut n0 = RaymondK::new(NodeId(0), &GROUP, &Start::inside(NodeId(0)));
        for message in
            [from(2, Msg::Request(1)), from(3, Msg::Request(1)), from(2, Msg::Request(4))]
        {
            assert_eq!(step(&mut n0, &GROUP, message), []);
        }
        let left = step(&mut n0, &GROUP, Input::Release);
        assert_eq!(left, [send(2, Msg::Reply(2)), send(3, Msg::Reply(1))]);
        assert_eq!(step(&mut n0, &GROUP, request())[0], send(1, Msg::Request(5)));
    }

    #[test]
    fn an_answer_to_an_earlier_request_is_no_permission_for_the_present_one() {
        let mut n1 = node(1);
        step(&mut n1, &GROUP, request());
        step(&mut n1, &GROUP, from(0, Msg::Reply(1)));
        step(&mut n1, &GROUP, from(2, Msg::Reply(1)));
        step(&mut n1, &GROUP, Input::Release);
        step(&mut n1, &GROUP, request());
        assert_eq!(step(&mut n1, &GROUP, from(0, Msg::Reply(1))), []);
        assert_eq!(step(&mut n1, &GROUP, from(3, Msg::Reply(1))), [], "the first of two");
        assert_eq!(step(&mut n1, &GROUP, from(3, Msg::Reply(1))), [Effect::Granted(Fence(9))]);
    }

    #[test]
    fn with_a_place_for_everybody_nobody_waits() {
        let all = Config { nodes: 3, k: 3 };
        let mut node = RaymondK::new(NodeId(0), &all, &Start::idle());
        let asked = step(&mut node, &all, request());
        assert_eq!(asked.last(), Some(&Effect::Granted(Fence(3))));
        assert_eq!(asked.len(), 3, "the others get the request all the same");
    }

    #[test]
    fn an_answer_to_nobody_is_an_anomaly() {
        let effects = step(&mut node(0), &GROUP, from(1, Msg::Reply(1)));
        assert!(matches!(effects[..], [Effect::Anomaly(_)]));
    }
}
