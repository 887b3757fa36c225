//! What has to hold in every world.

pub use catraca_core::property::{
    FENCES_INCREASE, FENCES_UNIQUE, MUTUAL_EXCLUSION, NO_ANOMALY, NOBODY_WAITS_FOR_EVER,
};
use stateright::Property;

use super::model::ViewModel;
use super::words::{client_name, client_names};
use super::world::{Fault, World};
use crate::group::property::fence_words;
pub use crate::group::property::{NOTHING_IS_LEFT, ONLY_WAITERS_ENTER};
use crate::group::setting::member_name;

/// A member without which the group goes on lets nobody in.
pub const EXCLUDED_LET_NOBODY_IN: &str = "excluded members let nobody in";

/// All properties, the most telling first.
pub(super) fn all() -> Vec<Property<ViewModel>> {
    macro_rules! always {
        ($($name:ident),*) => {
            vec![$(Property::always($name, |model, world| explain($name, model, world).is_ok())),*]
        };
    }
    always![
        MUTUAL_EXCLUSION,
        EXCLUDED_LET_NOBODY_IN,
        NOBODY_WAITS_FOR_EVER,
        FENCES_INCREASE,
        FENCES_UNIQUE,
        ONLY_WAITERS_ENTER,
        NOTHING_IS_LEFT,
        NO_ANOMALY
    ]
}

/// Says how `world` breaks the property called `name`.
pub(super) fn explain(name: &str, model: &ViewModel, world: &World) -> Result<(), String> {
    match name {
        MUTUAL_EXCLUSION => mutual_exclusion(model, world),
        NOBODY_WAITS_FOR_EVER => nobody_waits_for_ever(model, world),
        NOTHING_IS_LEFT => nothing_is_left(model, world),
        _ => match world.fault() {
            Some(fault) if property_of(fault) == name => Err(words(fault, model)),
            _ => Ok(()),
        },
    }
}

/// At most as many trust that they are inside each lock as may be.
fn mutual_exclusion(model: &ViewModel, world: &World) -> Result<(), String> {
    for (place, name) in model.names.iter().enumerate() {
        let inside = || world.inside().filter(|&client| model.wanted[client].contains(&place));
        if inside().count() > model.setting.permits as usize {
            let who = client_names(model, inside());
            return Err(format!("{who} inside {name} at the same time, and may trust that"));
        }
    }
    Ok(())
}

/// Somebody waits at a member that runs, nothing is on its way, nobody who is inside is in the way, and
/// time has passed for long enough.
fn nobody_waits_for_ever(model: &ViewModel, world: &World) -> Result<(), String> {
    if !world.is_stuck(model) || world.may_pass(model) {
        return Ok(());
    }
    let who = client_names(model, world.waiting());
    Err(format!("{who} waiting, nobody is in the way, and nothing is on its way"))
}

/// Nobody is inside or waits, nothing is on its way, and a member is not at rest.
fn nothing_is_left(model: &ViewModel, world: &World) -> Result<(), String> {
    let wants = world.waiting().next().is_some() || world.inside().next().is_some();
    if wants || !world.is_quiet(model) {
        return Ok(());
    }
    let is_in_view = |member: &catraca_group::WholeMember| {
        let membership = member.service().membership();
        membership.is_some_and(|membership| membership.active().is_some())
    };
    match world.members().find(|(_, member)| is_in_view(member) && !member.is_at_rest()) {
        None => Ok(()),
        Some((place, _)) => Err(format!(
            "nobody wants anything any more, and {} is not at rest",
            member_name(place)
        )),
    }
}

fn property_of(fault: &Fault) -> &'static str {
    match fault {
        Fault::NotWaiting(_) => ONLY_WAITERS_ENTER,
        Fault::LetInByExcluded(_) => EXCLUDED_LET_NOBODY_IN,
        Fault::FenceOrder { .. } => FENCES_INCREASE,
        Fault::FenceTwice(..) => FENCES_UNIQUE,
        Fault::Refused(..) | Fault::SentAway(_) | Fault::Anomaly(..) => NO_ANOMALY,
    }
}

fn words(fault: &Fault, model: &ViewModel) -> String {
    let client = |client: usize| client_name(model, client);
    match fault {
        Fault::NotWaiting(who) => format!("{} is let in, and does not wait", client(*who)),
        Fault::LetInByExcluded(who) => {
            format!("{} is let in by its member, which is excluded", client(*who))
        }
        Fault::FenceOrder { name, last, granted } => format!(
            "{}: fence {} comes after fence {}",
            model.names[*name],
            fence_words(*granted),
            fence_words(*last)
        ),
        Fault::FenceTwice(name, fence) => format!(
            "{}: fence {} comes for the second time",
            model.names[*name],
            fence_words(*fence)
        ),
        Fault::Refused(who, why) => format!("{} is refused: {why}", client(*who)),
        Fault::SentAway(who) => {
            format!("{} only waits, and its session is over", client(*who))
        }
        Fault::Anomaly(member, what) => format!("{}: {what}", member_name(*member)),
    }
}
