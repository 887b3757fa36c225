//! How many nodes are inside at the same time, and how many could have been.
//!
//! What could have been is a greedy choice: whoever is inside, and then the waiting requests in the
//! order of asking, each if its claim meets none chosen before it. No algorithm knows as much.

use catraca_core::{Claim, NodeId};

use crate::marks::Marks;
use crate::time::Time;

/// Adds up nodes inside over time, while a run on several resources goes on.
#[derive(Debug)]
pub(crate) struct Concurrency {
    /// In the order of asking.
    waiting: Vec<(NodeId, Claim)>,
    inside: u32,
    is_held: Vec<bool>,
    held: usize,
    /// The resources of waiting requests that could have been inside.
    chosen: Marks,
    /// Up to when the totals count.
    since: Time,
    /// Nodes times ticks.
    inside_total: u128,
    possible_total: u128,
}

impl Concurrency {
    pub(crate) fn new(resources: u32) -> Self {
        let resources = resources as usize;
        Concurrency {
            waiting: Vec::new(),
            inside: 0,
            is_held: vec![false; resources],
            held: 0,
            chosen: Marks::new(resources),
            since: Time::ZERO,
            inside_total: 0,
            possible_total: 0,
        }
    }

    pub(crate) fn ask(&mut self, now: Time, node: NodeId, claim: &Claim) {
        self.count_until(now);
        self.waiting.push((node, claim.clone()));
    }

    /// `node` enters or gives up: it does not wait any more.
    pub(crate) fn forget(&mut self, now: Time, node: NodeId) {
        self.count_until(now);
        self.waiting.retain(|(waiting, _)| *waiting != node);
    }

    pub(crate) fn enter(&mut self, now: Time, node: NodeId, claim: &Claim) {
        self.forget(now, node);
        self.inside += 1;
        self.hold(claim, true);
    }

    pub(crate) fn leave(&mut self, now: Time, claim: &Claim) {
        self.count_until(now);
        self.inside -= 1;
        self.hold(claim, false);
    }

    fn hold(&mut self, claim: &Claim, is_held: bool) {
        for resource in claim.resources() {
            self.is_held[resource.0 as usize] = is_held;
        }
        let resources = claim.resources().len();
        // Where exclusion is broken one resource is held twice; the run ends with that.
        self.held = if is_held { self.held + resources } else { self.held - resources };
    }

    /// Forgets what was counted; who waits and who is inside stays.
    pub(crate) fn reset(&mut self, now: Time) {
        self.count_until(now);
        (self.inside_total, self.possible_total) = (0, 0);
    }

    /// Nothing has changed since the last call. What is possible is computed only here, once for
    /// all changes at one time.
    pub(crate) fn count_until(&mut self, now: Time) {
        let ticks = u128::from((now - self.since).0);
        if ticks > 0 {
            self.inside_total += ticks * u128::from(self.inside);
            self.possible_total += ticks * u128::from(self.possible());
            self.since = now;
        }
    }

    fn possible(&mut self) -> u32 {
        self.chosen.wipe();
        let (mut possible, mut taken) = (self.inside, self.held);
        for (_, claim) in &self.waiting {
            if taken >= self.is_held.len() {
                break;
            }
            let resources = || claim.resources().iter().map(|resource| resource.0 as usize);
            if resources().all(|one| !self.is_held[one] && !self.chosen.contains(one)) {
                resources().for_each(|one| {
                    self.chosen.insert(one);
                });
                taken += claim.resources().len();
                possible += 1;
            }
        }
        possible
    }

    /// The mean number inside over `window`, and the mean that was possible.
    pub(crate) fn means(&self, window: Time) -> Option<(f64, f64)> {
        let mean = |total: u128| total as f64 / window.0 as f64;
        (window > Time::ZERO).then(|| (mean(self.inside_total), mean(self.possible_total)))
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::ResourceId;

    use super::*;

    fn claim(resources: &[u32]) -> Claim {
        Claim::of(resources.iter().copied().map(ResourceId))
    }

    #[test]
    fn requests_that_meet_nobody_chosen_before_them_could_have_been_inside() {
        let mut concurrency = Concurrency::new(4);
        concurrency.enter(Time::ZERO, NodeId(0), &claim(&[0]));
        for (node, resources) in [(1, &[0, 1][..]), (2, &[1, 2]), (3, &[2]), (4, &[3])] {
            concurrency.ask(Time::ZERO, NodeId(node), &claim(resources));
        }
        // Node 1 meets node 0, node 3 meets node 2; nodes 2 and 4 meet nobody.
        assert_eq!(concurrency.possible(), 3);
        concurrency.forget(Time::ZERO, NodeId(2));
        concurrency.leave(Time::ZERO, &claim(&[0]));
        assert_eq!(concurrency.possible(), 3);
    }

    #[test]
    fn means_are_weighted_by_time_and_forget_the_warm_up() {
        let mut concurrency = Concurrency::new(2);
        concurrency.enter(Time::ZERO, NodeId(0), &claim(&[0]));
        concurrency.reset(Time::units(10));
        concurrency.ask(Time::units(11), NodeId(1), &claim(&[1]));
        concurrency.enter(Time::units(13), NodeId(1), &claim(&[1]));
        concurrency.leave(Time::units(14), &claim(&[0]));
        concurrency.count_until(Time::units(20));
        // Inside: 3 units one, 1 unit two, 6 units one; possible: 2 for the units 11 to 14.
        assert_eq!(concurrency.means(Time::units(10)), Some((1.1, 1.3)));
        assert_eq!(concurrency.means(Time::ZERO), None);
    }
}
