//! A part of the locks of one member: a plain value, stepped by whoever brings an input.
//!
//! Everything that follows from an input happens in one go: the algorithm steps, messages between
//! seats of this member are delivered at once, messages to other members are given to the driver in
//! order, and whoever has come to the end of waiting is collected in the [`Outputs`].

mod anatomy;
mod crashes;
mod creating;
mod looking;
mod stepping;
mod succession;
mod telling;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use ahash::RandomState;
use catraca_core::{Claim, Fence};
use hashbrown::HashTable;
use serde::{Deserialize, Serialize};

use crate::blocks::Blocks;
use crate::driver::{
    Change, Ending, LockIndex, Outcome, Outputs, Place, SeatTimer, Settled, StepMessage,
};
use crate::histogram::Times;
use crate::kind::{Step, Stimulus};
use crate::lock::mutants::{Mutant, Mutation};
use crate::lock::{Asker, Grant, Left, Lock, Owner, Set, Ticket};
use crate::membership::{Rules, Sound};
use crate::recent::Recent;
use crate::refusal::Refusal;
use crate::request::RequestId;
use crate::returning::Returning;
use crate::time::Time;
use crate::turns::Turns;
use crate::view::{Seating, View};
use creating::Family;
use stepping::Internal;
pub use succession::{Held, HeldLock};
use telling::{measure_hold, tell_of};

/// So many locks are measured from their leaving to the next client, at the most.
const MOST_LEFT: usize = 1024;

/// Which instance: the name of a lock, or the pattern of a namespace whose names are taken in sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key<'a> {
    /// The name.
    pub name: &'a str,
    /// How many may be inside.
    pub permits: u32,
}

/// Who asks a shard, and for what.
#[derive(Debug, Default)]
pub struct Ask {
    /// On whose behalf.
    pub owner: Owner,
    /// The request that this is a part of; none for a caller that waits for its ticket itself.
    pub request: Option<RequestId>,
    /// The names and resources, where clients want sets.
    pub(crate) set: Option<Box<Set>>,
    /// The members that take no messages any more, one bit each: nothing is begun that would send
    /// them one.
    pub full: u64,
}

impl Ask {
    /// A request for one lock, or one permit.
    pub fn single(owner: Owner, request: Option<RequestId>, full: u64) -> Self {
        Ask { owner, request, set: None, full }
    }
}

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Where the asker is.
    pub place: Place,
    /// The fence, if it is inside already.
    pub fence: Option<Fence>,
}

/// What has become of somebody who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It waits.
    Waits,
    /// It is inside.
    Inside(Fence),
    /// It is neither: it has left, or was refused.
    Gone,
}

/// Counted since the member began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Grants to clients of this member.
    pub grants: u64,
    /// Of these, by hand-over from another client here.
    pub handovers: u64,
    /// Messages sent to other members.
    pub messages: u64,
    /// Messages that came from them.
    pub arrived: u64,
}

impl Counts {
    /// Adds what another shard has counted.
    pub fn add(&mut self, more: Counts) {
        self.grants += more.grants;
        self.handovers += more.handovers;
        self.messages += more.messages;
        self.arrived += more.arrived;
    }
}

/// A part of the locks of one member.
#[derive(Clone)]
pub struct Shard {
    view: Arc<View>,
    hasher: RandomState,
    turns: Turns,
    /// What its locks do wrong, in a mutant.
    mutation: Option<&'static dyn Mutation>,
    /// The rules from view to view.
    rules: &'static dyn Rules,
    /// Where the locks are, by the hash of their names.
    table: HashTable<u32>,
    locks: Blocks<Lock>,
    /// Places in `locks` whose locks were forgotten.
    free: Vec<u32>,
    families: Vec<Family>,
    tickets: Ticket,
    /// The members that the detector takes for crashed.
    suspects: Vec<usize>,
    /// Who was inside when the view began: instances that are created later begin from it.
    held: Arc<Held>,
    /// Whether no algorithm may step any more: the next view has yet to begin.
    is_frozen: bool,
    /// Whether the group goes from view to view: whoever cannot be served in this one waits for the next.
    has_next_view: bool,
    /// Whether a lock has nearly used up its numbers in this view.
    is_used_up: bool,
    /// How many locks were begun without asking for room: because of others.
    beyond_room: usize,
    /// What the numbers of grants begin after: other than 0 in tests.
    first_number: u64,
    /// Who leaves a lock only to ask for it again.
    pub returning: Returning,
    step: Step,
    internal: VecDeque<Internal>,
    counts: Counts,
    times: Times,
    /// When locks were left for which others wait here, until one of these is inside.
    left: BTreeMap<LockIndex, Time>,
    /// What was granted and released last, if the driver wants to show it.
    recent: Recent,
}

impl Shard {
    /// An empty shard. Whoever makes several for one member gives all of them the same `hasher`.
    pub fn new(view: Arc<View>, hasher: RandomState, turns: Turns) -> Self {
        Shard {
            view,
            hasher,
            turns,
            mutation: None,
            rules: &Sound,
            table: HashTable::new(),
            locks: Blocks::new(),
            free: Vec::new(),
            families: Vec::new(),
            tickets: 0,
            suspects: Vec::new(),
            held: Arc::default(),
            is_frozen: false,
            has_next_view: false,
            is_used_up: false,
            beyond_room: 0,
            first_number: 0,
            returning: Returning::default(),
            step: Step::default(),
            internal: VecDeque::new(),
            counts: Counts::default(),
            times: Times::default(),
            left: BTreeMap::new(),
            recent: Recent::default(),
        }
    }

    /// It remembers so many grants and releases from now on.
    pub fn remember(&mut self, most: usize) {
        self.recent = Recent::of(most);
    }

    /// Its locks are broken in one way from now on.
    pub(crate) fn mutated(&mut self, mutant: &Mutant) {
        self.mutation = Some(mutant.mutation);
    }

    /// It follows other rules from view to view.
    pub(crate) fn follow(&mut self, rules: &'static dyn Rules) {
        self.rules = rules;
    }

    /// The numbers of its grants begin after `number` in every view, to see what happens when they are
    /// used up.
    pub(crate) fn count_from(&mut self, number: u64) {
        self.first_number = number;
    }

    /// Whether nobody here is inside or waits, and nothing has been asked for.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.locks().all(Lock::is_at_rest)
    }

    /// Asks on behalf of somebody. If it is not inside at once, it waits.
    #[inline]
    pub fn acquire(
        &mut self,
        key: Key<'_>,
        hash: u64,
        ask: Ask,
        out: &mut Outputs<'_>,
    ) -> Result<Asked, Refusal> {
        if let Some(other) = self.other_permits(key, hash) {
            let (name, permits) = (key.name.to_string(), key.permits);
            return Err(Refusal::OtherPermits { name, permits, other });
        }
        let index = match self.find(key, hash) {
            Some(index) if self.locks[index.0 as usize].is_crowded() => {
                return Err(Refusal::Crowded(key.name.to_string()));
            }
            Some(index) => index,
            None if !out.driver.take_room() => return Err(Refusal::Full),
            None => self.create(key, hash, out).inspect_err(|_| out.driver.give_room(1))?,
        };
        if self.is_frozen {
            return Ok(self.queue_up(index, ask, out));
        }
        if ask.full != 0 {
            self.check_reach(index, &ask)?;
        }
        self.tickets += 1;
        let ticket = self.tickets;
        let place = Place { shard: out.shard, lock: index, ticket };
        let Ask { owner, request, set, .. } = ask;
        let asker = Asker { owner, request, set };
        let lock = &mut self.locks[index.0 as usize];
        if asker.set.is_some() {
            let now = out.driver.now();
            lock.join(ticket, asker, now);
            self.go_on(index, &mut None, out);
            return Ok(Asked { place, fence: self.come_at_once(place, out) });
        }
        let asked = lock.ask_directly();
        let mut newcomer = Some((ticket, asker));
        if let Some(seat) = asked {
            let request = Stimulus::Request(Claim::single());
            self.drive(index, seat, request, &mut newcomer, out);
            if let Some(refused) = out.settled.iter().position(|settled| settled.place == place)
                && let Outcome::Refused(why) = &out.settled[refused].outcome
            {
                let why = (**why).clone();
                out.settled.remove(refused);
                return Err(why);
            }
        }
        let lock = &mut self.locks[index.0 as usize];
        if let Some((ticket, asker)) = newcomer {
            let now = out.driver.now();
            lock.join(ticket, asker, now);
            self.returning.asks(index, now);
            self.tell(place, Change::Waits, out);
            return Ok(Asked { place, fence: None });
        }
        Ok(Asked { place, fence: self.come_at_once(place, out) })
    }

    /// The fence of somebody who has just asked, if it is inside; it is told by the answer and by
    /// nothing else.
    #[inline]
    fn come_at_once(&mut self, place: Place, out: &mut Outputs<'_>) -> Option<Fence> {
        let lock = &self.locks[place.lock.0 as usize];
        let fence = lock.fence_of(place.ticket);
        match fence {
            Some(_) => out.settled.retain(|settled| settled.place != place),
            None => self.tell(place, Change::Waits, out),
        }
        fence
    }

    /// Whether the request can be begun although some members take no messages any more: it can if
    /// it sends them none.
    #[cold]
    fn check_reach(&mut self, index: LockIndex, ask: &Ask) -> Result<(), Refusal> {
        let lock = &self.locks[index.0 as usize];
        let family = &mut self.families[usize::from(lock.kind)];
        // If all seats are in use here, whoever uses them has sent what is to be sent.
        let Some(slot) = lock.idle_slot() else { return Ok(()) };
        let claim = ask.set.as_ref().map_or_else(Claim::single, |set| set.claim.clone());
        family.kind.foresee(slot, Stimulus::Request(claim), &mut self.step);
        let seating = Seating { home: lock.home, ..family.seating };
        let receivers = self.step.sent.iter().filter_map(|sent| seating.place(sent.to));
        for (member, _) in receivers {
            if ask.full & 1 << member != 0 && !self.suspects.contains(&member) {
                return Err(Refusal::Behind(self.view.members[member].name.clone()));
            }
        }
        Ok(())
    }

    /// What has become of whoever is at `place`.
    pub fn progress(&self, place: Place) -> Progress {
        let lock = &self.locks[place.lock.0 as usize];
        match lock.fence_of(place.ticket) {
            Some(fence) => Progress::Inside(fence),
            None if lock.is_waiting(place.ticket) => Progress::Waits,
            None => Progress::Gone,
        }
    }

    /// Whoever is at `place` is not wanted any more: it leaves, whether it waits or is inside.
    #[inline]
    pub fn release(&mut self, place: Place, out: &mut Outputs<'_>) {
        self.end(place, Ending::Released, out);
    }

    /// The same, for another reason.
    #[inline]
    pub fn end(&mut self, place: Place, ending: Ending, out: &mut Outputs<'_>) {
        let (index, ticket) = (place.lock, place.ticket);
        if out.driver.is_watched() {
            self.tell_of_end(place, ending, out);
        }
        if self.is_frozen {
            return self.note_release(place);
        }
        let lock = &mut self.locks[index.0 as usize];
        let rules = self.families[usize::from(lock.kind)].rules;
        if let Some((fence, now)) = measure_hold(&mut self.times, &self.counts, lock, ticket, out) {
            self.recent.left(index, fence, now, ending);
        }
        let driver = &mut out.driver;
        let left = match self.mutation {
            None => lock.leave(ticket, rules, || driver.now()),
            Some(mutation) => mutation.leave(lock, ticket, rules, driver.now()),
        };
        match left {
            Left::HandedOver(grant) => {
                self.counts.handovers += 1;
                self.times.handovers.add(Duration::ZERO, 1);
                self.grant(index, grant, out);
            }
            Left::Release(seat) => {
                if lock.waiters().next().is_some() && self.left.len() < MOST_LEFT {
                    self.left.insert(index, out.driver.now());
                }
                self.drive(index, seat, Stimulus::Release, &mut None, out);
            }
            Left::NotInside => {
                match self.mutation {
                    None => lock.forget(ticket),
                    Some(mutation) => mutation.forget(lock, ticket),
                };
                if rules.sets {
                    // Others may have waited for nothing but this one.
                    self.go_on(index, &mut None, out);
                }
            }
        }
    }

    /// A client is inside, and is told, if the lease of this member is not over.
    #[inline]
    fn grant(&mut self, index: LockIndex, grant: Grant, out: &mut Outputs<'_>) {
        let Grant { ticket, request, fence, since, at } = grant;
        if !out.driver.is_valid_at(at) && self.rules.looks_at_clock() {
            out.withheld = true;
            return self.withhold(index, ticket);
        }
        self.counts.grants += 1;
        if let Some(since) = since {
            self.measure_wait(index, since, at);
        }
        let lock = &self.locks[index.0 as usize];
        self.recent.granted(index, fence, at, since, || lock.claim_of(ticket));
        let place = Place { shard: out.shard, lock: index, ticket };
        out.settled.push(Settled { place, request, outcome: Outcome::Granted(fence) });
        self.tell(place, Change::Granted(fence), out);
    }

    /// A message has come from another member. One of an earlier view is of no use any more; one of a
    /// later view is for whoever keeps it until then.
    pub fn deliver(
        &mut self,
        hash: u64,
        sender: usize,
        message: StepMessage<'_>,
        out: &mut Outputs<'_>,
    ) {
        let StepMessage { epoch, key, from, to, body } = message;
        if self.is_frozen || (epoch != self.view.epoch && self.rules.tells_epochs_apart()) {
            return;
        }
        let index = match self.find(key, hash) {
            Some(index) => index,
            // Nobody may lose a message: the sender's own limit bounds what it begins.
            None if self.view.can_have(key) => match self.create_beyond(key, hash, out) {
                Ok(index) => index,
                Err(_) => return out.anomalies.push("a message came for a lock that cannot be"),
            },
            None => return out.anomalies.push("a message came for a lock that cannot be"),
        };
        let lock = &self.locks[index.0 as usize];
        let seating = Seating { home: lock.home, ..self.families[usize::from(lock.kind)].seating };
        let from_there = seating.place(from).is_some_and(|(member, _)| member == sender);
        match seating.place(to) {
            Some((member, seat)) if member == self.view.me && from_there => {
                self.counts.arrived += 1;
                self.drive(index, seat, Stimulus::Deliver { from, bytes: body }, &mut None, out);
            }
            _ => out.anomalies.push("a message came for a seat that does not exist"),
        }
    }

    /// A timer has run out.
    pub fn run_out(&mut self, timer: SeatTimer, out: &mut Outputs<'_>) {
        let SeatTimer { epoch, lock, seat, tag } = timer;
        if epoch == self.view.epoch && !self.is_frozen {
            self.drive(lock, usize::from(seat), Stimulus::Timer(tag), &mut None, out);
        }
    }

    /// Refuses everybody who waits for a lock.
    fn refuse_all(&mut self, index: LockIndex, why: &Refusal, out: &mut Outputs<'_>) {
        let lock = &mut self.locks[index.0 as usize];
        for (ticket, waiter) in lock.dismiss() {
            if out.driver.is_watched() {
                tell_of(lock, &waiter.asker, Change::GivesUp, out);
            }
            let place = Place { shard: out.shard, lock: index, ticket };
            let outcome = Outcome::Refused(Box::new(why.clone()));
            out.settled.push(Settled { place, request: waiter.asker.request, outcome });
        }
    }

    fn indexed(&self) -> impl Iterator<Item = (u32, &Lock)> {
        // A place that is free has a lock without a name.
        (0..).zip(self.locks.iter()).filter(|(_, lock)| !lock.name.is_empty())
    }

    pub(crate) fn lock(&self, key: Key<'_>, hash: u64) -> Option<&Lock> {
        self.find(key, hash).map(|index| &self.locks[index.0 as usize])
    }

    fn find(&self, key: Key<'_>, hash: u64) -> Option<LockIndex> {
        let is_it = |&index: &u32| {
            let lock = &self.locks[index as usize];
            &*lock.name == key.name && lock.permits == key.permits
        };
        self.table.find(hash, is_it).map(|&index| LockIndex(index))
    }

    /// With how many other permits clients of this member use what `key` names, if they do.
    fn other_permits(&self, key: Key<'_>, hash: u64) -> Option<u32> {
        let is_it = |&index: &u32| {
            let lock = &self.locks[index as usize];
            lock.permits != key.permits && &*lock.name == key.name && lock.is_used_here()
        };
        self.table.find(hash, is_it).map(|&index| self.locks[index as usize].permits)
    }
}

/// Two shards are the same if their locks are; what was counted does not matter.
impl Hash for Shard {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.view.epoch.hash(hasher);
        (&self.held, self.is_frozen).hash(hasher);
        self.tickets.hash(hasher);
        self.suspects.hash(hasher);
        for lock in self.locks() {
            lock.hash(hasher);
            for seat in 0..lock.seats() {
                if let Some(slot) = lock.slot(seat) {
                    self.families[usize::from(lock.kind)].kind.hash(slot, hasher);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
