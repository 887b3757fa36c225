//! What a small graph allows, worked out once for all schedules.

use catraca_core::NodeId;
use catraca_topology::evolving::{EvolvingGraph, Journeys, Reachability};

/// The earliest arrivals of a small graph.
pub(super) struct Facts {
    nodes: usize,
    /// By instant of departure, source and target.
    arrivals: Vec<Option<u64>>,
    for_ever: Option<Reachability>,
}

impl Facts {
    pub(super) fn new(graph: &EvolvingGraph) -> Self {
        let nodes = graph.nodes() as usize;
        if graph.cycle().is_some() {
            let all = NodeId::all(graph.nodes()).collect();
            let for_ever = Reachability::for_ever(graph, all);
            return Facts { nodes, arrivals: Vec::new(), for_ever };
        }
        let journeys = Journeys::new(graph);
        let mut arrivals = Vec::new();
        for from in 0..=graph.last() {
            for source in NodeId::all(graph.nodes()) {
                let found = journeys.foremost(source, from);
                arrivals.extend(NodeId::all(graph.nodes()).map(|target| found.at(target)));
            }
        }
        Facts { nodes, arrivals, for_ever: None }
    }

    fn arrival(&self, from: u64, source: NodeId, target: NodeId) -> Option<u64> {
        let row = from as usize * self.nodes + source.index();
        self.arrivals[row * self.nodes + target.index()]
    }

    pub(super) fn all(&self) -> impl Iterator<Item = NodeId> + Clone + use<> {
        NodeId::all(self.nodes as u32)
    }

    /// Whether there is a journey from one to the other.
    pub(super) fn reaches(&self, source: NodeId, target: NodeId) -> bool {
        self.arrival(0, source, target).is_some()
    }

    /// C1.
    pub(super) fn has_journeys_both_ways(&self) -> bool {
        self.all().all(|one| self.all().all(|other| self.reaches(one, other)))
    }

    /// C3, among `parties`.
    pub(super) fn has_journeys_one_way(&self, parties: &[NodeId]) -> bool {
        parties.iter().all(|&one| {
            parties.iter().all(|&other| self.reaches(one, other) || self.reaches(other, one))
        })
    }

    /// Whether a node that asks at `from` has a journey to everybody and one back after it.
    pub(super) fn has_round_trips(&self, requester: NodeId, from: u64) -> bool {
        self.all().all(|node| {
            let out = self.arrival(from, requester, node);
            out.is_some_and(|at| self.arrival(at, node, requester).is_some())
        })
    }

    /// C2, or C4 among `parties`.
    pub(super) fn is_connected_for_ever(
        &self,
        parties: impl Iterator<Item = NodeId> + Clone,
    ) -> bool {
        self.for_ever.as_ref().is_some_and(|reach| {
            parties
                .clone()
                .all(|one| parties.clone().all(|other| reach.reaches(one.index(), other)))
        })
    }
}
