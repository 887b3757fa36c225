//! What one look at all locks of a member shows: how many there are, and which of them stand out.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::lock::{Hold, Lock, Owner};
use crate::time::Time;

/// So many holds are named, those that are oldest.
pub const MOST_OLD: usize = 16;

/// What a look at locks shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// How many locks the member keeps.
    pub locks: u64,
    /// How many holds there are here.
    pub held: u64,
    /// How many clients wait here.
    pub waiting: u64,
    /// The longest queue here, if somebody waits.
    pub longest: Option<LongQueue>,
    /// The oldest holds here, the oldest first. Durable ones are left out: they are meant to be old.
    pub oldest: Vec<OldHold>,
}

/// A lock for which many wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongQueue {
    /// The lock.
    pub name: String,
    /// How many wait here.
    pub waiting: u64,
}

/// A hold that began long ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldHold {
    /// The lock; of a set, the first of its names.
    pub name: String,
    /// The number of the grant.
    pub fence: u64,
    /// For how long it is held, in milliseconds.
    pub millis: u64,
}

impl Survey {
    /// Looks at one lock.
    pub(crate) fn add(&mut self, lock: &Lock, now: Time) {
        let waiting = lock.waiters().count() as u64;
        self.locks += 1;
        self.waiting += waiting;
        if waiting > self.longest.as_ref().map_or(0, |longest| longest.waiting) {
            self.longest = Some(LongQueue { name: lock.name.to_string(), waiting });
        }
        for hold in lock.holds() {
            self.held += 1;
            if hold.asker.owner != Owner::DURABLE {
                self.keep(lock, hold, now.millis_since(hold.since));
            }
        }
    }

    /// Keeps a hold in mind, if it is one of the oldest.
    fn keep(&mut self, lock: &Lock, hold: &Hold, millis: u64) {
        let is_full = self.oldest.len() >= MOST_OLD;
        if is_full && self.oldest.last().is_some_and(|youngest| youngest.millis >= millis) {
            return;
        }
        let first = hold.asker.set.as_ref().and_then(|set| set.names.first());
        let name = first.unwrap_or(&lock.name).to_string();
        let place = self.oldest.partition_point(|older| older.millis >= millis);
        self.oldest.insert(place, OldHold { name, fence: hold.fence.0, millis });
        self.oldest.truncate(MOST_OLD);
    }
}
