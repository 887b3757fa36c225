//! Graphs to experiment with. Randomness comes from outside, so a seed determines a graph.

mod markov;
mod waypoint;

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::{Contact, EvolvingGraph, GraphError, MAX_CONTACTS, MAX_GRAPH_NODES};

pub use markov::{EdgeMarkovian, edge_markovian};
pub use waypoint::{Waypoints, random_waypoint};

/// The most steps of drawing at random: pairs of nodes that get an edge or none, or walks of one node
/// for one instant. So many take a few seconds.
pub const MAX_STEPS: u64 = 200_000_000;

/// Refuses what is too large before any of it is made.
fn check_size(nodes: u64, contacts: u64) -> Result<(), GraphError> {
    match () {
        () if nodes > u64::from(MAX_GRAPH_NODES) => Err(GraphError::TooManyNodes),
        () if contacts > MAX_CONTACTS as u64 => Err(GraphError::TooManyContacts),
        () => Ok(()),
    }
}

/// How many pairs there are of so many nodes.
fn pairs(nodes: u32) -> u64 {
    u64::from(nodes) * u64::from(nodes.saturating_sub(1)) / 2
}

/// A source of random numbers.
pub trait Draw {
    /// A number from 0 to `limit` - 1, each equally likely. `limit` is not 0.
    fn below(&mut self, limit: u64) -> u64;

    /// A number from 0 (excluded) to 1 (included).
    fn fraction(&mut self) -> f64;
}

/// A graph that does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Everybody is everybody's neighbour.
    Complete,
    /// A circle.
    Ring,
    /// Node 0 is everybody's neighbour.
    Star,
    /// A chain.
    Path,
}

/// Why a text is no shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no shape '{0}': say complete, ring, star or path")]
pub struct ShapeError(String);

impl FromStr for Shape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        match text {
            "complete" => Ok(Shape::Complete),
            "ring" => Ok(Shape::Ring),
            "star" => Ok(Shape::Star),
            "path" => Ok(Shape::Path),
            _ => Err(ShapeError(text.into())),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Shape::Complete => "complete",
            Shape::Ring => "ring",
            Shape::Star => "star",
            Shape::Path => "path",
        })
    }
}

impl Shape {
    fn edge_count(self, nodes: u32) -> u64 {
        match self {
            Shape::Complete => pairs(nodes),
            Shape::Ring | Shape::Star | Shape::Path => nodes.into(),
        }
    }

    fn edges(self, nodes: u32) -> Vec<(u32, u32)> {
        match self {
            Shape::Complete => {
                (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b))).collect()
            }
            Shape::Star => (1..nodes).map(|node| (0, node)).collect(),
            Shape::Path => (1..nodes).map(|node| (node - 1, node)).collect(),
            Shape::Ring => {
                let closes = (nodes > 2).then_some((0, nodes.saturating_sub(1)));
                Shape::Path.edges(nodes).into_iter().chain(closes).collect()
            }
        }
    }
}

/// A graph that is the same for ever.
pub fn unchanging(nodes: u32, shape: Shape) -> Result<EvolvingGraph, GraphError> {
    check_size(nodes.into(), shape.edge_count(nodes))?;
    let contacts = shape.edges(nodes).into_iter().map(|(a, b)| Contact::at(0, a, b)).collect();
    EvolvingGraph::numbered(nodes, contacts, 0, Some(0))
}

/// A ring, for ever, in which one link at a time is broken: link 0 first, then link 1, and so on.
/// At every instant it is connected.
pub fn broken_ring(nodes: u32) -> Result<EvolvingGraph, GraphError> {
    check_size(nodes.into(), 2 * u64::from(nodes))?;
    let links = Shape::Ring.edges(nodes);
    let count = links.len() as u64;
    let mut contacts = Vec::new();
    for (link, &(a, b)) in links.iter().enumerate() {
        let broken = link as u64;
        if broken > 0 {
            contacts.push(Contact::between(0, broken - 1, a, b));
        }
        if broken + 1 < count {
            contacts.push(Contact::between(broken + 1, count - 1, a, b));
        }
    }
    EvolvingGraph::numbered(nodes, contacts, count.max(1) - 1, Some(0))
}

/// Buses that go round: nodes 0 to `stops` - 1 are the stops, the others the buses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timetable {
    /// How many stops there are.
    pub stops: u32,
    /// How many buses there are.
    pub buses: u32,
    /// How many different stops each bus serves, one an instant, before it starts again.
    pub route: u32,
}

/// Every bus has a route of its own, drawn at random, and keeps to it for ever. Buses that are at
/// the same stop meet by way of it.
pub fn periodic(timetable: Timetable, draw: &mut impl Draw) -> Result<EvolvingGraph, GraphError> {
    let Timetable { stops, buses, route } = timetable;
    let route = route.clamp(1, stops.max(1));
    check_size(u64::from(stops) + u64::from(buses), u64::from(buses) * u64::from(route))?;
    let mut contacts = Vec::new();
    for bus in 0..buses {
        let mut served = BTreeSet::new();
        let mut instant = 0;
        while instant < u64::from(route) && stops > 0 {
            let stop = draw.below(stops.into()) as u32;
            if served.insert(stop) {
                contacts.push(Contact::at(instant, stop, stops + bus));
                instant += 1;
            }
        }
    }
    EvolvingGraph::numbered(stops + buses, contacts, u64::from(route) - 1, Some(0))
}

#[cfg(test)]
mod tests {
    use catraca_core::NodeId;

    use super::super::Reachability;
    use super::*;

    /// Counts upwards; enough where fairness does not matter.
    pub(super) struct Counter(pub(super) u64);

    impl Draw for Counter {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }

        fn fraction(&mut self) -> f64 {
            (self.below(1 << 30) + 1) as f64 / (1u64 << 30) as f64
        }
    }

    fn edges_at(graph: &EvolvingGraph, instant: u64) -> usize {
        graph.contacts().iter().filter(|contact| contact.is_at(instant)).count()
    }

    #[test]
    fn a_ring_with_one_broken_link_is_connected_at_every_instant_and_misses_each_link_once() {
        let graph = broken_ring(5).unwrap();
        for instant in 0..5 {
            assert_eq!(edges_at(&graph, instant), 4);
            let now = graph.since(instant).until(instant).unwrap();
            let reach = Reachability::of_all(&now, instant);
            assert_eq!(reach.missing(NodeId::all(5)), None, "at {instant}");
        }
        assert_eq!(graph.period(), Some(5));
        assert_eq!(broken_ring(2).unwrap().contacts(), [], "its only link is always broken");
    }

    #[test]
    fn shapes_have_their_edges() {
        let count = |shape, nodes| unchanging(nodes, shape).unwrap().contacts().len();
        assert_eq!(count(Shape::Complete, 5), 10);
        assert_eq!(
            [count(Shape::Ring, 5), count(Shape::Ring, 2), count(Shape::Ring, 1)],
            [5, 1, 0]
        );
        assert_eq!([count(Shape::Star, 5), count(Shape::Path, 5)], [4, 4]);
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_is_made() {
        let many = u32::MAX;
        let too_many = Err(GraphError::TooManyNodes);
        for shape in [Shape::Complete, Shape::Ring, Shape::Star, Shape::Path] {
            assert_eq!(unchanging(many, shape), too_many);
        }
        assert_eq!(unchanging(30_000, Shape::Complete), Err(GraphError::TooManyContacts));
        assert_eq!(broken_ring(many), too_many);
        let draw = &mut Counter(1);
        let buses = |stops, buses, route| Timetable { stops, buses, route };
        assert_eq!(periodic(buses(many, 1, 5), draw), too_many);
        assert_eq!(periodic(buses(1, many, 1), draw), too_many);
        let contacts = Err(GraphError::TooManyContacts);
        assert_eq!(periodic(buses(1_000, 100_000, 1_000), draw), contacts);
        let edges = |nodes, instants| EdgeMarkovian { nodes, instants, birth: 0.02, death: 0.5 };
        assert_eq!(edge_markovian(edges(many, 1), draw), too_many);
        assert_eq!(edge_markovian(edges(100_000, 1), draw), Err(GraphError::TooManySteps));
        let walk =
            |nodes, instants| Waypoints { nodes, instants, side: 1e6, range: 1.0, speed: 1.0 };
        assert_eq!(random_waypoint(walk(many, 1), draw), too_many);
        assert_eq!(random_waypoint(walk(2, u64::MAX), draw), Err(GraphError::TooLong));
        assert_eq!(random_waypoint(walk(2, 1 << 40), draw), Err(GraphError::TooManySteps));
    }

    #[test]
    fn what_turns_out_to_be_too_large_ends_there() {
        let draw = &mut Counter(1);
        let contacts = Err(GraphError::TooManyContacts);
        let edges = EdgeMarkovian { nodes: 5, instants: 1 << 40, birth: 0.5, death: 0.5 };
        assert_eq!(edge_markovian(edges, draw), contacts);
        let near = Waypoints { nodes: 10_000, instants: 1, side: 1.0, range: 2.0, speed: 1.0 };
        assert_eq!(random_waypoint(near, draw), contacts);
    }

    #[test]
    fn every_bus_serves_its_stops_one_after_the_other() {
        let timetable = Timetable { stops: 6, buses: 3, route: 4 };
        let graph = periodic(timetable, &mut Counter(1)).unwrap();
        assert_eq!((graph.nodes(), graph.period(), graph.contacts().len()), (9, Some(4), 12));
        for bus in 6..9 {
            let stops: BTreeSet<_> = graph
                .contacts()
                .iter()
                .filter(|contact| contact.b == NodeId(bus))
                .map(|contact| contact.a)
                .collect();
            assert_eq!(stops.len(), 4);
        }
    }

    #[test]
    fn edges_appear_and_vanish_as_often_as_they_should() {
        let chances = EdgeMarkovian { nodes: 40, instants: 2_000, birth: 0.02, death: 0.2 };
        let graph = edge_markovian(chances, &mut Counter(7)).unwrap();
        let lengths: u64 =
            graph.contacts().iter().map(|contact| contact.to - contact.from + 1).sum();
        let share = lengths as f64 / (780.0 * 2_000.0);
        assert!((share - 0.02 / 0.22).abs() < 0.004, "{share} of the edges are there");
        let mean = lengths as f64 / graph.contacts().len() as f64;
        assert!((mean - 5.0).abs() < 0.2, "an edge lasts {mean} instants");
    }

    #[test]
    fn walkers_are_neighbours_exactly_while_they_are_near() {
        let walk = Waypoints { nodes: 30, instants: 200, side: 100.0, range: 20.0, speed: 3.0 };
        let graph = random_waypoint(walk, &mut Counter(3)).unwrap();
        assert!(!graph.contacts().is_empty());
        // Nobody is near everybody, and the density is about that of a disc in a square.
        let mean = (0..200).map(|instant| edges_at(&graph, instant)).sum::<usize>() as f64 / 200.0;
        assert!((20.0..120.0).contains(&mean), "{mean} edges an instant");
        let everywhere = Waypoints { range: 150.0, ..walk };
        let graph = random_waypoint(everywhere, &mut Counter(3)).unwrap();
        assert_eq!(edges_at(&graph, 100), 30 * 29 / 2);
    }
}
