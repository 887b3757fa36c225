//! One lock at one member: who waits here, who is inside, and what the group was asked for.
//!
//! The group knows one requester per seat; a lock has one seat at each member, a semaphore or a set of
//! locks has several. The clients of this member queue in front of the seats, first come, first
//! served. A client that leaves may pass the lock straight to the next one here, a bounded number of
//! times in a row ([`Turns`]), because clients of other nodes may be waiting too.
//!
//! Where clients want sets, a seat is taken only for a set that has nothing in common with those of
//! earlier clients of this member: the others wait for these anyway.

pub(crate) mod mutants;
mod sets;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::hash::{Hash, Hasher};

use catraca_core::{Claim, Fence};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::fence;
use crate::kind::Slot;
use crate::request::RequestId;
use crate::time::Time;
use crate::turns::Turns;
use crate::view::Epoch;
pub(crate) use sets::Set;

/// Tells apart who asks at one shard. Later askers have larger tickets.
pub type Ticket = u64;

/// Who is responsible for a request: the program that runs the member, or a session by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u64);

impl Owner {
    /// The program that runs the member.
    pub const PROGRAM: Owner = Owner(0);
    /// Whoever asks for durable holds: these have owners of their own.
    pub const DURABLE: Owner = Owner(u64::MAX);
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) asker: Asker,
    pub(crate) since: Time,
}

/// Since when somebody waits is shown, and decides nothing.
impl Hash for Waiter {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.asker.hash(hasher);
    }
}

/// Somebody who is inside: an entry of the table of holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) ticket: Ticket,
    pub(crate) asker: Asker,
    pub(crate) since: Time,
    pub(crate) fence: Fence,
}

/// Since when somebody is inside is shown, and decides nothing.
impl Hash for Hold {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.ticket, &self.asker, self.fence).hash(hasher);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    Idle(Last),
    /// The group has been asked; for a set, this one on behalf of this ticket.
    Asking(Option<(Ticket, Claim)>, Last),
    Inside(Hold),
}

impl Place {
    /// What was granted last in this seat in the present view.
    fn last(&self) -> Last {
        match self {
            Place::Idle(last) | Place::Asking(_, last) => *last,
            Place::Inside(hold) => Last(hold.fence),
        }
    }
}

/// The fence of who was inside last; 0 if nobody was in the present view. It is shown, and decides nothing.
#[derive(Clone, Copy, Debug)]
struct Last(Fence);

impl Last {
    const NONE: Last = Last(Fence(0));
}

impl PartialEq for Last {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Last {}

impl Hash for Last {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// One requester in the eyes of the group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Seat {
    pub(crate) slot: Slot,
    /// How often the lock is handed over here in this turn, at the most. The fence counts how often it
    /// was. It is here rather than in the hold because here there is room: a node has very many locks.
    turn: u8,
    /// Of how many clients nobody may be missing after the first round of this turn.
    company: u8,
    /// Whether whoever is inside has left while nothing could be done about it: between two views.
    has_left: bool,
    place: Place,
}

impl Seat {
    fn idle(slot: Slot) -> Self {
        Seat { slot, turn: 0, company: 0, has_left: false, place: Place::Idle(Last::NONE) }
    }
}

/// What a seat is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stand {
    /// Nothing.
    Idle,
    /// It has asked the group.
    Asking,
    /// A client is inside.
    Inside,
}

/// How a lock treats its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rules {
    pub(crate) epoch: Epoch,
    pub(crate) turns: Turns,
    /// Whether requests differ: each is for a set of its own.
    pub(crate) sets: bool,
}

/// Whose turn it is, and with which fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) ticket: Ticket,
    pub(crate) request: Option<RequestId>,
    pub(crate) fence: Fence,
    /// Since when it has waited, if it had to wait.
    pub(crate) since: Option<Time>,
    /// When it was let in.
    pub(crate) at: Time,
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
    /// The group counted further than a fence can: nobody can be let in.
    Exhausted,
    /// Nothing was asked for.
    Unasked,
}

/// So many clients of a member wait for one lock, and no more: those who hold up others are told so while there
/// is still room for requests for other locks.
pub const MOST_WAITERS: usize = 50_000;

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
        let seats = slots.map(Seat::idle).collect();
        Lock { name: name.into(), permits, kind, home, seats, waiting: BTreeMap::new() }
    }

    /// The same lock in another view: whoever is inside stays, whoever waits has yet to ask.
    pub(crate) fn reseat(&mut self, kind: u16, home: u16, slots: impl Iterator<Item = Slot>) {
        (self.kind, self.home) = (kind, home);
        let mut before = core::mem::take(&mut self.seats).into_iter();
        let seat = |slot| match before.next() {
            Some(seat) if matches!(seat.place, Place::Inside(_)) => Seat { slot, ..seat },
            _ => Seat::idle(slot),
        };
        self.seats = slots.map(seat).collect();
    }

    /// Whoever is inside with `ticket` has not been told, and waits again.
    pub(crate) fn take_back(&mut self, ticket: Ticket) {
        for seat in &mut self.seats {
            if matches!(&seat.place, Place::Inside(hold) if hold.ticket == ticket)
                && let Place::Inside(hold) =
                    core::mem::replace(&mut seat.place, Place::Idle(Last::NONE))
            {
                self.waiting.insert(ticket, Waiter { asker: hold.asker, since: hold.since });
            }
        }
    }

    /// Whoever is inside with `ticket` leaves, which is carried out later. Returns false if it is not
    /// inside.
    pub(crate) fn note_leaving(&mut self, ticket: Ticket) -> bool {
        let is_it = |seat: &&mut Seat| {
            let is_inside = matches!(&seat.place, Place::Inside(hold) if hold.ticket == ticket);
            is_inside && !seat.has_left
        };
        let seat = self.seats.iter_mut().find(is_it);
        seat.map(|seat| seat.has_left = true).is_some()
    }

    /// Who has left while nothing could be done about it.
    pub(crate) fn left(&self) -> impl Iterator<Item = Ticket> {
        self.seated().filter(|&(seat, _)| self.seats[seat].has_left).map(|(_, hold)| hold.ticket)
    }

    /// Nobody is inside any more, and the group has been asked for nothing.
    pub(crate) fn clear(&mut self) {
        for seat in &mut self.seats {
            seat.place = Place::Idle(Last::NONE);
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

    /// Whether nobody else may wait here.
    pub(crate) fn is_crowded(&self) -> bool {
        self.waiting.len() >= MOST_WAITERS
    }

    /// Whether a client could be inside without waiting for another client of this member.
    pub(crate) fn is_free_here(&self) -> bool {
        self.waiting.is_empty()
            && self.seats.iter().any(|seat| !matches!(seat.place, Place::Inside(_)))
    }

    /// Whether a client of this member holds or awaits it.
    pub(crate) fn is_used_here(&self) -> bool {
        !self.waiting.is_empty() || self.seated().next().is_some()
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
        let last = self.seats[idle].place.last();
        self.seats[idle].place = Place::Asking(None, last);
        Some(idle)
    }

    fn idle_seat(&self) -> Option<usize> {
        self.seats.iter().position(|seat| matches!(seat.place, Place::Idle(_)))
    }

    /// An idle seat and what the group is to be asked for, if somebody waits for whom it has not
    /// been asked yet.
    pub(crate) fn next_request(&mut self, rules: Rules) -> Option<(usize, Claim)> {
        if self.waiting.is_empty() {
            return None;
        }
        let idle = self.idle_seat()?;
        let last = self.seats[idle].place.last();
        if rules.sets {
            let (ticket, claim) = self.next_set()?;
            self.seats[idle].place = Place::Asking(Some((ticket, claim.clone())), last);
            return Some((idle, claim));
        }
        let is_asking = |seat: &&Seat| matches!(seat.place, Place::Asking(..));
        if self.seats.iter().filter(is_asking).count() >= self.waiting.len() {
            return None;
        }
        self.seats[idle].place = Place::Asking(None, last);
        Some((idle, Claim::single()))
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
        let Place::Asking(asked, last) = &self.seats[seat].place else { return Admitted::Unasked };
        let last = *last;
        let Some(fence) = fence::pack(rules.epoch, number, 0) else { return Admitted::Exhausted };
        let waited =
            |(ticket, waiter): (Ticket, Waiter)| (ticket, waiter.asker, Some(waiter.since));
        let next = match asked {
            None => call(&mut self.waiting, None)
                .map(waited)
                .or_else(|| newcomer.take().map(|(ticket, asker)| (ticket, asker, None))),
            Some((ticket, claim)) => {
                let heir = self.heir(*ticket, claim);
                heir.and_then(|ticket| call(&mut self.waiting, Some(ticket))).map(waited)
            }
        };
        let Some((ticket, asker, since)) = next else {
            self.seats[seat].place = Place::Idle(last);
            return Admitted::Nobody;
        };
        let request = asker.request;
        let clients = self.waiting.len() + 1;
        self.seats[seat].turn = rules.turns.handovers_for(clients);
        self.seats[seat].company = rules.turns.company(clients);
        self.seats[seat].has_left = false;
        let at = now();
        self.seats[seat].place = Place::Inside(Hold { ticket, asker, since: at, fence });
        Admitted::Client(Grant { ticket, request, fence, since, at })
    }

    /// A hold that was elsewhere has `seat` from the next view on.
    pub(crate) fn adopt(&mut self, seat: usize, hold: Hold) {
        while self.seats.len() <= seat {
            self.seats.push(Seat::idle(Slot::NONE));
        }
        let slot = self.seats[seat].slot;
        self.seats[seat] = Seat { place: Place::Inside(hold), ..Seat::idle(slot) };
    }

    /// Nobody can be let in by the grant that `seat` has got.
    pub(crate) fn decline(&mut self, seat: usize) {
        self.seats[seat].place = Place::Idle(self.seats[seat].place.last());
    }

    /// The client with `ticket` leaves.
    ///
    /// It passes the lock on to the next client here, or gives it back if the turn is over.
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
            && fence::handovers(hold.fence) < seat.turn
            && Turns::goes_on(seat.company, fence::handovers(hold.fence), self.waiting.len())
            && let Some(fence) = fence::after_handover(hold.fence)
            && let Some((ticket, waiter)) = call(&mut self.waiting, None)
        {
            let (request, since, at) = (waiter.asker.request, Some(waiter.since), now());
            (hold.ticket, hold.asker, hold.since) = (ticket, waiter.asker, at);
            (hold.fence, seat.has_left) = (fence, false);
            return Left::HandedOver(Grant { ticket, request, fence, since, at });
        }
        (seat.turn, seat.company) = (0, 0);
        seat.place = Place::Idle(seat.place.last());
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

    /// What `ticket` was granted, where clients want sets.
    pub(crate) fn claim_of(&self, ticket: Ticket) -> Option<Claim> {
        let hold = self.holds().find(|hold| hold.ticket == ticket)?;
        hold.asker.set.as_ref().map(|set| set.claim.clone())
    }

    /// The newest fence that is known here: of whoever is inside, or was in the present view.
    pub(crate) fn newest_fence(&self) -> Option<Fence> {
        let newest = self.seats.iter().map(|seat| seat.place.last().0).max();
        newest.filter(|fence| fence.0 > 0)
    }

    /// Whether `ticket` waits.
    pub(crate) fn is_waiting(&self, ticket: Ticket) -> bool {
        self.waiting.contains_key(&ticket)
    }

    /// Who waits with `ticket`.
    pub(crate) fn waiter(&self, ticket: Ticket) -> Option<&Asker> {
        self.waiting.get(&ticket).map(|waiter| &waiter.asker)
    }

    /// Whether nobody here is inside or waits, and nothing has been asked for.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_idle = |seat: &Seat| matches!(seat.place, Place::Idle(_));
        self.waiting.is_empty() && self.seats.iter().all(is_idle)
    }

    /// What a seat is doing.
    pub(crate) fn stand(&self, seat: usize) -> Stand {
        match self.seats.get(seat).map(|seat| &seat.place) {
            Some(Place::Inside(_)) => Stand::Inside,
            Some(Place::Asking(..)) => Stand::Asking,
            Some(Place::Idle(_)) | None => Stand::Idle,
        }
    }

    /// How many seats it has here.
    pub(crate) fn seats(&self) -> usize {
        self.seats.len()
    }

    /// Everybody inside, with their seats, and whoever has left without anybody else knowing of it.
    pub(crate) fn seated(&self) -> impl Iterator<Item = (usize, &Hold)> {
        self.seats.iter().enumerate().filter_map(|(index, seat)| match &seat.place {
            Place::Inside(hold) => Some((index, hold)),
            _ => None,
        })
    }

    /// Everybody inside, in the order of the seats.
    pub(crate) fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.seated().filter(|&(seat, _)| !self.seats[seat].has_left).map(|(_, hold)| hold)
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
mod tests;
