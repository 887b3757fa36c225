//! How it ends to ask for a durable hold without getting it, and how a member gives up those that it has.
//!
//! Nobody is told 'no' of what may be in the registry: it is asked first.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::{Asker, Entry, Purpose, Stage, shown, tell};
use crate::driver::Ending;
use crate::durable::{DurableHold, HoldId};
use crate::lock::Owner;
use crate::membership::decode;
use crate::refusal::Refusal;
use crate::registry::{Answer, Trouble, Txn};
use crate::service::{Host, Output, Service};

/// What whoever asked for a hold and did not get it is told, once the registry was asked whether it is there.
pub(super) fn at_last(
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
        Err(trouble) if matches!(why, Refusal::Taken | Refusal::TimedOut | Refusal::Lapsed) => {
            Err(Refusal::Registry(trouble.to_string()))
        }
        Err(_) => Err(why),
    }
}

impl Service {
    /// Nothing of a durable hold is here any more; whoever asked for it is told this.
    pub(in crate::service) fn end_durable(
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
    pub(in crate::service) fn refuse_durable(
        &mut self,
        id: HoldId,
        why: Refusal,
        out: &mut Vec<Output>,
    ) {
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
    pub(in crate::service) fn give_way(
        &mut self,
        id: HoldId,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Some(request) = self.entry(id).map(|entry| entry.request) else { return };
        self.take_out(request, Ending::Moved, host);
        let Some(entry) = self.remove_entry(id) else { return };
        self.ask_last(entry.askers, entry.record, Refusal::Unsure, out);
    }

    /// The group goes on without this member, which has none of its durable holds any more. Whoever waits
    /// for its locks goes on waiting; whether the others were written, the registry knows.
    pub(in crate::service) fn give_up_durable(
        &mut self,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Some(durables) = self.durables() else { return };
        let waits = |entry: &Entry| entry.stage == Stage::Waiting;
        let here = durables.entries.iter().filter(|(_, entry)| !waits(entry));
        let here: Vec<HoldId> = here.map(|(&id, _)| id).collect();
        for id in here {
            self.give_way(id, host, out);
        }
    }

    /// The member stops: whoever has not been answered will not be.
    pub(in crate::service) fn leave_unanswered(&mut self, out: &mut Vec<Output>) {
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
    pub(in crate::service) fn forget_session(&mut self, owner: Owner, host: &mut dyn Host) {
        self.forget_askers(&|asker| asker.session == Some(owner), host);
    }

    /// These do not wait any more. What nobody waits for is not asked for any more.
    pub(super) fn forget_askers(&mut self, is_it: &dyn Fn(&Asker) -> bool, host: &mut dyn Host) {
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
