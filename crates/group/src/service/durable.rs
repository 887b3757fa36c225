//! Durable holds: asked for as any other, written to the registry, and only then confirmed.
//!
//! A durable hold is granted by the algorithms of its locks like every request. Then it is written in a
//! transaction that is guarded by the own beat, as it was last. If the member has been excluded, the
//! write fails; if it is carried out before, whoever makes the table of the next view sees it. With the
//! next beat every earlier write is done, or never will be. So after an unknown outcome the member beats
//! and reads: the hold is there, or it is not and never will be by this write. Without that it could not
//! give the lock back, for a write that comes late would make a hold of it that nobody has.
//!
//! What is in the registry counts, not what is known here. Whoever asks again is answered from there, and
//! a hold that is not there any more is over, whoever has deleted it.

mod ending;
mod writing;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use self::ending::at_last;
use super::unlocking::Unlocking;
use super::{Host, Output, Service};
use crate::driver::Client;
use crate::durable::{AcquireDurable, DurableHold, HoldId};
use crate::lock::Owner;
use crate::membership::decode;
use crate::refusal::Refusal;
use crate::registry::{Answer, Item, LONGEST_VALUE, Revision, Trouble, Txn};
use crate::request::{self, Acquire, Origin, RequestId};
use crate::session::MOST_REQUESTS_IN_ALL;
use crate::time::Time;

/// Transactions about durable holds have this bit in their numbers; the others are of the membership.
const OWN_ASKS: u64 = 1 << 63;

/// Everything about durable holds that were asked for here or are held here.
#[derive(Clone, Debug, Default)]
pub(super) struct Durables {
    pub(super) entries: BTreeMap<HoldId, Entry>,
    /// Those that are not in the registry yet, as far as is known.
    pub(super) pending: BTreeSet<HoldId>,
    /// Those that have to be looked at when the timer runs out.
    pub(super) unseen: BTreeSet<HoldId>,
    asks: BTreeMap<u64, Purpose>,
    last_ask: u64,
    /// The last release that was heard of, and when all holds here were looked at because of one.
    pub(super) released: Revision,
    /// Up to where the driver has told which holds have changed; 0 if it does not watch them.
    pub(super) watched: Revision,
    pub(super) looked_at: Time,
    pub(super) timer: Option<Time>,
}

/// What is under way in the registry is told by what was asked there; times do not matter.
impl Hash for Durables {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for (id, Entry { request, stage, .. }) in &self.entries {
            (id, request, stage).hash(hasher);
        }
        (&self.pending, &self.unseen, self.timer.is_some()).hash(hasher);
        (self.released, self.watched).hash(hasher);
        self.asks.keys().for_each(|number| number.hash(hasher));
    }
}

/// A durable hold, or a request for one.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) request: RequestId,
    pub(super) stage: Stage,
    pub(super) askers: Vec<Asker>,
    /// What is written, or will be: as long as it waits, what was asked for.
    pub(super) record: DurableHold,
    /// When it was asked for: by the clock on the wall, and by that of the member.
    asked_at: (u64, Time),
    /// Who has asked for it here first.
    identity: String,
}

impl Entry {
    /// A hold that is in the registry.
    pub(super) fn kept(request: RequestId, record: DurableHold, born: Revision, now: Time) -> Self {
        let stage = Stage::Kept { born };
        let (askers, asked_at, identity) = (Vec::new(), (0, now), String::new());
        Entry { request, stage, askers, record, asked_at, identity }
    }
}

/// How far a durable hold is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// For its locks.
    Waiting,
    /// It is being written, guarded by the beat of this revision.
    Writing { beat: Revision },
    /// It may have been written, guarded by the beat of this revision, or not.
    Unsure { beat: Revision, since: Time },
    /// It is in the registry since this revision.
    Kept { born: Revision },
}

/// Who wants to know what comes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asker {
    pub(super) number: u64,
    /// With the end of its session it stops to wait.
    session: Option<Owner>,
}

/// On whose behalf a durable hold is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behalf {
    /// With the end of this session nobody waits any more.
    pub session: Option<Owner>,
    /// Who has shown to be whom; empty if nobody knows. The registry does not keep it.
    pub identity: String,
}

/// What the registry was asked for.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
    /// To write a hold.
    Write(HoldId, RequestId),
    /// To see whether these are as they are believed to be.
    Look(Vec<HoldId>),
    /// To see whether a hold that is here is there, for somebody who asks again.
    Again(Asker, Box<AcquireDurable>, u64),
    /// To see whether what is going to be refused is there already.
    Last(Vec<Asker>, Box<DurableHold>, Refusal),
    /// To release a hold.
    Unlock(Box<Unlocking>),
}

/// The hold with this id among those that an answer shows.
pub(super) fn shown(answer: &Answer, id: HoldId) -> Option<&Item> {
    let first = answer.holds.first().filter(|(key, _)| *key == id.key());
    first.map(|(_, item)| item)
}

impl Service {
    /// Asks for a durable hold. What comes of it is told `asker` by [`Output::Durable`]. Asking again
    /// with the same owner and the same name of the request gives the same hold, at every member. If the
    /// session ends before the locks are granted, nobody waits for them any more; what is granted stays.
    ///
    /// Whoever has asked several times, or at several members, cancels what is not answered, or lets its
    /// sessions end, before it releases the hold: what is granted afterwards would be another hold.
    ///
    /// `unix_millis` is the time by the clock on the wall, in milliseconds since 1970.
    pub fn acquire_durable(
        &mut self,
        asker: u64,
        behalf: Behalf,
        asked: AcquireDurable,
        unix_millis: u64,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Behalf { session, identity } = behalf;
        let asker = Asker { number: asker, session };
        if let Err(why) = self.check_durable(&asked) {
            return tell(&[asker], &Err(why), out);
        }
        let id = asked.id();
        self.ask_durably(asker, asked, unix_millis, host, out);
        if let Some(entry) = self.entry(id).filter(|entry| entry.identity.is_empty()) {
            entry.identity = identity;
        }
        self.absorb(host, out);
        self.set_durable_timer(host);
    }

    /// `asker` does not wait any more. If the hold has been granted meanwhile, it is there.
    pub fn cancel_durable(&mut self, asker: u64, host: &mut dyn Host, out: &mut Vec<Output>) {
        self.forget_askers(&|it| it.number == asker, host);
        self.absorb(host, out);
    }

    /// Whether somebody still wants to know: sessions end at their time, also if nobody has noticed yet.
    fn is_wanted_by(&self, asker: &Asker, now: Time) -> bool {
        let session = |owner| self.sessions.get(&owner);
        asker.session.is_none_or(|owner| session(owner).is_some_and(|it| now < it.deadline))
    }

    fn check_durable(&self, asked: &AcquireDurable) -> Result<(), Refusal> {
        if self.views.is_none() {
            return Err(Refusal::NoRegistry);
        }
        asked.check()?;
        request::parts(&asked.names, asked.permits, &self.view)?;
        // Each name may be there twice, with a fence and a claim.
        let names: usize = asked.names.iter().map(|name| 2 * name.len() + 32).sum();
        if names + 4096 > LONGEST_VALUE {
            return Err(Refusal::DurableSize);
        }
        match self.requests.len() >= MOST_REQUESTS_IN_ALL {
            true => Err(Refusal::Busy),
            false => Ok(()),
        }
    }

    pub(super) fn durables(&mut self) -> Option<&mut Durables> {
        self.views.as_mut().map(|views| &mut views.durable)
    }

    pub(super) fn entry(&mut self, id: HoldId) -> Option<&mut Entry> {
        self.durables()?.entries.get_mut(&id)
    }

    fn ask_durably(
        &mut self,
        asker: Asker,
        asked: AcquireDurable,
        unix_millis: u64,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let id = asked.id();
        let wanted = self.wanted(&asked);
        if !self.is_wanted_by(&asker, host.now()) {
            return tell(&[asker], &Err(Refusal::UnknownSession), out);
        }
        match self.entry(id) {
            Some(entry) if matches!(entry.stage, Stage::Kept { .. }) => {
                let again = Purpose::Again(asker, Box::new(asked), unix_millis);
                self.ask_registry(again, Txn::read().with_page(id.before(), 1), out);
            }
            Some(entry) if entry.record.answers(&wanted) => entry.askers.push(asker),
            Some(_) => tell(&[asker], &Err(Refusal::OtherRequest(asked.request)), out),
            None => {
                let (stage, askers) = (Stage::Waiting, Vec::from([asker]));
                let (request, asked_at) = (self.next_request(), (unix_millis, host.now()));
                let identity = String::new();
                let entry = Entry { request, stage, askers, record: wanted, asked_at, identity };
                self.begin_durable(entry, asked, host, out);
            }
        }
    }

    /// What will be written if this is granted, as far as it is known before.
    fn wanted(&self, asked: &AcquireDurable) -> DurableHold {
        let AcquireDurable { names, permits, owner, note, request, .. } = asked.clone();
        let granted_at = crate::Run { name: "".into(), incarnation: self.incarnation };
        let (fences, parts, unix_millis) = (Vec::new(), Vec::new(), 0);
        let id = asked.id();
        DurableHold {
            id,
            names,
            permits,
            owner,
            note,
            request,
            fences,
            unix_millis,
            granted_at,
            parts,
        }
    }

    fn begin_durable(
        &mut self,
        entry: Entry,
        asked: AcquireDurable,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let id = asked.id();
        let Some(durables) = self.durables() else { return };
        durables.entries.insert(id, entry);
        durables.pending.insert(id);
        let AcquireDurable { names, permits, wait, .. } = asked;
        let acquire = Acquire { names, permits, wait };
        if let Err(why) = self.acquire(Origin::Durable(id), acquire, host, out) {
            return self.refuse_durable(id, why, out);
        }
        // If the lock is not free, that may be because of this very hold.
        if self.entry(id).is_some_and(|entry| entry.stage == Stage::Waiting) {
            self.look_at(&[id], out);
        }
    }

    /// Asks the registry.
    pub(super) fn ask_registry(&mut self, purpose: Purpose, txn: Txn, out: &mut Vec<Output>) {
        let Some(durables) = self.durables() else { return };
        durables.last_ask += 1;
        let number = OWN_ASKS | durables.last_ask;
        durables.asks.insert(number, purpose);
        out.push(Output::Transaction(number, txn));
    }

    /// The registry has answered a transaction about durable holds, or not. Returns the result if the
    /// transaction was none of these.
    pub(super) fn answered_durably(
        &mut self,
        number: u64,
        result: Result<Answer, Trouble>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Option<Result<Answer, Trouble>> {
        if let Ok(answer) = &result {
            self.hear_of_releases(answer, host, out);
        }
        if number & OWN_ASKS == 0 {
            return Some(result);
        }
        match self.durables()?.asks.remove(&number)? {
            Purpose::Write(id, request) => self.written(id, request, result, host, out),
            Purpose::Look(ids) => self.looked(&ids, result, host, out),
            Purpose::Again(asker, asked, unix_millis) => {
                self.asked_again(asker, *asked, unix_millis, result, host, out);
            }
            Purpose::Last(askers, wanted, why) => {
                tell(&askers, &at_last(&wanted, why, result), out);
            }
            Purpose::Unlock(unlocking) => self.go_on_unlocking(*unlocking, result, host, out),
        }
        self.absorb(host, out);
        self.set_durable_timer(host);
        None
    }

    fn asked_again(
        &mut self,
        asker: Asker,
        asked: AcquireDurable,
        unix_millis: u64,
        result: Result<Answer, Trouble>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let answer = match result {
            Ok(answer) => answer,
            Err(trouble) => {
                return tell(&[asker], &Err(Refusal::Registry(trouble.to_string())), out);
            }
        };
        let id = asked.id();
        self.see(id, &answer, host, out);
        let Some(item) = shown(&answer, id) else {
            return self.ask_durably(asker, asked, unix_millis, host, out);
        };
        let wanted = self.wanted(&asked);
        let found = decode::<DurableHold>(&item.value).filter(|found| found.answers(&wanted));
        tell(&[asker], &found.ok_or(Refusal::OtherRequest(asked.request)), out);
    }

    /// Which durable hold a request is, if it may be in the registry.
    pub(crate) fn durable_id(&self, request: RequestId) -> Option<HoldId> {
        let Origin::Durable(id) = self.requests.get(&request)?.origin else { return None };
        let entry = self.views.as_ref()?.durable.entries.get(&id)?;
        (entry.stage != Stage::Waiting).then_some(id)
    }

    /// Whether a request is a durable hold that the registry has.
    pub(super) fn is_kept(&self, request: RequestId) -> bool {
        let Some(id) = self.durable_id(request) else { return false };
        let entry = self.views.as_ref().and_then(|views| views.durable.entries.get(&id));
        entry.is_some_and(|entry| matches!(entry.stage, Stage::Kept { .. }))
    }

    /// What was asked for, or is held, by a request for a durable hold.
    pub(super) fn durable_record(&self, request: RequestId) -> Option<&DurableHold> {
        let Origin::Durable(id) = self.requests.get(&request)?.origin else { return None };
        let entry = self.views.as_ref()?.durable.entries.get(&id)?;
        Some(&entry.record)
    }

    /// Who has asked for a durable hold.
    pub(super) fn durable_client(&self, request: RequestId) -> Option<Client<'_>> {
        let Origin::Durable(id) = self.requests.get(&request)?.origin else { return None };
        let entry = self.views.as_ref()?.durable.entries.get(&id)?;
        Some(Client { label: &entry.record.owner, identity: &entry.identity })
    }
}

/// Whoever asked is told.
pub(super) fn tell(askers: &[Asker], result: &Result<DurableHold, Refusal>, out: &mut Vec<Output>) {
    for asker in askers {
        out.push(Output::Durable(asker.number, result.clone().map(Box::new)));
    }
}

#[cfg(test)]
pub(super) mod tests;
