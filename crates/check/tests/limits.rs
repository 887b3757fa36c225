//! An exploration that is told to stop does.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catraca_algorithms::{Spec, SpecError};
use catraca_check::{Options, Progress, Report, Verdict, check};

/// More states than a test could wait for.
fn endless() -> (Spec, Options) {
    let spec = Spec::new("ricart-agrawala", 5);
    let options = Options { requests: 5, threads: 2, ..Options::of(&spec).unwrap() };
    (spec, options)
}

fn run(spec: &Spec, options: &Options, progress: &mut dyn FnMut(&Progress)) -> Report {
    check(spec, options, progress).unwrap()
}

#[test]
fn the_stop_flag_ends_the_exploration_before_it_begins_or_in_the_middle() {
    let (spec, mut options) = endless();
    let stop = Arc::new(AtomicBool::new(true));
    options.stop = Some(Arc::clone(&stop));
    let report = run(&spec, &options, &mut |_| {});
    assert_eq!((report.verdict, report.states), (Verdict::Interrupted, 1));

    stop.store(false, Ordering::Relaxed);
    let report = run(&spec, &options, &mut |_| stop.store(true, Ordering::Relaxed));
    assert_eq!(report.verdict, Verdict::Interrupted);
    assert!(report.states > 1);
}

/// Each of the first level has as many successors as nodes, and each of those is large.
#[test]
fn the_largest_group_that_is_explored_stops_when_it_is_told_to() {
    let spec = Spec::new("lamport", 64);
    let options = Options { threads: 2, state_limit: Some(1), ..Options::of(&spec).unwrap() };
    let stop = Arc::new(AtomicBool::new(false));
    let options = Options { stop: Some(Arc::clone(&stop)), ..options };
    let report = run(&spec, &options, &mut |_| {});
    assert_eq!(report.verdict, Verdict::TooManyStates { limit: 1 });
    let options = Options { state_limit: None, ..options };
    let report = run(&spec, &options, &mut |_| stop.store(true, Ordering::Relaxed));
    assert_eq!(report.verdict, Verdict::Interrupted);
}

#[test]
fn a_group_that_is_too_large_is_not_begun() {
    let spec = Spec::new("raymond", 1_000_000);
    let report = run(&spec, &Options::of(&spec).unwrap(), &mut |_| {});
    assert_eq!(report.verdict, Verdict::TooLarge { what: "nodes", most: 64 });
    assert_eq!(report.states, 0);
}

#[test]
fn the_state_limit_ends_the_exploration() {
    let (spec, mut options) = endless();
    options.state_limit = Some(10_000);
    let report = run(&spec, &options, &mut |_| {});
    assert_eq!(report.verdict, Verdict::TooManyStates { limit: 10_000 });
    assert!(report.states > 9_000 && report.states < 20_000, "{}", report.states);
}

#[test]
fn the_last_progress_has_the_figures_of_the_report() {
    let spec = Spec::new("ricart-agrawala", 3);
    let mut last = None;
    let report = run(&spec, &Options::of(&spec).unwrap(), &mut |progress| last = Some(*progress));
    let last = last.unwrap();
    let figures = (last.states, last.generated, last.depth);
    assert_eq!(figures, (report.states, report.generated, report.depth));
    assert!(last.elapsed <= report.elapsed);
    assert!(!cfg!(target_os = "linux") || last.memory.is_some_and(|bytes| bytes > 0));
}

#[test]
fn a_spec_without_a_group_is_refused() {
    let (mut spec, options) = endless();
    spec.nodes = 0;
    assert!(matches!(check(&spec, &options, &mut |_| {}), Err(SpecError::Nodes { .. })));
}
