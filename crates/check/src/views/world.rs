//! A whole group at one instant, with its registry and its clients: the state that is explored.

mod beginning;
mod clients;
mod collector;
mod failing;
mod registry;
mod sites;
mod stepping;

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use catraca_core::Fence;
use catraca_group::registry::{Answer, Revision, Store, Trouble};
use catraca_group::{Owner, Time, WholeMember};
use smallvec::SmallVec;

use super::model::ViewModel;
use super::setting::{Failure, Kind};
use sites::{Cut, Pending, Site, Sites};
pub(super) use stepping::Effect;

/// So often time may pass whatever else happens meanwhile, until the member that has failed is excluded:
/// often enough for its lease to run out, and for one more beat.
pub const FREE_STEPS: u32 = 4;
/// So often it passes in a row when nothing else can happen, while somebody waits for nobody.
pub const MOST_STEPS: u32 = 12;

/// Where a client stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It wants nothing.
    Idle,
    /// It has asked.
    Waiting,
    /// It was told that it is inside, with a fence for each of its names, and trusts that until then.
    Inside(SmallVec<[Fence; 2]>, Time),
    /// Its member was gone before it was served.
    Gone,
}

/// A client of a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    /// Where it stands.
    pub phase: Phase,
    /// How many requests it will still make.
    pub remaining: u32,
    /// Its session, if it has one.
    owner: Option<Owner>,
}

/// What a step did that no step may do. Clients, members and names are meant by their places.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A client was let in that did not wait.
    NotWaiting(usize),
    /// A client was let in by its member, without which the group goes on.
    LetInByExcluded(usize),
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
    /// A request was refused that nothing stands against.
    Refused(usize, String),
    /// A client that only waits was told that its session is over.
    SentAway(usize),
    /// A member itself reported something impossible.
    Anomaly(usize, &'static str),
}

/// One thing that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// A client asks.
    Ask(usize),
    /// A client that is inside leaves.
    Leave(usize),
    /// The first message from one member to another arrives.
    Deliver(usize, usize),
    /// The registry carries out the first proposal of a member.
    Commit(usize),
    /// The registry's first late answer to a member arrives.
    Answer(usize),
    /// A member hears that there is a new view.
    Hear(usize),
    /// A member that is late wakes up.
    Wake(usize),
    /// Time passes.
    Pass,
    /// A member fails.
    Fail(usize),
    /// A member that has failed is there again.
    Recover(usize),
}

/// A message on its way: from which run of its sender, and what it says.
type Message = (u64, Arc<[u8]>);

/// A group at one instant.
#[derive(Clone)]
pub struct World {
    sites: Sites,
    store: Arc<Store>,
    /// When the view was written last.
    view_at: Revision,
    now: Time,
    /// How often time has passed whatever else happened, and how often because nothing else could.
    steps: u32,
    idle_steps: u32,
    /// What is on its way, by sender and receiver. No channel is empty.
    channels: BTreeMap<(usize, usize), VecDeque<Message>>,
    clients: Vec<Client>,
    /// Of each name the largest fence. Where several may be inside at once: all fences.
    fences: Vec<Vec<Fence>>,
    /// What may still go wrong.
    failure: Option<Failure>,
    /// Who has failed and may be there again.
    failed: Option<(Kind, usize)>,
    /// Whether the group has gone on without whoever has failed.
    is_resolved: bool,
    fault: Option<Fault>,
    /// Answers that arrive within this step, and whether connections have to be looked at.
    due: VecDeque<(usize, u64, Result<Answer, Trouble>)>,
    is_connecting: bool,
}

impl Hash for World {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (&self.sites, &self.store, self.now).hash(hasher);
        (self.steps, self.idle_steps, self.is_resolved).hash(hasher);
        (&self.channels, &self.clients, &self.fences).hash(hasher);
        (self.failure, self.failed, &self.fault).hash(hasher);
    }
}

impl World {
    /// The members that run, with their places.
    pub fn members(&self) -> impl Iterator<Item = (usize, &WholeMember)> {
        let sites = self.sites.iter().enumerate().filter(|(_, site)| site.runs());
        sites.filter_map(|(place, site)| Some((place, &**site.member.as_ref()?)))
    }

    /// All clients, those of the first member first.
    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// The clients that wait at members that run and reach the registry.
    pub(super) fn waiting(&self) -> impl Iterator<Item = usize> {
        let per_member = self.clients.len() / self.sites.len();
        let is_served = move |client: usize| {
            let site = &self.sites[client / per_member];
            site.runs() && site.cut == Cut::No
        };
        let clients = self.clients.iter().enumerate();
        clients
            .filter(move |(place, client)| client.phase == Phase::Waiting && is_served(*place))
            .map(|(place, _)| place)
    }

    /// The clients that trust that they are inside.
    pub(super) fn inside(&self) -> impl Iterator<Item = usize> {
        let clients = self.clients.iter().enumerate();
        clients
            .filter(|(_, client)| matches!(client.phase, Phase::Inside(..)))
            .map(|(place, _)| place)
    }

    /// What the last step did wrong, if it did.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Whether nothing is on its way, and everybody has heard of everything.
    fn is_still(&self) -> bool {
        let is_still = |site: &Site| {
            let is_sent = |pending: &Pending| matches!(pending, Pending::Sent(..));
            let is_under_way =
                !site.pending.is_empty() && (site.runs() || site.pending.iter().any(is_sent));
            !site.can_hear() && !site.is_late(self.now) && !is_under_way
        };
        let arrives = |&(_, to): &(usize, usize)| self.sites[to].runs();
        !self.channels.keys().any(arrives) && self.sites.iter().all(is_still)
    }

    /// Whether somebody waits, nobody who is inside is in the way, and nothing is on its way.
    ///
    /// Where sets are asked for, anybody who is inside may be in the way.
    pub(super) fn is_stuck(&self, model: &ViewModel) -> bool {
        let permits = if model.has_sets { 1 } else { model.setting.permits as usize };
        self.waiting().next().is_some() && self.inside().count() < permits && self.is_still()
    }

    /// Whether time may pass.
    pub(super) fn may_pass(&self, model: &ViewModel) -> bool {
        let is_free = self.steps < FREE_STEPS && !self.is_resolved;
        self.failure.is_none() && (is_free || self.idle_steps < MOST_STEPS && self.is_stuck(model))
    }

    /// Whether nothing can happen but what clients do, or a member that is there again.
    pub(super) fn is_quiet(&self, model: &ViewModel) -> bool {
        self.is_still() && !self.may_pass(model)
    }

    /// Appends everything that can happen next, in a fixed order.
    pub(super) fn actions(&self, model: &ViewModel, actions: &mut Vec<Action>) {
        let per_member = self.clients.len() / self.sites.len();
        for (place, client) in self.clients.iter().enumerate() {
            if self.sites[place / per_member].runs() {
                match client.phase {
                    Phase::Idle if client.remaining > 0 => actions.push(Action::Ask(place)),
                    Phase::Inside(..) => actions.push(Action::Leave(place)),
                    Phase::Idle | Phase::Waiting | Phase::Gone => {}
                }
            }
        }
        let arriving = self.channels.keys().filter(|&&(_, to)| self.sites[to].runs());
        actions.extend(arriving.map(|&(from, to)| Action::Deliver(from, to)));
        for (place, site) in self.sites.iter().enumerate() {
            let is_sent = |pending: &Pending| matches!(pending, Pending::Sent(..));
            if site.pending.iter().any(is_sent) {
                actions.push(Action::Commit(place));
            }
            if site.runs() && !site.pending.iter().all(is_sent) {
                actions.push(Action::Answer(place));
            }
            if site.can_hear() {
                actions.push(Action::Hear(place));
            }
            if site.is_late(self.now) {
                actions.push(Action::Wake(place));
            }
        }
        if self.may_pass(model) {
            actions.push(Action::Pass);
        }
        if let Some(failure) = self.failure {
            let places = (0..self.sites.len()).filter(|&place| failure.can_hit(place));
            actions.extend(places.map(Action::Fail));
        }
        if let Some((_, place)) = self.failed {
            actions.push(Action::Recover(place));
        }
    }

    /// Keeps the first fault only: later ones of the same step tend to follow from it.
    #[cold]
    fn blame(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }
}
