//! Whether durable holds are as this member believes them to be: the registry knows.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::durable::{Durables, Entry, Purpose, Stage, shown, tell};
use super::{Host, Output, Service};
use crate::driver::Timer;
use crate::durable::{DurableHold, HoldId};
use crate::membership::{Membership, decode};
use crate::refusal::Refusal;
use crate::registry::{Answer, Guard, MOST_TERMS, RELEASED, Revision, Trouble, Txn};

impl Durables {
    /// Whether a hold was released of which a driver that watches them has not told.
    fn has_unwatched_release(&self) -> bool {
        self.watched > Revision(0) && self.watched < self.released
    }
}

impl Service {
    /// An answer shows when a hold was released last. If that is new, it may have been one that is here.
    pub(super) fn hear_of_releases(
        &mut self,
        answer: &Answer,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Some(at) = answer.state.get(RELEASED).map(|item| item.at) else { return };
        let Some(durables) = self.durables() else { return };
        if at <= durables.released {
            return;
        }
        durables.released = at;
        if durables.watched > Revision(0) {
            // Mostly the driver will say which one it was. If it has not by then, all are looked at.
            return self.set_durable_timer(host);
        }
        self.look_at_kept(host, out);
    }

    /// Looks at all holds that are here, but not too often: there may be many releases and many holds.
    fn look_at_kept(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        let (now, pause) = (host.now(), self.pause());
        let Some(durables) = self.durables() else { return };
        let is_kept = |entry: &Entry| matches!(entry.stage, Stage::Kept { .. });
        let kept = durables.entries.iter().filter(|(_, entry)| is_kept(entry));
        let kept: Vec<HoldId> = kept.map(|(&id, _)| id).collect();
        if kept.is_empty() {
            return;
        }
        if now < durables.looked_at + pause {
            durables.unseen.extend(kept);
            return self.set_durable_timer(host);
        }
        durables.looked_at = now;
        self.look_at(&kept, out);
    }

    /// Keys of the registry were written or deleted, at these revisions. A driver that watches the
    /// registry says so; without it, releases are heard of with the next beat.
    pub fn holds_changed(
        &mut self,
        keys: &[(String, Revision)],
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        for (key, at) in keys {
            let Some(id) = HoldId::of_key(key) else { continue };
            if let Some(durables) = self.durables() {
                durables.watched = durables.watched.max(*at);
            }
            let is_new = self.entry(id).is_some_and(|entry| match entry.stage {
                Stage::Kept { born } => *at > born,
                Stage::Writing { .. } => false,
                Stage::Waiting | Stage::Unsure { .. } => true,
            });
            if is_new {
                self.look_at(&[id], out);
            }
        }
        self.set_durable_timer(host);
    }

    fn pause(&self) -> Duration {
        self.membership().map_or(Duration::ZERO, |membership| membership.lease().ttl / 15)
    }

    /// Asks the registry whether these are as they are believed to be: many at once, for mostly they are.
    pub(super) fn look_at(&mut self, ids: &[HoldId], out: &mut Vec<Output>) {
        for ids in ids.chunks(MOST_TERMS) {
            let mut txn = Txn::read();
            let mut asked = Vec::new();
            for &id in ids {
                let Some(entry) = self.entry(id) else { continue };
                match entry.stage {
                    Stage::Waiting => txn = txn.given(Guard::Absent(id.key())),
                    Stage::Kept { born } => txn = txn.given(Guard::Born(id.key(), born)),
                    Stage::Writing { .. } => continue,
                    Stage::Unsure { .. } => {
                        let read = Txn::read().with_page(id.before(), 1);
                        self.ask_registry(Purpose::Look(Vec::from([id])), read, out);
                        continue;
                    }
                }
                asked.push(id);
            }
            match asked[..] {
                [] => {}
                [id] => {
                    let read = Txn::read().with_page(id.before(), 1);
                    self.ask_registry(Purpose::Look(asked), read, out);
                }
                _ => self.ask_registry(Purpose::Look(asked), txn, out),
            }
        }
    }

    pub(super) fn looked(
        &mut self,
        ids: &[HoldId],
        result: Result<Answer, Trouble>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        match (result, ids) {
            (Ok(answer), [id]) => self.see(*id, &answer, host, out),
            (Ok(answer), _) if answer.applied => {}
            (Ok(_), _) => {
                let (one, two) = ids.split_at(ids.len() / 2);
                self.look_at(one, out);
                self.look_at(two, out);
            }
            (Err(_), _) => {
                if let Some(durables) = self.durables() {
                    durables.unseen.extend(ids);
                }
            }
        }
    }

    /// An answer shows whether a hold is there.
    pub(super) fn see(
        &mut self,
        id: HoldId,
        answer: &Answer,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let own_beat = self.own_beat_in(answer);
        let Some(entry) = self.entry(id) else { return };
        match (entry.stage, shown(answer, id)) {
            // It was read before the hold was written.
            (Stage::Kept { born }, _) if answer.revision < born => {}
            (Stage::Kept { born }, Some(item)) if item.born == born => {
                // It may have been given to somebody else.
                let found = decode::<DurableHold>(&item.value);
                if let Some(found) = found.filter(|found| found.is_grant_of(&entry.record)) {
                    entry.record = found;
                }
            }
            (Stage::Kept { .. }, _) => {
                self.end_durable(id, Err(Refusal::Unsure), host, out);
            }
            (Stage::Writing { .. }, _) | (Stage::Waiting, None) => {}
            (Stage::Unsure { beat, .. }, _) if answer.revision < beat => {}
            (Stage::Waiting | Stage::Unsure { .. }, Some(item)) => self.found(id, item, host, out),
            (Stage::Unsure { beat, .. }, None) => match own_beat {
                Some(at) if at <= beat => self.with_membership(host, out, Membership::beat_now),
                _ => {
                    let why = Refusal::Registry("its answer was lost".to_string());
                    self.end_durable(id, Err(why), host, out);
                }
            },
        }
    }

    /// Looks again at whatever is not settled.
    pub(super) fn look_again(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        let now = host.now();
        let ttl = self.membership().map_or(Duration::ZERO, |membership| membership.lease().ttl);
        let Some(durables) = self.durables() else { return };
        durables.timer = None;
        if durables.has_unwatched_release() {
            durables.watched = durables.released;
            self.look_at_kept(host, out);
        }
        let Some(durables) = self.durables() else { return };
        let mut ids = core::mem::take(&mut durables.unseen);
        ids.extend(&durables.pending);
        durables.looked_at = now;
        for id in &durables.pending {
            let Some(entry) = durables.entries.get_mut(id) else { continue };
            // Nobody is kept waiting for ever. Whoever asks again finds out.
            if matches!(entry.stage, Stage::Unsure { since, .. } if now >= since + ttl) {
                tell(&core::mem::take(&mut entry.askers), &Err(Refusal::Unsure), out);
            }
        }
        let ids: Vec<HoldId> = ids.into_iter().collect();
        self.look_at(&ids, out);
        self.set_durable_timer(host);
    }

    /// Whatever is not settled is looked at again after a while: soon if an answer is missing; whoever
    /// waits may be granted the hold by another member, which is rare.
    pub(super) fn set_durable_timer(&mut self, host: &mut dyn Host) {
        let (now, pause) = (host.now(), self.pause());
        let Some(durables) = self.durables() else { return };
        let stage = |id| durables.entries.get(id).map(|entry| entry.stage);
        let is_unsure = |id| matches!(stage(id), Some(Stage::Unsure { .. }));
        let is_urgent = !durables.unseen.is_empty() || durables.has_unwatched_release();
        let at = match durables.pending.iter().any(is_unsure) || is_urgent {
            true => Some(now + pause),
            false if !durables.pending.is_empty() => Some(now + pause * 5),
            false => None,
        };
        if at.is_some_and(|at| durables.timer.is_some_and(|timer| timer <= at))
            || at == durables.timer
        {
            return;
        }
        durables.timer = at;
        host.set_timer(Timer::Durable, at.map(|at| at.since(now)));
    }
}
