//! Traces for tests, from real runs with a fixed latency.

use std::collections::BTreeMap;

use catraca_algorithms::{Spec, Visitor};
use catraca_core::{Algorithm, Claim, Effect, Effects, Fence, Input, NodeId, ResourceId, Start};
use catraca_trace::{Event, Header, Origin, Outcome, Recorder, SendId, Step, Trace};

/// What happens to a group from outside.
#[derive(Clone, Copy)]
pub(crate) enum Act {
    Request,
    Release,
    Crash,
    Suspect(u32),
}

/// A run: what happens when to whom, and how long messages take.
struct Run {
    spec: Spec,
    acts: Vec<(u64, u32, Act)>,
    latency: fn(NodeId, NodeId) -> u64,
    /// Nothing is delivered after this time.
    end: u64,
}

impl Visitor for &Run {
    type Output = Vec<Event>;

    fn visit<A: Algorithm>(self, config: A::Config) -> Vec<Event> {
        let all = NodeId::all(self.spec.nodes);
        let mut nodes: Vec<A> = all.map(|me| A::new(me, &config, &self.spec.start)).collect();
        let mut acts: BTreeMap<(u64, usize), (u32, Act)> = BTreeMap::new();
        acts.extend(self.acts.iter().enumerate().map(|(i, &(at, n, act))| ((at, i), (n, act))));
        let mut channel: BTreeMap<(u64, SendId), (NodeId, NodeId, A::Message)> = BTreeMap::new();
        let (mut recorder, mut sent, mut crashed) = (Recorder::new(), 0, Vec::new());
        let mut events = Vec::new();
        loop {
            let act_at = acts.first_key_value().map_or(u64::MAX, |(&(at, _), _)| at);
            let message_at = channel.first_key_value().map_or(u64::MAX, |(&(at, _), _)| at);
            let at = act_at.min(message_at);
            if at > self.end {
                return events;
            }
            let (node, input, delivers) = if act_at <= message_at {
                let (_, (node, act)) = acts.pop_first().unwrap();
                let input = match act {
                    Act::Request => Input::Request(Claim::single()),
                    Act::Release => Input::Release,
                    Act::Suspect(other) => Input::Suspect(NodeId(other)),
                    Act::Crash => {
                        crashed.push(NodeId(node));
                        events.push(Event::Crash { at, node: NodeId(node) });
                        continue;
                    }
                };
                (NodeId(node), input, None)
            } else {
                let ((_, id), (from, to, message)) = channel.pop_first().unwrap();
                if crashed.contains(&to) {
                    events.push(Event::Lost { at, id });
                    continue;
                }
                (to, Input::Message { from, message }, Some(id))
            };
            let mut out = Effects::new();
            nodes[node.index()].step(&config, input.clone(), &mut out);
            events.push(Event::Step(recorder.step(at, node, &input, delivers, out.as_slice())));
            for effect in out.drain() {
                if let Effect::Send { to, message } = effect {
                    channel
                        .insert((at + (self.latency)(node, to), SendId(sent)), (node, to, message));
                    sent += 1;
                }
            }
        }
    }
}

fn trace_of(run: &Run, origin: Origin, ticks_per_unit: u64) -> Trace {
    let events = run.spec.visit(run).unwrap();
    Trace { header: Header::new(origin, run.spec.clone(), ticks_per_unit), events }
}

/// Three nodes of Ricart-Agrawala, two of which ask at almost the same time.
pub(crate) fn three_nodes() -> Trace {
    let spec = Spec::new("ricart-agrawala", 3);
    let acts = vec![
        (0, 0, Act::Request),
        (300, 2, Act::Request),
        (3_500, 0, Act::Release),
        (6_000, 2, Act::Release),
        (6_500, 1, Act::Request),
        (11_000, 1, Act::Release),
    ];
    let latency = |from: NodeId, to: NodeId| 800 + 130 * u64::from(from.0 * 2 + to.0);
    trace_of(&Run { spec, acts, latency, end: 20_000 }, Origin::Sim, 1_000)
}

/// Seven nodes of Raymond on a binary tree: node 5 asks, then node 3.
pub(crate) fn raymond() -> Trace {
    let spec = Spec::new("raymond", 7);
    let acts = vec![
        (300, 5, Act::Request),
        (1_000, 3, Act::Request),
        (6_500, 5, Act::Release),
        (15_000, 3, Act::Release),
    ];
    trace_of(&Run { spec, acts, latency: |_, _| 1_000, end: 20_000 }, Origin::Sim, 1_000)
}

/// A node crashes; what was sent to it is lost, and what is sent last does not arrive in time.
pub(crate) fn crash() -> Trace {
    let spec = Spec::new("ricart-agrawala", 3);
    let acts = vec![
        (0, 0, Act::Request),
        (1_200, 2, Act::Crash),
        (2_600, 0, Act::Release),
        (3_000, 1, Act::Request),
        (3_600, 0, Act::Suspect(2)),
        (4_200, 0, Act::Request),
    ];
    let latency = |_, to: NodeId| if to.0 == 2 { 900 } else { 1_000 };
    trace_of(&Run { spec, acts, latency, end: 5_150 }, Origin::Sim, 1_000)
}

fn step(at: u64, node: u32, input: Input<catraca_trace::Payload>, outcomes: Vec<Outcome>) -> Event {
    Event::Step(Step { at, node: NodeId(node), input, delivers: None, outcomes })
}

/// Node 0 is inside at the start, node 1 comes after it.
pub(crate) fn holder_and_waiter() -> Trace {
    let spec = Spec::new("ricart-agrawala", 2).starting(Start::inside(NodeId(0)));
    let acts = vec![(5, 1, Act::Request), (20, 0, Act::Release)];
    trace_of(&Run { spec, acts, latency: |_, _| 10, end: 100 }, Origin::Sim, 10)
}

/// A counterexample of the checker, with times that count steps: nodes 0 and 2 are both inside.
pub(crate) fn violation() -> Trace {
    let spec = Spec::new("ricart-agrawala", 3).broken("no-tie-break");
    let acts = vec![(0, 0, Act::Request), (0, 2, Act::Request)];
    let mut trace = trace_of(&Run { spec, acts, latency: |_, _| 1, end: 9 }, Origin::Check, 1);
    let mut number = 0;
    for event in &mut trace.events {
        if let Event::Step(step) = event {
            step.at = number;
            number += 1;
        }
    }
    let entries = |event: &Event| match event {
        Event::Step(step) => step.outcomes.iter().any(|o| matches!(o, Outcome::Granted(_))),
        _ => false,
    };
    let last = trace.events.iter().rposition(entries).unwrap();
    trace.events.truncate(last + 1);
    trace.header.violation = Some("node 2 enters while node 0 is inside <&>".to_owned());
    trace
}

/// Nodes 0 and 1 are inside at the same time, each with a claim of its own.
pub(crate) fn two_claims(first: [u32; 2], second: [u32; 2]) -> Trace {
    let claim = |claim: [u32; 2]| Input::Request(Claim::of(claim.map(ResourceId)));
    let events = vec![
        step(1, 0, claim(first), vec![Outcome::Granted(Fence(1))]),
        step(2, 1, claim(second), vec![Outcome::Granted(Fence(2))]),
        step(3, 0, Input::Release, vec![]),
    ];
    Trace { header: Header::new(Origin::Check, Spec::new("bouabdallah-laforest", 2), 1), events }
}

/// A busy run of `nodes` nodes in which everybody asks once.
pub(crate) fn busy_run(nodes: u32) -> Trace {
    let spec = Spec::new("ricart-agrawala", nodes);
    let mut acts: Vec<(u64, u32, Act)> =
        (0..nodes).map(|node| (u64::from(node) * 170, node, Act::Request)).collect();
    acts.extend((0..nodes).map(|node| (4_000 + u64::from(node) * 2_500, node, Act::Release)));
    let latency = |from: NodeId, to: NodeId| 700 + u64::from((from.0 * 7 + to.0 * 13) % 11) * 90;
    trace_of(&Run { spec, acts, latency, end: u64::MAX - 1 }, Origin::Sim, 1_000)
}
