//! The group as a [`stateright::Model`].

use catraca_core::{Algorithm, Effects, Input, NodeId, Start};
use stateright::{Model, Property};

use crate::Network;
use crate::claims::Claims;
use crate::property;
use crate::world::{Action, Taken, World};

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
}

impl<A: Algorithm> GroupModel<A> {
    /// The nodes are created and have not been told to start.
    pub(crate) fn unstarted_world(&self) -> World<A> {
        let (requests, crashes) = (self.requests, self.crashes);
        World::new(&self.config, self.nodes, &self.start, requests, crashes, &self.claims)
    }

    /// What is left of a crashed node.
    pub(crate) fn remains(&self, node: NodeId) -> A {
        A::new(node, &self.config, &Start::idle())
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
    type Action = Action;

    fn init_states(&self) -> Vec<World<A>> {
        vec![self.first_world()]
    }

    fn actions(&self, world: &World<A>, actions: &mut Vec<Action>) {
        world.actions(self.network, actions);
    }

    fn next_state(&self, world: &World<A>, action: Action) -> Option<World<A>> {
        let mut next = world.clone();
        match next.take(action, &self.claims) {
            Taken::Step(node, input) => {
                let mut out = Effects::new();
                next.step(&self.config, node, input, &mut out);
                next.carry_out(self.network, &self.claims, node, &mut out);
            }
            Taken::Crash(node) => next.bury(node, self.remains(node)),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        property::all()
    }
}
