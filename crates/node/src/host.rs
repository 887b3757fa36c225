//! All locks of one node, and the links to the other members.
//!
//! Whoever brings an input lets the shard step: the task that read a frame, or the caller itself.
//! So a lock whose token is here costs no task switch and no message.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use catraca_core::Fence;
use tokio::sync::Notify;

use crate::detector::{Detector, Findings};
use crate::frame::FrameError;
use crate::link::{Arrival, Link, LinkError};
use crate::lock::{Lock, Ticket};
use crate::plan::Plan;
use crate::shard::{
    Aftermath, Key, Letter, LockIndex, Refusal, Room, SeatTimer, Shard, Surroundings, Wish,
};
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

/// A timer of a seat of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerPlace {
    shard: u16,
    timer: SeatTimer,
}

/// The links, by member; nothing at one's own place.
pub(crate) struct Links(pub(crate) Vec<Option<Link>>);

impl Links {
    pub(crate) fn to(&self, member: usize) -> Option<&Link> {
        self.0.get(member)?.as_ref()
    }

    /// Sends off what was posted for the members whose bits are set.
    fn flush(&self, members: u64) {
        for link in self.of(members) {
            link.flush();
        }
    }

    /// The links to the members whose bits are set.
    fn of(&self, mut members: u64) -> impl Iterator<Item = &Link> {
        let member = move || {
            let member = members.trailing_zeros() as usize;
            members &= members.wrapping_sub(1);
            (member < u64::BITS as usize).then_some(member)
        };
        std::iter::from_fn(member).filter_map(|member| self.to(member))
    }
}

/// All locks of one node.
pub(crate) struct Host {
    pub(crate) plan: Arc<Plan>,
    pub(crate) links: Links,
    pub(crate) timers: Timers<TimerPlace>,
    /// In groups that want to know which members have crashed.
    pub(crate) detector: Option<Detector>,
    standing: Standing,
    /// Locks have been lost: the node has stopped, or the others go on without it.
    pub(crate) losses: Notify,
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    anomalies: AtomicU64,
    /// The members to whom a release is on its way that may wait for a request, one bit each.
    departing: AtomicU64,
}

/// Whether a node may hand out locks.
///
/// Only once every other member has been there: a member of which the others know an earlier run
/// would give away what they hold, and any of them tells it so.
struct Standing {
    is_whole: AtomicBool,
    /// Why this node does not belong to its group any more.
    cast_out: OnceLock<String>,
    changed: Notify,
}

impl Standing {
    fn in_group_of(members: usize) -> Self {
        let is_whole = AtomicBool::new(members == 1);
        Standing { is_whole, cast_out: OnceLock::new(), changed: Notify::new() }
    }
}

/// What follows from messages: others, which leave when this is dropped.
#[must_use = "messages leave when this is dropped"]
pub(crate) struct Consequences<'a> {
    host: &'a Host,
    /// The members for whom there are messages, one bit each.
    posted: u64,
}

impl Consequences<'_> {
    pub(crate) fn is_nothing(&self) -> bool {
        self.posted == 0
    }
}

impl Drop for Consequences<'_> {
    fn drop(&mut self) {
        self.host.links.flush(self.posted);
    }
}

/// Limits and habits of one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// How often in a row a lock goes from one client of this node to the next.
    pub(crate) handovers: u8,
    /// How many locks the clients of a node may begin.
    pub(crate) most_locks: usize,
}

impl Host {
    pub(crate) fn new(plan: Arc<Plan>, habits: Habits) -> Self {
        let hasher = RandomState::new();
        let room = Arc::new(Room::for_locks(habits.most_locks));
        let shard = |_| {
            let (plan, room) = (Arc::clone(&plan), Arc::clone(&room));
            Mutex::new(Shard::new(plan, hasher.clone(), habits.handovers, room))
        };
        let link = |member| (member != plan.me).then(Link::new);
        Host {
            links: Links((0..plan.members.len()).map(link).collect()),
            timers: Timers::new(),
            detector: plan
                .has_detector()
                .then(|| Detector::new(plan.me, plan.members.len(), plan.detector)),
            standing: Standing::in_group_of(plan.members.len()),
            losses: Notify::new(),
            shards: (0..SHARDS).map(shard).collect(),
            hasher,
            anomalies: AtomicU64::new(0),
            departing: AtomicU64::new(0),
            plan,
        }
    }

    /// Asks on behalf of somebody.
    #[inline]
    pub(crate) fn acquire(&self, key: Key<'_>, wish: Wish) -> Result<Asked, Refusal> {
        let (shard, hash) = self.shard_of(key);
        let mut out = Aftermath::new(self, shard);
        let asked = self.shard(shard).acquire(key, hash, wish, &mut out);
        self.settle(out);
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
        let mut out = Aftermath::new(self, place.shard);
        let mut shard = self.shard(place.shard);
        shard.release(place.index, ticket, &mut out);
        let is_expected = shard.returning.is_expected(place.index);
        drop(shard);
        let posted = out.posted;
        // Where no task runs, nobody says when the next one does.
        let waits = posted != 0 && is_expected && tokio::task::try_id().is_some();
        if waits {
            out.posted = 0;
        }
        self.settle(out);
        if waits {
            self.send_soon(posted);
        }
        if posted != 0 {
            self.shard(place.shard).returning.has_left(place.index, Instant::now());
        }
    }

    /// Messages to these members leave with the next step of any lock, or else when the task that
    /// runs now makes way for others.
    fn send_soon(&self, members: u64) {
        self.departing.fetch_or(members, Ordering::SeqCst);
        for link in self.links.of(members) {
            link.unsent.notify_one();
        }
    }

    /// Sends off what waits for something to be sent with.
    #[inline]
    pub(crate) fn send_departing(&self) {
        if self.departing.load(Ordering::SeqCst) != 0 {
            self.links.flush(self.departing.swap(0, Ordering::SeqCst));
        }
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
    /// frames, and what has followed from them.
    pub(crate) fn take_in(
        &self,
        member: usize,
        number: u64,
        bytes: &[u8],
    ) -> (Result<usize, LinkError>, Consequences<'_>) {
        let mut after = Consequences { host: self, posted: 0 };
        let Some(link) = self.links.to(member) else { return (Err(LinkError::Replaced), after) };
        let taken = link.take_in(number, bytes, |arrival| match (arrival, &self.detector) {
            (Arrival::Letter(letter), _) => self.deliver(member, letter, &mut after),
            (Arrival::Signal(body), Some(detector)) => self.act_on(detector.hear(member, body)),
            (Arrival::Signal(_), None) => self.note("a detector speaks to a node that has none"),
        });
        (taken, after)
    }

    /// Lets a shard take a message.
    #[inline]
    fn deliver(&self, member: usize, letter: Letter<'_>, after: &mut Consequences<'_>) {
        let (shard, hash) = self.shard_of(letter.key);
        let mut out = Aftermath::new(self, shard);
        let delivered = self.shard(shard).deliver(hash, member, letter, &mut out);
        if let Err(refusal) = delivered {
            let lock = letter.key.name;
            tracing::error!(lock, ?refusal, "a message cannot be delivered");
            self.anomalies.fetch_add(1, Ordering::Relaxed);
        }
        after.posted |= std::mem::take(&mut out.posted);
        self.settle(out);
    }

    /// A timer may have run out.
    pub(crate) fn run_out(&self, place: TimerPlace) {
        let mut out = Aftermath::new(self, place.shard);
        let mut shard = self.shard(place.shard);
        if self.timers.claim(place) {
            shard.run_out(place.timer, &mut out);
        }
        drop(shard);
        self.settle(out);
    }

    /// There is a new connection. When every member has been there, the group begins.
    pub(crate) fn connected(&self) {
        if self.is_whole()
            || !self.links.0.iter().flatten().all(|link| link.incarnation().is_some())
        {
            return;
        }
        if !self.standing.is_whole.swap(true, Ordering::AcqRel) {
            tracing::info!("all members have been here: locks are handed out");
            if let Some(detector) = &self.detector {
                self.act_on(detector.begin());
            }
            self.standing.changed.notify_waiters();
        }
    }

    /// Whether every other member has been there once.
    pub(crate) fn is_whole(&self) -> bool {
        self.standing.is_whole.load(Ordering::Acquire)
    }

    /// Waits until every other member has been there once. An error says why this node does not
    /// belong to its group any more.
    pub(crate) async fn whole(&self) -> Result<(), String> {
        loop {
            let changed = self.standing.changed.notified();
            if self.is_whole() {
                return Ok(());
            }
            if let Some(why) = self.standing.cast_out.get() {
                return Err(why.clone());
            }
            changed.await;
        }
    }

    /// Another member has said that this node does not belong to the group any more.
    pub(crate) fn cast_out(&self, why: &str) {
        if self.standing.cast_out.set(why.to_string()).is_ok() {
            tracing::error!(why, "this node hands out nothing");
            self.standing.changed.notify_waiters();
        }
    }

    /// The members that have never been there, if there are any.
    pub(crate) fn absent(&self) -> Option<String> {
        let absent = self.links.0.iter().zip(&self.plan.members).filter_map(|(link, member)| {
            let is_absent = link.as_ref().is_some_and(|link| link.incarnation().is_none());
            is_absent.then(|| format!("'{}'", member.name))
        });
        let absent: Vec<String> = absent.collect();
        (!absent.is_empty()).then(|| absent.join(", "))
    }

    /// Whether another member has said that this node does not belong to the group any more.
    pub(crate) fn is_cast_out(&self) -> bool {
        self.standing.cast_out.get().is_some()
    }

    /// A member that is not connected, if there is one.
    pub(crate) fn missing(&self) -> Option<&str> {
        let is_down = |link: &Option<Link>| link.as_ref().is_some_and(|link| !link.is_up());
        let member = self.links.0.iter().position(is_down)?;
        Some(&self.plan.members[member].name)
    }

    /// Does what the detector asks for.
    pub(crate) fn act_on(&self, findings: Findings) {
        let Some(detector) = &self.detector else { return };
        for (member, bytes) in findings.sent {
            let Some(link) = self.links.to(member) else { continue };
            // Tests of a member that has crashed must not pile up.
            if link.is_up() || !detector.suspects().contains_key(&member) {
                // It is far shorter than a frame can be.
                let _ = link.push_signal(&bytes);
                link.flush();
            }
        }
        for crashed in findings.crashed {
            let member = &self.plan.members[crashed].name;
            tracing::warn!(%member, "does not answer, and is taken for crashed");
            self.in_every_shard(|shard, out| shard.suspect(crashed, out));
        }
        if let Some(by) = findings.excluded_by
            && detector.exclude(by)
        {
            let by = &self.plan.members[by].name;
            tracing::error!(%by, "this node is taken for crashed; its locks in namespaces with robust-k are lost");
            self.in_every_shard(Shard::give_up);
            self.losses.notify_waiters();
        }
        for what in findings.anomalies {
            self.note(what);
        }
    }

    fn in_every_shard(&self, mut step: impl FnMut(&mut Shard, &mut Aftermath<'_>)) {
        for shard in 0..SHARDS as u16 {
            let mut out = Aftermath::new(self, shard);
            step(&mut self.shard(shard), &mut out);
            self.settle(out);
        }
    }

    /// The member that takes this one for crashed, if there is one.
    pub(crate) fn excluded_by(&self) -> Option<&str> {
        let by = self.detector.as_ref()?.excluded_by()?;
        Some(&self.plan.members[by].name)
    }

    /// Whether the others may take the lock at `place` for free because of what a detector says.
    pub(crate) fn listens(&self, place: LockPlace) -> bool {
        self.shard(place.shard).listens(place.index)
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
        // The name alone: semaphores of different sizes with one name find each other.
        let hash = self.hasher.hash_one(key.name);
        // The table within a shard uses the other bits.
        ((hash >> 16) as u16 % SHARDS as u16, hash)
    }

    fn shard(&self, shard: u16) -> MutexGuard<'_, Shard> {
        self.shards[usize::from(shard)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what had to wait until the shard was free.
    #[inline]
    fn settle(&self, out: Aftermath<'_>) {
        self.send_departing();
        self.links.flush(out.posted);
        for waker in out.wakers {
            waker.wake();
        }
        for what in out.anomalies {
            self.note(what);
        }
    }

    #[cold]
    fn note(&self, what: &'static str) {
        tracing::error!(what, "something happened that cannot");
        self.anomalies.fetch_add(1, Ordering::Relaxed);
    }
}

impl Surroundings for Host {
    fn post(&self, member: usize, letter: Letter<'_>) {
        let Some(link) = self.links.to(member) else { return };
        if let Err(FrameError::Long(bytes)) = link.push(letter) {
            // Only a control token with very many resources in use can be so long.
            tracing::error!(lock = letter.key.name, bytes, "a message is too long to be sent");
        }
    }

    fn set_timer(&self, shard: u16, timer: SeatTimer, after: Option<Duration>) {
        self.timers.change(TimerPlace { shard, timer }, after);
    }
}

#[cfg(test)]
mod tests {
    use std::future::IntoFuture;
    use std::pin::Pin;

    use tokio::task::{JoinHandle, yield_now};

    use super::*;
    use crate::limits::pair;
    use crate::{Guard, LockError, Node};

    const LIMIT: Duration = Duration::from_secs(60);
    const X: Key<'_> = Key { name: "x", permits: 1 };

    /// Member 'a', where somebody has lock 'x' and is expected to ask for it again at once, and
    /// who waits for it at 'b'.
    async fn a_loop_at_a() -> (Node, Guard, JoinHandle<Result<Guard, LockError>>) {
        let ([one, other], [here, there]) = pair().await;
        let a = Node::start_at(one, here).await.unwrap();
        let b = Node::start_at(other, there).await.unwrap();
        let guard = a.lock("x").await.unwrap();
        let arrived = || shard(&a).counts.arrived;
        let before = arrived();
        let waiting = tokio::spawn(async move { b.lock("x").await });
        let request = async {
            while arrived() == before {
                yield_now().await;
            }
        };
        tokio::time::timeout(LIMIT, request).await.expect("'b' asks");
        let (only, now) = (LockIndex(0), Instant::now());
        shard(&a).returning.has_left(only, now);
        shard(&a).returning.asks(only, now);
        (a, guard, waiting)
    }

    /// Where lock 'x' is, which is the only one there.
    fn shard(a: &Node) -> MutexGuard<'_, Shard> {
        let host = &a.running.host;
        host.shard(host.shard_of(X).0)
    }

    fn unwritten(a: &Node) -> usize {
        a.running.host.links.to(1).unwrap().unwritten()
    }

    async fn comes(waiting: JoinHandle<Result<Guard, LockError>>) {
        let come = tokio::time::timeout(LIMIT, waiting).await.expect("the lock comes");
        assert!(come.unwrap().is_ok());
    }

    async fn in_a_task(work: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(work).await.unwrap();
    }

    #[tokio::test]
    async fn a_release_leaves_together_with_the_request_that_is_expected() {
        in_a_task(async {
            let (a, guard, waiting) = a_loop_at_a().await;
            let messages = || shard(&a).counts.messages;
            let before = messages();
            drop(guard);
            assert!(unwritten(&a) > 0, "it waits for the request");
            let mut again = a.lock("x").into_future();
            std::future::poll_fn(|context| {
                assert!(Pin::new(&mut again).poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            assert_eq!((messages() - before, unwritten(&a)), (2, 0), "both are on their way");
            comes(waiting).await;
        })
        .await;
    }

    #[tokio::test]
    async fn a_release_that_no_request_follows_leaves_when_the_task_makes_way() {
        in_a_task(async {
            let (a, guard, waiting) = a_loop_at_a().await;
            drop(guard);
            assert!(unwritten(&a) > 0, "it waits for the request");
            yield_now().await;
            assert_eq!(unwritten(&a), 0);
            comes(waiting).await;
            assert!(!shard(&a).returning.is_expected(LockIndex(0)), "no more");
        })
        .await;
    }

    #[tokio::test]
    async fn a_release_leaves_before_its_node_stops() {
        in_a_task(async {
            let (a, guard, waiting) = a_loop_at_a().await;
            drop(guard);
            assert!(unwritten(&a) > 0, "it waits for the request");
            let running = Arc::clone(&a.running);
            drop(a);
            assert_eq!(running.host.links.to(1).unwrap().unwritten(), 0);
            comes(waiting).await;
        })
        .await;
    }

    #[tokio::test]
    async fn a_release_leaves_at_once_if_nobody_is_expected() {
        in_a_task(async {
            let (a, guard, waiting) = a_loop_at_a().await;
            shard(&a).returning.has_left(LockIndex(0), Instant::now());
            drop(guard);
            assert_eq!(unwritten(&a), 0);
            comes(waiting).await;
        })
        .await;
    }

    #[tokio::test]
    async fn a_release_leaves_at_once_where_no_task_runs() {
        let (a, guard, waiting) = a_loop_at_a().await;
        drop(guard);
        assert_eq!(unwritten(&a), 0);
        comes(waiting).await;
    }
}
