//! Running a trace again.

use std::collections::BTreeSet;

use catraca_algorithms::{Spec, Visitor};
use catraca_core::{Algorithm, Fence, Input, NodeId, Phase};

use crate::file::{Trace, TraceError};
use crate::record::{Event, Outcome, Payload, Recorder, Step};

/// Where a trace and its replay part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which event, counted from 1.
    pub event: usize,
    /// What the trace says.
    pub recorded: Step,
    /// What happens now.
    pub replayed: Step,
}

/// What a replay showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// How many steps were run.
    pub steps: usize,
    /// How many messages were sent.
    pub messages: usize,
    /// How many entries were granted.
    pub entries: usize,
    /// The first step that went differently. The replay stops there.
    pub difference: Option<Difference>,
    /// What went wrong in the run itself, in the order of the events.
    pub violations: Vec<(usize, String)>,
}

/// Creates the group anew, gives every node the inputs of the trace, and compares what it does.
pub fn replay(trace: &Trace) -> Result<Replay, TraceError> {
    trace.header.spec.visit(Replayer(trace))?
}

struct Replayer<'a>(&'a Trace);

impl Visitor for Replayer<'_> {
    type Output = Result<Replay, TraceError>;

    fn visit<A: Algorithm>(self, config: A::Config) -> Self::Output {
        let spec = &self.0.header.spec;
        let mut nodes: Vec<A> =
            NodeId::all(spec.nodes).map(|me| A::new(me, &config, &spec.start)).collect();
        let mut recorder = Recorder::new();
        let mut watch = Watch::new(spec);
        let mut result = Replay::default();
        for (index, event) in self.0.events.iter().enumerate() {
            let number = index + 1;
            let recorded = match event {
                Event::Step(step) => step,
                Event::Crash { node, .. } => {
                    watch.leave(*node);
                    continue;
                }
                Event::Lost { .. } => continue,
            };
            let broken = |what: String| TraceError::Event { event: number, what };
            named_nodes_exist(recorded, spec.nodes).map_err(broken)?;
            let state = &mut nodes[recorded.node.index()];
            let input = typed::<A>(&recorded.input).map_err(broken)?;
            let place = (recorded.at, recorded.node);
            let replayed = recorder.drive(state, &config, place, input, recorded.delivers);
            result.steps += 1;
            watch.step(number, &replayed, &mut result);
            if replayed != *recorded {
                let recorded = recorded.clone();
                result.difference = Some(Difference { event: number, recorded, replayed });
                break;
            }
        }
        Ok(result)
    }
}

/// A step is taken by a node of the group, on a message of another.
pub(crate) fn named_nodes_exist(step: &Step, nodes: u32) -> Result<(), String> {
    let sender = match step.input {
        Input::Message { from, .. } if from == step.node => {
            return Err(format!("node {from} gets a message from itself"));
        }
        Input::Message { from, .. } => Some(from),
        _ => None,
    };
    let mut named = [Some(step.node), sender].into_iter().flatten();
    match named.find(|node| node.0 >= nodes) {
        Some(node) => Err(format!("there is no node {node}")),
        None => Ok(()),
    }
}

pub(crate) fn typed<A: Algorithm>(input: &Input<Payload>) -> Result<Input<A::Message>, String> {
    Ok(match input {
        Input::Message { from, message } => Input::Message {
            from: *from,
            message: serde_json::from_value(message.body.clone())
                .map_err(|error| format!("the algorithm has no message {message} ({error})"))?,
        },
        Input::Start => Input::Start,
        Input::Request(claim) => Input::Request(claim.clone()),
        Input::Release => Input::Release,
        Input::Timer(tag) => Input::Timer(*tag),
        Input::Suspect(node) => Input::Suspect(*node),
        Input::Trust(node) => Input::Trust(*node),
    })
}

/// Watches a replayed run for what no run may show.
struct Watch {
    phases: Vec<Phase>,
    capacity: usize,
    fences: BTreeSet<Fence>,
}

impl Watch {
    fn new(spec: &Spec) -> Self {
        let phase = |node| spec.start.phase_of(node);
        Watch {
            phases: NodeId::all(spec.nodes).map(phase).collect(),
            capacity: spec.capacity() as usize,
            fences: BTreeSet::new(),
        }
    }

    fn leave(&mut self, node: NodeId) {
        if let Some(phase) = self.phases.get_mut(node.index()) {
            *phase = Phase::Idle;
        }
    }

    fn step(&mut self, number: usize, step: &Step, result: &mut Replay) {
        if step.input == Input::Release {
            self.leave(step.node);
        }
        let mut report = |what: String| result.violations.push((number, what));
        for outcome in &step.outcomes {
            match outcome {
                Outcome::Send { .. } => result.messages += 1,
                Outcome::Granted(fence) => {
                    result.entries += 1;
                    let is_inside = |(_, phase): &(NodeId, &Phase)| **phase == Phase::Inside;
                    let inside: Vec<String> = (0..)
                        .map(NodeId)
                        .zip(&self.phases)
                        .filter(is_inside)
                        .map(|(node, _)| node.to_string())
                        .collect();
                    if inside.len() >= self.capacity {
                        let inside = inside.join(", ");
                        report(format!("node {} enters while node {inside} is inside", step.node));
                    }
                    let last = self.fences.last().copied().unwrap_or(Fence::NONE);
                    let is_new = self.fences.insert(*fence);
                    if self.capacity == 1 && *fence <= last {
                        report(format!("fence {fence} comes after fence {last}"));
                    } else if !is_new {
                        report(format!("fence {fence} comes for the second time"));
                    }
                    self.phases[step.node.index()] = Phase::Inside;
                }
                Outcome::Anomaly(what) => report(format!("node {}: {what}", step.node)),
                Outcome::SetTimer { .. } | Outcome::CancelTimer(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::Claim;

    use super::*;
    use crate::file::{Header, Origin};

    fn one_entry() -> Trace {
        let step = Step {
            at: 0,
            node: NodeId(0),
            input: Input::Request(Claim::single()),
            delivers: None,
            outcomes: vec![Outcome::Granted(Fence(1))],
        };
        let header = Header::new(Origin::Sim, Spec::new("ricart-agrawala", 1), 1);
        Trace { header, events: vec![Event::Step(step)] }
    }

    #[test]
    fn a_faithful_trace_replays_without_a_difference() {
        let replayed = replay(&one_entry()).unwrap();
        assert_eq!(replayed, Replay { steps: 1, entries: 1, ..Replay::default() });
    }

    #[test]
    fn a_changed_trace_differs_where_it_was_changed() {
        let mut trace = one_entry();
        let Event::Step(step) = &mut trace.events[0] else { unreachable!() };
        step.outcomes = vec![Outcome::Granted(Fence(2))];
        assert_eq!(replay(&trace).unwrap().difference.unwrap().event, 1);
    }

    #[test]
    fn a_step_of_an_unknown_node_is_an_error() {
        let mut trace = one_entry();
        let Event::Step(step) = &mut trace.events[0] else { unreachable!() };
        step.node = NodeId(9);
        assert!(replay(&trace).unwrap_err().to_string().contains("no node 9"));
    }
}
