//! A whole member: its service and its locks in one value, for drivers that step one thing at a time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use ahash::RandomState;
use catraca_core::{Claim, Fence};

use crate::driver::{Client, Driver, Ending, Event, Outputs, Place, Settled, StepMessage, Timer};
use crate::durable::{AcquireDurable, HoldId, Transfer, Unlock};
use crate::force::Order;
use crate::lock::Owner;
use crate::lock::mutants::Mutant;
use crate::membership::{Leaving, Run, Settings};
use crate::question::PeerMessage;
use crate::refusal::Refusal;
use crate::registry::{Answer, Revision, Trouble, Word};
use crate::request::{Acquire, Origin, RequestId};
use crate::service::{Behalf, Host, Output, Service};
use crate::session::{SessionId, Who};
use crate::shard::{Ask, Asked, Held, HeldLock, Key, Shard};
use crate::time::Time;
use crate::timed::{AcquireTimed, Operation, Which};
use crate::turns::Turns;
use crate::view::View;

/// A member of a group: everything that it decides, and nothing else.
#[derive(Clone)]
pub struct WholeMember {
    service: Service,
    shard: Shard,
    hasher: RandomState,
}

/// One thing that happens to a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A client opens a session. Its number is one more than the last.
    Open(Who, Option<Duration>),
    /// A session asks for locks, under a number of its own.
    Request(Owner, u32, Acquire),
    /// A session takes a request back, or releases what it was granted.
    Release(Owner, u32),
    /// A session is renewed.
    Renew(Owner),
    /// A session is closed.
    Close(Owner),
    /// The program that runs the member asks for locks.
    Acquire(Acquire),
    /// Another member says something.
    Message(usize, PeerMessage<'a>),
    /// A timer has run out.
    Timer(Timer),
    /// There is a connection to this run of another member.
    LinkUp(usize, u64),
    /// The connection to another member is gone.
    LinkDown(usize),
    /// Of a group that changes: the member begins.
    Begin,
    /// The registry has answered a transaction, or not.
    Answered(u64, Result<Answer, Trouble>),
    /// The registry tells of a change.
    Word(Word),
    /// A link to a run of another member has come or gone.
    Link(Run, bool),
    /// A run of another member says something.
    Hear(Run, PeerMessage<'a>),
    /// Somebody asks for a durable hold, perhaps in a session, at this time in milliseconds since 1970.
    AcquireDurable(u64, Option<Owner>, AcquireDurable, u64),
    /// Somebody does not wait for a durable hold any more.
    CancelDurable(u64),
    /// Somebody releases a durable hold.
    Unlock(u64, Unlock),
    /// Somebody gives a durable hold to another owner, at this time in milliseconds since 1970.
    Transfer(u64, Transfer, u64),
    /// Somebody asks for a timed hold.
    AcquireTimed(u64, AcquireTimed),
    /// Nobody waits for this timed hold any more.
    CancelTimed(HoldId),
    /// Somebody wants something done with a timed hold.
    Timed(u64, Which, Operation),
    /// Somebody wants a member, by its name, to carry out an order.
    Order(u64, &'a str, Order),
    /// Somebody wants to know the newest fence of a lock.
    NewestFence(u64, String, u32),
    /// These keys of the registry were written or deleted, at these revisions.
    HoldsChanged(Vec<(String, Revision)>),
    /// The member leaves its group; whoever is inside may finish within this time.
    Leave(Leaving, Duration),
}

impl WholeMember {
    /// A member that has just begun, whose turns are so long.
    pub fn new(view: View, incarnation: u64, turns: Turns, now: Time) -> Self {
        let view = Arc::new(view);
        // The same for every run: nothing may depend on it, and a run can be repeated.
        let hasher = RandomState::with_seeds(1, 2, 3, 4);
        let shard = Shard::new(Arc::clone(&view), hasher.clone(), turns);
        let program = Who { label: "(node)".into(), ..Who::default() };
        WholeMember { service: Service::new(view, incarnation, program, now), shard, hasher }
    }

    /// A member that is about to join its group.
    pub fn joining(settings: Settings, incarnation: u64, turns: Turns, now: Time) -> Self {
        let hasher = RandomState::with_seeds(1, 2, 3, 4);
        let view = Arc::new(Service::before_any_view(&settings));
        let mut shard = Shard::new(view, hasher.clone(), turns);
        shard.freeze();
        let program = Who { label: "(node)".into(), ..Who::default() };
        let service = Service::joining(settings, incarnation, program, now);
        WholeMember { service, shard, hasher }
    }

    /// The same member with a broken rule of views, by the name of the mutant.
    #[doc(hidden)]
    pub fn with_rules(mut self, mutant: &str) -> Self {
        self.shard.follow(self.service.with_rules(mutant));
        self
    }

    /// The same member, whose grants are numbered from `number` on in every view.
    #[doc(hidden)]
    pub fn counting_from(mut self, number: u64) -> Self {
        self.shard.count_from(number);
        self
    }

    /// The same member, which wants names to be forgotten when more than so many are not in use here.
    pub fn forgetting_beyond(mut self, idle_names: usize) -> Self {
        self.service.forget_beyond(idle_names);
        self
    }

    /// The same member with broken locks.
    #[doc(hidden)]
    pub fn mutated(mut self, mutant: &Mutant) -> Self {
        self.shard.mutated(mutant);
        self
    }

    /// It remembers so many grants and releases from now on.
    #[cfg(test)]
    pub(crate) fn remember(&mut self, most: usize) {
        self.shard.remember(most);
    }

    /// Takes one step.
    pub fn step(&mut self, input: Input<'_>, driver: &mut dyn Driver, out: &mut Vec<Output>) {
        let WholeMember { service, shard, hasher } = self;
        let host = &mut Parts::new(shard, hasher, driver);
        match input {
            Input::Open(who, ttl) => {
                if let Err(why) = service.open(who, ttl, [0; 16], host) {
                    let owner = Owner::PROGRAM;
                    out.push(Output::Notice(owner, crate::Notice::Refused { request: 0, why }));
                }
            }
            Input::Request(owner, number, asked) => {
                service.request(owner, number, asked, host, out);
            }
            Input::Release(owner, number) => service.release_request(owner, number, host, out),
            Input::Renew(owner) => {
                if let Err(why) = service.renew(owner, host, out) {
                    out.push(Output::Notice(owner, crate::Notice::Over(why)));
                }
            }
            Input::Close(owner) => service.close(owner, host, out),
            Input::Acquire(asked) => {
                if service.acquire(Origin::Program, asked, host, out).is_err() {
                    out.push(Output::Anomaly("the program asked for what cannot be"));
                }
                service.absorb(host, out);
            }
            Input::Message(member, PeerMessage::Step(message)) => {
                host.deliver(member, message);
                service.absorb(host, out);
            }
            Input::Message(member, message) => service.hear(member, message, host, out),
            Input::Timer(Timer::Seat(_, timer)) => {
                host.stepped(|shard, outputs| shard.run_out(timer, outputs));
                service.absorb(host, out);
            }
            Input::Timer(timer) => service.run_out(timer, host, out),
            Input::LinkUp(member, incarnation) => service.link_up(member, incarnation, host, out),
            Input::LinkDown(member) => service.link_down(member, host, out),
            Input::Begin => service.wake(host, out),
            Input::Answered(number, result) => service.answered(number, result, host, out),
            Input::Word(word) => service.hear_word(&word, host, out),
            Input::Link(run, is_up) => service.link(&run, is_up, host, out),
            Input::Hear(run, message) => hear(service, &run, message, host, out),
            Input::AcquireDurable(asker, session, asked, unix_millis) => {
                let behalf = Behalf { session, ..Behalf::default() };
                service.acquire_durable(asker, behalf, asked, unix_millis, host, out);
            }
            Input::CancelDurable(asker) => service.cancel_durable(asker, host, out),
            Input::Unlock(asker, unlock) => service.unlock(asker, unlock, host, out),
            Input::Transfer(asker, transfer, unix_millis) => {
                service.transfer(asker, transfer, unix_millis, host, out);
            }
            Input::AcquireTimed(asker, asked) => service.acquire_timed(asker, asked, host, out),
            Input::CancelTimed(id) => service.cancel_timed(id, host, out),
            Input::Timed(asker, which, operation) => {
                service.timed(asker, which, operation, host, out);
            }
            Input::Order(asker, member, order) => service.order(asker, member, order, host, out),
            Input::NewestFence(asker, name, permits) => {
                service.newest_fence(asker, &name, permits, host, out);
            }
            Input::HoldsChanged(keys) => service.holds_changed(&keys, host, out),
            Input::Leave(how, drain) => service.depart(how, drain, host, out),
        }
        for (run, bytes) in service.take_kept() {
            if let Ok(message) = postcard::from_bytes(&bytes) {
                hear(service, &run, message, host, out);
            }
        }
        if host.withheld {
            service.withheld(host, out);
        }
        if let Some(name) = host.used_up.take() {
            service.used_up(&name, host, out);
        }
        out.append(&mut host.out);
    }

    /// Sessions, requests and holds.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// The locks.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// The session that [`Input::Open`] has opened last.
    pub fn last_session(&self) -> Option<SessionId> {
        self.service.last_session()
    }

    /// What its clients hold.
    pub fn held(&self) -> Vec<HeldLock> {
        self.shard.held_as(&|request| self.service.durable_id(request))
    }

    /// Whether nobody here is inside or waits, and nothing has been asked for.
    pub fn is_at_rest(&self) -> bool {
        self.service.is_at_rest() && self.shard.is_at_rest()
    }

    /// Begins a new view; see [`Shard::change_view`].
    pub fn change_view(
        &mut self,
        view: View,
        held: Arc<Held>,
        driver: &mut dyn Driver,
        out: &mut Vec<Output>,
    ) {
        let view = Arc::new(view);
        self.service.change_view(Arc::clone(&view));
        let WholeMember { service, shard, hasher } = self;
        let host = &mut Parts::new(shard, hasher, driver);
        host.stepped(|shard, outputs| shard.change_view(view, held, outputs));
        service.absorb(host, out);
        out.append(&mut host.out);
    }
}

/// A run of another member says something, to the service or to a lock.
fn hear(
    service: &mut Service,
    run: &Run,
    message: PeerMessage<'_>,
    host: &mut Parts<'_>,
    out: &mut Vec<Output>,
) {
    if let Some(place) = service.hear_from(run, &message, host, out)
        && let PeerMessage::Step(message) = message
    {
        host.deliver(place, message);
        service.absorb(host, out);
    }
}

impl Hash for WholeMember {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.service.hash(hasher);
        self.shard.hash(hasher);
    }
}

/// The one shard of a whole member, and its driver.
struct Parts<'a> {
    shard: &'a mut Shard,
    hasher: &'a RandomState,
    driver: &'a mut dyn Driver,
    settled: VecDeque<Settled>,
    out: Vec<Output>,
    withheld: bool,
    used_up: Option<Box<str>>,
}

impl<'a> Parts<'a> {
    fn new(shard: &'a mut Shard, hasher: &'a RandomState, driver: &'a mut dyn Driver) -> Self {
        let (settled, out) = (VecDeque::new(), Vec::new());
        Parts { shard, hasher, driver, settled, out, withheld: false, used_up: None }
    }

    /// Lets the shard step, and keeps what follows.
    fn stepped<T>(&mut self, step: impl FnOnce(&mut Shard, &mut Outputs<'_>) -> T) -> T {
        let mut outputs = Outputs::new(self.driver, 0);
        let done = step(self.shard, &mut outputs);
        self.settled.extend(outputs.settled);
        self.withheld |= outputs.withheld;
        if let Some(name) = outputs.used_up {
            self.used_up.get_or_insert(name);
        }
        self.out.extend(outputs.anomalies.into_iter().map(Output::Anomaly));
        done
    }

    fn deliver(&mut self, member: usize, message: StepMessage<'_>) {
        let hash = self.hasher.hash_one(message.key.name);
        self.stepped(|shard, outputs| shard.deliver(hash, member, message, outputs));
    }
}

impl Driver for Parts<'_> {
    fn now(&mut self) -> Time {
        self.driver.now()
    }

    fn send(&mut self, member: usize, message: StepMessage<'_>) {
        self.driver.send(member, message);
    }

    fn set_timer(&mut self, timer: Timer, after: Option<Duration>) {
        self.driver.set_timer(timer, after);
    }

    fn is_valid_at(&mut self, now: Time) -> bool {
        self.driver.is_valid_at(now)
    }

    fn set_validity(&mut self, until: Time) {
        self.driver.set_validity(until);
    }

    fn begin_view(&mut self, view: &Arc<View>, runs: &[Run]) {
        self.driver.begin_view(view, runs);
    }

    fn take_room(&mut self) -> bool {
        self.driver.take_room()
    }

    fn give_room(&mut self, locks: usize) {
        self.driver.give_room(locks);
    }

    fn is_watched(&self) -> bool {
        self.driver.is_watched()
    }

    fn event(&mut self, event: Event<'_>) {
        self.driver.event(event);
    }

    fn identify(&mut self, request: RequestId, client: Client<'_>) {
        self.driver.identify(request, client);
    }
}

impl Host for Parts<'_> {
    fn acquire(&mut self, key: Key<'_>, ask: Ask) -> Result<Asked, Refusal> {
        let hash = self.hasher.hash_one(key.name);
        self.stepped(|shard, outputs| shard.acquire(key, hash, ask, outputs))
    }

    fn adopt(&mut self, key: Key<'_>, seat: u16, ask: Ask, fence: Fence) -> Result<Place, Refusal> {
        let hash = self.hasher.hash_one(key.name);
        self.stepped(|shard, outputs| shard.adopt(key, hash, seat, ask, fence, outputs))
    }

    fn end(&mut self, place: Place, ending: Ending) {
        self.stepped(|shard, outputs| shard.end(place, ending, outputs));
    }

    fn settled(&mut self) -> Option<Settled> {
        self.settled.pop_front()
    }

    fn is_free_here(&mut self, key: Key<'_>) -> bool {
        self.shard.is_free_here(key, self.hasher.hash_one(key.name))
    }

    fn is_held(&mut self, key: Key<'_>, claim: Option<&Claim>) -> bool {
        self.shard.is_held(key, self.hasher.hash_one(key.name), claim)
    }

    fn holder(&mut self, key: &str, name: &str, fence: u64) -> Option<(Place, Option<RequestId>)> {
        let found = self.shard.holder(key, self.hasher.hash_one(key), name, fence);
        found.map(|(lock, ticket, request)| (Place { shard: 0, lock, ticket }, request))
    }

    fn newest_fence(&mut self, key: Key<'_>, claim: Option<&Claim>) -> Option<Fence> {
        self.shard.newest_fence(key, self.hasher.hash_one(key.name), claim)
    }

    fn look_at(&mut self, key: &str, at: &mut dyn FnMut(&Shard, u64)) {
        at(self.shard, self.hasher.hash_one(key));
    }

    fn look(&mut self, at: &mut dyn FnMut(&Shard)) {
        at(self.shard);
    }

    fn step_all(&mut self, step: &mut dyn FnMut(&mut Shard, &mut Outputs<'_>)) {
        self.stepped(|shard, outputs| step(shard, outputs));
    }

    fn full(&self) -> u64 {
        0
    }
}

#[cfg(test)]
impl WholeMember {
    /// Gives the service an input that no client of a whole member can.
    pub(crate) fn serve<T>(
        &mut self,
        driver: &mut dyn Driver,
        out: &mut Vec<Output>,
        input: impl FnOnce(&mut Service, &mut dyn Host, &mut Vec<Output>) -> T,
    ) -> T {
        let WholeMember { service, shard, hasher } = self;
        let host = &mut Parts::new(shard, hasher, driver);
        let done = input(service, host, out);
        service.absorb(host, out);
        done
    }
}
