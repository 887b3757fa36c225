//! Deliberately broken drivers are caught: the judge can fail.

use std::collections::BTreeSet;

use catraca_core::property;
use catraca_group::Turns;
use catraca_sim::members::{FLAWS, Flaw, Setup};
use catraca_sim::{Latency, Time};

use crate::{correct, figures, small};

/// Runs of each flaw.
const SEEDS: u64 = 30;

fn setup(algorithm: &str, seed: u64) -> Setup {
    Setup {
        seed,
        at_once: 2,
        turns: Turns { handovers: 1, ..Turns::USUAL },
        ttl: Some(Time::units(3)),
        latency: Latency::Uniform("exp:1".parse().unwrap()),
        ..small(algorithm, 3, 9, 10)
    }
}

/// The properties that runs with this flaw break.
fn broken(algorithm: &str, flaw: Flaw) -> BTreeSet<&'static str> {
    let run = |seed| figures(&Setup { flaw: Some(flaw), ..setup(algorithm, seed) });
    let violations = (0..SEEDS).filter_map(|seed| run(seed).violation);
    violations.map(|violation| violation.invariant).collect()
}

#[test]
fn every_flaw_is_caught() {
    let cases = [
        (Flaw::RepeatsMessages, "naimi-trehel", property::MUTUAL_EXCLUSION),
        (Flaw::RepeatsMessages, "suzuki-kasami", property::MUTUAL_EXCLUSION),
        (Flaw::LosesMessages, "naimi-trehel", property::NOBODY_WAITS_FOR_EVER),
        (Flaw::Reorders, "lamport", property::MUTUAL_EXCLUSION),
        (Flaw::ForgetsReleases, "raymond", property::NOBODY_WAITS_FOR_EVER),
        (Flaw::DropsGrants, "coordinator", property::NOBODY_WAITS_FOR_EVER),
        (Flaw::DelaysRequests, "maekawa", property::ORDER_OF_ASKING),
        (Flaw::EndsSessions, "ricart-agrawala", property::MUTUAL_EXCLUSION),
        (Flaw::HandsOverTooOften, "naimi-trehel", property::BOUNDED_HANDOVER),
    ];
    for (flaw, algorithm, property) in cases {
        let broken = broken(algorithm, flaw);
        assert!(broken.contains(property), "{flaw:?} of {algorithm}: {broken:?}");
    }
    assert!(FLAWS.iter().all(|flaw| cases.iter().any(|(listed, ..)| listed == flaw)));
}

#[test]
fn the_same_runs_without_a_flaw_break_nothing() {
    for algorithm in ["naimi-trehel", "suzuki-kasami", "lamport", "raymond", "coordinator"] {
        for seed in 0..SEEDS {
            correct(&setup(algorithm, seed));
        }
    }
}
