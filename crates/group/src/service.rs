//! The one service behind every interface: sessions, requests and holds, lists and status.
//!
//! A [`Service`] is all that a member decides beside its locks: whether it grants at all, who may ask
//! for what and for how long, and what it tells the other members. It is a plain value. Every method
//! is one input; what follows is pushed into a buffer of [`Output`]s. The locks themselves are in
//! [shards](crate::Shard), which the driver may step without the service; the service reaches them
//! through its [`Host`].
//!
//! What to read first: [`acquire`](Service::acquire) in `acquiring.rs`.

mod acquiring;
mod anatomy;
mod asking;
mod crashes;
mod durable;
mod fences;
mod forcing;
mod forgetting;
mod group;
mod links;
mod looking;
mod operations;
mod sessions;
mod standby;
mod succession;
mod telling;
mod timed;
mod unlocking;
mod views;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use catraca_core::{Claim, Fence};

use crate::anatomy::{Links, Picture};
use crate::detector::Detector;
use crate::driver::{Driver, Ending, Outputs, Place, Settled, Timer};
use crate::durable::DurableHold;
use crate::listing::Page;
use crate::lock::Owner;
use crate::membership::{Entry, Run, ViewMessage};
use crate::question::{Answer, Question};
use crate::refusal::Refusal;
use crate::registry::Txn;
use crate::request::{Hold, Origin, Request, RequestId, State};
use crate::session::{Over, Session, SessionId, Who};
use crate::shard::{Ask, Asked, Key, Shard};
use crate::time::Time;
use crate::timed::TimedHold;
use crate::view::View;
pub use durable::Behalf;
pub use forcing::MOST_FORCED;
pub use forgetting::USUAL_IDLE_NAMES;
pub use telling::Health;

/// What a service runs on: a driver, and the shards of its member.
pub trait Host: Driver {
    /// Asks a shard; see [`Shard::acquire`].
    fn acquire(&mut self, key: Key<'_>, ask: Ask) -> Result<Asked, Refusal>;

    /// See [`Shard::adopt`].
    fn adopt(&mut self, key: Key<'_>, seat: u16, ask: Ask, fence: Fence) -> Result<Place, Refusal>;

    /// See [`Shard::release`].
    fn release(&mut self, place: Place) {
        self.end(place, Ending::Released);
    }

    /// See [`Shard::end`].
    fn end(&mut self, place: Place, ending: Ending);

    /// Takes one of those, in order, whose part of a request has come to the end of waiting.
    fn settled(&mut self) -> Option<Settled>;

    /// See [`Shard::is_free_here`].
    fn is_free_here(&mut self, key: Key<'_>) -> bool;

    /// Whether a client of this member is inside what `key` names; of a set, inside a part of it.
    fn is_held(&mut self, key: Key<'_>, claim: Option<&Claim>) -> bool;

    /// See [`Shard::holder`].
    fn holder(&mut self, key: &str, name: &str, fence: u64) -> Option<(Place, Option<RequestId>)>;

    /// See [`Shard::newest_fence`].
    fn newest_fence(&mut self, key: Key<'_>, claim: Option<&Claim>) -> Option<Fence>;

    /// Shows the shard that has the instances called `key`, with the hash of that name.
    fn look_at(&mut self, key: &str, at: &mut dyn FnMut(&Shard, u64));

    /// Shows every shard, one after the other.
    fn look(&mut self, at: &mut dyn FnMut(&Shard));

    /// Lets every shard step, one after the other.
    fn step_all(&mut self, step: &mut dyn FnMut(&mut Shard, &mut Outputs<'_>));

    /// The members that take no messages any more, one bit each.
    fn full(&self) -> u64;
}

/// What a client's session is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A request was granted, with a fence for each name.
    Granted {
        /// The client's number for the request.
        request: u32,
        /// The fences.
        fences: Vec<u64>,
    },
    /// A request was not granted, and will not be.
    Refused {
        /// The client's number for the request.
        request: u32,
        /// Why.
        why: Refusal,
    },
    /// What a request was granted is to be given up and released: it is not the client's much longer.
    Lost {
        /// The client's number for the request.
        request: u32,
        /// Why.
        why: Refusal,
    },
    /// What a request held is free.
    Released {
        /// The client's number for the request.
        request: u32,
    },
    /// The session is over.
    Over(Over),
}

/// What follows from an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A question to another member.
    Ask(usize, u64, Question),
    /// The answer to another member's question.
    Answer(usize, u64, Answer),
    /// A message of the detector to another member.
    Detect(usize, Vec<u8>),
    /// Something to tell the client of a session.
    Notice(Owner, Notice),
    /// A request of the program itself was granted, with a fence for each name, or not.
    Settled(RequestId, Result<Vec<u64>, Refusal>),
    /// A durable hold that this asker has asked for is granted and written, or not.
    Durable(u64, Result<Box<DurableHold>, Refusal>),
    /// A durable hold that this asker wanted to be released is, or not; or it is as this asker wanted to know.
    Unlocked(u64, Result<Box<DurableHold>, Refusal>),
    /// A timed hold that this asker has asked for is granted; or that it has asked about is like this, or
    /// was when it was released; or not.
    Timed(u64, Result<Box<TimedHold>, Refusal>),
    /// The newest fence of a lock that this asker has asked about, if anybody remembers one.
    Fence(u64, Result<Option<u64>, Refusal>),
    /// What the program itself holds by this request is lost.
    Lost(RequestId),
    /// What a caller holds at this place that has waited for its ticket itself is lost.
    LostAt(Place),
    /// An order of this asker was carried out; false if there was nothing to do.
    Obeyed(u64, Result<bool, Refusal>),
    /// The member was told to leave, on behalf of whom.
    Kicked(String),
    /// The page that somebody of this member has asked for.
    Page(u64, Page),
    /// What this asker wanted to see of a lock.
    Picture(u64, Result<Box<Picture>, Refusal>),
    /// What this asker wanted to know of the links of the group.
    Links(u64, Result<Box<Links>, Refusal>),
    /// From now on the member grants locks.
    Ready,
    /// The member does not belong to its group any more, and why.
    Expelled(String),
    /// This member is taken for crashed from now on.
    Suspected(usize),
    /// This member takes ours for crashed, and the group goes on without it.
    Excluded(usize),
    /// Something happened that cannot happen in a correct run.
    Anomaly(&'static str),
    /// A transaction for the registry. Its answer comes back with the number.
    Transaction(u64, Txn),
    /// Links are to be kept to these members, and to no others.
    Peers(Vec<Entry>),
    /// Something to tell another member about a view.
    View(Run, ViewMessage),
    /// This view has begun here.
    Began(Arc<View>),
    /// What callers hold that wait for their tickets themselves is lost.
    LostDirectly,
    /// The group goes on without this member, which comes back as another incarnation, and why.
    Out(String),
    /// The member has left in order.
    Left,
}

/// Another member, as this one knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Peer {
    /// Which run of it has been connected.
    incarnation: Option<u64>,
    is_up: bool,
}

/// Whether the member grants locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Not until every other member has been connected: a member of which the others know an earlier
    /// run would give away what they hold, and any of them tells it so.
    Gathering,
    Granting,
    /// It does not belong to its group any more, and why.
    Expelled(String),
    Stopped,
}

/// A question that has not been answered by everybody.
#[derive(Clone, Debug)]
enum Asking {
    /// On behalf of a request that does not want to wait.
    IsHeld(RequestId),
    /// For somebody who wants a list.
    List(telling::Gathering),
    /// For somebody who wants something done with a timed hold.
    Timed(operations::PendingOperation),
    /// For somebody whose order this member is to carry out.
    Order(u64, usize),
    /// For somebody who wants to know the newest fence of a lock.
    Fence(fences::Comparison),
    /// For somebody who wants to see a lock.
    Anatomy(anatomy::PartialPicture),
    /// For somebody who wants to know who reaches whom.
    Links(links::Round),
}

/// All that a member decides beside its locks.
#[derive(Clone, Debug)]
pub struct Service {
    view: Arc<View>,
    /// Which run of the process this is: sessions belong to it.
    incarnation: u64,
    /// The program that runs the member, as lists show it.
    program: Who,
    started: Time,
    phase: Phase,
    peers: Vec<Peer>,
    detector: Option<Detector>,
    /// The member that takes this one for crashed.
    excluded_by: Option<usize>,
    sessions: BTreeMap<Owner, Session>,
    last_session: u64,
    requests: BTreeMap<RequestId, Request>,
    /// How much the names of all requests count.
    name_bytes: usize,
    last_request: u64,
    questions: BTreeMap<u64, Asking>,
    last_question: u64,
    timed: timed::Timed,
    /// What is being ended by force.
    forced: Vec<forcing::Forced>,
    standby: standby::Standby,
    /// Of a member whose group changes.
    views: Option<views::Views>,
}

impl Service {
    /// A member that has just begun.
    pub fn new(view: Arc<View>, incarnation: u64, program: Who, now: Time) -> Self {
        let members = view.members.len();
        let phase = if members == 1 { Phase::Granting } else { Phase::Gathering };
        let detector = Detector::of(&view);
        Service {
            incarnation,
            program,
            started: now,
            phase,
            peers: alloc::vec![Peer::default(); members],
            detector,
            excluded_by: None,
            sessions: BTreeMap::new(),
            last_session: 0,
            requests: BTreeMap::new(),
            name_bytes: 0,
            last_request: 0,
            questions: BTreeMap::new(),
            last_question: 0,
            timed: timed::Timed::default(),
            forced: Vec::new(),
            standby: standby::Standby::default(),
            views: None,
            view,
        }
    }

    /// A timer has run out.
    pub fn run_out(&mut self, timer: Timer, host: &mut dyn Host, out: &mut Vec<Output>) {
        match timer {
            Timer::Seat(..) => out.push(Output::Anomaly("a timer of a lock is for its shard")),
            Timer::Detector(tag) => {
                if let Some(detector) = &mut self.detector {
                    let findings = detector.run_out(tag, host);
                    self.act_on(findings, host, out);
                }
            }
            Timer::Membership => self.wake(host, out),
            Timer::Departure => self.go_on_departing(host, out),
            Timer::Durable => self.look_again(host, out),
            Timer::Force => self.look_at_forced(host, out),
            Timer::Session(owner) => self.expire(owner, host, out),
            Timer::Request(id) => self.give_up(id, host, out),
            Timer::Question(number) => self.close_question(number, host, out),
        }
        self.absorb(host, out);
    }

    /// Takes in those whose part of a request has come to the end of waiting.
    pub fn absorb(&mut self, host: &mut dyn Host, out: &mut Vec<Output>) {
        while let Some(settled) = host.settled() {
            self.settle(settled, host, out);
        }
    }

    /// The hold with this id, if there is one.
    pub fn hold(&self, id: RequestId) -> Option<Hold> {
        Hold::of(id, self.requests.get(&id)?)
    }

    /// Every hold of a request, in the order of asking. Holds of callers that wait for their tickets
    /// themselves are in the shards.
    pub fn holds(&self) -> impl Iterator<Item = Hold> {
        self.requests.iter().filter_map(|(&id, request)| Hold::of(id, request))
    }

    /// Whether nobody has asked for anything that is not released.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.requests.is_empty() && self.questions.is_empty()
    }

    /// Whether it grants locks to whoever asks.
    pub fn is_granting(&self) -> bool {
        self.phase == Phase::Granting && !self.is_departing()
    }

    /// The view.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// The session that was opened last, if it is open.
    pub fn last_session(&self) -> Option<SessionId> {
        self.sessions.get(&Owner(self.last_session)).map(|session| session.id)
    }

    /// Begins a new view: the other members are those of the view, and have yet to be connected.
    pub(crate) fn change_view(&mut self, view: Arc<View>) {
        self.peers = alloc::vec![Peer::default(); view.members.len()];
        self.detector = Detector::of(&view);
        self.questions.clear();
        self.view = view;
    }

    /// The member stops: nothing is granted any more, and every session is told. What they hold is
    /// not passed on: whoever holds it has yet to notice.
    pub fn stop(&mut self, out: &mut Vec<Output>) {
        self.phase = Phase::Stopped;
        for (owner, session) in core::mem::take(&mut self.sessions) {
            if session.timed.is_none() {
                out.push(Output::Notice(owner, Notice::Over(Over::Stopping)));
            }
        }
        for (id, request) in &self.requests {
            if request.origin == Origin::Program {
                out.push(match request.state {
                    State::Held(_) => Output::Lost(*id),
                    _ => Output::Settled(*id, Err(Refusal::Stopped)),
                });
            }
        }
        self.leave_unanswered(out);
        self.leave_timed_unanswered(out);
    }
}

/// Two services are the same if they would do the same. Times do not matter, but those of leases.
impl Hash for Service {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.phase.hash(hasher);
        self.peers.hash(hasher);
        self.excluded_by.hash(hasher);
        self.requests.hash(hasher);
        (&self.timed, &self.standby).hash(hasher);
        self.forced.hash(hasher);
        if let Some(views) = &self.views {
            // The view of an epoch is not the same in every run.
            (views, self.view.me, &self.view.members).hash(hasher);
        }
        for (owner, session) in &self.sessions {
            (owner, &session.requests).hash(hasher);
        }
        for (number, asking) in &self.questions {
            let request = match asking {
                Asking::IsHeld(request) => Some(request),
                Asking::List(_)
                | Asking::Timed(_)
                | Asking::Fence(_)
                | Asking::Order(..)
                | Asking::Anatomy(_)
                | Asking::Links(_) => None,
            };
            (number, request).hash(hasher);
        }
    }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
