//! Many runs side by side: which algorithm, for how many nodes, under which load.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catraca_algorithms::{Load, Range, Spec, Theory};
use catraca_topology::{QuorumKind, TreeShape};

use crate::distribution::Distribution;
use crate::engine::{Hooks, run};
use crate::report::Report;
use crate::scenario::{Scenario, ScenarioError};
use crate::setup::Setup;

/// The pause between two requests at low load, in mean message delays: long enough for the
/// messages of the last release to arrive.
const QUIET: f64 = 10.0;

/// The load of a compared run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadKind {
    /// One of the two that the literature compares.
    Closed(Load),
    /// Poisson arrivals, so many per unit of time over the whole group.
    Open(f64),
}

impl std::fmt::Display for LoadKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LoadKind::Closed(load) => load.fmt(f),
            LoadKind::Open(rate) => f.pad(&format!("{rate}/unit")),
        }
    }
}

/// What to compare.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The names of the algorithms.
    pub algorithms: Vec<String>,
    /// The sizes of the groups.
    pub nodes: Vec<u32>,
    /// The loads.
    pub loads: Vec<LoadKind>,
    /// The shape of the tree, for algorithms that run on one.
    pub tree: Option<TreeShape>,
    /// How quorums are built, for algorithms that use them.
    pub quorum: Option<QuorumKind>,
    /// How long a node stays inside.
    pub hold: Distribution,
    /// How long a message takes.
    pub delay: Distribution,
    /// The seed of every run.
    pub seed: u64,
    /// Entries that count; chosen by the size of the group, if not given.
    pub entries: Option<u64>,
}

impl Default for Comparison {
    fn default() -> Self {
        let one = Distribution::Constant(crate::time::Time::units(1));
        Comparison {
            algorithms: Vec::new(),
            nodes: vec![4, 16, 64],
            loads: vec![LoadKind::Closed(Load::Low), LoadKind::Closed(Load::High)],
            tree: None,
            quorum: None,
            hold: one,
            delay: one,
            seed: 1,
            entries: None,
        }
    }
}

/// One run of a comparison, before it is run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The load.
    pub load: LoadKind,
    /// The run in words; its command reproduces the row.
    pub scenario: Scenario,
    setup: Setup,
}

/// One run of a comparison.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was run.
    pub job: Job,
    /// What theory expects, at the loads that it speaks of.
    pub theory: Option<Theory>,
    /// The messages per entry that S2's table claims.
    pub claimed_messages: Option<f64>,
    /// The delay that S2's table claims.
    pub claimed_delay: Option<Range>,
    /// What was measured.
    pub report: Report,
}

impl Comparison {
    /// The runs: by load, then by size, then by algorithm.
    pub fn jobs(&self) -> Result<Vec<Job>, ScenarioError> {
        let mut jobs = Vec::new();
        for &load in &self.loads {
            for &nodes in &self.nodes {
                for algorithm in &self.algorithms {
                    jobs.push(self.job(algorithm, nodes, load)?);
                }
            }
        }
        Ok(jobs)
    }

    fn job(&self, algorithm: &str, nodes: u32, load: LoadKind) -> Result<Job, ScenarioError> {
        let entry = Spec::new(algorithm, nodes).entry()?;
        let size = u64::from(nodes);
        let entries = self.entries.unwrap_or((2_000_000 / size.max(1)).clamp(4 * size, 20_000));
        let mut scenario = Scenario::new().with("algorithm", algorithm).with("nodes", nodes);
        if let Some(tree) = self.tree.as_ref().filter(|_| entry.parameters.contains(&"tree")) {
            scenario = scenario.with("tree", tree);
        }
        if let Some(quorum) = self.quorum.filter(|_| entry.parameters.contains(&"quorum")) {
            scenario = scenario.with("quorum", quorum);
        }
        scenario = match load {
            LoadKind::Closed(Load::High) => scenario.with("run.warmup", 2 * size),
            LoadKind::Closed(Load::Low) => {
                let pause = format!("{:.6}", QUIET * self.delay.mean());
                let serial = scenario.with("workload.arrivals", "serial");
                serial.with("workload.pause", pause).with("run.warmup", 4 * size)
            }
            LoadKind::Open(rate) => {
                let open = scenario.with("workload.arrivals", "open");
                open.with("workload.rate", rate).with("run.warmup", 2 * size)
            }
        };
        let scenario = scenario
            .with("workload.hold", self.hold)
            .with("network.delay", self.delay)
            .with("run.entries", entries)
            .with("run.seed", self.seed);
        Ok(Job { load, setup: scenario.setup()?, scenario })
    }
}

impl Job {
    /// The group that is run.
    pub fn spec(&self) -> &Spec {
        &self.setup.spec
    }

    /// Runs it.
    pub fn run(self, stop: &AtomicBool) -> Result<Row, ScenarioError> {
        let report = run(&self.setup, Hooks { observer: None, stop: Some(stop) })?;
        let spec = self.spec();
        let (mut theory, mut claimed_messages, mut claimed_delay) = (None, None, None);
        if let LoadKind::Closed(load) = self.load {
            let nodes = f64::from(spec.nodes);
            let claims = spec.entry()?.claims;
            theory = Some(spec.theory(load)?);
            claimed_messages = claims.map(|claims| (claims.messages)(nodes, load));
            claimed_delay = claims.map(|claims| (claims.delay)(nodes));
        }
        Ok(Row { theory, claimed_messages, claimed_delay, report, job: self })
    }
}

/// Runs all jobs on `threads` threads and returns the rows in the order of the jobs. `done` is
/// called after each.
pub fn run_all(
    jobs: Vec<Job>,
    threads: usize,
    stop: &AtomicBool,
    done: impl Fn(&Row) + Sync,
) -> Result<Vec<Row>, ScenarioError> {
    // The large ones first, so that no thread is left alone with one at the end.
    let mut by_size: Vec<(usize, Job)> = jobs.into_iter().enumerate().collect();
    by_size.sort_by_key(|(_, job)| std::cmp::Reverse(job.spec().nodes));
    let count = by_size.len();
    let work: Vec<Mutex<Option<(usize, Job)>>> =
        by_size.into_iter().map(|job| Mutex::new(Some(job))).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut rows = Vec::new();
        while let Some(cell) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            let taken = cell.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
            if let Some((place, job)) = taken.filter(|_| !stop.load(Ordering::Relaxed)) {
                let row = job.run(stop)?;
                done(&row);
                rows.push((place, row));
            }
        }
        Ok::<_, ScenarioError>(rows)
    };
    let mut rows: Vec<(usize, Row)> = Vec::with_capacity(count);
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads.clamp(1, count.max(1))).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            match worker.join() {
                Ok(finished) => rows.extend(finished?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<(), ScenarioError>(())
    })?;
    rows.sort_by_key(|(place, _)| *place);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison() -> Comparison {
        Comparison {
            algorithms: vec!["ricart-agrawala".into()],
            nodes: vec![2, 8],
            ..Comparison::default()
        }
    }

    #[test]
    fn rows_come_in_the_order_of_the_jobs_whatever_the_threads() {
        let stop = AtomicBool::new(false);
        let rows = |threads| {
            let rows = run_all(comparison().jobs().unwrap(), threads, &stop, |_| {}).unwrap();
            rows.into_iter().map(|row| (row.job.scenario, row.report)).collect::<Vec<_>>()
        };
        assert_eq!(rows(1), rows(3));
        assert_eq!(rows(1).len(), 4);
    }

    #[test]
    fn ricart_agrawala_costs_two_messages_per_other_node_at_both_loads() {
        let stop = AtomicBool::new(false);
        for row in run_all(comparison().jobs().unwrap(), 2, &stop, |_| {}).unwrap() {
            let expected = row.theory.unwrap().messages.min;
            let measured = row.report.messages_per_entry.unwrap();
            assert!((measured - expected).abs() < 0.01 * expected, "{row:?}");
        }
    }

    #[test]
    fn the_command_of_a_row_reproduces_its_figures() {
        let job = comparison().jobs().unwrap().remove(1);
        let mut again = Scenario::new();
        for key in crate::scenario::KEYS {
            if let Some(value) = job.scenario.value(key.path) {
                again.set(key.path, vec![value.to_string()]).unwrap();
            }
        }
        let stop = AtomicBool::new(false);
        let report = run(&again.setup().unwrap(), Hooks::default()).unwrap();
        assert_eq!(job.run(&stop).unwrap().report, report);
    }
}
