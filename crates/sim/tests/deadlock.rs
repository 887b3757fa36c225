//! A deadlock ends the run, also where requests would keep coming for ever.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod watch;

use catraca_core::property;
use catraca_sim::{End, Scenario};

use watch::{correct, figures, scheduled, with_all};

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

/// Two nodes with a failure detector. Node 0 does not get the answer to one test, takes node 1 for
/// crashed, and never answers it again. Node 1 asks when all is well again.
fn taken_for_crashed() -> Scenario {
    let group = scheduled("robust-k", 2, &["1 at 20"]);
    let tests = group.with("test-interval", 1).with("test-timeout", 0.59);
    tests.with("faults.events", "hold 1->0 from 5.005 to 5.9").with("run.time", 100_000)
}

#[test]
fn a_deadlock_is_found_while_a_failure_detector_goes_on_testing() {
    for delay in ["0.01", "uniform:0.01..0.2"] {
        let report = figures(&taken_for_crashed().with("network.delay", delay));
        let violation = report.violation.unwrap();
        assert_eq!(violation.invariant, property::NOBODY_WAITS_FOR_EVER);
        let expected = "nothing more can happen, but these nodes wait: 1; \
                        node 1 was taken for crashed by node 0 at";
        assert!(violation.what.starts_with(expected), "{}", violation.what);
        assert!((20.0..40.0).contains(&report.time), "{}", report.time);
    }
}

#[test]
fn a_deadlock_is_found_while_tests_go_on_and_requests_keep_coming() {
    let open = taken_for_crashed().without("workload.schedule").with("workload.arrivals", "open");
    let crash = open.with("workload.rate", 1).with("network.delay", 0.01).with("nodes", 3);
    let mutant = crash.with("mutant", "clock-not-stored").without("faults.events");
    assert_eq!(figures(&mutant).violation.unwrap().invariant, property::NOBODY_WAITS_FOR_EVER);
}

#[test]
fn while_a_wrong_suspicion_may_still_come_nobody_is_in_a_deadlock() {
    // A round trip of more than 0.59 is rare. When it comes, node 1 suspects node 0, and enters.
    let report = correct(&taken_for_crashed().with("network.delay", "uniform:0.01..0.3"));
    assert_eq!((report.entries, report.waiting), (1, 0));
    assert!(report.longest_wait > 20.0, "{}", report.longest_wait);
}

#[test]
fn nodes_that_wait_for_a_slow_failure_detector_are_in_no_deadlock() {
    let group = scheduled("robust-k", 8, &["0 at 1", "3 at 1"]);
    let slow = group.with("test-interval", 300).with("test-timeout", 30);
    let crashes = with_all(slow, "faults.events", &["crash 1 at 0.5", "crash 2 at 0.5"]);
    let report = correct(&crashes.with("run.time", 5000));
    assert_eq!((report.end, report.entries, report.waiting), (End::Time, 2, 0));
}
