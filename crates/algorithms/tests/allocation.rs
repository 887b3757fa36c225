//! A step of a warm node allocates nothing, where messages carry no data on the heap.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use std::collections::VecDeque;

use catraca_algorithms::{Spec, Visitor};
use catraca_core::{Algorithm, Claim, Effect, Effects, Envelope, Input, NodeId};

/// The algorithms whose messages are plain numbers.
const PLAIN: [&str; 7] = [
    "coordinator",
    "lamport",
    "ricart-agrawala",
    "carvalho-roucairol",
    "maekawa",
    "raymond",
    "raymond-k",
];

/// Steps that are counted.
const STEPS: usize = 20_000;

/// A group under high load: messages arrive in the order of sending, a node that is let in leaves
/// some steps later, and asks again some steps after that.
struct Group<A: Algorithm> {
    config: A::Config,
    nodes: Vec<A>,
    effects: Effects<A::Message>,
    in_flight: VecDeque<Envelope<A::Message>>,
    /// Who wants to ask, in order.
    idle: VecDeque<NodeId>,
    inside: Option<NodeId>,
    entries: usize,
    turns: usize,
    steps: usize,
    allocations: u64,
}

impl<A: Algorithm> Group<A> {
    fn new(config: A::Config, spec: &Spec) -> Self {
        let nodes: Vec<A> =
            NodeId::all(spec.nodes).map(|me| A::new(me, &config, &spec.start)).collect();
        Group {
            config,
            effects: Effects::new(),
            in_flight: VecDeque::with_capacity(4 * nodes.len() * nodes.len()),
            idle: NodeId::all(spec.nodes).collect(),
            nodes,
            inside: None,
            entries: 0,
            turns: 0,
            steps: 0,
            allocations: 0,
        }
    }

    fn step(&mut self, node: NodeId, input: Input<A::Message>) {
        let state = &mut self.nodes[node.index()];
        let (config, effects) = (&self.config, &mut self.effects);
        let counted = allocation_counter::measure(|| state.step(config, input, effects));
        self.steps += 1;
        self.allocations += counted.count_total;
        for effect in self.effects.drain() {
            match effect {
                Effect::Send { to, message } => {
                    self.in_flight.push_back(Envelope { from: node, to, message });
                }
                Effect::Granted(_) => {
                    self.inside = Some(node);
                    self.entries += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Whatever is next: two messages arrive, then somebody leaves or asks.
    fn turn(&mut self) {
        self.turns += 1;
        for _ in 0..2 {
            if let Some(Envelope { from, to, message }) = self.in_flight.pop_front() {
                self.step(to, Input::Message { from, message });
            }
        }
        match self.inside {
            Some(node) if self.turns.is_multiple_of(3) => {
                self.inside = None;
                self.step(node, Input::Release);
                self.idle.push_back(node);
            }
            _ => {
                if let Some(node) = self.idle.pop_front() {
                    self.step(node, Input::Request(Claim::single()));
                }
            }
        }
    }
}

struct Count<'a>(&'a Spec);

impl Visitor for Count<'_> {
    /// Allocations before the group is warm, and after.
    type Output = (u64, u64);

    fn visit<A: Algorithm>(self, config: A::Config) -> (u64, u64) {
        let mut group = Group::<A>::new(config, self.0);
        while group.entries < 20 * group.nodes.len() {
            group.turn();
        }
        let warming = std::mem::take(&mut group.allocations);
        let (entries, until) = (group.entries, group.steps + STEPS);
        while group.steps < until {
            group.turn();
        }
        assert!(group.entries > entries, "{:?} does not get on", self.0);
        (warming, group.allocations)
    }
}

#[test]
fn a_step_of_a_warm_node_allocates_nothing() {
    for algorithm in PLAIN {
        for nodes in [1, 8, 100] {
            let spec = Spec::new(algorithm, nodes);
            let (warming, warm) = spec.visit(Count(&spec)).unwrap();
            assert!(warming > 0, "{algorithm} {nodes}: nothing is counted");
            assert_eq!(warm, 0, "{algorithm} on {nodes} nodes");
        }
    }
}

#[test]
fn a_queue_that_does_not_fit_into_its_node_keeps_its_memory() {
    let mut star = Spec::new("raymond", 100);
    star.tree = Some("star".parse().unwrap());
    let (warming, warm) = star.visit(Count(&star)).unwrap();
    assert!(warming > 0);
    assert_eq!(warm, 0);
}
