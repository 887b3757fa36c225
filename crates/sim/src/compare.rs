//! Many runs side by side: which algorithm, for how many nodes, under which load.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catraca_algorithms::{Load, Spec};

use crate::engine::{Hooks, run};
use crate::report::Report;
use crate::scenario::{Own, Scenario, ScenarioError};
use crate::setup::Setup;
use crate::time::{TICKS_PER_UNIT, Time};

/// The pause between two requests at low load, in mean message delays: long enough for the
/// messages of the last release to arrive.
const QUIET: f64 = 10.0;

/// What only some algorithms take. The others are compared without it.
const PARAMETERS: [&str; 4] = ["proxies", "max-preempt", "tree", "quorum"];

/// The load of a compared run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// One of the two that the literature compares.
    Closed(Load),
    /// Poisson arrivals at the rate that is said of every run.
    Open,
}

/// What to compare.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The names of the algorithms.
    pub algorithms: Vec<String>,
    /// The sizes of the groups. Clusters, if there are any, say it instead.
    pub nodes: Vec<u32>,
    /// The loads.
    pub loads: Vec<LoadKind>,
    /// What is said of every run. What a run cannot take is left out of it.
    pub common: Scenario,
}

impl Default for Comparison {
    fn default() -> Self {
        Comparison {
            algorithms: Vec::new(),
            nodes: vec![4, 16, 64],
            loads: vec![LoadKind::Closed(Load::Low), LoadKind::Closed(Load::High)],
            common: Scenario::new(),
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
    /// The run.
    pub setup: Setup,
}

/// One run of a comparison.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was run.
    pub job: Job,
    /// What was measured.
    pub report: Report,
}

impl Comparison {
    /// The runs: by load, then by size, then by algorithm.
    pub fn jobs(&self) -> Result<Vec<Job>, ScenarioError> {
        let sizes = self.sizes()?;
        let mut jobs = Vec::new();
        for &load in &self.loads {
            for &nodes in &sizes {
                for algorithm in &self.algorithms {
                    jobs.push(self.job(algorithm, nodes, load)?);
                }
            }
        }
        Ok(jobs)
    }

    /// The runs of an algorithm that is in no registry, by load and then by size: what goes beside those
    /// of [`jobs`](Self::jobs), with [`run_algorithm`](crate::run_algorithm).
    pub fn jobs_own(&self, own: Own) -> Result<Vec<Job>, ScenarioError> {
        let setup = |scenario: &Scenario| scenario.setup_own(own);
        let mut jobs = Vec::new();
        for &load in &self.loads {
            for &nodes in &self.sizes()? {
                let group = self.sized(self.common.clone(), nodes);
                jobs.push(job(group, nodes, load, setup)?);
            }
        }
        Ok(jobs)
    }

    fn job(&self, algorithm: &str, nodes: u32, load: LoadKind) -> Result<Job, ScenarioError> {
        job(self.group(algorithm, nodes)?, nodes, load, Scenario::setup)
    }

    /// How many nodes there are.
    fn sizes(&self) -> Result<Vec<u32>, ScenarioError> {
        Ok(match self.common.cluster_shape()? {
            Some((_, nodes)) => vec![nodes],
            None => self.nodes.clone(),
        })
    }

    fn sized(&self, scenario: Scenario, nodes: u32) -> Scenario {
        if scenario.says("clusters") { scenario } else { scenario.with("nodes", nodes) }
    }

    /// The algorithm with those of the parameters that it takes.
    fn group(&self, algorithm: &str, nodes: u32) -> Result<Scenario, ScenarioError> {
        let mut scenario = self.sized(self.common.clone().with("algorithm", algorithm), nodes);
        // Also what this algorithm does not take must make sense.
        let entry = scenario.spec()?.entry()?;
        for parameter in PARAMETERS {
            if !entry.parameters.contains(&parameter) {
                scenario = scenario.without(parameter);
            }
        }
        Ok(scenario)
    }
}

/// The run of `group` under `load`.
fn job(
    mut group: Scenario,
    nodes: u32,
    load: LoadKind,
    setup: impl Fn(&Scenario) -> Result<Setup, ScenarioError>,
) -> Result<Job, ScenarioError> {
    let size = u64::from(nodes);
    if !group.says("run.entries") {
        group = group.with("run.entries", default_entries(size));
    }
    let scenario = match load {
        // Everybody asks at once, so no request can be near the one before.
        LoadKind::Closed(Load::High) => {
            group.without("workload.locality").with("run.warmup", 2 * size)
        }
        LoadKind::Closed(Load::Low) => {
            let serial = group.with("workload.arrivals", "serial").with("run.warmup", 4 * size);
            let slowest = setup(&serial)?.network.latency.slowest_mean();
            let pause = Time(libm::round(QUIET * slowest * TICKS_PER_UNIT as f64) as u64);
            serial.with("workload.pause", pause)
        }
        LoadKind::Open => group.with("workload.arrivals", "open").with("run.warmup", 2 * size),
    };
    Ok(Job { load, setup: setup(&scenario)?, scenario })
}

/// As many entries as take about the same time whatever the size of the group, but several of each
/// node where that does not take too long.
fn default_entries(nodes: u64) -> u64 {
    (2_000_000 / nodes.max(1)).max(4 * nodes).min(20_000)
}

impl Job {
    /// The group that is run.
    pub fn spec(&self) -> &Spec {
        &self.setup.spec
    }

    /// The load in words.
    pub fn load_name(&self) -> String {
        match self.load {
            LoadKind::Closed(load) => load.to_string(),
            LoadKind::Open => {
                format!("{}/unit", self.scenario.value("workload.rate").unwrap_or_default())
            }
        }
    }

    /// Runs it.
    pub fn run(self, stop: &AtomicBool) -> Result<Row, ScenarioError> {
        let report = run(&self.setup, Hooks { observer: None, stop: Some(stop) })?;
        Ok(Row { report, job: self })
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
    fn the_default_number_of_entries_fits_groups_of_any_size() {
        let sizes = [1, 4, 1000, 5000, 1_000_000];
        assert_eq!(sizes.map(default_entries), [20_000, 20_000, 4_000, 20_000, 20_000]);
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
            let expected = row.job.setup.theory().unwrap().messages.min;
            let measured = row.report.messages_per_entry.unwrap();
            assert!((measured - expected).abs() < 0.01 * expected, "{row:?}");
        }
    }

    #[test]
    fn what_is_said_reaches_every_run_that_can_use_it() {
        let common = Scenario::new()
            .with("workload.rate", 0.1)
            .with("resources", 6)
            .with("workload.claim", "1..3")
            .with("clusters", "2x3")
            .with("proxies", "1,4")
            .with("network.wan", 50)
            .with("workload.locality", 0.9)
            .with("max-preempt", 3);
        let jobs = |algorithm: &str, load| {
            let (algorithms, common) = (vec![algorithm.to_string()], common.clone());
            let common = match load {
                LoadKind::Open => common,
                LoadKind::Closed(_) => common.without("workload.rate"),
            };
            Comparison { algorithms, loads: vec![load], common, ..comparison() }.jobs().unwrap()
        };
        for load in [LoadKind::Closed(Load::Low), LoadKind::Closed(Load::High), LoadKind::Open] {
            let [job] = &jobs("ricart-agrawala", load)[..] else { panic!("one size, one run") };
            let command = job.scenario.command();
            assert!(command.contains("--resources 6 --clusters 2x3"), "{command}");
            assert!(command.contains("--claim 1..3") && command.contains("--wan 50"), "{command}");
            // Ricart-Agrawala takes no such parameter, and at high load all ask at once.
            assert!(!command.contains("max-preempt") && !command.contains("proxies"), "{command}");
            let is_high = load == LoadKind::Closed(Load::High);
            assert_eq!(command.contains("--locality 0.9"), !is_high, "{command}");
            assert_eq!(job.spec().nodes, 6);
        }
        let low = &jobs("bertier", LoadKind::Closed(Load::Low))[0];
        assert_eq!(low.scenario.value("workload.pause"), Some("500"));
        assert_eq!(low.scenario.value("proxies"), Some("1,4"));
    }

    #[test]
    fn a_wrong_value_is_refused_also_where_no_algorithm_takes_it() {
        let common = Scenario::new().with("quorum", "square");
        let error = Comparison { common, ..comparison() }.jobs().unwrap_err().to_string();
        assert!(error.starts_with("quorum: 'square'"), "{error}");
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
