//! A deadlock ends the run, also where requests would keep coming for ever.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod watch;

use catraca_core::property;
use catraca_sim::{End, Scenario};

use watch::{correct, figures};

/// Two nodes that wait for each other as soon as both ask at once.
fn deadlocking() -> Scenario {
    let group = Scenario::new().with("algorithm", "maekawa").with("nodes", 2);
    group.with("mutant", "deaf-to-failed")
}

#[track_caller]
fn deadlocks(scenario: &Scenario) {
    let report = figures(scenario);
    let violation = report.violation.unwrap();
    assert_eq!(violation.invariant, property::NOBODY_WAITS_FOR_EVER);
    assert!(violation.what.ends_with("these nodes wait: 0, 1"), "{}", violation.what);
    assert_eq!((report.end, report.waiting), (End::Violation, 2));
}

#[test]
fn a_deadlock_is_found_while_requests_keep_coming() {
    let open = deadlocking().with("workload.arrivals", "open").with("workload.rate", 1);
    let bursts = deadlocking().with("workload.arrivals", "bursts").with("workload.burst", 2);
    for endless in [open, bursts.with("workload.every", 3)] {
        deadlocks(&endless.clone().with("run.time", 1000));
        deadlocks(&endless.with("run.entries", 1_000_000));
    }
}

#[test]
fn the_same_requests_let_correct_nodes_in() {
    let open = deadlocking().without("mutant").with("workload.arrivals", "open");
    assert_eq!(correct(&open.with("workload.rate", 1).with("run.time", 1000)).end, End::Time);
}

#[test]
fn nodes_that_wait_for_a_crashed_one_are_in_a_deadlock_although_others_would_ask() {
    let group = Scenario::new().with("algorithm", "coordinator").with("nodes", 3);
    let open = group.with("workload.arrivals", "open").with("workload.rate", 0.1);
    let crash = open.with("faults.events", "crash 0 at 5").with("run.time", 1_000_000);
    let violation = figures(&crash).violation.unwrap();
    assert_eq!(violation.invariant, property::NOBODY_WAITS_FOR_EVER);
}

#[test]
fn nodes_that_wait_for_the_news_of_a_crash_are_in_no_deadlock() {
    let group = Scenario::new().with("algorithm", "robust-k").with("nodes", 3);
    let group = group.with("workload.rounds", 2).with("faults.events", "crash 1 at 0.5");
    assert!(figures(&group).violation.is_some(), "nobody tells");
    let late = group.with("faults.detector", 500);
    assert!(correct(&late).time > 500.0);
}
