//! What was told last, for subscribers that come back.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Change;

/// So many changes are kept.
pub(crate) const MOST_KEPT: usize = 4096;
/// The lowest bits of a number tell runs of members apart.
const TAG_BITS: u32 = 10;

/// The last changes, and their numbers.
///
/// Numbers begin with the time at which the node began, in microseconds, so a later run of it begins
/// with larger ones. Their lowest bits say which run it was: whoever comes back to another run, or to
/// another member, has a number that was never given here, and is told of a gap.
pub(super) struct Recent {
    tag: u64,
    /// The last number that was given, without its tag.
    last: u64,
    /// Everything after this one is kept.
    complete_after: u64,
    changes: VecDeque<Arc<Change>>,
}

impl Recent {
    pub(super) fn new(first: u64, incarnation: u64) -> Self {
        // Incarnations are times: the bits that differ most are the lowest but a few.
        let mixed = incarnation.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let tag = mixed >> (u64::BITS - TAG_BITS);
        Recent { tag, last: first, complete_after: first, changes: VecDeque::new() }
    }

    fn number(&self, count: u64) -> u64 {
        count << TAG_BITS | self.tag
    }

    /// Gives a change its number, and keeps it.
    pub(super) fn push(&mut self, change: Change) -> Arc<Change> {
        self.last += 1;
        let change = Arc::new(Change { number: self.number(self.last), ..change });
        if self.changes.len() >= MOST_KEPT {
            self.changes.pop_front();
            self.complete_after += 1;
        }
        self.changes.push_back(Arc::clone(&change));
        change
    }

    /// Something was missed. Returns the number after which nothing is.
    pub(super) fn skip(&mut self) -> u64 {
        self.last += 1;
        self.complete_after = self.last;
        self.changes.clear();
        self.number(self.last)
    }

    /// Everything after the change with this number; or, if that is not known any more, the number
    /// after which everything is.
    pub(super) fn after(&self, number: u64) -> Result<impl Iterator<Item = &Arc<Change>>, u64> {
        let count = number >> TAG_BITS;
        let is_known =
            number == self.number(count) && (self.complete_after..=self.last).contains(&count);
        match is_known {
            true => Ok(self.changes.iter().skip((count - self.complete_after) as usize)),
            false => Err(self.number(self.last)),
        }
    }
}
