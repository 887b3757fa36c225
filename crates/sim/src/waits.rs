//! What requests for sets of resources wait for.
//!
//! The time from asking to entering has three parts. While a wanted resource is in use by another
//! node, nothing but that node's leaving can help. While none is in use, but another request that
//! came earlier wants one of them too, it is a matter of turn. The rest is what the algorithm costs:
//! messages, and locks that a node has but does not use.

use std::collections::BTreeMap;

use catraca_core::{Claim, NodeId, ResourceId};

use crate::responses::Responses;
use crate::time::{TICKS_PER_UNIT, Time};

/// Follows every request of a run on several resources. A change costs as much as there are
/// requests for the resources that it concerns.
#[derive(Debug)]
pub(crate) struct Waits {
    requests: BTreeMap<NodeId, Request>,
    /// Who waits for each resource, in the order of asking.
    waiting: Vec<Vec<NodeId>>,
    /// How many nodes use each resource: one, unless exclusion is broken.
    users: Vec<u32>,
    totals: Totals,
}

/// A request that waits.
#[derive(Debug)]
struct Request {
    /// How many of its resources were taken when it came: in use, or wanted by others.
    taken: usize,
    asked_at: Time,
    /// Up to when its parts count.
    since: Time,
    /// How many of its resources are in use.
    in_use: u32,
    /// How often one of its resources is wanted by a request that came earlier.
    ahead: usize,
    parts: Parts,
}

/// The parts of a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Parts {
    in_use: Time,
    in_line: Time,
    rest: Time,
}

/// Over the requests that were served since the warm-up.
#[derive(Debug)]
struct Totals {
    /// In ticks.
    in_use: u128,
    in_line: u128,
    rest: u128,
    /// Requests for one resource, and for several.
    single: Responses,
    several: Responses,
    /// Those for several of which exactly one was taken when they came.
    one_taken: Responses,
}

/// The figures of a run. Times are in units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Means {
    pub(crate) in_use: Option<f64>,
    pub(crate) in_line: Option<f64>,
    pub(crate) rest: Option<f64>,
    pub(crate) single: Option<f64>,
    pub(crate) single_p99: Option<f64>,
    pub(crate) several: Option<f64>,
    pub(crate) several_p99: Option<f64>,
    /// The share of the requests for several of which exactly one was taken.
    pub(crate) one_taken_share: Option<f64>,
    pub(crate) one_taken: Option<f64>,
}

impl Waits {
    pub(crate) fn new(resources: u32) -> Self {
        Waits {
            requests: BTreeMap::new(),
            waiting: vec![Vec::new(); resources as usize],
            users: vec![0; resources as usize],
            totals: Totals::new(),
        }
    }

    pub(crate) fn ask(&mut self, now: Time, node: NodeId, claim: &Claim) {
        let mut request = Request {
            taken: 0,
            asked_at: now,
            since: now,
            in_use: 0,
            ahead: 0,
            parts: Parts::default(),
        };
        for resource in indices(claim) {
            let (is_used, ahead) = (self.users[resource] > 0, self.waiting[resource].len());
            request.in_use += u32::from(is_used);
            request.ahead += ahead;
            request.taken += usize::from(is_used || ahead > 0);
            self.waiting[resource].push(node);
        }
        self.requests.insert(node, request);
    }

    /// `node` enters, or is inside from the start.
    pub(crate) fn enter(&mut self, now: Time, node: NodeId, claim: &Claim) {
        if let Some(request) = self.forget(now, node, claim) {
            self.totals.add(&request, now, claim.resources().len());
        }
        for resource in indices(claim) {
            self.users[resource] += 1;
            if self.users[resource] == 1 {
                self.change(now, resource, 0, |request| request.in_use += 1);
            }
        }
    }

    pub(crate) fn leave(&mut self, now: Time, claim: &Claim) {
        for resource in indices(claim) {
            self.users[resource] -= 1;
            if self.users[resource] == 0 {
                self.change(now, resource, 0, |request| request.in_use -= 1);
            }
        }
    }

    /// `node` does not wait any more.
    fn forget(&mut self, now: Time, node: NodeId, claim: &Claim) -> Option<Request> {
        for resource in indices(claim) {
            let waiting = &mut self.waiting[resource];
            if let Some(place) = waiting.iter().position(|&one| one == node) {
                waiting.remove(place);
                self.change(now, resource, place, |request| request.ahead -= 1);
            }
        }
        let mut request = self.requests.remove(&node)?;
        request.count_until(now);
        Some(request)
    }

    /// `node` gives up waiting.
    pub(crate) fn give_up(&mut self, now: Time, node: NodeId, claim: &Claim) {
        self.forget(now, node, claim);
    }

    /// Something changes for those who wait for `resource`, from the given place in line on.
    fn change(&mut self, now: Time, resource: usize, from: usize, change: impl Fn(&mut Request)) {
        for node in &self.waiting[resource][from..] {
            if let Some(request) = self.requests.get_mut(node) {
                request.count_until(now);
                change(request);
            }
        }
    }

    /// Forgets what was counted; who waits and who is inside stays.
    pub(crate) fn reset(&mut self) {
        self.totals = Totals::new();
    }

    pub(crate) fn means(&self) -> Means {
        let totals = &self.totals;
        let served = totals.single.count() + totals.several.count();
        let mean = |total: u128| in_units(total, served);
        let several = totals.several.count();
        Means {
            in_use: mean(totals.in_use),
            in_line: mean(totals.in_line),
            rest: mean(totals.rest),
            single: totals.single.mean(),
            single_p99: totals.single.p99(),
            several: totals.several.mean(),
            several_p99: totals.several.p99(),
            one_taken_share: (several > 0)
                .then(|| totals.one_taken.count() as f64 / several as f64),
            one_taken: totals.one_taken.mean(),
        }
    }
}

impl Request {
    fn count_until(&mut self, now: Time) {
        let passed = now - self.since;
        let part = match (self.in_use, self.ahead) {
            (1.., _) => &mut self.parts.in_use,
            (0, 1..) => &mut self.parts.in_line,
            (0, 0) => &mut self.parts.rest,
        };
        *part = *part + passed;
        self.since = now;
    }
}

impl Totals {
    fn new() -> Self {
        let (single, several, one_taken) =
            (Responses::default(), Responses::default(), Responses::default());
        Totals { in_use: 0, in_line: 0, rest: 0, single, several, one_taken }
    }

    fn add(&mut self, request: &Request, now: Time, size: usize) {
        self.in_use += u128::from(request.parts.in_use.0);
        self.in_line += u128::from(request.parts.in_line.0);
        self.rest += u128::from(request.parts.rest.0);
        let response = now - request.asked_at;
        if size > 1 {
            self.several.add(response);
            if request.taken == 1 {
                self.one_taken.add(response);
            }
        } else {
            self.single.add(response);
        }
    }
}

fn indices(claim: &Claim) -> impl Iterator<Item = usize> {
    claim.resources().iter().map(|&ResourceId(resource)| resource as usize)
}

fn in_units(ticks: u128, count: u64) -> Option<f64> {
    (count > 0).then(|| ticks as f64 / count as f64 / TICKS_PER_UNIT as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(resources: &[u32]) -> Claim {
        Claim::of(resources.iter().copied().map(ResourceId))
    }

    #[test]
    fn a_wait_is_parted_into_use_turn_and_rest() {
        let mut waits = Waits::new(4);
        let at = Time::units;
        let (first, second, third) = (claim(&[0]), claim(&[0, 1]), claim(&[1, 2]));
        waits.enter(at(0), NodeId(0), &first);
        waits.ask(at(1), NodeId(1), &second);
        waits.ask(at(2), NodeId(2), &third);
        // Node 1 waits for node 0 until 5, then for messages until 6; node 2 for its turn behind
        // node 1 until 6, for node 1 inside until 9, for messages until 9.5.
        waits.leave(at(5), &first);
        waits.enter(at(6), NodeId(1), &second);
        waits.leave(at(9), &second);
        waits.enter(Time(9_500_000), NodeId(2), &third);
        let means = waits.means();
        assert_eq!((means.in_use, means.in_line), (Some(3.5), Some(2.0)));
        assert_eq!(means.rest, Some(0.75));
        assert_eq!((means.several, means.single), (Some(6.25), None));
        assert_eq!(means.several_p99, Some(7.5));
    }

    #[test]
    fn requests_are_told_apart_by_how_many_of_their_resources_were_taken() {
        let mut waits = Waits::new(4);
        let at = Time::units;
        waits.enter(at(0), NodeId(0), &claim(&[0]));
        waits.ask(at(0), NodeId(1), &claim(&[1, 2]));
        waits.ask(at(0), NodeId(2), &claim(&[0, 3]));
        waits.ask(at(0), NodeId(3), &claim(&[0, 1]));
        waits.ask(at(0), NodeId(4), &claim(&[3]));
        waits.enter(at(1), NodeId(1), &claim(&[1, 2]));
        waits.leave(at(4), &claim(&[0]));
        waits.enter(at(4), NodeId(2), &claim(&[0, 3]));
        waits.give_up(at(5), NodeId(4), &claim(&[3]));
        let means = waits.means();
        // Of node 2's resources one was taken, of node 1's none; node 3 was not served.
        assert_eq!((means.one_taken_share, means.one_taken), (Some(0.5), Some(4.0)));
        assert_eq!(means.single, None);
        waits.reset();
        assert_eq!(waits.means(), Means::default());
    }
}
