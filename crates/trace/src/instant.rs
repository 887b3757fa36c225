//! A whole group between two steps of a trace.

use catraca_algorithms::Visitor;
use catraca_core::{Algorithm, Effect, Effects, Input, NodeId, Phase};

use crate::file::{Trace, TraceError};
use crate::record::Event;
use crate::replay::{can_be_run, typed};

/// What an observer of all nodes would see at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instant {
    /// By node, whom it points to, in algorithms whose nodes point to each other.
    pub pointers: Vec<Option<NodeId>>,
    /// Whether the algorithm has a token at all.
    pub has_token: bool,
    /// Where the token is: nowhere while it travels, at several nodes only if something is wrong.
    pub tokens: Vec<NodeId>,
    /// By node, whether its application waits or is inside.
    pub phases: Vec<Phase>,
    /// Who has crashed, in the order of the crashes.
    pub crashed: Vec<NodeId>,
}

/// Runs the trace again up to and including the time `at`, and returns the state of the group then.
pub fn instant_at(trace: &Trace, at: u64) -> Result<Instant, TraceError> {
    trace.header.spec.visit(ReplayUntil { trace, at })?
}

/// By node, whom it points to after the time `at`.
pub fn pointers_at(trace: &Trace, at: u64) -> Result<Vec<Option<NodeId>>, TraceError> {
    instant_at(trace, at).map(|instant| instant.pointers)
}

struct ReplayUntil<'a> {
    trace: &'a Trace,
    at: u64,
}

impl Visitor for ReplayUntil<'_> {
    type Output = Result<Instant, TraceError>;

    fn visit<A: Algorithm>(self, config: A::Config) -> Self::Output {
        let spec = &self.trace.header.spec;
        let all = || NodeId::all(spec.nodes);
        let mut nodes: Vec<A> = all().map(|me| A::new(me, &config, &spec.start)).collect();
        let mut phases: Vec<Phase> = all().map(|node| spec.start.phase_of(node)).collect();
        let mut crashed = Vec::new();
        let mut out = Effects::new();
        let events = self.trace.events.iter().take_while(|event| event.at() <= self.at);
        for (index, event) in events.enumerate() {
            let broken = |what: String| TraceError::Event { event: index + 1, what };
            let step = match event {
                Event::Step(step) => step,
                Event::Crash { node, .. } if node.0 >= spec.nodes => {
                    return Err(broken(format!("there is no node {node}")));
                }
                Event::Crash { node, .. } => {
                    phases[node.index()] = Phase::Idle;
                    crashed.push(*node);
                    continue;
                }
                Event::Lost { .. } => continue,
            };
            can_be_run(step, spec).map_err(broken)?;
            let phase = &mut phases[step.node.index()];
            match step.input {
                Input::Request(_) => *phase = Phase::Waiting,
                Input::Release => *phase = Phase::Idle,
                _ => {}
            }
            let input = typed::<A>(&step.input, spec.bounds()).map_err(broken)?;
            nodes[step.node.index()].step(&config, input, &mut out);
            if out.drain().any(|effect| matches!(effect, Effect::Granted(_))) {
                *phase = Phase::Inside;
            }
        }
        let holds = |node: &NodeId| A::TOKEN && nodes[node.index()].holds_token();
        Ok(Instant {
            pointers: nodes.iter().map(A::points_to).collect(),
            has_token: A::TOKEN,
            tokens: all().filter(holds).collect(),
            phases,
            crashed,
        })
    }
}

#[cfg(test)]
mod tests {
    use catraca_algorithms::Spec;
    use catraca_core::Claim;
    use catraca_topology::TreeShape;

    use super::*;
    use crate::file::{Header, Origin};
    use crate::record::{Payload, Step};

    /// Raymond on the chain 0 - 1 - 2, the token at 0: node 1 asks, and gets it.
    fn chain() -> Trace {
        let mut spec = Spec::new("raymond", 3);
        spec.tree = Some(TreeShape::Chain);
        let message = |kind: &str, body: &str| Payload {
            kind: kind.to_string(),
            body: serde_json::from_str(body).unwrap(),
        };
        let step = |at, node, input| {
            Event::Step(Step { at, node: NodeId(node), input, delivers: None, outcomes: vec![] })
        };
        let from = |from, message| Input::Message { from: NodeId(from), message };
        let events = vec![
            step(1, 1, Input::Request(Claim::single())),
            step(2, 0, from(1, message("request", r#""request""#))),
            step(3, 1, from(0, message("token", TOKEN))),
            Event::Crash { at: 4, node: NodeId(2) },
        ];
        Trace { header: Header::new(Origin::Check, spec, 1), events }
    }

    const TOKEN: &str = r#"{"token":0}"#;

    fn numbers(pointers: &[Option<NodeId>]) -> Vec<u32> {
        pointers.iter().flatten().map(|node| node.0).collect()
    }

    #[test]
    fn the_pointers_follow_the_token() {
        let at = |at| instant_at(&chain(), at).unwrap();
        let begin = at(0);
        assert_eq!((numbers(&begin.pointers), begin.tokens), (vec![0, 0, 1], vec![NodeId(0)]));
        let travels = at(2);
        assert_eq!((numbers(&travels.pointers), travels.tokens), (vec![1, 0, 1], vec![]));
        assert_eq!(travels.phases, [Phase::Idle, Phase::Waiting, Phase::Idle]);
        let end = at(u64::MAX);
        assert_eq!((numbers(&end.pointers), end.tokens), (vec![1, 1, 1], vec![NodeId(1)]));
        assert_eq!(end.phases, [Phase::Idle, Phase::Inside, Phase::Idle]);
        assert_eq!((end.has_token, end.crashed), (true, vec![NodeId(2)]));
        assert_eq!(numbers(&pointers_at(&chain(), 2).unwrap()), [1, 0, 1]);
    }

    #[test]
    fn algorithms_without_pointers_have_none() {
        let header = Header::new(Origin::Sim, Spec::new("lamport", 2), 1);
        let instant = instant_at(&Trace { header, events: vec![] }, 0).unwrap();
        assert_eq!((instant.pointers, instant.has_token), (vec![None, None], false));
    }

    #[test]
    fn a_crash_of_an_unknown_node_is_an_error() {
        let mut trace = chain();
        trace.events.push(Event::Crash { at: 5, node: NodeId(9) });
        assert!(instant_at(&trace, 5).unwrap_err().to_string().contains("no node 9"));
    }
}
