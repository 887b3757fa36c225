//! Runs of the k-algorithms in which nodes crash.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod watch;

use catraca_core::property;
use catraca_sim::{End, Random, Scenario};

use watch::{correct, figures, watch, with_all};

/// Runs of each kind.
const RUNS: u64 = 150;

/// A random group of robust-k of which up to all but one crash; the last requests come long after
/// the last crash.
fn robust(seed: u64, detector: impl FnOnce(Scenario, &mut Random) -> Scenario) -> Scenario {
    let mut random = Random::new(seed);
    let nodes = 1 + random.below(24);
    let mut living: Vec<u64> = (0..nodes).collect();
    let crashes: Vec<String> = (0..random.below(nodes))
        .map(|_| {
            let node = living.remove(random.below(living.len() as u64) as usize);
            format!("crash {node} at {}.{:02}", random.below(40), random.below(100))
        })
        .collect();
    let delays = ["0.1", "uniform:0..0.2", "uniform:0.05..0.1"];
    let mut scenario = Scenario::new()
        .with("algorithm", "robust-k")
        .with("nodes", nodes)
        .with("k", 1 + random.below(nodes))
        .with("run.seed", seed)
        .with("network.delay", delays[random.below(3) as usize])
        .with("workload.hold", ["0", "0.3", "exp:1"][random.below(3) as usize])
        .with("workload.think", "uniform:0..40")
        .with("workload.rounds", 1 + random.below(4));
    scenario.set("faults.events", crashes).unwrap();
    detector(scenario, &mut random)
}

#[test]
fn robust_k_serves_the_living_whoever_crashes_with_the_drivers_detector() {
    for seed in 0..RUNS {
        let scenario = robust(seed, |scenario, random| {
            scenario.with("faults.detector", ["0", "0.5", "20"][random.below(3) as usize])
        });
        let report = correct(&scenario);
        assert_eq!((report.end, report.waiting), (End::Quiet, 0), "{}", scenario.command());
    }
}

#[test]
fn robust_k_serves_the_living_whoever_crashes_with_hi_adsd() {
    for seed in 0..RUNS {
        let scenario = robust(seed, |scenario, random| {
            let scenario = scenario
                .with("test-interval", ["1", "3"][random.below(2) as usize])
                .with("test-timeout", 0.5)
                .with("news", ["rounds", "immediate"][random.below(2) as usize])
                .with("run.time", 400);
            match random.below(2) {
                0 => scenario,
                _ => scenario.with("ack-timeout", ["0.3", "2"][random.below(2) as usize]),
            }
        });
        let report = correct(&scenario);
        assert_eq!((report.end, report.waiting), (End::Time, 0), "{}", scenario.command());
    }
}

/// S4, section 2: Raymond's algorithm tolerates k-1 crashes. In its Figure 7 everything stops with the
/// k-th.
#[test]
fn raymond_k_goes_on_until_the_kth_crash() {
    let group = |crashes: usize| {
        let scenario = Scenario::new()
            .with("algorithm", "raymond-k")
            .with("nodes", 8)
            .with("k", 3)
            .with("workload.requesters", "0..3")
            .with("run.time", 200);
        let events = ["crash 7 at 20", "crash 6 at 40", "crash 5 at 60"];
        with_all(scenario, "faults.events", &events[..crashes])
    };
    assert!(correct(&group(2)).entries > 100);
    let stopped = figures(&group(3));
    let violation = stopped.violation.unwrap();
    assert_eq!(violation.invariant, property::NOBODY_WAITS_FOR_EVER);
    assert!(violation.what.ends_with("0, 1, 2, 3"), "{}", violation.what);
}

/// With f crashed nodes at most k-f are inside at once, although k places are free.
#[test]
fn every_crash_takes_one_place_of_raymond_k_away() {
    for crashes in 0..3usize {
        let scenario = Scenario::new()
            .with("algorithm", "raymond-k")
            .with("nodes", 6)
            .with("k", 3)
            .with("workload.requesters", "0..2")
            .with("workload.rounds", 1)
            .with("workload.think", 5)
            .with("workload.hold", 10);
        let events = ["crash 5 at 1", "crash 4 at 1"];
        let watched = watch(&with_all(scenario, "faults.events", &events[..crashes]));
        let entries = watched.entries();
        let together = entries.iter().filter(|(at, _)| *at == entries[0].0).count();
        assert_eq!((entries.len(), together), (3, 3 - crashes), "{crashes}");
    }
}

#[test]
fn a_violation_after_a_wrong_suspicion_names_it() {
    let held = Scenario::new()
        .with("algorithm", "robust-k")
        .with("nodes", 2)
        .with("test-interval", 1)
        .with("test-timeout", 0.5)
        .with("network.delay", 0.01)
        .with("faults.events", "hold 1->0 from 4.5 to 9")
        .with("workload.arrivals", "schedule")
        .with("workload.hold", 10)
        .with("run.time", 30);
    let held = with_all(held, "workload.schedule", &["1 at 4", "0 at 4.2"]);
    let violation = figures(&held).violation.unwrap();
    assert_eq!(violation.invariant, property::MUTUAL_EXCLUSION);
    let expected = "node 0 enters while node 1 is inside; \
                    node 1 was taken for crashed by node 0 at 5.5 while it was inside";
    assert_eq!(violation.what, expected);
}

/// Without crashes a node makes log N tests an interval, each of which is answered. Reference: S4 3.1.
#[test]
fn the_cost_of_the_detector_grows_as_the_logarithm_of_the_group() {
    for (nodes, dimension) in [(8, 3), (32, 5), (128, 7), (512, 9)] {
        let report = correct(
            &Scenario::new()
                .with("algorithm", "robust-k")
                .with("nodes", nodes)
                .with("test-interval", 1)
                .with("test-timeout", 0.1)
                .with("network.delay", 0.01)
                .with("workload.requesters", 0)
                .with("workload.think", 1000)
                .with("run.time", 9.5),
        );
        let expected = 10 * nodes * dimension;
        let tests: Vec<u64> = report.by_kind[3..].iter().map(|(_, count)| *count).collect();
        assert_eq!(tests, [expected, expected, 0], "{nodes}");
    }
}

/// The messages of S4's experiment by kind: requests, replies, acks, tests, answers.
fn s4(file: &str, news: Option<&str>) -> Vec<u64> {
    let path = format!("{}/../../experiments/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut scenario = Scenario::from_toml(&std::fs::read_to_string(path).unwrap()).unwrap();
    if let Some(news) = news {
        scenario = scenario.with("news", news.to_string());
    }
    figures(&scenario).by_kind.into_iter().map(|(_, count)| count).collect()
}

/// Reference: S4, section 5.1. The paper has 1,425 requests and 1,265 replies for Raymond; 3,007
/// requests, 2,958 acks, 2,919 replies, 5,100 tests and 2,348 answers for the robust algorithm.
#[test]
fn paper_the_messages_of_the_experiment() {
    assert_eq!(s4("s4-raymond.toml", None), [1_485, 1_316]);
    let immediate = s4("s4-robust.toml", None);
    assert_eq!(immediate, [3_197, 3_190, 3_179, 5_074, 2_340, 268]);
    let rounds = s4("s4-robust.toml", Some("rounds"));
    assert_eq!(rounds, [6_540, 3_099, 3_081, 5_074, 2_340, 0]);
}
