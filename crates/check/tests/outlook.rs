//! What can still happen from where a run is, against the checker itself.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::time::Duration;

use catraca_algorithms::Spec;
use catraca_algorithms::mutants::Caught;
use catraca_algorithms::registry::{ENTRIES, mutants, setting};
use catraca_check::{Bound, Choice, Effort, Options, Outlook, Verdict, check, outlook, position};

fn effort(states: u64) -> Effort {
    let time = Duration::from_secs(600);
    Effort { states, time, memory: None, stop: Default::default(), threads: 2 }
}

fn seen(spec: &Spec, options: &Options, steps: &str, states: u64) -> Outlook {
    let steps: Vec<Choice> =
        steps.split('.').filter(|it| !it.is_empty()).map(|it| it.parse().unwrap()).collect();
    outlook(spec, options, &steps, &effort(states)).unwrap()
}

fn once(spec: &Spec) -> Options {
    Options { requests: 1, threads: 2, ..Options::of(spec).unwrap() }
}

#[test]
fn from_the_first_state_it_sees_as_much_as_the_checker() {
    for entry in ENTRIES {
        let spec = Spec::new(entry.name, 2);
        let options = once(&spec);
        let report = check(&spec, &options, &mut |_| {}).unwrap();
        let seen = seen(&spec, &options, "", 100_000);
        assert_eq!(report.verdict, Verdict::Holds, "{}", entry.name);
        assert_eq!((seen.states, seen.depth), (report.states, report.depth), "{}", entry.name);
        assert_eq!((seen.broken, seen.stuck), (0, 0), "{}", entry.name);
        assert_eq!((&seen.breach, seen.bound), (&None, None), "{}", entry.name);
        assert!(seen.looked_for_cycles && seen.ends > 0, "{}", entry.name);
        assert!(seen.entries.iter().all(Option::is_some), "{}", entry.name);
    }
}

#[test]
fn the_number_of_states_that_can_follow_is_pinned() {
    let spec = Spec::new("ricart-agrawala", 2);
    let options = Options::of(&spec).unwrap();
    let counts = |steps: &str| {
        let seen = seen(&spec, &options, steps, 10_000);
        (seen.states, seen.depth, seen.ends)
    };
    assert_eq!(counts(""), (179, 16, 5));
    let after = counts("a0.m0-1.m1-0");
    assert!(after.0 < 179 && after.1 == 13, "{after:?}");
}

#[test]
fn where_something_is_broken_already_there_is_no_way_to_go() {
    let spec = Spec::new("lamport", 2).broken("no-tie-break");
    let options = once(&spec);
    let steps = "a0.a1.m0-1.m1-0.m1-0.m0-1";
    let seen = seen(&spec, &options, steps, 10_000);
    assert_eq!((seen.states, seen.broken), (1, 1));
    assert_eq!(seen.breach.unwrap().steps, []);
}

#[test]
fn a_bound_is_told_and_what_was_found_before_it_counts() {
    let spec = Spec::new("maekawa", 4);
    let options = Options::of(&spec).unwrap();
    let few = seen(&spec, &options, "", 500);
    assert_eq!((few.bound, few.looked_for_cycles), (Some(Bound::States(500)), false));
    assert_eq!(few.breach, None);
    let stopped = Effort { stop: std::sync::Arc::new(true.into()), ..effort(1_000_000) };
    assert_eq!(outlook(&spec, &options, &[], &stopped).unwrap().bound, Some(Bound::Stopped));
    let soon = Effort { time: Duration::ZERO, ..effort(1_000_000) };
    let soon = outlook(&spec, &options, &[], &soon).unwrap();
    assert_eq!(soon.bound, Some(Bound::Time(Duration::ZERO)));
}

/// The group in which the checker catches a mutant.
fn caught_in(
    algorithm: &str,
    mutant: &catraca_algorithms::mutants::Listed,
) -> Option<(Spec, Options)> {
    let Caught::Checked { nodes, requests, .. } = mutant.caught else { return None };
    let setting = setting(algorithm, mutant.name);
    let spec = setting.of(Spec::new(algorithm, nodes).broken(mutant.name));
    let options = Options { requests, crashes: setting.crashes, ..once(&spec) };
    Some((spec, options))
}

#[test]
fn every_mutant_that_a_small_group_catches_is_broken_in_a_shortest_way_that_can_be_played() {
    const STATES: u64 = 60_000;
    let mut unseen = Vec::new();
    for entry in ENTRIES {
        for mutant in mutants(entry.name) {
            let Some((spec, options)) = caught_in(entry.name, &mutant) else { continue };
            let name = format!("{} {}", entry.name, mutant.name);
            let seen = seen(&spec, &options, "", STATES);
            let Some(breach) = seen.breach else {
                assert_eq!(seen.bound, Some(Bound::States(STATES)), "{name} is said to be safe");
                unseen.push(name);
                continue;
            };
            let played = position(&spec, &options, &breach.steps).unwrap();
            assert_eq!(played.taken, breach.steps.len(), "{name}");
            match (breach.repeats, played.broken) {
                (None, Some(broken)) => {
                    assert_eq!(broken.property, breach.property, "{name}");
                    assert_eq!(broken.step, breach.steps.len(), "{name}");
                }
                (Some(repeats), None) => {
                    assert_eq!(played.same_as, Some(breach.steps.len() - repeats), "{name}");
                }
                other => panic!("{name}: {other:?}"),
            }
            let report = check(&spec, &options, &mut |_| {}).unwrap();
            let Verdict::Violated(violation) = report.verdict else { panic!("{name}") };
            let last = violation.trace.events.last().unwrap().at();
            if breach.repeats.is_none() {
                assert_eq!(breach.steps.len() as u64, last, "{name}");
            }
        }
    }
    // These take larger groups, and a search that says so.
    let large = [
        "maekawa no-displaced-failed",
        "raymond-k late-answers-count",
        "robust-k last-by-sender",
        "robust-k different-is-new",
    ];
    assert_eq!(unseen, large, "not within {STATES} states");
}
