//! Which node can reach which, all pairs at once.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;

use catraca_core::NodeId;

use super::sweep::Sweep;
use super::{Contact, EvolvingGraph};

/// Nobody arrives.
const NEVER: u32 = u32::MAX;
/// The arrival is in the cycle.
const IN_CYCLE: u32 = u32::MAX - 1;
/// There is a way back after the arrival.
const BACK: u32 = u32::MAX - 2;

/// The pair whose foremost journey arrives last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Farthest {
    /// Where the journey begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// When it arrives.
    pub at: u64,
}

/// Which of some sources reach which nodes by journeys that begin at an instant or later.
pub struct Reachability {
    sources: Vec<NodeId>,
    sweep: Sweep,
    farthest: Option<Farthest>,
}

impl Reachability {
    /// Sweeps through the graph from the instant `from` on; on a cycle, until a lap brings nothing.
    pub fn new(graph: &EvolvingGraph, sources: Vec<NodeId>, from: u64) -> Self {
        Self::watched(&cut(graph, from), sources, &mut |_, _, _| {})
    }

    /// The same for every node as a source.
    pub fn of_all(graph: &EvolvingGraph, from: u64) -> Self {
        Self::new(graph, NodeId::all(graph.nodes()).collect(), from)
    }

    /// For ever: which node reaches which, however late the journey starts. None for a finite graph.
    pub fn for_ever(graph: &EvolvingGraph, sources: Vec<NodeId>) -> Option<Self> {
        Some(Self::watched(&graph.cycle_only()?, sources, &mut |_, _, _| {}))
    }

    /// `newly` is called with every arrival: the node, the place of the source, the instant.
    fn watched(
        graph: &EvolvingGraph,
        sources: Vec<NodeId>,
        newly: &mut impl FnMut(NodeId, usize, u64),
    ) -> Self {
        let mut sweep = Sweep::from_sources(graph.nodes(), &sources);
        let mut farthest: Option<Farthest> = None;
        let mut hear = |to: NodeId, place: usize, at: u64| {
            if farthest.is_none_or(|known| known.at < at) {
                farthest = Some(Farthest { from: sources[place], to, at });
            }
            newly(to, place, at);
        };
        sweep.run(graph.prefix(), &mut hear);
        let mut later = 0;
        while sweep.run(graph.lap(), &mut |node, place, at| hear(node, place, at + later)) {
            later += graph.period().unwrap_or(0);
        }
        sweep.forget_neighbours();
        Reachability { sources, sweep, farthest }
    }

    /// The sources.
    pub fn sources(&self) -> &[NodeId] {
        &self.sources
    }

    /// Whether the source at `place` reaches `node`.
    pub fn reaches(&self, place: usize, node: NodeId) -> bool {
        self.sweep.has(node, place)
    }

    /// How many of the sources reach `node`; one reaches itself.
    pub fn count(&self, node: NodeId) -> usize {
        self.sweep.count(node)
    }

    /// The first pair of a source and one of `nodes` without a journey.
    pub fn missing(&self, nodes: impl Iterator<Item = NodeId>) -> Option<(NodeId, NodeId)> {
        let mut unreached = nodes.filter(|&node| self.count(node) < self.sources.len());
        let node = unreached.next()?;
        let place = (0..self.sources.len()).find(|&place| !self.reaches(place, node))?;
        Some((self.sources[place], node))
    }

    /// Of all pairs that are connected the one whose foremost journey arrives last. The time that
    /// it takes is the temporal diameter, if all pairs are connected.
    pub fn farthest(&self) -> Option<Farthest> {
        self.farthest
    }
}

/// Round trips: out to a node, and back again after the arrival.
pub(super) struct RoundTrips {
    /// For each source that lacks one, the first node that it cannot come back from.
    pub(super) missing: Vec<(NodeId, NodeId)>,
}

impl RoundTrips {
    /// Decides for every source and every node. `for_ever` says which of all nodes reaches which on
    /// the cycle.
    ///
    /// One sweep notes when each source arrives where; a second, backwards in time, finds the
    /// latest departure from each node back to each source.
    pub(super) fn new(
        graph: &EvolvingGraph,
        sources: Vec<NodeId>,
        from: u64,
        for_ever: Option<&Reachability>,
    ) -> Self {
        let graph = cut(graph, from);
        let nodes = graph.nodes();
        let mut trips = Trips::new(&graph, sources.len());
        let mut rank = 0;
        let prefix_end = graph.cycle().unwrap_or(u64::MAX);
        let reach = Reachability::watched(&graph, sources, &mut |node, place, at| {
            while trips.instants.get(rank).is_some_and(|&instant| instant < at) {
                rank += 1;
            }
            *trips.arrival(node, place) = if at < prefix_end { rank as u32 } else { IN_CYCLE };
        });
        let mut back = Sweep::from_sources(nodes, &reach.sources);
        if let Some(for_ever) = for_ever {
            back.add(|node, place| for_ever.reaches(node.index(), reach.sources[place]));
            for node in NodeId::all(nodes) {
                back.each(node, |place| trips.return_at_any_time(node, place));
            }
        }
        let end = graph.cycle().unwrap_or(graph.last() + 1);
        let mirrored = mirrored(graph.prefix(), end);
        back.run(&mirrored, &mut |node, place, at| trips.return_until(node, place, end - at));
        RoundTrips { missing: trips.missing(&reach.sources) }
    }
}

/// For each source and node the arrival, until a way back after it is known.
struct Trips {
    nodes: usize,
    /// The rank of an arrival among the instants of the prefix at which contacts begin.
    arrivals: Vec<u32>,
    instants: Vec<u64>,
}

impl Trips {
    fn new(graph: &EvolvingGraph, sources: usize) -> Self {
        let nodes = graph.nodes() as usize;
        let mut instants: Vec<u64> = graph.prefix().iter().map(|contact| contact.from).collect();
        instants.dedup();
        Trips { nodes, arrivals: vec![NEVER; nodes * sources], instants }
    }

    fn arrival(&mut self, node: NodeId, place: usize) -> &mut u32 {
        &mut self.arrivals[place * self.nodes + node.index()]
    }

    /// However late one arrives at `node`, there is a way back.
    fn return_at_any_time(&mut self, node: NodeId, place: usize) {
        let arrival = self.arrival(node, place);
        if *arrival != NEVER {
            *arrival = BACK;
        }
    }

    /// There is a way back from `node` that leaves at `last`, and none that leaves later.
    fn return_until(&mut self, node: NodeId, place: usize, last: u64) {
        let rank = *self.arrival(node, place) as usize;
        if self.instants.get(rank).is_some_and(|&arrival| arrival <= last) {
            *self.arrival(node, place) = BACK;
        }
    }

    fn missing(&self, sources: &[NodeId]) -> Vec<(NodeId, NodeId)> {
        let trips = self.arrivals.chunks(self.nodes).zip(sources);
        trips
            .filter_map(|(row, &source)| {
                let lacks = |node: &NodeId| *node != source && row[node.index()] != BACK;
                NodeId::all(self.nodes as u32).find(lacks).map(|node| (source, node))
            })
            .collect()
    }
}

/// The graph from the instant `from` on.
fn cut(graph: &EvolvingGraph, from: u64) -> Cow<'_, EvolvingGraph> {
    if from == 0 { Cow::Borrowed(graph) } else { Cow::Owned(graph.since(from)) }
}

/// The same contacts as seen backwards from `end`.
fn mirrored(contacts: &[Contact], end: u64) -> Vec<Contact> {
    let mut contacts: Vec<Contact> = contacts
        .iter()
        .map(|contact| Contact { from: end - contact.to, to: end - contact.from, ..*contact })
        .collect();
    contacts.sort_unstable();
    contacts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Journeys;
    use super::*;

    fn graphs() -> impl Strategy<Value = EvolvingGraph> {
        let contact = (0u64..10, 0u64..4, 0u32..6, 1u32..6).prop_map(|(from, length, a, step)| {
            Contact::between(from, (from + length).min(9), a, (a + step) % 6)
        });
        (prop::collection::vec(contact, 0..18), prop::option::of(0u64..10))
            .prop_map(|(contacts, cycle)| EvolvingGraph::numbered(6, contacts, 9, cycle).unwrap())
    }

    proptest! {
        #[test]
        fn all_pairs_at_once_are_the_same_as_one_by_one(graph in graphs(), from in 0u64..14) {
            let journeys = Journeys::new(&graph);
            let reach = Reachability::of_all(&graph, from);
            let mut latest = None;
            for source in NodeId::all(6) {
                let arrivals = journeys.foremost(source, from);
                for target in NodeId::all(6) {
                    prop_assert_eq!(
                        reach.reaches(source.index(), target),
                        arrivals.at(target).is_some()
                    );
                    if target != source {
                        latest = latest.max(arrivals.at(target));
                    }
                }
            }
            prop_assert_eq!(reach.farthest().map(|farthest| farthest.at), latest);
        }

        #[test]
        fn a_round_trip_is_a_journey_out_and_one_back_after_it(
            graph in graphs(),
            from in 0u64..14,
        ) {
            let journeys = Journeys::new(&graph);
            let all: Vec<NodeId> = NodeId::all(6).collect();
            let for_ever = Reachability::for_ever(&graph, all.clone());
            let trips = RoundTrips::new(&graph, all, from, for_ever.as_ref());
            let expected: Vec<(NodeId, NodeId)> = NodeId::all(6)
                .filter_map(|source| {
                    let arrivals = journeys.foremost(source, from);
                    let comes_back = |&node: &NodeId| {
                        arrivals.at(node).is_some_and(|at| {
                            journeys.foremost(node, at).at(source).is_some()
                        })
                    };
                    NodeId::all(6).find(|node| !comes_back(node)).map(|node| (source, node))
                })
                .collect();
            prop_assert_eq!(trips.missing, expected);
        }
    }

    #[test]
    fn for_ever_counts_only_what_the_cycle_brings() {
        let contacts = vec![Contact::at(0, 0, 1), Contact::at(1, 1, 2)];
        let graph = EvolvingGraph::numbered(3, contacts.clone(), 1, Some(1)).unwrap();
        assert!(Reachability::of_all(&graph, 0).reaches(0, NodeId(2)));
        let all: Vec<NodeId> = NodeId::all(3).collect();
        let for_ever = Reachability::for_ever(&graph, all.clone()).unwrap();
        assert!(!for_ever.reaches(0, NodeId(2)) && for_ever.reaches(2, NodeId(1)));
        assert_eq!(for_ever.missing(all.iter().copied()), Some((NodeId(1), NodeId(0))));
        let finite = EvolvingGraph::numbered(3, contacts, 1, None).unwrap();
        assert!(Reachability::for_ever(&finite, all).is_none());
    }
}
