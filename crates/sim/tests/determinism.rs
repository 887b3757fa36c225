//! The same setup gives the same run, step by step, today and for ever.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod watch;

use catraca_algorithms::Channels;
use catraca_algorithms::registry::ENTRIES;
use catraca_sim::{Digest, Report, Scenario};

use watch::watch;

fn digest(scenario: &Scenario) -> (String, Report) {
    let watched = watch(scenario);
    let mut digest = Digest::default();
    watched.events.iter().for_each(|event| digest.add(event));
    (digest.to_string(), watched.report)
}

fn scenario(algorithm: &str, delay: &str) -> Scenario {
    Scenario::new()
        .with("algorithm", algorithm)
        .with("nodes", 7)
        .with("network.delay", delay)
        .with("workload.think", "exp:2")
        .with("workload.hold", "uniform:0.1..1")
        .with("workload.rounds", 3)
}

#[test]
fn two_runs_of_one_setup_are_equal_in_every_step_and_figure() {
    for entry in ENTRIES {
        let orders: &[&str] = match entry.channels {
            Channels::Fifo => &["fifo"],
            Channels::Any => &["fifo", "any"],
        };
        for delay in ["constant:1", "uniform:0.5..1.5", "exp:1"] {
            for order in orders {
                let scenario = scenario(entry.name, delay).with("network.order", order);
                let first = digest(&scenario);
                assert_eq!(first.1.entries, 21, "{}", scenario.command());
                assert_eq!(first, digest(&scenario), "{}", scenario.command());
            }
        }
    }
}

#[test]
fn another_seed_gives_another_run() {
    let first = scenario("maekawa", "exp:1");
    let second = first.clone().with("run.seed", 2);
    assert_ne!(digest(&first).0, digest(&second).0);
}

/// A change of the generator, of what is drawn from it or of the order of events shows here.
#[test]
fn runs_of_today_are_the_runs_of_yesterday() {
    let closed = scenario("ricart-agrawala", "uniform:0.5..1.5");
    let (closed, figures) = digest(&closed);
    assert_eq!((closed.as_str(), figures.events), ("91b3bc4dfc901a75", 294));

    // Raymond does not survive the crash; the run ends at the deadlock.
    let open = Scenario::new()
        .with("algorithm", "raymond")
        .with("nodes", 20)
        .with("workload.arrivals", "open")
        .with("workload.rate", 0.7)
        .with("network.delay", "exp:0.8")
        .with("faults.events", "crash 9 at 30")
        .with("faults.detector", 2)
        .with("run.time", 60)
        .with("run.seed", 5);
    let (open, figures) = digest(&open);
    assert_eq!((open.as_str(), figures.events), ("83194b26c10c468f", 160));

    let together = Scenario::new()
        .with("algorithm", "coordinator")
        .with("nodes", 4)
        .with("start", "inside:2")
        .with("workload.rounds", 2)
        .with("workload.hold", 0)
        .with("network.delay", 0);
    let (together, figures) = digest(&together);
    assert_eq!((together.as_str(), figures.events), ("3b849e02e0ee1537", 36));
}
