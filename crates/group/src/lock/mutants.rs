//! Deliberately broken queues, to show that the checker catches what it should.
//!
//! A mutation replaces one or two steps of a [`Lock`] and leaves the rest alone: no lock asks whether it
//! is broken. Its shard does, where it takes these steps.

use core::fmt;

use catraca_core::Fence;

use super::{Admitted, Asker, Grant, Hold, Left, Lock, Place, Rules, Ticket, Waiter};
use crate::fence::{self, MOST_HANDOVERS};
use crate::time::Time;
use crate::view::Epoch;

/// A broken queue.
#[derive(Clone, Copy)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// What is broken, in one sentence.
    pub breaks: &'static str,
    pub(crate) mutation: &'static dyn Mutation,
}

impl fmt::Debug for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All of them.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "unbounded-handover",
        breaks: "clients of one member hand the lock over as often as a fence can count",
        mutation: &UnboundedHandover,
    },
    Mutant {
        name: "handover-keeps-fence",
        breaks: "whoever gets the lock by hand-over gets the fence of the client before",
        mutation: &HandoverKeepsFence,
    },
    Mutant {
        name: "handover-counts-as-grant",
        breaks: "fences have no part for hand-overs: each adds one to the number of the algorithm",
        mutation: &HandoverCountsAsGrant,
    },
    Mutant {
        name: "fence-without-epoch",
        breaks: "fences have no part for the epoch",
        mutation: &FenceWithoutEpoch,
    },
    Mutant {
        name: "last-come-first-served",
        breaks: "whoever came last overtakes everybody who waits",
        mutation: &LastComeFirstServed,
    },
    Mutant {
        name: "turn-grows-with-its-queue",
        breaks: "whoever comes while the member has its turn makes that turn longer",
        mutation: &TurnGrowsWithItsQueue,
    },
    Mutant {
        name: "equal-turns",
        breaks: "every turn may have as many hand-overs as the longest, however few waited",
        mutation: &EqualTurns,
    },
    Mutant {
        name: "cancelled-stays",
        breaks: "whoever takes a request back stays in the queue",
        mutation: &CancelledStays,
    },
    Mutant {
        name: "unwanted-grant-kept",
        breaks: "a grant that nobody wants any more is not given back",
        mutation: &UnwantedGrantKept,
    },
    Mutant {
        name: "handed-over-and-released",
        breaks: "a release is applied twice: the lock is handed over, and given back to the group too",
        mutation: &HandedOverAndReleased,
    },
    Mutant {
        name: "anybody-releases",
        breaks: "a release counts for whoever is inside, also when it comes from somebody else",
        mutation: &AnybodyReleases,
    },
];

/// One way to break a queue. Every method defaults to the correct step.
pub(crate) trait Mutation: Sync {
    fn admit(
        &self,
        lock: &mut Lock,
        seat: usize,
        number: Fence,
        rules: Rules,
        newcomer: &mut Option<(Ticket, Asker)>,
        now: Time,
    ) -> Admitted {
        lock.admit(seat, number, rules, newcomer, || now)
    }

    fn leave(&self, lock: &mut Lock, ticket: Ticket, rules: Rules, now: Time) -> Left {
        lock.leave(ticket, rules, || now)
    }

    fn forget(&self, lock: &mut Lock, ticket: Ticket) -> bool {
        lock.forget(ticket)
    }
}

/// Whoever is inside with `ticket`.
fn hold(lock: &mut Lock, ticket: Ticket) -> Option<&mut Hold> {
    lock.seats.iter_mut().find_map(|seat| match &mut seat.place {
        Place::Inside(hold) if hold.ticket == ticket => Some(hold),
        _ => None,
    })
}

/// Lets the client with `ticket` leave, and changes the fence of whoever comes next.
fn leave_with_fence(
    lock: &mut Lock,
    ticket: Ticket,
    rules: Rules,
    now: Time,
    next: impl FnOnce(Fence) -> Fence,
) -> Left {
    let before = hold(lock, ticket).map(|hold| hold.fence);
    let mut left = lock.leave(ticket, rules, || now);
    if let (Left::HandedOver(grant), Some(before)) = (&mut left, before)
        && let Some(hold) = hold(lock, grant.ticket)
    {
        hold.fence = next(before);
        grant.fence = hold.fence;
    }
    left
}

/// Takes a step while only the last who came is in the queue.
fn as_if_alone<T>(lock: &mut Lock, step: impl FnOnce(&mut Lock) -> T) -> T {
    let mut others = lock.dismiss();
    let last: Option<(Ticket, Waiter)> = others.pop_last();
    lock.waiting.extend(last);
    let done = step(lock);
    lock.waiting.append(&mut others);
    done
}

struct UnboundedHandover;

impl Mutation for UnboundedHandover {
    fn leave(&self, lock: &mut Lock, ticket: Ticket, rules: Rules, now: Time) -> Left {
        for seat in &mut lock.seats {
            seat.turn = MOST_HANDOVERS;
        }
        lock.leave(ticket, rules, || now)
    }
}

struct HandoverKeepsFence;

impl Mutation for HandoverKeepsFence {
    fn leave(&self, lock: &mut Lock, ticket: Ticket, rules: Rules, now: Time) -> Left {
        leave_with_fence(lock, ticket, rules, now, |before| before)
    }
}

struct HandoverCountsAsGrant;

impl Mutation for HandoverCountsAsGrant {
    fn leave(&self, lock: &mut Lock, ticket: Ticket, rules: Rules, now: Time) -> Left {
        leave_with_fence(lock, ticket, rules, now, |before| {
            let (epoch, number, handover) = fence::unpack(before);
            fence::pack(epoch, Fence(number.0 + 1), handover).unwrap_or(before)
        })
    }
}

struct FenceWithoutEpoch;

impl Mutation for FenceWithoutEpoch {
    fn admit(
        &self,
        lock: &mut Lock,
        seat: usize,
        number: Fence,
        rules: Rules,
        newcomer: &mut Option<(Ticket, Asker)>,
        now: Time,
    ) -> Admitted {
        lock.admit(seat, number, Rules { epoch: Epoch::FIRST, ..rules }, newcomer, || now)
    }
}

struct LastComeFirstServed;

impl Mutation for LastComeFirstServed {
    fn admit(
        &self,
        lock: &mut Lock,
        seat: usize,
        number: Fence,
        rules: Rules,
        newcomer: &mut Option<(Ticket, Asker)>,
        now: Time,
    ) -> Admitted {
        as_if_alone(lock, |lock| lock.admit(seat, number, rules, newcomer, || now))
    }

    fn leave(&self, lock: &mut Lock, ticket: Ticket, rules: Rules, now: Time) -> Left {
        as_if_alone(lock, |lock| lock.leave(ticket, rules, || now))
    }
}

struct TurnGrowsWithItsQueue;

impl Mutation for TurnGrowsWithItsQueue {
    fn leave(&self, lock: &mut Lock, ticket: Ticket, rules: Rules, now: Time) -> Left {
        let waiting = lock.waiting.len();
        for seat in &mut lock.seats {
            if let Place::Inside(hold) = &seat.place {
                let served = usize::from(fence::handovers(hold.fence)) + 1;
                seat.turn = rules.turns.handovers_for(served + waiting);
            }
        }
        lock.leave(ticket, rules, || now)
    }
}

struct EqualTurns;

impl Mutation for EqualTurns {
    fn leave(&self, lock: &mut Lock, ticket: Ticket, rules: Rules, now: Time) -> Left {
        for seat in &mut lock.seats {
            seat.turn = rules.turns.handovers;
        }
        lock.leave(ticket, rules, || now)
    }
}

struct CancelledStays;

impl Mutation for CancelledStays {
    fn forget(&self, lock: &mut Lock, ticket: Ticket) -> bool {
        lock.is_waiting(ticket)
    }
}

struct UnwantedGrantKept;

impl Mutation for UnwantedGrantKept {
    fn admit(
        &self,
        lock: &mut Lock,
        seat: usize,
        number: Fence,
        rules: Rules,
        newcomer: &mut Option<(Ticket, Asker)>,
        now: Time,
    ) -> Admitted {
        match lock.admit(seat, number, rules, newcomer, || now) {
            // As if somebody were inside whom nobody has to be told of.
            Admitted::Nobody => Admitted::Client(Grant {
                ticket: Ticket::MAX,
                request: None,
                fence: Fence::NONE,
                since: None,
                at: now,
            }),
            other => other,
        }
    }
}

struct HandedOverAndReleased;

impl Mutation for HandedOverAndReleased {
    fn leave(&self, lock: &mut Lock, ticket: Ticket, rules: Rules, now: Time) -> Left {
        let is_it = |place: &Place| matches!(place, Place::Inside(hold) if hold.ticket == ticket);
        let seat = lock.seats.iter().position(|seat| is_it(&seat.place));
        match (lock.leave(ticket, rules, || now), seat) {
            (Left::HandedOver(_), Some(seat)) => Left::Release(seat),
            (left, _) => left,
        }
    }
}

struct AnybodyReleases;

impl Mutation for AnybodyReleases {
    fn leave(&self, lock: &mut Lock, ticket: Ticket, rules: Rules, now: Time) -> Left {
        let inside = lock.holds().next().map(|hold| hold.ticket);
        let left = match lock.fence_of(ticket) {
            Some(_) => ticket,
            None => inside.unwrap_or(ticket),
        };
        lock.leave(left, rules, || now)
    }
}
