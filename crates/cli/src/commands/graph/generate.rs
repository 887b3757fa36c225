//! `catraca graph generate`: graphs to experiment with.

use catraca_sim::Random;
use catraca_topology::evolving::generate::{
    self, EdgeMarkovian, Shape, Timetable, Waypoints, edge_markovian, periodic, random_waypoint,
};
use catraca_topology::evolving::{EvolvingGraph, GraphError, MAX_CONTACTS, MAX_GRAPH_NODES};
use clap::Subcommand;

use super::convert::Target;
use crate::failure::Failure;
use crate::{Outcome, value};

/// Makes a graph to experiment with.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Args)]
struct Nodes {
    /// How many nodes.
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true,
        value_parser = value::at_least(1u32))]
    nodes: u32,
}

/// Graphs that are drawn at random and end.
#[derive(clap::Args)]
struct Drawn {
    #[command(flatten)]
    nodes: Nodes,
    /// How many instants.
    #[arg(long, value_name = "T", default_value_t = 100, allow_negative_numbers = true,
        value_parser = value::at_least(1u64))]
    instants: u64,
    /// Repeats the graph for ever.
    #[arg(long)]
    repeat: bool,
    /// The seed.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true,
        value_parser = value::at_least(0u64))]
    seed: u64,
    #[command(flatten)]
    target: Target,
}

#[derive(Subcommand)]
enum Kind {
    /// Every edge appears and disappears independently.
    EdgeMarkovian {
        #[command(flatten)]
        drawn: Drawn,
        /// The chance that an absent edge is there at the next instant.
        #[arg(long, value_name = "P", default_value = "0.02", allow_negative_numbers = true,
            value_parser = chance)]
        birth: f64,
        /// The chance that a present edge disappears at the next instant.
        #[arg(long, value_name = "P", default_value = "0.5", allow_negative_numbers = true,
            value_parser = chance)]
        death: f64,
    },
    /// Nodes move in a square, from place to place; those that are near are neighbours.
    Waypoint {
        #[command(flatten)]
        drawn: Drawn,
        /// The side of the square.
        #[arg(long, value_name = "D", default_value = "100", allow_negative_numbers = true,
            value_parser = length)]
        side: f64,
        /// How far apart neighbours are at most.
        #[arg(long, value_name = "D", default_value = "15", allow_negative_numbers = true,
            value_parser = length)]
        range: f64,
        /// How far a node moves in an instant.
        #[arg(long, value_name = "D", default_value = "3", allow_negative_numbers = true,
            value_parser = length)]
        speed: f64,
    },
    /// Buses that go round for ever, each on a route of its own; nodes are stops and buses.
    Buses {
        /// How many stops.
        #[arg(long, value_name = "N", default_value_t = 8, allow_negative_numbers = true,
            value_parser = value::at_least(1u32))]
        stops: u32,
        /// How many buses.
        #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true,
            value_parser = value::at_least(1u32))]
        buses: u32,
        /// How many stops each bus serves, one an instant.
        #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true,
            value_parser = value::at_least(1u32))]
        route: u32,
        /// The seed.
        #[arg(long, default_value_t = 1, allow_negative_numbers = true,
            value_parser = value::at_least(0u64))]
        seed: u64,
        #[command(flatten)]
        target: Target,
    },
    /// A graph that is the same for ever.
    Static {
        #[command(flatten)]
        nodes: Nodes,
        /// Its shape: complete, ring, star or path.
        #[arg(long, value_name = "SHAPE", default_value = "complete")]
        shape: Shape,
        #[command(flatten)]
        target: Target,
    },
    /// A ring, for ever, in which one link at a time is broken, each in turn.
    Ring {
        #[command(flatten)]
        nodes: Nodes,
        #[command(flatten)]
        target: Target,
    },
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let (graph, target) = match self.kind {
            Kind::EdgeMarkovian { drawn, birth, death } => {
                let (nodes, instants) = (drawn.nodes.nodes, drawn.instants);
                let chances = EdgeMarkovian { nodes, instants, birth, death };
                let graph = edge_markovian(chances, &mut Random::new(drawn.seed));
                (drawn.finish(graph), drawn.target)
            }
            Kind::Waypoint { drawn, side, range, speed } => {
                let (nodes, instants) = (drawn.nodes.nodes, drawn.instants);
                let walk = Waypoints { nodes, instants, side, range, speed };
                let graph = random_waypoint(walk, &mut Random::new(drawn.seed));
                (drawn.finish(graph), drawn.target)
            }
            Kind::Buses { stops, buses, route, seed, target } => {
                let timetable = Timetable { stops, buses, route };
                if route > stops {
                    let what =
                        format!("--route: a route of {route} needs as many stops, not {stops}");
                    return Err(Failure::input(what));
                }
                (periodic(timetable, &mut Random::new(seed)), target)
            }
            Kind::Static { nodes, shape, target } => {
                (generate::unchanging(nodes.nodes, shape), target)
            }
            Kind::Ring { nodes, target } => (generate::broken_ring(nodes.nodes), target),
        };
        target.write(&graph.map_err(|error| too_large(&error))?)
    }
}

impl Drawn {
    fn finish(
        &self,
        graph: Result<EvolvingGraph, GraphError>,
    ) -> Result<EvolvingGraph, GraphError> {
        let graph = graph?;
        if self.repeat { graph.repeated(0) } else { Ok(graph) }
    }
}

fn too_large(error: &GraphError) -> Failure {
    let what = match error {
        GraphError::TooManyNodes => format!("has more than {MAX_GRAPH_NODES} nodes"),
        GraphError::TooManyContacts => format!("has more than {MAX_CONTACTS} contacts"),
        GraphError::TooLong => "lasts too long".to_string(),
        other => other.to_string(),
    };
    Failure::input(format!("such a graph {what}; take fewer nodes or instants"))
}

fn chance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (1e-9..=1.0).contains(number));
    number.ok_or_else(|| format!("'{text}' is no chance: give a number above 0 and up to 1"))
}

fn length(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (1e-6..=1e9).contains(number));
    number.ok_or_else(|| format!("'{text}' is no length: give a number above 0"))
}
