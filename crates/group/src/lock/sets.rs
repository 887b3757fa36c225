//! Sets of locks at one member: whose set the group is asked for next, and who gets it.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use catraca_core::{Claim, ResourceId};

use super::{Asker, Hold, Lock, Place, Ticket, Waiter};

/// So many of those who wait for sets are looked at, from the first on, for one whose turn it is.
const MOST_LOOKED_AT: usize = 1024;

/// A set of locks, by their names and by the resources that these are put into.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Set {
    pub(crate) names: Box<[Box<str>]>,
    pub(crate) claim: Claim,
}

impl Lock {
    /// The first who waits for a set that has nothing in common with those of anybody before here.
    pub(super) fn next_set(&self) -> Option<(Ticket, Claim)> {
        let mut before: BTreeSet<ResourceId> = BTreeSet::new();
        for seat in &self.seats {
            match &seat.place {
                Place::Asking(Some((_, claim)), _) => before.extend(claim.resources()),
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
    pub(super) fn heir(&self, ticket: Ticket, claim: &Claim) -> Option<Ticket> {
        if self.waiting.contains_key(&ticket) {
            return Some(ticket);
        }
        let wants_it =
            |waiter: &Waiter| waiter.asker.set.as_ref().is_some_and(|set| set.claim == *claim);
        let mut first = self.waiting.iter().take(MOST_LOOKED_AT);
        first.find(|(_, waiter)| wants_it(waiter)).map(|(&ticket, _)| ticket)
    }
}
