//! From a path through the state space to words for people.

use catraca_core::Fence;
use catraca_core::property::NOBODY_WAITS_FOR_EVER;
use stateright::Model;

use super::model::ViewModel;
use super::property;
use super::setting::Kind;
use super::world::{Action, Effect, World};
use super::{Step, Violation};
use crate::group::property::fence_words;
use crate::group::setting::member_name;

/// Walks `path` (which action to take in each world) and puts it into words.
pub(super) fn violation(model: &ViewModel, property: &'static str, path: &[usize]) -> Violation {
    let (steps, world) = walk(model, path);
    let what = match property::explain(property, model, &world) {
        Err(what) => what,
        Ok(()) => unreachable!("the search found '{property}' broken in this very world"),
    };
    Violation { property, what, steps }
}

/// A run that never ends in which somebody waits: `path`, and then `cycle` again and again.
pub(super) fn lasting(model: &ViewModel, path: &[usize], cycle: &[usize]) -> Violation {
    let (steps, _) = walk(model, &[path, cycle].concat());
    let what = format!("somebody waits while the last {} steps repeat for ever", cycle.len());
    Violation { property: NOBODY_WAITS_FOR_EVER, what, steps }
}

/// The steps of a run, and where it ends.
fn walk(model: &ViewModel, path: &[usize]) -> (Vec<Step>, World) {
    let mut world = model.init_states().swap_remove(0);
    let (mut steps, mut actions) = (Vec::new(), Vec::new());
    for &choice in path {
        actions.clear();
        world.actions(model, &mut actions);
        let mut effects = Vec::new();
        world
            .take(model, actions[choice], &mut |effect| effects.push(effect_words(model, &effect)));
        steps.push(Step { action: action_words(model, actions[choice]), effects });
    }
    (steps, world)
}

/// A1 is the first client of member A.
pub(super) fn client_name(model: &ViewModel, client: usize) -> String {
    let member = member_name(model.setting.member_of(client));
    format!("{member}{}", client % model.setting.clients + 1)
}

/// 'A1 is' or 'A1 and B1 are'.
pub(super) fn client_names(model: &ViewModel, clients: impl Iterator<Item = usize>) -> String {
    let names: Vec<String> = clients.map(|client| client_name(model, client)).collect();
    match names.as_slice() {
        [one] => format!("{one} is"),
        several => format!("{} are", several.join(" and ")),
    }
}

fn action_words(model: &ViewModel, action: Action) -> String {
    let wanted = |client: usize| model.setting.names_of(client).join(" and ");
    match action {
        Action::Ask(client) => {
            format!("{} asks for {}", client_name(model, client), wanted(client))
        }
        Action::Leave(client) => {
            format!("{} leaves {}", client_name(model, client), wanted(client))
        }
        Action::Deliver(from, to) => {
            format!("a message from {} arrives at {}", member_name(from), member_name(to))
        }
        Action::Commit(place) => {
            format!("the registry takes up a proposal of {}", member_name(place))
        }
        Action::Answer(place) => {
            format!("a late answer of the registry arrives at {}", member_name(place))
        }
        Action::Hear(place) => format!("{} hears of a new view", member_name(place)),
        Action::Wake(place) => format!("{} sees how late it is", member_name(place)),
        Action::Pass => "a third of a lease passes".to_string(),
        Action::Fail(place) => {
            let what = match model.setting.failure.kind {
                Kind::Crash | Kind::Restart => "crashes",
                Kind::Pause => "is paused",
                Kind::Cut => "is cut off from the registry",
            };
            format!("{} {what}", member_name(place))
        }
        Action::Recover(place) => {
            let what = match model.setting.failure.kind {
                Kind::Crash | Kind::Restart => "is started again",
                Kind::Pause => "goes on",
                Kind::Cut => "reaches the registry again",
            };
            format!("{} {what}", member_name(place))
        }
    }
}

fn effect_words(model: &ViewModel, effect: &Effect<'_>) -> String {
    match effect {
        Effect::Granted(client, fences) => {
            let named = model.setting.names_of(*client).iter().zip(fences.iter());
            let of_name =
                |(name, &fence): (&String, &Fence)| format!("{name} {}", fence_words(fence));
            let fences: Vec<String> = named.map(of_name).collect();
            format!("{} is inside, fence {}", client_name(model, *client), fences.join(", "))
        }
        Effect::Refused(client, why) => {
            format!("{} is refused: {why}", client_name(model, *client))
        }
        Effect::Lost(client, why) => {
            format!("{} is told that it is not inside any more: {why}", client_name(model, *client))
        }
        Effect::Doubts(client) => {
            format!("{} does not trust any more that it is inside", client_name(model, *client))
        }
        Effect::Sent(from, to) => {
            format!("{} sends {} a message", member_name(*from), member_name(*to))
        }
        Effect::Began(place, epoch, names) => {
            format!("view {epoch} begins at {}, with {}", member_name(*place), names.join(", "))
        }
        Effect::Out(place, why) => {
            format!("{} finds itself out of the group: {why}", member_name(*place))
        }
        Effect::Proposed(place) => {
            format!("{} asks the registry for another view", member_name(*place))
        }
        Effect::Decided(true) => "it is carried out".to_string(),
        Effect::Decided(false) => "it is not carried out: something has changed".to_string(),
    }
}
