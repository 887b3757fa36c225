//! Running a trace again.

use catraca_algorithms::{Spec, Visitor};
use catraca_core::{Algorithm, Bounds, Input, Message, NodeId};

use crate::file::{Trace, TraceError};
use crate::monitor::Monitor;
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

/// Creates the group again, gives every node the inputs of the trace, and compares what it does.
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
        let mut monitor = Monitor::new(spec);
        let mut result = Replay::default();
        for (index, event) in self.0.events.iter().enumerate() {
            let number = index + 1;
            let recorded = match event {
                Event::Step(step) => step,
                Event::Crash { node, .. } => {
                    monitor.leave(*node);
                    continue;
                }
                Event::Lost { .. } => continue,
            };
            let broken = |what: String| TraceError::Event { event: number, what };
            can_be_run(recorded, spec).map_err(broken)?;
            let state = &mut nodes[recorded.node.index()];
            let input = typed::<A>(&recorded.input, spec.bounds()).map_err(broken)?;
            let place = (recorded.at, recorded.node);
            let replayed = recorder.drive(state, &config, place, input, recorded.delivers);
            result.count(&replayed);
            result
                .violations
                .extend(monitor.step(&replayed).into_iter().map(|what| (number, what)));
            if replayed != *recorded {
                let recorded = recorded.clone();
                result.difference = Some(Difference { event: number, recorded, replayed });
                break;
            }
        }
        Ok(result)
    }
}

impl Replay {
    fn count(&mut self, step: &Step) {
        self.steps += 1;
        for outcome in &step.outcomes {
            match outcome {
                Outcome::Send { .. } => self.messages += 1,
                Outcome::Granted(_) => self.entries += 1,
                _ => {}
            }
        }
    }
}

/// A step is taken by a node of the group, on a message of another, or for resources that there
/// are.
pub(crate) fn can_be_run(step: &Step, spec: &Spec) -> Result<(), String> {
    let other = match &step.input {
        Input::Message { from, .. } if *from == step.node => {
            return Err(format!("node {from} gets a message from itself"));
        }
        Input::Message { from, .. } => Some(*from),
        Input::Suspect(node) | Input::Trust(node) => Some(*node),
        Input::Request(claim) => {
            let resources = spec.resource_count();
            if let Some(unknown) = claim.resources().iter().find(|one| one.0 >= resources) {
                return Err(format!("there is no resource {unknown}"));
            }
            if claim.resources().is_empty() {
                return Err(format!("node {} asks for nothing", step.node));
            }
            None
        }
        _ => None,
    };
    let mut named = [Some(step.node), other].into_iter().flatten();
    match named.find(|node| node.0 >= spec.nodes) {
        Some(node) => Err(format!("there is no node {node}")),
        None => Ok(()),
    }
}

pub(crate) fn typed<A: Algorithm>(
    input: &Input<Payload>,
    bounds: Bounds,
) -> Result<Input<A::Message>, String> {
    Ok(match input {
        Input::Message { from, message: payload } => {
            let message: A::Message = serde_json::from_value(payload.body.clone())
                .map_err(|error| format!("the algorithm has no message {payload} ({error})"))?;
            if !message.is_possible(bounds) {
                return Err(format!("no node of this group can have sent {payload}"));
            }
            Input::Message { from: *from, message }
        }
        Input::Start => Input::Start,
        Input::Request(claim) => Input::Request(claim.clone()),
        Input::Release => Input::Release,
        Input::Timer(tag) => Input::Timer(*tag),
        Input::Suspect(node) => Input::Suspect(*node),
        Input::Trust(node) => Input::Trust(*node),
    })
}

#[cfg(test)]
mod tests {
    use catraca_core::{Claim, Fence, ResourceId};

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

    #[test]
    fn a_request_for_an_unknown_resource_or_for_nothing_is_an_error() {
        for (claim, what) in
            [(Claim::of([ResourceId(7)]), "no resource 7"), (Claim::of([]), "asks for nothing")]
        {
            let mut trace = one_entry();
            let Event::Step(step) = &mut trace.events[0] else { unreachable!() };
            step.input = Input::Request(claim);
            assert!(replay(&trace).unwrap_err().to_string().contains(what));
        }
    }

    #[test]
    fn a_message_that_no_node_can_have_sent_is_an_error() {
        let body = serde_json::json!({ "request": 5 });
        let message = Payload { kind: "request".to_string(), body };
        let step = Step {
            at: 0,
            node: NodeId(0),
            input: Input::Message { from: NodeId(1), message },
            delivers: None,
            outcomes: vec![],
        };
        let header = Header::new(Origin::Sim, Spec::new("naimi-trehel", 2), 1);
        let trace = Trace { header, events: vec![Event::Step(step)] };
        let error = replay(&trace).unwrap_err().to_string();
        assert!(error.contains("no node of this group can have sent"), "{error}");
    }
}
