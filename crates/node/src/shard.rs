//! A part of the locks of one node: a plain value, stepped by whoever brings an input.
//!
//! A shard sits behind a short mutex. Everything that follows from an input happens in one go: the
//! algorithm steps, messages between seats of this node are delivered at once, messages to other
//! members are put into their links in order, and whoever is to be woken is collected for the time
//! after the mutex is free again.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use catraca_core::{Claim, Fence, NodeId, TimerTag};
use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::kind::{Kind, Step, Stimulus, kind_of};
use crate::lock::{Admitted, Left, Lock, Owner, Rules, Set, Ticket, Waiter};
use crate::plan::{Plan, Seating};
use crate::returning::Returning;

/// Which instance: the name of a lock, or the pattern of a namespace whose names are taken in sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key<'a> {
    pub(crate) name: &'a str,
    pub(crate) permits: u32,
}

/// A place in a shard, for as long as the node lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LockIndex(pub(crate) u32);

/// A message to another member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter<'a> {
    pub(crate) key: Key<'a>,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) body: &'a [u8],
}

/// A timer of a seat, among those of its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeatTimer {
    pub(crate) lock: LockIndex,
    pub(crate) seat: usize,
    pub(crate) tag: TimerTag,
}

/// What a shard needs while it steps.
pub(crate) trait Surroundings {
    /// Takes one message. Messages to a member arrive in the order of posting, and are on their way
    /// when the caller says so, after the shard is free again.
    fn post(&self, member: usize, letter: Letter<'_>);

    /// Sets a timer of shard `shard` anew, or cancels it where there is no duration.
    fn set_timer(&self, shard: u16, timer: SeatTimer, after: Option<Duration>);
}

/// What is to be done once the shard is free again.
pub(crate) struct Aftermath<'a> {
    around: &'a dyn Surroundings,
    /// The shard's own place among all.
    pub(crate) shard: u16,
    /// The members for whom there are new messages, one bit each.
    pub(crate) posted: u64,
    pub(crate) wakers: SmallVec<[Waker; 4]>,
    pub(crate) anomalies: SmallVec<[&'static str; 1]>,
}

impl<'a> Aftermath<'a> {
    pub(crate) fn new(around: &'a dyn Surroundings, shard: u16) -> Self {
        Aftermath { around, shard, posted: 0, wakers: SmallVec::new(), anomalies: SmallVec::new() }
    }
}

/// Why a shard does not do what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The clients of this node have begun as many locks as they may.
    Full,
    /// The algorithm cannot run so many seats.
    Permits,
    /// Clients of this node use the name with so many permits.
    OtherPermits(u32),
    /// A message to a seat that this node does not have.
    NoSuchSeat,
    /// A message about a lock that cannot be.
    NoSuchLock,
}

/// What somebody asks for.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) owner: Owner,
    pub(crate) set: Option<Box<Set>>,
}

/// Counted since the node began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) grants: u64,
    pub(crate) handovers: u64,
    /// Sent to other members, and come from them.
    pub(crate) messages: u64,
    pub(crate) arrived: u64,
}

/// How many more locks the clients of a node may begin, in all its shards together.
#[derive(Debug)]
pub(crate) struct Room(AtomicUsize);

impl Room {
    pub(crate) fn for_locks(most: usize) -> Self {
        Room(AtomicUsize::new(most))
    }

    /// Takes the place of one lock; false if there is none left.
    fn take(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn give_back(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The instances of one namespace with one layout.
struct Hosted {
    namespace: usize,
    permits: u32,
    seating: Seating,
    rules: Rules,
    /// Whether its algorithm wants to know who has crashed.
    listens: bool,
    kind: Box<dyn Kind>,
}

/// Something that happens to a seat of this node because of another one.
enum Errand {
    Deliver { seat: usize, from: NodeId, body: SmallVec<[u8; 32]> },
    Release { seat: usize },
}

/// A part of the locks of one node.
pub(crate) struct Shard {
    plan: Arc<Plan>,
    hasher: RandomState,
    handovers: u8,
    room: Arc<Room>,
    table: HashTable<u32>,
    locks: Vec<Lock>,
    hosted: Vec<Hosted>,
    tickets: Ticket,
    /// Members that are taken for crashed.
    suspects: Vec<usize>,
    pub(crate) returning: Returning,
    step: Step,
    errands: VecDeque<Errand>,
    pub(crate) counts: Counts,
}

/// The group is fixed: it is in its first epoch.
const EPOCH: u16 = 1;

impl Shard {
    pub(crate) fn new(
        plan: Arc<Plan>,
        hasher: RandomState,
        handovers: u8,
        room: Arc<Room>,
    ) -> Self {
        Shard {
            plan,
            hasher,
            handovers,
            room,
            table: HashTable::new(),
            locks: Vec::new(),
            hosted: Vec::new(),
            tickets: 0,
            suspects: Vec::new(),
            returning: Returning::default(),
            step: Step::default(),
            errands: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Asks on behalf of somebody. Returns the fence if it is inside at once; otherwise it waits.
    pub(crate) fn acquire(
        &mut self,
        key: Key<'_>,
        hash: u64,
        wish: Wish,
        out: &mut Aftermath<'_>,
    ) -> Result<(LockIndex, Ticket, Option<Fence>), Refusal> {
        if let Some(permits) = self.other_permits(key, hash) {
            return Err(Refusal::OtherPermits(permits));
        }
        let index = match self.find(key, hash) {
            Some(index) => index,
            None if !self.room.take() => return Err(Refusal::Full),
            None => self.create(key, hash, out).inspect_err(|_| self.room.give_back())?,
        };
        self.tickets += 1;
        let ticket = self.tickets;
        let Wish { owner, set } = wish;
        let lock = &mut self.locks[index.0 as usize];
        let mut waiter = Waiter { owner, since: None, set, waker: None };
        if waiter.set.is_some() {
            waiter.since = Some(Instant::now());
            lock.join(ticket, waiter);
            self.go_on(index, &mut None, out);
            return Ok((index, ticket, self.locks[index.0 as usize].fence_of(ticket)));
        }
        let asked = lock.ask_directly();
        let mut newcomer = Some((ticket, waiter));
        if let Some(seat) = asked {
            let request = Stimulus::Request(Claim::single());
            self.drive(index, seat, request, &mut newcomer, out);
        }
        let lock = &mut self.locks[index.0 as usize];
        if let Some((ticket, mut waiter)) = newcomer {
            let now = Instant::now();
            waiter.since = Some(now);
            lock.join(ticket, waiter);
            self.returning.asks(index, now);
            return Ok((index, ticket, None));
        }
        Ok((index, ticket, lock.fence_of(ticket)))
    }

    /// Whether `ticket` is inside; if not, `waker` is woken when it is.
    pub(crate) fn poll(
        &mut self,
        index: LockIndex,
        ticket: Ticket,
        waker: &Waker,
    ) -> Poll<Option<Fence>> {
        let lock = &mut self.locks[index.0 as usize];
        match lock.waiter(ticket) {
            None => Poll::Ready(lock.fence_of(ticket)),
            Some(waiter) => {
                if !waiter.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
                    waiter.waker = Some(waker.clone());
                }
                Poll::Pending
            }
        }
    }

    /// `ticket` is no longer wanted: it leaves, whether it waits or is inside.
    pub(crate) fn release(&mut self, index: LockIndex, ticket: Ticket, out: &mut Aftermath<'_>) {
        let lock = &mut self.locks[index.0 as usize];
        let rules = self.hosted[usize::from(lock.kind)].rules;
        match lock.leave(ticket, rules, Instant::now) {
            Left::HandedOver(waker) => {
                self.counts.grants += 1;
                self.counts.handovers += 1;
                out.wakers.extend(waker);
            }
            Left::Release(seat) => {
                self.drive(index, seat, Stimulus::Release, &mut None, out);
            }
            Left::NotInside => {
                lock.forget(ticket);
                if rules.sets {
                    // Others may have waited for nothing but this one.
                    self.go_on(index, &mut None, out);
                }
            }
        }
    }

    /// Whether nobody of this node holds or awaits what `key` names.
    pub(crate) fn is_free_here(&self, key: Key<'_>, hash: u64) -> bool {
        self.find(key, hash).is_none_or(|index| self.locks[index.0 as usize].is_free_here())
    }

    /// A message has come from another member.
    pub(crate) fn deliver(
        &mut self,
        hash: u64,
        sender: usize,
        letter: Letter<'_>,
        out: &mut Aftermath<'_>,
    ) -> Result<(), Refusal> {
        let index = match self.find(letter.key, hash) {
            Some(index) => index,
            // Nobody may lose a message: the sender's own limit bounds what it begins.
            None if self.plan.can_have(letter.key) => self.create(letter.key, hash, out)?,
            None => return Err(Refusal::NoSuchLock),
        };
        let lock = &self.locks[index.0 as usize];
        let seating = Seating { home: lock.home, ..self.hosted[usize::from(lock.kind)].seating };
        let from_there = seating.place(letter.from).is_some_and(|(member, _)| member == sender);
        match seating.place(letter.to) {
            Some((member, seat)) if member == self.plan.me && from_there => {
                self.counts.arrived += 1;
                let Letter { from, body, .. } = letter;
                self.drive(index, seat, Stimulus::Deliver { from, bytes: body }, &mut None, out);
                Ok(())
            }
            _ => Err(Refusal::NoSuchSeat),
        }
    }

    /// A timer has run out.
    pub(crate) fn run_out(&mut self, timer: SeatTimer, out: &mut Aftermath<'_>) {
        let SeatTimer { lock, seat, tag } = timer;
        self.drive(lock, seat, Stimulus::Timer(tag), &mut None, out);
    }

    /// The detector takes `member` for crashed: the locks that listen go on without it.
    pub(crate) fn suspect(&mut self, member: usize, out: &mut Aftermath<'_>) {
        self.suspects.push(member);
        for index in self.listeners() {
            self.tell_of_crash(index, member, out);
        }
    }

    /// The others go on without this member: nobody waits here any more for locks that listen to
    /// the detector.
    pub(crate) fn give_up(&mut self, out: &mut Aftermath<'_>) {
        for LockIndex(index) in self.listeners() {
            out.wakers.extend(self.locks[index as usize].dismiss());
        }
    }

    /// Whether the others may take the lock at `index` for free because of what a detector says.
    pub(crate) fn listens(&self, LockIndex(index): LockIndex) -> bool {
        self.hosted[usize::from(self.locks[index as usize].kind)].listens
    }

    /// The locks whose algorithms want to know who has crashed.
    fn listeners(&self) -> Vec<LockIndex> {
        let all = (0..self.locks.len() as u32).map(LockIndex);
        all.filter(|&index| self.listens(index)).collect()
    }

    fn tell_of_crash(&mut self, index: LockIndex, member: usize, out: &mut Aftermath<'_>) {
        let lock = &self.locks[index.0 as usize];
        let seating = Seating { home: lock.home, ..self.hosted[usize::from(lock.kind)].seating };
        let seats = 0..seating.seats as usize;
        for own in seats.clone() {
            for crashed in seats.clone() {
                let stimulus = Stimulus::Suspect(seating.node(member, crashed));
                self.drive(index, own, stimulus, &mut None, out);
            }
        }
    }

    /// Every lock that somebody of this node has asked for, or that another member spoke of.
    pub(crate) fn locks(&self) -> &[Lock] {
        &self.locks
    }

    /// The lock that `key` names, if it is among them.
    pub(crate) fn lock(&self, key: Key<'_>, hash: u64) -> Option<&Lock> {
        self.find(key, hash).map(|index| &self.locks[index.0 as usize])
    }

    /// The messages sent so far by kind, with the namespace and the algorithm.
    pub(crate) fn messages(
        &self,
    ) -> impl Iterator<Item = ((usize, &str), Vec<(&'static str, u64)>)> + '_ {
        self.hosted.iter().map(|Hosted { namespace, permits, kind, .. }| {
            ((*namespace, self.plan.algorithm(*namespace, *permits)), kind.counts())
        })
    }

    fn find(&self, key: Key<'_>, hash: u64) -> Option<LockIndex> {
        let is_it = |&index: &u32| {
            let lock = &self.locks[index as usize];
            &*lock.name == key.name && lock.permits == key.permits
        };
        self.table.find(hash, is_it).map(|&index| LockIndex(index))
    }

    /// With how many other permits clients of this node use what `key` names, if they do.
    fn other_permits(&self, key: Key<'_>, hash: u64) -> Option<u32> {
        let is_it = |&index: &u32| {
            let lock = &self.locks[index as usize];
            lock.permits != key.permits && &*lock.name == key.name && lock.is_used_here()
        };
        self.table.find(hash, is_it).map(|&index| self.locks[index as usize].permits)
    }

    #[cold]
    fn create(
        &mut self,
        key: Key<'_>,
        hash: u64,
        out: &mut Aftermath<'_>,
    ) -> Result<LockIndex, Refusal> {
        let plan = Arc::clone(&self.plan);
        let namespace = plan.namespace(key.name);
        let home = plan.home(key.name);
        let seating = plan.seating(namespace, key.permits, home);
        let kind = self.kind(namespace, key.permits, seating)?;
        let hosted = &mut self.hosted[kind];
        let seats = 0..seating.seats as usize;
        let slots = seats.clone().map(|seat| hosted.kind.create(seating.node(plan.me, seat)));
        let lock = Lock::new(key.name, key.permits, kind as u16, home as u16, slots);
        let index = self.locks.len() as u32;
        self.locks.push(lock);
        let (locks, hasher) = (&self.locks, &self.hasher);
        let hash_of = |&index: &u32| hasher.hash_one(&*locks[index as usize].name);
        self.table.insert_unique(hash, index, hash_of);
        for seat in seats {
            self.drive(LockIndex(index), seat, Stimulus::Start, &mut None, out);
        }
        if self.listens(LockIndex(index)) {
            for crashed in self.suspects.clone() {
                self.tell_of_crash(LockIndex(index), crashed, out);
            }
        }
        Ok(LockIndex(index))
    }

    /// The instances with this layout. Where the group looks the same from every home, all homes
    /// share one.
    fn kind(&mut self, namespace: usize, permits: u32, seating: Seating) -> Result<usize, Refusal> {
        let spec = self.plan.spec(namespace, permits, seating);
        let home = if spec.clusters.is_some() { seating.home } else { 0 };
        let seating = Seating { home, ..seating };
        let is_it = |hosted: &Hosted| {
            (hosted.namespace, hosted.permits, hosted.seating) == (namespace, permits, seating)
        };
        if let Some(known) = self.hosted.iter().position(is_it) {
            return Ok(known);
        }
        let kind = kind_of(&spec).map_err(|_| Refusal::Permits)?;
        let sets = self.plan.knows_sets(namespace, permits);
        let rules = Rules { epoch: EPOCH, handovers: self.handovers, sets };
        let listens = self.plan.listens(namespace, permits);
        self.hosted.push(Hosted { namespace, permits, seating, rules, listens, kind });
        Ok(self.hosted.len() - 1)
    }

    /// Lets a seat step, and everything here that follows from it.
    #[inline]
    fn drive(
        &mut self,
        index: LockIndex,
        seat: usize,
        stimulus: Stimulus<'_>,
        newcomer: &mut Option<(Ticket, Waiter)>,
        out: &mut Aftermath<'_>,
    ) {
        self.step_seat(index, seat, stimulus, newcomer, out);
        self.go_on(index, newcomer, out);
    }

    /// Everything that is to be done at a lock of this node.
    #[inline]
    fn go_on(
        &mut self,
        index: LockIndex,
        newcomer: &mut Option<(Ticket, Waiter)>,
        out: &mut Aftermath<'_>,
    ) {
        loop {
            while let Some(errand) = self.errands.pop_front() {
                match errand {
                    Errand::Deliver { seat, from, body } => {
                        let stimulus = Stimulus::Deliver { from, bytes: &body };
                        self.step_seat(index, seat, stimulus, newcomer, out);
                    }
                    Errand::Release { seat } => {
                        self.step_seat(index, seat, Stimulus::Release, newcomer, out);
                    }
                }
            }
            let lock = &mut self.locks[index.0 as usize];
            let rules = self.hosted[usize::from(lock.kind)].rules;
            let Some((seat, claim)) = lock.next_request(rules) else { break };
            self.step_seat(index, seat, Stimulus::Request(claim), newcomer, out);
        }
    }

    #[inline]
    fn step_seat(
        &mut self,
        index: LockIndex,
        seat: usize,
        stimulus: Stimulus<'_>,
        newcomer: &mut Option<(Ticket, Waiter)>,
        out: &mut Aftermath<'_>,
    ) {
        let lock = &mut self.locks[index.0 as usize];
        let hosted = &mut self.hosted[usize::from(lock.kind)];
        let Some(slot) = lock.slot(seat) else { return };
        hosted.kind.step(slot, stimulus, &mut self.step);
        let seating = Seating { home: lock.home, ..hosted.seating };
        for sent in &self.step.sent {
            let body = &self.step.bytes[sent.start..sent.end];
            match seating.place(sent.to) {
                Some((member, receiver)) if member == self.plan.me => {
                    let from = seating.node(member, seat);
                    let (seat, body) = (receiver, body.into());
                    self.errands.push_back(Errand::Deliver { seat, from, body });
                }
                Some((member, _)) => {
                    let key = Key { name: &lock.name, permits: lock.permits };
                    let from = seating.node(self.plan.me, seat);
                    out.around.post(member, Letter { key, from, to: sent.to, body });
                    out.posted |= 1 << member;
                    self.counts.messages += 1;
                }
                None => out.anomalies.push("a message is for a node that does not exist"),
            }
        }
        for &(tag, after) in &self.step.timers {
            out.around.set_timer(out.shard, SeatTimer { lock: index, seat, tag }, after);
        }
        out.anomalies.extend(self.step.anomalies.iter().copied());
        if let Some(number) = self.step.granted {
            match lock.admit(seat, number, hosted.rules, newcomer, Instant::now) {
                Admitted::Client(waker) => {
                    self.counts.grants += 1;
                    out.wakers.extend(waker);
                }
                Admitted::Nobody => self.errands.push_back(Errand::Release { seat }),
                Admitted::Exhausted => {
                    out.anomalies.push("the algorithm has counted further than a fence can");
                }
                Admitted::Unasked => out.anomalies.push("a grant came that was not asked for"),
            }
        }
    }
}
