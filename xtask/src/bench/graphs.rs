//! Evolving graphs: journeys, conditions and runs on large traces.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use catraca_core::NodeId;
use catraca_sim::Random;
use catraca_sim::evolving::{Setup, Workload, run};
use catraca_topology::evolving::{
    Conditions, Contact, EvolvingGraph, Journeys, Question, Reachability,
};

use super::{memory, print_at_most};

pub(super) fn measure() -> Result<()> {
    let small = meetings(400, 500_000)?;
    all_pairs("400 nodes, 500,000 contacts", &small, 2.0);
    let large = meetings(10_000, 1_000_000)?;
    all_pairs("10,000 nodes, 1,000,000 contacts", &large, 60.0);
    if let Some(peak) = memory("VmHWM") {
        print_at_most(
            "the same, peak memory of the process in MiB",
            peak as f64 / f64::from(1 << 20),
            2048.0,
        );
    }
    foremost()?;
    instants()
}

/// Pairs that meet at random, five an instant.
fn meetings(nodes: u32, contacts: u64) -> Result<EvolvingGraph> {
    let mut random = Random::new(1);
    let meet = |index: u64| {
        let a = random.below(nodes.into()) as u32;
        let b = (u64::from(a) + 1 + random.below(u64::from(nodes) - 1)) % u64::from(nodes);
        Contact::at(index / 5, a, b as u32)
    };
    let drawn = (0..contacts).map(meet).collect();
    Ok(EvolvingGraph::numbered(nodes, drawn, contacts / 5, None)?)
}

fn all_pairs(what: &str, graph: &EvolvingGraph, goal: f64) {
    let began = Instant::now();
    black_box(Reachability::of_all(graph, 0).farthest());
    let seconds = began.elapsed().as_secs_f64();
    print_at_most(&format!("all pairs, {what}, seconds"), seconds, goal);
    let endless = graph.repeated(0).unwrap_or_else(|_| graph.clone());
    for (kind, graph) in [("finite", graph), ("for ever", &endless)] {
        let requesters = NodeId::all(graph.nodes()).collect();
        let question = Question { requesters, token: NodeId(0), from: 0 };
        let began = Instant::now();
        black_box(Conditions::decide(graph, &question));
        let seconds = began.elapsed().as_secs_f64();
        print_at_most(&format!("all conditions, {what}, {kind}, s"), seconds, goal);
    }
}

/// One source, all targets: the time per contact does not grow.
fn foremost() -> Result<()> {
    println!("\n{:<24} {:>12}", "contacts", "ns/contact, foremost journeys to all of 1,000 nodes");
    for contacts in [10_000u64, 100_000, 1_000_000] {
        // The last node is met last, so the search goes through everything.
        let mut all = meetings(999, contacts - 1)?.contacts().to_vec();
        all.push(Contact::at(contacts / 5 + 1, 0, 999));
        let graph = EvolvingGraph::numbered(1_000, all, contacts / 5 + 1, None)?;
        let journeys = Journeys::new(&graph);
        let best = (0..super::TRIES).map(|_| {
            let began = Instant::now();
            black_box(journeys.foremost(NodeId(0), 0).count());
            began.elapsed()
        });
        let best = best.min().unwrap_or_default().as_nanos() as f64 / contacts as f64;
        println!("{contacts:<24} {best:>12.2}");
    }
    Ok(())
}

/// Ten nodes ask; the time per contact does not depend on how many others there are.
fn instants() -> Result<()> {
    println!("\n{:<24} {:>12}", "nodes", "ns/contact, a run of evolving-helary in which ten ask");
    for nodes in [1_000, 10_000, 100_000] {
        let graph = meetings(nodes, 200_000)?;
        let requests = NodeId::all(10).map(|node| (0, node)).collect();
        let workload = Workload { requests, rounds: None, hold: 1, pause: 10 };
        let setup = Setup::new(&graph, workload);
        let began = Instant::now();
        let report = run("evolving-helary", &setup)?;
        let per_contact = began.elapsed().as_nanos() as f64 / report.contacts as f64;
        println!("{nodes:<24} {per_contact:>12.1}");
    }
    Ok(())
}
