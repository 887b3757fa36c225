//! Running a trace again while somebody looks at what the nodes know.

use std::ops::ControlFlow;

use catraca_algorithms::{Spec, Visitor};
use catraca_core::{Algorithm, NodeId, Variables};

use crate::file::{Trace, TraceError};
use crate::record::{Event, Recorder, Step};
use crate::replay::{can_be_run, typed};

/// Whoever looks.
pub trait Observer {
    /// What every node knows before the first step.
    fn begin(&mut self, nodes: Vec<Variables>);

    /// A node has taken the step of event `index`, counted from 0, and knows this now.
    fn step(&mut self, index: usize, step: Step, knows: Variables) -> ControlFlow<()>;

    /// An event that is no step.
    fn other(&mut self, index: usize, event: &Event);
}

/// Gives the inputs of the trace to fresh nodes of `spec`, which may be another group than the trace's: the
/// correct one of a mutant, say. Whether the steps are those of the trace is for the observer to see.
pub fn follow(trace: &Trace, spec: &Spec, observer: &mut dyn Observer) -> Result<(), TraceError> {
    spec.visit(Follow { trace, spec, observer })?
}

struct Follow<'a> {
    trace: &'a Trace,
    spec: &'a Spec,
    observer: &'a mut dyn Observer,
}

impl Visitor for Follow<'_> {
    type Output = Result<(), TraceError>;

    fn visit<A: Algorithm>(self, config: A::Config) -> Self::Output {
        let Follow { trace, spec, observer } = self;
        let mut nodes: Vec<A> =
            NodeId::all(spec.nodes).map(|me| A::new(me, &config, &spec.start)).collect();
        let mut recorder = Recorder::new();
        observer.begin(nodes.iter().map(known).collect());
        for (index, event) in trace.events.iter().enumerate() {
            let Event::Step(step) = event else {
                observer.other(index, event);
                continue;
            };
            let broken = |what: String| TraceError::Event { event: index + 1, what };
            can_be_run(step, spec).map_err(broken)?;
            let node = &mut nodes[step.node.index()];
            let input = typed::<A>(&step.input, spec.bounds()).map_err(broken)?;
            let taken = recorder.drive(node, &config, (step.at, step.node), input, step.delivers);
            if observer.step(index, taken, known(node)).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn known<A: Algorithm>(node: &A) -> Variables {
    let mut variables = Variables::new();
    node.variables(&mut variables);
    variables
}
