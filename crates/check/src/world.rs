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
    /// The largest fence of each resource.
    last_fences: SmallVec<[Fence; 2]>,
    fault: Option<Fault>,
}

impl<A: Algorithm> World<A> {
    /// A group of `nodes` as `start` describes it, each application with `requests` to make. The
    /// nodes have not been given [`Input::Start`] yet.
    pub fn new(
        config: &A::Config,
        nodes: u32,
        start: &Start,
        requests: u32,
        claims: &Claims,
    ) -> Self {
        let application = |node| {
            let (phase, claim) = (start.phase_of(node), claims.at_start(node));
            Application { phase, remaining: requests, claim }
        };
        World {
            nodes: NodeId::all(nodes).map(|me| A::new(me, config, start)).collect(),
            applications: NodeId::all(nodes).map(application).collect(),
            in_flight: SmallVec::new(),
            timers: SmallVec::new(),
            last_fences: SmallVec::from_elem(Fence::NONE, claims.resources() as usize),
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

    /// What the last step did wrong, if it did.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// The nodes whose application is in `phase`, in ascending order.
    pub fn nodes_in(&self, phase: Phase) -> impl Iterator<Item = NodeId> + '_ {
        let numbered = NodeId::all(self.nodes.len() as u32).zip(&self.applications);
        numbered.filter(move |(_, app)| app.phase == phase).map(|(node, _)| node)
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
    }

    /// Whether nothing at all can happen any more.
    pub fn is_at_rest(&self) -> bool {
        self.in_flight.is_empty()
            && self.timers.is_empty()
            && self.applications.iter().all(|app| match app.phase {
                Phase::Idle => app.remaining == 0,
                Phase::Waiting => true,
                Phase::Inside => false,
            })
    }

    /// The first half of a step: takes what `action` uses up out of the world and says which node
    /// is given what. The action is one that [`actions`](Self::actions) listed for this world.
    pub fn take(&mut self, action: Action, claims: &Claims) -> (NodeId, Input<A::Message>) {
        match action {
            Action::Request(node) => {
                let app = &mut self.applications[node.index()];
                app.phase = Phase::Waiting;
                app.remaining -= 1;
                app.claim = claims.of_request(node, app.remaining);
                (node, Input::Request(claims.claim(app.claim).clone()))
            }
            Action::Release(node) => {
                let app = &mut self.applications[node.index()];
                (app.phase, app.claim) = (Phase::Idle, 0);
                (node, Input::Release)
            }
            Action::Deliver(place) => {
                let Envelope { from, to, message } = self.in_flight.remove(place);
                (to, Input::Message { from, message })
            }
            Action::Fire(place) => {
                let (node, tag) = self.timers.remove(place);
                (node, Input::Timer(tag))
            }
        }
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

    fn send(&mut self, network: Network, envelope: Envelope<A::Message>) {
        let Envelope { from, to, .. } = envelope;
        if from == to {
            return self.blame(Fault::ToItself(from));
        }
        if to.index() >= self.nodes.len() {
            return self.blame(Fault::ToNobody { from, to });
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
        for resource in claims.claim(claim).resources() {
            let last = std::mem::replace(&mut self.last_fences[resource.0 as usize], fence);
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
