//! Messages on their way: sent, delivered, lost.

use catraca_core::{Algorithm, Input, Message, NodeId};
use catraca_trace as trace;

use super::{Event, Simulation};
use crate::time::Time;

impl<A: Algorithm> Simulation<'_, A> {
    #[inline]
    pub(super) fn send(&mut self, now: Time, from: NodeId, to: NodeId, message: A::Message) {
        self.metrics.sent[message.kind()] += 1;
        if let Some(clusters) = &self.setup.clusters {
            self.metrics.between += u64::from(!clusters.are_together(from, to));
        }
        let departure = self.setup.faults.departure(now, from, to);
        let arrival = departure.map(|at| self.links.arrival(at, from, to, &mut self.random));
        let id = self.recording.as_mut().map(|recording| recording.sends(arrival, from, to));
        match arrival {
            Some(at) => {
                self.upkeep.pending += usize::from(message.is_upkeep());
                self.unrest.caused();
                self.queue.push(at, Event::Deliver { from, to, message });
            }
            None => self.lose(now, &message, id),
        }
    }

    #[inline]
    pub(super) fn deliver(&mut self, now: Time, from: NodeId, to: NodeId, message: A::Message) {
        let id = self.recording.as_mut().and_then(|recording| recording.arrives(now, from, to));
        if !self.sites[to.index()].alive {
            return self.lose(now, &message, id);
        }
        if A::TOKEN && message.carries_token() {
            self.token.change(-1);
        }
        self.step(now, to, Input::Message { from, message }, id);
    }

    fn lose(&mut self, now: Time, message: &A::Message, id: Option<trace::SendId>) {
        if A::TOKEN && message.carries_token() {
            self.token.lose();
        }
        if let (Some(recording), Some(id)) = (&mut self.recording, id) {
            recording.event(&trace::Event::Lost { at: now.0, id });
        }
    }
}
