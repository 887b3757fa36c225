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

/// Makes fingerprints of states.
pub(crate) struct Prints(RandomState);

impl Prints {
    pub(crate) fn new() -> Self {
        // Any keys do, as long as they are fixed. They are not stateright's, so that the two
        // explorers do not share their collisions.
        Prints(RandomState::with_seeds(0x6361_7472, 0x6163_6121, 0x746f_726e, 0x6971_7565))
    }

    #[inline]
    pub(crate) fn of<S: Hash>(&self, state: &S) -> u64 {
        self.0.hash_one(state)
    }
}

/// What is known of a state that a step leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// Nothing that led to it earlier in the order of the search.
    New,
    /// It is in the level that is being found, and belongs to an earlier step.
    Again,
    /// It is in a level before.
    Before,
    /// It is in a level before, and the caller is the first to be told so.
    FirstBack,
}

/// The fingerprints of all known states.
pub(super) struct Known {
    shards: Vec<Mutex<Shard>>,
    pub(super) prints: Prints,
}

#[derive(Default)]
struct Shard {
    /// The states of all levels before.
    before: HashSet<u64, Untouched>,
    /// The states of the level that is being found, each with the first step that leads to it.
    level: HashMap<u64, Step, Untouched>,
    /// The states to which a step has led that [may be of a cycle](Note::FirstBack).
    back: HashSet<u64, Untouched>,
    /// Steps that were the first until an earlier one was found.
    overtaken: Vec<Step>,
}

impl Known {
    pub(super) fn new() -> Self {
        Known { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), prints: Prints::new() }
    }

    /// Takes note that `step` leads to the state with fingerprint `print`. `lasts` says whether the
    /// step may be one of a cycle in which somebody waits; it is asked only of a step to a state of a
    /// level before.
    #[inline]
    pub(super) fn note(&self, print: u64, step: Step, lasts: impl FnOnce() -> bool) -> Note {
        // The hash tables inside use the highest and the lowest bits.
        let number = (print >> 32) as usize % SHARDS;
        let mut shard = self.shards[number].lock().unwrap_or_else(PoisonError::into_inner);
        if shard.before.contains(&print) {
            return match lasts() && shard.back.insert(print) {
                true => Note::FirstBack,
                false => Note::Before,
            };
        }
        match shard.level.entry(print) {
            Entry::Vacant(vacant) => {
                vacant.insert(step);
                Note::New
            }
            Entry::Occupied(mut first) => {
                if step > *first.get() {
                    return Note::Again;
                }
                let overtaken = first.insert(step);
                shard.overtaken.push(overtaken);
                Note::New
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
        let print = known.prints.of(&"state");
        assert_eq!(known.note(print, Step::new(5, 0), || false), Note::New);
        let earlier = known.note(print, Step::new(2, 1), || false);
        assert_eq!(earlier, Note::New, "earlier, though found later");
        assert_eq!(known.note(print, Step::new(3, 0), || false), Note::Again);
        assert_eq!(known.end_level(), [Step::new(5, 0)]);
        assert_eq!(known.note(print, Step::new(0, 0), || false), Note::Before);
        assert_eq!(known.end_level(), []);
    }

    #[test]
    fn a_state_to_which_steps_lead_back_is_told_once() {
        let mut known = Known::new();
        let print = known.prints.of(&"state");
        known.note(print, Step::new(0, 0), || unreachable!("it is new"));
        known.end_level();
        assert_eq!(known.note(print, Step::new(1, 0), || true), Note::FirstBack);
        assert_eq!(known.note(print, Step::new(2, 0), || true), Note::Before);
    }
}
