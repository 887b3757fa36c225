//! The end of runs in which messages or timers never end.
//!
//! A token that goes round a ring is on its way also when nobody wants it, so such a run never falls
//! quiet. An algorithm says so ([`Algorithm::RESTLESS`]), and its run ends as soon as everybody has been
//! served and nobody will ask. Where somebody waits and only messages and timers are left to let them in,
//! they may come for ever without doing so; whether they do is a question to the checker, and the run
//! gives up after far more of them than any entry takes.

use catraca_core::Algorithm;

use super::{Event, Simulation};
use crate::report::End;

/// What is known of messages and timers that lead to nothing.
#[derive(Debug, Default)]
pub(super) struct Unrest {
    /// How many events in the queue nodes have caused themselves: messages and timers.
    pending: usize,
    /// How many messages and timers came since the workload can do nothing and nobody has entered.
    fruitless: u64,
}

impl Unrest {
    #[inline]
    pub(super) fn caused(&mut self) {
        self.pending += 1;
    }

    #[inline]
    pub(super) fn note_entry(&mut self) {
        self.fruitless = 0;
    }
}

impl<A: Algorithm> Simulation<'_, A> {
    /// `event` has come out of the queue.
    #[inline]
    pub(super) fn note_unrest(&mut self, event: &Event<A::Message>) {
        let is_own = matches!(event, Event::Deliver { .. } | Event::Timer { .. });
        self.unrest.pending -= usize::from(is_own);
        // Tests of a failure detector have a rule of their own.
        self.unrest.fruitless += u64::from(is_own && !Self::is_upkeep(event));
    }

    /// Between two events: why the run ends although messages and timers are pending, if it does.
    #[inline]
    pub(super) fn ends_in_unrest(&mut self) -> Option<End> {
        let from_outside = self.queue.len() - self.unrest.pending;
        let is_waited = self.bypass.waiting() > 0;
        let left_to_workload = match is_waited {
            // The next request of an endless series lets nobody in.
            true => usize::from(self.setup.workload.arrivals.keep_coming()),
            false => 0,
        };
        if from_outside > left_to_workload || self.unrest.pending == 0 {
            self.unrest.fruitless = 0;
            return None;
        }
        if A::RESTLESS && !is_waited {
            return Some(End::Served);
        }
        if self.unrest.fruitless <= self.bounds.fruitless {
            return None;
        }
        Some(if is_waited { End::NobodyEnters } else { End::Restless })
    }
}
