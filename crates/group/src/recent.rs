//! What was granted and released last, of the locks of one shard.
//!
//! A ring that is as long as it was made, whatever happens: a lock that is granted very often pushes out what
//! happened to others. It is written where the time is known anyway. A shard has none unless its driver wants
//! one: copies of shards, as a checker makes them, cost nothing for it.

use alloc::vec::Vec;
use core::time::Duration;

use catraca_core::{Claim, Fence};
use serde::{Deserialize, Serialize};

use crate::driver::{Ending, LockIndex};
use crate::time::Time;

/// A grant that is not long ago.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastGrant {
    /// Its number.
    pub fence: u64,
    /// How long ago it was, in milliseconds.
    pub age_millis: u64,
    /// How long the client had waited, in milliseconds; nothing if it did not have to.
    pub waited_millis: Option<u64>,
    /// How long it was held, in milliseconds; nothing if it still is, or if nobody looked at the clock.
    pub held_millis: Option<u64>,
    /// How it ended, where that is known.
    pub ending: Option<Ending>,
}

#[derive(Clone, Debug)]
struct Entry {
    lock: LockIndex,
    fence: Fence,
    at: Time,
    /// Of a set, what was granted.
    claim: Option<Claim>,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Granted { waited: Option<Duration> },
    Left(Ending),
}

/// What was granted and released last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    most: usize,
    entries: Vec<Entry>,
    /// Where the oldest is, once there are as many as there can be.
    oldest: usize,
}

impl Recent {
    /// Remembers so many events, and takes the memory for them at once.
    pub(crate) fn of(most: usize) -> Self {
        Recent { most, entries: Vec::with_capacity(most), oldest: 0 }
    }

    /// Somebody is inside since this time.
    #[inline]
    pub(crate) fn granted(
        &mut self,
        lock: LockIndex,
        fence: Fence,
        at: Time,
        since: Option<Time>,
        claim: impl FnOnce() -> Option<Claim>,
    ) {
        if self.most > 0 {
            let what = What::Granted { waited: since.map(|since| at.since(since)) };
            self.push(Entry { lock, fence, at, claim: claim(), what });
        }
    }

    /// Whoever was inside with this fence is not any more.
    #[inline]
    pub(crate) fn left(&mut self, lock: LockIndex, fence: Fence, at: Time, ending: Ending) {
        if self.most > 0 {
            self.push(Entry { lock, fence, at, claim: None, what: What::Left(ending) });
        }
    }

    fn push(&mut self, entry: Entry) {
        if self.entries.len() < self.most {
            self.entries.push(entry);
            return;
        }
        self.entries[self.oldest] = entry;
        self.oldest = (self.oldest + 1) % self.most;
    }

    /// What happened to locks that are not kept any more is forgotten: others may get their places.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(LockIndex) -> bool) {
        self.entries.rotate_left(self.oldest);
        self.oldest = 0;
        self.entries.retain(|entry| is_kept(entry.lock));
    }

    /// The last grants of a lock, the newest last; of sets, of those that have something in common with
    /// `claim`.
    pub(crate) fn of_lock(
        &self,
        lock: LockIndex,
        claim: Option<&Claim>,
        now: Time,
    ) -> Vec<PastGrant> {
        let (newer, older) = self.entries.split_at(self.oldest);
        let of_lock = || older.iter().chain(newer).filter(|entry| entry.lock == lock);
        let is_meant = |entry: &&Entry| match (claim, &entry.claim) {
            (Some(asked), Some(granted)) => asked.overlaps(granted),
            _ => true,
        };
        let grant = |entry: &Entry| {
            let What::Granted { waited } = entry.what else { return None };
            let left = of_lock().find_map(|it| match it.what {
                What::Left(ending) if it.fence == entry.fence => Some((it.at, ending)),
                _ => None,
            });
            Some(PastGrant {
                fence: entry.fence.0,
                age_millis: now.millis_since(entry.at),
                waited_millis: waited.map(|waited| waited.as_millis() as u64),
                held_millis: left.map(|(at, _)| at.millis_since(entry.at)),
                ending: left.map(|(_, ending)| ending),
            })
        };
        of_lock().filter(is_meant).filter_map(grant).collect()
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::ResourceId;

    use super::*;

    const X: LockIndex = LockIndex(0);
    const Y: LockIndex = LockIndex(1);

    fn at(millis: u64) -> Time {
        Time(millis * 1_000_000)
    }

    fn fences(grants: &[PastGrant]) -> Vec<u64> {
        grants.iter().map(|grant| grant.fence).collect()
    }

    #[test]
    fn a_grant_is_told_with_how_long_it_was_waited_for_and_held() {
        let mut recent = Recent::of(8);
        recent.granted(X, Fence(1), at(10), None, || None);
        recent.granted(Y, Fence(1), at(11), None, || None);
        recent.left(X, Fence(1), at(25), Ending::Released);
        recent.granted(X, Fence(2), at(25), Some(at(12)), || None);
        let grants = recent.of_lock(X, None, at(30));
        assert_eq!(
            grants[0],
            PastGrant {
                fence: 1,
                age_millis: 20,
                waited_millis: None,
                held_millis: Some(15),
                ending: Some(Ending::Released),
            }
        );
        assert_eq!((grants[1].waited_millis, grants[1].held_millis), (Some(13), None));
        assert_eq!(fences(&recent.of_lock(Y, None, at(30))), [1]);
    }

    #[test]
    fn the_oldest_makes_room_and_what_remains_is_in_order() {
        let mut recent = Recent::of(4);
        for number in 1..=10 {
            recent.granted(X, Fence(number), at(number), None, || None);
        }
        assert_eq!(fences(&recent.of_lock(X, None, at(10))), [7, 8, 9, 10]);
        assert_eq!(recent.entries.capacity(), 4);
        recent.granted(Y, Fence(1), at(11), None, || None);
        recent.keep(|lock| lock == Y);
        assert_eq!(fences(&recent.of_lock(X, None, at(11))), [0; 0]);
        recent.granted(Y, Fence(2), at(12), None, || None);
        assert_eq!(fences(&recent.of_lock(Y, None, at(12))), [1, 2]);
    }

    #[test]
    fn nothing_is_remembered_where_nobody_wants_it() {
        let mut recent = Recent::default();
        recent.granted(X, Fence(1), at(1), None, || None);
        recent.left(X, Fence(1), at(2), Ending::Released);
        assert_eq!(recent.of_lock(X, None, at(3)), []);
    }

    #[test]
    fn of_sets_those_count_that_have_something_in_common() {
        let mut recent = Recent::of(4);
        let claim = |resource| Claim::of([ResourceId(resource)]);
        recent.granted(X, Fence(1), at(1), None, || Some(claim(3)));
        recent.granted(X, Fence(2), at(2), None, || Some(claim(4)));
        assert_eq!(fences(&recent.of_lock(X, Some(&claim(4)), at(3))), [2]);
    }
}
