//! A node stops for ever: what that changes for the others and for the monitors.

use catraca_core::{Algorithm, Input, NodeId, Phase};
use catraca_trace as trace;

use super::{Event, Simulation, Site};
use crate::time::Time;
use crate::workload::Arrivals;

impl<A: Algorithm> Simulation<'_, A> {
    pub(super) fn crash(&mut self, now: Time, node: NodeId) {
        self.upkeep.note_change(now);
        let phase = self.sites[node.index()].phase;
        self.sites[node.index()] =
            Site { phase: Phase::Idle, alive: false, ..self.sites[node.index()] };
        self.queued -= self.backlog.remove(&node).map_or(0, |backlog| backlog.len());
        if let Some(recording) = &mut self.recording {
            recording.event(&trace::Event::Crash { at: now.0, node });
        }
        if A::TOKEN && self.nodes[node.index()].holds_token() {
            self.token.lose();
        }
        match phase {
            Phase::Idle => {}
            Phase::Waiting => {
                self.bypass.forget(node);
                if let Some(sets) = &mut self.sets {
                    sets.give_up(now, node);
                }
            }
            Phase::Inside => self.leave(now, node),
        }
        if phase != Phase::Idle && matches!(self.setup.workload.arrivals, Arrivals::Serial { .. }) {
            self.plan_next_arrival(now);
        }
        if let Some(delay) = self.setup.detector {
            for observer in node.others_after(self.setup.spec.nodes) {
                self.queue.push(now + delay, Event::Suspect { observer, suspect: node });
            }
        }
    }

    /// The detector informs `observer`, if that one is alive.
    pub(super) fn suspect(&mut self, now: Time, observer: NodeId, suspect: NodeId) {
        if self.sites[observer.index()].alive {
            self.step(now, observer, Input::Suspect(suspect), None);
        }
    }
}
