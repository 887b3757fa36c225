//! The set of known states, by fingerprint.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use ahash::RandomState;

use super::level::Step;

/// Into how many parts the set is divided. Many, so that two threads seldom want the same one, and
/// one can grow without doubling the memory of all.
const SHARDS: usize = 64;

type Untouched = BuildHasherDefault<Identity>;

/// The fingerprints of all known states.
pub(super) struct Known {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
}

#[derive(Default)]
struct Shard {
    /// The states of all levels before.
    before: HashSet<u64, Untouched>,
    /// The states of the level that is being found, each with the first step that leads to it.
    level: HashMap<u64, Step, Untouched>,
    /// Steps that were the first until an earlier one was found.
    overtaken: Vec<Step>,
}

impl Known {
    pub(super) fn new() -> Self {
        // Any keys do, as long as they are fixed. They are not stateright's, so that the two
        // explorers do not share their collisions.
        let hasher = RandomState::with_seeds(0x6361_7472, 0x6163_6121, 0x746f_726e, 0x6971_7565);
        Known { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), hasher }
    }

    /// Takes note that `step` leads to `state`. True if nothing is known that led to it earlier in
    /// the order of the search.
    #[inline]
    pub(super) fn note<S: Hash>(&self, state: &S, step: Step) -> bool {
        let print = self.hasher.hash_one(state);
        // The hash tables inside use the highest and the lowest bits.
        let number = (print >> 32) as usize % SHARDS;
        let mut shard = self.shards[number].lock().unwrap_or_else(PoisonError::into_inner);
        if shard.before.contains(&print) {
            return false;
        }
        match shard.level.entry(print) {
            Entry::Vacant(vacant) => {
                vacant.insert(step);
                true
            }
            Entry::Occupied(mut first) => {
                let earlier = step < *first.get();
                if earlier {
                    let overtaken = first.insert(step);
                    shard.overtaken.push(overtaken);
                }
                earlier
            }
        }
    }

    /// Ends a level. Returns the steps that turned out not to be the first to their state, sorted.
    pub(super) fn end_level(&mut self) -> Vec<Step> {
        let mut overtaken = Vec::new();
        for shard in &mut self.shards {
            let shard = shard.get_mut().unwrap_or_else(PoisonError::into_inner);
            shard.before.extend(shard.level.drain().map(|(print, _)| print));
            overtaken.append(&mut shard.overtaken);
        }
        overtaken.sort_unstable();
        overtaken
    }
}

/// The hash of a fingerprint: itself.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn write_u64(&mut self, print: u64) {
        self.0 = print;
    }

    fn write(&mut self, bytes: &[u8]) {
        // Never called: fingerprints are hashed as one u64. Correct all the same.
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_belongs_to_the_first_step_in_the_order_of_the_search() {
        let mut known = Known::new();
        assert!(known.note(&"state", Step::new(5, 0)));
        assert!(known.note(&"state", Step::new(2, 1)), "earlier, though found later");
        assert!(!known.note(&"state", Step::new(3, 0)));
        assert_eq!(known.end_level(), [Step::new(5, 0)]);
        assert!(!known.note(&"state", Step::new(0, 0)), "it belongs to the level before");
        assert_eq!(known.end_level(), []);
    }
}
