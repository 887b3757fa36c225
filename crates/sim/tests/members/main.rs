//! Whole members in simulated time: their clients are served, in a fair way, and the same every time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod fairness;
mod faults;
mod flaws;
mod swarm;

use std::fmt;
use std::sync::atomic::AtomicBool;

use catraca_algorithms::registry::ENTRIES;
use catraca_sim::members::{Hooks, Report, Setup, Waiting, run};
use catraca_sim::{Distribution, End, Latency, Limits, Time};

/// The figures of a run.
fn figures(setup: &Setup) -> Report {
    run(setup, Hooks::default()).unwrap()
}

/// The figures of a run in which nothing breaks.
#[track_caller]
fn correct(setup: &Setup) -> Report {
    let report = figures(setup);
    assert_eq!(report.violation, None, "{setup:?}");
    report
}

/// A few clients that make so many requests each, and messages that take their time.
fn small(algorithm: &str, members: u32, clients: u32, rounds: u32) -> Setup {
    Setup {
        clients,
        rounds: Some(rounds),
        hold: "exp:0.5".parse().unwrap(),
        think: "exp:1".parse().unwrap(),
        latency: Latency::Uniform("uniform:0.1..1".parse().unwrap()),
        limits: Limits::default(),
        ..Setup::new(algorithm, members)
    }
}

/// Clients that do everything that clients can do.
fn impatient() -> Waiting {
    let soon: Distribution = "exp:1".parse().unwrap();
    Waiting { tries: 0.2, limited: 0.2, limit: soon, cancels: 0.3, patience: soon, vanishes: 0.05 }
}

#[test]
fn every_client_of_every_algorithm_is_served() {
    for entry in ENTRIES {
        let report = correct(&small(entry.name, 3, 7, 5));
        assert_eq!((report.end, report.entries, report.waiting), (End::Quiet, 35, 0));
        assert_eq!(report.sessions, 7);
    }
}

#[test]
fn semaphores_let_as_many_in_as_they_have_permits() {
    for algorithm in ["naimi-trehel", "raymond-k", "robust-k"] {
        let setup = Setup { permits: 2, ..small(algorithm, 3, 7, 5) };
        assert_eq!(correct(&setup).entries, 35);
        let alone = Setup { permits: 1, ..setup.clone() };
        assert!(correct(&setup).response_mean < correct(&alone).response_mean, "{algorithm}");
    }
}

#[test]
fn sets_of_locks_are_granted_whole() {
    for algorithm in ["bouabdallah-laforest", "naimi-trehel"] {
        let mut setup = Setup { locks: 4, ..small(algorithm, 3, 7, 8) };
        setup.claims.size = "1..3".parse().unwrap();
        assert_eq!(correct(&setup).entries, 56, "{algorithm}");
    }
}

#[test]
fn clients_that_do_not_wait_are_refused_and_those_who_stay_are_served() {
    let setup = Setup { waiting: impatient(), at_once: 2, ..small("naimi-trehel", 3, 9, 20) };
    let report = correct(&setup);
    assert_eq!((report.end, report.waiting), (End::Quiet, 0));
    let taken = report.refused.iter().find(|(code, _)| code == "taken").unwrap().1;
    for count in [taken, report.timed_out, report.cancelled, report.vanished] {
        assert!(count > 0, "{report:?}");
    }
    let questions = report.by_kind.iter().find(|(kind, _)| kind == "is-held?").unwrap().1;
    assert!(questions > 0);
}

#[test]
fn sessions_may_also_end_with_their_clients() {
    let setup = Setup { ttl: None, waiting: impatient(), ..small("raymond", 3, 9, 20) };
    let report = correct(&setup);
    assert!(report.vanished > 0 && report.waiting == 0, "{report:?}");
}

#[test]
fn the_same_setup_gives_the_same_run_and_another_seed_another_one() {
    let setup = Setup { waiting: impatient(), locks: 2, ..small("singhal", 4, 9, 10) };
    let lines = |setup: &Setup| {
        let mut lines = Vec::new();
        let mut observer = |at: Time, line: fmt::Arguments<'_>| lines.push(format!("{at} {line}"));
        let report = run(setup, Hooks { observer: Some(&mut observer), stop: None }).unwrap();
        (lines, report)
    };
    let (first, second) = (lines(&setup), lines(&setup));
    assert_eq!(first, second);
    assert_eq!(first.1, figures(&setup), "listening changes nothing");
    let other = figures(&Setup { seed: 2, ..setup });
    assert_ne!(first.1.digest, other.digest);
}

#[test]
fn a_run_ends_when_it_should() {
    let endless = Setup { rounds: None, ..small("maekawa", 3, 5, 1) };
    let limits = Limits { entries: Some(50), time: None };
    let report = correct(&Setup { limits, ..endless.clone() });
    assert_eq!((report.end, report.entries), (End::Entries, 50));
    let limits = Limits { entries: None, time: Some(Time::units(20)) };
    let report = correct(&Setup { limits, ..endless.clone() });
    assert_eq!((report.end, report.time), (End::Time, 20.0));
    let limits = Limits { entries: Some(1_000_000), time: None };
    let stop = AtomicBool::new(true);
    let hooks = Hooks { observer: None, stop: Some(&stop) };
    let report = run(&Setup { limits, ..endless }, hooks).unwrap();
    assert_eq!(report.end, End::Interrupted);
}

#[test]
fn a_lock_stays_with_its_member_without_messages_where_nobody_else_wants_it() {
    let report = correct(&small("suzuki-kasami", 1, 4, 10));
    assert_eq!((report.entries, report.messages), (40, 0));
    assert!(report.handovers > 0);
}
