//! One lock at one node: who waits here, who is inside, and what the group was asked for.
//!
//! The group knows one requester per seat; a lock has one seat at each node, a semaphore or a set of
//! locks has several. The clients of this node queue in front of the seats, first come, first
//! served. A client that leaves may pass the lock straight to the next one here, a bounded number of
//! times in a row, because clients of other nodes may be waiting too.
//!
//! Where clients want sets, a seat is taken only for a set that has nothing in common with those of
//! earlier clients of this node: the others wait for these anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;
use std::time::Instant;

use catraca_core::{Claim, Fence, ResourceId};
use smallvec::SmallVec;

use crate::fence;
use crate::kind::Slot;

/// Tells apart who asks at one node. Later askers have larger tickets.
pub(crate) type Ticket = u64;

/// Who is responsible for a request: the application that runs the node, or a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner(pub(crate) u64);

/// So many of those who wait for sets are looked at, from the first on, for one whose turn it is.
const MOST_LOOKED_AT: usize = 1024;

/// A set of locks, by their names and by the resources that these are put into.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) names: Box<[Box<str>]>,
    pub(crate) claim: Claim,
}

/// Somebody who waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) owner: Owner,
    /// Since when; nothing for somebody who has only just come.
    pub(crate) since: Option<Instant>,
    /// What for, where clients want sets.
    pub(crate) set: Option<Box<Set>>,
    /// Whom to wake; nobody until the waiter has been polled.
    pub(crate) waker: Option<Waker>,
}

/// Somebody who is inside.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) ticket: Ticket,
    pub(crate) owner: Owner,
    pub(crate) since: Instant,
    pub(crate) fence: Fence,
    pub(crate) set: Option<Box<Set>>,
    /// What the algorithm numbered this entry with.
    number: Fence,
    handovers: u8,
}

#[derive(Debug)]
enum Place {
    Idle,
    /// The group has been asked; for a set, this one on behalf of this ticket.
    Asking(Option<(Ticket, Claim)>),
    Inside(Hold),
}

/// One requester in the eyes of the group.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) slot: Slot,
    place: Place,
}

/// How a lock treats its clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) epoch: u16,
    /// How often in a row the lock goes from one client of this node to the next.
    pub(crate) handovers: u8,
    /// Whether requests differ: each is for a set of its own.
    pub(crate) sets: bool,
}

/// What follows from somebody's leaving.
#[derive(Debug)]
pub(crate) enum Left {
    /// The next client here is inside.
    HandedOver(Option<Waker>),
    /// The group is to be told that this seat leaves.
    Release(usize),
    /// The ticket is not inside.
    NotInside,
}

/// What follows from a grant of the group.
#[derive(Debug)]
pub(crate) enum Admitted {
    /// A client is inside.
    Client(Option<Waker>),
    /// Nobody here wants it any more: the group is to be told that this seat leaves.
    Nobody,
    /// The group counted further than a fence can.
    Exhausted,
    /// Nothing was asked for.
    Unasked,
}

/// One lock at one node.
#[derive(Debug)]
pub(crate) struct Lock {
    pub(crate) name: Box<str>,
    pub(crate) permits: u32,
    pub(crate) kind: u16,
    pub(crate) home: u16,
    seats: SmallVec<[Seat; 1]>,
    waiting: BTreeMap<Ticket, Waiter>,
}

impl Lock {
    /// A lock that nobody here has asked for.
    pub(crate) fn new(
        name: &str,
        permits: u32,
        kind: u16,
        home: u16,
        slots: impl Iterator<Item = Slot>,
    ) -> Self {
        let seats = slots.map(|slot| Seat { slot, place: Place::Idle }).collect();
        Lock { name: name.into(), permits, kind, home, seats, waiting: BTreeMap::new() }
    }

    /// Where the algorithm's state of this seat is.
    pub(crate) fn slot(&self, seat: usize) -> Option<Slot> {
        self.seats.get(seat).map(|seat| seat.slot)
    }

    /// Whether a client could be inside without waiting for another client of this node.
    pub(crate) fn is_free_here(&self) -> bool {
        self.waiting.is_empty()
            && self.seats.iter().any(|seat| !matches!(seat.place, Place::Inside(_)))
    }

    /// Whether a client of this node holds or awaits it.
    pub(crate) fn is_used_here(&self) -> bool {
        !self.waiting.is_empty() || self.holds().next().is_some()
    }

    /// Puts somebody at the end of the queue.
    pub(crate) fn join(&mut self, ticket: Ticket, waiter: Waiter) {
        self.waiting.insert(ticket, waiter);
    }

    /// An idle seat for somebody who has just come, if nobody else waits.
    pub(crate) fn ask_directly(&mut self) -> Option<usize> {
        if !self.waiting.is_empty() {
            return None;
        }
        let idle = self.idle_seat()?;
        self.seats[idle].place = Place::Asking(None);
        Some(idle)
    }

    fn idle_seat(&self) -> Option<usize> {
        self.seats.iter().position(|seat| matches!(seat.place, Place::Idle))
    }

    /// An idle seat and what the group is to be asked for, if somebody waits for whom it has not
    /// been asked yet.
    pub(crate) fn next_request(&mut self, rules: Rules) -> Option<(usize, Claim)> {
        if self.waiting.is_empty() {
            return None;
        }
        let idle = self.idle_seat()?;
        if rules.sets {
            let (ticket, claim) = self.next_set()?;
            self.seats[idle].place = Place::Asking(Some((ticket, claim.clone())));
            return Some((idle, claim));
        }
        let is_asking = |seat: &&Seat| matches!(seat.place, Place::Asking(_));
        if self.seats.iter().filter(is_asking).count() >= self.waiting.len() {
            return None;
        }
        self.seats[idle].place = Place::Asking(None);
        Some((idle, Claim::single()))
    }

    /// The first who waits for a set that has nothing in common with those of anybody before here.
    fn next_set(&self) -> Option<(Ticket, Claim)> {
        let mut before: BTreeSet<ResourceId> = BTreeSet::new();
        for seat in &self.seats {
            match &seat.place {
                Place::Asking(Some((_, claim))) => before.extend(claim.resources()),
                Place::Inside(Hold { set: Some(set), .. }) => before.extend(set.claim.resources()),
                _ => {}
            }
        }
        for (&ticket, waiter) in self.waiting.iter().take(MOST_LOOKED_AT) {
            let claim = &waiter.set.as_ref()?.claim;
            if claim.resources().iter().all(|resource| !before.contains(resource)) {
                return Some((ticket, claim.clone()));
            }
            before.extend(claim.resources());
        }
        None
    }

    /// Who gets the set that was asked for on behalf of `ticket`: if that one has given up, the next
    /// who wants the same.
    fn heir(&self, ticket: Ticket, claim: &Claim) -> Option<Ticket> {
        if self.waiting.contains_key(&ticket) {
            return Some(ticket);
        }
        let wants_it = |waiter: &Waiter| waiter.set.as_ref().is_some_and(|set| set.claim == *claim);
        let mut first = self.waiting.iter().take(MOST_LOOKED_AT);
        first.find(|(_, waiter)| wants_it(waiter)).map(|(&ticket, _)| ticket)
    }

    /// The group has let `seat` in. Whoever has only just come and is not in the queue yet is the
    /// `newcomer`.
    pub(crate) fn admit(
        &mut self,
        seat: usize,
        number: Fence,
        rules: Rules,
        newcomer: &mut Option<(Ticket, Waiter)>,
        now: impl FnOnce() -> Instant,
    ) -> Admitted {
        let Place::Asking(asked) = &self.seats[seat].place else { return Admitted::Unasked };
        let Some(fence) = fence::pack(rules.epoch, number, 0) else { return Admitted::Exhausted };
        let next = match asked {
            None => call(&mut self.waiting, None).or_else(|| newcomer.take()),
            Some((ticket, claim)) => {
                let heir = self.heir(*ticket, claim);
                heir.and_then(|ticket| call(&mut self.waiting, Some(ticket)))
            }
        };
        let Some((ticket, waiter)) = next else {
            self.seats[seat].place = Place::Idle;
            return Admitted::Nobody;
        };
        let Waiter { owner, set, waker, .. } = waiter;
        let hold = Hold { ticket, owner, since: now(), fence, set, number, handovers: 0 };
        self.seats[seat].place = Place::Inside(hold);
        Admitted::Client(waker)
    }

    /// The client with `ticket` leaves.
    pub(crate) fn leave(
        &mut self,
        ticket: Ticket,
        rules: Rules,
        now: impl FnOnce() -> Instant,
    ) -> Left {
        let is_it =
            |seat: &Seat| matches!(&seat.place, Place::Inside(hold) if hold.ticket == ticket);
        let Some(index) = self.seats.iter().position(is_it) else { return Left::NotInside };
        let seat = &mut self.seats[index];
        if let Place::Inside(hold) = &mut seat.place
            && !rules.sets
            && hold.handovers < rules.handovers
            && let Some(fence) = fence::pack(rules.epoch, hold.number, hold.handovers + 1)
            && let Some((ticket, waiter)) = call(&mut self.waiting, None)
        {
            hold.handovers += 1;
            (hold.ticket, hold.owner, hold.since) = (ticket, waiter.owner, now());
            hold.fence = fence;
            return Left::HandedOver(waiter.waker);
        }
        seat.place = Place::Idle;
        Left::Release(index)
    }

    /// The client with `ticket` no longer waits. Returns false if it was not waiting.
    pub(crate) fn forget(&mut self, ticket: Ticket) -> bool {
        call(&mut self.waiting, Some(ticket)).is_some()
    }

    /// Nobody waits any more. Returns whom to wake.
    pub(crate) fn dismiss(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.waiting).into_values().filter_map(|waiter| waiter.waker)
    }

    /// The fence of `ticket`, if it is inside.
    pub(crate) fn fence_of(&self, ticket: Ticket) -> Option<Fence> {
        self.holds().find(|hold| hold.ticket == ticket).map(|hold| hold.fence)
    }

    /// The waiter with `ticket`.
    pub(crate) fn waiter(&mut self, ticket: Ticket) -> Option<&mut Waiter> {
        self.waiting.get_mut(&ticket)
    }

    /// Everybody inside, in the order of the seats.
    pub(crate) fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.seats.iter().filter_map(|seat| match &seat.place {
            Place::Inside(hold) => Some(hold),
            _ => None,
        })
    }

    /// Everybody who waits, first come, first.
    pub(crate) fn waiters(&self) -> impl Iterator<Item = (Ticket, &Waiter)> {
        self.waiting.iter().map(|(&ticket, waiter)| (ticket, waiter))
    }
}

/// Takes `ticket` out of the queue, or else the first. An empty queue gives its memory back: there
/// may be very many of them.
fn call(
    waiting: &mut BTreeMap<Ticket, Waiter>,
    ticket: Option<Ticket>,
) -> Option<(Ticket, Waiter)> {
    let called = match ticket {
        Some(ticket) => waiting.remove_entry(&ticket),
        None => waiting.pop_first(),
    };
    if waiting.is_empty() {
        *waiting = BTreeMap::new();
    }
    called
}

#[cfg(test)]
mod tests {
    use catraca_algorithms::Spec;
    use catraca_core::NodeId;

    use super::*;
    use crate::kind::kind_of;

    const RULES: Rules = Rules { epoch: 1, handovers: 2, sets: false };
    const SETS: Rules = Rules { epoch: 1, handovers: 2, sets: true };

    fn lock(seats: u32) -> Lock {
        let mut kind = kind_of(&Spec::new("naimi-trehel", 8)).unwrap();
        Lock::new("a", 1, 0, 0, (0..seats).map(|seat| kind.create(NodeId(seat))))
    }

    fn waiter(set: Option<Box<Set>>) -> Waiter {
        Waiter { owner: Owner(0), since: None, set, waker: None }
    }

    fn want(lock: &mut Lock, ticket: Ticket, resources: &[u32]) {
        let claim = claim(resources);
        lock.join(ticket, waiter(Some(Box::new(Set { names: Box::default(), claim }))));
    }

    fn claim(resources: &[u32]) -> Claim {
        Claim::of(resources.iter().copied().map(ResourceId))
    }

    fn join(lock: &mut Lock, tickets: impl IntoIterator<Item = Ticket>) {
        for ticket in tickets {
            lock.join(ticket, waiter(None));
        }
    }

    fn inside(lock: &Lock) -> Vec<(Ticket, u64)> {
        lock.holds().map(|hold| (hold.ticket, hold.fence.0 & 0xff_ffff)).collect()
    }

    #[test]
    fn the_group_is_asked_once_for_all_clients_of_a_seat() {
        let mut lock = lock(1);
        join(&mut lock, 1..=3);
        assert_eq!(lock.next_request(RULES), Some((0, Claim::single())));
        assert_eq!(lock.next_request(RULES), None);
        assert!(matches!(
            lock.admit(0, Fence(7), RULES, &mut None, Instant::now),
            Admitted::Client(_)
        ));
        assert_eq!(inside(&lock), [(1, 7 << 8)]);
    }

    #[test]
    fn a_lock_is_handed_over_here_so_often_and_then_given_back() {
        let mut lock = lock(1);
        join(&mut lock, 1..=4);
        lock.next_request(RULES);
        lock.admit(0, Fence(7), RULES, &mut None, Instant::now);
        for (ticket, handover) in [(1, 1), (2, 2)] {
            assert!(matches!(lock.leave(ticket, RULES, Instant::now), Left::HandedOver(_)));
            assert_eq!(inside(&lock), [(ticket + 1, 7 << 8 | handover)]);
        }
        assert!(matches!(lock.leave(3, RULES, Instant::now), Left::Release(0)));
        assert_eq!(lock.next_request(RULES), Some((0, Claim::single())), "the fourth still waits");
    }

    #[test]
    fn nobody_leaves_twice() {
        let mut lock = lock(1);
        join(&mut lock, [1]);
        assert!(matches!(lock.leave(1, RULES, Instant::now), Left::NotInside));
        lock.next_request(RULES);
        lock.admit(0, Fence(1), RULES, &mut None, Instant::now);
        assert!(matches!(lock.leave(1, RULES, Instant::now), Left::Release(0)));
        assert!(matches!(lock.leave(1, RULES, Instant::now), Left::NotInside));
        assert!(matches!(
            lock.admit(0, Fence(2), RULES, &mut None, Instant::now),
            Admitted::Unasked
        ));
    }

    #[test]
    fn a_grant_that_nobody_wants_any_more_is_given_back() {
        let mut lock = lock(1);
        join(&mut lock, [1]);
        lock.next_request(RULES);
        assert!(lock.forget(1) && !lock.forget(1));
        assert!(matches!(
            lock.admit(0, Fence(1), RULES, &mut None, Instant::now),
            Admitted::Nobody
        ));
        assert!(lock.is_free_here());
    }

    #[test]
    fn several_seats_let_several_clients_in() {
        let mut lock = lock(2);
        join(&mut lock, 1..=3);
        assert_eq!(lock.next_request(RULES).map(|(seat, _)| seat), Some(0));
        assert_eq!(lock.next_request(RULES).map(|(seat, _)| seat), Some(1));
        assert_eq!(lock.next_request(RULES), None);
        lock.admit(1, Fence(1), RULES, &mut None, Instant::now);
        lock.admit(0, Fence(2), RULES, &mut None, Instant::now);
        assert_eq!(inside(&lock), [(2, 2 << 8), (1, 1 << 8)]);
        assert!(!lock.is_free_here());
    }

    #[test]
    fn a_set_is_granted_to_whom_it_was_asked_for() {
        let mut lock = lock(2);
        want(&mut lock, 1, &[1]);
        want(&mut lock, 2, &[2]);
        assert_eq!(lock.next_request(SETS), Some((0, claim(&[1]))));
        assert_eq!(lock.next_request(SETS), Some((1, claim(&[2]))));
        lock.admit(1, Fence(1), SETS, &mut None, Instant::now);
        assert_eq!(inside(&lock), [(2, 1 << 8)]);
        lock.forget(1);
        assert!(matches!(lock.admit(0, Fence(2), SETS, &mut None, Instant::now), Admitted::Nobody));
    }

    #[test]
    fn sets_that_wait_for_others_here_take_no_seat_and_bar_only_what_they_want() {
        let mut lock = lock(4);
        for (ticket, set) in [(1, &[1][..]), (2, &[1, 2]), (3, &[2]), (4, &[3])] {
            want(&mut lock, ticket, set);
        }
        assert_eq!(lock.next_request(SETS), Some((0, claim(&[1]))));
        assert_eq!(lock.next_request(SETS), Some((1, claim(&[3]))), "2 waits for 1, and 3 for 2");
        assert_eq!(lock.next_request(SETS), None);
        lock.forget(2);
        assert_eq!(lock.next_request(SETS), Some((2, claim(&[2]))));
    }

    #[test]
    fn a_set_that_was_given_up_goes_to_the_next_who_wants_the_same() {
        let mut lock = lock(2);
        want(&mut lock, 1, &[1, 2]);
        lock.next_request(SETS);
        lock.forget(1);
        want(&mut lock, 2, &[2]);
        want(&mut lock, 3, &[1, 2]);
        assert_eq!(lock.next_request(SETS), None, "the group has been asked for it already");
        lock.admit(0, Fence(1), SETS, &mut None, Instant::now);
        assert_eq!(inside(&lock), [(3, 1 << 8)]);
    }
}
