//! The registry: a small linearizable map that a group agrees on.
//!
//! It has the view, a beat of every member, and durable holds. Lock traffic never touches it. It has no
//! clock: leases are timed by members alone. All that it offers is a transaction: if every guard holds,
//! every operation is carried out, else none; the answer shows what is there afterwards.
//!
//! [`Store`] is the registry as a plain value. The simulator and the checker use it as it is; behind a
//! replicated log it is the state machine. Other stores, such as etcd, offer the same transactions.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::Bound;

use serde::{Deserialize, Serialize};

/// What keys of durable holds begin with. An answer shows every other key; of these, a page.
pub const HOLDS: &str = "hold/";
/// The first key behind all of these: '0' comes after '/'.
const BEHIND_HOLDS: &str = "hold0";
/// The key that is written whenever a durable hold is released. An answer shows it, so every member that
/// beats hears of releases, also if it watches nothing.
pub const RELEASED: &str = "released";
/// The key that is written whenever a durable hold is written. Whoever keeps a list of holds sees by this
/// key and [`RELEASED`] whether the list is up to date.
pub const TAKEN: &str = "taken";
/// The longest key, in bytes.
pub const LONGEST_KEY: usize = 1024;
/// The longest value, in bytes.
pub const LONGEST_VALUE: usize = 64 << 10;
/// The most guards of a transaction, and the most operations.
pub const MOST_TERMS: usize = 64;
/// The most durable holds of one answer.
pub const LARGEST_PAGE: u32 = 1000;
/// A page of more bytes than this is cut, but not below one hold: an answer must fit into a message.
const LONGEST_PAGE: usize = 4 << 20;
/// The most durable holds of a group that keeps its registry itself.
pub const MOST_HOLDS: usize = 250_000;
/// The most bytes that they have together: all of them fit into a snapshot, which a voter that was away is
/// sent.
pub const MOST_HOLD_BYTES: usize = 192 << 20;
/// So many changes are remembered for those who watch.
const REMEMBERED: usize = 4096;

/// How often the registry had changed. The first change makes it 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What has to be true for a transaction to be carried out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Guard {
    /// There is no such key.
    Absent(String),
    /// The key was written last at this revision.
    At(String, Revision),
    /// The key was created at this revision, and has not been deleted since.
    Born(String, Revision),
}

impl Guard {
    /// The key that it is about.
    pub fn key(&self) -> &str {
        match self {
            Guard::Absent(key) | Guard::At(key, _) | Guard::Born(key, _) => key,
        }
    }
}

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Op {
    /// Creates or overwrites it.
    Put(String, Vec<u8>),
    /// Deletes it, if it is there.
    Delete(String),
}

impl Op {
    /// The key that it changes.
    pub fn key(&self) -> &str {
        match self {
            Op::Put(key, _) | Op::Delete(key) => key,
        }
    }
}

/// All of the operations, if all of the guards hold. Without both it is a linearizable read.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Txn {
    /// What has to be true.
    pub guards: Vec<Guard>,
    /// What is done. No key is changed twice.
    pub ops: Vec<Op>,
    /// Which durable holds the answer shows.
    pub page: Option<Page>,
}

/// A part of the durable holds, in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Page {
    /// Those whose keys come after this one. Empty for the first page.
    pub after: String,
    /// At most so many, and at most [`LARGEST_PAGE`].
    pub limit: u32,
}

impl Txn {
    /// Reads, and changes nothing.
    pub fn read() -> Self {
        Txn::default()
    }

    /// The same with one more guard.
    pub fn given(mut self, guard: Guard) -> Self {
        self.guards.push(guard);
        self
    }

    /// The same with one more key that is written.
    pub fn put(mut self, key: impl Into<String>, value: Vec<u8>) -> Self {
        self.ops.push(Op::Put(key.into(), value));
        self
    }

    /// The same with one more key that is deleted.
    pub fn delete(mut self, key: impl Into<String>) -> Self {
        self.ops.push(Op::Delete(key.into()));
        self
    }

    /// The same with a page of durable holds in the answer.
    pub fn with_page(mut self, after: impl Into<String>, limit: u32) -> Self {
        self.page = Some(Page { after: after.into(), limit });
        self
    }

    /// Whether it changes nothing.
    pub fn is_read(&self) -> bool {
        self.ops.is_empty()
    }

    /// Checks that every registry can carry it out.
    pub fn check(&self) -> Result<(), &'static str> {
        let keys = || {
            let guards = self.guards.iter().map(Guard::key);
            guards.chain(self.ops.iter().map(Op::key))
        };
        if self.guards.len() > MOST_TERMS || self.ops.len() > MOST_TERMS {
            return Err("a transaction has too many guards or operations");
        }
        if keys().any(|key| key.is_empty() || key.len() > LONGEST_KEY || key.contains('\0')) {
            return Err("a key is empty, too long or has a zero byte");
        }
        let too_long = |op: &Op| matches!(op, Op::Put(_, value) if value.len() > LONGEST_VALUE);
        if self.ops.iter().any(too_long) {
            return Err("a value is too long");
        }
        let mut changed: Vec<&str> = self.ops.iter().map(Op::key).collect();
        changed.sort_unstable();
        if changed.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("a transaction changes one key twice");
        }
        Ok(())
    }
}

/// A key that is there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Item {
    /// When it was created.
    pub born: Revision,
    /// When it was written last.
    pub at: Revision,
    /// What was written.
    pub value: Vec<u8>,
}

/// What came of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Answer {
    /// The revision afterwards.
    pub revision: Revision,
    /// Whether all guards held, so that all operations were carried out.
    pub applied: bool,
    /// Every key afterwards that is not a durable hold.
    pub state: BTreeMap<String, Item>,
    /// The durable holds that were asked for.
    pub holds: Vec<(String, Item)>,
    /// Whether there are more of them behind these.
    pub more: bool,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Trouble {
    /// The registry will never carry it out, and why.
    #[error("the registry refuses: {0}")]
    Refused(String),
    /// It was not carried out: the registry could not be reached.
    #[error("the registry cannot be reached: {0}")]
    Unreachable(String),
    /// Nobody knows whether it was carried out, or is going to be.
    #[error("the registry did not answer: {0}")]
    Unknown(String),
    /// The registry is not there any more, and why.
    #[error("the registry is lost: {0}")]
    Lost(String),
}

/// What somebody who watches is told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Word {
    /// A key was written or deleted at this revision.
    Changed {
        /// The key.
        key: String,
        /// When.
        at: Revision,
    },
    /// Nobody remembers what happened up to this revision.
    Gap {
        /// From here on there is more.
        from: Revision,
    },
}

/// The registry as a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Store {
    revision: Revision,
    items: BTreeMap<String, Item>,
    /// The last changes, in order, and up to which revision older ones are forgotten.
    recent: VecDeque<(Revision, String)>,
    forgotten: Revision,
    #[serde(skip)]
    holds: Room,
}

/// How many durable holds there are, and how many bytes they have: follows from the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Room {
    count: usize,
    bytes: usize,
}

impl Room {
    fn add(&mut self, key: &str, value: &[u8]) {
        self.count += 1;
        self.bytes += key.len() + value.len();
    }

    fn remove(&mut self, key: &str, value: &[u8]) {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(key.len() + value.len());
    }
}

/// A store as it is written down.
#[derive(Deserialize)]
struct Written {
    revision: Revision,
    items: BTreeMap<String, Item>,
    recent: VecDeque<(Revision, String)>,
    forgotten: Revision,
}

impl From<Written> for Store {
    fn from(written: Written) -> Self {
        let Written { revision, items, recent, forgotten } = written;
        let mut holds = Room::default();
        for (key, item) in items.iter().filter(|(key, _)| is_hold(key)) {
            holds.add(key, &item.value);
        }
        Store { revision, items, recent, forgotten, holds }
    }
}

fn is_hold(key: &str) -> bool {
    key.starts_with(HOLDS)
}

/// What is remembered for those who watch decides nothing.
impl Hash for Store {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.revision, &self.items).hash(hasher);
    }
}

impl Store {
    /// Carries a transaction out. A transaction that no registry can carry out is not applied.
    pub fn apply(&mut self, txn: &Txn) -> Answer {
        let applied = txn.check().is_ok() && txn.guards.iter().all(|guard| self.holds(guard));
        let changes = |op: &Op| matches!(op, Op::Put(..)) || self.items.contains_key(op.key());
        if applied && txn.ops.iter().any(changes) {
            self.revision.0 += 1;
            for op in &txn.ops {
                self.carry_out(op);
            }
        }
        Answer { applied, ..self.answer(txn.page.as_ref()) }
    }

    fn holds(&self, guard: &Guard) -> bool {
        let item = self.items.get(guard.key());
        match guard {
            Guard::Absent(_) => item.is_none(),
            Guard::At(_, at) => item.is_some_and(|item| item.at == *at),
            Guard::Born(_, born) => item.is_some_and(|item| item.born == *born),
        }
    }

    fn carry_out(&mut self, op: &Op) {
        let at = self.revision;
        match op {
            Op::Put(key, value) => {
                let born = self.items.get(key).map_or(at, |item| item.born);
                let before =
                    self.items.insert(key.clone(), Item { born, at, value: value.clone() });
                if is_hold(key) {
                    if let Some(before) = before {
                        self.holds.remove(key, &before.value);
                    }
                    self.holds.add(key, value);
                }
            }
            Op::Delete(key) => {
                let Some(before) = self.items.remove(key) else { return };
                if is_hold(key) {
                    self.holds.remove(key, &before.value);
                }
            }
        }
        self.recent.push_back((at, op.key().into()));
        while self.recent.len() > REMEMBERED {
            if let Some((at, _)) = self.recent.pop_front() {
                self.forgotten = at;
            }
        }
    }

    /// Whether there is room for what a transaction writes. Whoever keeps a store asks before a transaction
    /// is carried out: what has been agreed on is carried out in any case.
    pub fn check_room(&self, txn: &Txn) -> Result<(), String> {
        let mut after = self.holds;
        for op in txn.ops.iter().filter(|op| is_hold(op.key())) {
            if let Some(before) = self.items.get(op.key()) {
                after.remove(op.key(), &before.value);
            }
            if let Op::Put(key, value) = op {
                after.add(key, value);
            }
        }
        if after.count > MOST_HOLDS.max(self.holds.count) {
            return Err(format!(
                "there are {} durable holds, and there can be no more than {MOST_HOLDS}; release some first",
                self.holds.count
            ));
        }
        if after.bytes > MOST_HOLD_BYTES.max(self.holds.bytes) {
            return Err(format!(
                "the durable holds have {} bytes, and there can be no more than {MOST_HOLD_BYTES}; release some first",
                self.holds.bytes
            ));
        }
        Ok(())
    }

    /// What is written under a key.
    pub fn get(&self, key: &str) -> Option<&Item> {
        self.items.get(key)
    }

    /// Goes on after others may have gone further with copies of it that are lost: no revision from now on is
    /// one that they can have given, and whoever watches hears of a gap.
    pub fn skip(&mut self, revisions: u64) {
        self.revision.0 = self.revision.0.saturating_add(revisions);
        self.recent.clear();
        self.forgotten = self.revision;
    }

    fn answer(&self, page: Option<&Page>) -> Answer {
        // Durable holds may be many: they are not looked at.
        let before = (Bound::Unbounded, Bound::Excluded(HOLDS));
        let behind = (Bound::Included(BEHIND_HOLDS), Bound::Unbounded);
        let behind = self.items.range::<str, _>(behind);
        let state = self.items.range::<str, _>(before).chain(behind);
        let mut holds = Vec::new();
        let mut more = false;
        if let Some(Page { after, limit }) = page {
            let after = after.as_str().max(HOLDS);
            let range = (Bound::Excluded(after), Bound::Unbounded);
            let limit = (*limit).min(LARGEST_PAGE) as usize;
            let mut bytes = 0;
            for (key, item) in self.items.range::<str, _>(range) {
                if !is_hold(key) {
                    break;
                }
                bytes += key.len() + item.value.len();
                more = holds.len() == limit || (bytes > LONGEST_PAGE && !holds.is_empty());
                if more {
                    break;
                }
                holds.push((key.clone(), item.clone()));
            }
        }
        Answer {
            revision: self.revision,
            applied: true,
            state: state.map(|(key, item)| (key.clone(), item.clone())).collect(),
            holds,
            more,
        }
    }

    /// How often it has changed.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// What has changed after a revision, in order; a gap first if not all of it is remembered.
    pub fn changes(&self, after: Revision) -> impl Iterator<Item = Word> + '_ {
        let gap = (after < self.forgotten).then_some(Word::Gap { from: self.forgotten });
        let later = self.recent.iter().filter(move |(at, _)| *at > after);
        gap.into_iter().chain(later.map(|(at, key)| Word::Changed { key: key.clone(), at: *at }))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    fn put(key: &str) -> Txn {
        Txn::default().put(key, vec![1])
    }

    #[test]
    fn each_guard_holds_when_it_is_true_and_else_nothing_is_done() {
        let mut store = Store::default();
        assert!(store.apply(&put("a").given(Guard::Absent("a".into()))).applied);
        assert!(store.apply(&put("a")).applied);
        let (born, at) = (Revision(1), Revision(2));
        for (guard, holds) in [
            (Guard::Absent("b".into()), true),
            (Guard::Absent("a".into()), false),
            (Guard::At("a".into(), at), true),
            (Guard::At("a".into(), born), false),
            (Guard::At("b".into(), at), false),
            (Guard::Born("a".into(), born), true),
            (Guard::Born("a".into(), at), false),
            (Guard::Born("b".into(), born), false),
        ] {
            let mut store = store.clone();
            let answer = store.apply(&put("c").delete("a").given(guard.clone()));
            assert_eq!(answer.applied, holds, "{guard:?}");
            assert_eq!(answer.state.contains_key("c"), holds);
            assert_eq!(answer.state.contains_key("a"), !holds);
            assert_eq!(answer.revision, Revision(if holds { 3 } else { 2 }));
        }
    }

    #[test]
    fn a_key_that_is_created_anew_is_born_anew() {
        let mut store = Store::default();
        store.apply(&put("a"));
        store.apply(&put("a"));
        let item = store.apply(&Txn::read()).state["a"].clone();
        assert_eq!((item.born, item.at), (Revision(1), Revision(2)));
        store.apply(&Txn::default().delete("a"));
        store.apply(&put("a"));
        let item = store.apply(&Txn::read()).state["a"].clone();
        assert_eq!((item.born, item.at), (Revision(4), Revision(4)));
    }

    #[test]
    fn a_read_changes_nothing_and_neither_does_deleting_what_is_not_there() {
        let mut store = Store::default();
        store.apply(&put("a"));
        let before = store.clone();
        assert!(store.apply(&Txn::read()).applied);
        assert!(store.apply(&Txn::default().delete("b")).applied);
        assert_eq!(store, before);
    }

    #[test]
    fn durable_holds_come_in_pages_and_other_keys_always() {
        let mut store = Store::default();
        store.apply(&put("view"));
        store.apply(&put("zone"));
        for number in 0..5 {
            store.apply(&put(&format!("{HOLDS}{number}")));
        }
        let keys = |answer: &Answer| -> Vec<String> {
            answer.holds.iter().map(|(key, _)| key.clone()).collect()
        };
        let first = store.apply(&Txn::read().with_page("", 3));
        assert_eq!(first.state.keys().collect::<Vec<_>>(), ["view", "zone"]);
        assert_eq!((keys(&first).len(), first.more), (3, true));
        let second = store.apply(&Txn::read().with_page(keys(&first)[2].clone(), 3));
        assert_eq!(keys(&second), ["hold/3", "hold/4"]);
        assert!(!second.more);
        assert!(store.apply(&Txn::read()).holds.is_empty());
    }

    #[test]
    fn a_page_of_long_holds_is_cut_by_bytes_and_none_is_left_out() {
        let mut store = Store::default();
        let count = 3 * LONGEST_PAGE / LONGEST_VALUE;
        for number in 0..count {
            let long = vec![7; LONGEST_VALUE];
            store.apply(&Txn::default().put(format!("{HOLDS}{number:05}"), long));
        }
        let (mut after, mut seen, mut pages) = (String::new(), 0, 0);
        loop {
            let answer = store.apply(&Txn::read().with_page(after, LARGEST_PAGE));
            let bytes: usize =
                answer.holds.iter().map(|(key, it)| key.len() + it.value.len()).sum();
            assert!(bytes <= LONGEST_PAGE, "{bytes}");
            (seen, pages) = (seen + answer.holds.len(), pages + 1);
            after = answer.holds.last().unwrap().0.clone();
            if !answer.more {
                break;
            }
        }
        assert_eq!((seen, pages), (count, 4));
        let none = store.apply(&Txn::read().with_page("", 0));
        assert!(none.holds.is_empty() && none.more);
    }

    #[test]
    fn there_is_room_for_so_many_holds_and_for_more_when_some_are_released() {
        let mut store = Store::default();
        let hold = |number: usize| put(&format!("{HOLDS}{number}"));
        for number in 0..MOST_HOLDS {
            store.apply(&hold(number));
        }
        let why = store.check_room(&hold(MOST_HOLDS)).unwrap_err();
        assert!(why.contains("there are 250000 durable holds"), "{why}");
        // Everything else goes on: releases, changes of holds that are there, and other keys.
        for txn in [hold(3), Txn::default().delete(format!("{HOLDS}3")), put("beat/a"), Txn::read()]
        {
            assert_eq!(store.check_room(&txn), Ok(()), "{txn:?}");
        }
        let instead = hold(MOST_HOLDS).delete(format!("{HOLDS}3"));
        assert_eq!(store.check_room(&instead), Ok(()));
        // It is known after a restart too.
        let bytes = postcard::to_allocvec(&store).unwrap();
        let mut again: Store = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(again, store);
        assert!(again.check_room(&hold(MOST_HOLDS)).is_err());
        again.apply(&Txn::default().delete(format!("{HOLDS}3")));
        assert_eq!(again.check_room(&hold(MOST_HOLDS)), Ok(()));
    }

    #[test]
    fn the_bytes_of_all_holds_are_limited() {
        let mut store = Store::default();
        let hold = |number: usize, bytes: usize| {
            Txn::default().put(format!("{HOLDS}{number:05}"), vec![0; bytes])
        };
        store.apply(&hold(0, LONGEST_VALUE));
        store.holds.bytes = MOST_HOLD_BYTES - 100;
        assert_eq!(store.check_room(&hold(1, 80)), Ok(()));
        let why = store.check_room(&hold(1, 100)).unwrap_err();
        assert!(why.contains("can be no more than 201326592"), "{why}");
        assert_eq!(store.check_room(&hold(0, 1)), Ok(()), "less is never refused");
        assert_eq!(store.check_room(&hold(0, LONGEST_VALUE)), Ok(()), "nor is as much");
    }

    #[test]
    fn what_goes_on_after_a_loss_gives_no_revision_twice() {
        let mut store = Store::default();
        for _ in 0..5 {
            store.apply(&put("a"));
        }
        store.skip(100);
        assert_eq!(store.revision(), Revision(105));
        let gap = Word::Gap { from: Revision(105) };
        assert_eq!(store.changes(Revision(50)).collect::<Vec<_>>(), [gap]);
        assert_eq!(store.changes(Revision(105)).count(), 0);
        let at = store.apply(&put("a")).state["a"].at;
        assert_eq!((at, store.get("a").map(|item| item.born)), (Revision(106), Some(Revision(1))));
    }

    #[test]
    fn what_no_registry_can_do_is_not_done() {
        let mut store = Store::default();
        let long = "k".repeat(LONGEST_KEY + 1);
        for txn in [
            put("a").put("a", vec![]),
            put("a").delete("a"),
            put(""),
            put(&long),
            put("a\0"),
            Txn::default().put("a", vec![0; LONGEST_VALUE + 1]),
            (0..=MOST_TERMS).fold(Txn::default(), |txn, number| txn.delete(number.to_string())),
        ] {
            assert!(txn.check().is_err());
            assert!(!store.apply(&txn).applied);
        }
        assert_eq!(store, Store::default());
    }

    #[test]
    fn whoever_watches_sees_every_change_in_order_or_a_gap() {
        let mut store = Store::default();
        store.apply(&put("a").put("b", vec![]));
        store.apply(&Txn::default().delete("a").delete("none"));
        let changed = |key: &str, at| Word::Changed { key: key.into(), at: Revision(at) };
        let all: Vec<Word> = store.changes(Revision(0)).collect();
        assert_eq!(all, [changed("a", 1), changed("b", 1), changed("a", 2)]);
        assert_eq!(store.changes(Revision(1)).collect::<Vec<_>>(), [changed("a", 2)]);
        for _ in 0..REMEMBERED {
            store.apply(&put("c"));
        }
        let gap = Word::Gap { from: Revision(2) };
        assert_eq!(store.changes(Revision(0)).next(), Some(gap));
        assert_eq!(store.changes(Revision(2)).count(), REMEMBERED);
    }
}
