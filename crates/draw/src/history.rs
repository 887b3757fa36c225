//! What a trace says about messages, waiting and being inside, before any of it has a place.

use std::collections::{BTreeMap, BTreeSet};

use catraca_core::{Claim, Fence, Input, NodeId, Phase, ResourceId};
use catraca_trace::{Event, Outcome, Payload, SendId, Step, Trace};

use crate::picture::DrawError;

/// Everything that a space-time diagram shows.
#[derive(Debug, Default)]
pub(crate) struct History<'a> {
    /// In the order of sending.
    pub(crate) flights: Vec<Flight<'a>>,
    pub(crate) stays: Vec<Stay>,
    pub(crate) overlaps: Vec<Overlap>,
    pub(crate) crashes: BTreeMap<NodeId, u64>,
    pub(crate) notes: Vec<Note>,
    /// The time of every event that can be seen, in order.
    pub(crate) times: Vec<u64>,
    /// How many may be inside at once.
    places: usize,
    /// By node, its stay that has not ended.
    open: BTreeMap<NodeId, usize>,
    by_id: BTreeMap<SendId, usize>,
}

/// A message.
#[derive(Debug)]
pub(crate) struct Flight<'a> {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) sent: u64,
    pub(crate) delivery: Delivery,
    pub(crate) message: &'a Payload,
}

/// Whether a message was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Delivered(u64),
    Lost(u64),
    InFlight,
}

/// A time for which a node waits or is inside.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) node: NodeId,
    pub(crate) phase: Phase,
    /// `None`: since before the run.
    pub(crate) from: Option<u64>,
    /// `None`: beyond the end of the trace.
    pub(crate) to: Option<u64>,
    /// Unknown for a node that is inside before the run.
    pub(crate) fence: Option<Fence>,
    pub(crate) claim: Claim,
}

/// A time for which more nodes are inside than may be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    pub(crate) nodes: BTreeSet<NodeId>,
    pub(crate) from: Option<u64>,
    pub(crate) to: Option<u64>,
}

/// Something else that a node sees.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) node: NodeId,
    pub(crate) at: u64,
    pub(crate) text: String,
    pub(crate) is_anomaly: bool,
}

impl Stay {
    /// Whether it shows: a wait that takes no time does not, being inside always does.
    pub(crate) fn is_visible(&self) -> bool {
        self.phase == Phase::Inside || self.from != self.to
    }
}

impl<'a> History<'a> {
    pub(crate) fn of(trace: &'a Trace) -> Result<Self, DrawError> {
        let spec = &trace.header.spec;
        let mut history = History { places: spec.capacity() as usize, ..History::default() };
        for (node, claim) in spec.start.holders() {
            history.begin(node, Phase::Inside, None, claim.clone());
        }
        history.update_overlap(None);
        for (index, event) in trace.events.iter().enumerate() {
            let known = |node: NodeId| match node.0 < spec.nodes {
                true => Ok(node),
                false => {
                    let nodes = spec.nodes;
                    Err(DrawError::UnknownNode { event: index + 1, node: node.0, nodes })
                }
            };
            if is_visible(event) {
                history.times.push(event.at());
            }
            match event {
                Event::Step(step) => history.step(step, known)?,
                Event::Crash { at, node } => {
                    history.crashes.entry(known(*node)?).or_insert(*at);
                    history.end(*node, *at);
                }
                Event::Lost { at, id } => history.arrive(*id, Delivery::Lost(*at)),
            }
            history.update_overlap(Some(event.at()));
        }
        Ok(history)
    }

    fn step(
        &mut self,
        step: &'a Step,
        known: impl Fn(NodeId) -> Result<NodeId, DrawError>,
    ) -> Result<(), DrawError> {
        let (at, node) = (step.at, known(step.node)?);
        if let Some(id) = step.delivers {
            self.arrive(id, Delivery::Delivered(at));
        }
        match &step.input {
            Input::Request(claim) => self.begin(node, Phase::Waiting, Some(at), claim.clone()),
            Input::Release => self.end(node, at),
            Input::Timer(tag) => self.note(step, format!("timer {}", tag.0), false),
            Input::Suspect(other) => self.note(step, format!("suspects {other}"), false),
            Input::Trust(other) => self.note(step, format!("trusts {other}"), false),
            Input::Start | Input::Message { .. } => {}
        }
        for outcome in &step.outcomes {
            match outcome {
                Outcome::Send { id, to, message } => {
                    self.by_id.insert(*id, self.flights.len());
                    let (to, delivery) = (known(*to)?, Delivery::InFlight);
                    self.flights.push(Flight { from: node, to, sent: at, delivery, message });
                }
                Outcome::Granted(fence) => self.enter(node, at, *fence),
                Outcome::Anomaly(what) => self.note(step, what.clone(), true),
                Outcome::SetTimer { .. } | Outcome::CancelTimer(_) => {}
            }
        }
        Ok(())
    }

    fn arrive(&mut self, id: SendId, delivery: Delivery) {
        if let Some(&flight) = self.by_id.get(&id) {
            self.flights[flight].delivery = delivery;
        }
    }

    fn note(&mut self, step: &Step, text: String, is_anomaly: bool) {
        self.notes.push(Note { node: step.node, at: step.at, text, is_anomaly });
    }

    fn enter(&mut self, node: NodeId, at: u64, fence: Fence) {
        let waited = self.open.get(&node).map(|&stay| self.stays[stay].claim.clone());
        self.begin(node, Phase::Inside, Some(at), waited.unwrap_or_else(Claim::single));
        if let Some(stay) = self.stays.last_mut() {
            stay.fence = Some(fence);
        }
    }

    /// Begins a stay. What the node did before ends.
    fn begin(&mut self, node: NodeId, phase: Phase, from: Option<u64>, claim: Claim) {
        if let Some(at) = from {
            self.end(node, at);
        }
        self.open.insert(node, self.stays.len());
        self.stays.push(Stay { node, phase, from, to: None, fence: None, claim });
    }

    fn end(&mut self, node: NodeId, at: u64) {
        if let Some(stay) = self.open.remove(&node) {
            self.stays[stay].to = Some(at);
        }
    }

    /// Begins, widens or ends the current overlap. The order of the events decides, not their
    /// times: a node that enters when another leaves at the same time but later overlaps with it.
    fn update_overlap(&mut self, at: Option<u64>) {
        let inside: Vec<&Stay> = self
            .open
            .values()
            .map(|&stay| &self.stays[stay])
            .filter(|stay| stay.phase == Phase::Inside)
            .collect();
        let is_crowded = |resource: &ResourceId| {
            inside.iter().filter(|other| other.claim.contains(*resource)).count() > self.places
        };
        let clashing: BTreeSet<NodeId> = inside
            .iter()
            .filter(|stay| stay.claim.resources().iter().any(is_crowded))
            .map(|stay| stay.node)
            .collect();
        let current = self.overlaps.last_mut().filter(|overlap| overlap.to.is_none());
        match (clashing.is_empty(), current) {
            (false, Some(overlap)) => overlap.nodes.extend(clashing),
            (false, None) => {
                self.overlaps.push(Overlap { nodes: clashing, from: at, to: None });
            }
            (true, Some(overlap)) => overlap.to = at,
            (true, None) => {}
        }
    }
}

/// Whether a diagram shows it: a node that starts and does nothing leaves no mark.
pub fn is_visible(event: &Event) -> bool {
    match event {
        Event::Step(step) => step.input != Input::Start || !step.outcomes.is_empty(),
        Event::Crash { .. } | Event::Lost { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn bounds(history: &History<'_>, phase: Phase) -> Vec<(u32, Option<u64>, Option<u64>)> {
        let stays = history.stays.iter().filter(|stay| stay.phase == phase);
        stays.map(|stay| (stay.node.0, stay.from, stay.to)).collect()
    }

    #[test]
    fn whoever_is_inside_at_the_start_is_inside_since_before_the_run() {
        let trace = sample::holder_and_waiter();
        let history = History::of(&trace).unwrap();
        let inside = [(0, None, Some(20)), (1, Some(30), None)];
        assert_eq!(bounds(&history, Phase::Inside), inside);
        assert_eq!(bounds(&history, Phase::Waiting), [(1, Some(5), Some(30))]);
        assert_eq!(history.overlaps, []);
    }

    #[test]
    fn an_overlap_lasts_from_the_second_entry_to_the_first_exit() {
        let trace = sample::violation();
        let history = History::of(&trace).unwrap();
        let overlap = Overlap { nodes: [0, 2].map(NodeId).into(), from: Some(9), to: None };
        assert_eq!(history.overlaps, [overlap]);
    }

    #[test]
    fn claims_without_a_common_resource_do_not_clash() {
        let trace = sample::two_claims([0, 1], [2, 3]);
        assert_eq!(History::of(&trace).unwrap().overlaps, []);
        let trace = sample::two_claims([0, 1], [1, 2]);
        let overlap = Overlap { nodes: [0, 1].map(NodeId).into(), from: Some(2), to: Some(3) };
        assert_eq!(History::of(&trace).unwrap().overlaps, [overlap]);
    }

    #[test]
    fn every_message_has_a_fate() {
        let trace = sample::crash();
        let history = History::of(&trace).unwrap();
        let count = |wanted: fn(&Delivery) -> bool| {
            history.flights.iter().filter(|flight| wanted(&flight.delivery)).count()
        };
        assert_eq!(count(|delivery| matches!(delivery, Delivery::Delivered(_))), 6);
        assert_eq!(count(|delivery| matches!(delivery, Delivery::Lost(_))), 2);
        assert_eq!(count(|delivery| *delivery == Delivery::InFlight), 1);
        assert_eq!(history.crashes, BTreeMap::from([(NodeId(2), 1200)]));
    }

    #[test]
    fn as_many_as_may_be_inside_do_not_exclude_each_other() {
        let mut trace = sample::two_claims([0, 1], [1, 2]);
        assert_eq!(History::of(&trace).unwrap().overlaps.len(), 1);
        trace.header.spec.k = Some(2);
        assert_eq!(History::of(&trace).unwrap().overlaps.len(), 0);
    }
}
