//! How many nodes are inside at the same time, and how many could have been.
//!
//! What could have been is a greedy choice: the nodes that are inside, and then the waiting requests in the
//! order of asking, each if its claim meets none chosen before it. No algorithm knows as much.
//!
//! The choice is kept up to date rather than made again: a change looks only at requests that want
//! the same resources, and at those that these get in the way of. So its cost does not grow with the
//! number of resources, nor with the number of requests that have nothing to do with it.

use std::collections::{BTreeMap, BTreeSet};

use catraca_core::{Claim, NodeId};

use crate::time::Time;

/// The place of a request in the order of asking.
type Place = u64;

/// Who has a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    No,
    /// A node that is inside.
    Inside,
    /// A waiting request that could have been inside.
    Chosen(Place),
}

#[derive(Clone, Debug)]
struct Resource {
    taken: Taken,
    /// The waiting requests for it.
    wanted: BTreeSet<Place>,
}

#[derive(Debug)]
struct Request {
    claim: Claim,
    is_chosen: bool,
}

/// Requests to look at again, each because a resource that it wants has become free.
type Agenda = BTreeSet<(Place, u32)>;

/// Adds up nodes inside over time, while a run on several resources goes on.
#[derive(Debug)]
pub(crate) struct Concurrency {
    waiting: BTreeMap<Place, Request>,
    /// The place of each waiting node.
    places: BTreeMap<NodeId, Place>,
    next: Place,
    resources: Vec<Resource>,
    inside: u32,
    /// How many waiting requests could have been inside.
    chosen: u32,
    /// Up to when the totals count.
    since: Time,
    /// Nodes times ticks.
    inside_total: u128,
    possible_total: u128,
}

impl Concurrency {
    pub(crate) fn new(resources: u32) -> Self {
        let free = Resource { taken: Taken::No, wanted: BTreeSet::new() };
        Concurrency {
            waiting: BTreeMap::new(),
            places: BTreeMap::new(),
            next: 0,
            resources: vec![free; resources as usize],
            inside: 0,
            chosen: 0,
            since: Time::ZERO,
            inside_total: 0,
            possible_total: 0,
        }
    }

    pub(crate) fn ask(&mut self, now: Time, node: NodeId, claim: &Claim) {
        self.count_until(now);
        let place = self.next;
        self.next += 1;
        self.places.insert(node, place);
        for resource in indices(claim) {
            self.resources[resource].wanted.insert(place);
        }
        self.waiting.insert(place, Request { claim: claim.clone(), is_chosen: false });
        // Nobody is behind it, so it blocks nobody.
        if self.can_choose(place, claim) {
            self.choose(place, claim);
        }
    }

    /// `node` gives up: it does not wait any more.
    pub(crate) fn forget(&mut self, now: Time, node: NodeId) {
        self.count_until(now);
        let mut agenda = Agenda::new();
        self.remove(node, &mut agenda);
        self.reconsider(agenda);
    }

    pub(crate) fn enter(&mut self, now: Time, node: NodeId, claim: &Claim) {
        self.count_until(now);
        let mut agenda = Agenda::new();
        self.remove(node, &mut agenda);
        self.inside += 1;
        for resource in indices(claim) {
            if let Taken::Chosen(place) = self.resources[resource].taken {
                self.revoke(place, &mut agenda);
            }
            self.resources[resource].taken = Taken::Inside;
        }
        self.reconsider(agenda);
    }

    pub(crate) fn leave(&mut self, now: Time, claim: &Claim) {
        self.count_until(now);
        self.inside -= 1;
        let mut agenda = Agenda::new();
        for resource in indices(claim) {
            self.resources[resource].taken = Taken::No;
            self.note(resource, 0, &mut agenda);
        }
        self.reconsider(agenda);
    }

    fn remove(&mut self, node: NodeId, agenda: &mut Agenda) {
        let Some(place) = self.places.remove(&node) else { return };
        self.revoke(place, agenda);
        if let Some(request) = self.waiting.remove(&place) {
            for resource in indices(&request.claim) {
                self.resources[resource].wanted.remove(&place);
            }
        }
    }

    fn can_choose(&self, place: Place, claim: &Claim) -> bool {
        indices(claim).all(|resource| match self.resources[resource].taken {
            Taken::No => true,
            Taken::Inside => false,
            Taken::Chosen(other) => other > place,
        })
    }

    fn choose(&mut self, place: Place, claim: &Claim) {
        for resource in indices(claim) {
            self.resources[resource].taken = Taken::Chosen(place);
        }
        if let Some(request) = self.waiting.get_mut(&place) {
            request.is_chosen = true;
            self.chosen += 1;
        }
    }

    /// The request at `place` could not have been inside any more; its resources are free for those
    /// behind it. Those before it have other reasons.
    fn revoke(&mut self, place: Place, agenda: &mut Agenda) {
        let Some(request) = self.waiting.get_mut(&place).filter(|request| request.is_chosen) else {
            return;
        };
        request.is_chosen = false;
        self.chosen -= 1;
        let claim = request.claim.clone();
        for resource in indices(&claim) {
            self.resources[resource].taken = Taken::No;
            self.note(resource, place + 1, agenda);
        }
    }

    /// The first request for `resource` from `place` on is to be looked at.
    fn note(&self, resource: usize, place: Place, agenda: &mut Agenda) {
        if let Some(&first) = self.resources[resource].wanted.range(place..).next() {
            agenda.insert((first, resource as u32));
        }
    }

    /// Goes through the agenda in the order of asking; what is added on the way comes later in it.
    fn reconsider(&mut self, mut agenda: Agenda) {
        while let Some((place, resource)) = agenda.pop_first() {
            let resource = resource as usize;
            match self.resources[resource].taken {
                Taken::No => {}
                Taken::Chosen(other) if other > place => {}
                // Another node has it now, and blocks all that come later.
                Taken::Inside | Taken::Chosen(_) => continue,
            }
            let claim = self.waiting[&place].claim.clone();
            if !self.can_choose(place, &claim) {
                self.note(resource, place + 1, &mut agenda);
                continue;
            }
            for resource in indices(&claim) {
                if let Taken::Chosen(later) = self.resources[resource].taken {
                    self.revoke(later, &mut agenda);
                }
            }
            self.choose(place, &claim);
        }
    }

    /// Forgets what was counted; who waits and who is inside stays.
    pub(crate) fn reset(&mut self, now: Time) {
        self.count_until(now);
        (self.inside_total, self.possible_total) = (0, 0);
    }

    /// Nothing has changed since the last call.
    pub(crate) fn count_until(&mut self, now: Time) {
        let ticks = u128::from((now - self.since).0);
        self.inside_total += ticks * u128::from(self.inside);
        self.possible_total += ticks * u128::from(self.possible());
        self.since = now;
    }

    fn possible(&self) -> u32 {
        self.inside + self.chosen
    }

    /// The mean number inside over `window`, and the mean that was possible.
    pub(crate) fn means(&self, window: Time) -> Option<(f64, f64)> {
        let mean = |total: u128| total as f64 / window.0 as f64;
        (window > Time::ZERO).then(|| (mean(self.inside_total), mean(self.possible_total)))
    }
}

fn indices(claim: &Claim) -> impl Iterator<Item = usize> + '_ {
    claim.resources().iter().map(|resource| resource.0 as usize)
}

#[cfg(test)]
mod tests {
    use catraca_core::ResourceId;
    use proptest::prelude::*;

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

    /// The greedy choice, from the beginning.
    fn greedy(inside: &[(u32, Claim)], waiting: &[(u32, Claim)]) -> u32 {
        let mut chosen: Vec<&Claim> = inside.iter().map(|(_, claim)| claim).collect();
        for (_, claim) in waiting {
            if !chosen.iter().any(|other| other.overlaps(claim)) {
                chosen.push(claim);
            }
        }
        chosen.len() as u32
    }

    proptest! {
        #[test]
        fn keeps_the_choice_that_would_be_made_anew(
            steps in prop::collection::vec((0u32..8, prop::collection::btree_set(0u32..6, 1..4), 0u8..4), 0..200)
        ) {
            let mut concurrency = Concurrency::new(6);
            let (mut waiting, mut inside) = (Vec::<(u32, Claim)>::new(), Vec::<(u32, Claim)>::new());
            for (node, resources, what) in steps {
                let at = |list: &[(u32, Claim)]| list.iter().position(|(other, _)| *other == node);
                if let Some(place) = at(&inside) {
                    let (_, claim) = inside.remove(place);
                    concurrency.leave(Time::ZERO, &claim);
                } else if let Some(place) = at(&waiting) {
                    let meets = inside.iter().any(|(_, claim)| claim.overlaps(&waiting[place].1));
                    if what == 0 {
                        waiting.remove(place);
                        concurrency.forget(Time::ZERO, NodeId(node));
                    } else if !meets {
                        let (_, claim) = waiting.remove(place);
                        concurrency.enter(Time::ZERO, NodeId(node), &claim);
                        inside.push((node, claim));
                    }
                } else {
                    let claim = Claim::of(resources.into_iter().map(ResourceId));
                    concurrency.ask(Time::ZERO, NodeId(node), &claim);
                    waiting.push((node, claim));
                }
                prop_assert_eq!(concurrency.possible(), greedy(&inside, &waiting));
            }
        }
    }
}
