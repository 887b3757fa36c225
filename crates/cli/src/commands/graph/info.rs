//! `catraca graph info`: what a trace is like.

use std::io::Write;

use catraca_core::NodeId;
use catraca_topology::evolving::Reachability;

use super::trace::{Source, Trace};
use super::{times, words};
use crate::Outcome;
use crate::output::Stdout;
use crate::table::{grouped, number};

/// Who reaches whom is a bit for each ordered pair: those of so many nodes have about 300 MB.
pub(super) const MOST_ALL_PAIRS: u32 = 50_000;

/// Describes a trace: its size, its contacts, who reaches whom and how fast.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    trace: Trace,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let source = self.trace.read_quietly()?;
        let graph = &source.graph;
        let mut out = Stdout::lock();
        writeln!(out, "format      {}, {} lines", source.format, grouped(source.lines))?;
        if let Some(what) = times::skipped(source.skipped) {
            writeln!(out, "passed over {what}")?;
        }
        if let Some(beginning) = source.times.beginning() {
            writeln!(out, "time        {beginning}")?;
        }
        if let Some(step) = source.step {
            writeln!(
                out,
                "            its samples are {} apart; --instant joins those that follow each other",
                times::seconds(step)
            )?;
        }
        writeln!(out, "graph       {}", words::size(graph))?;
        print_contacts(&source, &mut out)?;
        print_reach(&source, &mut out)
    }
}

fn print_contacts(source: &Source, out: &mut impl Write) -> Outcome {
    let (graph, times) = (&source.graph, source.times);
    let contacts = graph.contacts();
    let (Some(first), Some(last)) = (contacts.first(), contacts.iter().map(|one| one.to).max())
    else {
        return Ok(writeln!(out, "contacts    none")?);
    };
    let lengths = contacts.iter().map(|contact| contact.to - contact.from + 1);
    let total: u64 = lengths.clone().sum();
    let longest = lengths.max().unwrap_or(0);
    let mut meets = vec![0u64; graph.nodes() as usize];
    let mut pairs: Vec<(NodeId, NodeId)> = Vec::with_capacity(contacts.len());
    for contact in contacts {
        meets[contact.a.index()] += 1;
        meets[contact.b.index()] += 1;
        pairs.push((contact.a, contact.b));
    }
    pairs.sort_unstable();
    pairs.dedup();
    let most = meets.iter().max().copied().unwrap_or(0);
    let busiest = meets.iter().position(|&count| count == most).unwrap_or(0);
    let busiest = graph.name(NodeId(busiest as u32));
    let alone = meets.iter().filter(|&&count| count == 0).count() as u64;
    writeln!(out, "contacts    from instant {} to {}", times.at(first.from), times.at(last))?;
    writeln!(
        out,
        "lengths     {} instants on average, {} at most",
        number(total as f64 / contacts.len() as f64),
        times.lasting(longest)
    )?;
    writeln!(out, "edges       {} neighbours an instant on average", {
        let instants = (graph.last() + 1) as f64;
        number(total as f64 / instants)
    })?;
    writeln!(out, "pairs       {} meet, of {}", grouped(pairs.len() as u64), {
        let nodes = u64::from(graph.nodes());
        grouped(nodes * (nodes - 1) / 2)
    })?;
    let most = grouped(most);
    writeln!(out, "nodes       {busiest} has most contacts ({most}); {alone} have none")?;
    Ok(())
}

fn print_reach(source: &Source, out: &mut impl Write) -> Outcome {
    let (graph, times) = (&source.graph, source.times);
    let nodes = u64::from(graph.nodes());
    if graph.nodes() > MOST_ALL_PAIRS {
        let most = grouped(MOST_ALL_PAIRS.into());
        writeln!(out, "journeys    not counted: there are more than {most} nodes")?;
        return Ok(());
    }
    let reach = Reachability::of_all(graph, 0);
    let reached: u64 = NodeId::all(graph.nodes()).map(|node| reach.count(node) as u64).sum();
    let (reached, pairs) = (reached - nodes, nodes * (nodes - 1));
    writeln!(
        out,
        "journeys    from instant 0: {} of {} ordered pairs are connected",
        grouped(reached),
        grouped(pairs)
    )?;
    if let Some(farthest) = reach.farthest() {
        let (from, to) = (graph.name(farthest.from), graph.name(farthest.to));
        let what = if reached == pairs { "diameter " } else { "longest  " };
        writeln!(
            out,
            "{what}   {} from instant 0, from {from} to {to}{}",
            times.lasting(farthest.at),
            if reached == pairs { "" } else { "; not a diameter, some pairs are not connected" }
        )?;
    }
    if graph.cycle().is_none() {
        writeln!(out, "for ever    unknown for a finite trace; --repeat repeats it")?;
        return Ok(());
    }
    let all = NodeId::all(graph.nodes()).collect();
    if let Some(for_ever) = Reachability::for_ever(graph, all) {
        let count: u64 = NodeId::all(graph.nodes()).map(|node| for_ever.count(node) as u64).sum();
        let count = count - nodes;
        writeln!(
            out,
            "for ever    {} of {} ordered pairs are connected over time",
            grouped(count),
            grouped(pairs)
        )?;
    }
    Ok(())
}
