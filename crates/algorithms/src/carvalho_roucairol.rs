//! **Idea.** As in Ricart-Agrawala every other node has to agree, but an answer holds until it is
//! asked back. For each pair of nodes there is one permission, at one of the two or on its way
//! between them; a node asks only for those that it lacks. A node that has them all enters, and a node
//! that enters again before anybody else has asked sends nothing.
//!
//! **Source.** O. Carvalho and G. Roucairol, 1983; S2's table (section 8.5) gives its 'N-1 at low
//! load' to Ricart-Agrawala.
//!
//! **Assumes.** Reliable channels in any order; no crashes.
//!
//! **Cost.** 0 to 2(N-1) messages per entry, N-1 on average at low load: of each pair the one that
//! entered last has the permission, so a requester lacks half of them, at two messages each.
//! Delay T.
//!
//! **Departs.** Entries do not happen in the order of the requests' times: a node that enters
//! without asking passes nodes whose clocks are behind its own, and they would be granted smaller
//! fences later. So a REPLY carries its sender's time, and the fence is a new time that a node
//! takes from its own clock on entry. The permissions start as if all nodes had entered once, the
//! one where a token would start last, so that every one of them exists from the beginning.
//! Variables: `authorised` is the original's A, `deferred` its Reply_Deferred.

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, LogicalClock, Message, NodeId, NodeSet, Phase, Snapshot,
    Stamp, Start, Variables,
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
    /// 'I want to enter, asked at this time, and lack our permission.'
    Request(u64),
    /// 'Our permission is yours until I ask for it; it is this late here.'
    Reply(u64),
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
            Msg::Request(time) | Msg::Reply(time) => bounds.has_time(time),
        }
    }
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CarvalhoRoucairol {
    pub(crate) me: NodeId,
    pub(crate) clock: LogicalClock,
    pub(crate) phase: Phase,
    /// The time of the request that is being served. Zero while there is none.
    pub(crate) requested: u64,
    /// Nodes whose permission is here.
    pub(crate) authorised: NodeSet,
    /// How many other nodes are not in `authorised`.
    pub(crate) missing: u32,
    /// Nodes that get their answer when this one leaves.
    pub(crate) deferred: NodeSet,
}

impl CarvalhoRoucairol {
    pub(crate) fn my_request(&self) -> Stamp {
        Stamp { time: self.requested, node: self.me }
    }

    /// Whether a request has to wait until this node has left.
    pub(crate) fn goes_before(&self, theirs: Stamp) -> bool {
        match self.phase {
            Phase::Idle => false,
            Phase::Waiting => self.my_request() < theirs,
            Phase::Inside => true,
        }
    }

    fn on_ask(&mut self, from: NodeId, time: u64, out: &mut Effects<Msg>) {
        self.clock.witness(time);
        if self.goes_before(Stamp { time, node: from }) {
            self.deferred.insert(from);
            return;
        }
        self.yield_permission(from, out);
        if self.phase == Phase::Waiting {
            // It had not been asked, because its permission was here.
            out.send(from, Msg::Request(self.requested));
        }
    }

    pub(crate) fn yield_permission(&mut self, to: NodeId, out: &mut Effects<Msg>) {
        if !self.authorised.remove(to) {
            return out.anomaly("a permission was asked for that is not here");
        }
        self.missing += 1;
        out.send(to, Msg::Reply(self.clock.now()));
    }

    fn on_reply(&mut self, config: &Members, from: NodeId, time: u64, out: &mut Effects<Msg>) {
        if self.phase != Phase::Waiting || !self.authorised.insert(from) {
            return out.anomaly("a reply came that nobody waits for");
        }
        self.clock.witness(time);
        self.missing -= 1;
        self.enter_if_authorised(config, out);
    }

    fn enter_if_authorised(&mut self, config: &Members, out: &mut Effects<Msg>) {
        if self.missing == 0 {
            self.phase = Phase::Inside;
            // Later than any earlier entry elsewhere: its permission has come here since, with the
            // time at which it was sent.
            let entered = Stamp { time: self.clock.tick(), node: self.me };
            out.granted(entered.fence(config.nodes));
        }
    }
}

impl Algorithm for CarvalhoRoucairol {
    type Message = Msg;
    type Config = Members;

    fn new(me: NodeId, config: &Members, start: &Start) -> Self {
        let phase = start.phase_of(me);
        // In a ring that begins at the token's node each has the permissions of those after it; a
        // holder, which is where the token is, has them all.
        let after_me = me.others_after(config.nodes).take_while(|&node| node != start.token());
        let authorised: NodeSet = after_me.clone().collect();
        CarvalhoRoucairol {
            me,
            clock: LogicalClock::default(),
            phase,
            requested: 0,
            authorised,
            missing: config.nodes - 1 - after_me.count() as u32,
            deferred: NodeSet::new(),
        }
    }

    fn on_request(&mut self, config: &Members, _claim: Claim, out: &mut Effects<Msg>) {
        if self.phase != Phase::Idle {
            return out.anomaly(ASKS_TWICE);
        }
        self.phase = Phase::Waiting;
        self.requested = self.clock.tick();
        if self.missing > 0 {
            let lacks = |&node: &NodeId| node != self.me && !self.authorised.contains(node);
            for node in NodeId::all(config.nodes).filter(lacks) {
                out.send(node, Msg::Request(self.requested));
            }
        }
        self.enter_if_authorised(config, out);
    }

    fn on_release(&mut self, _config: &Members, out: &mut Effects<Msg>) {
        self.phase = Phase::Idle;
        self.requested = 0;
        let mut deferred = core::mem::take(&mut self.deferred);
        for node in deferred.iter() {
            self.yield_permission(node, out);
        }
        // Put back for its memory.
        deferred.clear();
        self.deferred = deferred;
    }

    fn on_message(&mut self, config: &Members, from: NodeId, message: Msg, out: &mut Effects<Msg>) {
        match message {
            Msg::Request(time) => self.on_ask(from, time, out),
            Msg::Reply(time) => self.on_reply(config, from, time, out),
        }
    }

    fn invariant(group: &Snapshot<'_, Self>) -> Result<(), &'static str> {
        let has = |a: &Self, b: &Self| usize::from(a.authorised.contains(b.me));
        for (i, a) in group.nodes.iter().enumerate() {
            for b in &group.nodes[i + 1..] {
                let between = |from, to| (from, to) == (a.me, b.me) || (from, to) == (b.me, a.me);
                let is_reply = |message: &Msg| matches!(message, Msg::Reply(_));
                let travelling = group.in_flight.iter().filter(|envelope| {
                    is_reply(&envelope.message) && between(envelope.from, envelope.to)
                });
                if has(a, b) + has(b, a) + travelling.count() != 1 {
                    return Err("a pair of nodes does not have exactly one permission");
                }
            }
        }
        Ok(())
    }

    fn variables(&self, out: &mut Variables) {
        out.phase(self.phase);
        out.number("clock", self.clock.now());
        out.number("requested", self.requested);
        out.set("A", self.authorised.iter());
        out.set("Reply_Deferred", self.deferred.iter());
    }
}

impl Registered for CarvalhoRoucairol {
    const ENTRY: Entry = Entry {
        name: "carvalho-roucairol",
        title: "Carvalho and Roucairol, 1983",
        family: Family::Permission,
        channels: Channels::Any,
        messages: "0 to 2(N-1), N-1 at low load",
        delay: "T",
        fence: "(time, id) of the entry",
        source: "S2 8.5, table",
        max_nodes: 16_384,
        parameters: &[],
        claims: None,
        file: include_str!("carvalho_roucairol.rs"),
    };

    fn config(spec: &Spec) -> Result<Members, SpecError> {
        Ok(Members { nodes: spec.nodes })
    }

    fn theory(config: &Members, load: Load) -> Theory {
        let others = f64::from(config.nodes - 1);
        let messages = match load {
            // Each other node has entered since this node's last entry with probability 1/2.
            Load::Low => Range::exactly(others),
            // Most of the others have.
            Load::High => Range::between(others, 2.0 * others),
        };
        Theory { messages, delay: Range::exactly(1.0) }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::carvalho_roucairol::ALL
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::{Effect, Envelope, Fence, Input};

    use super::*;
    use crate::testing::{from, request, send, step};

    const GROUP: Members = Members { nodes: 3 };

    fn node(id: u32) -> CarvalhoRoucairol {
        CarvalhoRoucairol::new(NodeId(id), &GROUP, &Start::idle())
    }

    /// 'N-1 messages at low load': none to those whose permission is here.
    /// Reference: S2 8.5, table.
    #[test]
    fn paper_a_requester_asks_only_those_whose_permission_it_lacks() {
        assert_eq!(step(&mut node(0), &GROUP, request()), [Effect::Granted(Fence(6))]);
        assert_eq!(step(&mut node(1), &GROUP, request()), [send(0, Msg::Request(1))]);
        let asked = step(&mut node(2), &GROUP, request());
        assert_eq!(asked, [send(0, Msg::Request(1)), send(1, Msg::Request(1))]);
    }

    #[test]
    fn a_node_enters_again_without_a_message_until_it_is_asked() {
        let mut n1 = node(1);
        step(&mut n1, &GROUP, request());
        assert_eq!(step(&mut n1, &GROUP, from(0, Msg::Reply(1))), [Effect::Granted(Fence(7))]);
        assert_eq!(step(&mut n1, &GROUP, Input::Release), []);
        assert_eq!(step(&mut n1, &GROUP, request()), [Effect::Granted(Fence(13))]);
        step(&mut n1, &GROUP, Input::Release);
        let yielded = step(&mut n1, &GROUP, from(2, Msg::Request(1)));
        assert_eq!(yielded, [send(2, Msg::Reply(4))]);
        assert_eq!(step(&mut n1, &GROUP, request()), [send(2, Msg::Request(5))]);
    }

    #[test]
    fn a_waiting_node_yields_to_an_earlier_request_and_asks_for_its_permission_back() {
        let mut n1 = node(1);
        n1.clock.witness(4);
        assert_eq!(step(&mut n1, &GROUP, request()), [send(0, Msg::Request(5))]);
        let yielded = step(&mut n1, &GROUP, from(2, Msg::Request(3)));
        assert_eq!(yielded, [send(2, Msg::Reply(5)), send(2, Msg::Request(5))]);
        assert_eq!(step(&mut n1, &GROUP, from(0, Msg::Reply(5))), []);
        assert_eq!(step(&mut n1, &GROUP, from(2, Msg::Reply(7))), [Effect::Granted(Fence(25))]);
    }

    #[test]
    fn later_requests_wait_until_the_node_has_left() {
        let mut n1 = node(1);
        step(&mut n1, &GROUP, request());
        assert_eq!(step(&mut n1, &GROUP, from(2, Msg::Request(1))), []);
        step(&mut n1, &GROUP, from(0, Msg::Reply(1)));
        assert_eq!(step(&mut n1, &GROUP, from(0, Msg::Request(2))), [], "inside");
        let left = step(&mut n1, &GROUP, Input::Release);
        assert_eq!(left, [send(0, Msg::Reply(2)), send(2, Msg::Reply(2))]);
        assert_eq!(n1.missing, 2);
    }

    #[test]
    fn a_fence_passes_those_of_entries_that_nobody_was_asked_for() {
        let (mut n0, mut n1) = (node(0), node(1));
        for time in 1..=2 {
            let granted = step(&mut n0, &GROUP, request());
            assert_eq!(granted, [Effect::Granted(Fence(time * 6))]);
            step(&mut n0, &GROUP, Input::Release);
        }
        assert_eq!(step(&mut n1, &GROUP, request()), [send(0, Msg::Request(1))]);
        let yielded = step(&mut n0, &GROUP, from(1, Msg::Request(1)));
        assert_eq!(yielded, [send(1, Msg::Reply(4))]);
        let granted = step(&mut n1, &GROUP, from(0, Msg::Reply(4)));
        assert_eq!(granted, [Effect::Granted(Fence(16))]);
    }

    #[test]
    fn a_holder_starts_with_every_permission_and_each_pair_with_one() {
        for start in [Start::idle(), Start::inside(NodeId(1)), Start::token_at(NodeId(2))] {
            let nodes = [0, 1, 2].map(|id| CarvalhoRoucairol::new(NodeId(id), &GROUP, &start));
            let group = Snapshot { config: &GROUP, nodes: &nodes, in_flight: &[] };
            assert_eq!(CarvalhoRoucairol::invariant(&group), Ok(()));
            assert_eq!(nodes[start.token().index()].missing, 0);
            let reply = Envelope { from: NodeId(0), to: NodeId(1), message: Msg::Reply(1) };
            let group = Snapshot { in_flight: &[reply], ..group };
            assert!(CarvalhoRoucairol::invariant(&group).is_err(), "a second permission");
        }
    }

    #[test]
    fn a_group_of_one_enters_at_once() {
        let alone = Members { nodes: 1 };
        let mut node = CarvalhoRoucairol::new(NodeId(0), &alone, &Start::idle());
        assert_eq!(step(&mut node, &alone, request()), [Effect::Granted(Fence(2))]);
    }

    #[test]
    fn what_no_correct_run_sends_is_an_anomaly() {
        let is_anomaly = |effects: &[_]| matches!(effects, [Effect::Anomaly(_)]);
        assert!(is_anomaly(&step(&mut node(0), &GROUP, from(1, Msg::Reply(1)))));
        assert!(is_anomaly(&step(&mut node(1), &GROUP, from(0, Msg::Request(1)))));
    }
}
