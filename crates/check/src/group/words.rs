//! From a path through the state space to words for people.

use catraca_core::Fence;
use catraca_core::property::NOBODY_WAITS_FOR_EVER;
use catraca_group::Timer;
use stateright::Model;

use super::model::MemberModel;
use super::property::{self, fence_words};
use super::setting::{NextView, member_name};
use super::world::{Action, Effect, World};
use super::{Step, Violation};

/// Walks `path` (which action to take in each world) and puts it into words.
pub(super) fn violation(model: &MemberModel, property: &'static str, path: &[usize]) -> Violation {
    let (steps, world) = walk(model, path);
    let what = match property::explain(property, model, &world) {
        Err(what) => what,
        Ok(()) => unreachable!("the search found '{property}' broken in this very world"),
    };
    Violation { property, what, steps }
}

/// A run that never ends in which somebody waits: `path`, and then `cycle` again and again.
pub(super) fn lasting(model: &MemberModel, path: &[usize], cycle: &[usize]) -> Violation {
    let (steps, _) = walk(model, &[path, cycle].concat());
    let what = format!("somebody waits while the last {} steps repeat for ever", cycle.len());
    Violation { property: NOBODY_WAITS_FOR_EVER, what, steps }
}

/// The steps of a run, and where it ends.
fn walk(model: &MemberModel, path: &[usize]) -> (Vec<Step>, World) {
    let mut world = model.init_states().swap_remove(0);
    let (mut steps, mut actions) = (Vec::new(), Vec::new());
    for &choice in path {
        actions.clear();
        world.actions(&mut actions);
        let mut effects = Vec::new();
        world
            .take(model, actions[choice], &mut |effect| effects.push(effect_words(model, &effect)));
        steps.push(Step { action: action_words(model, actions[choice]), effects });
    }
    (steps, world)
}

/// A1 is the first client of member A.
pub(super) fn client_name(model: &MemberModel, client: usize) -> String {
    let member = member_name(model.setting.member_of(client));
    format!("{member}{}", client % model.setting.clients + 1)
}

/// 'A1 is' or 'A1 and B2 are'.
pub(super) fn client_names(model: &MemberModel, clients: impl Iterator<Item = usize>) -> String {
    let names: Vec<String> = clients.map(|client| client_name(model, client)).collect();
    match names.as_slice() {
        [one] => format!("{one} is"),
        several => format!("{} are", several.join(" and ")),
    }
}

fn action_words(model: &MemberModel, action: Action) -> String {
    let wanted = |client: usize| model.setting.names_of(client).join(" and ");
    match action {
        Action::Ask(client) => {
            format!("{} asks for {}", client_name(model, client), wanted(client))
        }
        Action::Cancel(client) => {
            format!("{} takes its request for {} back", client_name(model, client), wanted(client))
        }
        Action::Leave(client) => {
            format!("{} leaves {}", client_name(model, client), wanted(client))
        }
        Action::Deliver(from, to) => {
            format!("a message from {} arrives at {}", member_name(from), member_name(to))
        }
        Action::Fire(member, Timer::Request(_)) => {
            format!("the patience of a request at {} ends", member_name(member))
        }
        Action::Fire(member, _) => format!("a timer of a lock runs out at {}", member_name(member)),
        Action::ChangeView => match model.setting.next_view {
            Some(NextView::Without(gone)) => {
                format!("the next view begins, without {}", member_name(gone))
            }
            _ => "the next view begins, with the same members".to_string(),
        },
    }
}

fn effect_words(model: &MemberModel, effect: &Effect<'_>) -> String {
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
        Effect::Sent(from, to) => {
            format!("{} sends {} a message", member_name(*from), member_name(*to))
        }
        Effect::Ignored(member) => {
            format!("it is of the view before, and {} ignores it", member_name(*member))
        }
    }
}
