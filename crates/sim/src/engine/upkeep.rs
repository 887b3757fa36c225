//! The periodic tests of a failure detector: they never end, and while they bring no new suspicion
//! they let nobody in.
//!
//! Hi-ADSD tests the same nodes in every interval. If everybody has tested all its clusters since the
//! last change and nobody suspects anybody new, the next tests give the same answers, and so do all
//! later ones: no suspicion can come any more. This holds where an answer that came in time once comes
//! in time always. Where messages may take longer than a test allows, a wrong suspicion can come at any
//! time, and nothing is concluded.

use std::time::Duration;

use catraca_core::{Algorithm, Input, Message};
use catraca_topology::Hypercube;

use super::{Event, Simulation};
use crate::setup::Setup;
use crate::time::Time;

/// What a run knows of its periodic tests.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// How many events in the queue belong to them.
    pub(super) pending: usize,
    /// The last time at which anything else happened, or a new suspicion came. Faults of the network
    /// count until they end.
    last_change: Time,
    /// After so long without a change none can follow; never, if not given.
    settles_after: Option<Time>,
}

impl Upkeep {
    pub(super) fn new(setup: &Setup) -> Self {
        let settles_after = settles_after(setup);
        Upkeep { pending: 0, last_change: setup.faults.end(), settles_after }
    }

    #[inline]
    pub(super) fn note_change(&mut self, now: Time) {
        self.last_change = self.last_change.max(now);
    }

    /// Whether no suspicion can come any more, unless something else happens first.
    pub(super) fn is_settled(&self, now: Time) -> bool {
        let waited = now.0.saturating_sub(self.last_change.0);
        self.pending == 0 || self.settles_after.is_some_and(|enough| waited > enough.0)
    }
}

/// Within this time everybody begins and ends a test of each of its clusters.
fn settles_after(setup: &Setup) -> Option<Time> {
    let ticks = |duration: Duration| duration.as_micros() as u64;
    let detector = setup.spec.hi_adsd?;
    let latency = &setup.network.latency;
    let longest = latency.longest()?;
    let is_in_time = 2 * longest.0 < ticks(detector.timeout);
    if !is_in_time && !latency.is_constant() {
        return None;
    }
    // A cluster is tested node by node. The tests that were under way at the last change come first,
    // then at most an interval without tests.
    let largest = 1 << Hypercube::new(setup.spec.nodes).dimension().saturating_sub(1);
    let tests = ticks(detector.timeout).saturating_mul(largest);
    let all = tests.saturating_mul(2).saturating_add(ticks(detector.interval));
    Some(Time(all.saturating_add(2 * longest.0)))
}

impl<A: Algorithm> Simulation<'_, A> {
    #[inline]
    pub(super) fn is_upkeep(event: &Event<A::Message>) -> bool {
        match event {
            Event::Deliver { message, .. } => message.is_upkeep(),
            Event::Timer { tag, .. } => A::is_upkeep(*tag),
            _ => false,
        }
    }

    #[inline]
    pub(super) fn is_upkeep_input(input: &Input<A::Message>) -> bool {
        match input {
            Input::Message { message, .. } => message.is_upkeep(),
            Input::Timer(tag) => A::is_upkeep(*tag),
            _ => false,
        }
    }
}
