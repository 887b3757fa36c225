//! The contacts of a graph as time goes by, laps and all.

use catraca_core::NodeId;
use catraca_topology::evolving::{Contact, EvolvingGraph};

/// Where a run is in its graph.
#[derive(Debug)]
pub(super) struct Timeline<'g> {
    graph: &'g EvolvingGraph,
    /// The contacts that are still to begin, in this lap.
    coming: &'g [Contact],
    is_in_cycle: bool,
    /// How much later than in the first lap everything happens.
    offset: u64,
    /// The contacts of the present instant, and whether a node has learned something by them.
    present: Vec<(Contact, bool)>,
}

impl<'g> Timeline<'g> {
    pub(super) fn new(graph: &'g EvolvingGraph) -> Self {
        let mut timeline = Timeline {
            graph,
            coming: graph.prefix(),
            is_in_cycle: false,
            offset: 0,
            present: Vec::new(),
        };
        timeline.turn();
        timeline
    }

    /// Begins the cycle, or its next lap, if this one is over.
    fn turn(&mut self) {
        let Some(period) = self.graph.period().filter(|_| self.coming.is_empty()) else { return };
        if self.is_in_cycle {
            self.offset += period;
        }
        self.is_in_cycle = true;
        self.coming = self.graph.lap();
    }

    /// When the next contact begins.
    pub(super) fn next(&self) -> Option<u64> {
        self.coming.first().map(|contact| contact.from + self.offset)
    }

    /// Goes to the instant `now`; returns how many contacts begin.
    pub(super) fn advance(&mut self, now: u64) -> u64 {
        self.present.retain(|(contact, _)| contact.to >= now);
        let mut begun = 0;
        while let Some(&contact) = self.coming.first()
            && contact.from + self.offset <= now
        {
            let (from, to) = (contact.from + self.offset, contact.to + self.offset);
            if to >= now {
                self.present.push((Contact { from, to, ..contact }, false));
            }
            begun += 1;
            self.coming = &self.coming[1..];
            self.turn();
        }
        begun
    }

    /// Passes over so many whole laps of the cycle, in which nothing happens but contacts. Returns
    /// how many instants there are at which some of them begin, and how many begin.
    pub(super) fn skip(&mut self, laps: u64) -> (u64, u64) {
        let lap = self.graph.lap();
        let later = laps * self.graph.period().unwrap_or(0);
        self.offset += later;
        for (contact, _) in &mut self.present {
            contact.from += later;
            contact.to += later;
        }
        let instants = lap.chunk_by(|one, next| one.from == next.from).count();
        (laps * instants as u64, laps * lap.len() as u64)
    }

    /// Who are neighbours now.
    pub(super) fn edges(&self) -> impl Iterator<Item = (NodeId, NodeId)> + Clone + '_ {
        self.present.iter().map(|(contact, _)| (contact.a, contact.b))
    }

    /// Notes that every node for which `has_learned` is true has learned something at this instant;
    /// returns how many contacts were of no use before.
    pub(super) fn used(&mut self, has_learned: impl Fn(NodeId) -> bool) -> u64 {
        let mut newly = 0;
        for (contact, is_used) in &mut self.present {
            if !*is_used && has_learned(contact.a) {
                *is_used = true;
                newly += 1;
            }
        }
        newly
    }
}
