//! `cargo xtask bench`: how fast, and how that compares with the goals.
//!
//! The machine may be shared and noisy: every figure is the best of several tries, and nothing here
//! is a test.

mod build;
mod dashboard;
mod git;
mod graphs;
mod peers;

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Result;
use catraca_algorithms::{NaimiTrehel, Spec};
use catraca_check::{Options, check};
use catraca_sim::{EventQueue, Hooks, Random, Scenario, Time, run};

pub(crate) use dashboard::{Options as DashboardOptions, measure as dashboard};
pub(crate) use peers::{
    Options as PeersOptions, all as peers, measure as measure_peers, serve as bare_server,
};

use crate::shell;

/// Other benchmarks than those of this project's own parts.
#[derive(clap::Subcommand)]
pub(crate) enum Other {
    /// Compares Catraca with etcd, ZooKeeper and Redis, and writes docs/BENCHMARKS.md
    Peers(PeersOptions),
    /// What an open dashboard costs a node with many locks, and the browser that shows it
    Dashboard(DashboardOptions),
}

const TRIES: usize = 5;

/// Measures only how long a fresh build takes, and which crates take longest.
pub(crate) fn build() -> Result<()> {
    build::measure()
}

pub(crate) fn all(table_only: bool, graphs_only: bool, git_only: bool) -> Result<()> {
    if git_only {
        crate::packages::install(&["git", "git-lfs"], "cargo xtask bench --git")?;
        shell::run("cargo build --quiet --release --package catraca")?;
        return git::measure(&shell::built("release/catraca"));
    }
    if !table_only && !graphs_only {
        shell::run("cargo bench --workspace --benches")?;
    }
    let graphs = if graphs_only { " --graphs" } else { "" };
    shell::run(&format!("cargo run --quiet --release --package xtask -- measure{graphs}"))
}

/// Prints the table, or only what it says of evolving graphs.
pub(crate) fn measure(graphs_only: bool) -> Result<()> {
    println!("{:<62} {:>14} {:>14} {:>8}", "figure", "measured", "goal", "ratio");
    if graphs_only {
        return graphs::measure();
    }
    // First, while the process is small: its peak memory only ever grows.
    million_nodes()?;
    let high = Scenario::new()
        .with("algorithm", "ricart-agrawala")
        .with("nodes", 64)
        .with("run.entries", 20_000);
    print("simulator, ricart-agrawala N=64 high load, events/s", events_per_second(&high)?, 10e6);
    let once = Scenario::new()
        .with("algorithm", "raymond")
        .with("nodes", 100_000)
        .with("workload.rounds", 1);
    print(
        "simulator, raymond N=100,000 one request each, events/s",
        events_per_second(&once)?,
        3e6,
    );
    let reversal = Scenario::new()
        .with("algorithm", "naimi-trehel")
        .with("nodes", 1_000_000)
        .with("workload.rounds", 1);
    let figure = "simulator, naimi-trehel N=1,000,000 one request each, events/s";
    print(figure, events_per_second(&reversal)?, 2e6);
    let state = size_of::<NaimiTrehel>() as f64;
    print_at_most("naimi-trehel, state of the algorithm, bytes/node", state, 64.0);
    many_crashes()?;
    print("checker, ricart-agrawala N=3 x 2 requests, states/s", states_per_second()?, 500e3);
    sets_growth()?;
    graphs::measure()?;
    queue_growth();
    Ok(())
}

/// A thousand nodes that ask for two resources each, of few or of many. The events of a run are
/// about the same however many there are; so should be their cost.
fn sets_growth() -> Result<()> {
    println!("\n{:<24} {:>12} {:>12}", "resources, 2 a request", "ns/event", "of the first");
    let mut first = None;
    for resources in [10, 100, 1000, 10_000] {
        let scenario = Scenario::new()
            .with("algorithm", "bouabdallah-laforest")
            .with("nodes", 1000)
            .with("resources", resources)
            .with("workload.claim", 2)
            .with("run.entries", 20_000);
        let per_event = 1e9 / events_per_second(&scenario)?;
        let ratio = per_event / *first.get_or_insert(per_event);
        println!("{resources:<24} {per_event:>12.1} {ratio:>12.2}");
    }
    Ok(())
}

/// `goal` is a lower bound.
fn print(figure: &str, measured: f64, goal: f64) {
    println!("{figure:<62} {measured:>14.0} {goal:>14.0} {:>8.2}", measured / goal);
}

/// `goal` is an upper bound.
fn print_at_most(figure: &str, measured: f64, goal: f64) {
    println!("{figure:<62} {measured:>14.1} {goal:>14.1} {:>8.2}", goal / measured);
}

fn events_per_second(scenario: &Scenario) -> Result<f64> {
    let setup = scenario.setup()?;
    let mut best: f64 = 0.0;
    for _ in 0..TRIES {
        let began = Instant::now();
        let report = run(&setup, Hooks::default())?;
        best = best.max(report.events as f64 / began.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn states_per_second() -> Result<f64> {
    let spec = Spec::new("ricart-agrawala", 3);
    let options = Options { threads: 2, ..Options::of(&spec)? };
    let mut best: f64 = 0.0;
    for _ in 0..TRIES {
        let report = check(&spec, &options, &mut |_| {})?;
        best = best.max(report.states as f64 / report.elapsed.as_secs_f64());
    }
    Ok(best)
}

fn million_nodes() -> Result<()> {
    let nodes = 1_000_000;
    let scenario = Scenario::new()
        .with("algorithm", "raymond")
        .with("nodes", nodes)
        .with("workload.rounds", 1);
    let setup = scenario.setup()?;
    let (before, began) = (memory("VmRSS"), Instant::now());
    black_box(run(&setup, Hooks::default())?);
    let seconds = began.elapsed().as_secs_f64();
    if let (Some(before), Some(peak)) = (before, memory("VmHWM")) {
        let per_node = (peak - before) as f64 / f64::from(nodes);
        print_at_most("raymond N=1,000,000 one request each, peak bytes/node", per_node, 150.0);
    }
    print_at_most("raymond N=1,000,000 one request each, seconds", seconds, 60.0);
    Ok(())
}

/// Ten minutes of robust-k under the load of S4's experiment, with all 512 nodes asking and every
/// fifth crashing on the way.
fn many_crashes() -> Result<()> {
    let mut scenario = Scenario::new()
        .with("algorithm", "robust-k")
        .with("nodes", 512)
        .with("k", 16)
        .with("test-interval", 1)
        .with("test-timeout", 0.04)
        .with("news", "immediate")
        .with("ack-timeout", 0.18)
        .with("network.delay", 0.01)
        .with("workload.think", 0.1)
        .with("workload.hold", 0.8)
        .with("run.time", 600);
    let crashes = (1..=100).map(|number| format!("crash {} at {}", 5 * number, 5 * number));
    scenario.set("faults.events", crashes.collect())?;
    let setup = scenario.setup()?;
    let began = Instant::now();
    black_box(run(&setup, Hooks::default())?);
    let seconds = began.elapsed().as_secs_f64();
    print_at_most("robust-k N=512 k=16, 10 minutes with 100 crashes, seconds", seconds, 30.0);
    Ok(())
}

/// A figure of this process from the system, in bytes.
fn memory(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// The hold model: take the next event, put one back at a random time after it.
fn queue_growth() {
    println!("\n{:<24} {:>12} {:>22}", "pending events", "ns/event", "ns/event/log2(pending)");
    for exponent in [10, 12, 14, 16, 18, 20] {
        let pending = 1u64 << exponent;
        let nanoseconds = (0..TRIES).map(|_| hold_model(pending)).min().unwrap_or_default();
        let per_event = nanoseconds.as_nanos() as f64 / HOLD_EVENTS as f64;
        println!("{pending:<24} {per_event:>12.1} {:>22.2}", per_event / f64::from(exponent));
    }
}

const HOLD_EVENTS: u64 = 1_000_000;

fn hold_model(pending: u64) -> Duration {
    let mut random = Random::new(1);
    let mut queue = EventQueue::default();
    for event in 0..pending {
        queue.push(Time(random.below(1_000_000)), event);
    }
    let began = Instant::now();
    for _ in 0..HOLD_EVENTS {
        if let Some((now, event)) = queue.pop() {
            queue.push(now + Time(random.below(1_000_000)), event);
        }
    }
    black_box(queue.len());
    began.elapsed()
}
