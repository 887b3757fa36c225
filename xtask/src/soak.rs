//! `cargo xtask soak`: what takes too long for every day.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use catraca_algorithms::Spec;
use catraca_algorithms::registry::ENTRIES;
use catraca_check::views::{self as changing, Failure, Kind};
use catraca_check::{Limits, Options as Exploring, Verdict, check};
use catraca_core::{NodeId, Start};
use catraca_sim::{Hooks, Random, Scenario, Violation, members, run, views};
use clap::ValueEnum;

use crate::shell;

/// Explorations stop at so many bytes of memory, and say how far they got.
const MOST_MEMORY: u64 = 12 << 30;
/// Explorations of groups whose members fail stop at so many states: some minutes each.
const MOST_CHANGES: u64 = 5_000_000;

/// What a soak consists of.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Minutes for the seeded runs of nodes and of members; a tenth of that for inputs of strangers, and again for
    /// those of cargo-fuzz if it is there
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Only this part
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
}

/// A part of a soak, by what is run.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Every order of what can happen in groups of three and four nodes
    Nodes,
    /// A million groups whose members come and go, each under faults of its own
    Groups,
    /// Every order of what can happen in groups of three members, one of which fails
    Changes,
    /// Inputs of strangers, changed at random, and by cargo-fuzz if it is there
    Fuzz,
    /// Random runs of nodes and of members
    Runs,
    /// Real members without one rule after the other, which the judge of 'chaos' has to notice; up to four
    /// minutes a rule, on idle cores, and only if it is asked for
    ChaosMutants,
}

pub(crate) fn all(options: &Options) -> Result<()> {
    let Options { minutes, only } = options;
    if *only == Some(Part::ChaosMutants) {
        return crate::chaos::mutants();
    }
    let only = only.and_then(|part| part.to_possible_value());
    let only = only.map(|part| format!(" --only {}", part.get_name())).unwrap_or_default();
    let explore = format!("explore --minutes {minutes}{only}");
    shell::run(&format!("cargo run --quiet --release --package xtask -- {explore}"))
}

pub(crate) fn explore(options: &Options) -> Result<()> {
    let minutes = options.minutes;
    let wants = |part| options.only.is_none_or(|only| only == part);
    if wants(Part::Nodes) {
        explore_groups()?;
    }
    if wants(Part::Groups) {
        seeded_groups()?;
    }
    if wants(Part::Changes) {
        explore_changes()?;
    }
    if wants(Part::Fuzz) {
        let time = Duration::from_secs(minutes * 6);
        crate::fuzz::all(minutes, time)?;
        crate::fuzz::guided(time)?;
    }
    if wants(Part::Runs) {
        seeded_runs(Duration::from_secs(minutes * 60))?;
    }
    Ok(())
}

/// Every algorithm with 3 nodes and 2 requests, and with 4 nodes and 1, from every start.
fn explore_groups() -> Result<()> {
    println!(
        "{:<20} {:>2} {:>2} {:<10} {:>13} {:>6} {:>8}  verdict",
        "algorithm", "N", "R", "start", "states", "depth", "seconds"
    );
    for entry in ENTRIES {
        for (nodes, requests) in [(3, 2), (4, 1)] {
            let inside = NodeId::all(nodes).map(Start::inside);
            for start in std::iter::once(Start::idle()).chain(inside) {
                explore_group(&Spec::new(entry.name, nodes).starting(start), requests)?;
            }
        }
    }
    Ok(())
}

fn explore_group(spec: &Spec, requests: u32) -> Result<()> {
    let options = Exploring { requests, memory_limit: Some(MOST_MEMORY), ..Exploring::of(spec)? };
    let report = check(spec, &options, &mut |_| {})?;
    let verdict = match &report.verdict {
        Verdict::Holds => "holds",
        Verdict::OutOfMemory { .. } => "holds as far as explored",
        Verdict::Violated(violation) => bail!(
            "{} with {} nodes breaks '{}': {}",
            spec.algorithm,
            spec.nodes,
            violation.property,
            violation.what
        ),
        Verdict::TooManyStates { .. } | Verdict::TooLarge { .. } | Verdict::Interrupted => {
            "cut short"
        }
    };
    let start = match spec.start.holders().next() {
        Some((node, _)) => format!("inside:{node}"),
        None => "idle".to_string(),
    };
    println!(
        "{:<20} {:>2} {:>2} {start:<10} {:>13} {:>6} {:>8.1}  {verdict}",
        spec.algorithm,
        spec.nodes,
        requests,
        report.states,
        report.depth,
        report.elapsed.as_secs_f64()
    );
    Ok(())
}

/// Groups of three whose members fail: everybody asks, and whoever fails may be any of them.
fn explore_changes() -> Result<()> {
    println!(
        "{:<20} {:<8} {:>13} {:>6} {:>8}  verdict",
        "algorithm", "fault", "states", "depth", "seconds"
    );
    let algorithms = [
        ("naimi-trehel", 1),
        ("suzuki-kasami", 1),
        ("ricart-agrawala", 1),
        ("maekawa", 1),
        ("bouabdallah-laforest", 1),
        ("raymond-k", 2),
    ];
    for (algorithm, permits) in algorithms {
        for kind in [Kind::Crash, Kind::Cut, Kind::Pause, Kind::Restart] {
            let setting = changing::Setting::new(algorithm, Failure::of_any(kind));
            explore_change(&changing::Setting { permits, ..setting })?;
        }
    }
    Ok(())
}

fn explore_change(setting: &changing::Setting) -> Result<()> {
    let limits = Limits {
        memory_limit: Some(MOST_MEMORY),
        state_limit: Some(MOST_CHANGES),
        ..Limits::default()
    };
    let report = changing::check(setting, &limits, &mut |_| {})?;
    let changing::Setting { algorithm, failure, .. } = setting;
    let verdict = match &report.verdict {
        Verdict::Holds => "holds",
        Verdict::OutOfMemory { .. } | Verdict::TooManyStates { .. } => "holds as far as explored",
        Verdict::Violated(it) => {
            bail!("{algorithm} under {failure} breaks '{}': {}", it.property, it.what)
        }
        Verdict::TooLarge { .. } | Verdict::Interrupted => "cut short",
    };
    println!(
        "{algorithm:<20} {:<8} {:>13} {:>6} {:>8.1}  {verdict}",
        failure.to_string(),
        report.states,
        report.depth,
        report.elapsed.as_secs_f64()
    );
    Ok(())
}

/// Random setups until the time is up, of nodes and of members: each seed decides everything about its
/// run.
fn seeded_runs(time: Duration) -> Result<()> {
    let began = Instant::now();
    let mut runs = 0;
    while began.elapsed() < time {
        let scenario = random_scenario(runs);
        holds(&scenario, run(&scenario.setup()?, Hooks::default())?.violation)?;
        let entry = &ENTRIES[runs as usize % ENTRIES.len()];
        let scenario = members::random_scenario(entry, runs);
        if let Some(setup) = scenario.members()? {
            holds(&scenario, members::run(&setup, members::Hooks::default())?.violation)?;
        }
        runs += 1;
    }
    println!("{runs} seeded runs of nodes and of members, without a violation");
    Ok(())
}

/// So many seeds of groups whose members come and go.
const GROUPS: u64 = 1_000_000;
/// So many of them tell how long all will take.
const MEASURED: u64 = 2000;
/// Every family of algorithms, with permits and the most locks of a request.
const FAMILIES: &[(&str, u32, u32)] = &[
    ("ricart-agrawala", 1, 1),
    ("naimi-trehel", 1, 1),
    ("suzuki-kasami", 1, 1),
    ("maekawa", 1, 1),
    ("raymond", 1, 1),
    ("raymond-k", 2, 1),
    ("bouabdallah-laforest", 1, 2),
    ("robust-k", 2, 1),
];

/// A million groups under faults, on all cores. It says beforehand how long that takes.
fn seeded_groups() -> Result<()> {
    let began = Instant::now();
    groups_survive(0..MEASURED)?;
    let each = began.elapsed() / MEASURED as u32;
    let whole = each * (GROUPS - MEASURED) as u32;
    println!(
        "{GROUPS} groups that change, {:.2} ms each: about {} minutes",
        each.as_secs_f64() * 1000.0,
        whole.as_secs() / 60 + 1
    );
    for hundredth in 0..100 {
        let first = |part: u64| MEASURED.max(GROUPS / 100 * part);
        groups_survive(first(hundredth)..first(hundredth + 1))?;
        let minutes = began.elapsed().as_secs_f64() / 60.0;
        eprint!("\r{} % after {minutes:.1} minutes", hundredth + 1);
    }
    eprintln!();
    println!("{GROUPS} seeded runs of groups that change, without a violation");
    Ok(())
}

fn groups_survive(seeds: Range<u64>) -> Result<()> {
    let next = AtomicU64::new(seeds.start);
    let work = || -> Result<()> {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return Ok(());
            }
            // Nobody goes on when something was found.
            group_survives(seed).inspect_err(|_| next.store(seeds.end, Ordering::Relaxed))?;
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => bail!("a run has panicked"),
        })
    })
}

/// A group whose members come and go, under the faults of one seed.
fn group_survives(seed: u64) -> Result<()> {
    let (algorithm, permits, claim) = FAMILIES[seed as usize % FAMILIES.len()];
    let members = 1 + (seed as usize / FAMILIES.len()) % 5;
    let usual = views::Setup::new(algorithm, members);
    let durable = usual.clients / 2;
    let setup = views::Setup { permits, claim, durable, ..usual };
    match views::run(&setup, seed).violation {
        None => Ok(()),
        Some((at, what)) => bail!(
            "at {at}: {what}\nreproduce: catraca swarm --algorithm {algorithm} --members {members} \
             --permits {permits} --claim {claim} --seed {seed} --runs 1"
        ),
    }
}

fn holds(scenario: &Scenario, violation: Option<Violation>) -> Result<()> {
    match violation {
        None => Ok(()),
        Some(Violation { invariant, what, .. }) => {
            bail!("{invariant}: {what}\nreproduce: {}", scenario.command())
        }
    }
}

fn random_scenario(seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let mut pick =
        |choices: &[&str]| choices[random.below(choices.len() as u64) as usize].to_string();
    let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
    let scenario = Scenario::new()
        .with("algorithm", pick(&names))
        .with("nodes", pick(&["1", "2", "3", "5", "9", "16", "33"]))
        .with("network.delay", pick(&["constant:1", "uniform:0.1..3", "exp:1", "uniform:0..20"]))
        .with("workload.hold", pick(&["0", "constant:1", "exp:0.3", "exp:5"]))
        .with("workload.think", pick(&["0", "exp:1", "exp:30", "uniform:0..100"]))
        .with("workload.rounds", pick(&["1", "5", "50"]));
    scenario.with("run.seed", seed)
}
