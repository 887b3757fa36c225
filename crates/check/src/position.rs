//! A run whose steps somebody chooses: where it is, and what can happen next.

use catraca_algorithms::{Spec, SpecError, Visitor};
use catraca_core::{Algorithm, Effects, Envelope, Message, NodeId};
use catraca_trace::{Event, Outcome, Payload, SendId, Trace};

use crate::choice::{Choice, What, choices};
use crate::explore::Options;
use crate::model::{GroupModel, Move};
use crate::property;
use crate::walk::Walk;
use crate::world::{Action, Taken, World};

/// Where a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// What has happened, from the first world on.
    pub trace: Trace,
    /// How many steps were taken: all, or those before the first that is not possible.
    pub taken: usize,
    /// What can happen next, in a fixed order.
    pub possible: Vec<Possible>,
    /// The messages that have not arrived, in the order of sending.
    pub on_the_way: Vec<OnTheWay>,
    /// What a property says of the first step that breaks one.
    pub broken: Option<Breaks>,
    /// An earlier step after which the group was in the same state.
    pub same_as: Option<usize>,
    /// Every kind of message that the algorithm has.
    pub kinds: &'static [&'static str],
}

/// Something that can happen next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Possible {
    /// Its name.
    pub choice: Choice,
    /// The same in words.
    pub words: String,
    /// The message that arrives, if one does.
    pub message: Option<SendId>,
}

/// A message that has not arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnTheWay {
    /// Its number.
    pub id: SendId,
    /// Its sender.
    pub from: NodeId,
    /// Its receiver.
    pub to: NodeId,
    /// What it says, in words.
    pub text: String,
}

/// A property that a step has broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaks {
    /// The step, counted from 1; 0 is the first world.
    pub step: usize,
    /// The property's name, one of those in [`catraca_core::property`].
    pub property: &'static str,
    /// What is wrong, in words.
    pub what: String,
}

/// Takes `steps` one after the other, up to the first that is not possible.
pub fn position(spec: &Spec, options: &Options, steps: &[Choice]) -> Result<Position, SpecError> {
    spec.visit(Follow { spec, options, steps })
}

struct Follow<'a> {
    spec: &'a Spec,
    options: &'a Options,
    steps: &'a [Choice],
}

impl Visitor for Follow<'_> {
    type Output = Position;

    fn visit<A: Algorithm>(self, config: A::Config) -> Position {
        let model = GroupModel::<A>::of(config, self.spec, self.options);
        let mut walk = Walk::new(&model);
        let mut worlds = vec![walk.world.clone()];
        let mut broken = broken(&model, &walk.world, 0);
        let mut taken = 0;
        for step in self.steps {
            let possible = choices(&model, &walk.world);
            let Some((_, chosen)) = possible.iter().find(|(it, _)| it == step) else { break };
            walk.take(*chosen);
            taken += 1;
            worlds.push(walk.world.clone());
            broken = broken.or_else(|| self::broken(&model, &walk.world, taken));
        }
        let same_as = worlds[..taken].iter().position(|world| *world == walk.world);
        Position {
            taken,
            possible: possible(&model, &walk),
            on_the_way: on_the_way(&walk),
            broken,
            same_as,
            kinds: A::Message::KINDS,
            trace: walk.into_trace(self.spec),
        }
    }
}

/// The first property that does not hold in `world`.
fn broken<A: Algorithm>(model: &GroupModel<A>, world: &World<A>, step: usize) -> Option<Breaks> {
    let property = property::all::<A>().into_iter().find(|it| !(it.condition)(model, world))?.name;
    let what = property::explain(property, model, world).err()?;
    Some(Breaks { step, property, what })
}

fn possible<A: Algorithm>(model: &GroupModel<A>, walk: &Walk<'_, A>) -> Vec<Possible> {
    let describe = |(choice, chosen): (Choice, Move)| {
        let message = arriving(walk, chosen);
        let text = message.and_then(|id| payload(walk.events(), id)).map(ToString::to_string);
        let mut words = words(choice.what, text.as_deref());
        if let Some(sent) = choice.sent {
            words += &cut_short(model, &walk.world, chosen, sent);
        }
        Possible { choice, words, message }
    };
    choices(model, &walk.world).into_iter().map(describe).collect()
}

/// The number of the message that a step delivers; of equal ones the oldest.
fn arriving<A: Algorithm>(walk: &Walk<'_, A>, chosen: Move) -> Option<SendId> {
    let (Move::Whole(action) | Move::CutShort { action, .. }) = chosen;
    let Action::Deliver(place) = action else { return None };
    let envelope = &walk.world.in_flight()[place];
    walk.sent.iter().find(|(_, sent)| sent == envelope).map(|(id, _)| *id)
}

fn payload(events: &[Event], wanted: SendId) -> Option<&Payload> {
    let steps = events.iter().rev().filter_map(|event| match event {
        Event::Step(step) => Some(step),
        _ => None,
    });
    steps.flat_map(|step| &step.outcomes).find_map(|outcome| match outcome {
        Outcome::Send { id, message, .. } if *id == wanted => Some(message),
        _ => None,
    })
}

fn on_the_way<A: Algorithm>(walk: &Walk<'_, A>) -> Vec<OnTheWay> {
    let message = |(id, envelope): &(SendId, Envelope<A::Message>)| OnTheWay {
        id: *id,
        from: envelope.from,
        to: envelope.to,
        text: payload(walk.events(), *id).map(ToString::to_string).unwrap_or_default(),
    };
    walk.sent.iter().map(message).collect()
}

fn words(what: What, message: Option<&str>) -> String {
    match what {
        What::Ask(node) => format!("node {node} asks"),
        What::Leave(node) => format!("node {node} leaves"),
        What::Message { from, to, .. } => {
            format!("{} from {from} arrives at {to}", message.unwrap_or("a message"))
        }
        What::Timer(node, tag) => format!("timer {} of node {node} runs out", tag.0),
        What::Crash(node) => format!("node {node} crashes"),
        What::Suspect { observer, suspect } => {
            format!("node {observer} is told that {suspect} has crashed")
        }
    }
}

/// Which messages of a step leave before its node crashes.
fn cut_short<A: Algorithm>(
    model: &GroupModel<A>,
    world: &World<A>,
    chosen: Move,
    sent: u32,
) -> String {
    let (Move::Whole(action) | Move::CutShort { action, .. }) = chosen;
    let mut next = world.clone();
    let Taken::Step(node, input) = next.take(action, &model.claims) else { return String::new() };
    let mut out = Effects::new();
    next.step(&model.config, node, input, &mut out);
    let living = out.receivers().filter(|&to| world.is_alive(to)).enumerate();
    let left = living.filter(|(place, _)| sent >> (*place).min(31) & 1 == 1);
    let left: Vec<String> = left.map(|(_, to)| to.to_string()).collect();
    format!(
        ", and node {node} crashes meanwhile: only its messages to {} leave",
        left.join(" and ")
    )
}

#[cfg(test)]
mod tests {
    use catraca_core::property;

    use super::*;

    fn at(spec: &Spec, steps: &str) -> Position {
        let steps: Vec<Choice> =
            steps.split('.').filter(|it| !it.is_empty()).map(|it| it.parse().unwrap()).collect();
        position(spec, &Options::of(spec).unwrap(), &steps).unwrap()
    }

    fn names(position: &Position) -> Vec<String> {
        position.possible.iter().map(|it| it.choice.to_string()).collect()
    }

    #[test]
    fn a_run_is_chosen_step_by_step() {
        let spec = Spec::new("naimi-trehel", 2);
        assert_eq!(names(&at(&spec, "")), ["a0", "a1"]);
        let asked = at(&spec, "a1");
        assert_eq!(names(&asked), ["a0", "m1-0"]);
        assert_eq!(asked.possible[1].words, "request 1 from 1 arrives at 0");
        assert_eq!(asked.on_the_way[0].text, "request 1");
        assert_eq!(asked.possible[1].message, Some(asked.on_the_way[0].id));
        let inside = at(&spec, "a1.m1-0.m0-1");
        assert_eq!(names(&inside), ["a0", "l1"]);
        assert_eq!(inside.trace.events.len(), 3);
        assert_eq!((inside.broken, inside.on_the_way), (None, vec![]));
    }

    #[test]
    fn a_step_that_is_not_possible_ends_the_run_before_it() {
        let spec = Spec::new("naimi-trehel", 2);
        let stopped = at(&spec, "a1.m0-1.m1-0");
        assert_eq!((stopped.taken, stopped.trace.events.len()), (1, 1));
    }

    #[test]
    fn messages_that_can_overtake_each_other_have_different_names() {
        let spec = Spec::new("ricart-agrawala", 2);
        // Node 1 has sent its request and then its reply to that of node 0.
        let overtaking = at(&spec, "a1.a0.m0-1");
        assert_eq!(names(&overtaking), ["m1-0", "m1-0-2"]);
        assert!(overtaking.possible[1].words.starts_with("reply"), "{overtaking:?}");
        let entered = at(&spec, "a1.a0.m0-1.m1-0-2");
        assert_eq!(names(&entered), ["l0", "m1-0"]);
        let options = Options { network: crate::Network::Fifo, ..Options::of(&spec).unwrap() };
        let steps = ["a1", "a0", "m0-1"].map(|it| it.parse().unwrap());
        assert_eq!(names(&position(&spec, &options, &steps).unwrap()), ["m1-0"]);
    }

    #[test]
    fn the_step_that_breaks_a_property_is_named_and_later_ones_change_nothing_about_it() {
        let spec = Spec::new("lamport", 2).broken("no-tie-break");
        let before = at(&spec, "a0.a1.m0-1.m1-0");
        assert_eq!(before.broken, None, "{:?}", names(&before));
        let broken = at(&spec, "a0.a1.m0-1.m1-0.m1-0.m0-1");
        let said = broken.broken.clone().unwrap();
        assert_eq!(said.property, property::MUTUAL_EXCLUSION);
        assert_eq!(at(&spec, "a0.a1.m0-1.m1-0.m1-0.m0-1.l0").broken, broken.broken);
    }

    #[test]
    fn a_node_can_crash_in_the_middle_of_a_step_and_the_others_are_told() {
        let mut spec = Spec::new("raymond-k", 3);
        spec.k = Some(1);
        let options = Options { crashes: 1, ..Options::of(&spec).unwrap() };
        let first = position(&spec, &options, &[]).unwrap();
        let cut = first.possible.iter().find(|it| it.choice.to_string() == "a0~2").unwrap();
        assert_eq!(
            cut.words,
            "node 0 asks, and node 0 crashes meanwhile: only its messages to 2 leave"
        );
        let steps = ["a0~2", "s1-0", "m0-2"].map(|it| it.parse().unwrap());
        assert_eq!(position(&spec, &options, &steps).unwrap().taken, 3);
    }
}
