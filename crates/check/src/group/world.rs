//! A whole group at one instant, with its clients: the state that is explored.

mod recorder;
mod stepping;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use catraca_core::Fence;
use catraca_group::{Epoch, Timer, WholeMember};
use smallvec::SmallVec;

use super::Setting;
pub(super) use recorder::Recorder;
pub(super) use stepping::Effect;

/// Where a client stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It wants nothing.
    Idle,
    /// It has asked.
    Waiting,
    /// It was told that it is inside, with a fence for each of its names.
    Inside(SmallVec<[Fence; 2]>),
    /// Its member is not in the present view.
    Gone,
}

/// A grant of the algorithm to a member, and all hand-overs that follow: the place of the name, and the
/// number within an epoch.
pub type Turn = (usize, Epoch, Fence);

/// A client of a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    /// Where it stands.
    pub phase: Phase,
    /// How many requests it will still make.
    pub remaining: u32,
}

/// What a step did that no step may do. Clients, members and names are meant by their places.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A client was let in that did not wait.
    NotWaiting(usize),
    /// A client was let in before another that had asked for the same earlier.
    Overtaken {
        /// Who came first.
        first: usize,
        /// Who was let in.
        granted: usize,
    },
    /// The lock was handed over more often than those allow who were there when the turn began.
    LongTurn {
        /// The fence of the grant.
        fence: Fence,
        /// How often it might have been.
        handovers: u8,
    },
    /// A fence of a name that is not larger than the one before it.
    FenceOrder {
        /// The name.
        name: usize,
        /// The fence before.
        last: Fence,
        /// The fence of the grant.
        granted: Fence,
    },
    /// A fence of a name for the second time.
    FenceTwice(usize, Fence),
    /// A fence whose parts make no sense.
    FenceParts(Fence, &'static str),
    /// The lock was handed over too often.
    TooManyHandovers(Fence),
    /// A message of an earlier view was listened to.
    OldMessage(usize),
    /// A request was refused that nothing stands against.
    Refused(usize, String),
    /// A member itself reported something impossible.
    Anomaly(usize, &'static str),
}

/// One thing that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A client asks.
    Ask(usize),
    /// A client that waits takes its request back.
    Cancel(usize),
    /// A client that is inside leaves.
    Leave(usize),
    /// The first message from one member to another arrives.
    Deliver(usize, usize),
    /// A timer of a member runs out.
    Fire(usize, Timer),
    /// The next view begins.
    ChangeView,
}

/// A group at one instant.
#[derive(Clone)]
pub struct World {
    /// By their places in the first view; nothing for who is not in the present one.
    members: Vec<Option<Arc<WholeMember>>>,
    epoch: Epoch,
    /// What is on its way, by sender and receiver. No channel is empty.
    channels: BTreeMap<(usize, usize), VecDeque<Arc<[u8]>>>,
    /// The timers that are set. Those of a detector are not among them.
    timers: BTreeSet<(usize, Timer)>,
    clients: Vec<Client>,
    /// The clients of each member that wait, in the order of asking.
    queues: Vec<SmallVec<[usize; 4]>>,
    /// Of each name the largest fence. Where several may be inside at once: all fences.
    fences: Vec<Vec<Fence>>,
    /// How often a lock may be handed over in each turn that somebody is inside in.
    turns: BTreeMap<Turn, u8>,
    cancels: u32,
    changes: u32,
    fault: Option<Fault>,
}

impl std::hash::Hash for World {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        self.members.hash(hasher);
        self.channels.hash(hasher);
        self.timers.hash(hasher);
        self.clients.hash(hasher);
        self.queues.hash(hasher);
        self.fences.hash(hasher);
        self.turns.hash(hasher);
        (self.epoch, self.cancels, self.changes, &self.fault).hash(hasher);
    }
}

impl World {
    /// The members of the present view, with their places in the first one.
    pub fn members(&self) -> impl Iterator<Item = (usize, &WholeMember)> {
        let members = self.members.iter().enumerate();
        members.filter_map(|(place, member)| Some((place, &**member.as_ref()?)))
    }

    /// All clients, those of the first member first.
    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// The clients that wait, and those that are inside.
    pub(super) fn waiting(&self) -> impl Iterator<Item = usize> {
        self.clients_that(|phase| matches!(phase, Phase::Waiting))
    }

    pub(super) fn inside(&self) -> impl Iterator<Item = usize> {
        self.clients_that(|phase| matches!(phase, Phase::Inside(_)))
    }

    fn clients_that(&self, are: impl Fn(&Phase) -> bool) -> impl Iterator<Item = usize> {
        let clients = self.clients.iter().enumerate();
        clients.filter(move |(_, client)| are(&client.phase)).map(|(place, _)| place)
    }

    /// What the last step did wrong, if it did.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Whether nothing is on its way, and no algorithm has set a timer. Clients may still act, and
    /// patience may end.
    pub fn is_quiet(&self) -> bool {
        let of_algorithm = |(_, timer): &(usize, Timer)| matches!(timer, Timer::Seat(..));
        self.channels.is_empty() && !self.timers.iter().any(of_algorithm)
    }

    /// Whether patience is still set that could end.
    pub(super) fn has_patience(&self) -> bool {
        self.timers.iter().any(|(_, timer)| matches!(timer, Timer::Request(_)))
    }

    /// Appends everything that can happen next, in a fixed order.
    pub fn actions(&self, actions: &mut Vec<Action>) {
        for (place, client) in self.clients.iter().enumerate() {
            match client.phase {
                Phase::Idle if client.remaining > 0 => actions.push(Action::Ask(place)),
                Phase::Waiting if self.cancels > 0 => actions.push(Action::Cancel(place)),
                Phase::Inside(_) => actions.push(Action::Leave(place)),
                Phase::Idle | Phase::Waiting | Phase::Gone => {}
            }
        }
        actions.extend(self.channels.keys().map(|&(from, to)| Action::Deliver(from, to)));
        actions.extend(self.timers.iter().map(|&(member, timer)| Action::Fire(member, timer)));
        if self.changes > 0 {
            actions.push(Action::ChangeView);
        }
    }

    /// Keeps the first fault only: later ones of the same step tend to follow from it.
    #[cold]
    fn blame(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// The group that `setting` describes, in which every member has been connected to every other
    /// and every client has a session.
    pub(super) fn new(setting: &Setting, names: usize) -> Self {
        let clients = setting.members * setting.clients;
        let client = Client { phase: Phase::Idle, remaining: setting.requests };
        let mut world = World {
            members: (0..setting.members).map(|me| Some(Arc::new(setting.member(me)))).collect(),
            epoch: Epoch::FIRST,
            channels: BTreeMap::new(),
            timers: BTreeSet::new(),
            clients: vec![client; clients],
            queues: vec![SmallVec::new(); setting.members],
            fences: vec![Vec::new(); names],
            turns: BTreeMap::new(),
            cancels: setting.cancels,
            changes: u32::from(setting.next_view.is_some()),
            fault: None,
        };
        world.begin(setting);
        world
    }
}
