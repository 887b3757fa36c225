//! **Idea.** Every node keeps a queue of all requests, ordered by their time stamps. A node that
//! wants to enter puts its request into every queue; it enters when the request heads its own queue
//! and a later message has come from every other node, so that no earlier request can still be on its way.
//! When a node leaves, its request is removed from every queue.
//!
//! **Source.** S2, section 8.3.1; L. Lamport, 1978.
//!
//! **Assumes.** Reliable FIFO channels; no crashes.
//!
//! **Cost.** 3(N-1) messages per entry at any load; delay T.
//!
//! **Departs.** S2's rule L1 waits for a REQUEST with a larger time from everybody, which never
//! comes from those who want nothing; any message with a larger stamp will do, as in the original.
//! S2 also assumes that clocks differ by a bounded amount; logical clocks need no bound.
//! A clock ticks for a request, and for a REPLY only where the stamp would not be larger otherwise;
//! with a tick for every REPLY three nodes reach more than three times as many states.
//! Variables: `queue` is S2's RQ. A vector of the last times received is not kept: `heard` has the
//! nodes for which L1 holds, and `awaited` counts the others.

use alloc::collections::VecDeque;

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, LogicalClock, Message, NodeId, NodeSet, Phase, Stamp, Start,
    Variables,
};
use catraca_topology::Members;
use serde::{Deserialize, Serialize};

use crate::mutants::{self, Mutation};
use crate::registry::{Channels, Entry, Family, Load, Range, Registered, Tabled, Theory};
use crate::{ASKS_TWICE, Spec, SpecError, TOO_MANY_WAIT};

/// What the nodes say to each other. Every message carries the sender's time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// 'I want to enter, and asked at this time.'
    Request(u64),
    /// 'Your request is in my queue, and it is this late here.'
    Reply(u64),
    /// 'I have left; take my request out.'
    Release(u64),
}

impl Msg {
    fn time(&self) -> u64 {
        match *self {
            Msg::Request(time) | Msg::Reply(time) | Msg::Release(time) => time,
        }
    }
}

impl Message for Msg {
    const KINDS: &'static [&'static str] = &["request", "reply", "release"];

    fn kind(&self) -> usize {
        match self {
            Msg::Request(_) => 0,
            Msg::Reply(_) => 1,
            Msg::Release(_) => 2,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match *self {
            Msg::Request(time) | Msg::Reply(time) | Msg::Release(time) => bounds.has_time(time),
        }
    }
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lamport {
    pub(crate) me: NodeId,
    pub(crate) clock: LogicalClock,
    pub(crate) phase: Phase,
    /// The time of the request that is being served. Zero while there is none.
    pub(crate) requested: u64,
    /// The requests of all nodes, ascending. New ones go near the end and served ones are near the
    /// front, so a sorted ring moves little, and unlike a tree it reuses its memory.
    pub(crate) queue: VecDeque<Stamp>,
    /// Others from whom a message later than the own request has come. Empty while there is
    /// no request.
    pub(crate) heard: NodeSet,
    /// How many others are still missing in `heard`.
    pub(crate) awaited: u32,
}

impl Lamport {
    pub(crate) fn my_request(&self) -> Stamp {
        Stamp { time: self.requested, node: self.me }
    }

    fn enqueue(&mut self, request: Stamp) {
        let place = self.queue.partition_point(|&earlier| earlier < request);
        self.queue.insert(place, request);
    }

    /// Takes out the request of `node`, which has one at most.
    pub(crate) fn dequeue(&mut self, node: NodeId, out: &mut Effects<Msg>) {
        match self.queue.iter().position(|request| request.node == node) {
            Some(place) => drop(self.queue.remove(place)),
            None => out.anomaly("a node left that had not asked"),
        }
    }

    /// Notes that `from` has reached `time`: its requests from now on are later than that.
    fn hear(&mut self, from: NodeId, time: u64) {
        self.clock.witness(time);
        let is_later = Stamp { time, node: from } > self.my_request();
        if self.phase == Phase::Waiting && is_later && self.heard.insert(from) {
            self.awaited -= 1;
        }
    }

    fn on_ask(&mut self, config: &Members, request: Stamp, out: &mut Effects<Msg>) {
        if self.queue.len() >= config.nodes as usize {
            return out.anomaly(TOO_MANY_WAIT);
        }
        self.enqueue(request);
        // For L1 the answer has to be later than the question.
        if (Stamp { time: self.clock.now(), node: self.me }) < request {
            self.clock.tick();
        }
        out.send(request.node, Msg::Reply(self.clock.now()));
    }

    /// Rules L1 and L2.
    pub(crate) fn enter_if_first(&mut self, config: &Members, out: &mut Effects<Msg>) {
        let is_first = self.queue.front() == Some(&self.my_request());
        if self.phase == Phase::Waiting && self.awaited == 0 && is_first {
            self.enter(config, out);
        }
    }

    pub(crate) fn enter(&mut self, config: &Members, out: &mut Effects<Msg>) {
        self.phase = Phase::Inside;
        out.granted(self.my_request().fence(config.nodes));
    }
}

impl Algorithm for Lamport {
    type Message = Msg;
    type Config = Members;

    fn new(me: NodeId, _config: &Members, start: &Start) -> Self {
        let phase = start.phase_of(me);
        // A holder's request heads every queue: nobody else asks as early as time 0.
        let queue = start.holders().map(|(node, _)| Stamp { time: 0, node }).collect();
        Lamport {
            me,
            clock: LogicalClock::default(),
            phase,
            requested: 0,
            queue,
            heard: NodeSet::new(),
            awaited: 0,
        }
    }

    fn on_request(&mut self, config: &Members, _claim: Claim, out: &mut Effects<Msg>) {
        if self.phase != Phase::Idle {
            return out.anomaly(ASKS_TWICE);
        }
        self.phase = Phase::Waiting;
        self.requested = self.clock.tick();
        // The clock has passed every time received so far, so no later message has come yet.
        self.awaited = config.nodes - 1;
        self.enqueue(self.my_request());
        out.send_to_others(self.me, config.nodes, &Msg::Request(self.requested));
        self.enter_if_first(config, out);
    }

    fn on_release(&mut self, config: &Members, out: &mut Effects<Msg>) {
        self.phase = Phase::Idle;
        self.requested = 0;
        self.heard.clear();
        self.dequeue(self.me, out);
        out.send_to_others(self.me, config.nodes, &Msg::Release(self.clock.now()));
    }

    fn on_message(&mut self, config: &Members, from: NodeId, message: Msg, out: &mut Effects<Msg>) {
        self.hear(from, message.time());
        match message {
            Msg::Request(time) => self.on_ask(config, Stamp { time, node: from }, out),
            Msg::Reply(_) => {}
            Msg::Release(_) => self.dequeue(from, out),
        }
        self.enter_if_first(config, out);
    }

    fn variables(&self, out: &mut Variables) {
        out.phase(self.phase);
        out.number("clock", self.clock.now());
        out.number("requested", self.requested);
        out.stamps("RQ", self.queue.iter().copied());
        out.set("heard", self.heard.iter());
        out.number("awaited", self.awaited);
    }
}

impl Registered for Lamport {
    const ENTRY: Entry = Entry {
        name: "lamport",
        title: "Lamport, 1978",
        family: Family::Permission,
        channels: Channels::Fifo,
        messages: "3(N-1)",
        delay: "T",
        fence: "(time, id) of the request",
        source: "S2 8.3.1",
        max_nodes: 4096,
        parameters: &[],
        claims: Some(Tabled {
            messages: |nodes, load| match load {
                Load::Low => 2.0 * (nodes - 1.0),
                Load::High => 3.0 * (nodes - 1.0),
            },
            delay: |_| Range::exactly(1.0),
        }),
        file: include_str!("lamport.rs"),
    };

    fn config(spec: &Spec) -> Result<Members, SpecError> {
        Ok(Members { nodes: spec.nodes })
    }

    fn theory(config: &Members, _load: Load) -> Theory {
        let others = f64::from(config.nodes - 1);
        Theory { messages: Range::exactly(3.0 * others), delay: Range::exactly(1.0) }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::lamport::ALL
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::{Effect, Fence, Input};

    use super::*;
    use crate::testing::{from, request, send, step};

    const GROUP: Members = Members { nodes: 3 };

    fn node(id: u32) -> Lamport {
        Lamport::new(NodeId(id), &GROUP, &Start::idle())
    }

    /// 'It adds a request to its local queue and sends REQUEST to all other sites.'
    /// Reference: S2 8.3.1, step 1.
    #[test]
    fn paper_a_requester_asks_all_others_and_enters_when_all_have_been_heard() {
        let mut n1 = node(1);
        let asked = step(&mut n1, &GROUP, request());
        assert_eq!(asked, [send(0, Msg::Request(1)), send(2, Msg::Request(1))]);
        assert_eq!(step(&mut n1, &GROUP, from(0, Msg::Reply(2))), []);
        assert_eq!(step(&mut n1, &GROUP, from(2, Msg::Reply(2))), [Effect::Granted(Fence(4))]);
    }

    /// 'The site has received messages from all other sites with larger timestamps.'
    /// Reference: S2 8.3.1, rule L1.
    #[test]
    fn paper_l1_a_later_request_counts_as_having_heard_and_an_earlier_one_does_not() {
        let mut n1 = node(1);
        step(&mut n1, &GROUP, request());
        step(&mut n1, &GROUP, from(0, Msg::Reply(2)));
        let entered = step(&mut n1, &GROUP, from(2, Msg::Request(1)));
        assert_eq!(entered, [send(2, Msg::Reply(2)), Effect::Granted(Fence(4))]);

        let mut n1 = node(1);
        step(&mut n1, &GROUP, request());
        step(&mut n1, &GROUP, from(2, Msg::Reply(2)));
        let waits = step(&mut n1, &GROUP, from(0, Msg::Request(1)));
        assert_eq!(waits, [send(0, Msg::Reply(2))]);
        assert_eq!(n1.awaited, 1, "(1, n0) is earlier than (1, n1)");
    }

    /// 'Its request is at the top of the local queue.' Reference: S2 8.3.1, rule L2.
    #[test]
    fn paper_l2_a_request_waits_until_the_earlier_ones_are_released() {
        let mut n1 = node(1);
        step(&mut n1, &GROUP, from(0, Msg::Request(1)));
        step(&mut n1, &GROUP, request());
        assert_eq!(step(&mut n1, &GROUP, from(0, Msg::Reply(4))), []);
        assert_eq!(step(&mut n1, &GROUP, from(2, Msg::Reply(4))), []);
        let entered = step(&mut n1, &GROUP, from(0, Msg::Release(4)));
        assert_eq!(entered, [Effect::Granted(Fence(7))]);
    }

    /// 'After leaving the CS the site sends RELEASE to all others.' Reference: S2 8.3.1.
    #[test]
    fn paper_a_leaving_node_tells_all_others() {
        let mut n0 = Lamport::new(NodeId(0), &GROUP, &Start::inside(NodeId(0)));
        assert_eq!(step(&mut n0, &GROUP, from(2, Msg::Request(5))), [send(2, Msg::Reply(6))]);
        let left = step(&mut n0, &GROUP, Input::Release);
        assert_eq!(left, [send(1, Msg::Release(6)), send(2, Msg::Release(6))]);
        assert_eq!(n0.queue, [Stamp { time: 5, node: NodeId(2) }]);
    }

    #[test]
    fn a_group_that_starts_with_a_holder_waits_for_its_release() {
        let mut n1 = Lamport::new(NodeId(1), &GROUP, &Start::inside(NodeId(2)));
        step(&mut n1, &GROUP, request());
        assert_eq!(step(&mut n1, &GROUP, from(0, Msg::Reply(2))), []);
        assert_eq!(step(&mut n1, &GROUP, from(2, Msg::Reply(2))), []);
        let entered = step(&mut n1, &GROUP, from(2, Msg::Release(2)));
        assert_eq!(entered, [Effect::Granted(Fence(4))]);
    }

    #[test]
    fn an_answer_is_later_than_its_question() {
        let mut n1 = node(1);
        let to_higher = step(&mut n1, &GROUP, from(2, Msg::Request(1)));
        assert_eq!(to_higher, [send(2, Msg::Reply(2))], "(1, n1) is earlier than (1, n2)");
        let to_lower = step(&mut n1, &GROUP, from(0, Msg::Request(2)));
        assert_eq!(to_lower, [send(0, Msg::Reply(2))], "(2, n1) is later than (2, n0)");
    }

    #[test]
    fn requests_are_queued_by_time_then_by_id_and_not_by_arrival() {
        let mut n0 = node(0);
        step(&mut n0, &GROUP, from(2, Msg::Request(1)));
        step(&mut n0, &GROUP, from(1, Msg::Request(1)));
        let order = [1, 2].map(|id| Stamp { time: 1, node: NodeId(id) });
        assert_eq!(n0.queue, order);
    }

    #[test]
    fn a_group_of_one_enters_at_once() {
        let alone = Members { nodes: 1 };
        let mut node = Lamport::new(NodeId(0), &alone, &Start::idle());
        assert_eq!(step(&mut node, &alone, request()), [Effect::Granted(Fence(1))]);
    }

    #[test]
    fn a_release_without_a_request_is_an_anomaly() {
        let effects = step(&mut node(0), &GROUP, from(1, Msg::Release(1)));
        assert!(matches!(effects[..], [Effect::Anomaly(_)]));
    }
}
