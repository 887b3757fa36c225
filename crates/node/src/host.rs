//! All locks of one node, and the links to the other members.
//!
//! Whoever brings an input lets the shard step: the task that read a frame, or the caller itself.
//! So a lock whose token is here costs no task switch and no message.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use catraca_core::{Fence, TimerTag};

use crate::frame::FrameError;
use crate::link::{Link, LinkError};
use crate::lock::{Lock, Ticket};
use crate::plan::Plan;
use crate::shard::{Aftermath, Key, Letter, LockIndex, Post, Refusal, Shard, TimerChange, Wish};
use crate::timers::Timers;

/// How many parts the locks are in. More than there are cores, so that two of them seldom meet.
const SHARDS: usize = 64;

/// Where a lock is at this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LockPlace {
    shard: u16,
    index: LockIndex,
}

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) place: LockPlace,
    pub(crate) ticket: Ticket,
    /// The fence, if the asker is inside already.
    pub(crate) fence: Option<Fence>,
}

/// A timer that has run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerPlace {
    pub(crate) lock: LockPlace,
    pub(crate) seat: usize,
    pub(crate) tag: TimerTag,
}

/// The links, by member; nothing at one's own place.
pub(crate) struct Links(pub(crate) Vec<Option<Link>>);

impl Links {
    pub(crate) fn to(&self, member: usize) -> Option<&Link> {
        self.0.get(member)?.as_ref()
    }

    /// Sends off what was posted for the members whose bits are set.
    fn flush(&self, mut members: u64) {
        while members != 0 {
            let member = members.trailing_zeros() as usize;
            members &= members - 1;
            if let Some(link) = self.to(member) {
                link.flush();
            }
        }
    }
}

impl Post for Links {
    fn post(&self, member: usize, letter: Letter<'_>) {
        let Some(link) = self.to(member) else { return };
        if let Err(FrameError::Long(bytes)) = link.push(letter) {
            // Only a control token with very many resources in use can be so long.
            tracing::error!(lock = letter.key.name, bytes, "a message is too long to be sent");
        }
    }
}

/// All locks of one node.
pub(crate) struct Host {
    pub(crate) plan: Arc<Plan>,
    pub(crate) links: Links,
    pub(crate) timers: Timers,
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    anomalies: AtomicU64,
}

/// Limits and habits of one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// How often in a row a lock goes from one client of this node to the next.
    pub(crate) handovers: u8,
    /// How many locks a node keeps.
    pub(crate) most_locks: usize,
}

impl Host {
    pub(crate) fn new(plan: Arc<Plan>, habits: Habits) -> Self {
        let hasher = RandomState::new();
        let most = habits.most_locks.div_ceil(SHARDS);
        let shard =
            |_| Mutex::new(Shard::new(Arc::clone(&plan), hasher.clone(), habits.handovers, most));
        let link = |member| (member != plan.me).then(Link::new);
        Host {
            links: Links((0..plan.members.len()).map(link).collect()),
            timers: Timers::new(),
            shards: (0..SHARDS).map(shard).collect(),
            hasher,
            anomalies: AtomicU64::new(0),
            plan,
        }
    }

    /// Asks on behalf of somebody.
    #[inline]
    pub(crate) fn acquire(&self, key: Key<'_>, wish: Wish) -> Result<Asked, Refusal> {
        let (shard, hash) = self.shard_of(key);
        let mut out = Aftermath::new(&self.links);
        let asked = self.shard(shard).acquire(key, hash, wish, &mut out);
        self.settle(shard, out);
        let (index, ticket, fence) = asked?;
        Ok(Asked { place: LockPlace { shard, index }, ticket, fence })
    }

    /// Whether `ticket` is inside; if not, `waker` is woken when it is.
    pub(crate) fn poll(
        &self,
        place: LockPlace,
        ticket: Ticket,
        waker: &Waker,
    ) -> Poll<Option<Fence>> {
        self.shard(place.shard).poll(place.index, ticket, waker)
    }

    /// `ticket` is no longer wanted: it leaves, whether it waits or is inside.
    #[inline]
    pub(crate) fn release(&self, place: LockPlace, ticket: Ticket) {
        let mut out = Aftermath::new(&self.links);
        self.shard(place.shard).release(place.index, ticket, &mut out);
        self.settle(place.shard, out);
    }

    /// Whether nobody of this node holds or awaits what `key` names.
    pub(crate) fn is_free_here(&self, key: Key<'_>) -> bool {
        let (shard, hash) = self.shard_of(key);
        self.shard(shard).is_free_here(key, hash)
    }

    /// Looks at the lock that `key` names, if this node knows it.
    pub(crate) fn look_at<T>(&self, key: Key<'_>, at: impl FnOnce(&Lock) -> T) -> Option<T> {
        let (shard, hash) = self.shard_of(key);
        self.shard(shard).lock(key, hash).map(at)
    }

    /// Takes in what connection `number` to `member` has brought. Returns how many bytes were whole
    /// frames.
    pub(crate) fn take_in(
        &self,
        member: usize,
        number: u64,
        bytes: &[u8],
    ) -> Result<usize, LinkError> {
        let Some(link) = self.links.to(member) else { return Err(LinkError::Replaced) };
        let mut posted = 0;
        let taken = link.take_in(number, bytes, |letter| {
            let (shard, hash) = self.shard_of(letter.key);
            let mut out = Aftermath::new(&self.links);
            let delivered = self.shard(shard).deliver(hash, member, letter, &mut out);
            if let Err(refusal) = delivered {
                let lock = letter.key.name;
                tracing::error!(lock, ?refusal, "a message cannot be delivered");
                self.anomalies.fetch_add(1, Ordering::Relaxed);
            }
            posted |= std::mem::take(&mut out.posted);
            self.settle(shard, out);
        });
        self.links.flush(posted);
        link.flush();
        taken
    }

    /// A timer has run out.
    pub(crate) fn run_out(&self, timer: TimerPlace) {
        let TimerPlace { lock: LockPlace { shard, index }, seat, tag } = timer;
        let mut out = Aftermath::new(&self.links);
        self.shard(shard).run_out(index, seat, tag, &mut out);
        self.settle(shard, out);
    }

    /// Looks at every shard, one after the other.
    pub(crate) fn look(&self, mut at: impl FnMut(&Shard)) {
        for shard in &self.shards {
            at(&shard.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// How often something came that cannot come in a correct run.
    pub(crate) fn anomalies(&self) -> u64 {
        self.anomalies.load(Ordering::Relaxed)
    }

    fn shard_of(&self, key: Key<'_>) -> (u16, u64) {
        let hash = self.hasher.hash_one(key);
        // The table within a shard uses the other bits.
        ((hash >> 16) as u16 % SHARDS as u16, hash)
    }

    fn shard(&self, shard: u16) -> MutexGuard<'_, Shard> {
        self.shards[usize::from(shard)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what had to wait until the shard was free.
    #[inline]
    fn settle(&self, shard: u16, out: Aftermath<'_>) {
        self.links.flush(out.posted);
        for waker in out.wakers {
            waker.wake();
        }
        for TimerChange { lock, seat, tag, after } in out.timers {
            let lock = LockPlace { shard, index: lock };
            self.timers.change(TimerPlace { lock, seat, tag }, after);
        }
        for what in out.anomalies {
            tracing::error!(what, "something happened that cannot");
            self.anomalies.fetch_add(1, Ordering::Relaxed);
        }
    }
}
