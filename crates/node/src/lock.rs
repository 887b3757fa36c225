//! One lock at one node: who waits here, who is inside, and what the group was asked for.
//!
//! The group knows one requester per seat; a lock has one seat at each node, a semaphore or a set of
//! locks has several. The clients of this node queue in front of the seats, first come, first
//! served. A client that leaves may pass the lock straight to the next one here, a bounded number of
//! times in a row, because clients of other nodes may be waiting too.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Instant;

use catraca_core::{Claim, Fence};
use smallvec::SmallVec;

use crate::fence;
use crate::kind::Slot;

/// Tells apart who asks at one node. Later askers have larger tickets.
pub(crate) type Ticket = u64;

/// Who is responsible for a request: the application that runs the node, or a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner(pub(crate) u64);

/// Somebody who waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) owner: Owner,
    /// Since when; nothing for somebody who has only just come.
    pub(crate) since: Option<Instant>,
    pub(crate) claim: Claim,
    /// The names behind the claim, where it is a set.
    pub(crate) names: Option<Box<[Box<str>]>>,
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
    pub(crate) names: Option<Box<[Box<str>]>>,
    /// What the algorithm numbered this entry with.
    number: Fence,
    handovers: u8,
}

#[derive(Debug)]
enum Place {
    Idle,
    /// The group has been asked; for sets, on behalf of this ticket.
    Asking(Option<Ticket>),
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

    /// Puts somebody at the end of the queue.
    pub(crate) fn join(&mut self, ticket: Ticket, waiter: Waiter) {
        self.waiting.insert(ticket, waiter);
    }

    /// An idle seat for `ticket`, which has just come, if nobody else waits.
    pub(crate) fn ask_directly(&mut self, ticket: Ticket, rules: Rules) -> Option<usize> {
        if !self.waiting.is_empty() {
            return None;
        }
        let idle = self.seats.iter().position(|seat| matches!(seat.place, Place::Idle))?;
        self.seats[idle].place = Place::Asking(rules.sets.then_some(ticket));
        Some(idle)
    }

    /// An idle seat and what the group is to be asked for, if somebody waits for whom it has not
    /// been asked yet.
    pub(crate) fn next_request(&mut self, rules: Rules) -> Option<(usize, Claim)> {
        if self.waiting.is_empty() {
            return None;
        }
        let idle = self.seats.iter().position(|seat| matches!(seat.place, Place::Idle))?;
        let asking = self.seats.iter().filter_map(|seat| match seat.place {
            Place::Asking(ticket) => Some(ticket),
            _ => None,
        });
        let (ticket, claim) = if rules.sets {
            let asked: SmallVec<[Ticket; 8]> = asking.flatten().collect();
            let (&ticket, waiter) =
                self.waiting.iter().find(|(ticket, _)| !asked.contains(ticket))?;
            (Some(ticket), waiter.claim.clone())
        } else {
            if asking.count() >= self.waiting.len() {
                return None;
            }
            (None, Claim::single())
        };
        self.seats[idle].place = Place::Asking(ticket);
        Some((idle, claim))
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
        let Place::Asking(ticket) = self.seats[seat].place else { return Admitted::Unasked };
        let Some(fence) = fence::pack(rules.epoch, number, 0) else { return Admitted::Exhausted };
        let queued = call(&mut self.waiting, ticket);
        let new = |(new, _): &mut (Ticket, Waiter)| ticket.is_none_or(|ticket| ticket == *new);
        let next = queued.or_else(|| newcomer.take_if(new));
        let Some((ticket, waiter)) = next else {
            self.seats[seat].place = Place::Idle;
            return Admitted::Nobody;
        };
        let Waiter { owner, names, waker, .. } = waiter;
        let hold = Hold { ticket, owner, since: now(), fence, names, number, handovers: 0 };
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
            (hold.fence, hold.names) = (fence, waiter.names);
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
    use catraca_core::{NodeId, ResourceId};

    use super::*;
    use crate::kind::kind_of;

    const RULES: Rules = Rules { epoch: 1, handovers: 2, sets: false };
    const SETS: Rules = Rules { epoch: 1, handovers: 2, sets: true };

    fn lock(seats: u32) -> Lock {
        let mut kind = kind_of(&Spec::new("naimi-trehel", 8)).unwrap();
        Lock::new("a", 1, 0, 0, (0..seats).map(|seat| kind.create(NodeId(seat))))
    }

    fn waiter(claim: Claim) -> Waiter {
        Waiter { owner: Owner(0), since: None, claim, names: None, waker: None }
    }

    fn join(lock: &mut Lock, tickets: impl IntoIterator<Item = Ticket>) {
        for ticket in tickets {
            lock.join(ticket, waiter(Claim::single()));
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
        for ticket in [1, 2] {
            lock.join(ticket, waiter(Claim::of([ResourceId(ticket as u32)])));
        }
        assert_eq!(lock.next_request(SETS), Some((0, Claim::of([ResourceId(1)]))));
        assert_eq!(lock.next_request(SETS), Some((1, Claim::of([ResourceId(2)]))));
        lock.admit(1, Fence(1), SETS, &mut None, Instant::now);
        assert_eq!(inside(&lock), [(2, 1 << 8)]);
        lock.forget(1);
        assert!(matches!(lock.admit(0, Fence(2), SETS, &mut None, Instant::now), Admitted::Nobody));
    }
}
