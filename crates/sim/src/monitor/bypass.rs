//! How many later requests overtake a waiting one; bounded, if a bound is given.
//!
//! Requests are kept in the order of asking. A request that enters has been overtaken by all that
//! entered while it waited, less those that asked before it. A Fenwick tree counts the earlier ones
//! still waiting, so an entry costs a logarithm of the number of nodes.

use catraca_core::{NodeId, property};

use super::Broken;

/// No request.
const FREE: u32 = u32::MAX;

/// The waiting requests in the order of asking.
#[derive(Debug)]
pub(crate) struct Bypass {
    /// Fenwick tree over the places: how many waiting requests.
    counts: Vec<u32>,
    /// The node whose request is at each place, or FREE.
    owners: Vec<u32>,
    /// The place and the baseline of each node's request.
    requests: Vec<Request>,
    next_place: usize,
    waiting: usize,
    entered: u32,
    most: u32,
    bound: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Request {
    place: u32,
    /// Entries before it asked plus requests before it that waited, modulo 2^32.
    baseline: u32,
}

impl Bypass {
    pub(crate) fn new(nodes: u32, bound: Option<u32>) -> Self {
        let places = nodes as usize + (nodes as usize / 2).max(64);
        Bypass {
            counts: vec![0; places + 1],
            owners: vec![FREE; places],
            requests: vec![Request::default(); nodes as usize],
            next_place: 0,
            waiting: 0,
            entered: 0,
            most: 0,
            bound,
        }
    }

    /// How many requests wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The most that a request has been overtaken so far.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Forgets what was counted; the waiting requests stay.
    pub(crate) fn reset(&mut self) {
        self.most = 0;
    }

    /// `node` asks.
    pub(crate) fn ask(&mut self, node: NodeId) {
        if self.next_place == self.owners.len() {
            self.compact();
        }
        let place = self.next_place;
        self.next_place += 1;
        self.owners[place] = node.0;
        self.add(place, 1);
        self.requests[node.index()] = Request {
            place: place as u32,
            baseline: self.entered.wrapping_add(self.waiting as u32),
        };
        self.waiting += 1;
    }

    /// `node` enters.
    pub(crate) fn enter(&mut self, node: NodeId) -> Result<(), Broken> {
        let overtaken = self.overtaken(node);
        self.forget(node);
        self.entered = self.entered.wrapping_add(1);
        self.note(node, overtaken)
    }

    /// `node` gives up without entering.
    pub(crate) fn forget(&mut self, node: NodeId) {
        let place = self.requests[node.index()].place as usize;
        self.owners[place] = FREE;
        self.add(place, u32::MAX);
        self.waiting -= 1;
    }

    /// Counts a request that still waits when the run ends.
    pub(crate) fn still_waits(&mut self, node: NodeId) -> Result<(), Broken> {
        let overtaken = self.overtaken(node);
        self.note(node, overtaken)
    }

    fn note(&mut self, node: NodeId, overtaken: u32) -> Result<(), Broken> {
        self.most = self.most.max(overtaken);
        match self.bound {
            Some(bound) if overtaken > bound => {
                let what = format!(
                    "node {node} was overtaken by {overtaken} later requests, and {bound} are allowed"
                );
                Err(Broken { invariant: property::BOUNDED_BYPASS, what })
            }
            _ => Ok(()),
        }
    }

    fn overtaken(&self, node: NodeId) -> u32 {
        let request = self.requests[node.index()];
        let served = self.entered.wrapping_add(self.before(request.place as usize));
        // An earlier request that gave up looks like one served too few: never below none.
        (served.wrapping_sub(request.baseline) as i32).max(0) as u32
    }

    /// How many waiting requests are before `place`.
    fn before(&self, place: usize) -> u32 {
        let (mut index, mut sum) = (place, 0u32);
        while index > 0 {
            sum = sum.wrapping_add(self.counts[index]);
            index &= index - 1;
        }
        sum
    }

    fn add(&mut self, place: usize, change: u32) {
        let mut index = place + 1;
        while index < self.counts.len() {
            self.counts[index] = self.counts[index].wrapping_add(change);
            index += index & index.wrapping_neg();
        }
    }

    /// Moves the waiting requests to the first places, in order.
    fn compact(&mut self) {
        self.counts.fill(0);
        let mut place = 0;
        for old in 0..self.owners.len() {
            let owner = std::mem::replace(&mut self.owners[old], FREE);
            if owner != FREE {
                self.owners[place] = owner;
                self.requests[owner as usize].place = place as u32;
                self.add(place, 1);
                place += 1;
            }
        }
        self.next_place = place;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn first_come_first_served_overtakes_nobody() {
        let mut bypass = Bypass::new(3, Some(0));
        for node in [2, 0, 1] {
            bypass.ask(NodeId(node));
        }
        for node in [2, 0, 1] {
            assert_eq!(bypass.enter(NodeId(node)), Ok(()));
        }
        assert_eq!(bypass.most(), 0);
    }

    #[test]
    fn the_bound_is_noticed() {
        let mut bypass = Bypass::new(3, Some(1));
        bypass.ask(NodeId(0));
        for node in [1, 2] {
            bypass.ask(NodeId(node));
            assert_eq!(bypass.enter(NodeId(node)), Ok(()));
        }
        assert!(bypass.still_waits(NodeId(0)).is_err());
        assert!(bypass.enter(NodeId(0)).is_err());
    }

    proptest! {
        #[test]
        fn counts_as_a_list_of_requests_does(steps in prop::collection::vec((0u32..6, any::<bool>()), 0..600)) {
            let mut bypass = Bypass::new(6, None);
            // The waiting requests in order, each with the number of later ones that overtook it.
            let mut model: Vec<(u32, u32)> = Vec::new();
            let mut most = 0;
            for (node, enter) in steps {
                let place = model.iter().position(|(waiting, _)| *waiting == node);
                match place {
                    None => {
                        bypass.ask(NodeId(node));
                        model.push((node, 0));
                    }
                    Some(place) if enter => {
                        let _ = bypass.enter(NodeId(node));
                        most = most.max(model.remove(place).1);
                        model[..place].iter_mut().for_each(|(_, overtaken)| *overtaken += 1);
                    }
                    Some(_) => {}
                }
                prop_assert_eq!(bypass.most(), most);
                prop_assert_eq!(bypass.waiting(), model.len());
            }
        }
    }
}
