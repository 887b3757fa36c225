//! From one view to the next: everybody reports what is held, one member makes a table of it, and with
//! the table everybody begins.
//!
//! To stop is to be slow, which every algorithm allows; so what was granted in the old view stays
//! exclusive. Reports speak of what is held, not of the states of algorithms, so members that are in
//! different views can report side by side. If somebody is lost meanwhile, the next view begins from
//! the top.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::decode;
use super::possible::MOST_HELD;
use super::{
    Cause, Directive, MOST_HISTORY, Membership, Past, Purpose, Run, ViewMessage, ViewRecord,
};
use crate::durable::{Adopted, DurableHold, HoldId, adopt};
use crate::registry::{Answer, LARGEST_PAGE, Txn};
use crate::shard::{Held, HeldLock};
use crate::time::Time;
use crate::timed::{TimedCopy, take_over};
use crate::view::{Epoch, MOST_MEMBERS};

/// So many durable holds go into one message: each may be as long as a value of the registry.
const ADOPTED: usize = 8;
/// So many bytes of locks, or of copies of timed holds, go into one message, but at least one of them.
const PART: usize = 256 << 10;
/// So many messages about views that are not known here are kept. If one was too much, the view is of no use
/// here, and another one is asked for.
pub(super) const MOST_EARLY: usize = 64 * MOST_MEMBERS;

/// A view that is about to begin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Change {
    epoch: Epoch,
    began: Time,
    is_reported: bool,
    /// What members have reported so far, and whether that is all.
    reports: BTreeMap<Run, (Vec<HeldLock>, bool)>,
    /// Which timed holds of members that are gone they remember.
    orphans: Vec<(String, TimedCopy)>,
    /// Whoever makes the table reads the durable holds last.
    holds: Holds,
    /// What has come of the table.
    table: Vec<HeldLock>,
    adopted: Vec<Adopted>,
    taken: Vec<TimedCopy>,
    held: Option<Arc<Held>>,
}

/// How far the durable holds have been read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Holds {
    NotYet,
    /// Those after this key have yet to be read.
    After(String, Vec<Adopted>),
    Read,
}

impl Change {
    fn new(epoch: Epoch, began: Time) -> Self {
        Change {
            epoch,
            began,
            is_reported: false,
            reports: BTreeMap::new(),
            orphans: Vec::new(),
            holds: Holds::NotYet,
            table: Vec::new(),
            adopted: Vec::new(),
            taken: Vec::new(),
            held: None,
        }
    }

    /// How much others have said so far.
    fn entries(&self) -> usize {
        let reported: usize = self.reports.values().map(|(held, _)| held.len()).sum();
        let holds = self.orphans.len() + self.adopted.len() + self.taken.len();
        reported + self.table.len() + holds
    }
}

/// The durable holds of which parts were moved to the member called `name`.
fn adopted_by(name: &str, moved: &[HeldLock], holds: &[Adopted]) -> Vec<Adopted> {
    let own = moved.iter().filter(|held| held.member == name);
    let ids: BTreeSet<HoldId> = own.filter_map(|held| held.durable).collect();
    holds.iter().filter(|adopted| ids.contains(&adopted.hold.id)).cloned().collect()
}

/// A list in parts, each with as much as one message may have.
fn messages<T>(list: Vec<T>, bytes: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let (mut messages, mut taken) = (Vec::<Vec<T>>::new(), 0);
    for item in list {
        let more = bytes(&item);
        match messages.last_mut() {
            Some(last) if taken + more <= PART => {
                last.push(item);
                taken += more;
            }
            _ => {
                messages.push(Vec::from([item]));
                taken = more;
            }
        }
    }
    messages
}

/// A list of locks in parts, with the last one marked. If there are none, that is said too.
fn parts(locks: &[HeldLock]) -> impl Iterator<Item = (Vec<HeldLock>, bool)> + use<> {
    let mut parts = messages(locks.to_vec(), HeldLock::bytes);
    if parts.is_empty() {
        parts.push(Vec::new());
    }
    let last = parts.len() - 1;
    parts.into_iter().enumerate().map(move |(place, part)| (part, place == last))
}

impl Membership {
    fn present(&self) -> Option<Arc<ViewRecord>> {
        self.view.as_ref().map(|(_, record)| Arc::clone(record))
    }

    /// If there is a new view, everything stops here until it begins.
    pub(super) fn begin_change(&mut self, now: Time, out: &mut Vec<Directive>) {
        let Some(record) = self.present() else { return };
        if record.epoch <= self.begun || !record.has(&self.run()) {
            return;
        }
        self.begun = record.epoch;
        self.active = None;
        self.change = Some(Change::new(record.epoch, now));
        if self.makes_table(&record) {
            let epoch = record.epoch;
            for run in self.others(&record) {
                out.push(Directive::Send(run, ViewMessage::Begin { epoch }));
            }
        }
        out.push(Directive::Freeze(record.epoch));
    }

    /// What is held here, after everything has stopped, and which timed holds of members that are gone are
    /// remembered here.
    pub fn report(
        &mut self,
        held: Vec<HeldLock>,
        orphans: Vec<TimedCopy>,
        now: Time,
        out: &mut Vec<Directive>,
    ) {
        let me = self.run();
        let Some(record) = self.present() else { return };
        let Some(change) = &mut self.change else { return };
        if core::mem::replace(&mut change.is_reported, true) {
            return;
        }
        let epoch = change.epoch;
        match record.members.first().map(super::Entry::run) {
            Some(first) if first == me => {
                change.orphans.extend(orphans.into_iter().map(|copy| (me.name.clone(), copy)));
                change.reports.insert(me, (held, true));
            }
            Some(first) => {
                for copies in messages(orphans, TimedCopy::bytes) {
                    let message = ViewMessage::Orphans { epoch, copies };
                    out.push(Directive::Send(first.clone(), message));
                }
                for (part, is_last) in parts(&held) {
                    let report = ViewMessage::Report { epoch, part, is_last };
                    out.push(Directive::Send(first.clone(), report));
                }
            }
            None => return,
        }
        for (from, message) in core::mem::take(&mut self.early) {
            if message.epoch() > epoch {
                self.early.push((from, message));
            } else {
                self.take_message(&from, message, now, out);
            }
        }
        if self.has_lost(epoch) {
            // What was said of this view is not all here: it has to begin anew.
            self.wish = Some(Cause::Recovered(self.run().name));
        }
        self.begin_reading();
        self.decide(now, out);
    }

    /// Whether this member makes the table.
    fn makes_table(&self, record: &ViewRecord) -> bool {
        record.members.first().is_some_and(|first| first.run() == self.run())
    }

    fn others(&self, record: &ViewRecord) -> Vec<Run> {
        let me = self.run();
        record.members.iter().map(super::Entry::run).filter(|run| *run != me).collect()
    }

    /// Keeps a message about a view that is not known here.
    pub(super) fn keep_early(&mut self, from: &Run, message: ViewMessage) {
        let entries: usize = self.early.iter().map(|(_, early)| early.entries()).sum();
        let is_room = self.early.len() < MOST_EARLY && entries + message.entries() <= MOST_HELD;
        match is_room {
            true => self.early.push((from.clone(), message)),
            false => self.lost_early = self.lost_early.max(Some(message.epoch())),
        }
    }

    /// Whether a message about this view may have come too early, and was one too much.
    pub(super) fn has_lost(&self, epoch: Epoch) -> bool {
        self.lost_early >= Some(epoch)
    }

    /// Takes a message about a view that is known here.
    pub(super) fn take_message(
        &mut self,
        from: &Run,
        message: ViewMessage,
        now: Time,
        out: &mut Vec<Directive>,
    ) {
        if self.has_lost(message.epoch()) {
            // Without what was lost, what comes after it says less than it means.
            return;
        }
        let Some(record) = self.present() else { return };
        let makes_table = self.makes_table(&record);
        let is_possible = message.is_possible(&from.name, &self.settings.view(&record, 0));
        let Some(change) = &mut self.change else { return };
        let is_of_it = match message {
            ViewMessage::Table { epoch, .. } => self.rules.is_table_for(epoch, change.epoch),
            _ => message.epoch() == change.epoch,
        };
        if !is_of_it || record.epoch != change.epoch || !record.has(from) {
            return;
        }
        if !is_possible || change.entries() + message.entries() > MOST_HELD {
            return out.push(Directive::Anomaly("a member says of a view what cannot be"));
        }
        match message {
            ViewMessage::Begin { .. } => {}
            ViewMessage::Report { part, is_last, .. } => {
                if makes_table {
                    let (held, is_whole) = change.reports.entry(from.clone()).or_default();
                    held.extend(part);
                    *is_whole |= is_last;
                    self.begin_reading();
                }
            }
            ViewMessage::Orphans { copies, .. } => {
                if makes_table {
                    let from = |copy| (from.name.clone(), copy);
                    change.orphans.extend(copies.into_iter().map(from));
                }
            }
            ViewMessage::Table { part, is_last, .. } => {
                let is_first = record.members.first().is_some_and(|first| first.run() == *from);
                if is_first && change.held.is_none() {
                    change.table.extend(part);
                    if is_last {
                        let held: Held = core::mem::take(&mut change.table).into_iter().collect();
                        let adopted = core::mem::take(&mut change.adopted);
                        let taken = core::mem::take(&mut change.taken);
                        change.held = Some(Arc::new(held.adopting(adopted).taking_over(taken)));
                    }
                }
            }
            ViewMessage::Adopt { holds, .. } => {
                let is_first = record.members.first().is_some_and(|first| first.run() == *from);
                if is_first && change.held.is_none() {
                    change.adopted.extend(holds);
                }
            }
            ViewMessage::TakeOver { copies, .. } => {
                let is_first = record.members.first().is_some_and(|first| first.run() == *from);
                if is_first && change.held.is_none() {
                    change.taken.extend(copies);
                }
            }
        }
        self.activate_if_ready(now, out);
    }

    /// When everybody has reported, the durable holds are read. Not before: a member that is gone may
    /// have written one until the view without it began.
    fn begin_reading(&mut self) {
        let Some(record) = self.present() else { return };
        let Some(change) = &mut self.change else { return };
        let whole = change.reports.values().filter(|(_, is_whole)| *is_whole).count();
        let is_own = record.members.first().is_some_and(|first| {
            first.run()
                == Run { name: self.settings.member.name.clone(), incarnation: self.incarnation }
        });
        if is_own
            && change.is_reported
            && change.holds == Holds::NotYet
            && self.rules.has_enough_reports(whole, record.members.len())
        {
            change.holds = Holds::After(String::new(), Vec::new());
        }
    }

    /// Reads the next page of durable holds, if that is what the table waits for.
    pub(super) fn read_holds_if_due(&mut self, now: Time, out: &mut Vec<Directive>) {
        let Some(change) = &self.change else { return };
        let Holds::After(after, _) = &change.holds else { return };
        let purpose = Purpose::Holds(change.epoch);
        if self.asks.values().any(|(asked, _)| *asked == purpose) {
            return;
        }
        let txn = Txn::read().with_page(after.clone(), LARGEST_PAGE);
        self.ask(purpose, txn, now, out);
    }

    /// A page of durable holds has come.
    pub(super) fn see_holds(&mut self, epoch: Epoch, answer: &Answer, out: &mut Vec<Directive>) {
        let Some(change) = &mut self.change else { return };
        let Holds::After(after, found) = &mut change.holds else { return };
        if change.epoch != epoch {
            return;
        }
        if self.rules.keeps_durable_holds() {
            let holds = answer.holds.iter();
            found.extend(holds.filter_map(|(_, item)| {
                let hold = decode::<DurableHold>(&item.value)?;
                Some(Adopted { born: item.born, hold })
            }));
        }
        match answer.holds.last() {
            Some((last, _)) if answer.more => *after = last.clone(),
            _ => {
                let found = core::mem::take(found);
                change.holds = Holds::Read;
                self.make_table(&found, out);
            }
        }
    }

    /// Everything that is held, for everybody.
    fn make_table(&mut self, holds: &[Adopted], out: &mut Vec<Directive>) {
        let Some(record) = self.present() else { return };
        let Some(change) = &mut self.change else { return };
        let reports = core::mem::take(&mut change.reports);
        let mut table: Vec<HeldLock> = reports.into_values().flat_map(|(held, _)| held).collect();
        let view = self.settings.view(&record, 0);
        let moved = adopt(&view, &table, holds);
        table.extend(moved.iter().cloned());
        let taken = take_over(&view, &table, core::mem::take(&mut change.orphans));
        table.extend(taken.iter().flat_map(|(_, _, locks)| locks.iter().cloned()));
        let taken_by = |name: &str| -> Vec<TimedCopy> {
            let its = taken.iter().filter(|(member, ..)| member == name);
            its.map(|(_, copy, _)| copy.clone()).collect()
        };
        let (epoch, me) = (change.epoch, &self.settings.member.name);
        let held: Held = table.iter().cloned().collect();
        let own = adopted_by(me, &moved, holds);
        change.held = Some(Arc::new(held.adopting(own).taking_over(taken_by(me))));
        for run in self.others(&record) {
            for copies in messages(taken_by(&run.name), TimedCopy::bytes) {
                out.push(Directive::Send(run.clone(), ViewMessage::TakeOver { epoch, copies }));
            }
            for holds in adopted_by(&run.name, &moved, holds).chunks(ADOPTED) {
                let message = ViewMessage::Adopt { epoch, holds: holds.to_vec() };
                out.push(Directive::Send(run.clone(), message));
            }
            for (part, is_last) in parts(&table) {
                let message = ViewMessage::Table { epoch, part, is_last };
                out.push(Directive::Send(run.clone(), message));
            }
        }
    }

    /// Begins the view, if the table is here and the lease is not over.
    pub(super) fn activate_if_ready(&mut self, now: Time, out: &mut Vec<Directive>) {
        let Some(record) = self.present() else { return };
        let Some(change) = &self.change else { return };
        if now >= self.valid_until || change.epoch != record.epoch {
            return;
        }
        let me = self.run();
        let place = record.members.iter().position(|entry| entry.run() == me);
        let (Some(held), Some(place)) = (&change.held, place) else { return };
        let view = Box::new(self.settings.view(&record, place));
        out.push(Directive::Activate(view, Arc::clone(held)));
        self.history.push_back(Past {
            epoch: record.epoch,
            members: record.members.len() as u32,
            cause: record.cause.to_string(),
            at: now,
            took: now.since(change.began),
        });
        if self.history.len() > MOST_HISTORY {
            self.history.pop_front();
        }
        self.active = Some(record.epoch);
        self.has_lapsed = false;
        self.change = None;
        self.wish = None;
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use catraca_core::{Claim, ResourceId};

    use super::*;

    #[test]
    fn what_is_held_is_told_in_parts_that_fit_into_messages_and_nothing_is_left_out() {
        /// The longest body of a message between members, in bytes.
        const LONGEST_FRAME: usize = 1 << 20;
        // As long as can be: every name of a set is another resource, with a large number.
        let claim = Claim::of((0..256).map(|number| ResourceId(65_000 + number)));
        let lock = |number: usize| HeldLock {
            name: format!("{number:0255}"),
            permits: 1,
            member: "m".repeat(64),
            seat: 0,
            claim: claim.clone(),
            durable: Some(HoldId(u128::MAX)),
            timed: Some(HoldId(u128::MAX)),
        };
        let all: Vec<HeldLock> = (0..3000).map(lock).collect();
        let told: Vec<(Vec<HeldLock>, bool)> = parts(&all).collect();
        let lasts: Vec<bool> = told.iter().map(|(_, is_last)| *is_last).collect();
        assert_eq!(lasts.iter().position(|is_last| *is_last), Some(told.len() - 1));
        for (part, is_last) in &told {
            let report =
                ViewMessage::Report { epoch: Epoch(1), part: part.clone(), is_last: *is_last };
            assert!(postcard::to_allocvec(&report).unwrap().len() < LONGEST_FRAME / 2);
        }
        let again: Vec<HeldLock> = told.into_iter().flat_map(|(part, _)| part).collect();
        assert_eq!(again, all);
        assert_eq!(parts(&[]).collect::<Vec<_>>(), [(Vec::new(), true)]);
    }
}
