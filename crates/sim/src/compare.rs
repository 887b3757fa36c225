//! Many runs side by side: which algorithm, for how many nodes, under which load, each with several seeds.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catraca_algorithms::{Load, Spec};

use crate::engine::{Hooks, run};
use crate::report::Report;
use crate::scenario::{Own, Scenario, ScenarioError};
use crate::setup::Setup;
use crate::time::{MAX_UNITS, TICKS_PER_UNIT, Time};

/// The pause between two requests at low load, in mean message delays: long enough for the
/// messages of the last release to arrive.
const QUIET: f64 = 10.0;

/// What only some algorithms take. The others are compared without it.
const PARAMETERS: [&str; 5] = ["proxies", "max-preempt", "tree", "quorum", "k"];

/// At medium load nodes ask so often that the lock would be in use for this part of the time.
const MEDIUM: f64 = 0.5;

/// The load of a compared run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// One of the two that the literature compares.
    Closed(Load),
    /// Between the two: every node thinks, on average so long that all of them together ask for half of
    /// the entries that one message and one stay each would leave time for.
    Medium,
    /// Every node thinks as long as is said of every run.
    Thinking,
    /// Poisson arrivals at the rate that is said of every run.
    Open,
}

impl LoadKind {
    /// Those that need nothing else to be said.
    pub const NAMED: [LoadKind; 3] =
        [LoadKind::Closed(Load::Low), LoadKind::Medium, LoadKind::Closed(Load::High)];

    /// The name of one of those.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            LoadKind::Closed(Load::Low) => Some("low"),
            LoadKind::Medium => Some("medium"),
            LoadKind::Closed(Load::High) => Some("high"),
            LoadKind::Thinking | LoadKind::Open => None,
        }
    }
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
    /// Every run is made with so many seeds, from the one that is said on.
    pub seeds: u32,
    /// What is said of every run. What a run cannot take is left out of it.
    pub common: Scenario,
}

impl Default for Comparison {
    fn default() -> Self {
        Comparison {
            algorithms: Vec::new(),
            nodes: vec![4, 16, 64],
            loads: LoadKind::NAMED.to_vec(),
            seeds: 1,
            common: Scenario::new(),
        }
    }
}

/// One run of a comparison with all of its seeds, before it is run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The load.
    pub load: LoadKind,
    /// The run in words, with its first seed.
    pub scenario: Scenario,
    /// The run with its first seed.
    pub setup: Setup,
    /// With how many seeds it is run.
    pub seeds: u32,
}

/// One run of a comparison, with all of its seeds.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was run.
    pub job: Job,
    /// What was measured with each seed, in their order.
    pub reports: Vec<Report>,
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
                jobs.push(self.run_of(group, nodes, load, setup)?);
            }
        }
        Ok(jobs)
    }

    fn job(&self, algorithm: &str, nodes: u32, load: LoadKind) -> Result<Job, ScenarioError> {
        self.run_of(self.group(algorithm, nodes)?, nodes, load, Scenario::setup)
    }

    /// The run of `group` under `load`.
    fn run_of(
        &self,
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
            LoadKind::Closed(Load::High) | LoadKind::Thinking => {
                group.without("workload.locality").with("run.warmup", 2 * size)
            }
            LoadKind::Medium => {
                let closed = group.without("workload.locality").with("run.warmup", 2 * size);
                let think = medium_think(&setup(&closed)?);
                closed.with("workload.think", format!("exp:{think}"))
            }
            LoadKind::Closed(Load::Low) => {
                let serial = group.with("workload.arrivals", "serial").with("run.warmup", 4 * size);
                let slowest = setup(&serial)?.network.latency.slowest_mean();
                let pause = Time(libm::round(QUIET * slowest * TICKS_PER_UNIT as f64) as u64);
                serial.with("workload.pause", pause)
            }
            LoadKind::Open => group.with("workload.arrivals", "open").with("run.warmup", 2 * size),
        };
        Ok(Job { load, setup: setup(&scenario)?, scenario, seeds: self.seeds.max(1) })
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

/// As many entries as take about the same time whatever the size of the group, but several of each
/// node where that does not take too long. Small groups need no more: there are several seeds.
fn default_entries(nodes: u64) -> u64 {
    (200_000 / nodes.max(1)).min(2_000).max(4 * nodes).min(20_000)
}

/// How long nodes think at medium load, on average.
fn medium_think(setup: &Setup) -> Time {
    let entry = setup.network.latency.mean() + setup.workload.hold.mean();
    let places = f64::from(setup.spec.k.unwrap_or(1));
    let think = f64::from(setup.spec.nodes) * entry / (MEDIUM * places);
    let ticks = libm::round(think * TICKS_PER_UNIT as f64) as u64;
    Time(ticks).clamp(Time(1), Time::units(MAX_UNITS))
}

impl Job {
    /// The group that is run.
    pub fn spec(&self) -> &Spec {
        &self.setup.spec
    }

    /// The load in words.
    pub fn load_name(&self) -> String {
        match self.load {
            LoadKind::Thinking => {
                format!("think {}", self.scenario.value("workload.think").unwrap_or_default())
            }
            LoadKind::Open => {
                format!("{}/unit", self.scenario.value("workload.rate").unwrap_or_default())
            }
            named => named.name().unwrap_or_default().to_string(),
        }
    }

    /// The run in words with one of its seeds, counted from 0; its command reproduces the report.
    pub fn repeated(&self, repeat: u32) -> Scenario {
        match repeat {
            0 => self.scenario.clone(),
            _ => self.scenario.clone().with("run.seed", self.seed(repeat)),
        }
    }

    /// One of its seeds.
    pub fn seed(&self, repeat: u32) -> u64 {
        self.setup.seed.wrapping_add(repeat.into())
    }

    /// Runs it with one of its seeds.
    fn run(&self, repeat: u32, stop: &AtomicBool) -> Result<Report, ScenarioError> {
        let setup = Setup { seed: self.seed(repeat), ..self.setup.clone() };
        Ok(run(&setup, Hooks { observer: None, stop: Some(stop) })?)
    }
}

/// Runs all jobs on `threads` threads, each with all of its seeds, and returns the rows in the order of the
/// jobs. `done` is called after each run. What `stop` has kept from running is no row.
pub fn run_all(
    jobs: Vec<Job>,
    threads: usize,
    stop: &AtomicBool,
    done: impl Fn(&Job) + Sync,
) -> Result<Vec<Row>, ScenarioError> {
    let places = jobs.iter().enumerate();
    let mut order: Vec<(usize, u32)> =
        places.flat_map(|(place, job)| (0..job.seeds).map(move |repeat| (place, repeat))).collect();
    // The large ones first, so that no thread is left alone with one at the end.
    order.sort_by_key(|&(place, _)| std::cmp::Reverse(jobs[place].spec().nodes));
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut reports = Vec::new();
        while let Some(&(place, repeat)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            reports.push(((place, repeat), jobs[place].run(repeat, stop)?));
            done(&jobs[place]);
        }
        Ok::<_, ScenarioError>(reports)
    };
    let mut reports: Vec<((usize, u32), Report)> = Vec::with_capacity(order.len());
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads.clamp(1, order.len().max(1))).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            match worker.join() {
                Ok(finished) => reports.extend(finished?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<(), ScenarioError>(())
    })?;
    reports.sort_by_key(|(place, _)| *place);
    let mut measured: Vec<Vec<Report>> = vec![Vec::new(); jobs.len()];
    for ((place, _), report) in reports {
        measured[place].push(report);
    }
    let rows = jobs.into_iter().zip(measured).map(|(job, reports)| Row { job, reports });
    Ok(rows.filter(|row| row.reports.len() == row.job.seeds as usize).collect())
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
        let sizes = [1, 4, 64, 256, 1000, 5000, 1_000_000];
        let entries = [2_000, 2_000, 2_000, 1_024, 4_000, 20_000, 20_000];
        assert_eq!(sizes.map(default_entries), entries);
    }

    #[test]
    fn rows_come_in_the_order_of_the_jobs_whatever_the_threads() {
        let stop = AtomicBool::new(false);
        let rows = |threads| {
            let rows = run_all(comparison().jobs().unwrap(), threads, &stop, |_| {}).unwrap();
            rows.into_iter().map(|row| (row.job.scenario, row.reports)).collect::<Vec<_>>()
        };
        assert_eq!(rows(1), rows(3));
        assert_eq!(rows(1).len(), 6);
    }

    #[test]
    fn every_run_is_made_with_each_seed_and_a_repeated_run_is_one_of_them() {
        let stop = AtomicBool::new(false);
        let seeds = |seeds, first: u64| {
            let common = Scenario::new().with("run.seed", first).with("run.entries", 50);
            let loads = vec![LoadKind::Medium];
            let jobs = Comparison { seeds, common, loads, ..comparison() }.jobs().unwrap();
            run_all(jobs, 2, &stop, |_| {}).unwrap().remove(1)
        };
        let row = seeds(3, 7);
        assert_eq!(row.reports.len(), 3);
        assert_eq!(row.reports[2..], seeds(1, 9).reports[..]);
        assert_ne!(row.reports[0], row.reports[1]);
        assert_eq!(row.job.repeated(2).value("run.seed"), Some("9"));
    }

    #[test]
    fn a_comparison_that_is_stopped_has_no_rows_that_are_not_whole() {
        let stop = AtomicBool::new(true);
        assert!(run_all(comparison().jobs().unwrap(), 2, &stop, |_| {}).unwrap().is_empty());
    }

    #[test]
    fn at_medium_load_the_lock_is_in_use_for_about_half_of_the_time() {
        let stop = AtomicBool::new(false);
        let loads = vec![LoadKind::Medium];
        let common = Scenario::new().with("workload.hold", "exp:1");
        let jobs = Comparison { loads, common, nodes: vec![16], ..comparison() }.jobs().unwrap();
        assert_eq!(jobs[0].scenario.value("workload.think"), Some("exp:64"));
        let rows = run_all(jobs, 1, &stop, |_| {}).unwrap();
        let of_bound = rows[0].reports[0].throughput_of_bound.unwrap();
        assert!((0.4..0.5).contains(&of_bound), "{of_bound}");
    }

    #[test]
    fn k_places_take_k_times_as_many_requests_and_only_algorithms_for_it_have_k() {
        let common = Scenario::new().with("k", 2);
        let algorithms = ["raymond-k", "lamport"].map(String::from).to_vec();
        let loads = vec![LoadKind::Medium];
        let nodes = vec![8];
        let jobs = Comparison { algorithms, loads, nodes, common, ..comparison() }.jobs().unwrap();
        let said = |job: &Job| {
            [job.scenario.value("k"), job.scenario.value("workload.think")]
                .map(|value| value.map(str::to_string))
        };
        assert_eq!(said(&jobs[0]), [Some("2".into()), Some("exp:16".into())]);
        assert_eq!(said(&jobs[1]), [None, Some("exp:32".into())]);
    }

    #[test]
    fn ricart_agrawala_costs_two_messages_per_other_node_at_every_load() {
        let stop = AtomicBool::new(false);
        for row in run_all(comparison().jobs().unwrap(), 2, &stop, |_| {}).unwrap() {
            let expected = 2.0 * f64::from(row.job.spec().nodes - 1);
            let measured = row.reports[0].messages_per_entry.unwrap();
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
                _ => common.without("workload.rate"),
            };
            Comparison { algorithms, loads: vec![load], common, ..comparison() }.jobs().unwrap()
        };
        for load in LoadKind::NAMED.into_iter().chain([LoadKind::Open]) {
            let [job] = &jobs("ricart-agrawala", load)[..] else { panic!("one size, one run") };
            let command = job.scenario.command();
            assert!(command.contains("--resources 6 --clusters 2x3"), "{command}");
            assert!(command.contains("--claim 1..3") && command.contains("--wan 50"), "{command}");
            // Ricart-Agrawala takes no such parameter, and at high load all ask at once.
            assert!(!command.contains("max-preempt") && !command.contains("proxies"), "{command}");
            let is_drawn = [LoadKind::Closed(Load::Low), LoadKind::Open].contains(&load);
            assert_eq!(command.contains("--locality 0.9"), is_drawn, "{command}");
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
        assert_eq!(job.run(0, &stop).unwrap(), report);
    }
}
