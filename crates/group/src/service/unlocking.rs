//! Releasing durable holds, at any member, or giving them to somebody else; and taking over those whose
//! members are gone.
//!
//! A hold is given away by writing it anew with another owner, if it is as it was found. Its locks are not
//! released for that, so nobody gets in between, and there is never more than one owner. The fence stays.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use catraca_core::Fence;

use super::durable::{Entry, Purpose, Stage, shown};
use super::{Host, Output, Service};
use crate::durable::{Adopted, DurableHold, HoldId, Target, Transfer, Unlock};
use crate::lock::Owner;
use crate::membership::{decode, encode};
use crate::refusal::Refusal;
use crate::registry::{Answer, Guard, Item, LARGEST_PAGE, RELEASED, Revision, TAKEN, Trouble, Txn};
use crate::request::{self, Origin, Part, Request, RequestId, State};
use crate::shard::{Ask, Held, HeldLock};

/// After so many tries somebody who wants to release a hold is told that it does not work.
const MOST_TRIES: u32 = 5;

/// What is to be done with a hold that is found.
#[derive(Clone, Debug)]
enum Aim {
    /// It is only looked at.
    Look,
    Release,
    /// It belongs to somebody else from now on: who, what there is to say about it, and when that was asked
    /// for by the clock on the wall.
    Give {
        to: String,
        note: String,
        unix_millis: u64,
    },
}

/// A hold that is being released, or given away.
#[derive(Clone, Debug)]
pub(super) struct Unlocking {
    asker: u64,
    unlock: Unlock,
    aim: Aim,
    tries: u32,
    /// Those of the name that were found so far, and when each was written.
    found: Vec<(Revision, DurableHold)>,
    /// The one that is being deleted, or written anew as this.
    changing: Option<(Revision, Box<DurableHold>)>,
    /// The one whose change may have been carried out.
    unsure: Option<(Revision, Box<DurableHold>)>,
}

impl Unlocking {
    /// What the registry is asked for: the hold with the id, or the holds after a key.
    fn reading(&self, after: Option<String>) -> Txn {
        match (&self.unlock.target, after) {
            (Target::Id(id), _) => Txn::read().with_page(id.before(), 1),
            (Target::Name(_), after) => {
                Txn::read().with_page(after.unwrap_or_default(), LARGEST_PAGE)
            }
        }
    }

    /// Takes in those that an answer shows. Returns the key after which there are more.
    fn take_in(&mut self, answer: &Answer) -> Option<String> {
        let read = |item: &Item| Some((item.at, decode::<DurableHold>(&item.value)?));
        match &self.unlock.target {
            Target::Id(id) => {
                self.found.extend(shown(answer, *id).and_then(read));
                None
            }
            Target::Name(name) => {
                let holds = answer.holds.iter().filter_map(|(_, item)| read(item));
                self.found.extend(holds.filter(|(_, hold)| hold.names.contains(name)));
                let last = answer.holds.last().filter(|_| answer.more);
                last.map(|(key, _)| key.clone())
            }
        }
    }

    /// The one hold that is meant.
    fn choose(&mut self) -> Result<(Revision, DurableHold), Refusal> {
        let named = match &self.unlock.target {
            Target::Id(id) => id.to_string(),
            Target::Name(name) => name.clone(),
        };
        let mut found = core::mem::take(&mut self.found);
        let somebody = found.first().map(|(_, hold)| hold.owner.clone());
        if let Some(owner) = &self.unlock.owner {
            found.retain(|(_, hold)| hold.owner == *owner);
        }
        match (found.len(), found.pop(), somebody) {
            (1, Some(one), _) => Ok(one),
            (0, _, Some(owner)) => Err(Refusal::NotOwner(owner)),
            (0, ..) => Err(Refusal::NoSuchHold(named)),
            (many, ..) => Err(Refusal::SeveralHolds(named, many)),
        }
    }
}

impl Service {
    /// Releases a durable hold, wherever it is. What comes of it is told `asker` by
    /// [`Output::Unlocked`].
    pub fn unlock(
        &mut self,
        asker: u64,
        unlock: Unlock,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        self.find_durable(asker, unlock, Aim::Release, host, out);
    }

    /// Looks at a durable hold, wherever it is. What there is to say is told `asker` by
    /// [`Output::Unlocked`].
    pub fn look_durable(
        &mut self,
        asker: u64,
        target: Target,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        self.find_durable(asker, Unlock { target, owner: None }, Aim::Look, host, out);
    }

    /// Gives a durable hold to another owner, wherever it is. What comes of it is told `asker` by
    /// [`Output::Unlocked`]: the hold as it is then. `unix_millis` is the time by the clock on the wall, in
    /// milliseconds since 1970.
    pub fn transfer(
        &mut self,
        asker: u64,
        transfer: Transfer,
        unix_millis: u64,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        if let Err(why) = transfer.check() {
            return out.push(Output::Unlocked(asker, Err(why)));
        }
        let Transfer { id, from, to, note } = transfer;
        let unlock = Unlock { target: Target::Id(id), owner: Some(from) };
        self.find_durable(asker, unlock, Aim::Give { to, note, unix_millis }, host, out);
    }

    fn find_durable(
        &mut self,
        asker: u64,
        unlock: Unlock,
        aim: Aim,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        if self.views.is_none() {
            return out.push(Output::Unlocked(asker, Err(Refusal::NoRegistry)));
        }
        let (found, changing) = (Vec::new(), None);
        let unlocking = Unlocking { asker, unlock, aim, tries: 0, found, changing, unsure: None };
        self.find(unlocking, out);
        self.absorb(host, out);
    }

    /// Finds the hold, from the beginning.
    fn find(&mut self, mut unlocking: Unlocking, out: &mut Vec<Output>) {
        unlocking.tries += 1;
        unlocking.found.clear();
        if unlocking.tries > MOST_TRIES {
            let why = Refusal::Unsure;
            return out.push(Output::Unlocked(unlocking.asker, Err(why)));
        }
        let txn = unlocking.reading(None);
        self.ask_registry(Purpose::Unlock(Box::new(unlocking)), txn, out);
    }

    /// The registry has answered what was asked to release a hold or to give it away.
    pub(super) fn go_on_unlocking(
        &mut self,
        mut unlocking: Unlocking,
        result: Result<Answer, Trouble>,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let asker = unlocking.asker;
        match (result, unlocking.changing.take()) {
            (Ok(answer), Some((_, hold))) if answer.applied => {
                self.see(hold.id, &answer, host, out);
                out.push(Output::Unlocked(asker, Ok(hold)));
            }
            (Ok(_), Some(_)) => self.find(unlocking, out),
            (Ok(answer), None) => match unlocking.take_in(&answer) {
                Some(after) => {
                    let txn = unlocking.reading(Some(after));
                    self.ask_registry(Purpose::Unlock(Box::new(unlocking)), txn, out);
                }
                None => self.change(unlocking, out),
            },
            (Err(Trouble::Unknown(_) | Trouble::Lost(_)), changing) => {
                if let Some((at, hold)) = changing {
                    // Now it is known which one is meant.
                    unlocking.unlock.target = Target::Id(hold.id);
                    unlocking.unsure = Some((at, hold));
                }
                self.find(unlocking, out);
            }
            (Err(trouble), _) => {
                let why = match unlocking.unsure {
                    Some(_) => Refusal::Unsure,
                    None => Refusal::Registry(trouble.to_string()),
                };
                out.push(Output::Unlocked(asker, Err(why)));
            }
        }
    }

    /// Deletes the hold that is meant or gives it away, if it is as it was found; or only tells of it.
    fn change(&mut self, mut unlocking: Unlocking, out: &mut Vec<Output>) {
        let asker = unlocking.asker;
        if let Some((at, hold)) = unlocking.unsure.take() {
            let is_there = unlocking.found.iter().any(|(found, _)| *found == at);
            let is_done = match unlocking.aim {
                // That it is not there is what was wanted.
                Aim::Look | Aim::Release => !is_there,
                Aim::Give { .. } => unlocking.found.iter().any(|(_, found)| *found == *hold),
            };
            if is_done {
                return out.push(Output::Unlocked(asker, Ok(hold)));
            }
            unlocking.unsure = is_there.then_some((at, hold));
        }
        let (at, hold) = match unlocking.choose() {
            Ok(chosen) => chosen,
            Err(why) => return out.push(Output::Unlocked(asker, Err(why))),
        };
        let key = hold.id.key();
        let txn = Txn::default().given(Guard::At(key.clone(), at));
        let (txn, hold) = match unlocking.aim.clone() {
            Aim::Look => return out.push(Output::Unlocked(asker, Ok(Box::new(hold)))),
            Aim::Release => (txn.delete(key).put(RELEASED, encode(&hold.id)), hold),
            Aim::Give { to, note, unix_millis } => {
                let given = DurableHold { owner: to, note, unix_millis, ..hold };
                (txn.put(key, encode(&given)).put(TAKEN, encode(&given.id)), given)
            }
        };
        let txn = txn.with_page(hold.id.before(), 1);
        unlocking.changing = Some((at, Box::new(hold)));
        self.ask_registry(Purpose::Unlock(Box::new(unlocking)), txn, out);
    }

    // Holds whose members are gone.

    /// Takes over the durable holds that are here from the view on that is about to begin.
    pub(super) fn adopt_holds(&mut self, held: &Held, host: &mut dyn Host, out: &mut Vec<Output>) {
        let own = self.view.own().name.clone();
        let mut adopted: BTreeMap<HoldId, (&Adopted, Vec<&HeldLock>)> = BTreeMap::new();
        for (hold, lock) in held.adopted_by(&own) {
            adopted.entry(hold.hold.id).or_insert_with(|| (hold, Vec::new())).1.push(lock);
        }
        let ids: Vec<HoldId> = adopted.keys().copied().collect();
        for (hold, locks) in adopted.into_values() {
            self.adopt_hold(hold, &locks, host, out);
        }
        // Since it was read for the table it may have been released.
        self.look_at(&ids, out);
    }

    fn adopt_hold(
        &mut self,
        adopted: &Adopted,
        locks: &[&HeldLock],
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Adopted { born, hold } = adopted;
        let now = host.now();
        let Ok(all) = request::parts(&hold.names, hold.permits, &self.view) else { return };
        let known = self.durables().and_then(|durables| {
            let entry = durables.entries.get(&hold.id)?;
            matches!(entry.stage, Stage::Kept { .. }).then_some(entry.request)
        });
        if known.is_none() {
            // Somebody has asked for it again, and waits here for itself.
            self.give_way(hold.id, host, out);
        }
        let id = known.unwrap_or_else(|| self.take_request());
        let mut parts = Vec::new();
        for mut part in all {
            let is_it = |lock: &&&HeldLock| lock.name == part.key(hold.permits).name;
            let Some(lock) = locks.iter().find(is_it) else { continue };
            let names = hold.names.iter().zip(&hold.fences);
            let fence = names.filter(|(name, _)| part.covers(name)).map(|(_, fence)| *fence).next();
            let fence = Fence(fence.unwrap_or_default());
            let ask =
                Ask { owner: Owner::DURABLE, request: Some(id), set: part.set.clone(), full: 0 };
            if let Ok(place) = host.adopt(part.key(hold.permits), lock.seat, ask, fence) {
                part.held = Some((place, fence));
                parts.push(part);
            }
        }
        let names = hold.names.iter().filter(|name| parts.iter().any(|part| part.covers(name)));
        let names: Vec<String> = names.cloned().collect();
        match self.requests.get_mut(&id) {
            // It has parts of the hold already.
            Some(request) => {
                self.name_bytes -= request.name_bytes();
                request.names.extend(names);
                request.parts.extend(parts);
                self.name_bytes += request.name_bytes();
            }
            None => {
                let request = held_request(hold, names, parts, State::Held(now));
                self.keep_request(id, request);
            }
        }
        if let Some(durables) = self.durables() {
            durables.entries.insert(hold.id, Entry::kept(id, hold.clone(), *born, now));
        }
    }

    /// The number of a request that is none of a client here.
    pub(super) fn take_request(&mut self) -> RequestId {
        let id = self.next_request();
        self.last_request += 1;
        id
    }
}

fn held_request(hold: &DurableHold, names: Vec<String>, parts: Vec<Part>, state: State) -> Request {
    let (origin, permits) = (Origin::Durable(hold.id), hold.permits);
    let (refuses, question, has_timer) = (false, None, false);
    Request { origin, names, permits, refuses, parts, state, question, has_timer }
}
