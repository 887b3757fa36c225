//! A whole group at one instant: the state that is explored.

use catraca_core::{
    Algorithm, Effect, Effects, Envelope, Fence, Input, NodeId, Phase, Start, TimerTag,
};
use smallvec::SmallVec;

use crate::Network;
use crate::claims::Claims;

/// What is kept inline for a group of up to four nodes. More nodes cost one allocation.
type PerNode<T> = SmallVec<[T; 4]>;

/// The application at one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Application {
    /// Where it stands.
    pub phase: Phase,
    /// Whether its node has not crashed.
    pub alive: bool,
    /// How many requests it will still make.
    pub remaining: u32,
    /// What it asks for or has, as a place in the list of claims that the model keeps. It means
    /// nothing while the application is idle, and is 0 then.
    pub claim: u16,
}

/// What a step did that no step may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A fence that is not larger than the one before it.
    FenceOrder {
        /// The fence before.
        last: Fence,
        /// The fence of the grant.
        granted: Fence,
    },
    /// A fence for the second time.
    FenceTwice(Fence),
    /// The algorithm itself reported something impossible.
    Anomaly(NodeId, &'static str),
    /// A node was let in that had not asked.
    NotWaiting(NodeId),
    /// A node sent a message to itself.
    ToItself(NodeId),
    /// A node sent a message to one that does not exist.
    ToNobody {
        /// The sender.
        from: NodeId,
        /// The receiver that does not exist.
        to: NodeId,
    },
}

/// One thing that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The application at this node asks to enter.
    Request(NodeId),
    /// The application at this node leaves.
    Release(NodeId),
    /// The message at this place of [`World::in_flight`] arrives.
    Deliver(usize),
    /// The timer at this place of [`World::timers`] runs out. How long it was set for does not
    /// matter: nodes may be arbitrarily slow.
    Fire(usize),
    /// This node crashes, and takes no more steps.
    Crash(NodeId),
    /// The detector tells a node that another has crashed: the suspicion at this place of
    /// [`World::suspicions`].
    Suspect(usize),
}

/// What becomes of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken<M> {
    /// This node is given this input.
    Step(NodeId, Input<M>),
    /// This node has crashed.
    Crash(NodeId),
}

/// What the detector will still tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Suspicion {
    /// Whom it will tell.
    pub observer: NodeId,
    /// Who has crashed.
    pub suspect: NodeId,
}

/// A group at one instant.
///
/// Messages on their way are kept in a canonical order, so that worlds which differ only in the order
/// of sending are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World<A: Algorithm> {
    nodes: PerNode<A>,
    applications: PerNode<Application>,
    in_flight: SmallVec<[Envelope<A::Message>; 6]>,
    timers: SmallVec<[(NodeId, TimerTag); 2]>,
    /// The largest fence of each resource. Where several may be inside at once: all fences.
    fences: SmallVec<[Fence; 2]>,
    /// How many nodes may still crash.
    crashes: u32,
    /// What the detector will still tell, in ascending order.
    suspicions: SmallVec<[Suspicion; 2]>,
    fault: Option<Fault>,
}

impl<A: Algorithm> World<A> {
    /// A group of `nodes` as `start` describes it, each application with `requests` to make, of
    /// which `crashes` may crash. The nodes have not been given [`Input::Start`] yet.
    pub fn new(
        config: &A::Config,
        nodes: u32,
        start: &Start,
        requests: u32,
        crashes: u32,
        claims: &Claims,
    ) -> Self {
        let application = |node| {
            let (phase, claim) = (start.phase_of(node), claims.at_start(node));
            Application { phase, alive: true, remaining: requests, claim }
        };
        World {
            nodes: NodeId::all(nodes).map(|me| A::new(me, config, start)).collect(),
            applications: NodeId::all(nodes).map(application).collect(),
            in_flight: SmallVec::new(),
            timers: SmallVec::new(),
            fences: match claims.capacity() {
                1 => SmallVec::from_elem(Fence::NONE, claims.resources() as usize),
                _ => SmallVec::new(),
            },
            crashes,
            suspicions: SmallVec::new(),
            fault: None,
        }
    }

    /// Every node, by id.
    pub fn nodes(&self) -> &[A] {
        &self.nodes
    }

    /// The application at every node, by id.
    pub fn applications(&self) -> &[Application] {
        &self.applications
    }

    /// Every message on its way: sorted by sender and receiver, and within one channel by the order
    /// of sending (FIFO) or by content (any order).
    pub fn in_flight(&self) -> &[Envelope<A::Message>] {
        &self.in_flight
    }

    /// Every timer that is set, in ascending order.
    pub fn timers(&self) -> &[(NodeId, TimerTag)] {
        &self.timers
    }

    /// What the detector will still tell, in ascending order.
    pub fn suspicions(&self) -> &[Suspicion] {
        &self.suspicions
    }

    /// Whether `node` has not crashed. One that does not exist cannot crash either.
    pub fn is_alive(&self, node: NodeId) -> bool {
        self.applications.get(node.index()).is_none_or(|app| app.alive)
    }

    /// Whether nobody has crashed.
    pub fn is_whole(&self) -> bool {
        self.applications.iter().all(|app| app.alive)
    }

    /// What the last step did wrong, if it did.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// The nodes whose application is in `phase`, in ascending order.
    pub fn nodes_in(&self, phase: Phase) -> impl Iterator<Item = NodeId> + '_ {
        let numbered = NodeId::all(self.nodes.len() as u32).zip(&self.applications);
        numbered.filter(move |(_, app)| app.phase == phase).map(|(node, _)| node)
    }

    /// Whether somebody may still crash.
    pub fn can_crash(&self) -> bool {
        self.crashes > 0
    }

    /// Appends everything that can happen next, in a fixed order.
    pub fn actions(&self, network: Network, actions: &mut Vec<Action>) {
        for (node, app) in NodeId::all(self.nodes.len() as u32).zip(&self.applications) {
            match app.phase {
                Phase::Idle if app.remaining > 0 => actions.push(Action::Request(node)),
                Phase::Inside => actions.push(Action::Release(node)),
                Phase::Idle | Phase::Waiting => {}
            }
        }
        for (place, envelope) in self.in_flight.iter().enumerate() {
            let previous = place.checked_sub(1).map(|previous| &self.in_flight[previous]);
            let covered = previous.is_some_and(|previous| match network {
                // Only the oldest message of a channel can arrive.
                Network::Fifo => (previous.from, previous.to) == (envelope.from, envelope.to),
                // It makes no difference which of two equal messages arrives.
                Network::Any => previous == envelope,
            });
            if !covered {
                actions.push(Action::Deliver(place));
            }
        }
        actions.extend((0..self.timers.len()).map(Action::Fire));
        actions.extend((0..self.suspicions.len()).map(Action::Suspect));
        if self.can_crash() {
            let nodes = NodeId::all(self.nodes.len() as u32);
            actions.extend(nodes.filter(|&node| self.is_alive(node)).map(Action::Crash));
        }
    }

    /// Whether nothing can happen any more, unless somebody crashes, which nobody has to.
    pub fn is_at_rest(&self) -> bool {
        self.in_flight.is_empty()
            && self.timers.is_empty()
            && self.suspicions.is_empty()
            && self.applications.iter().all(|app| match app.phase {
                Phase::Idle => app.remaining == 0,
                Phase::Waiting => true,
                Phase::Inside => false,
            })
    }

    /// The first half of a step: takes what `action` uses up out of the world and says which node
    /// is given what. The action is one that [`actions`](Self::actions) listed for this world.
    pub fn take(&mut self, action: Action, claims: &Claims) -> Taken<A::Message> {
        match action {
            Action::Request(node) => {
                let app = &mut self.applications[node.index()];
                app.phase = Phase::Waiting;
                app.remaining -= 1;
                app.claim = claims.of_request(node, app.remaining);
                Taken::Step(node, Input::Request(claims.claim(app.claim).clone()))
            }
            Action::Release(node) => {
                let app = &mut self.applications[node.index()];
                (app.phase, app.claim) = (Phase::Idle, 0);
                Taken::Step(node, Input::Release)
            }
            Action::Deliver(place) => {
                let Envelope { from, to, message } = self.in_flight.remove(place);
                Taken::Step(to, Input::Message { from, message })
            }
            Action::Fire(place) => {
                let (node, tag) = self.timers.remove(place);
                Taken::Step(node, Input::Timer(tag))
            }
            Action::Suspect(place) => {
                let Suspicion { observer, suspect } = self.suspicions.remove(place);
                Taken::Step(observer, Input::Suspect(suspect))
            }
            Action::Crash(node) => {
                self.crash(node);
                Taken::Crash(node)
            }
        }
    }

    /// `node` is no longer inside and no longer waits; what was on its way to it is lost, what it
    /// has sent still arrives, and sooner or later the others are told.
    fn crash(&mut self, node: NodeId) {
        self.crashes -= 1;
        self.applications[node.index()] =
            Application { phase: Phase::Idle, alive: false, remaining: 0, claim: 0 };
        self.in_flight.retain(|envelope| envelope.to != node);
        self.timers.retain(|(of, _)| *of != node);
        self.suspicions.retain(|suspicion| suspicion.observer != node);
        let nodes = NodeId::all(self.nodes.len() as u32);
        for observer in nodes.filter(|&observer| self.applications[observer.index()].alive) {
            self.suspicions.push(Suspicion { observer, suspect: node });
        }
        self.suspicions.sort_unstable();
    }

    /// Puts `state` in the place of a crashed node's. Worlds that differ only in what it had done
    /// before are the same.
    pub(crate) fn replace_crashed(&mut self, node: NodeId, state: A) {
        self.nodes[node.index()] = state;
    }

    /// The middle of a step: `node` reacts to `input`.
    pub fn step(
        &mut self,
        config: &A::Config,
        node: NodeId,
        input: Input<A::Message>,
        out: &mut Effects<A::Message>,
    ) {
        self.nodes[node.index()].step(config, input, out);
    }

    /// The last half of a step: carries out what `node` asked for, and empties `out`.
    pub fn carry_out(
        &mut self,
        network: Network,
        claims: &Claims,
        node: NodeId,
        out: &mut Effects<A::Message>,
    ) {
        for effect in out.drain() {
            match effect {
                Effect::Send { to, message } => {
                    self.send(network, Envelope { from: node, to, message });
                }
                Effect::Granted(fence) => self.let_in(claims, node, fence),
                Effect::SetTimer { tag, .. } => {
                    if let Err(place) = self.timers.binary_search(&(node, tag)) {
                        self.timers.insert(place, (node, tag));
                    }
                }
                Effect::CancelTimer(tag) => {
                    if let Ok(place) = self.timers.binary_search(&(node, tag)) {
                        self.timers.remove(place);
                    }
                }
                Effect::Anomaly(what) => self.blame(Fault::Anomaly(node, what)),
            }
        }
    }

    /// The last half of a step in the middle of which `node` crashes: of the messages to the living,
    /// counted from 0, those whose bits are set in `sent` have left, and nothing else has happened.
    pub(crate) fn carry_out_in_part(
        &mut self,
        network: Network,
        node: NodeId,
        out: &mut Effects<A::Message>,
        sent: u32,
    ) {
        let mut bits = sent;
        for effect in out.drain() {
            if let Effect::Send { to, message } = effect
                && self.is_alive(to)
            {
                if bits & 1 == 1 {
                    self.send(network, Envelope { from: node, to, message });
                }
                bits >>= 1;
            }
        }
        self.crash(node);
    }

    fn send(&mut self, network: Network, envelope: Envelope<A::Message>) {
        let Envelope { from, to, .. } = envelope;
        if from == to {
            return self.blame(Fault::ToItself(from));
        }
        if to.index() >= self.nodes.len() {
            return self.blame(Fault::ToNobody { from, to });
        }
        if !self.is_alive(to) {
            return;
        }
        let place = self.in_flight.partition_point(|other| match network {
            Network::Fifo => (other.from, other.to) <= (from, to),
            Network::Any => *other <= envelope,
        });
        self.in_flight.insert(place, envelope);
    }

    fn let_in(&mut self, claims: &Claims, node: NodeId, fence: Fence) {
        let app = &mut self.applications[node.index()];
        let asked = app.phase == Phase::Waiting;
        // Also without having asked: an application that is told to go ahead does.
        app.phase = Phase::Inside;
        let claim = app.claim;
        if !asked {
            self.blame(Fault::NotWaiting(node));
        }
        if claims.capacity() > 1 {
            match self.fences.binary_search(&fence) {
                Ok(_) => self.blame(Fault::FenceTwice(fence)),
                Err(place) => self.fences.insert(place, fence),
            }
            return;
        }
        for resource in claims.claim(claim).resources() {
            let last = std::mem::replace(&mut self.fences[resource.0 as usize], fence);
            if fence <= last {
                self.blame(Fault::FenceOrder { last, granted: fence });
            }
        }
    }

    /// Keeps the first fault only: later ones of the same step tend to follow from it.
    #[cold]
    fn blame(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }
}
