//! **Idea.** One node, the coordinator, decides. A node that wants to enter asks it, enters with
//! its grant and sends it a release when it leaves. Requests are granted one at a time in the order of their arrival.
//!
//! **Source.** S2, section 8.2; S3 runs the same over TCP.
//!
//! **Assumes.** Reliable channels in any order; no crashes. The coordinator is node 0.
//!
//! **Cost.** 3 messages per entry, none for the coordinator's own; 3(N-1)/N on average when all
//! nodes enter equally often. Delay 2T, or T where the coordinator is one of the two.
//!
//! **Departs.** The grant carries a fence, counted by the coordinator. S2 assumes FIFO channels;
//! they are not needed: a REQUEST that overtakes its sender's RELEASE waits in the queue like any
//! other. The coordinator takes part too, and sends itself nothing.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, Fence, Message, NodeId, Phase, Start, Variables,
};
use catraca_topology::Members;
use serde::{Deserialize, Serialize};

use crate::mutants::{self, Mutation};
use crate::registry::{Channels, Entry, Family, Load, Range, Registered, Tabled, Theory};
use crate::{ASKS_TWICE, Spec, SpecError, TOO_MANY_WAIT};

/// The node that decides.
const COORDINATOR: NodeId = NodeId(0);

/// What the nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// 'I want to enter.'
    Request,
    /// 'Enter, with this fence.'
    Grant(Fence),
    /// 'I have left.'
    Release,
}

impl Message for Msg {
    const KINDS: &'static [&'static str] = &["request", "grant", "release"];

    fn kind(&self) -> usize {
        match self {
            Msg::Request => 0,
            Msg::Grant(_) => 1,
            Msg::Release => 2,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match *self {
            Msg::Request | Msg::Release => true,
            Msg::Grant(fence) => bounds.has_fence(fence),
        }
    }
}

/// What only the coordinator knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CoordinatorState {
    /// The node that has a grant and has not released it.
    pub(crate) holder: Option<NodeId>,
    /// The fence of the last grant.
    pub(crate) last: Fence,
    /// Who waits, in the order of arrival.
    pub(crate) queue: VecDeque<NodeId>,
}

impl CoordinatorState {
    /// Picks the next node, unless one is inside.
    fn admit(&mut self) -> Option<(NodeId, Fence)> {
        if self.holder.is_some() {
            return None;
        }
        self.holder = self.queue.pop_front();
        let next = self.holder?;
        self.last = self.last.next();
        Some((next, self.last))
    }
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coordinator {
    pub(crate) me: NodeId,
    pub(crate) phase: Phase,
    /// Boxed, because every node but one does without: groups have up to ten million.
    pub(crate) state: Option<Box<CoordinatorState>>,
}

impl Coordinator {
    fn on_ask(&mut self, config: &Members, from: NodeId, out: &mut Effects<Msg>) {
        let Some(state) = &mut self.state else {
            return out.anomaly("a request came to a node that does not coordinate");
        };
        if state.queue.len() >= config.nodes as usize {
            return out.anomaly(TOO_MANY_WAIT);
        }
        state.queue.push_back(from);
        self.admit_next(out);
    }

    fn on_grant(&mut self, fence: Fence, out: &mut Effects<Msg>) {
        if self.phase != Phase::Waiting {
            return out.anomaly("a grant came that nobody waits for");
        }
        self.phase = Phase::Inside;
        out.granted(fence);
    }

    fn on_left(&mut self, from: NodeId, out: &mut Effects<Msg>) {
        match &mut self.state {
            Some(state) if state.holder == Some(from) => {
                state.holder = None;
                self.admit_next(out);
            }
            _ => out.anomaly("a release came that is not the holder's"),
        }
    }

    fn admit_next(&mut self, out: &mut Effects<Msg>) {
        match self.state.as_mut().and_then(|state| state.admit()) {
            Some((next, fence)) if next == self.me => self.on_grant(fence, out),
            Some((next, fence)) => out.send(next, Msg::Grant(fence)),
            None => {}
        }
    }
}

impl Algorithm for Coordinator {
    type Message = Msg;
    type Config = Members;

    fn new(me: NodeId, _config: &Members, start: &Start) -> Self {
        let phase = start.phase_of(me);
        let state = (me == COORDINATOR).then(|| {
            let holder = start.holders().map(|(node, _)| node).next();
            Box::new(CoordinatorState { holder, last: Fence::NONE, queue: VecDeque::new() })
        });
        Coordinator { me, phase, state }
    }

    fn on_request(&mut self, config: &Members, _claim: Claim, out: &mut Effects<Msg>) {
        if self.phase != Phase::Idle {
            return out.anomaly(ASKS_TWICE);
        }
        self.phase = Phase::Waiting;
        if self.me == COORDINATOR {
            self.on_ask(config, self.me, out);
        } else {
            out.send(COORDINATOR, Msg::Request);
        }
    }

    fn on_release(&mut self, _config: &Members, out: &mut Effects<Msg>) {
        self.phase = Phase::Idle;
        if self.me == COORDINATOR {
            self.on_left(self.me, out);
        } else {
            out.send(COORDINATOR, Msg::Release);
        }
    }

    fn on_message(&mut self, config: &Members, from: NodeId, message: Msg, out: &mut Effects<Msg>) {
        match message {
            Msg::Request => self.on_ask(config, from, out),
            Msg::Grant(fence) => self.on_grant(fence, out),
            Msg::Release => self.on_left(from, out),
        }
    }

    fn variables(&self, out: &mut Variables) {
        out.phase(self.phase);
        if let Some(state) = &self.state {
            out.node("holder", state.holder);
            out.queue("queue", state.queue.iter().copied());
            out.number("last", state.last.0);
        }
    }
}

impl Registered for Coordinator {
    const ENTRY: Entry = Entry {
        name: "coordinator",
        title: "central coordinator",
        family: Family::Central,
        channels: Channels::Any,
        messages: "3, 0 at the coordinator",
        delay: "T to 2T",
        fence: "counter at the coordinator",
        source: "S2 8.2, S3",
        max_nodes: 10_000_000,
        parameters: &[],
        claims: Some(Tabled { messages: |_, _| 3.0, delay: |_| Range::exactly(2.0) }),
        file: include_str!("coordinator.rs"),
    };

    fn config(spec: &Spec) -> Result<Members, SpecError> {
        Ok(Members { nodes: spec.nodes })
    }

    fn theory(config: &Members, _load: Load) -> Theory {
        // One entry in N is the coordinator's own and costs nothing.
        let nodes = f64::from(config.nodes);
        let messages = Range::exactly(3.0 * (nodes - 1.0) / nodes);
        Theory { messages, delay: Range::between(1.0, 2.0) }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::coordinator::ALL
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::{Effect, Input};

    use super::*;
    use crate::testing::{from, request, send, step};

    const GROUP: Members = Members { nodes: 4 };

    fn node(id: u32) -> Coordinator {
        Coordinator::new(NodeId(id), &GROUP, &Start::idle())
    }

    /// 'The site that wants the CS sends REQUEST to the coordinator', and 'after the execution it
    /// sends RELEASE'. Reference: S2 8.2, steps 1 and 3.
    #[test]
    fn paper_a_site_asks_the_coordinator_enters_with_its_grant_and_reports_back() {
        let mut n2 = node(2);
        assert_eq!(step(&mut n2, &GROUP, request()), [send(0, Msg::Request)]);
        let granted = step(&mut n2, &GROUP, from(0, Msg::Grant(Fence(7))));
        assert_eq!(granted, [Effect::Granted(Fence(7))]);
        assert_eq!(step(&mut n2, &GROUP, Input::Release), [send(0, Msg::Release)]);
    }

    /// 'The coordinator keeps an ordered queue and grants in the order of arrival.'
    /// Reference: S2 8.2, step 2.
    #[test]
    fn paper_the_coordinator_grants_in_the_order_of_arrival() {
        let mut n0 = node(0);
        let first = step(&mut n0, &GROUP, from(3, Msg::Request));
        assert_eq!(first, [send(3, Msg::Grant(Fence(1)))]);
        assert_eq!(step(&mut n0, &GROUP, from(2, Msg::Request)), []);
        assert_eq!(step(&mut n0, &GROUP, from(1, Msg::Request)), []);
        let second = step(&mut n0, &GROUP, from(3, Msg::Release));
        assert_eq!(second, [send(2, Msg::Grant(Fence(2)))]);
        let third = step(&mut n0, &GROUP, from(2, Msg::Release));
        assert_eq!(third, [send(1, Msg::Grant(Fence(3)))]);
        assert_eq!(step(&mut n0, &GROUP, from(1, Msg::Release)), []);
    }

    #[test]
    fn the_coordinators_own_entry_costs_no_message_but_waits_its_turn() {
        let mut n0 = node(0);
        assert_eq!(step(&mut n0, &GROUP, request()), [Effect::Granted(Fence(1))]);
        assert_eq!(step(&mut n0, &GROUP, from(1, Msg::Request)), []);
        assert_eq!(step(&mut n0, &GROUP, Input::Release), [send(1, Msg::Grant(Fence(2)))]);
        assert_eq!(step(&mut n0, &GROUP, request()), []);
        let next = step(&mut n0, &GROUP, from(1, Msg::Release));
        assert_eq!(next, [Effect::Granted(Fence(3))]);
    }

    #[test]
    fn a_request_that_overtakes_its_senders_release_waits_behind_the_others() {
        let mut n0 = node(0);
        step(&mut n0, &GROUP, from(1, Msg::Request));
        step(&mut n0, &GROUP, from(2, Msg::Request));
        assert_eq!(step(&mut n0, &GROUP, from(1, Msg::Request)), []);
        let next = step(&mut n0, &GROUP, from(1, Msg::Release));
        assert_eq!(next, [send(2, Msg::Grant(Fence(2)))]);
        let again = step(&mut n0, &GROUP, from(2, Msg::Release));
        assert_eq!(again, [send(1, Msg::Grant(Fence(3)))]);
    }

    #[test]
    fn a_group_that_starts_with_a_holder_waits_for_its_release() {
        let start = Start::inside(NodeId(2));
        let mut n0 = Coordinator::new(NodeId(0), &GROUP, &start);
        let mut n2 = Coordinator::new(NodeId(2), &GROUP, &start);
        assert_eq!(step(&mut n0, &GROUP, request()), []);
        assert_eq!(step(&mut n2, &GROUP, Input::Release), [send(0, Msg::Release)]);
        let granted = step(&mut n0, &GROUP, from(2, Msg::Release));
        assert_eq!(granted, [Effect::Granted(Fence(1))]);
    }

    #[test]
    fn what_no_correct_run_sends_is_an_anomaly() {
        let is_anomaly = |effects: &[_]| matches!(effects, [Effect::Anomaly(_)]);
        assert!(is_anomaly(&step(&mut node(1), &GROUP, from(0, Msg::Grant(Fence(1))))));
        assert!(is_anomaly(&step(&mut node(1), &GROUP, from(2, Msg::Request))));
        assert!(is_anomaly(&step(&mut node(1), &GROUP, from(2, Msg::Release))));
        let mut n0 = node(0);
        step(&mut n0, &GROUP, from(1, Msg::Request));
        assert!(is_anomaly(&step(&mut n0, &GROUP, from(2, Msg::Release))));
    }

    #[test]
    fn a_node_without_a_desk_takes_sixteen_bytes() {
        assert_eq!(size_of::<Coordinator>(), 16);
    }
}
