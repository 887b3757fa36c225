//! The group as a [`stateright::Model`].

use catraca_algorithms::Spec;
use catraca_core::{Algorithm, Effects, Envelope, Input, NodeId, Phase, Start, TimerTag};
use smallvec::SmallVec;
use stateright::{Model, Property};

use crate::claims::Claims;
use crate::explore::Options;
use crate::network::Network;
use crate::property;
use crate::search::Lasting;
use crate::world::{Action, Taken, World};

/// Up to so many messages of one step, every part of them is explored that may have left when the
/// node crashes. Of more it is every part from the first one on.
const MOST_IN_PARTS: usize = 5;

/// One thing that can happen next, as a whole or cut short by a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// All of it.
    Whole(Action),
    /// The node that takes the step crashes meanwhile.
    CutShort {
        /// What it was doing.
        action: Action,
        /// Which of its messages to the living have left: bit 0 is the first.
        sent: u32,
    },
}

/// A group of nodes of `A`, their applications and the network between them.
pub struct GroupModel<A: Algorithm> {
    /// What all nodes share.
    pub config: A::Config,
    /// How many nodes.
    pub nodes: u32,
    /// Who is inside already, and where the token is.
    pub start: Start,
    /// How many requests each application makes.
    pub requests: u32,
    /// How many nodes may crash.
    pub crashes: u32,
    /// What they ask for.
    pub claims: Claims,
    /// In which order messages may arrive.
    pub network: Network,
    /// Where exploring begins, if not in the first world.
    pub begin: Option<World<A>>,
}

impl<A: Algorithm> GroupModel<A> {
    /// The group that `spec` and `options` describe, from its first world on.
    pub(crate) fn of(config: A::Config, spec: &Spec, options: &Options) -> Self {
        GroupModel {
            config,
            nodes: spec.nodes,
            start: spec.start.clone(),
            requests: options.requests,
            crashes: options.crashes,
            claims: Claims::new(&options.claims, spec, options.requests),
            network: options.network,
            begin: None,
        }
    }

    /// The nodes are created and have not been told to start.
    pub(crate) fn unstarted_world(&self) -> World<A> {
        let (requests, crashes) = (self.requests, self.crashes);
        World::new(&self.config, self.nodes, &self.start, requests, crashes, &self.claims)
    }

    /// The state that stands for any crashed node in its place.
    pub(crate) fn crashed_state(&self, node: NodeId) -> A {
        A::new(node, &self.config, &Start::idle())
    }

    /// Appends the ways in which `action` can be cut short. A crash before the first message and one
    /// after the last are crashes before and after the step.
    fn cut_short(&self, world: &World<A>, action: Action, moves: &mut Vec<Move>) {
        let mut next = world.clone();
        let Taken::Step(node, input) = next.take(action, &self.claims) else { return };
        let mut out = Effects::new();
        next.step(&self.config, node, input, &mut out);
        let receivers: SmallVec<[NodeId; 4]> =
            out.receivers().filter(|&to| world.is_alive(to)).collect();
        let cut = |sent| Move::CutShort { action, sent };
        if receivers.len() > MOST_IN_PARTS {
            let most = receivers.len().min(u32::BITS as usize);
            return moves.extend((1..most).map(|count| cut((1 << count) - 1)));
        }
        let all = (1 << receivers.len()) - 1;
        let in_order = |sent: &u32| self.network == Network::Any || is_in_order(&receivers, *sent);
        moves.extend((1..all).filter(in_order).map(cut));
    }

    /// The world in which everything begins: the nodes have been told to start.
    pub fn first_world(&self) -> World<A> {
        let mut world = self.unstarted_world();
        let mut out = Effects::new();
        for node in NodeId::all(self.nodes) {
            world.step(&self.config, node, Input::Start, &mut out);
            world.carry_out(self.network, &self.claims, node, &mut out);
        }
        world
    }
}

impl<A: Algorithm> Model for GroupModel<A> {
    type State = World<A>;
    type Action = Move;

    fn init_states(&self) -> Vec<World<A>> {
        vec![self.begin.clone().unwrap_or_else(|| self.first_world())]
    }

    fn actions(&self, world: &World<A>, moves: &mut Vec<Move>) {
        let mut actions = Vec::new();
        world.actions(self.network, &mut actions);
        moves.extend(actions.iter().copied().map(Move::Whole));
        if world.can_crash() {
            for action in actions {
                self.cut_short(world, action, moves);
            }
        }
    }

    fn next_state(&self, world: &World<A>, chosen: Move) -> Option<World<A>> {
        let mut next = world.clone();
        let (Move::Whole(action) | Move::CutShort { action, .. }) = chosen;
        match next.take(action, &self.claims) {
            Taken::Step(node, input) => {
                let mut out = Effects::new();
                next.step(&self.config, node, input, &mut out);
                match chosen {
                    Move::Whole(_) => {
                        next.carry_out(self.network, &self.claims, node, &mut out);
                    }
                    Move::CutShort { sent, .. } => {
                        next.carry_out_in_part(self.network, node, &mut out, sent);
                        next.replace_crashed(node, self.crashed_state(node));
                    }
                }
            }
            Taken::Crash(node) => next.replace_crashed(node, self.crashed_state(node)),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        property::all()
    }
}

/// Whether no message has left before an earlier one to the same receiver.
fn is_in_order(receivers: &[NodeId], sent: u32) -> bool {
    let left = |place: usize| sent >> place & 1 == 1;
    (0..receivers.len()).filter(|&later| left(later)).all(|later| {
        (0..later).all(|earlier| left(earlier) || receivers[earlier] != receivers[later])
    })
}

/// What sooner or later happens if it stays possible: no message is on its way for ever, and no timer
/// runs for ever. Nobody has to ask or to crash.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed<M> {
    /// The oldest message of a FIFO channel arrives.
    Channel(NodeId, NodeId),
    /// A message arrives, where messages may overtake each other. Of equal ones it is any.
    Message(Envelope<M>),
    /// A timer runs out.
    Timer(NodeId, TimerTag),
}

impl<A: Algorithm> Lasting for GroupModel<A> {
    type Deed = Deed<A::Message>;

    /// Requests are limited and crashes, too, so they happen in no cycle, and neither does anything
    /// that comes of them once: entries, releases, suspicions. Whoever is inside leaves some time, and
    /// the detector tells everybody some time; until then a run is not yet as it will be for ever.
    fn can_last(&self, world: &World<A>) -> bool {
        world.suspicions().is_empty()
            && world.nodes_in(Phase::Waiting).next().is_some()
            && world.nodes_in(Phase::Inside).next().is_none()
    }

    fn deed(&self, world: &World<A>, chosen: &Move) -> Option<Deed<A::Message>> {
        let Move::Whole(action) = *chosen else { return None };
        match action {
            Action::Deliver(place) => {
                let envelope = &world.in_flight()[place];
                Some(match self.network {
                    Network::Fifo => Deed::Channel(envelope.from, envelope.to),
                    Network::Any => Deed::Message(envelope.clone()),
                })
            }
            Action::Fire(place) => {
                let (node, tag) = world.timers()[place];
                Some(Deed::Timer(node, tag))
            }
            Action::Request(_) | Action::Release(_) | Action::Crash(_) | Action::Suspect(_) => None,
        }
    }
}
