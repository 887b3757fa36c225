//! The timers that nodes set: each runs out once, unless it is set again or cancelled first.

use std::time::Duration;

use catraca_core::{Algorithm, Input, NodeId, TimerTag};

use super::{Event, Simulation};
use crate::time::Time;

impl<A: Algorithm> Simulation<'_, A> {
    pub(super) fn set_timer(&mut self, now: Time, node: NodeId, tag: TimerTag, after: Duration) {
        self.timer_settings += 1;
        let setting = self.timer_settings;
        self.timers.insert((node, tag), setting);
        // A tick is a microsecond to an algorithm: a unit is its second.
        let at = now + Time(after.as_micros() as u64);
        self.upkeep.pending += usize::from(A::is_upkeep(tag));
        self.unrest.caused();
        self.queue.push(at, Event::Timer { node, tag, setting });
    }

    pub(super) fn cancel_timer(&mut self, node: NodeId, tag: TimerTag) {
        self.timers.remove(&(node, tag));
    }

    pub(super) fn run_out(&mut self, now: Time, node: NodeId, tag: TimerTag, setting: u64) {
        let is_current = self.timers.get(&(node, tag)) == Some(&setting);
        if is_current && self.sites[node.index()].alive {
            self.timers.remove(&(node, tag));
            self.step(now, node, Input::Timer(tag), None);
        }
    }
}
