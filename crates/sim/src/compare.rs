//! Many runs side by side: which algorithm, for how many nodes, under which load.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catraca_algorithms::{Load, Range, Spec, Theory};
use catraca_topology::{ClusterShape, Proxies, QuorumKind, TreeShape};

use crate::claims::ClaimSize;
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
    /// How long a message takes, where the clusters do not say it.
    pub delay: Distribution,
    /// How many resources there are.
    pub resources: Option<u32>,
    /// How many of them a request asks for.
    pub claim: Option<ClaimSize>,
    /// How unequally popular they are.
    pub skew: Option<f64>,
    /// The clusters; the size of the group is theirs then.
    pub clusters: Option<ClusterShape>,
    /// Who speaks for each cluster, for algorithms that know of clusters.
    pub proxies: Option<Proxies>,
    /// How long a message takes within a cluster.
    pub lan: Option<Distribution>,
    /// How long a message takes between clusters.
    pub wan: Option<Distribution>,
    /// The share of requests from the cluster of the request before, at low and open load.
    pub locality: Option<f64>,
    /// How often in a row the own cluster goes first, for algorithms that know of clusters.
    pub max_preempt: Option<u32>,
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
            resources: None,
            claim: None,
            skew: None,
            clusters: None,
            proxies: None,
            lan: None,
            wan: None,
            locality: None,
            max_preempt: None,
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
        let sizes = match &self.clusters {
            Some(shape) => {
                let described = Scenario::new().with("clusters", shape).cluster_shape()?;
                described.map(|(_, nodes)| nodes).into_iter().collect()
            }
            None => self.nodes.clone(),
        };
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

    fn job(&self, algorithm: &str, nodes: u32, load: LoadKind) -> Result<Job, ScenarioError> {
        let size = u64::from(nodes);
        let entries = self.entries.unwrap_or((2_000_000 / size.max(1)).clamp(4 * size, 20_000));
        let group = self.group(algorithm, nodes)?;
        let scenario = match load {
            LoadKind::Closed(Load::High) => group.with("run.warmup", 2 * size),
            LoadKind::Closed(Load::Low) => {
                let pause = format!("{:.6}", QUIET * self.slowest_mean());
                let serial = group.with("workload.arrivals", "serial");
                let serial = said(serial, "workload.locality", self.locality);
                serial.with("workload.pause", pause).with("run.warmup", 4 * size)
            }
            LoadKind::Open(rate) => {
                let open = group.with("workload.arrivals", "open");
                let open = said(open, "workload.locality", self.locality);
                open.with("workload.rate", rate).with("run.warmup", 2 * size)
            }
        };
        let scenario = said(scenario, "workload.claim", self.claim);
        let scenario = said(scenario, "workload.skew", self.skew)
            .with("workload.hold", self.hold)
            .with("run.entries", entries)
            .with("run.seed", self.seed);
        let scenario = self.network(scenario);
        Ok(Job { load, setup: scenario.setup()?, scenario })
    }

    /// The algorithm with those of the parameters that it takes.
    fn group(&self, algorithm: &str, nodes: u32) -> Result<Scenario, ScenarioError> {
        let entry = Spec::new(algorithm, nodes).entry()?;
        let takes = |parameter| entry.parameters.contains(&parameter);
        let scenario = Scenario::new().with("algorithm", algorithm);
        // The clusters say how many nodes there are.
        let scenario = match &self.clusters {
            Some(shape) => scenario.with("clusters", shape),
            None => scenario.with("nodes", nodes),
        };
        let scenario = said(scenario, "resources", self.resources);
        let proxies = self.proxies.as_ref().filter(|_| takes("proxies"));
        let scenario = said(scenario, "proxies", proxies);
        let preempt = self.max_preempt.filter(|_| takes("max-preempt"));
        let scenario = said(scenario, "max-preempt", preempt);
        let scenario = said(scenario, "tree", self.tree.as_ref().filter(|_| takes("tree")));
        Ok(said(scenario, "quorum", self.quorum.filter(|_| takes("quorum"))))
    }

    fn network(&self, scenario: Scenario) -> Scenario {
        if self.lan.is_none() && self.wan.is_none() {
            return scenario.with("network.delay", self.delay);
        }
        said(said(scenario, "network.lan", self.lan), "network.wan", self.wan)
    }

    /// The mean of the slowest channels.
    fn slowest_mean(&self) -> f64 {
        match (self.lan, self.wan) {
            (None, None) => self.delay.mean(),
            (lan, wan) => [lan, wan]
                .map(|one| one.map_or(1.0, Distribution::mean))
                .into_iter()
                .fold(0.0, f64::max),
        }
    }
}

/// The same with one more thing said, if there is something to say.
fn said(scenario: Scenario, path: &'static str, value: Option<impl ToString>) -> Scenario {
    match value {
        Some(value) => scenario.with(path, value),
        None => scenario,
    }
}

impl Job {
    /// The group that is run.
    pub fn spec(&self) -> &Spec {
        &self.setup.spec
    }

    /// T: the mean time that a message takes, in units.
    pub fn latency(&self) -> f64 {
        self.setup.network.latency.mean()
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
    fn resources_and_clusters_reach_every_run_that_can_use_them() {
        let comparison = Comparison {
            loads: vec![
                LoadKind::Closed(Load::Low),
                LoadKind::Closed(Load::High),
                LoadKind::Open(0.1),
            ],
            resources: Some(6),
            claim: Some("1..3".parse().unwrap()),
            skew: Some(0.5),
            clusters: Some("2x3".parse().unwrap()),
            proxies: Some("1,4".parse().unwrap()),
            lan: Some("1".parse().unwrap()),
            wan: Some("50".parse().unwrap()),
            locality: Some(0.9),
            max_preempt: Some(3),
            ..comparison()
        };
        let jobs = comparison.jobs().unwrap();
        assert_eq!(jobs.len(), 3);
        for job in &jobs {
            let command = job.scenario.command();
            let common = "--resources 6 --clusters 3,3";
            assert!(command.contains(common), "{command}");
            assert!(command.contains("--claim 1..3 --skew 0.5"), "{command}");
            assert!(command.contains("--lan constant:1 --wan constant:50"), "{command}");
            // Ricart-Agrawala takes no such parameter, and a closed load is nobody's neighbour.
            assert!(!command.contains("max-preempt") && !command.contains("proxies"), "{command}");
            let is_high = job.load == LoadKind::Closed(Load::High);
            assert_eq!(command.contains("--locality 0.9"), !is_high, "{command}");
            assert_eq!(job.spec().nodes, 6);
        }
        assert_eq!(jobs[0].scenario.value("workload.pause"), Some("500.000000"));
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
