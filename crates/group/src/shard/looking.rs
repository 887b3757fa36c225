//! What there is to see of a shard: who is inside which lock, and what has been counted.

use alloc::vec::Vec;

use catraca_core::{Claim, Fence};

use super::creating::Family;
use super::{Counts, Key, Shard};
use crate::driver::LockIndex;
use crate::histogram::Times;
use crate::lock::{Hold, Lock, Ticket};
use crate::request::RequestId;
use crate::survey::Survey;
use crate::time::Time;

impl Shard {
    /// Whether nobody of this member holds or awaits what `key` names.
    pub fn is_free_here(&self, key: Key<'_>, hash: u64) -> bool {
        self.find(key, hash).is_none_or(|index| self.locks[index.0 as usize].is_free_here())
    }

    /// Whether a client of this member is inside what `key` names; of a set, inside a part of
    /// `claim`.
    pub fn is_held(&self, key: Key<'_>, hash: u64, claim: Option<&Claim>) -> bool {
        self.lock(key, hash).is_some_and(|lock| {
            lock.holds().any(|hold| match (claim, &hold.asker.set) {
                // Names that share a resource exclude each other.
                (Some(asked), Some(held)) => asked.overlaps(&held.claim),
                _ => true,
            })
        })
    }

    /// Whoever holds `name` with this fence, and the request that it is a part of. `key` is the name of the
    /// lock, or the pattern of a namespace whose names are taken in sets.
    pub fn holder(
        &self,
        key: &str,
        hash: u64,
        name: &str,
        fence: u64,
    ) -> Option<(LockIndex, Ticket, Option<RequestId>)> {
        self.named(key, hash).find_map(|(index, lock)| {
            let is_it = |hold: &&Hold| {
                let covers = match &hold.asker.set {
                    Some(set) => set.names.iter().any(|one| **one == *name),
                    None => *lock.name == *name,
                };
                covers && hold.fence.0 == fence
            };
            let found = lock.holds().find(is_it);
            found.map(|hold| (LockIndex(index), hold.ticket, hold.asker.request))
        })
    }

    /// The newest fence that is known here of what `key` names; of a set, of those inside a part of
    /// `claim`.
    pub fn newest_fence(&self, key: Key<'_>, hash: u64, claim: Option<&Claim>) -> Option<Fence> {
        let lock = self.lock(key, hash)?;
        let Some(claim) = claim else { return lock.newest_fence() };
        let overlaps =
            |hold: &&Hold| hold.asker.set.as_ref().is_some_and(|set| set.claim.overlaps(claim));
        lock.holds().filter(overlaps).map(|hold| hold.fence).max()
    }

    /// Every lock that somebody of this member has asked for, or that another member spoke of.
    pub(crate) fn locks(&self) -> impl Iterator<Item = &Lock> {
        self.indexed().map(|(_, lock)| lock)
    }

    /// The locks of this name, one for each number of permits.
    pub(crate) fn named(&self, name: &str, hash: u64) -> impl Iterator<Item = (u32, &Lock)> {
        let same = self.table.iter_hash(hash).map(|&index| (index, &self.locks[index as usize]));
        same.filter(move |(_, lock)| *lock.name == *name)
    }

    /// What has been counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How long clients have waited for its locks and held them.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// Adds all of its locks to a survey.
    pub fn survey(&self, now: Time, survey: &mut Survey) {
        self.locks().for_each(|lock| survey.add(lock, now));
    }

    /// How many wait in its longest queue.
    pub fn longest_queue(&self) -> u64 {
        self.locks().map(|lock| lock.waiters().count() as u64).max().unwrap_or(0)
    }

    /// How many locks it keeps.
    pub(crate) fn kept(&self) -> usize {
        self.locks.len() - self.free.len()
    }

    /// How many of them nobody here uses: a new view forgets them.
    pub(crate) fn idle(&self) -> usize {
        self.locks().filter(|lock| !lock.is_used_here()).count()
    }

    /// How many locks it keeps, how many are held here, and how many clients wait.
    pub fn sizes(&self) -> [u64; 3] {
        self.locks().fold([0; 3], |[locks, held, waiting], lock| {
            let more = [lock.holds().count() as u64, lock.waiters().count() as u64];
            [locks + 1, held + more[0], waiting + more[1]]
        })
    }

    /// The messages sent so far by kind, with the namespace and the algorithm.
    pub fn messages(&self) -> impl Iterator<Item = ((usize, &str), Vec<(&'static str, u64)>)> + '_ {
        self.families.iter().map(|Family { namespace, permits, kind, .. }| {
            ((*namespace, self.view.algorithm(*namespace, *permits)), kind.counts())
        })
    }
}
