//! Where a run gives up: no run takes all memory, and none stays at one instant for ever.
//!
//! The bounds are the same on every machine, because a run must be.

use catraca_core::Algorithm;

use super::Simulation;
use crate::queue::EventQueue;
use crate::report::End;
use crate::time::Time;

/// What one run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Requests that wait at their own node for an earlier one of the same node.
    queued: usize,
    /// Messages and other events that are going to happen.
    pending: usize,
    /// Events that happen at the very instant that caused them.
    pub(crate) at_once: u64,
    /// Messages and timers that come while somebody waits, or after everybody was served, without an
    /// entry.
    pub(crate) fruitless: u64,
    /// When the clock ends. Any time that can be asked for fits between it and an overflow.
    last: Time,
}

impl Bounds {
    const QUEUED: usize = 1_000_000;
    const PENDING_BYTES: usize = 1 << 30;
    const AT_ONCE: u64 = 10_000_000;
    const FRUITLESS: u64 = 1_000_000;
    /// If everybody asks everybody there are a few messages for each pair of nodes before the first entry.
    const FRUITLESS_PER_PAIR: u64 = 100;

    /// For events of the type `E`.
    pub(crate) const fn of<E>() -> Self {
        Bounds {
            queued: Self::QUEUED,
            pending: Self::PENDING_BYTES / size_of::<(Time, E)>(),
            at_once: Self::AT_ONCE,
            fruitless: Self::FRUITLESS,
            last: Time(u64::MAX / 2),
        }
    }

    /// The same for an algorithm on so many nodes.
    pub(crate) const fn on(self, nodes: u32) -> Self {
        let pairs = nodes as u64 * nodes as u64;
        let more = pairs.saturating_mul(Self::FRUITLESS_PER_PAIR);
        Bounds { fruitless: self.fruitless.saturating_add(more), ..self }
    }

    /// Why a run with these events cannot go on at `now`, if it cannot.
    #[inline]
    pub(crate) fn passed<E>(&self, queue: &EventQueue<E>, now: Time) -> Option<End> {
        if queue.len() > self.pending {
            Some(End::TooManyEvents)
        } else if queue.caused_now() > self.at_once {
            Some(End::SameInstant)
        } else if now > self.last {
            Some(End::EndOfTime)
        } else {
            None
        }
    }
}

impl<A: Algorithm> Simulation<'_, A> {
    /// Why the run cannot go on at `now`, if it cannot.
    #[inline]
    pub(super) fn beyond_bounds(&self, now: Time) -> Option<End> {
        if self.queued > self.bounds.queued {
            return Some(End::TooManyRequests);
        }
        if self.events >= self.setup.most_events {
            return Some(End::EventBound);
        }
        self.bounds.passed(&self.queue, now)
    }
}

#[cfg(test)]
mod tests {
    use catraca_algorithms::Lamport;
    use catraca_topology::Members;

    use super::*;
    use crate::engine::Hooks;
    use crate::report::Report;
    use crate::scenario::Scenario;

    fn run(scenario: &Scenario, change: impl FnOnce(&mut Bounds)) -> Report {
        let setup = scenario.setup().unwrap();
        let config = Members { nodes: setup.spec.nodes };
        let mut simulation = Simulation::<Lamport>::new(&setup, config, Hooks::default());
        change(&mut simulation.bounds);
        simulation.run()
    }

    fn lamport() -> Scenario {
        Scenario::new().with("algorithm", "lamport").with("nodes", 4).with("run.entries", 20)
    }

    #[test]
    fn a_run_within_its_bounds_does_not_notice_them() {
        assert_eq!(run(&lamport(), |_| {}).end, End::Entries);
    }

    #[test]
    fn each_bound_ends_a_run_that_passes_it() {
        let open = lamport().with("workload.arrivals", "open").with("workload.rate", 1000);
        assert_eq!(run(&open, |bounds| bounds.queued = 100).end, End::TooManyRequests);
        // All four ask at once: twelve requests are on their way.
        assert_eq!(run(&lamport(), |bounds| bounds.pending = 11).end, End::TooManyEvents);
        assert_eq!(run(&lamport(), |bounds| bounds.pending = 12).end, End::Entries);
        let instant = lamport().with("workload.hold", 0).with("network.delay", 0);
        assert_eq!(run(&instant, |bounds| bounds.at_once = 100).end, End::SameInstant);
        assert_eq!(run(&lamport(), |bounds| bounds.at_once = 100).end, End::Entries);
        assert_eq!(run(&lamport(), |bounds| bounds.last = Time::units(9)).end, End::EndOfTime);
    }

    #[test]
    fn a_run_takes_no_more_events_than_it_may() {
        let whole = run(&lamport(), |_| {}).events;
        let bounded = |events: u64| run(&lamport().with("run.events", events), |_| {});
        assert_eq!(bounded(whole).end, End::Entries, "as many as it needs are enough");
        let cut = bounded(whole - 1);
        assert_eq!((cut.end, cut.events), (End::EventBound, whole - 1));
        assert!(cut.end.gave_up().unwrap().contains("--events"));
    }
}
