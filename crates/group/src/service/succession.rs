//! Timed holds from one view to the next: whoever is lost leaves its holds to those who remember them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use catraca_core::Fence;

use super::timed::{Entry, ONLY, Reply};
use super::{Host, Output, Service};
use crate::driver::Timer;
use crate::durable::HoldId;
use crate::lock::Owner;
use crate::request::{self, Origin, Request, State};
use crate::session::{Session, SessionId};
use crate::shard::{Ask, Held, HeldLock};
use crate::time::Time;
use crate::timed::TimedCopy;

impl Service {
    /// What is remembered of members that are not in the next view.
    pub(super) fn orphans(&self, now: Time) -> Vec<TimedCopy> {
        let Some(membership) = self.membership() else { return Vec::new() };
        let Some(record) = membership.record() else { return Vec::new() };
        if !membership.rules().keeps_timed_holds() {
            return Vec::new();
        }
        let copies = self.standby.copies.iter();
        let lost = copies.filter(|(id, kept)| {
            let is_own = self.timed.entries.contains_key(id);
            !is_own && !record.has(&kept.holder) && kept.until > now
        });
        lost.map(|(_, kept)| {
            let mut copy = kept.copy.clone();
            copy.hold.left = kept.until.since(now);
            copy
        })
        .collect()
    }

    /// Takes over the timed holds that are here from the view on that is about to begin.
    pub(super) fn take_over(&mut self, held: &Held, host: &mut dyn Host) {
        self.standby.members = self.runs();
        let (me, count) = (self.view.me, self.standby.members.len());
        self.standby.standby = (count > 1).then(|| (me + 1) % count);
        let own = self.view.own().name.clone();
        let mut taken: BTreeMap<HoldId, (&TimedCopy, Vec<&HeldLock>)> = BTreeMap::new();
        for (copy, lock) in held.taken_by(&own) {
            taken.entry(copy.hold.id).or_insert_with(|| (copy, Vec::new())).1.push(lock);
        }
        for (copy, locks) in taken.into_values() {
            self.take_over_one(copy, &locks, host);
        }
    }

    fn take_over_one(&mut self, copy: &TimedCopy, locks: &[&HeldLock], host: &mut dyn Host) {
        let (now, hold) = (host.now(), &copy.hold);
        let Ok(parts) = request::parts(&hold.names, hold.permits, &self.view) else { return };
        self.standby.forget(hold.id);
        self.last_session += 1;
        let secret = hold.id.0.to_be_bytes();
        let session_id = SessionId::new(self.incarnation, self.last_session, secret);
        let owner = Owner(session_id.number);
        let id = self.take_request();
        let mut held = Vec::new();
        for mut part in parts {
            let is_it = |lock: &&&HeldLock| lock.name == part.key(hold.permits).name;
            let Some(lock) = locks.iter().find(is_it) else { continue };
            let mut names = hold.names.iter().zip(&hold.fences);
            let fence = names.find(|(name, _)| part.covers(name)).map_or(0, |(_, fence)| *fence);
            let (fence, set) = (Fence(fence), part.set.clone());
            let ask = Ask { owner, request: Some(id), set, full: 0 };
            if let Ok(place) = host.adopt(part.key(hold.permits), lock.seat, ask, fence) {
                part.held = Some((place, fence));
                held.push(part);
            }
        }
        let mut session = Session::new(session_id, hold.who.clone(), Some(hold.left), now);
        session.timed = Some(hold.id);
        session.requests.insert(ONLY, id);
        self.sessions.insert(owner, session);
        host.set_timer(Timer::Session(owner), Some(hold.left));
        let request = Request {
            origin: Origin::Timed(owner),
            names: hold.names.clone(),
            permits: hold.permits,
            refuses: false,
            parts: held,
            state: State::Held(now),
            question: None,
            has_timer: false,
        };
        self.keep_request(id, request);
        let me = self.view.me;
        let others = self.standby.members.iter().enumerate().filter(|(place, _)| *place != me);
        let entry = Entry {
            owner,
            asker: None,
            ttl: hold.ttl,
            token: hold.token.clone(),
            waiting: Vec::new(),
            is_confirmed: true,
            asked: None,
            // Any of them may remember it.
            keepers: others.map(|(_, run)| run.clone()).collect(),
        };
        self.timed.entries.insert(hold.id, entry);
        self.timed.name(hold.id, &hold.names, hold.permits);
        self.timed.unprotected.push_back(hold.id);
    }

    /// A view has begun: every timed hold here is remembered by the standby of this view, and nobody
    /// remembers what is over.
    pub(super) fn protect_all(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        self.standby.asked.clear();
        self.standby.told.clear();
        let members = self.standby.members.clone();
        let standby = self.standby.standby().map(|(_, run)| run.clone());
        let mut unprotected = Vec::from(core::mem::take(&mut self.timed.unprotected));
        for (&id, entry) in &mut self.timed.entries {
            entry.keepers.retain(|run| members.contains(run));
            // Other members ask anew themselves.
            entry.waiting.retain(|reply| matches!(reply, Reply::Asker(_)));
            let is_kept = standby.as_ref().is_none_or(|run| entry.keepers.contains(run));
            let is_asked = entry.asked.take().is_some() || !entry.waiting.is_empty();
            if entry.asker.is_none() && (is_asked || !is_kept || entry.keepers.len() > 1) {
                unprotected.push(id);
            }
        }
        unprotected.sort_unstable();
        unprotected.dedup();
        self.timed.unprotected = unprotected.into();
        self.protect_more(host, out);
        let over: Vec<HoldId> = self.standby.over.keys().copied().collect();
        for id in over {
            let Some(mut ended) = self.standby.over.remove(&id) else { continue };
            ended.keepers.retain(|run| self.tell_to_forget(id, run, out));
            self.standby.over.insert(id, ended);
            self.pass_on(id, host);
        }
        self.standby.over.retain(|_, ended| !ended.keepers.is_empty());
    }
}
