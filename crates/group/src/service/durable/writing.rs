//! A durable hold is written to the registry, and what may come of that.

use alloc::string::ToString;
use alloc::vec::Vec;

use catraca_core::Claim;

use super::{Purpose, Stage, shown, tell};
use crate::durable::{DurableHold, DurablePart, HoldId};
use crate::membership::{Beat, Membership, beat_key, decode, encode};
use crate::refusal::Refusal;
use crate::registry::{Answer, Guard, Item, Op, Revision, TAKEN, Trouble, Txn};
use crate::request::{self, RequestId};
use crate::service::{Host, Output, Service};

impl Service {
    /// All locks of a durable hold are granted: it is written.
    pub(in crate::service) fn write_durable(
        &mut self,
        id: HoldId,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
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

    pub(super) fn written(
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
    pub(in crate::service) fn own_beat_in(&self, answer: &Answer) -> Option<Revision> {
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
    pub(in crate::service) fn found(
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
}
