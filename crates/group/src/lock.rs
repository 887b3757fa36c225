//! One lock at one member: who waits here, who is inside, and what the group was asked for.
//!
//! The group knows one requester per seat; a lock has one seat at each member, a semaphore or a set of
//! locks has several. The clients of this member queue in front of the seats, first come, first
//! served. A client that leaves may pass the lock straight to the next one here, a bounded number of
//! times in a row, because clients of other nodes may be waiting too.
//!
//! Where clients want sets, a seat is taken only for a set that has nothing in common with those of
//! earlier clients of this member: the others wait for these anyway.

pub(crate) mod mutants;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use catraca_core::{Claim, Fence, ResourceId};
use smallvec::SmallVec;

use crate::fence;
use crate::kind::Slot;
use crate::request::RequestId;
use crate::time::Time;
use crate::view::Epoch;

/// Tells apart who asks at one shard. Later askers have larger tickets.
pub type Ticket = u64;

/// Who is responsible for a request: the program that runs the member, or a session by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u64);

impl Owner {
    /// The program that runs the member.
    pub const PROGRAM: Owner = Owner(0);
}

/// So many of those who wait for sets are looked at, from the first on, for one whose turn it is.
const MOST_LOOKED_AT: usize = 1024;

/// A set of locks, by their names and by the resources that these are put into.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Set {
    pub(crate) names: Box<[Box<str>]>,
    pub(crate) claim: Claim,
}

/// Who asks, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asker {
    pub(crate) owner: Owner,
    /// The request that this is a part of; none for a caller that waits for its ticket itself.
    pub(crate) request: Option<RequestId>,
    /// What for, where clients want sets.
    pub(crate) set: Option<Box<Set>>,
}

/// Somebody who waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Waiter {
    pub(crate) asker: Asker,
    pub(crate) since: Time,
}

/// Somebody who is inside: an entry of the table of holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hold {
    pub(crate) ticket: Ticket,
    pub(crate) asker: Asker,
    pub(crate) since: Time,
    pub(crate) fence: Fence,
    /// Whoever has a larger ticket came after this round of the member's turn had begun, and waits for
    /// the next one.
    round: Ticket,
    /// How many rounds of this turn are over.
    rounds: u8,
    /// How often the lock was handed over here since then.
    handovers: u8,
}

impl Hold {
    /// Begins another round, up to those with ticket `last`; false if the turn has no more.
    fn next_round(&mut self, last: Ticket, rules: Rules) -> bool {
        let has_more = self.rounds + 1 < rules.rounds;
        if has_more {
            self.rounds += 1;
            self.round = last;
        }
        has_more
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    Idle,
    /// The group has been asked; for a set, this one on behalf of this ticket.
    Asking(Option<(Ticket, Claim)>),
    Inside(Hold),
}

/// One requester in the eyes of the group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Seat {
    pub(crate) slot: Slot,
    place: Place,
}

/// How a lock treats its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rules {
    pub(crate) epoch: Epoch,
    /// How often in a row the lock goes from one client of this member to the next, at the most.
    pub(crate) handovers: u8,
    /// How many rounds a turn of this member has: in each of them those who wait are served once.
    pub(crate) rounds: u8,
    /// Whether requests differ: each is for a set of its own.
    pub(crate) sets: bool,
}

/// Whose turn it is, and with which fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) ticket: Ticket,
    pub(crate) request: Option<RequestId>,
    pub(crate) fence: Fence,
}

/// What follows from somebody's leaving.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The next client here is inside.
    HandedOver(Grant),
    /// The group is to be told that this seat leaves.
    Release(usize),
    /// The ticket is not inside.
    NotInside,
}

/// What follows from a grant of the group.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// A client is inside.
    Client(Grant),
    /// Nobody here wants it any more: the group is to be told that this seat leaves.
    Nobody,
    /// The group counted further than a fence can: nobody can be let in, and the group is to be told
    /// that this seat leaves.
    Exhausted,
    /// Nothing was asked for.
    Unasked,
}

/// One lock at one member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

    /// The same lock in another view: whoever is inside stays, whoever waits has yet to ask.
    pub(crate) fn reseat(&mut self, kind: u16, home: u16, slots: impl Iterator<Item = Slot>) {
        (self.kind, self.home) = (kind, home);
        for (seat, slot) in self.seats.iter_mut().zip(slots) {
            seat.slot = slot;
            if let Place::Asking(_) = seat.place {
                seat.place = Place::Idle;
            }
        }
    }

    /// Where the algorithm's state of an idle seat is, if there is one.
    pub(crate) fn idle_slot(&self) -> Option<Slot> {
        self.idle_seat().map(|seat| self.seats[seat].slot)
    }

    /// Where the algorithm's state of this seat is.
    pub(crate) fn slot(&self, seat: usize) -> Option<Slot> {
        self.seats.get(seat).map(|seat| seat.slot)
    }

    /// Whether a client could be inside without waiting for another client of this member.
    pub(crate) fn is_free_here(&self) -> bool {
        self.waiting.is_empty()
            && self.seats.iter().any(|seat| !matches!(seat.place, Place::Inside(_)))
    }

    /// Whether a client of this member holds or awaits it.
    pub(crate) fn is_used_here(&self) -> bool {
        !self.waiting.is_empty() || self.holds().next().is_some()
    }

    /// Puts somebody at the end of the queue.
    pub(crate) fn join(&mut self, ticket: Ticket, asker: Asker, since: Time) {
        self.waiting.insert(ticket, Waiter { asker, since });
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
                Place::Inside(Hold { asker: Asker { set: Some(set), .. }, .. }) => {
                    before.extend(set.claim.resources());
                }
                _ => {}
            }
        }
        for (&ticket, waiter) in self.waiting.iter().take(MOST_LOOKED_AT) {
            let claim = &waiter.asker.set.as_ref()?.claim;
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
        let wants_it =
            |waiter: &Waiter| waiter.asker.set.as_ref().is_some_and(|set| set.claim == *claim);
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
        newcomer: &mut Option<(Ticket, Asker)>,
        now: impl FnOnce() -> Time,
    ) -> Admitted {
        let Place::Asking(asked) = &self.seats[seat].place else { return Admitted::Unasked };
        let Some(fence) = fence::pack(rules.epoch, number, 0) else {
            self.seats[seat].place = Place::Idle;
            return Admitted::Exhausted;
        };
        let next = match asked {
            None => call(&mut self.waiting, None)
                .map(|(ticket, waiter)| (ticket, waiter.asker))
                .or_else(|| newcomer.take()),
            Some((ticket, claim)) => {
                let heir = self.heir(*ticket, claim);
                let called = heir.and_then(|ticket| call(&mut self.waiting, Some(ticket)));
                called.map(|(ticket, waiter)| (ticket, waiter.asker))
            }
        };
        let Some((ticket, asker)) = next else {
            self.seats[seat].place = Place::Idle;
            return Admitted::Nobody;
        };
        let round = self.waiting.last_key_value().map_or(ticket, |(&last, _)| last);
        let request = asker.request;
        let hold = Hold { ticket, asker, since: now(), fence, round, rounds: 0, handovers: 0 };
        self.seats[seat].place = Place::Inside(hold);
        Admitted::Client(Grant { ticket, request, fence })
    }

    /// The client with `ticket` leaves.
    ///
    /// Members take turns, and so should clients: those who waited here when the group granted the
    /// lock are served once each, up to the bound. Whoever came later waits for the next round. A turn
    /// has the same number of rounds at every member, so a client is served as often wherever it is.
    pub(crate) fn leave(
        &mut self,
        ticket: Ticket,
        rules: Rules,
        now: impl FnOnce() -> Time,
    ) -> Left {
        let is_it =
            |seat: &Seat| matches!(&seat.place, Place::Inside(hold) if hold.ticket == ticket);
        let Some(index) = self.seats.iter().position(is_it) else { return Left::NotInside };
        let seat = &mut self.seats[index];
        if let Place::Inside(hold) = &mut seat.place
            && !rules.sets
            && hold.handovers < rules.handovers
            && let Some((&first, _)) = self.waiting.first_key_value()
            && let Some((&last, _)) = self.waiting.last_key_value()
            && (first <= hold.round || hold.next_round(last, rules))
            && let Some(fence) = fence::after_handover(hold.fence)
            && let Some((ticket, waiter)) = call(&mut self.waiting, None)
        {
            hold.handovers += 1;
            let request = waiter.asker.request;
            (hold.ticket, hold.asker, hold.since) = (ticket, waiter.asker, now());
            hold.fence = fence;
            return Left::HandedOver(Grant { ticket, request, fence });
        }
        seat.place = Place::Idle;
        Left::Release(index)
    }

    /// The client with `ticket` no longer waits. Returns false if it was not waiting.
    pub(crate) fn forget(&mut self, ticket: Ticket) -> bool {
        call(&mut self.waiting, Some(ticket)).is_some()
    }

    /// Nobody waits any more. Returns who did.
    pub(crate) fn dismiss(&mut self) -> BTreeMap<Ticket, Waiter> {
        core::mem::take(&mut self.waiting)
    }

    /// The fence of `ticket`, if it is inside.
    pub(crate) fn fence_of(&self, ticket: Ticket) -> Option<Fence> {
        self.holds().find(|hold| hold.ticket == ticket).map(|hold| hold.fence)
    }

    /// Whether `ticket` waits.
    pub(crate) fn is_waiting(&self, ticket: Ticket) -> bool {
        self.waiting.contains_key(&ticket)
    }

    /// Whether nobody here is inside or waits, and nothing has been asked for.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_idle = |seat: &Seat| matches!(seat.place, Place::Idle);
        self.waiting.is_empty() && self.seats.iter().all(is_idle)
    }

    /// How many seats it has here.
    pub(crate) fn seats(&self) -> usize {
        self.seats.len()
    }

    /// Everybody inside, with their seats.
    pub(crate) fn seated(&self) -> impl Iterator<Item = (usize, &Hold)> {
        self.seats.iter().enumerate().filter_map(|(index, seat)| match &seat.place {
            Place::Inside(hold) => Some((index, hold)),
            _ => None,
        })
    }

    /// Everybody inside, in the order of the seats.
    pub(crate) fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.seated().map(|(_, hold)| hold)
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
    use alloc::vec::Vec;

    use catraca_algorithms::Spec;
    use catraca_core::{NodeId, Start};

    use super::*;
    use crate::kind::kind_of;

    const RULES: Rules = Rules { epoch: Epoch(1), handovers: 2, rounds: 1, sets: false };
    const SETS: Rules = Rules { epoch: Epoch(1), handovers: 2, rounds: 1, sets: true };

    fn lock(seats: u32) -> Lock {
        let mut kind = kind_of(&Spec::new("naimi-trehel", 8)).unwrap();
        Lock::new("a", 1, 0, 0, (0..seats).map(|seat| kind.create(NodeId(seat), &Start::idle())))
    }

    fn asker(set: Option<Box<Set>>) -> Asker {
        Asker { owner: Owner::PROGRAM, request: None, set }
    }

    fn now() -> Time {
        Time(0)
    }

    fn want(lock: &mut Lock, ticket: Ticket, resources: &[u32]) {
        let claim = claim(resources);
        lock.join(ticket, asker(Some(Box::new(Set { names: Box::default(), claim }))), now());
    }

    fn claim(resources: &[u32]) -> Claim {
        Claim::of(resources.iter().copied().map(ResourceId))
    }

    fn join(lock: &mut Lock, tickets: impl IntoIterator<Item = Ticket>) {
        for ticket in tickets {
            lock.join(ticket, asker(None), now());
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
        assert!(matches!(lock.admit(0, Fence(7), RULES, &mut None, now), Admitted::Client(_)));
        assert_eq!(inside(&lock), [(1, 7 << 6)]);
    }

    #[test]
    fn a_lock_is_handed_over_here_so_often_and_then_given_back() {
        let mut lock = lock(1);
        join(&mut lock, 1..=4);
        lock.next_request(RULES);
        lock.admit(0, Fence(7), RULES, &mut None, now);
        for (ticket, handover) in [(1, 1), (2, 2)] {
            assert!(matches!(lock.leave(ticket, RULES, now), Left::HandedOver(_)));
            assert_eq!(inside(&lock), [(ticket + 1, 7 << 6 | handover)]);
        }
        assert!(matches!(lock.leave(3, RULES, now), Left::Release(0)));
        assert_eq!(lock.next_request(RULES), Some((0, Claim::single())), "the fourth still waits");
    }

    #[test]
    fn nobody_leaves_twice() {
        let mut lock = lock(1);
        join(&mut lock, [1]);
        assert!(matches!(lock.leave(1, RULES, now), Left::NotInside));
        lock.next_request(RULES);
        lock.admit(0, Fence(1), RULES, &mut None, now);
        assert!(matches!(lock.leave(1, RULES, now), Left::Release(0)));
        assert!(matches!(lock.leave(1, RULES, now), Left::NotInside));
        assert!(matches!(lock.admit(0, Fence(2), RULES, &mut None, now), Admitted::Unasked));
    }

    #[test]
    fn a_grant_that_nobody_wants_any_more_is_given_back() {
        let mut lock = lock(1);
        join(&mut lock, [1]);
        lock.next_request(RULES);
        assert!(lock.forget(1) && !lock.forget(1));
        assert!(matches!(lock.admit(0, Fence(1), RULES, &mut None, now), Admitted::Nobody));
        assert!(lock.is_free_here());
    }

    #[test]
    fn several_seats_let_several_clients_in() {
        let mut lock = lock(2);
        join(&mut lock, 1..=3);
        assert_eq!(lock.next_request(RULES).map(|(seat, _)| seat), Some(0));
        assert_eq!(lock.next_request(RULES).map(|(seat, _)| seat), Some(1));
        assert_eq!(lock.next_request(RULES), None);
        lock.admit(1, Fence(1), RULES, &mut None, now);
        lock.admit(0, Fence(2), RULES, &mut None, now);
        assert_eq!(inside(&lock), [(2, 2 << 6), (1, 1 << 6)]);
        assert!(!lock.is_free_here());
    }

    #[test]
    fn a_set_is_granted_to_whom_it_was_asked_for() {
        let mut lock = lock(2);
        want(&mut lock, 1, &[1]);
        want(&mut lock, 2, &[2]);
        assert_eq!(lock.next_request(SETS), Some((0, claim(&[1]))));
        assert_eq!(lock.next_request(SETS), Some((1, claim(&[2]))));
        lock.admit(1, Fence(1), SETS, &mut None, now);
        assert_eq!(inside(&lock), [(2, 1 << 6)]);
        lock.forget(1);
        assert!(matches!(lock.admit(0, Fence(2), SETS, &mut None, now), Admitted::Nobody));
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
        lock.admit(0, Fence(1), SETS, &mut None, now);
        assert_eq!(inside(&lock), [(3, 1 << 6)]);
    }

    #[test]
    fn who_comes_after_the_grant_waits_for_the_next_turn() {
        let mut lock = lock(1);
        join(&mut lock, 1..=2);
        lock.next_request(RULES);
        lock.admit(0, Fence(7), RULES, &mut None, now);
        join(&mut lock, [3]);
        assert!(matches!(lock.leave(1, RULES, now), Left::HandedOver(Grant { ticket: 2, .. })));
        assert_eq!(lock.leave(2, RULES, now), Left::Release(0), "3 came too late for this turn");
        lock.next_request(RULES);
        lock.admit(0, Fence(8), RULES, &mut None, now);
        assert_eq!(inside(&lock), [(3, 8 << 6)]);
    }

    #[test]
    fn in_a_turn_of_two_rounds_newcomers_are_served_in_the_second_and_no_later() {
        let rules = Rules { rounds: 2, handovers: 9, ..RULES };
        let mut lock = lock(1);
        join(&mut lock, [1]);
        lock.next_request(rules);
        lock.admit(0, Fence(7), rules, &mut None, now);
        join(&mut lock, 2..=3);
        for ticket in 1..=2 {
            let left = lock.leave(ticket, rules, now);
            assert!(
                matches!(left, Left::HandedOver(Grant { ticket: next, .. }) if next == ticket + 1)
            );
            join(&mut lock, [ticket + 10]);
        }
        assert_eq!(lock.leave(3, rules, now), Left::Release(0), "the others came too late");
    }

    #[test]
    fn a_number_that_is_too_large_lets_nobody_in_and_leaves_the_seat_free() {
        let mut lock = lock(1);
        join(&mut lock, [1]);
        lock.next_request(RULES);
        let admitted = lock.admit(0, Fence(1 << 40), RULES, &mut None, now);
        assert_eq!(admitted, Admitted::Exhausted);
        assert_eq!(lock.next_request(RULES), Some((0, Claim::single())));
    }

    #[test]
    fn in_another_view_who_is_inside_stays_and_who_waits_has_yet_to_ask() {
        let mut lock = lock(2);
        join(&mut lock, 1..=2);
        lock.next_request(RULES);
        lock.next_request(RULES);
        lock.admit(0, Fence(7), RULES, &mut None, now);
        let slots: Vec<Slot> = [1, 0].iter().map(|&seat| lock.slot(seat).unwrap()).collect();
        lock.reseat(0, 0, slots.into_iter());
        assert_eq!(inside(&lock), [(1, 7 << 6)]);
        assert_eq!(lock.next_request(RULES), Some((1, Claim::single())));
    }
}
