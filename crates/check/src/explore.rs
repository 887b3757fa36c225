//! Running a check: options, limits, progress and the report.

use std::num::NonZero;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use catraca_algorithms::{Spec, SpecError, Visitor};
use catraca_core::{Algorithm, Claim};
use catraca_trace::Trace;

use crate::counterexample;
use crate::memory;
use crate::model::GroupModel;
use crate::network::Network;
use crate::search::{Counts, End, search};

/// How often progress is reported.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// How often the memory is measured. Asking the system costs some microseconds.
const MEASURE_EVERY: Duration = Duration::from_millis(10);

/// The most nodes of a group that is explored. If each does no more than ask there are 2^64 states.
const MOST_NODES: u32 = 64;
/// The most resources. Every state has the last fence of each.
const MOST_RESOURCES: u32 = 1024;

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

impl Options {
    /// How far to go.
    fn limits(&self) -> Limits {
        let Options { threads, memory_limit, state_limit, .. } = *self;
        Limits { threads, memory_limit, state_limit, stop: self.stop.clone() }
    }
}

/// How far to go, whatever is explored. Each field means what that of [`Options`] means.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many threads explore.
    pub threads: usize,
    /// The resident memory, in bytes, past which exploring stops.
    pub memory_limit: Option<u64>,
    /// The number of different states past which exploring stops, soon after.
    pub state_limit: Option<u64>,
    /// Exploring stops soon after this becomes true.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Default for Limits {
    /// All processors, and no limits.
    fn default() -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        Limits { threads, memory_limit: None, state_limit: None, stop: None }
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
pub struct Report<V = Violation> {
    /// Different states.
    pub states: u64,
    /// States, counting each as often as it was reached.
    pub generated: u64,
    /// Steps from the beginning to the farthest state. With a violation: to the violation.
    pub depth: usize,
    /// How long it took.
    pub elapsed: Duration,
    /// The result.
    pub verdict: Verdict<V>,
}

/// The result of an exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<V = Violation> {
    /// Every property holds in every state that can be reached.
    Holds,
    /// A property is broken.
    Violated(Box<V>),
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
    /// The group is too large to be explored, and nothing was.
    TooLarge {
        /// What there is too much of: nodes or resources.
        what: &'static str,
        /// How many there can be.
        most: u32,
    },
    /// Somebody raised the stop flag. Every property holds in the states seen so far.
    Interrupted,
}

/// How a property is broken, in as few steps as possible; a cycle begins after as few as possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The property's name, one of those in [`catraca_core::property`].
    pub property: &'static str,
    /// What is wrong, in words.
    pub what: String,
    /// The steps that lead there.
    pub trace: Trace,
    /// The steps at the end of the trace that can repeat for ever, where that is what is wrong.
    pub cycle: Option<RangeInclusive<u64>>,
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
    let began = Instant::now();
    let sizes =
        [("nodes", spec.nodes, MOST_NODES), ("resources", spec.resource_count(), MOST_RESOURCES)];
    if let Some((what, _, most)) = sizes.into_iter().find(|(_, size, most)| size > most) {
        let verdict = Verdict::TooLarge { what, most };
        return Report { states: 0, generated: 0, depth: 0, elapsed: began.elapsed(), verdict };
    }
    let model = GroupModel::<A>::of(config, spec, options);
    let limits = options.limits();
    let mut guard = Guard::new(&limits);
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
        End::Lasting { path, cycle } => {
            let violation = counterexample::lasso(&model, spec, &path[1..], &cycle);
            Verdict::Violated(Box::new(violation))
        }
    };
    guard.report(counts, verdict)
}

/// Watches limits and clock while the search goes on.
pub(crate) struct Guard<'a> {
    limits: &'a Limits,
    began: Instant,
    reported: Instant,
    measured: Option<Instant>,
    memory: Option<u64>,
}

impl<'a> Guard<'a> {
    pub(crate) fn new(limits: &'a Limits) -> Self {
        let now = Instant::now();
        Guard { limits, began: now, reported: now, measured: None, memory: None }
    }

    pub(crate) fn pulse<V>(
        &mut self,
        counts: &Counts,
        progress: &mut dyn FnMut(&Progress),
    ) -> ControlFlow<Verdict<V>> {
        if self.limits.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return ControlFlow::Break(Verdict::Interrupted);
        }
        if let Some(limit) = self.limits.state_limit.filter(|&limit| counts.states > limit) {
            return ControlFlow::Break(Verdict::TooManyStates { limit });
        }
        let now = Instant::now();
        if self.measured.is_none_or(|last| now - last >= MEASURE_EVERY) {
            self.measured = Some(now);
            self.memory = memory::resident();
            if let (Some(used), Some(limit)) = (self.memory, self.limits.memory_limit)
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

    pub(crate) fn progress(&self, counts: &Counts) -> Progress {
        let Counts { states, generated, depth } = *counts;
        Progress { states, generated, depth, elapsed: self.began.elapsed(), memory: self.memory }
    }

    /// What came of it, now that it is over.
    pub(crate) fn report<V>(&self, counts: Counts, verdict: Verdict<V>) -> Report<V> {
        let Counts { states, generated, depth } = counts;
        Report { states, generated, depth, elapsed: self.began.elapsed(), verdict }
    }
}
