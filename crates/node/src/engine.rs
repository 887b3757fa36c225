//! Drives one member: the clock, the links and the wakers that its shards and its service need.
//!
//! Whoever brings an input lets the shard step: the task that read a frame, or the caller itself.
//! So a lock whose token is here costs no task switch and no message. Everything else goes through
//! the service, behind a mutex of its own.
//!
//! Mutexes are taken in this order: a link's receiving side, the service, a shard, the rest.

pub(crate) mod administering;
mod askers;
mod asking;
mod links;
pub(crate) mod opening;
mod others;
mod parts;
mod programs;
mod serving;
mod shards;
mod watching;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use catraca_client::clock;
use catraca_client::protocol::RegistryKind;
use catraca_core::Fence;
use catraca_group::{
    Ask, Asked, Ending, Entry, Key, Outcome, Outputs, Owner, PeerMessage, Place, Progress,
    Readiness, Refusal, RequestId, Run, Service, Settings, Settled, StepMessage, Time, Timer,
    Turns, View, Who,
};
use catraca_registry::{Embedded, Registry, Txn};
use tokio::sync::{Notify, Semaphore, mpsc, watch};

use self::administering::Forced;
use self::askers::Askers;
use self::links::{Links, Seats};
use self::opening::Opened;
use self::others::Others;
pub(crate) use self::others::{ByOthers, Done};
use self::parts::Parts;
use self::programs::Program;
use self::shards::Shards;
use crate::audit::Audit;
use crate::changes::Changes;
use crate::link::{Link, LinkError};
use crate::metrics::{Interface, Metrics};
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
    /// How long whoever is inside may finish when the member leaves.
    pub(crate) drain: Duration,
    /// Where the group keeps its registry.
    pub(crate) registry: RegistryKind,
}

/// The service, and the links of the view in which it speaks.
struct Serving {
    service: Service,
    view: Arc<View>,
    seats: Seats,
}

/// Whom to keep links to.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    /// Which run of this member keeps them.
    pub(crate) own: Run,
    /// The other members of the view.
    pub(crate) entries: Vec<Entry>,
    /// How many of them are called from here: whoever joined later calls.
    pub(crate) called: usize,
}

/// A running member.
pub(crate) struct Engine {
    /// The member by itself: its name, and which algorithm guards which names.
    pub(crate) shape: View,
    pub(crate) group: String,
    /// How long whoever is inside may finish when the member leaves.
    pub(crate) drain: Duration,
    lease: Duration,
    registry_kind: RegistryKind,
    /// Which run of the process this is.
    pub(crate) incarnation: u64,
    pub(crate) links: Links,
    pub(crate) timers: Timers<Timer>,
    serving: Mutex<Serving>,
    shards: Shards,
    /// Until when locks may be granted.
    valid_until: AtomicU64,
    /// How many more locks the clients of this member may begin.
    room: AtomicUsize,
    /// The requests of the program itself that the service knows.
    programs: Mutex<HashMap<RequestId, Program>>,
    /// Which machine has opened which sessions.
    opened: Mutex<Opened>,
    /// Where the notices of sessions go.
    outboxes: Mutex<HashMap<Owner, Arc<Outbox>>>,
    /// Who waits for pages, durable holds and timed holds.
    askers: Askers,
    /// Who is told of locks of files that are taken and released by other means than the interface for Git.
    others: Others,
    anomalies: AtomicU64,
    /// The members to whom a release is on its way that may wait for a request, one bit each.
    departing: AtomicU64,
    is_ready: AtomicBool,
    is_stopped: AtomicBool,
    has_left: AtomicBool,
    is_excluded: AtomicBool,
    /// Whether the member grants locks has changed, or whether it belongs to its group.
    readiness: Notify,
    /// Locks have been lost: the member has stopped, or the others go on without it.
    losses: Notify,
    /// What is to be asked of the registry.
    asks: mpsc::UnboundedSender<(u64, Txn)>,
    /// Whom to keep links to.
    pub(crate) peers: watch::Sender<Peers>,
    /// What callers hold that have waited for their tickets themselves, and is being ended by force.
    forced: Forced,
    /// How many more may administer at a time.
    administering: Semaphore,
    /// What is counted for those who watch from outside.
    metrics: Metrics,
    /// What happens to locks, and who wants to know.
    changes: Arc<Changes>,
    /// Where it is written down who holds what, if anywhere.
    audit: Option<Audit>,
    /// The registry, while it is open.
    pub(crate) registry: Mutex<Option<Arc<dyn Registry>>>,
    /// The same, if it is replicated among the members.
    pub(crate) embedded: Mutex<Option<Embedded>>,
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
    /// A member that is about to join its group, and what it asks of the registry.
    pub(crate) fn new(
        settings: Settings,
        group: &str,
        incarnation: u64,
        limits: Limits,
        audit: Option<Audit>,
    ) -> (Self, mpsc::UnboundedReceiver<(u64, Txn)>) {
        let shape = Service::before_any_view(&settings);
        let view = Arc::new(shape.clone());
        let program =
            Who { label: "(node)".to_string(), pid: std::process::id(), ..Who::default() };
        let lease = settings.lease.ttl;
        let own = Run { name: settings.member.name.clone(), incarnation };
        let service = Service::joining(settings, incarnation, program, clock::now());
        let (asks, asked) = mpsc::unbounded_channel();
        let shards = Shards::new(&view, limits.turns);
        let changes = Arc::new(Changes::new(&own.name, incarnation, audit.is_some()));
        let serving = Serving { service, view, seats: Seats::default() };
        let engine = Engine {
            shape,
            group: group.to_string(),
            drain: limits.drain,
            lease,
            registry_kind: limits.registry,
            incarnation,
            links: Links::default(),
            timers: Timers::new(),
            serving: Mutex::new(serving),
            shards,
            valid_until: AtomicU64::new(0),
            room: AtomicUsize::new(limits.most_locks),
            programs: Mutex::default(),
            opened: Mutex::default(),
            outboxes: Mutex::default(),
            askers: Askers::default(),
            others: Others::default(),
            anomalies: AtomicU64::new(0),
            departing: AtomicU64::new(0),
            is_ready: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
            is_excluded: AtomicBool::new(false),
            readiness: Notify::new(),
            losses: Notify::new(),
            asks,
            peers: watch::Sender::new(Peers { own, entries: Vec::new(), called: 0 }),
            forced: Forced::default(),
            administering: Semaphore::new(administering::MOST_AT_A_TIME),
            metrics: Metrics::default(),
            changes,
            audit,
            registry: Mutex::new(None),
            embedded: Mutex::new(None),
        };
        (engine, asked)
    }

    /// Breaks the rule of views that the environment names, so that tests can see that it matters.
    #[cfg(feature = "mutants")]
    pub(crate) fn break_rule(&self) {
        if let Ok(name) = std::env::var("CATRACA_BROKEN_RULE") {
            tracing::error!(rule = %name, "a rule is broken on purpose");
            self.serve(|service, parts, _| service.break_rule(&name, parts));
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
        // Whoever leaves because it was told to is not said to have wanted to.
        let is_forced = self.is_forced(place);
        let ending = if is_forced { Ending::Forced } else { Ending::Released };
        let mut parts = Parts::new(self);
        let mut outputs = Outputs::new(&mut parts, place.shard);
        let (is_expected, woken, old) = self.shards.step(place.shard, |cell| {
            cell.shard.end(place, ending, &mut outputs);
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
        self.links.each(members, |link| link.unsent.notify_one());
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
        let is_urgent = outputs.withheld || outputs.used_up.is_some();
        if is_urgent || outputs.settled.iter().any(of_requests) {
            let settled = outputs.settled.into_iter().filter(of_requests).collect();
            self.absorb(settled, outputs.withheld, outputs.used_up);
        }
    }

    /// Tells the service whose part of a request has come to the end of waiting, whether a lock has found
    /// the lease over, and which one has used up its numbers.
    #[cold]
    fn absorb(&self, settled: Vec<Settled>, withheld: bool, used_up: Option<Box<str>>) {
        self.serve(|service, parts, out| {
            parts.settled.extend(settled);
            parts.withheld |= withheld;
            parts.used_up = used_up.or(parts.used_up.take());
            service.absorb(parts, out);
        });
    }

    #[cold]
    fn note(&self, what: &'static str) {
        tracing::error!(what, "something happened that cannot");
        self.anomalies.fetch_add(1, Ordering::Relaxed);
    }

    // What comes from other members, and timers.

    /// Takes in what connection `number` of a link has brought. Returns how many bytes were whole
    /// frames, and what has followed from them.
    pub(crate) fn take_in(
        &self,
        link: &Link,
        number: u64,
        bytes: &[u8],
    ) -> (Result<usize, LinkError>, Unsent<'_>) {
        self.metrics.receive(Interface::Peer, bytes.len());
        let mut unsent = Unsent { engine: self, members: 0 };
        let taken = link.take_in(number, bytes, |message| {
            if let PeerMessage::Aside(body) = message {
                self.changes.hear(&link.run, body);
            } else if let PeerMessage::Step(step) = message
                && let Some(place) = link.place_in(step.epoch)
            {
                unsent.members |= self.deliver(place, step);
            } else {
                unsent.members |= self.hear(&link.run, message);
            }
        });
        (taken, unsent)
    }

    /// A run of another member says something to the service, or to a lock of a view that has just begun
    /// or has yet to begin. Returns for which members there are new messages.
    fn hear(&self, run: &Run, message: PeerMessage<'_>) -> u64 {
        let place = self.serve(|service, parts, out| service.hear_from(run, &message, parts, out));
        match (place, message) {
            (Some(place), PeerMessage::Step(step)) => self.deliver(place, step),
            _ => 0,
        }
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
            if self.is_stopped() {
                return Err(Refusal::Stopped);
            }
            if self.is_ready() {
                return Ok(());
            }
            changed.await;
        }
    }

    /// What keeps the member from granting locks, if something does.
    pub(crate) fn obstacle(&self) -> Option<String> {
        match hold(&self.serving).service.readiness() {
            Readiness::Joining(why) => Some(why),
            _ => None,
        }
    }

    /// Until when locks may be granted, if nothing prolongs it.
    pub(crate) fn valid_until(&self) -> Time {
        Time(self.valid_until.load(Ordering::Acquire))
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
        if listens { hold(&self.serving).service.exclusion() } else { None }
    }

    /// Whether whoever was let in at `place` is still inside.
    pub(crate) fn is_inside(&self, place: Place) -> bool {
        let progress = self.shards.step(place.shard, |cell| cell.shard.progress(place));
        matches!(progress, Progress::Inside(_))
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
        self.askers.close();
        self.changes.close();
        let registry = hold(&self.registry).take();
        drop(registry);
        let embedded = hold(&self.embedded).take();
        drop(embedded);
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
