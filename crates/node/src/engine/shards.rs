//! The shards of a member behind their mutexes, and who waits for them.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};
use std::task::Waker;

use catraca_group::{Key, RandomState, Refusal, Settled, Shard, Ticket, Turns, View};
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::refusal;
use crate::mutex::hold;

/// How many parts the locks are in. More than there are cores, so that two of them seldom meet.
const SHARDS: u16 = 64;
/// So many grants and releases each of them remembers, for whoever wants to see a lock: about 300 kB in all.
const MOST_RECENT: usize = 64;

/// Whom to wake once a mutex is free again.
pub(super) type Woken = SmallVec<[Waker; 2]>;

/// A caller that waits for its ticket itself.
enum Parked {
    Waits(Waker),
    /// It was refused, and has yet to look.
    Refused(Refusal),
}

/// A shard, and the callers that wait for their tickets in it.
pub(super) struct Cell {
    pub(super) shard: Shard,
    parked: HashMap<Ticket, Parked, RandomState>,
    /// Nobody is woken any more.
    pub(super) is_stopped: bool,
}

impl Cell {
    /// Whom to wake because of what has happened. Called under the mutex under which it happened.
    #[inline]
    pub(super) fn wake(&mut self, settled: &[Settled]) -> Woken {
        let mut woken = Woken::new();
        for settled in settled.iter().filter(|settled| settled.request.is_none()) {
            let ticket = settled.place.ticket;
            let parked = match refusal(&settled.outcome) {
                None => self.parked.remove(&ticket),
                Some(why) => self.parked.insert(ticket, Parked::Refused(why.clone())),
            };
            if let Some(Parked::Waits(waker)) = parked {
                woken.push(waker);
            }
        }
        woken
    }

    /// `waker` is woken when `ticket` has come to the end of waiting. Returns the one before it.
    pub(super) fn park(&mut self, ticket: Ticket, waker: &Waker) -> Option<Waker> {
        match self.parked.get(&ticket) {
            Some(Parked::Waits(known)) if known.will_wake(waker) => None,
            _ => match self.parked.insert(ticket, Parked::Waits(waker.clone()))? {
                Parked::Waits(old) => Some(old),
                Parked::Refused(_) => None,
            },
        }
    }

    /// Nobody waits for `ticket` any more. Returns who was to be woken.
    #[inline]
    pub(super) fn forget(&mut self, ticket: Ticket) -> Option<Waker> {
        if self.parked.is_empty() {
            return None;
        }
        match self.parked.remove(&ticket)? {
            Parked::Waits(waker) => Some(waker),
            Parked::Refused(_) => None,
        }
    }

    /// Why `ticket` was refused.
    pub(super) fn refusal(&mut self, ticket: Ticket) -> Refusal {
        match self.parked.remove(&ticket) {
            Some(Parked::Refused(why)) => why,
            _ => Refusal::Stopped,
        }
    }
}

/// All shards of a member.
pub(super) struct Shards {
    cells: Box<[Mutex<Cell>]>,
    hasher: RandomState,
}

impl Shards {
    pub(super) fn new(view: &Arc<View>, turns: Turns) -> Self {
        let hasher = hasher();
        let cell = |_| {
            let mut shard = Shard::new(Arc::clone(view), hasher.clone(), turns);
            shard.remember(MOST_RECENT);
            // Until the first view begins.
            shard.freeze();
            let parked = HashMap::with_hasher(hasher.clone());
            Mutex::new(Cell { shard, parked, is_stopped: false })
        };
        Shards { cells: (0..SHARDS).map(cell).collect(), hasher }
    }

    /// Which shard the lock is in, and the hash of its name.
    #[inline]
    pub(super) fn of(&self, key: Key<'_>) -> (u16, u64) {
        let hash = self.hash(key);
        // The table within a shard uses the other bits.
        ((hash >> 16) as u16 % SHARDS, hash)
    }

    /// The name alone: semaphores of different sizes with one name find each other.
    #[inline]
    pub(super) fn hash(&self, key: Key<'_>) -> u64 {
        self.hasher.hash_one(key.name)
    }

    /// Does something with a shard, under its mutex.
    #[inline]
    pub(super) fn step<T>(&self, shard: u16, step: impl FnOnce(&mut Cell) -> T) -> T {
        step(&mut hold(&self.cells[usize::from(shard)]))
    }

    /// The places of all shards.
    pub(super) fn all(&self) -> std::ops::Range<u16> {
        0..SHARDS
    }

    /// Nobody waits any more. Returns whom to wake.
    pub(super) fn stop(&self) -> Vec<Waker> {
        let mut woken = Vec::new();
        for cell in &self.cells {
            let mut cell = hold(cell);
            cell.is_stopped = true;
            let parked = cell.parked.drain().map(|(_, parked)| parked);
            woken.extend(parked.filter_map(|parked| match parked {
                Parked::Waits(waker) => Some(waker),
                Parked::Refused(_) => None,
            }));
        }
        woken
    }
}

/// Names are hashed in a way that nobody outside can foresee.
fn hasher() -> RandomState {
    let seed = || std::hash::RandomState::new().hash_one(0u8);
    RandomState::with_seeds(seed(), seed(), seed(), seed())
}
