//! Many changes as few: what is different after them, lock by lock.
//!
//! Somebody who looks at locks does not see what has come and gone between two looks. So whoever is told at
//! intervals is told of each lock who is inside now and was not before, who is not inside any more, and the
//! same of those who wait; a lock that was taken and released a hundred times meanwhile is nothing, or one line.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Change, What};

/// So much is merged at the most: lines of those who came and of those who went. Beyond that it is better to
/// look at the locks anew.
pub(crate) const MOST_LINES: usize = 4096;

/// Who is inside, or waits, since the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Newcomer {
    /// When, by the clock on the wall of the member, in milliseconds since 1970.
    pub(crate) unix_millis: u64,
    pub(crate) member: String,
    pub(crate) label: String,
    /// Of whoever is inside.
    pub(crate) fence: Option<u64>,
}

impl Newcomer {
    fn of(change: &Change) -> Self {
        let Change { unix_millis, fence, .. } = *change;
        let (member, label) = (change.member.clone(), change.label.clone());
        Newcomer { unix_millis, member, label, fence }
    }

    fn is_by(&self, change: &Change) -> bool {
        self.member == change.member && self.label == change.label
    }
}

/// What is different about one lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Who is inside now.
    pub(crate) entered: Vec<Newcomer>,
    /// The fences of those who were inside before and are not any more.
    pub(crate) left: Vec<u64>,
    /// Who waits now.
    pub(crate) waits: Vec<Newcomer>,
    /// The members and labels of those who waited before and do not any more.
    pub(crate) waited: Vec<(String, String)>,
}

impl Difference {
    fn lines(&self) -> usize {
        self.entered.len() + self.left.len() + self.waits.len() + self.waited.len()
    }

    fn add(&mut self, change: &Change) {
        match change.what {
            What::Waits => self.waits.push(Newcomer::of(change)),
            What::GivesUp => self.wait_is_over(change),
            What::Granted => {
                self.wait_is_over(change);
                self.entered.push(Newcomer::of(change));
            }
            What::Released | What::Lost | What::Forced => {
                let known = self.entered.iter().position(|it| it.fence == change.fence);
                match known {
                    Some(index) => drop(self.entered.remove(index)),
                    None => self.left.extend(change.fence),
                }
            }
            What::Git => {}
        }
    }

    /// Of several who are called the same, whoever came first waits no more: queues are served in their order.
    fn wait_is_over(&mut self, change: &Change) {
        match self.waits.iter().position(|it| it.is_by(change)) {
            Some(index) => drop(self.waits.remove(index)),
            // Whoever did not have to wait is named too, and found by nobody.
            None => self.waited.push((change.member.clone(), change.label.clone())),
        }
    }
}

/// What is different since it was asked last.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// By name and permits.
    locks: BTreeMap<(String, u32), Difference>,
    lines: usize,
    changes: u64,
    has_gap: bool,
}

/// What is different after some changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Differences {
    /// By name and permits; locks about which nothing is different are not among them.
    pub(crate) locks: BTreeMap<(String, u32), Difference>,
    /// How many changes there were.
    pub(crate) changes: u64,
    /// Whether something may have happened of which nobody tells: look at the locks anew.
    pub(crate) has_gap: bool,
}

impl Merged {
    /// Something happened.
    pub(crate) fn add(&mut self, change: &Arc<Change>) {
        self.changes += 1;
        if self.has_gap {
            return;
        }
        let key = (change.name.clone(), change.permits);
        let difference = self.locks.entry(key).or_default();
        let before = difference.lines();
        difference.add(change);
        self.lines = self.lines + difference.lines() - before;
        if self.lines > MOST_LINES || self.locks.len() > MOST_LINES {
            self.gap();
        }
    }

    /// Something may have happened of which nobody tells.
    pub(crate) fn gap(&mut self) {
        self.locks.clear();
        self.lines = 0;
        self.has_gap = true;
    }

    /// Whether there is nothing to tell.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.changes == 0 && !self.has_gap
    }

    /// What is different; it begins anew after that.
    pub(crate) fn take(&mut self) -> Differences {
        let Merged { mut locks, changes, has_gap, .. } = std::mem::take(self);
        locks.retain(|_, difference| difference.lines() > 0);
        Differences { locks, changes, has_gap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(what: What, name: &str, label: &str, fence: Option<u64>) -> Arc<Change> {
        Arc::new(Change {
            number: 0,
            unix_millis: 7,
            member: "a".to_string(),
            what,
            name: name.to_string(),
            permits: 1,
            fence,
            label: label.to_string(),
            identity: String::new(),
        })
    }

    fn merged(changes: &[(What, &str, &str, Option<u64>)]) -> Differences {
        let mut merged = Merged::default();
        for (what, name, label, fence) in changes {
            merged.add(&change(*what, name, label, *fence));
        }
        merged.take()
    }

    fn of<'a>(differences: &'a Differences, name: &str) -> Option<&'a Difference> {
        differences.locks.get(&(name.to_string(), 1))
    }

    fn fences(newcomers: &[Newcomer]) -> Vec<Option<u64>> {
        newcomers.iter().map(|it| it.fence).collect()
    }

    #[test]
    fn whoever_came_and_went_is_not_told_but_whoever_is_inside_at_last() {
        let mut all = vec![(What::Released, "x", "old", Some(1))];
        for fence in 2..100 {
            all.push((What::Granted, "x", "worker", Some(fence)));
            all.push((What::Released, "x", "worker", Some(fence)));
        }
        all.push((What::Granted, "x", "last", Some(100)));
        let differences = merged(&all);
        assert_eq!((differences.changes, differences.has_gap), (198, false));
        let lock = of(&differences, "x").unwrap();
        assert_eq!(lock.left, [1], "the one that was inside before");
        assert_eq!(fences(&lock.entered), [Some(100)]);
        assert_eq!(lock.entered[0].label, "last");
    }

    #[test]
    fn whoever_waits_until_it_is_inside_waits_no_more() {
        let lock = |changes: &[_]| of(&merged(changes), "x").unwrap().clone();
        let still = lock(&[(What::Waits, "x", "one", None), (What::Waits, "x", "two", None)]);
        assert_eq!(still.waits.len(), 2);
        let inside = lock(&[(What::Waits, "x", "one", None), (What::Granted, "x", "one", Some(5))]);
        assert!(inside.waits.is_empty() && inside.waited.is_empty(), "{inside:?}");
        let before = lock(&[(What::GivesUp, "x", "one", None)]);
        assert_eq!(before.waited, [("a".to_string(), "one".to_string())]);
    }

    #[test]
    fn a_wait_that_came_and_went_leaves_nothing() {
        let differences =
            merged(&[(What::Waits, "x", "one", None), (What::GivesUp, "x", "one", None)]);
        assert!(differences.locks.is_empty() && differences.changes == 2, "{differences:?}");
    }

    #[test]
    fn more_than_can_be_told_is_a_gap_and_takes_no_memory() {
        let mut merged = Merged::default();
        assert!(merged.is_empty());
        for number in 0..3 * MOST_LINES as u64 {
            merged.add(&change(What::Granted, &format!("x{number}"), "", Some(number)));
            assert!(merged.locks.len() <= MOST_LINES);
        }
        let differences = merged.take();
        assert!(differences.has_gap && differences.locks.is_empty());
        assert!(merged.is_empty(), "it begins anew");
        merged.gap();
        assert!(!merged.is_empty(), "a gap alone has to be told too");
    }

    #[test]
    fn a_herd_at_one_lock_is_bounded_too() {
        let mut merged = Merged::default();
        for number in 0..2 * MOST_LINES {
            merged.add(&change(What::Waits, "x", &number.to_string(), None));
        }
        assert!(merged.take().has_gap);
    }
}
