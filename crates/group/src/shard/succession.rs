//! From one view to the next: what is held is carried over, everything else begins anew.
//!
//! Algorithms know nothing of views. A new view has new instances, which begin with whoever holds the
//! lock inside; the instances of the old view are gone, and messages to them are not listened to.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use catraca_core::{Claim, Fence, NodeId, Start};
use serde::{Deserialize, Serialize};

use super::{Ask, Asked, Key, Shard};
use crate::driver::{Change, LockIndex, Outputs, Place};
use crate::durable::{Adopted, HoldId};
use crate::lock::{Asker, Ticket};
use crate::refusal::Refusal;
use crate::request::RequestId;
use crate::timed::TimedCopy;
use crate::view::{Seating, View};

/// A lock that is held, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HeldLock {
    /// The name of the lock, or the pattern of a namespace whose names are taken in sets.
    pub name: String,
    /// How many may be inside.
    pub permits: u32,
    /// The member.
    pub member: String,
    /// Its seat.
    pub seat: u16,
    /// What it holds of the instance.
    pub claim: Claim,
    /// The durable hold that it is a part of, if it is.
    pub durable: Option<HoldId>,
    /// The timed hold that it is a part of, if that changes its member with this view.
    pub timed: Option<HoldId>,
}

impl HeldLock {
    /// No fewer bytes than it takes in a message.
    pub(crate) fn bytes(&self) -> usize {
        let resources = self.claim.resources().len();
        64 + self.name.len() + self.member.len() + 5 * resources
    }
}

/// Everything that is held in a group when a view begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Held {
    locks: BTreeMap<(String, u32), Vec<HeldLock>>,
    /// The durable holds that change their members with this view.
    adopted: BTreeMap<HoldId, Adopted>,
    /// The timed holds that do.
    taken: BTreeMap<HoldId, TimedCopy>,
}

impl FromIterator<HeldLock> for Held {
    fn from_iter<I: IntoIterator<Item = HeldLock>>(locks: I) -> Self {
        let mut held = Held::default();
        for lock in locks {
            held.locks.entry((lock.name.clone(), lock.permits)).or_default().push(lock);
        }
        held
    }
}

impl Held {
    /// The same, in which these durable holds change their members.
    pub(crate) fn adopting(mut self, adopted: impl IntoIterator<Item = Adopted>) -> Self {
        self.adopted.extend(adopted.into_iter().map(|adopted| (adopted.hold.id, adopted)));
        self
    }

    /// The parts of durable holds that the member called `name` has from now on.
    pub(crate) fn adopted_by(&self, name: &str) -> impl Iterator<Item = (&Adopted, &HeldLock)> {
        let locks = self.locks.values().filter(|_| !self.adopted.is_empty()).flatten();
        let own = locks.filter(move |held| held.member == name);
        own.filter_map(|held| Some((self.adopted.get(&held.durable?)?, held)))
    }

    /// The same, in which these timed holds change their members.
    pub(crate) fn taking_over(mut self, copies: impl IntoIterator<Item = TimedCopy>) -> Self {
        self.taken.extend(copies.into_iter().map(|copy| (copy.hold.id, copy)));
        self
    }

    /// The parts of timed holds that the member called `name` has from now on.
    pub(crate) fn taken_by(&self, name: &str) -> impl Iterator<Item = (&TimedCopy, &HeldLock)> {
        let locks = self.locks.values().filter(|_| !self.taken.is_empty()).flatten();
        let own = locks.filter(move |held| held.member == name);
        own.filter_map(|held| Some((self.taken.get(&held.timed?)?, held)))
    }

    /// How an instance of `key` begins: with everybody inside who was, and the token at the first of
    /// them.
    pub(super) fn start(&self, key: Key<'_>, view: &View, seating: Seating) -> Start {
        if self.locks.is_empty() {
            return Start::idle();
        }
        let holders = self.locks.get(&(key.name.to_string(), key.permits)).into_iter().flatten();
        let inside: Vec<(NodeId, &Claim)> = holders
            .filter_map(|held| {
                let is_it = |member: &crate::Member| member.name == held.member;
                let member = view.members.iter().position(is_it)?;
                Some((seating.node(member, usize::from(held.seat)), &held.claim))
            })
            .collect();
        let token = inside.iter().map(|&(node, _)| node).min().unwrap_or(NodeId(0));
        let start = Start::token_at(token);
        inside.into_iter().fold(start, |start, (node, claim)| start.and_inside(node, claim.clone()))
    }
}

impl Shard {
    /// Everything that clients of this member hold.
    pub fn held(&self) -> Vec<HeldLock> {
        self.held_as(&|_| None)
    }

    /// The same, of which `durable` says which requests are durable holds.
    pub(crate) fn held_as(&self, durable: &dyn Fn(RequestId) -> Option<HoldId>) -> Vec<HeldLock> {
        let member = &self.view.own().name;
        let of_lock = |lock: &crate::lock::Lock| {
            let held = lock.seated().map(|(seat, hold)| HeldLock {
                name: lock.name.to_string(),
                permits: lock.permits,
                member: member.clone(),
                seat: seat as u16,
                claim: hold.asker.set.as_ref().map_or_else(Claim::single, |set| set.claim.clone()),
                durable: hold.asker.request.and_then(durable),
                timed: None,
            });
            held.collect::<Vec<_>>()
        };
        self.locks().flat_map(of_lock).collect()
    }

    /// Begins a new view, in which `held` is held. Whoever is inside stays inside; whoever waits
    /// asks again, in the same order; a lock that nobody here holds or awaits is forgotten.
    pub fn change_view(&mut self, view: Arc<View>, held: Arc<Held>, out: &mut Outputs<'_>) {
        (self.view, self.held, self.is_frozen) = (view, held, false);
        (self.has_next_view, self.is_used_up) = (true, false);
        // Their places belong to the old view.
        self.suspects.clear();
        self.families.clear();
        self.internal.clear();
        self.left.clear();
        let mut in_use = Vec::new();
        for index in 0..self.locks.len() as u32 {
            let lock = &self.locks[index as usize];
            if lock.name.is_empty() {
                continue;
            }
            if lock.is_used_here() {
                in_use.push(LockIndex(index));
            } else {
                self.forget(LockIndex(index), out);
            }
        }
        let locks = &self.locks;
        self.recent.keep(|LockIndex(index)| !locks[index as usize].name.is_empty());
        for &index in &in_use {
            self.reseat(index);
        }
        for &index in &in_use {
            self.start(index, out);
        }
        for index in in_use {
            self.carry_out_releases(index, out);
        }
    }

    /// Whoever has left between the views leaves now.
    fn carry_out_releases(&mut self, index: LockIndex, out: &mut Outputs<'_>) {
        let tickets: Vec<Ticket> = self.locks[index.0 as usize].left().collect();
        for ticket in tickets {
            self.release(Place { shard: out.shard, lock: index, ticket }, out);
        }
    }

    /// Stops all algorithms until the next view begins. Whoever asks waits; whoever leaves does so when
    /// the view begins.
    pub fn freeze(&mut self) {
        self.is_frozen = true;
    }

    /// Nobody asks the group before the next view begins.
    pub(super) fn queue_up(&mut self, index: LockIndex, ask: Ask, out: &mut Outputs<'_>) -> Asked {
        self.tickets += 1;
        let ticket = self.tickets;
        let Ask { owner, request, set, .. } = ask;
        let now = out.driver.now();
        self.locks[index.0 as usize].join(ticket, Asker { owner, request, set }, now);
        let place = Place { shard: out.shard, lock: index, ticket };
        self.tell(place, Change::Waits, out);
        Asked { place, fence: None }
    }

    /// Whoever is at `place` leaves, although no algorithm may step.
    pub(super) fn note_release(&mut self, place: Place) {
        let lock = &mut self.locks[place.lock.0 as usize];
        if lock.fence_of(place.ticket).is_some() && !self.rules.notes_releases() {
            return;
        }
        if !lock.note_leaving(place.ticket) {
            lock.forget(place.ticket);
        }
    }

    /// The lease is over, and a client that is not told of a grant waits again. What the algorithms do
    /// from now on is of no use: the next view makes them anew.
    #[cold]
    pub(super) fn withhold(&mut self, index: LockIndex, ticket: Ticket) {
        self.locks[index.0 as usize].take_back(ticket);
        self.is_frozen = true;
        self.internal.clear();
    }

    /// Whoever holds a lock without a request of the service has lost it.
    pub fn lose_direct_holds(&mut self, out: &mut Outputs<'_>) {
        for index in 0..self.locks.len() {
            let holds = self.locks[index].holds().filter(|hold| hold.asker.request.is_none());
            let held: Vec<(Ticket, Fence)> = holds.map(|hold| (hold.ticket, hold.fence)).collect();
            for (ticket, fence) in held {
                let place = Place { shard: out.shard, lock: LockIndex(index as u32), ticket };
                self.tell(place, Change::Lost(fence), out);
                self.locks[index].note_leaving(ticket);
            }
        }
    }

    /// Whether a client of this member is inside a lock, other than by the requests of which `is_durable`
    /// says that they stay when the member goes.
    pub(crate) fn is_held_by_somebody(&self, is_durable: &dyn Fn(RequestId) -> bool) -> bool {
        let counts = |hold: &crate::lock::Hold| !hold.asker.request.is_some_and(is_durable);
        self.locks().any(|lock| lock.holds().any(counts))
    }

    /// Takes over a durable hold whose member is gone: it has `seat` when the next view begins.
    pub fn adopt(
        &mut self,
        key: Key<'_>,
        hash: u64,
        seat: u16,
        ask: Ask,
        fence: Fence,
        out: &mut Outputs<'_>,
    ) -> Result<Place, Refusal> {
        let index = match self.find(key, hash) {
            Some(index) => index,
            // It is there already, whatever room there is.
            None => self.create_beyond(key, hash, out)?,
        };
        self.tickets += 1;
        let (ticket, since) = (self.tickets, out.driver.now());
        let Ask { owner, request, set, .. } = ask;
        let asker = Asker { owner, request, set };
        let hold = crate::lock::Hold { ticket, asker, since, fence };
        self.locks[index.0 as usize].adopt(usize::from(seat), hold);
        Ok(Place { shard: out.shard, lock: index, ticket })
    }

    /// Nobody may wait here any more.
    pub fn refuse_waiters(&mut self, why: &Refusal, out: &mut Outputs<'_>) {
        let indices: Vec<LockIndex> = self.indexed().map(|(index, _)| LockIndex(index)).collect();
        for index in indices {
            self.refuse_all(index, why, out);
        }
    }

    /// The group goes on without this member: nothing is held here any more. Whoever waits goes on
    /// waiting.
    pub fn reset(&mut self) {
        self.is_frozen = true;
        self.internal.clear();
        for index in 0..self.locks.len() {
            self.locks[index].clear();
        }
    }

    /// A lock is no more.
    fn forget(&mut self, LockIndex(index): LockIndex, out: &mut Outputs<'_>) {
        let hash =
            core::hash::BuildHasher::hash_one(&self.hasher, &*self.locks[index as usize].name);
        if let Ok(entry) = self.table.find_entry(hash, |&found| found == index) {
            entry.remove();
        }
        self.locks[index as usize].name = "".into();
        self.free.push(index);
        match self.beyond_room.checked_sub(1) {
            Some(less) => self.beyond_room = less,
            None => out.driver.give_room(1),
        }
    }

    /// Gives a lock instances of the present view.
    fn reseat(&mut self, LockIndex(index): LockIndex) {
        let view = Arc::clone(&self.view);
        let (name, permits) =
            (self.locks[index as usize].name.clone(), self.locks[index as usize].permits);
        let key = Key { name: &name, permits };
        let (namespace, home) = (view.namespace(key.name), view.home(key.name));
        let seating = view.seating(namespace, permits, home);
        let start = self.held.start(key, &view, seating);
        // There were instances with as many seats before, in a group of the same kind.
        let Ok(family) = self.family(namespace, key, seating, &start) else { return };
        let slots: Vec<_> = self.slots(family, seating, &start).collect();
        self.locks[index as usize].reseat(family as u16, home as u16, slots.into_iter());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recorder;
    use crate::view::tests::view;
    use crate::{Acquire, Input, Output, PeerMessage, Time, Turns, Wait, WholeMember};

    /// Two members of one group, and what they have sent.
    struct Pair {
        members: [WholeMember; 2],
        drivers: [Recorder; 2],
        out: Vec<Output>,
    }

    impl Pair {
        fn new(algorithm: &str) -> Self {
            let member = |me| WholeMember::new(view(2, me, algorithm), 1, Turns::USUAL, Time(0));
            let (drivers, out) = ([Recorder::default(), Recorder::default()], Vec::new());
            let mut pair = Pair { members: [member(0), member(1)], drivers, out };
            pair.step(0, Input::LinkUp(1, 1));
            pair.step(1, Input::LinkUp(0, 1));
            pair
        }

        fn step(&mut self, at: usize, input: Input<'_>) {
            self.members[at].step(input, &mut self.drivers[at], &mut self.out);
        }

        /// Asks for the lock, and delivers messages until none is on its way.
        fn ask(&mut self, at: usize) {
            let (names, wait) = ([String::from("x")].to_vec(), Wait::Forever);
            self.step(at, Input::Acquire(Acquire { names, permits: 1, wait }));
            while let Some(from) = self.drivers.iter().position(|it| !it.sent.is_empty()) {
                let sent = self.drivers[from].sent.remove(0);
                let message = PeerMessage::Step(sent.message());
                self.step(sent.member, Input::Message(from, message));
            }
        }

        fn change_view(&mut self) {
            let held = Arc::new(self.members.iter().flat_map(WholeMember::held).collect());
            for (member, driver) in self.members.iter_mut().zip(&mut self.drivers) {
                let view = member.service().view();
                let next = view.next(view.members.clone()).unwrap();
                member.change_view(next, Arc::clone(&held), driver, &mut self.out);
            }
        }

        /// How many have been let in so far.
        fn let_in(&self) -> usize {
            self.out.iter().filter(|output| matches!(output, Output::Settled(_, Ok(_)))).count()
        }
    }

    #[test]
    fn a_tree_of_the_next_view_grows_from_whoever_holds_the_lock() {
        for (holder, other) in [(0, 1), (1, 0)] {
            let mut pair = Pair::new("raymond");
            pair.ask(holder);
            assert_eq!(pair.let_in(), 1);
            pair.change_view();
            pair.ask(other);
            assert_eq!(pair.let_in(), 1, "{holder} is still inside");
            assert!(!pair.out.iter().any(|output| matches!(output, Output::Anomaly(_))));
        }
    }
}
