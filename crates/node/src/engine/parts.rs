//! What a step of a shard or of the service may ask for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use catraca_client::clock;
use catraca_core::{Claim, Fence};
use catraca_group::{
    Ask, Asked, Client, Driver, Ending, Event, Host, Key, Outputs, PeerMessage, Place, Refusal,
    RequestId, Run, Settled, Shard, StepMessage, Time, Timer, View,
};

use super::{Engine, shards::Cell};

/// The engine, while one input is being handled, and what is to be done afterwards.
pub(crate) struct Parts<'a> {
    engine: &'a Engine,
    /// The members for whom there are new messages, one bit each.
    pub(super) sent_to: u64,
    /// Those whose part of a request has come to the end of waiting.
    pub(super) settled: VecDeque<Settled>,
    /// Whom to wake.
    pub(super) woken: Vec<Waker>,
    pub(super) anomalies: Vec<&'static str>,
    /// Whether a lock has found the lease over.
    pub(super) withheld: bool,
    /// A lock that has used up its numbers.
    pub(super) used_up: Option<Box<str>>,
}

impl<'a> Parts<'a> {
    #[inline]
    pub(super) fn new(engine: &'a Engine) -> Self {
        Parts {
            engine,
            sent_to: 0,
            settled: VecDeque::new(),
            woken: Vec::new(),
            anomalies: Vec::new(),
            withheld: false,
            used_up: None,
        }
    }

    /// Lets a shard step, and keeps what follows.
    fn stepped<T>(&mut self, shard: u16, step: impl FnOnce(&mut Cell, &mut Outputs<'_>) -> T) -> T {
        let engine = self.engine;
        let mut parts = Parts::new(engine);
        let mut outputs = Outputs::new(&mut parts, shard);
        let (done, woken) = engine.shards.step(shard, |cell| {
            let done = step(cell, &mut outputs);
            (done, cell.wake(&outputs.settled))
        });
        self.sent_to |= outputs.sent_to;
        self.withheld |= outputs.withheld;
        self.used_up = outputs.used_up.or(self.used_up.take());
        self.woken.extend(woken);
        self.anomalies.extend(outputs.anomalies);
        let of_requests = outputs.settled.into_iter().filter(|settled| settled.request.is_some());
        self.settled.extend(of_requests);
        done
    }
}

impl Parts<'_> {
    /// Lets a shard take a message.
    pub(super) fn deliver(&mut self, member: usize, message: StepMessage<'_>) {
        let (shard, hash) = self.engine.shards.of(message.key);
        self.stepped(shard, |cell, outputs| cell.shard.deliver(hash, member, message, outputs));
    }
}

impl Driver for Parts<'_> {
    #[inline]
    fn now(&mut self) -> Time {
        clock::now()
    }

    #[inline]
    fn send(&mut self, member: usize, message: StepMessage<'_>) {
        let pushed = self.engine.links.with(member, |link| link.push(PeerMessage::Step(message)));
        if let Some(Err(error)) = pushed {
            // Only a control token with very many resources in use can be so long.
            tracing::error!(lock = message.key.name, %error, "a message is too long to be sent");
        }
    }

    fn set_timer(&mut self, timer: Timer, after: Option<Duration>) {
        self.engine.timers.change(timer, after);
    }

    #[inline]
    fn is_valid_at(&mut self, now: Time) -> bool {
        now.0 < self.engine.valid_until.load(Ordering::Acquire)
    }

    fn set_validity(&mut self, until: Time) {
        self.engine.valid_until.store(until.0, Ordering::Release);
    }

    fn begin_view(&mut self, view: &Arc<View>, runs: &[Run]) {
        self.engine.links.begin_view(runs, view.me);
    }

    fn take_room(&mut self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.engine.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn give_room(&mut self, locks: usize) {
        self.engine.room.fetch_add(locks, Ordering::Relaxed);
    }

    #[inline]
    fn is_watched(&self) -> bool {
        self.engine.changes.is_watched()
    }

    fn event(&mut self, event: Event<'_>) {
        self.engine.changes.note(event);
    }

    fn identify(&mut self, request: RequestId, client: Client<'_>) {
        self.engine.changes.identify(request, client);
    }
}

impl Host for Parts<'_> {
    fn acquire(&mut self, key: Key<'_>, ask: Ask) -> Result<Asked, Refusal> {
        let (shard, hash) = self.engine.shards.of(key);
        self.stepped(shard, |cell, outputs| cell.shard.acquire(key, hash, ask, outputs))
    }

    fn adopt(&mut self, key: Key<'_>, seat: u16, ask: Ask, fence: Fence) -> Result<Place, Refusal> {
        let (shard, hash) = self.engine.shards.of(key);
        self.stepped(shard, |cell, outputs| cell.shard.adopt(key, hash, seat, ask, fence, outputs))
    }

    fn end(&mut self, place: Place, ending: Ending) {
        self.stepped(place.shard, |cell, outputs| cell.shard.end(place, ending, outputs));
    }

    fn settled(&mut self) -> Option<Settled> {
        self.settled.pop_front()
    }

    fn is_free_here(&mut self, key: Key<'_>) -> bool {
        let (shard, hash) = self.engine.shards.of(key);
        self.engine.shards.step(shard, |cell| cell.shard.is_free_here(key, hash))
    }

    fn is_held(&mut self, key: Key<'_>, claim: Option<&Claim>) -> bool {
        let (shard, hash) = self.engine.shards.of(key);
        self.engine.shards.step(shard, |cell| cell.shard.is_held(key, hash, claim))
    }

    fn holder(&mut self, key: &str, name: &str, fence: u64) -> Option<(Place, Option<RequestId>)> {
        let (shard, hash) = self.engine.shards.of(Key { name: key, permits: 1 });
        let found = self.engine.shards.step(shard, |it| it.shard.holder(key, hash, name, fence));
        found.map(|(lock, ticket, request)| (Place { shard, lock, ticket }, request))
    }

    fn newest_fence(&mut self, key: Key<'_>, claim: Option<&Claim>) -> Option<Fence> {
        let (shard, hash) = self.engine.shards.of(key);
        self.engine.shards.step(shard, |cell| cell.shard.newest_fence(key, hash, claim))
    }

    fn look_at(&mut self, key: &str, at: &mut dyn FnMut(&Shard, u64)) {
        let (shard, hash) = self.engine.shards.of(Key { name: key, permits: 1 });
        self.engine.shards.step(shard, |cell| at(&cell.shard, hash));
    }

    fn look(&mut self, at: &mut dyn FnMut(&Shard)) {
        for shard in self.engine.shards.all() {
            self.engine.shards.step(shard, |cell| at(&cell.shard));
        }
    }

    fn step_all(&mut self, step: &mut dyn FnMut(&mut Shard, &mut Outputs<'_>)) {
        for shard in self.engine.shards.all() {
            self.stepped(shard, |cell, outputs| step(&mut cell.shard, outputs));
        }
    }

    fn full(&self) -> u64 {
        self.engine.links.full()
    }
}
