//! Running a check: options, limits, progress and the report.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use catraca_algorithms::{Spec, SpecError, Visitor};
use catraca_core::{Algorithm, Claim};
use catraca_trace::Trace;

use crate::claims::Claims;
use crate::counterexample;
use crate::memory;
use crate::model::GroupModel;
use crate::network::Network;
use crate::search::{Counts, End, search};

/// How often progress is reported.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// How often the memory is measured. Asking the system costs some microseconds.
const MEASURE_EVERY: Duration = Duration::from_millis(10);

/// What to explore, and how far to go.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many requests each application makes.
    pub requests: u32,
    /// How many nodes may crash, each at any moment. The detector tells every other node of it, each
    /// at any moment after.
    pub crashes: u32,
    /// What the applications ask for: request k of node i asks for the claim at place i + k of this
    /// list, going round. With an empty list every resource is asked for with its neighbour.
    pub claims: Vec<Claim>,
    /// In which order messages may arrive.
    pub network: Network,
    /// How many threads explore. A result that no limit cut short does not depend on it.
    pub threads: usize,
    /// The resident memory, in bytes, past which exploring stops. Without effect on systems that
    /// do not tell a process how much it uses.
    pub memory_limit: Option<u64>,
    /// The number of different states past which exploring stops, soon after.
    pub state_limit: Option<u64>,
    /// Exploring stops soon after this becomes true.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Options {
    /// Two requests each and no crashes, on the network that the algorithm of `spec` is made for, on all
    /// processors, without limits.
    pub fn of(spec: &Spec) -> Result<Self, SpecError> {
        Ok(Options {
            requests: 2,
            crashes: 0,
            claims: Vec::new(),
            network: Network::of(spec)?,
            threads: thread::available_parallelism().map_or(1, NonZero::get),
            memory_limit: None,
            state_limit: None,
            stop: None,
        })
    }
}

/// How far an exploration has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Different states so far.
    pub states: u64,
    /// States so far, counting each as often as it was reached.
    pub generated: u64,
    /// Steps from the beginning to where the exploration is now.
    pub depth: usize,
    /// Time since the beginning.
    pub elapsed: Duration,
    /// Resident memory in bytes, where the system tells.
    pub memory: Option<u64>,
}

/// What an exploration showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Different states.
    pub states: u64,
    /// States, counting each as often as it was reached.
    pub generated: u64,
    /// Steps from the beginning to the farthest state. With a violation: to the violation.
    pub depth: usize,
    /// How long it took.
    pub elapsed: Duration,
    /// The result.
    pub verdict: Verdict,
}

/// The result of an exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every property holds in every state that can be reached.
    Holds,
    /// A property is broken.
    Violated(Box<Violation>),
    /// The memory limit was reached. Every property holds in the states seen so far.
    OutOfMemory {
        /// What was in use, in bytes.
        used: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The limit of states was reached. Every property holds in the states seen so far.
    TooManyStates {
        /// The limit.
        limit: u64,
    },
    /// Somebody raised the stop flag. Every property holds in the states seen so far.
    Interrupted,
}

/// How a property is broken, in as few steps as possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The property's name, one of those in [`catraca_core::property`].
    pub property: &'static str,
    /// What is wrong, in words.
    pub what: String,
    /// The steps that lead there.
    pub trace: Trace,
}

/// Explores every run of the group that `spec` describes.
///
/// `progress` is called about ten times a second, and once at the end.
pub fn check(
    spec: &Spec,
    options: &Options,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report, SpecError> {
    struct Run<'a> {
        spec: &'a Spec,
        options: &'a Options,
        progress: &'a mut dyn FnMut(&Progress),
    }
    impl Visitor for Run<'_> {
        type Output = Report;
        fn visit<A: Algorithm>(self, config: A::Config) -> Report {
            check_group::<A>(config, self.spec, self.options, self.progress)
        }
    }
    spec.visit(Run { spec, options, progress })
}

/// The same for an algorithm that is in no registry: `spec` gives the number of nodes and the
/// start, and goes into the header of the trace.
pub fn check_group<A: Algorithm>(
    config: A::Config,
    spec: &Spec,
    options: &Options,
    progress: &mut dyn FnMut(&Progress),
) -> Report {
    let model = GroupModel::<A> {
        config,
        nodes: spec.nodes,
        start: spec.start.clone(),
        requests: options.requests,
        crashes: options.crashes,
        claims: Claims::new(&options.claims, spec, options.requests),
        network: options.network,
    };
    let mut guard = Guard::new(options);
    let mut pulse = |counts: &Counts| guard.pulse(counts, progress);
    let (counts, end) = search(&model, options.threads, &mut pulse);
    progress(&guard.progress(&counts));
    let verdict = match end {
        End::Exhausted => Verdict::Holds,
        End::Stopped(verdict) => verdict,
        End::Violated { property, path } => {
            // The path begins with the choice of the first world, and there is only one.
            let violation = counterexample::violation(&model, spec, property, &path[1..]);
            Verdict::Violated(Box::new(violation))
        }
    };
    let Counts { states, generated, depth } = counts;
    Report { states, generated, depth, elapsed: guard.began.elapsed(), verdict }
}

/// Watches limits and clock while the search goes on.
struct Guard<'a> {
    options: &'a Options,
    began: Instant,
    reported: Instant,
    measured: Option<Instant>,
    memory: Option<u64>,
}

impl<'a> Guard<'a> {
    fn new(options: &'a Options) -> Self {
        let now = Instant::now();
        Guard { options, began: now, reported: now, measured: None, memory: None }
    }

    fn pulse(
        &mut self,
        counts: &Counts,
        progress: &mut dyn FnMut(&Progress),
    ) -> ControlFlow<Verdict> {
        if self.options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return ControlFlow::Break(Verdict::Interrupted);
        }
        if let Some(limit) = self.options.state_limit.filter(|&limit| counts.states > limit) {
            return ControlFlow::Break(Verdict::TooManyStates { limit });
        }
        let now = Instant::now();
        if self.measured.is_none_or(|last| now - last >= MEASURE_EVERY) {
            self.measured = Some(now);
            self.memory = memory::resident();
            if let (Some(used), Some(limit)) = (self.memory, self.options.memory_limit)
                && used > limit
            {
                return ControlFlow::Break(Verdict::OutOfMemory { used, limit });
            }
        }
        if now - self.reported >= REPORT_EVERY {
            self.reported = now;
            progress(&self.progress(counts));
        }
        ControlFlow::Continue(())
    }

    fn progress(&self, counts: &Counts) -> Progress {
        let Counts { states, generated, depth } = *counts;
        Progress { states, generated, depth, elapsed: self.began.elapsed(), memory: self.memory }
    }
}
