//! The events of a run, without the types of any one algorithm.

use std::time::Duration;

use catraca_core::{Algorithm, Effect, Fence, Input, Message, NodeId, TimerTag};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The number of a send: the first message sent in a run has number 0, the next 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SendId(pub u64);

/// A message as text: its kind for people and its whole body for replay.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Payload {
    /// The kind, as the metrics call it.
    pub kind: String,
    /// The message itself.
    pub body: Value,
}

impl Payload {
    fn of<M: Message>(message: &M) -> Self {
        // Messages are plain enums of numbers and lists: there is nothing that JSON cannot say.
        let body = serde_json::to_value(message).unwrap_or(Value::Null);
        Payload { kind: M::KINDS[message.kind()].to_string(), body }
    }
}

/// What a step asked its driver to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A message left.
    Send {
        /// Its number.
        id: SendId,
        /// Its receiver.
        to: NodeId,
        /// What it says.
        message: Payload,
    },
    /// The application was let in.
    Granted(Fence),
    /// A timer was set.
    SetTimer {
        /// Which one.
        tag: TimerTag,
        /// How long it runs.
        after: Duration,
    },
    /// A timer was cancelled.
    CancelTimer(TimerTag),
    /// Something impossible happened.
    Anomaly(String),
}

/// One atomic step of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// When, in ticks of the run's clock.
    pub at: u64,
    /// Who took it.
    pub node: NodeId,
    /// What it was given.
    pub input: Input<Payload>,
    /// The number of the message that was delivered, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivers: Option<SendId>,
    /// What it asked for, in order.
    pub outcomes: Vec<Outcome>,
}

/// One line of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A node took a step.
    Step(Step),
    /// A node crashed and takes no more steps.
    Crash {
        /// When.
        at: u64,
        /// Who.
        node: NodeId,
    },
    /// A message will never arrive: its receiver has crashed, or the network was partitioned.
    Lost {
        /// When it was lost.
        at: u64,
        /// Its number.
        id: SendId,
    },
}

impl Event {
    /// When it happened.
    pub fn at(&self) -> u64 {
        match self {
            Event::Step(step) => step.at,
            Event::Crash { at, .. } | Event::Lost { at, .. } => *at,
        }
    }
}

/// Turns typed steps into records and numbers the sends.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    sent: u64,
}

impl Recorder {
    /// A recorder that has seen nothing sent.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records one step. Sends get consecutive numbers in the order of `effects`.
    pub fn step<M: Message>(
        &mut self,
        at: u64,
        node: NodeId,
        input: &Input<M>,
        delivers: Option<SendId>,
        effects: &[Effect<M>],
    ) -> Step {
        let outcomes = effects.iter().map(|effect| self.outcome(effect)).collect();
        Step { at, node, input: untyped(input), delivers, outcomes }
    }

    /// Gives `input` to `node` and records what came of it. For drivers that keep no effects.
    pub fn drive<A: Algorithm>(
        &mut self,
        state: &mut A,
        config: &A::Config,
        (at, node): (u64, NodeId),
        input: Input<A::Message>,
        delivers: Option<SendId>,
    ) -> Step {
        let mut out = catraca_core::Effects::new();
        state.step(config, input.clone(), &mut out);
        self.step(at, node, &input, delivers, out.as_slice())
    }

    fn outcome<M: Message>(&mut self, effect: &Effect<M>) -> Outcome {
        match effect {
            Effect::Send { to, message } => {
                let id = SendId(self.sent);
                self.sent += 1;
                Outcome::Send { id, to: *to, message: Payload::of(message) }
            }
            Effect::Granted(fence) => Outcome::Granted(*fence),
            Effect::SetTimer { tag, after } => Outcome::SetTimer { tag: *tag, after: *after },
            Effect::CancelTimer(tag) => Outcome::CancelTimer(*tag),
            Effect::Anomaly(what) => Outcome::Anomaly((*what).to_string()),
        }
    }
}

fn untyped<M: Message>(input: &Input<M>) -> Input<Payload> {
    match input {
        Input::Message { from, message } => {
            Input::Message { from: *from, message: Payload::of(message) }
        }
        Input::Start => Input::Start,
        Input::Request(claim) => Input::Request(claim.clone()),
        Input::Release => Input::Release,
        Input::Timer(tag) => Input::Timer(*tag),
        Input::Suspect(node) => Input::Suspect(*node),
        Input::Trust(node) => Input::Trust(*node),
    }
}
