//! Drives one member: the clock, the links and the wakers that its shards and its service need.
//!
//! Whoever brings an input lets the shard step: the task that read a frame, or the caller itself.
//! So a lock whose token is here costs no task switch and no message. Everything else goes through
//! the service, behind a mutex of its own.
//!
//! Mutexes are taken in this order: a link's receiving side, the service, a shard, the rest.

mod links;
mod parts;
mod programs;
mod serving;
mod shards;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use catraca_client::clock;
use catraca_core::Fence;
use catraca_group::{
    Ask, Asked, Key, Outcome, Outputs, Owner, Page, PeerMessage, Place, Progress, Refusal,
    RequestId, Service, Settled, StepMessage, Timer, Turns, View, Who,
};
use tokio::sync::{Notify, oneshot};

use self::links::Links;
use self::parts::Parts;
use self::programs::Program;
use self::shards::Shards;
use crate::link::{Link, LinkError};
use crate::mutex::hold;
use crate::native::Outbox;
use crate::timers::Timers;

/// Limits of one member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How often in a row a lock goes from one client of this member to the next.
    pub(crate) turns: Turns,
    /// How many locks the clients of a member may begin.
    pub(crate) most_locks: usize,
}

/// A running member.
pub(crate) struct Engine {
    pub(crate) view: Arc<View>,
    pub(crate) group: String,
    pub(crate) incarnation: u64,
    pub(crate) links: Links,
    pub(crate) timers: Timers<Timer>,
    service: Mutex<Service>,
    shards: Shards,
    /// How many more locks the clients of this member may begin.
    room: AtomicUsize,
    /// The requests of the program itself that the service knows.
    programs: Mutex<HashMap<RequestId, Program>>,
    /// Where the notices of sessions go.
    outboxes: Mutex<HashMap<Owner, Arc<Outbox>>>,
    /// Who waits for a page.
    pages: Mutex<HashMap<u64, oneshot::Sender<Page>>>,
    last_page: AtomicU64,
    anomalies: AtomicU64,
    /// The members to whom a release is on its way that may wait for a request, one bit each.
    departing: AtomicU64,
    is_ready: AtomicBool,
    is_stopped: AtomicBool,
    is_excluded: AtomicBool,
    /// Whether the member grants locks has changed.
    readiness: Notify,
    /// Locks have been lost: the member has stopped, or the others go on without it.
    losses: Notify,
}

/// What follows from messages: others, which leave when this is dropped.
#[must_use = "messages leave when this is dropped"]
pub(crate) struct Unsent<'a> {
    engine: &'a Engine,
    /// The members for whom there are messages, one bit each.
    members: u64,
}

impl Unsent<'_> {
    pub(crate) fn is_nothing(&self) -> bool {
        self.members == 0
    }
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        self.engine.links.flush(self.members);
    }
}

impl Engine {
    pub(crate) fn new(view: View, group: &str, incarnation: u64, limits: Limits) -> Self {
        let view = Arc::new(view);
        let link = |member| (member != view.me).then(Link::new);
        let links = Links((0..view.members.len()).map(link).collect());
        let program =
            Who { label: "(node)".to_string(), pid: std::process::id(), host: String::new() };
        let service = Service::new(Arc::clone(&view), incarnation, program, clock::now());
        Engine {
            group: group.to_string(),
            incarnation,
            links,
            timers: Timers::new(),
            service: Mutex::new(service),
            shards: Shards::new(&view, limits.turns),
            room: AtomicUsize::new(limits.most_locks),
            programs: Mutex::default(),
            outboxes: Mutex::default(),
            pages: Mutex::default(),
            last_page: AtomicU64::new(0),
            anomalies: AtomicU64::new(0),
            departing: AtomicU64::new(0),
            is_ready: AtomicBool::new(view.members.len() == 1),
            is_stopped: AtomicBool::new(false),
            is_excluded: AtomicBool::new(false),
            readiness: Notify::new(),
            losses: Notify::new(),
            view,
        }
    }

    // A caller that waits for its ticket itself.

    /// Asks for one lock, or one permit, on behalf of the program itself.
    #[inline]
    pub(crate) fn acquire(&self, key: Key<'_>) -> Result<Asked, Refusal> {
        let (shard, hash) = self.shards.of(key);
        let mut parts = Parts::new(self);
        let ask = Ask::single(Owner::PROGRAM, None, self.links.full());
        let mut outputs = Outputs::new(&mut parts, shard);
        let asked = self.shards.step(shard, |cell| {
            let asked = cell.shard.acquire(key, hash, ask, &mut outputs);
            (asked, cell.wake(&outputs.settled))
        });
        self.settle(asked.1, outputs);
        asked.0
    }

    /// As [`acquire`](Self::acquire), unless somebody of this member holds or awaits it.
    pub(crate) fn acquire_if_free(&self, key: Key<'_>) -> Result<Asked, Refusal> {
        let (shard, hash) = self.shards.of(key);
        let is_free = self.shards.step(shard, |cell| cell.shard.is_free_here(key, hash));
        if is_free { self.acquire(key) } else { Err(Refusal::Taken) }
    }

    /// Whether whoever is at `place` is inside; if not, `waker` is woken when it is.
    pub(crate) fn poll(&self, place: Place, waker: &Waker) -> Poll<Result<Fence, Refusal>> {
        let (poll, old) = self.shards.step(place.shard, |cell| match cell.shard.progress(place) {
            Progress::Inside(fence) => (Poll::Ready(Ok(fence)), None),
            Progress::Waits if cell.is_stopped => (Poll::Ready(Err(Refusal::Stopped)), None),
            Progress::Waits => (Poll::Pending, cell.park(place.ticket, waker)),
            Progress::Gone => (Poll::Ready(Err(cell.refusal(place.ticket))), None),
        });
        // Not under the mutex: whatever it belongs to may do anything when it goes.
        drop(old);
        poll
    }

    /// Whoever is at `place` is not wanted any more: it leaves, whether it waits or is inside.
    #[inline]
    pub(crate) fn release(&self, place: Place) {
        let mut parts = Parts::new(self);
        let mut outputs = Outputs::new(&mut parts, place.shard);
        let (is_expected, woken, old) = self.shards.step(place.shard, |cell| {
            cell.shard.release(place, &mut outputs);
            let is_expected = cell.shard.returning.is_expected(place.lock);
            (is_expected, cell.wake(&outputs.settled), cell.forget(place.ticket))
        });
        drop(old);
        let sent_to = outputs.sent_to;
        // Where no task runs, nobody says when the next one does.
        let waits = sent_to != 0 && is_expected && tokio::task::try_id().is_some();
        if waits {
            outputs.sent_to = 0;
        }
        self.settle(woken, outputs);
        if waits {
            self.send_soon(sent_to);
        }
        if sent_to != 0 {
            let now = clock::now();
            self.shards.step(place.shard, |cell| cell.shard.returning.has_left(place.lock, now));
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

    /// Does what had to wait until the shard was free.
    #[inline]
    fn settle(&self, woken: shards::Woken, outputs: Outputs<'_>) {
        self.send_departing();
        self.links.flush(outputs.sent_to);
        for waker in woken {
            waker.wake();
        }
        for what in outputs.anomalies {
            self.note(what);
        }
        let of_requests = |settled: &Settled| settled.request.is_some();
        if outputs.settled.iter().any(of_requests) {
            self.absorb(outputs.settled.into_iter().filter(of_requests).collect());
        }
    }

    /// Tells the service whose part of a request has come to the end of waiting.
    #[cold]
    fn absorb(&self, settled: Vec<Settled>) {
        self.serve(|service, parts, out| {
            parts.settled.extend(settled);
            service.absorb(parts, out);
        });
    }

    #[cold]
    fn note(&self, what: &'static str) {
        tracing::error!(what, "something happened that cannot");
        self.anomalies.fetch_add(1, Ordering::Relaxed);
    }

    // What comes from other members, and timers.

    /// Takes in what connection `number` to `member` has brought. Returns how many bytes were whole
    /// frames, and what has followed from them.
    pub(crate) fn take_in(
        &self,
        member: usize,
        number: u64,
        bytes: &[u8],
    ) -> (Result<usize, LinkError>, Unsent<'_>) {
        let mut unsent = Unsent { engine: self, members: 0 };
        let Some(link) = self.links.to(member) else { return (Err(LinkError::Replaced), unsent) };
        let taken = link.take_in(number, bytes, |message| match message {
            PeerMessage::Step(message) => unsent.members |= self.deliver(member, message),
            message => self.serve(|service, parts, out| service.hear(member, message, parts, out)),
        });
        (taken, unsent)
    }

    /// Lets a shard take a message. Returns for which members there are new ones.
    #[inline]
    fn deliver(&self, member: usize, message: StepMessage<'_>) -> u64 {
        let (shard, hash) = self.shards.of(message.key);
        let mut parts = Parts::new(self);
        let mut outputs = Outputs::new(&mut parts, shard);
        let woken = self.shards.step(shard, |cell| {
            cell.shard.deliver(hash, member, message, &mut outputs);
            cell.wake(&outputs.settled)
        });
        let sent_to = std::mem::take(&mut outputs.sent_to);
        self.settle(woken, outputs);
        sent_to
    }

    /// A timer may have run out.
    pub(crate) fn run_out(&self, timer: Timer) {
        let Timer::Seat(shard, seat) = timer else {
            return self.serve(|service, parts, out| {
                if self.timers.claim(timer) {
                    service.run_out(timer, parts, out);
                }
            });
        };
        let mut parts = Parts::new(self);
        let mut outputs = Outputs::new(&mut parts, shard);
        let woken = self.shards.step(shard, |cell| {
            if self.timers.claim(timer) {
                cell.shard.run_out(seat, &mut outputs);
            }
            cell.wake(&outputs.settled)
        });
        self.settle(woken, outputs);
    }

    /// Whether the member grants locks.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// Waits until the member grants locks.
    pub(crate) async fn ready(&self) -> Result<(), Refusal> {
        loop {
            let changed = self.readiness.notified();
            match hold(&self.service).readiness() {
                _ if self.is_stopped() => return Err(Refusal::Stopped),
                catraca_group::Readiness::Waiting(_) => {}
                catraca_group::Readiness::Expelled(why) => return Err(Refusal::Expelled(why)),
                _ => return Ok(()),
            }
            changed.await;
        }
    }

    /// The members that have never been connected, if the group waits for them.
    pub(crate) fn awaited(&self) -> Option<Vec<String>> {
        match hold(&self.service).readiness() {
            catraca_group::Readiness::Waiting(members) => Some(members),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Why nothing can be held at `place`, if the others go on without this member there.
    #[inline]
    pub(crate) fn exclusion(&self, place: Place) -> Option<Refusal> {
        if !self.is_excluded.load(Ordering::SeqCst) {
            return None;
        }
        let listens = self.shards.step(place.shard, |cell| cell.shard.listens(place));
        if listens { hold(&self.service).exclusion() } else { None }
    }

    /// Waits until something has been lost, if `is_lost` does not say so already.
    pub(crate) async fn lost(&self, is_lost: impl Fn() -> bool) {
        loop {
            let losses = self.losses.notified();
            if is_lost() {
                return;
            }
            losses.await;
        }
    }

    /// Stops: nobody waits any more, and every session is told. Returns whom to wait for, so that
    /// they have been told.
    pub(crate) fn stop(&self) -> Vec<Arc<Outbox>> {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.serve(|service, _, out| service.stop(out));
        self.losses.notify_waiters();
        self.readiness.notify_waiters();
        self.send_departing();
        let woken = self.shards.stop();
        woken.into_iter().for_each(Waker::wake);
        hold(&self.outboxes).values().cloned().collect()
    }

    /// The part of a shard that tests look at.
    #[cfg(test)]
    pub(crate) fn with_shard<T>(
        &self,
        key: Key<'_>,
        look: impl FnOnce(&mut catraca_group::Shard) -> T,
    ) -> T {
        self.shards.step(self.shards.of(key).0, |cell| look(&mut cell.shard))
    }
}

/// The reason why somebody was refused, if that is what the outcome says.
fn refusal(outcome: &Outcome) -> Option<&Refusal> {
    match outcome {
        Outcome::Granted(_) => None,
        Outcome::Refused(why) => Some(why),
    }
}

#[cfg(test)]
mod tests;
