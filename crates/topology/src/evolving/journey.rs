//! Journeys: paths over time.

use alloc::vec;
use alloc::vec::Vec;

use catraca_core::NodeId;

use super::{Contact, EvolvingGraph};

/// One edge of a journey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hop {
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// The instant at which the two are neighbours.
    pub at: u64,
}

/// A path over time: the instants of its hops never decrease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Journey {
    /// The hops, at least one.
    pub hops: Vec<Hop>,
}

impl Journey {
    /// The instant of the first hop.
    pub fn departure(&self) -> u64 {
        self.hops.first().map_or(0, |hop| hop.at)
    }

    /// The instant of the last hop.
    pub fn arrival(&self) -> u64 {
        self.hops.last().map_or(0, |hop| hop.at)
    }

    /// How many instants pass from the first hop to the last.
    pub fn duration(&self) -> u64 {
        self.arrival() - self.departure()
    }
}

/// When each node is reached from one source, at the earliest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrivals {
    source: NodeId,
    at: Vec<Option<u64>>,
    /// The hop by which each node is reached.
    by: Vec<Option<Hop>>,
}

impl Arrivals {
    fn new(nodes: u32, source: NodeId, from: u64) -> Self {
        let mut at = vec![None; nodes as usize];
        at[source.index()] = Some(from);
        Arrivals { source, at, by: vec![None; nodes as usize] }
    }

    /// When `node` is reached.
    pub fn at(&self, node: NodeId) -> Option<u64> {
        self.at[node.index()]
    }

    /// How many nodes are reached, the source included.
    pub fn count(&self) -> usize {
        self.at.iter().flatten().count()
    }

    /// The foremost journey to `node`; none to the source itself.
    pub fn journey(&self, node: NodeId) -> Option<Journey> {
        let mut hops = Vec::new();
        let mut here = node;
        while here != self.source {
            let hop = self.by[here.index()]?;
            hops.push(hop);
            here = hop.from;
        }
        hops.reverse();
        (!hops.is_empty()).then_some(Journey { hops })
    }
}

/// Finds journeys in one graph.
#[derive(Clone, Debug)]
pub struct Journeys<'g> {
    graph: &'g EvolvingGraph,
    /// Where the contacts of each node begin in `incident`.
    offsets: Vec<u32>,
    /// The contacts of node 0 in the order of their first instants, then those of node 1, ...
    incident: Vec<u32>,
}

impl<'g> Journeys<'g> {
    /// Sorts the contacts by node, once for many questions.
    pub fn new(graph: &'g EvolvingGraph) -> Self {
        let mut offsets = vec![0u32; graph.nodes() as usize + 1];
        let ends = |contact: &Contact| [contact.a, contact.b];
        for node in graph.contacts().iter().flat_map(ends) {
            offsets[node.index() + 1] += 1;
        }
        for index in 1..offsets.len() {
            offsets[index] += offsets[index - 1];
        }
        let mut free = offsets.clone();
        let mut incident = vec![0; graph.contacts().len() * 2];
        for (index, contact) in graph.contacts().iter().enumerate() {
            for node in ends(contact) {
                incident[free[node.index()] as usize] = index as u32;
                free[node.index()] += 1;
            }
        }
        Journeys { graph, offsets, incident }
    }

    pub(super) fn graph(&self) -> &'g EvolvingGraph {
        self.graph
    }

    fn contacts_of(&self, node: NodeId) -> impl Iterator<Item = &'g Contact> + '_ {
        let range = self.offsets[node.index()] as usize..self.offsets[node.index() + 1] as usize;
        self.incident[range].iter().map(|&index| &self.graph.contacts()[index as usize])
    }

    /// When everybody is reached from `source` by journeys that begin at `from` or later. Takes
    /// time in proportion to the contacts; on a cycle, for each lap that still reaches a new node.
    pub fn foremost(&self, source: NodeId, from: u64) -> Arrivals {
        self.foremost_until(source, from, |_| false)
    }

    /// The journey from `source` to `target` that arrives first.
    pub fn foremost_to(&self, source: NodeId, target: NodeId, from: u64) -> Option<Journey> {
        let arrivals = self.foremost_until(source, from, |reached| reached == target);
        arrivals.journey(target)
    }

    fn foremost_until(
        &self,
        source: NodeId,
        from: u64,
        is_enough: impl Fn(NodeId) -> bool,
    ) -> Arrivals {
        let graph = self.graph;
        let mut found = Arrivals::new(graph.nodes(), source, from);
        let mut search =
            Search { journeys: self, found: &mut found, left: graph.nodes() - 1, ends: false };
        search.spread(source, from, &is_enough);
        let begins = graph.local(from);
        let lap_began = from - begins;
        let in_cycle = graph.cycle().is_some_and(|cycle| from >= cycle);
        let first = if in_cycle { graph.lap() } else { graph.prefix() };
        // Contacts that had begun already were taken when their ends were reached.
        let later = first.partition_point(|contact| contact.from <= begins);
        search.scan(&first[later..], lap_began, &is_enough);
        if let (Some(cycle), Some(period)) = (graph.cycle(), graph.period()) {
            let mut offset = if in_cycle { lap_began + period } else { 0 };
            debug_assert!(cycle + offset > from || !in_cycle);
            while !search.is_over() {
                let left = search.left;
                search.scan(graph.lap(), offset, &is_enough);
                if search.left == left {
                    break; // Another lap would be the same.
                }
                offset += period;
            }
        }
        found
    }

    /// The journey from `source` to `target` with the fewest hops; of those one that arrives first.
    pub fn shortest(&self, source: NodeId, target: NodeId, from: u64) -> Option<Journey> {
        struct Step {
            node: NodeId,
            at: u64,
            by: Option<(usize, Hop)>,
        }
        let mut steps = vec![Step { node: source, at: from, by: None }];
        // By node, the earliest arrival with so many hops or fewer, and the step that made it.
        let mut best: Vec<Option<(u64, usize)>> = vec![None; self.graph.nodes() as usize];
        best[source.index()] = Some((from, 0));
        let mut layer = 0..1;
        while !layer.is_empty() {
            let next = steps.len();
            for index in layer {
                let Step { node, at, .. } = steps[index];
                // A better way to this node may have been found in the same layer.
                if best[node.index()].is_some_and(|(_, by)| by != index && by < next) {
                    continue;
                }
                for contact in self.contacts_of(node) {
                    let Some(when) = self.graph.next(contact, at) else { continue };
                    let to = contact.other(node);
                    if best[to.index()].is_none_or(|(known, _)| when < known) {
                        best[to.index()] = Some((when, steps.len()));
                        let by = Some((index, Hop { from: node, to, at: when }));
                        steps.push(Step { node: to, at: when, by });
                    }
                }
            }
            layer = next..steps.len();
            if target != source && best[target.index()].is_some() {
                break;
            }
        }
        let (_, mut step) = best[target.index()]?;
        let mut hops = Vec::new();
        while let Some((before, hop)) = steps[step].by {
            hops.push(hop);
            step = before;
        }
        hops.reverse();
        (!hops.is_empty()).then_some(Journey { hops })
    }
}

/// A search for foremost journeys on its way.
struct Search<'a, 'g> {
    journeys: &'a Journeys<'g>,
    found: &'a mut Arrivals,
    /// Nodes that are not reached yet.
    left: u32,
    /// Whether enough is known.
    ends: bool,
}

impl Search<'_, '_> {
    fn is_over(&self) -> bool {
        self.ends || self.left == 0
    }

    /// Goes through contacts in the order of their first instants, `offset` later.
    fn scan(&mut self, contacts: &[Contact], offset: u64, is_enough: &impl Fn(NodeId) -> bool) {
        for contact in contacts {
            if self.is_over() {
                return;
            }
            let reached = |node: NodeId| self.found.at[node.index()].is_some();
            let (from, to) = match (reached(contact.a), reached(contact.b)) {
                (true, false) => (contact.a, contact.b),
                (false, true) => (contact.b, contact.a),
                _ => continue,
            };
            let at = contact.from + offset;
            self.reach(Hop { from, to, at }, is_enough);
            self.spread(to, at, is_enough);
        }
    }

    fn reach(&mut self, hop: Hop, is_enough: &impl Fn(NodeId) -> bool) {
        self.found.at[hop.to.index()] = Some(hop.at);
        self.found.by[hop.to.index()] = Some(hop);
        self.left -= 1;
        self.ends |= is_enough(hop.to);
    }

    /// From a node that is reached at `at` goes on within the same instant.
    fn spread(&mut self, node: NodeId, at: u64, is_enough: &impl Fn(NodeId) -> bool) {
        let (journeys, local) = (self.journeys, self.journeys.graph.local(at));
        let mut waiting = vec![node];
        while let Some(from) = waiting.pop() {
            let begun = journeys.contacts_of(from).take_while(|contact| contact.from <= local);
            for contact in begun.filter(|contact| contact.to >= local) {
                let to = contact.other(from);
                if self.found.at[to.index()].is_none() {
                    self.reach(Hop { from, to, at }, is_enough);
                    waiting.push(to);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::GraphError;
    use super::*;

    fn graph(contacts: &[(u64, u32, u32)], last: u64, cycle: Option<u64>) -> EvolvingGraph {
        let nodes = contacts.iter().map(|&(_, a, b)| a.max(b) + 1).max().unwrap_or(1);
        let contacts = contacts.iter().map(|&(at, a, b)| Contact::at(at, a, b)).collect();
        EvolvingGraph::numbered(nodes, contacts, last, cycle).unwrap()
    }

    fn hops(journey: Option<Journey>) -> Vec<(u32, u32, u64)> {
        let hops = journey.map_or(Vec::new(), |journey| journey.hops);
        hops.into_iter().map(|hop| (hop.from.0, hop.to.0, hop.at)).collect()
    }

    #[test]
    fn the_foremost_the_shortest_and_the_fastest_journey_differ() {
        // By 1 and 2 early but slowly; straight and late; by 1 late and at once.
        let graph =
            graph(&[(1, 0, 1), (3, 1, 2), (4, 2, 3), (9, 0, 3), (6, 0, 1), (6, 1, 3)], 9, None);
        let journeys = Journeys::new(&graph);
        let (from, to) = (NodeId(0), NodeId(3));
        assert_eq!(hops(journeys.foremost_to(from, to, 0)), [(0, 1, 1), (1, 2, 3), (2, 3, 4)]);
        assert_eq!(hops(journeys.shortest(from, to, 0)), [(0, 3, 9)]);
        let fastest = journeys.fastest(from, to, 0).unwrap().unwrap();
        assert_eq!((fastest.departure(), fastest.duration()), (6, 0));
    }

    #[test]
    fn several_hops_may_be_made_in_one_instant_whatever_the_order_of_the_file() {
        let graph = graph(&[(5, 2, 3), (5, 1, 2), (5, 0, 1)], 5, None);
        let journeys = Journeys::new(&graph);
        let journey = journeys.foremost_to(NodeId(0), NodeId(3), 0);
        assert_eq!(hops(journey), [(0, 1, 5), (1, 2, 5), (2, 3, 5)]);
        assert_eq!(hops(journeys.foremost_to(NodeId(0), NodeId(3), 6)), []);
    }

    #[test]
    fn time_runs_one_way() {
        let graph = graph(&[(1, 0, 1), (5, 0, 2)], 5, None);
        let journeys = Journeys::new(&graph);
        assert_eq!(hops(journeys.foremost_to(NodeId(1), NodeId(2), 0)), [(1, 0, 1), (0, 2, 5)]);
        assert_eq!(journeys.foremost_to(NodeId(2), NodeId(1), 0), None);
        assert_eq!(journeys.shortest(NodeId(2), NodeId(1), 0), None);
        assert_eq!(journeys.fastest(NodeId(2), NodeId(1), 0), Ok(None));
    }

    #[test]
    fn on_a_cycle_a_journey_may_take_several_laps() {
        let graph = graph(&[(0, 2, 3), (1, 1, 2), (2, 0, 1)], 2, Some(0));
        let journeys = Journeys::new(&graph);
        let expected = [(0, 1, 2), (1, 2, 4), (2, 3, 6)];
        assert_eq!(hops(journeys.foremost_to(NodeId(0), NodeId(3), 0)), expected);
        assert_eq!(hops(journeys.shortest(NodeId(0), NodeId(3), 0)), expected);
        let fastest = journeys.fastest(NodeId(0), NodeId(3), 0).unwrap();
        assert_eq!(fastest.map(|journey| journey.duration()), Some(4));
        let later = journeys.foremost_to(NodeId(0), NodeId(3), 100);
        assert_eq!(hops(later), [(0, 1, 101), (1, 2, 103), (2, 3, 105)]);
    }

    #[test]
    fn a_fastest_journey_over_too_many_contacts_is_not_sought() {
        // A chain that is met from its far end on: every hop takes a lap.
        let nodes = 5_000;
        let contacts = (1..nodes).map(|node| Contact::at((nodes - node).into(), node - 1, node));
        let last = u64::from(nodes) - 1;
        let graph = EvolvingGraph::numbered(nodes, contacts.collect(), last, Some(0)).unwrap();
        let found = Journeys::new(&graph).fastest(NodeId(0), NodeId(nodes - 1), 0);
        assert_eq!(found, Err(GraphError::TooManyContacts));
    }

    /// Arrivals by the definition: spread through the edges of every instant, one after the other.
    fn by_definition(
        graph: &EvolvingGraph,
        source: NodeId,
        from: u64,
        until: u64,
    ) -> Vec<Option<u64>> {
        let mut at = vec![None; graph.nodes() as usize];
        at[source.index()] = Some(from);
        for instant in from..=until {
            let local = graph.local(instant);
            for _ in 0..graph.nodes() {
                for contact in graph.contacts().iter().filter(|contact| contact.is_at(local)) {
                    for (here, there) in [(contact.a, contact.b), (contact.b, contact.a)] {
                        if at[here.index()].is_some() && at[there.index()].is_none() {
                            at[there.index()] = Some(instant);
                        }
                    }
                }
            }
        }
        at
    }

    fn is_valid(graph: &EvolvingGraph, journey: &Journey) -> bool {
        let exists = |hop: &Hop| {
            let (pair, local) = (Contact::at(0, hop.from.0, hop.to.0), graph.local(hop.at));
            let is_pair = |contact: &&Contact| (contact.a, contact.b) == (pair.a, pair.b);
            graph.contacts().iter().filter(is_pair).any(|contact| contact.is_at(local))
        };
        let follows = |pair: &[Hop]| pair[0].to == pair[1].from && pair[0].at <= pair[1].at;
        journey.hops.iter().all(exists) && journey.hops.windows(2).all(follows)
    }

    fn graphs() -> impl Strategy<Value = EvolvingGraph> {
        let contact = (0u64..10, 0u64..4, 0u32..5, 1u32..5).prop_map(|(from, length, a, step)| {
            Contact::between(from, (from + length).min(9), a, (a + step) % 5)
        });
        (prop::collection::vec(contact, 0..14), prop::option::of(0u64..10))
            .prop_map(|(contacts, cycle)| EvolvingGraph::numbered(5, contacts, 9, cycle).unwrap())
    }

    proptest! {
        #[test]
        fn journeys_are_what_their_definitions_say(graph in graphs(), from in 0u64..16) {
            let journeys = Journeys::new(&graph);
            let until = if graph.cycle().is_some() { from + 70 } else { 9 };
            for source in NodeId::all(5) {
                let expected = by_definition(&graph, source, from, until);
                let found = journeys.foremost(source, from);
                for target in NodeId::all(5).filter(|&target| target != source) {
                    let arrival = expected[target.index()];
                    prop_assert_eq!(found.at(target), arrival);
                    let foremost = found.journey(target);
                    prop_assert_eq!(foremost.as_ref().map(Journey::arrival), arrival);
                    let shortest = journeys.shortest(source, target, from);
                    let fastest = journeys.fastest(source, target, from).unwrap();
                    prop_assert_eq!(shortest.is_some(), arrival.is_some());
                    prop_assert_eq!(fastest.is_some(), arrival.is_some());
                    let (Some(foremost), Some(shortest), Some(fastest)) =
                        (foremost, shortest, fastest) else { continue };
                    for journey in [&foremost, &shortest, &fastest] {
                        prop_assert!(is_valid(&graph, journey), "{journey:?}");
                        prop_assert!(journey.departure() >= from);
                        prop_assert_eq!(journey.hops.first().unwrap().from, source);
                        prop_assert_eq!(journey.hops.last().unwrap().to, target);
                        prop_assert!(shortest.hops.len() <= journey.hops.len());
                        prop_assert!(fastest.duration() <= journey.duration());
                    }
                    let quickest = (from..from + 30)
                        .filter_map(|leave| {
                            let at = by_definition(&graph, source, leave, until + 30);
                            at[target.index()].map(|at| at - leave)
                        })
                        .min();
                    prop_assert_eq!(Some(fastest.duration()), quickest);
                }
            }
        }
    }
}
