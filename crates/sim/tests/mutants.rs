//! Deliberately broken algorithms are caught by random runs too, and for the right reason.
//!
//! The exhaustive checker catches nearly every mutant; here the monitors of the simulator catch them
//! too, and the ones that only they can catch.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod watch;

use catraca_algorithms::mutants::{Caught, Listed, Setting};
use catraca_algorithms::registry::{ENTRIES, mutants, setting};
use catraca_sim::{Random, Scenario};

use watch::{correct, figures};

/// Runs of each mutant, at most.
const SEEDS: u64 = 3000;

fn scenario(algorithm: &str, mutant: &str, seed: u64) -> Scenario {
    let Setting { k, crashes } = setting(algorithm, mutant);
    // Apart from those that crash two are left, or nobody would notice.
    let nodes = (2 + seed % 7).max(u64::from(crashes) + 2);
    let mut scenario = plain_scenario(algorithm, mutant, seed).with("nodes", nodes);
    if let Some(k) = k {
        scenario = scenario.with("k", k);
    }
    if crashes > 0 {
        let mut random = Random::new(seed);
        let mut living: Vec<u64> = (0..nodes).collect();
        let mut crash = || {
            let node = living.remove(random.below(living.len() as u64) as usize);
            format!("crash {node} at {}.{}", random.below(20), random.below(10))
        };
        let events = (0..crashes).map(|_| crash()).collect();
        scenario.set("faults.events", events).unwrap();
        scenario = scenario.with("faults.detector", random.below(10));
    }
    scenario
}

fn plain_scenario(algorithm: &str, mutant: &str, seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let mut one_of = |choices: [&'static str; 3]| choices[random.below(3) as usize];
    Scenario::new()
        .with("algorithm", algorithm)
        .with("mutant", mutant)
        .with("run.seed", seed)
        .with("network.delay", one_of(["uniform:0.1..3", "exp:1", "exp:5"]))
        .with("workload.hold", one_of(["0", "exp:0.5", "3"]))
        .with("workload.think", one_of(["0", "exp:1", "exp:20"]))
        // In one round some mutants are stuck that would show themselves in another way in the next.
        .with("workload.rounds", if seed % 4 == 3 { 1 } else { 4 })
}

/// Whether some run finds the property broken that the checker finds broken too.
fn is_caught(algorithm: &str, mutant: &Listed) -> bool {
    let property = |seed| {
        let violation = figures(&scenario(algorithm, mutant.name, seed)).violation;
        violation.map(|violation| violation.invariant)
    };
    (0..SEEDS).any(|seed| property(seed) == Some(mutant.caught.property()))
}

/// Takes an order of events so rare that only the checker, which tries all of them, finds it.
const TOO_RARE: &str = "learns-on-leaving";

#[test]
fn random_runs_catch_the_mutants_and_find_the_property_that_each_breaks() {
    for entry in ENTRIES {
        for mutant in mutants(entry.name) {
            let is_left_to_the_checker = mutant.name == TOO_RARE;
            let has_its_own_run = matches!(mutant.caught, Caught::Simulated { .. });
            if is_left_to_the_checker || has_its_own_run {
                continue;
            }
            let (name, property) = (mutant.name, mutant.caught.property());
            assert!(is_caught(entry.name, &mutant), "{} {name}: '{property}' holds", entry.name);
        }
    }
}

#[test]
fn every_mutant_that_takes_a_run_is_caught_as_it_says_where_the_algorithm_is_correct() {
    let mut caught = 0;
    for entry in ENTRIES {
        for mutant in mutants(entry.name) {
            let Some(scenario) = Scenario::catching(entry.name, &mutant) else { continue };
            let found = figures(&scenario).violation.map(|violation| violation.invariant);
            assert_eq!(found, Some(mutant.caught.property()), "{}", scenario.command());
            correct(&scenario.without("mutant"));
            caught += 1;
        }
    }
    assert!(caught > 0);
}
