//! Words for graphs and journeys.

use catraca_core::NodeId;
use catraca_topology::evolving::{EvolvingGraph, Journey};

use crate::table::{counted, grouped};

/// How large a graph is and how long it lasts.
pub(super) fn size(graph: &EvolvingGraph) -> String {
    let nodes = counted(graph.nodes().into(), "node", "nodes");
    let contacts = counted(graph.contacts().len() as u64, "contact", "contacts");
    let lasts = match graph.cycle() {
        None => format!("instants 0 to {}", grouped(graph.last())),
        Some(cycle) => {
            format!("instants {} to {} repeat for ever", grouped(cycle), grouped(graph.last()))
        }
    };
    format!("{nodes}, {contacts}, {lasts}")
}

/// A journey as `a --3--> b --7--> c`, with the instants of its hops.
pub(super) fn journey(graph: &EvolvingGraph, journey: &Journey) -> String {
    let first = journey.hops.first().map_or("", |hop| graph.name(hop.from));
    let hops = journey.hops.iter().map(|hop| format!(" --{}--> {}", hop.at, graph.name(hop.to)));
    first.chars().collect::<String>() + &hops.collect::<String>()
}

/// The names of some nodes, the first of many.
pub(super) fn names(graph: &EvolvingGraph, nodes: &[NodeId]) -> String {
    const MOST: usize = 12;
    let shown: Vec<&str> = nodes.iter().take(MOST).map(|&node| graph.name(node)).collect();
    let more = nodes.len().saturating_sub(MOST);
    let more = if more > 0 { format!(" and {} more", grouped(more as u64)) } else { String::new() };
    shown.join(", ") + &more
}
