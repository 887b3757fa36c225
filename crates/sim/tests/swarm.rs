//! Random runs of every algorithm: nothing breaks, and what is finite comes to an end.
//!
//! Links are held back at random and released later: first safety under stress, then healing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod watch;

use std::collections::BTreeSet;

use catraca_algorithms::registry::{ENTRIES, Entry};
use catraca_algorithms::{Channels, Spec};
use catraca_sim::{End, Random, Scenario};
use catraca_trace::Outcome;

use watch::{Watched, watch};

/// Runs of each algorithm.
const RUNS: u64 = 60;

struct Swarm {
    random: Random,
}

impl Swarm {
    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn scenario(&mut self, entry: &Entry) -> Scenario {
        let nodes = 1 + self.below(40) as u32;
        let delays = ["0", "0.3", "1", "uniform:0..2", "uniform:0.5..1.5", "exp:1"];
        let holds = ["0", "0.2", "1", "uniform:0..3", "exp:0.5"];
        let mut scenario = Scenario::new()
            .with("algorithm", entry.name)
            .with("nodes", nodes)
            .with("run.seed", self.below(u64::MAX))
            .with("network.delay", self.one_of(&delays))
            .with("workload.hold", self.one_of(&holds));
        if entry.channels == Channels::Any {
            scenario = scenario.with("network.order", self.one_of(&["fifo", "any"]));
        }
        scenario = self.with_shape(scenario, entry, nodes);
        scenario = self.with_start(scenario, nodes);
        scenario = self.with_holds(scenario, nodes);
        self.with_arrivals(scenario, nodes)
    }

    fn with_shape(&mut self, scenario: Scenario, entry: &Entry, nodes: u32) -> Scenario {
        if entry.parameters.contains(&"tree") {
            let parents = (1..nodes).map(|node| self.below(node.into()).to_string());
            let random: Vec<String> = ["-".to_string()].into_iter().chain(parents).collect();
            let random = random.join(",");
            return scenario.with("tree", self.one_of(&["binary", "star", "chain", &random]));
        }
        if entry.parameters.contains(&"k") {
            return scenario.with("k", 1 + self.below(nodes.into()));
        }
        let plane = [7, 13, 31].contains(&nodes) && entry.parameters.contains(&"quorum");
        if plane { scenario.with("quorum", "plane") } else { scenario }
    }

    fn with_start(&mut self, scenario: Scenario, nodes: u32) -> Scenario {
        let node = self.below(nodes.into());
        match self.below(3) {
            0 => scenario,
            1 => scenario.with("start", format!("token:{node}")),
            _ => scenario.with("start", format!("inside:{node}")),
        }
    }

    fn with_holds(&mut self, mut scenario: Scenario, nodes: u32) -> Scenario {
        let mut hold = || {
            let (sender, receiver) = (self.below(nodes.into()), self.below(nodes.into()));
            let from = self.below(20);
            format!("hold {sender}->{receiver} from {from} to {}", from + self.below(30))
        };
        let holds = (0..nodes / 2).map(|_| hold()).collect();
        scenario.set("faults.events", holds).unwrap();
        scenario
    }

    fn with_arrivals(&mut self, scenario: Scenario, nodes: u32) -> Scenario {
        let endless = scenario.clone().with("run.entries", 100);
        match self.below(6) {
            0 => endless
                .with("workload.arrivals", "serial")
                .with("workload.pause", self.one_of(&["0", "0.5", "exp:2"])),
            1 => endless
                .with("workload.arrivals", "open")
                .with("workload.rate", self.one_of(&["0.1", "1", "5"])),
            2 => endless
                .with("workload.arrivals", "bursts")
                .with("workload.burst", 1 + self.below(nodes.into()))
                .with("workload.every", self.one_of(&["0.7", "10"])),
            _ => scenario
                .with("workload.think", self.one_of(&["0", "1", "uniform:0..5", "exp:3"]))
                .with("workload.rounds", 1 + self.below(4)),
        }
    }
}

/// Every message that was sent has arrived, once.
fn messages_are_conserved(watched: &Watched) -> bool {
    let sends = watched.steps().flat_map(|step| &step.outcomes).filter_map(|what| match what {
        Outcome::Send { id, .. } => Some(*id),
        _ => None,
    });
    let delivered: Vec<_> = watched.steps().filter_map(|step| step.delivers).collect();
    let (sent, arrived): (BTreeSet<_>, BTreeSet<_>) =
        (sends.collect(), delivered.iter().copied().collect());
    sent == arrived
        && arrived.len() == delivered.len()
        && sent.len() as u64 == watched.report.messages
        && watched.lost() == 0
}

fn check(scenario: &Scenario) {
    let command = scenario.command();
    let watched = watch(scenario);
    let report = &watched.report;
    assert_eq!(report.violation, None, "{command}");
    match scenario.value("workload.rounds") {
        None => assert_eq!((report.end, report.entries), (End::Entries, 100), "{command}"),
        Some(rounds) => {
            let nodes = watch::setup(scenario).spec.nodes;
            let entries = u64::from(nodes) * rounds.parse::<u64>().unwrap();
            let end = (report.end, report.entries, report.waiting);
            assert_eq!(end, (End::Quiet, entries, 0), "{command}");
            assert!(messages_are_conserved(&watched), "a message is missing: {command}");
        }
    }
}

#[test]
fn random_runs_of_every_algorithm_break_nothing_and_leave_nobody_waiting() {
    for (number, entry) in (0..).zip(ENTRIES) {
        let mut swarm = Swarm { random: Random::new(number) };
        for _ in 0..RUNS {
            check(&swarm.scenario(entry));
        }
    }
}

#[test]
fn the_swarm_reaches_every_kind_of_run() {
    let mut swarm = Swarm { random: Random::new(1) };
    let scenarios: Vec<Scenario> =
        (0..RUNS).flat_map(|_| ENTRIES.iter()).map(|entry| swarm.scenario(entry)).collect();
    for kind in ["serial", "open", "bursts"] {
        assert!(scenarios.iter().any(|one| one.value("workload.arrivals") == Some(kind)), "{kind}");
    }
    for key in ["workload.rounds", "start", "quorum", "tree", "k"] {
        assert!(scenarios.iter().any(|one| one.value(key).is_some()), "{key}");
    }
    let is_alone = |one: &Scenario| one.value("nodes") == Some("1");
    assert!(scenarios.iter().any(is_alone));
    let spec = |one: &Scenario| -> Spec { watch::setup(one).spec };
    assert!(scenarios.iter().map(spec).any(|spec| spec.nodes == 40));
}
