//! A run through the state space, step by step, with the trace of it.

use catraca_algorithms::Spec;
use catraca_core::{Algorithm, Effect, Effects, Envelope, Input, NodeId};
use catraca_trace::{Event, Header, Origin, Recorder, SendId, Trace};
use stateright::Model;

use crate::model::{GroupModel, Move};
use crate::world::{Taken, World};

/// A run whose steps are chosen one by one.
pub(crate) struct Walk<'a, A: Algorithm> {
    model: &'a GroupModel<A>,
    pub(crate) world: World<A>,
    recorder: Recorder,
    /// What is on its way, in the order of sending.
    pub(crate) sent: Vec<(SendId, Envelope<A::Message>)>,
    next_id: u64,
    steps: u64,
    events: Vec<Event>,
}

impl<'a, A: Algorithm> Walk<'a, A> {
    /// At the first world, which is at step 0.
    pub(crate) fn new(model: &'a GroupModel<A>) -> Self {
        let mut walk = Walk {
            model,
            world: model.unstarted_world(),
            recorder: Recorder::new(),
            sent: Vec::new(),
            next_id: 0,
            steps: 0,
            events: Vec::new(),
        };
        walk.start();
        walk
    }

    /// Walks from the first world on: which action to take in each world.
    pub(crate) fn along(model: &'a GroupModel<A>, choices: impl Iterator<Item = usize>) -> Self {
        let mut walk = Walk::new(model);
        let mut actions = Vec::new();
        for choice in choices {
            actions.clear();
            model.actions(&walk.world, &mut actions);
            walk.take(actions[choice]);
        }
        walk
    }

    /// Takes one step, which is possible in this world.
    pub(crate) fn take(&mut self, chosen: Move) {
        self.steps += 1;
        let at = self.steps;
        let (Move::Whole(action) | Move::CutShort { action, .. }) = chosen;
        match (self.world.take(action, &self.model.claims), chosen) {
            (Taken::Step(node, input), Move::Whole(_)) => {
                self.step(at, node, input);
            }
            (Taken::Step(node, input), Move::CutShort { sent, .. }) => {
                self.step_in_part(at, node, input, sent);
            }
            (Taken::Crash(node), _) => self.crash(at, node),
        }
        self.lose(at);
    }

    /// Everything that has happened so far.
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// The whole of it, to be written, replayed and drawn.
    pub(crate) fn into_trace(self, spec: &Spec) -> Trace {
        Trace { header: Header::new(Origin::Check, spec.clone(), 1), events: self.events }
    }

    /// Nodes to which starting means nothing are not mentioned.
    fn start(&mut self) {
        for node in NodeId::all(self.model.nodes) {
            let before = self.world.nodes()[node.index()].clone();
            let effects = self.step(0, node, Input::Start);
            if effects == 0 && before == self.world.nodes()[node.index()] {
                self.events.pop();
            }
        }
    }

    /// Takes and records one step; returns how many effects it had.
    fn step(&mut self, at: u64, node: NodeId, input: Input<A::Message>) -> usize {
        let mut out = self.record(at, node, input);
        let effects = out.as_slice().len();
        self.world.carry_out(self.model.network, &self.model.claims, node, &mut out);
        effects
    }

    /// Takes and records a step in the middle of which `node` crashes: it is recorded as a whole, then
    /// what has not left is lost. `sent` is as in [`Move::CutShort`].
    fn step_in_part(&mut self, at: u64, node: NodeId, input: Input<A::Message>, sent: u32) {
        let mut out = self.record(at, node, input);
        let asked = self.sent.split_off(self.sent.len() - out.receivers().count());
        let (world, events, mut bits) = (&self.world, &mut self.events, sent);
        for (id, envelope) in asked {
            let is_alive = world.is_alive(envelope.to);
            if is_alive && bits & 1 == 1 {
                self.sent.push((id, envelope));
            } else {
                events.push(Event::Lost { at, id });
            }
            bits >>= u32::from(is_alive);
        }
        self.world.carry_out_in_part(self.model.network, node, &mut out, sent);
        self.crash(at, node);
    }

    /// Lets `node` react to `input`, and records what it asks for.
    fn record(&mut self, at: u64, node: NodeId, input: Input<A::Message>) -> Effects<A::Message> {
        let delivers = self.delivered(node, &input);
        let mut out = Effects::new();
        self.world.step(&self.model.config, node, input.clone(), &mut out);
        let step = self.recorder.step(at, node, &input, delivers, out.as_slice());
        self.events.push(Event::Step(step));
        for effect in out.as_slice() {
            if let Effect::Send { to, message } = effect {
                let envelope = Envelope { from: node, to: *to, message: message.clone() };
                self.sent.push((SendId(self.next_id), envelope));
                self.next_id += 1;
            }
        }
        out
    }

    fn crash(&mut self, at: u64, node: NodeId) {
        self.world.replace_crashed(node, self.model.crashed_state(node));
        self.events.push(Event::Crash { at, node });
    }

    /// What is on its way to a crashed node never arrives.
    fn lose(&mut self, at: u64) {
        let (world, events) = (&self.world, &mut self.events);
        self.sent.retain(|(id, envelope)| {
            let arrives = world.is_alive(envelope.to);
            if !arrives {
                events.push(Event::Lost { at, id: *id });
            }
            arrives
        });
    }

    /// The number of the message that `input` brings. Of equal ones the oldest: in a FIFO channel
    /// it is the one, and in a bag it makes no difference.
    fn delivered(&mut self, to: NodeId, input: &Input<A::Message>) -> Option<SendId> {
        let Input::Message { from, message } = input else { return None };
        let same = |(_, it): &(SendId, Envelope<A::Message>)| {
            it.from == *from && it.to == to && it.message == *message
        };
        let place = self.sent.iter().position(same)?;
        Some(self.sent.remove(place).0)
    }
}
