//! Reports to an observer what happens, and finds the send that belongs to each delivery.

use std::collections::{BTreeMap, VecDeque};

use catraca_core::{Effect, Input, Message, NodeId};
use catraca_trace::{Event, Recorder, SendId};

use crate::time::Time;

/// The observer of a run.
pub(crate) struct Recording<'a> {
    observer: &'a mut dyn FnMut(&Event),
    recorder: Recorder,
    sent: u64,
    /// Messages on their way. Those of one channel that arrive at one time do so in the order of
    /// sending, so this finds each again without a number in the event queue.
    in_flight: BTreeMap<(Time, NodeId, NodeId), VecDeque<SendId>>,
}

impl<'a> Recording<'a> {
    pub(crate) fn new(observer: &'a mut dyn FnMut(&Event)) -> Self {
        Recording { observer, recorder: Recorder::new(), sent: 0, in_flight: BTreeMap::new() }
    }

    pub(crate) fn event(&mut self, event: &Event) {
        (self.observer)(event);
    }

    pub(crate) fn step<M: Message>(
        &mut self,
        now: Time,
        node: NodeId,
        input: &Input<M>,
        delivers: Option<SendId>,
        effects: &[Effect<M>],
    ) {
        let step = self.recorder.step(now.0, node, input, delivers, effects);
        // That every node starts is understood; it is worth a line only if something comes of it.
        if !matches!(input, Input::Start) || !effects.is_empty() {
            self.event(&Event::Step(step));
        }
    }

    /// A message is sent, to arrive then or never. Numbers are given as the recorder gives them.
    pub(crate) fn sends(&mut self, arrival: Option<Time>, from: NodeId, to: NodeId) -> SendId {
        let id = SendId(self.sent);
        self.sent += 1;
        if let Some(arrival) = arrival {
            self.in_flight.entry((arrival, from, to)).or_default().push_back(id);
        }
        id
    }

    pub(crate) fn arrives(&mut self, now: Time, from: NodeId, to: NodeId) -> Option<SendId> {
        let ids = self.in_flight.get_mut(&(now, from, to))?;
        let id = ids.pop_front();
        if ids.is_empty() {
            self.in_flight.remove(&(now, from, to));
        }
        id
    }
}
