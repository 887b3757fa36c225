//! One algorithm on one shard: the states of all its instances, stepped by place.
//!
//! Where single algorithms are simulated and checked, drivers are generic over the algorithm; here the
//! type is erased, where messages are bytes anyway. States of one type lie side by side, so a lock
//! costs no allocation of its own, and one buffer of effects serves them all, so a step costs none
//! either.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use catraca_algorithms::{Spec, SpecError, Visitor};
use catraca_core::{
    Algorithm, Bounds, Claim, Effect, Effects, Fence, Input, Message, NodeId, Start, TimerTag,
    Variable, Variables,
};

use crate::blocks::Blocks;

/// Where an instance's state is, among those of its kind and shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot(u32);

impl Slot {
    /// That of a seat whose view has yet to begin.
    pub(crate) const NONE: Slot = Slot(u32::MAX);
}

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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) to: NodeId,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// What a step asks for. Kept and reused.
#[derive(Clone, Debug, Default)]
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

/// What an instance knows, as one node of the group sees it, for whoever shows it to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// By the names of the paper.
    pub(crate) variables: Vec<Variable>,
    /// The node that it would turn to for the token, itself if to nobody; nothing where nodes do not point
    /// to each other.
    pub(crate) points_to: Option<NodeId>,
}

/// All instances of one algorithm on one shard.
pub(crate) trait Kind: Send + Sync {
    /// A new instance, seen from node `me` of it, that begins in `start`.
    fn create(&mut self, me: NodeId, start: &Start) -> Slot;

    /// Takes one atomic step of the instance at `slot`; `step` holds what it asks for.
    fn step(&mut self, slot: Slot, stimulus: Stimulus<'_>, step: &mut Step);

    /// What the instance at `slot` would ask for if it were to step. It does not.
    fn foresee(&mut self, slot: Slot, stimulus: Stimulus<'_>, step: &mut Step);

    /// The state of the instance at `slot`, for whoever compares states.
    fn hash(&self, slot: Slot, hasher: &mut dyn Hasher);

    /// Whether the instance at `slot` has the token; nothing of an algorithm without one.
    fn has_token(&self, slot: Slot) -> Option<bool>;

    /// What the instance at `slot` knows.
    fn show(&self, slot: Slot) -> Shown;

    /// A copy.
    fn boxed_clone(&self) -> Box<dyn Kind>;

    /// How many messages of each kind have been sent, in the order of the algorithm's own list.
    fn counts(&self) -> Vec<(&'static str, u64)>;
}

/// The instances of the algorithm that `spec` describes. The home member of each is its node 0.
pub(crate) fn kind_of(spec: &Spec) -> Result<Box<dyn Kind>, SpecError> {
    struct Make(Bounds);
    impl Visitor for Make {
        type Output = Box<dyn Kind>;
        fn visit<A: Algorithm>(self, config: A::Config) -> Box<dyn Kind> {
            Box::new(Instances::<A> {
                config: Arc::new(config),
                bounds: self.0,
                states: Blocks::new(),
                effects: Effects::new(),
                counts: vec![0; A::Message::KINDS.len()],
            })
        }
    }
    spec.visit(Make(spec.bounds()))
}

struct Instances<A: Algorithm> {
    config: Arc<A::Config>,
    bounds: Bounds,
    states: Blocks<A>,
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
                    let bytes = core::mem::take(&mut step.bytes);
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

/// What an algorithm is given. A message is judged before a node sees it: others may send anything.
#[inline]
fn input<M: Message>(stimulus: Stimulus<'_>, bounds: Bounds) -> Result<Input<M>, &'static str> {
    Ok(match stimulus {
        Stimulus::Start => Input::Start,
        Stimulus::Request(claim) => Input::Request(claim),
        Stimulus::Release => Input::Release,
        Stimulus::Timer(tag) => Input::Timer(tag),
        Stimulus::Suspect(node) => Input::Suspect(node),
        Stimulus::Deliver { from, bytes } => match postcard::from_bytes::<M>(bytes) {
            Ok(message) if message.is_possible(bounds) => Input::Message { from, message },
            Ok(_) => return Err("a message came that nobody can have sent"),
            Err(_) => return Err("a message came that cannot be read"),
        },
    })
}

impl<A: Algorithm> Kind for Instances<A> {
    fn create(&mut self, me: NodeId, start: &Start) -> Slot {
        let slot = Slot(u32::try_from(self.states.len()).expect("locks are limited"));
        self.states.push(A::new(me, &self.config, start));
        slot
    }

    fn step(&mut self, slot: Slot, stimulus: Stimulus<'_>, step: &mut Step) {
        step.clear();
        match input(stimulus, self.bounds) {
            Ok(input) => {
                self.states[slot.0 as usize].step(&self.config, input, &mut self.effects);
                self.carry_out(step);
            }
            Err(what) => step.anomalies.push(what),
        }
    }

    fn foresee(&mut self, slot: Slot, stimulus: Stimulus<'_>, step: &mut Step) {
        let (state, counts) = (self.states[slot.0 as usize].clone(), self.counts.clone());
        self.step(slot, stimulus, step);
        self.states[slot.0 as usize] = state;
        self.counts = counts;
    }

    fn hash(&self, slot: Slot, mut hasher: &mut dyn Hasher) {
        self.states[slot.0 as usize].hash(&mut hasher);
    }

    fn has_token(&self, slot: Slot) -> Option<bool> {
        A::TOKEN.then(|| self.states[slot.0 as usize].holds_token())
    }

    fn show(&self, slot: Slot) -> Shown {
        let state = &self.states[slot.0 as usize];
        let mut variables = Variables::new();
        state.variables(&mut variables);
        Shown { variables: variables.into_vec(), points_to: state.points_to() }
    }

    fn boxed_clone(&self) -> Box<dyn Kind> {
        Box::new(Instances {
            config: Arc::clone(&self.config),
            bounds: self.bounds,
            states: self.states.clone(),
            effects: Effects::new(),
            counts: self.counts.clone(),
        })
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
        let (at_home, away) =
            (home.create(NodeId(0), &Start::idle()), other.create(NodeId(1), &Start::idle()));
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
    fn a_message_that_no_node_can_have_sent_is_an_anomaly_and_changes_nothing() {
        let mut kind = kind_of(&Spec::new("naimi-trehel", 2)).unwrap();
        let slot = kind.create(NodeId(0), &Start::idle());
        let mut step = Step::default();
        // A request of node 2, which the group does not have.
        kind.step(slot, Stimulus::Deliver { from: NodeId(1), bytes: &[0, 2] }, &mut step);
        assert_eq!(step.anomalies, ["a message came that nobody can have sent"]);
        kind.step(slot, Stimulus::Request(Claim::single()), &mut step);
        assert_eq!(step.granted, Some(Fence(1)));
    }

    #[test]
    fn bytes_that_are_no_message_are_an_anomaly_and_change_nothing() {
        let mut kind = kind_of(&Spec::new("naimi-trehel", 2)).unwrap();
        let slot = kind.create(NodeId(0), &Start::idle());
        let mut step = Step::default();
        kind.step(slot, Stimulus::Deliver { from: NodeId(1), bytes: &[250, 1] }, &mut step);
        assert_eq!(step.anomalies, ["a message came that cannot be read"]);
        kind.step(slot, Stimulus::Request(Claim::single()), &mut step);
        assert_eq!(step.granted, Some(Fence(1)));
    }

    #[test]
    fn somebody_may_be_inside_from_the_start() {
        let mut kind = kind_of(&Spec::new("naimi-trehel", 2)).unwrap();
        let slot = kind.create(NodeId(0), &Start::inside(NodeId(0)));
        let mut step = Step::default();
        kind.step(slot, Stimulus::Release, &mut step);
        assert!(step.anomalies.is_empty(), "it was inside");
        kind.step(slot, Stimulus::Request(Claim::single()), &mut step);
        assert!(step.granted.is_some());
    }

    #[test]
    fn an_instance_shows_what_its_algorithm_knows_and_whether_the_token_is_here() {
        let mut kind = kind_of(&Spec::new("naimi-trehel", 2)).unwrap();
        let (home, other) =
            (kind.create(NodeId(0), &Start::idle()), kind.create(NodeId(1), &Start::idle()));
        assert_eq!((kind.has_token(home), kind.has_token(other)), (Some(true), Some(false)));
        let shown = kind.show(other);
        assert_eq!(shown.points_to, Some(NodeId(0)));
        let last = shown.variables.iter().find(|variable| variable.name == "last").unwrap();
        assert_eq!(last.value, catraca_core::Value::Node(Some(NodeId(0))));
        let mut permissions = kind_of(&Spec::new("ricart-agrawala", 2)).unwrap();
        let slot = permissions.create(NodeId(0), &Start::idle());
        assert_eq!((permissions.has_token(slot), permissions.show(slot).points_to), (None, None));
    }

    #[test]
    fn what_is_foreseen_does_not_happen() {
        let mut kind = kind_of(&Spec::new("suzuki-kasami", 3)).unwrap();
        let slot = kind.create(NodeId(1), &Start::idle());
        let mut step = Step::default();
        kind.foresee(slot, Stimulus::Request(Claim::single()), &mut step);
        assert_eq!(step.sent.len(), 2, "it would ask everybody");
        assert!(kind.counts().iter().all(|&(_, count)| count == 0));
        kind.step(slot, Stimulus::Request(Claim::single()), &mut step);
        assert_eq!(step.sent.len(), 2, "it had not asked yet");
    }
}
