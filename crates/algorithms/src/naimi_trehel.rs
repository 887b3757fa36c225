//! **Idea.** The node with the token enters. Every node points to who it believes asked last; a
//! request travels along the pointers to the node that really did, and every node on the way points
//! to the requester from then on. Who asked last before passes the token to the requester on
//! leaving, so the waiting form a queue of which each knows only the one behind it.
//!
//! **Source.** S0, section 1; M. Naimi, M. Trehel and A. Arnold, 1996.
//!
//! **Assumes.** Reliable channels in any order; no crashes.
//!
//! **Cost.** 0 to N messages per entry. At low load with requesters drawn uniformly it is
//! H_N - 1/N on average, where H_N = 1 + 1/2 + ... + 1/N grows as log N. Delay T.
//!
//! **Departs.** The token carries the fence. Variables: `last` is S0's owner, oneself at a root;
//! `next` is S0's next.

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, Fence, Message, NodeId, Phase, Snapshot, Start, Variables,
};
use catraca_topology::Members;
use serde::{Deserialize, Serialize};

use crate::mutants::{self, Mutation};
use crate::registry::{Channels, Entry, Family, Load, Range, Registered, Theory};
use crate::{ASKS_TWICE, Spec, SpecError};

/// What the nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// 'This node wants to enter.' It is passed on unchanged.
    Request(NodeId),
    /// 'You may enter; this is the fence of the last entry.'
    Token(Fence),
}

impl Message for Msg {
    const KINDS: &'static [&'static str] = &["request", "token"];

    fn kind(&self) -> usize {
        match self {
            Msg::Request(_) => 0,
            Msg::Token(_) => 1,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match *self {
            Msg::Request(node) => bounds.has_node(node),
            Msg::Token(fence) => bounds.has_fence(fence),
        }
    }

    fn carries_token(&self) -> bool {
        matches!(self, Msg::Token(_))
    }
}

/// One node. Small, because there may be millions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NaimiTrehel {
    pub(crate) me: NodeId,
    /// Who asked last, as far as this node knows; oneself at a root.
    pub(crate) last: NodeId,
    /// Who gets the token when this node leaves.
    pub(crate) next: Option<NodeId>,
    /// The fence of the last entry where the token is; elsewhere none, so that equal states are
    /// equal.
    pub(crate) fence: Fence,
    pub(crate) phase: Phase,
    pub(crate) token: bool,
}

impl NaimiTrehel {
    fn enter(&mut self, out: &mut Effects<Msg>) {
        self.phase = Phase::Inside;
        self.fence = self.fence.next();
        out.granted(self.fence);
    }

    /// Gives the token, if it is here, to the next node, if there is one.
    fn pass_token(&mut self, out: &mut Effects<Msg>) {
        if let Some(next) = self.next.take_if(|_| self.token) {
            out.send(next, Msg::Token(self.fence));
            self.token = false;
            self.fence = Fence::NONE;
        }
    }

    fn on_ask(&mut self, config: &Members, requester: NodeId, out: &mut Effects<Msg>) {
        if requester == self.me || requester.0 >= config.nodes {
            return out.anomaly("a request came from nobody, or came back");
        }
        if self.last == self.me {
            self.next = Some(requester);
            if self.phase == Phase::Idle {
                self.pass_token(out);
            }
        } else {
            out.send(self.last, Msg::Request(requester));
        }
        self.last = requester;
    }

    fn on_token(&mut self, fence: Fence, out: &mut Effects<Msg>) {
        if self.phase != Phase::Waiting || self.token {
            return out.anomaly("a token came that nobody waits for");
        }
        self.token = true;
        self.fence = fence;
        self.enter(out);
    }
}

impl Algorithm for NaimiTrehel {
    type Message = Msg;
    type Config = Members;

    const TOKEN: bool = true;

    fn new(me: NodeId, _config: &Members, start: &Start) -> Self {
        NaimiTrehel {
            me,
            last: start.token(),
            next: None,
            fence: Fence::NONE,
            phase: start.phase_of(me),
            token: start.token() == me,
        }
    }

    fn on_request(&mut self, _config: &Members, _claim: Claim, out: &mut Effects<Msg>) {
        if self.phase != Phase::Idle {
            return out.anomaly(ASKS_TWICE);
        }
        if self.token {
            return self.enter(out);
        }
        self.phase = Phase::Waiting;
        out.send(self.last, Msg::Request(self.me));
        self.last = self.me;
    }

    fn on_release(&mut self, _config: &Members, out: &mut Effects<Msg>) {
        self.phase = Phase::Idle;
        self.pass_token(out);
    }

    fn on_message(
        &mut self,
        config: &Members,
        _from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Request(requester) => self.on_ask(config, requester, out),
            Msg::Token(fence) => self.on_token(fence, out),
        }
    }

    fn points_to(&self) -> Option<NodeId> {
        Some(self.last)
    }

    fn holds_token(&self) -> bool {
        self.token
    }

    fn invariant(group: &Snapshot<'_, Self>) -> Result<(), &'static str> {
        let is_request = |message: &Msg| matches!(message, Msg::Request(_));
        let travelling = group.in_flight.iter().filter(|sent| is_request(&sent.message)).count();
        check_pointers(group.nodes, |node| node.last, travelling)
    }

    fn variables(&self, out: &mut Variables) {
        out.phase(self.phase);
        out.node("last", self.last);
        out.node("next", self.next);
        out.flag("token", self.token);
        out.number("fence", self.fence.0);
    }
}

/// What holds wherever requests turn pointers round on their way: the pointers form trees, and
/// every request that travels will join two of them. It has cut its requester off from the tree in
/// which it travels.
pub(crate) fn check_pointers<A>(
    nodes: &[A],
    last: impl Fn(&A) -> NodeId,
    travelling: usize,
) -> Result<(), &'static str> {
    let mut roots = 0;
    for place in 0..nodes.len() {
        let up = |at: usize| last(&nodes[at]).index();
        let top = (0..nodes.len()).fold(place, |at, _| up(at));
        if up(top) != top {
            return Err("the pointers go round in a circle");
        }
        roots += usize::from(top == place);
    }
    if roots != travelling + 1 {
        return Err("there are not as many trees as requests keep apart");
    }
    Ok(())
}

/// 1 + 1/2 + ... + 1/n.
pub(crate) fn harmonic(n: u32) -> f64 {
    (1..=n).rev().map(|k| 1.0 / f64::from(k)).sum()
}

/// Messages per entry at low load: the way of the request is H_N - 1 on average, and of N
/// requesters one has the token already.
pub(crate) fn messages_at_low_load(nodes: u32) -> f64 {
    harmonic(nodes) - 1.0 / f64::from(nodes)
}

impl Registered for NaimiTrehel {
    const ENTRY: Entry = Entry {
        name: "naimi-trehel",
        title: "Naimi, Trehel and Arnold, 1996",
        family: Family::Token,
        channels: Channels::Any,
        messages: "0 to N, O(log N) on average",
        delay: "T",
        fence: "counter in the token",
        source: "S0 1",
        max_nodes: 10_000_000,
        parameters: &[],
        claims: None,
        file: include_str!("naimi_trehel.rs"),
    };

    fn config(spec: &Spec) -> Result<Members, SpecError> {
        Ok(Members { nodes: spec.nodes })
    }

    fn theory(config: &Members, load: Load) -> Theory {
        let nodes = f64::from(config.nodes);
        let messages = match load {
            _ if config.nodes == 1 => Range::exactly(0.0),
            Load::Low => Range::exactly(messages_at_low_load(config.nodes)),
            // The token and one request at least; a request visits no node twice.
            Load::High => Range::between(2.0, nodes),
        };
        Theory { messages, delay: Range::exactly(1.0) }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::naimi_trehel::ALL
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use catraca_core::{Effect, Envelope, Input};

    use super::*;
    use crate::testing::{from, request, send, step};

    const GROUP: Members = Members { nodes: 4 };

    fn node(id: u32, start: &Start) -> NaimiTrehel {
        NaimiTrehel::new(NodeId(id), &GROUP, start)
    }

    fn ask(requester: u32) -> Msg {
        Msg::Request(NodeId(requester))
    }

    /// 'It uses a token that stands for the shared resource, an initial node elected to own it, and
    /// a tree to manage it.' Reference: S0 1.
    #[test]
    fn paper_a_requester_asks_its_owner_and_is_a_root_from_then_on() {
        let mut n2 = node(2, &Start::token_at(NodeId(3)));
        assert_eq!(step(&mut n2, &GROUP, request()), [send(3, ask(2))]);
        assert_eq!(n2.last, NodeId(2));
        let entered = step(&mut n2, &GROUP, from(3, Msg::Token(Fence(6))));
        assert_eq!(entered, [Effect::Granted(Fence(7))]);
    }

    /// 'Each node points to its father, the direction in which the request for the token goes to
    /// the root.' Reference: S0 2.2, of the tree that Bertier takes from Naimi-Trehel.
    #[test]
    fn paper_a_node_on_the_way_passes_a_request_on_and_points_to_the_requester() {
        let mut n1 = node(1, &Start::idle());
        assert_eq!(step(&mut n1, &GROUP, from(3, ask(3))), [send(0, ask(3))]);
        assert_eq!(n1.last, NodeId(3));
        assert_eq!(step(&mut n1, &GROUP, from(2, ask(2))), [send(3, ask(2))]);
        assert_eq!((n1.last, n1.next), (NodeId(2), None));
    }

    /// 'next, the node that will receive the token when Ni frees the critical section.'
    /// Reference: S0 2.2.
    #[test]
    fn paper_a_root_inside_remembers_who_comes_next_and_passes_the_token_on_leaving() {
        let mut n0 = node(0, &Start::inside(NodeId(0)));
        assert_eq!(step(&mut n0, &GROUP, from(2, ask(2))), []);
        assert_eq!((n0.last, n0.next), (NodeId(2), Some(NodeId(2))));
        assert_eq!(step(&mut n0, &GROUP, from(1, ask(1))), [send(2, ask(1))]);
        assert_eq!(step(&mut n0, &GROUP, Input::Release), [send(2, Msg::Token(Fence(0)))]);
        assert!(!n0.holds_token());
        assert_eq!((n0.last, n0.next), (NodeId(1), None));
    }

    #[test]
    fn an_idle_root_sends_the_token_at_once_or_enters_without_asking() {
        let mut n0 = node(0, &Start::idle());
        assert_eq!(step(&mut n0, &GROUP, request()), [Effect::Granted(Fence(1))]);
        assert_eq!(step(&mut n0, &GROUP, Input::Release), []);
        let given = step(&mut n0, &GROUP, from(1, ask(3)));
        assert_eq!(given, [send(3, Msg::Token(Fence(1)))]);
        assert_eq!((n0.last, n0.next, n0.fence), (NodeId(3), None, Fence::NONE));
    }

    #[test]
    fn a_waiting_root_passes_the_token_only_after_its_own_entry() {
        let mut n1 = node(1, &Start::idle());
        step(&mut n1, &GROUP, request());
        assert_eq!(step(&mut n1, &GROUP, from(2, ask(2))), []);
        let entered = step(&mut n1, &GROUP, from(0, Msg::Token(Fence(0))));
        assert_eq!(entered, [Effect::Granted(Fence(1))]);
        assert_eq!(step(&mut n1, &GROUP, Input::Release), [send(2, Msg::Token(Fence(1)))]);
    }

    #[test]
    fn a_group_of_one_enters_at_once() {
        let alone = Members { nodes: 1 };
        let mut node = NaimiTrehel::new(NodeId(0), &alone, &Start::idle());
        assert_eq!(step(&mut node, &alone, request()), [Effect::Granted(Fence(1))]);
    }

    #[test]
    fn a_token_for_nobody_and_a_request_from_nobody_are_anomalies() {
        for message in [Msg::Token(Fence(0)), ask(1), ask(4), ask(u32::MAX)] {
            let mut n1 = node(1, &Start::idle());
            let effects = step(&mut n1, &GROUP, from(0, message));
            assert!(matches!(effects[..], [Effect::Anomaly(_)]));
            assert_eq!(n1, node(1, &Start::idle()));
        }
    }

    #[test]
    fn a_node_is_small() {
        assert_eq!(size_of::<NaimiTrehel>(), 32);
    }

    #[test]
    fn the_invariant_wants_a_travelling_request_for_every_root_but_one_and_no_circle() {
        let mut nodes: Vec<NaimiTrehel> =
            NodeId::all(4).map(|id| node(id.0, &Start::idle())).collect();
        let check = |nodes: &[NaimiTrehel], in_flight: &[Envelope<Msg>]| {
            NaimiTrehel::invariant(&Snapshot { config: &GROUP, nodes, in_flight })
        };
        assert_eq!(check(&nodes, &[]), Ok(()));
        step(&mut nodes[1], &GROUP, request());
        assert!(check(&nodes, &[]).is_err(), "the request is lost");
        let asking = Envelope { from: NodeId(1), to: NodeId(0), message: ask(1) };
        assert_eq!(check(&nodes, &[asking]), Ok(()));
        nodes[1].last = NodeId(2);
        nodes[2].last = NodeId(1);
        assert!(check(&nodes, &[]).is_err(), "1 and 2 point at each other");
    }

    /// The average way over the trees that come up, for three nodes: a star and a chain, equally
    /// often. (0 + 1 + 1) / 3 and (0 + 1 + 2) / 3 make 5/6.
    #[test]
    fn the_average_way_of_a_request_among_three_is_five_sixths() {
        let way = messages_at_low_load(3) - 2.0 / 3.0;
        assert!((way - 5.0 / 6.0).abs() < 1e-12);
    }
}
