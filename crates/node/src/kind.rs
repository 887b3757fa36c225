//! One algorithm on one shard: the states of all its instances, stepped by place.
//!
//! Simulator and checker are generic over the algorithm; here the type is erased, where messages are
//! bytes anyway. States of one type lie side by side, so a lock costs no allocation of its own, and
//! one buffer of effects serves them all, so a step costs none either.

use std::time::Duration;

use catraca_algorithms::{Spec, SpecError, Visitor};
use catraca_core::{
    Algorithm, Claim, Effect, Effects, Fence, Input, Message, NodeId, Start, TimerTag,
};

/// Where an instance's state is, among those of its kind and shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// What happens to an instance. As [`Input`], with the message still in bytes.
#[derive(Debug)]
pub(crate) enum Stimulus<'a> {
    Start,
    Request(Claim),
    Release,
    Deliver { from: NodeId, bytes: &'a [u8] },
    Timer(TimerTag),
    Suspect(NodeId),
}

/// A message that a step wants sent: who gets it, and where its bytes are in [`Step::bytes`].
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) to: NodeId,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// What a step asks for. Kept and reused.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) granted: Option<Fence>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) bytes: Vec<u8>,
    /// Timers to set, or to cancel where there is no duration.
    pub(crate) timers: Vec<(TimerTag, Option<Duration>)>,
    pub(crate) anomalies: Vec<&'static str>,
}

impl Step {
    fn clear(&mut self) {
        self.granted = None;
        self.sent.clear();
        self.bytes.clear();
        self.timers.clear();
        self.anomalies.clear();
    }
}

/// All instances of one algorithm on one shard.
pub(crate) trait Kind: Send {
    /// A new instance, seen from node `me` of it.
    fn create(&mut self, me: NodeId) -> Slot;

    /// Takes one atomic step of the instance at `slot`; `step` holds what it asks for.
    fn step(&mut self, slot: Slot, stimulus: Stimulus<'_>, step: &mut Step);

    /// How many messages of each kind have been sent, in the order of the algorithm's own list.
    fn counts(&self) -> Vec<(&'static str, u64)>;
}

/// The instances of the algorithm that `spec` describes. The home member of each is its node 0.
pub(crate) fn kind_of(spec: &Spec) -> Result<Box<dyn Kind>, SpecError> {
    struct Make;
    impl Visitor for Make {
        type Output = Box<dyn Kind>;
        fn visit<A: Algorithm>(self, config: A::Config) -> Box<dyn Kind> {
            Box::new(Instances::<A> {
                config,
                states: Vec::new(),
                effects: Effects::new(),
                counts: vec![0; A::Message::KINDS.len()],
            })
        }
    }
    spec.visit(Make)
}

struct Instances<A: Algorithm> {
    config: A::Config,
    states: Vec<A>,
    effects: Effects<A::Message>,
    counts: Vec<u64>,
}

impl<A: Algorithm> Instances<A> {
    fn carry_out(&mut self, step: &mut Step) {
        for effect in self.effects.drain() {
            match effect {
                Effect::Send { to, message } => {
                    self.counts[message.kind()] += 1;
                    let start = step.bytes.len();
                    let bytes = std::mem::take(&mut step.bytes);
                    match postcard::to_extend(&message, bytes) {
                        Ok(bytes) => step.bytes = bytes,
                        Err(_) => step.anomalies.push("a message cannot be written as bytes"),
                    }
                    step.sent.push(Sent { to, start, end: step.bytes.len() });
                }
                Effect::Granted(fence) => step.granted = Some(fence),
                Effect::SetTimer { tag, after } => step.timers.push((tag, Some(after))),
                Effect::CancelTimer(tag) => step.timers.push((tag, None)),
                Effect::Anomaly(what) => step.anomalies.push(what),
            }
        }
    }
}

impl<A: Algorithm> Kind for Instances<A> {
    fn create(&mut self, me: NodeId) -> Slot {
        let slot = Slot(u32::try_from(self.states.len()).expect("locks are limited"));
        self.states.push(A::new(me, &self.config, &Start::idle()));
        slot
    }

    fn step(&mut self, slot: Slot, stimulus: Stimulus<'_>, step: &mut Step) {
        step.clear();
        let input = match stimulus {
            Stimulus::Start => Input::Start,
            Stimulus::Request(claim) => Input::Request(claim),
            Stimulus::Release => Input::Release,
            Stimulus::Timer(tag) => Input::Timer(tag),
            Stimulus::Suspect(node) => Input::Suspect(node),
            Stimulus::Deliver { from, bytes } => match postcard::from_bytes(bytes) {
                Ok(message) => Input::Message { from, message },
                Err(_) => return step.anomalies.push("a message came that cannot be read"),
            },
        };
        self.states[slot.0 as usize].step(&self.config, input, &mut self.effects);
        self.carry_out(step);
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        A::Message::KINDS.iter().copied().zip(self.counts.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_stepped_by_place_and_speaks_in_bytes() {
        let spec = Spec::new("naimi-trehel", 2);
        let (mut home, mut other) = (kind_of(&spec).unwrap(), kind_of(&spec).unwrap());
        let (at_home, away) = (home.create(NodeId(0)), other.create(NodeId(1)));
        let mut step = Step::default();
        home.step(at_home, Stimulus::Request(Claim::single()), &mut step);
        assert_eq!(
            (step.granted, step.sent.len()),
            (Some(Fence(1)), 0),
            "the token starts at home"
        );

        other.step(away, Stimulus::Request(Claim::single()), &mut step);
        assert_eq!((step.granted, step.sent[0].to), (None, NodeId(0)));
        let request = step.bytes.clone();
        home.step(at_home, Stimulus::Deliver { from: NodeId(1), bytes: &request }, &mut step);
        assert!(step.sent.is_empty() && step.anomalies.is_empty());
        home.step(at_home, Stimulus::Release, &mut step);
        let token = step.bytes.clone();
        other.step(away, Stimulus::Deliver { from: NodeId(0), bytes: &token }, &mut step);
        assert_eq!(step.granted, Some(Fence(2)));
        assert_eq!(home.counts(), [("request", 0), ("token", 1)]);
    }

    #[test]
    fn bytes_that_are_no_message_are_an_anomaly_and_change_nothing() {
        let mut kind = kind_of(&Spec::new("naimi-trehel", 2)).unwrap();
        let slot = kind.create(NodeId(0));
        let mut step = Step::default();
        kind.step(slot, Stimulus::Deliver { from: NodeId(1), bytes: &[250, 1] }, &mut step);
        assert_eq!(step.anomalies, ["a message came that cannot be read"]);
        kind.step(slot, Stimulus::Request(Claim::single()), &mut step);
        assert_eq!(step.granted, Some(Fence(1)));
    }
}
