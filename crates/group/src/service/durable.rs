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

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use catraca_core::Claim;

use super::unlocking::Unlocking;
use super::{Host, Output, Service};
use crate::driver::{Client, Ending};
use crate::durable::{AcquireDurable, DurableHold, DurablePart, HoldId};
use crate::lock::Owner;
use crate::membership::{Beat, Membership, beat_key, decode, encode};
use crate::refusal::Refusal;
use crate::registry::{Answer, Guard, Item, LONGEST_VALUE, Op, Revision, TAKEN, Trouble, Txn};
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

/// What whoever asked for a hold and did not get it is told, once the registry was asked whether it is there.
fn at_last(
    wanted: &DurableHold,
    why: Refusal,
    result: Result<Answer, Trouble>,
) -> Result<DurableHold, Refusal> {
    match result {
        Ok(answer) => {
            let found = shown(&answer, wanted.id);
            let found = found.and_then(|item| decode::<DurableHold>(&item.value));
            found.filter(|found| found.answers(wanted)).ok_or(why)
        }
        // It may be this very hold that was waited for: nobody knows that it is somebody else's.
        Err(trouble) if matches!(why, Refusal::Taken | Refusal::TimedOut) => {
            Err(Refusal::Registry(trouble.to_string()))
        }
        Err(_) => Err(why),
    }
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

    // Writing.

    /// All locks of a durable hold are granted: it is written.
    pub(super) fn write_durable(&mut self, id: HoldId, host: &mut dyn Host, out: &mut Vec<Output>) {
        let now = host.now();
        let Some(membership) = self.membership() else { return };
        let (run, beat, rules) = (membership.run(), membership.own_beat_at(), membership.rules());
        let Some(entry) = self.entry(id) else { return };
        let (request, askers) = (entry.request, entry.askers.clone());
        if !askers.iter().any(|asker| self.is_wanted_by(asker, now)) {
            return self.end_durable(id, Err(Refusal::UnknownSession), host, out);
        }
        let Some(request) = self.requests.get(&request) else { return };
        let part = |part: &request::Part| DurablePart {
            key: part.key(request.permits).name.into(),
            claim: part.set.as_ref().map_or_else(Claim::single, |set| set.claim.clone()),
        };
        let (fences, parts) = (request.fences(), request.parts.iter().map(part).collect());
        let Some(entry) = self.entry(id) else { return };
        let record = &mut entry.record;
        (record.fences, record.parts, record.granted_at) = (fences, parts, run);
        record.unix_millis = entry.asked_at.0.saturating_add(now.millis_since(entry.asked_at.1));
        if rules.confirms_unwritten() {
            tell(&core::mem::take(&mut entry.askers), &Ok(entry.record.clone()), out);
        }
        match beat {
            Some(beat) => self.write(id, beat, out),
            None => self.end_durable(id, Err(Refusal::Lapsed), host, out),
        }
    }

    /// Writes a hold, if the own beat is still the one of this revision.
    fn write(&mut self, id: HoldId, beat: Revision, out: &mut Vec<Output>) {
        let Some(membership) = self.membership() else { return };
        let guard = Guard::At(beat_key(&membership.run().name), beat);
        let is_guarded = membership.rules().guards_durable_holds();
        let Some(entry) = self.entry(id) else { return };
        entry.stage = Stage::Writing { beat };
        let (request, key) = (entry.request, id.key());
        let txn = Txn {
            guards: Vec::from([Guard::Absent(key.clone())]),
            ops: Vec::from([
                Op::Put(key, encode(&entry.record)),
                Op::Put(TAKEN.into(), encode(&id)),
            ]),
            page: None,
        };
        let txn = if is_guarded { txn.given(guard) } else { txn };
        self.ask_registry(Purpose::Write(id, request), txn.with_page(id.before(), 1), out);
    }

    fn written(
        &mut self,
        id: HoldId,
        request: RequestId,
        result: Result<Answer, Trouble>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let now = host.now();
        let Some(entry) = self.entry(id).filter(|entry| entry.request == request) else { return };
        let Stage::Writing { beat } = entry.stage else { return };
        match result {
            Ok(answer) if answer.applied => {
                let born = shown(&answer, id).map_or(answer.revision, |item| item.born);
                self.keep_hold(id, born, out);
            }
            Ok(answer) => match (shown(&answer, id), self.own_beat_in(&answer)) {
                (Some(item), _) => self.found(id, item, host, out),
                // Another beat came between: that is no reason.
                (None, Some(now)) if now != beat => self.write(id, now, out),
                _ => self.end_durable(id, Err(Refusal::Lapsed), host, out),
            },
            Err(trouble @ (Trouble::Refused(_) | Trouble::Unreachable(_))) => {
                let why = Refusal::Registry(trouble.to_string());
                self.end_durable(id, Err(why), host, out);
            }
            Err(Trouble::Unknown(_) | Trouble::Lost(_)) => {
                entry.stage = Stage::Unsure { beat, since: now };
                self.with_membership(host, out, Membership::beat_now);
            }
        }
    }

    /// When the beat of this run was written, as an answer shows it.
    pub(super) fn own_beat_in(&self, answer: &Answer) -> Option<Revision> {
        let run = self.membership()?.run();
        let item = answer.state.get(&beat_key(&run.name))?;
        let beat = decode::<Beat>(&item.value)?;
        (beat.incarnation == run.incarnation).then_some(item.at)
    }

    /// A hold is in the registry: whoever asked for it is told.
    fn keep_hold(&mut self, id: HoldId, born: Revision, out: &mut Vec<Output>) {
        let Some(entry) = self.entry(id) else { return };
        entry.stage = Stage::Kept { born };
        tell(&core::mem::take(&mut entry.askers), &Ok(entry.record.clone()), out);
        if let Some(durables) = self.durables() {
            durables.pending.remove(&id);
        }
    }

    /// What was asked for or being written is in the registry: by this member, or by another one.
    pub(super) fn found(
        &mut self,
        id: HoldId,
        item: &Item,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Some(entry) = self.entry(id) else { return };
        match decode::<DurableHold>(&item.value) {
            Some(found) if found == entry.record => self.keep_hold(id, item.born, out),
            Some(found) if found.answers(&entry.record) => {
                self.end_durable(id, Ok(found), host, out);
            }
            // It was written, and given to somebody else since: the locks stay where they are.
            Some(found) if found.is_grant_of(&entry.record) => {
                let why = Refusal::NotOwner(found.owner.clone());
                let askers = core::mem::take(&mut entry.askers);
                entry.record = found;
                self.keep_hold(id, item.born, out);
                tell(&askers, &Err(why), out);
            }
            _ => {
                let why = Refusal::OtherRequest(entry.record.request.clone());
                self.end_durable(id, Err(why), host, out);
            }
        }
    }

    /// Nothing of a durable hold is here any more; whoever asked for it is told this.
    pub(super) fn end_durable(
        &mut self,
        id: HoldId,
        result: Result<DurableHold, Refusal>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Some(request) = self.entry(id).map(|entry| entry.request) else { return };
        // As long as the entry is there, it is known whose it was.
        self.withdraw(request, host);
        let Some(entry) = self.remove_entry(id) else { return };
        tell(&entry.askers, &result, out);
    }

    fn remove_entry(&mut self, id: HoldId) -> Option<Entry> {
        let durables = self.durables()?;
        durables.pending.remove(&id);
        durables.unseen.remove(&id);
        durables.entries.remove(&id)
    }

    /// A request that waited is not granted, and is no more. Before that is said, the registry is asked
    /// whether the hold is there: it may have been granted elsewhere, or long ago.
    pub(super) fn refuse_durable(&mut self, id: HoldId, why: Refusal, out: &mut Vec<Output>) {
        let Some(entry) = self.remove_entry(id) else { return };
        match why {
            Refusal::Stopped | Refusal::Leaving => tell(&entry.askers, &Err(why), out),
            why => self.ask_last(entry.askers, entry.record, why, out),
        }
    }

    fn ask_last(
        &mut self,
        askers: Vec<Asker>,
        wanted: DurableHold,
        why: Refusal,
        out: &mut Vec<Output>,
    ) {
        let id = wanted.id;
        if !askers.is_empty() {
            let last = Purpose::Last(askers, Box::new(wanted), why);
            self.ask_registry(last, Txn::read().with_page(id.before(), 1), out);
        }
    }

    /// A request that waits here is for a hold that was found. Whoever asked is told what the registry
    /// says of it.
    pub(super) fn give_way(&mut self, id: HoldId, host: &mut dyn Host, out: &mut Vec<Output>) {
        let Some(request) = self.entry(id).map(|entry| entry.request) else { return };
        self.take_out(request, Ending::Moved, host);
        let Some(entry) = self.remove_entry(id) else { return };
        self.ask_last(entry.askers, entry.record, Refusal::Unsure, out);
    }

    // What else may happen to a member.

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

    /// The group goes on without this member, which has none of its durable holds any more. Whoever waits
    /// for its locks goes on waiting; whether the others were written, the registry knows.
    pub(super) fn give_up_durable(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        let Some(durables) = self.durables() else { return };
        let waits = |entry: &Entry| entry.stage == Stage::Waiting;
        let here = durables.entries.iter().filter(|(_, entry)| !waits(entry));
        let here: Vec<HoldId> = here.map(|(&id, _)| id).collect();
        for id in here {
            self.give_way(id, host, out);
        }
    }

    /// The member stops: whoever has not been answered will not be.
    pub(super) fn leave_unanswered(&mut self, out: &mut Vec<Output>) {
        let Some(durables) = self.durables() else { return };
        for entry in durables.entries.values_mut() {
            let why = match entry.stage {
                Stage::Waiting => Refusal::Stopped,
                _ => Refusal::Unsure,
            };
            tell(&core::mem::take(&mut entry.askers), &Err(why), out);
        }
    }

    /// The session of somebody is over.
    pub(super) fn forget_session(&mut self, owner: Owner, host: &mut dyn Host) {
        self.forget_askers(&|asker| asker.session == Some(owner), host);
    }

    /// These do not wait any more. What nobody waits for is not asked for any more.
    fn forget_askers(&mut self, is_it: &dyn Fn(&Asker) -> bool, host: &mut dyn Host) {
        let Some(durables) = self.durables() else { return };
        for purpose in durables.asks.values_mut() {
            match purpose {
                Purpose::Again(asker, ..) if is_it(asker) => *purpose = Purpose::Look(Vec::new()),
                Purpose::Last(askers, ..) => askers.retain(|asker| !is_it(asker)),
                _ => {}
            }
        }
        let mut unwanted = Vec::new();
        for id in &durables.pending {
            let Some(entry) = durables.entries.get_mut(id) else { continue };
            entry.askers.retain(|asker| !is_it(asker));
            if entry.askers.is_empty() && entry.stage == Stage::Waiting {
                unwanted.push(*id);
            }
        }
        for id in unwanted {
            if let Some(request) = self.entry(id).map(|entry| entry.request) {
                self.withdraw(request, host);
                self.remove_entry(id);
            }
        }
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
