//! `catraca check NAME --members N --fault FAULT`: a group with leases and a registry, of which one
//! member fails.

use catraca_check::Limits;
use catraca_check::views::{FREE_STEPS, Setting, SettingError, check};

use super::members::{conclude, refused, watched};
use crate::Outcome;
use crate::failure::Failure;

/// Explores the group, and says what was and what was not explored.
pub(super) fn explore(setting: Setting, mutant: Option<&str>, limits: &Limits) -> Outcome {
    let setting = match mutant {
        Some(mutant) => setting.mutated(mutant).map_err(no_such)?,
        None => setting,
    };
    let report = watched(|show| check(&setting, limits, show).map_err(no_such))?;
    let Setting { algorithm, members, clients, requests, .. } = &setting;
    conclude((algorithm, *members, *clients, *requests), &report, &scope(&setting))
}

fn no_such(error: SettingError) -> Failure {
    match error {
        SettingError::Group(error) => refused(error),
        error => Failure::input(error),
    }
}

fn scope(setting: &Setting) -> String {
    let asking = match setting.askers.min(setting.members * setting.clients) {
        1 => "1 client asks".to_string(),
        askers => format!("{askers} clients ask"),
    };
    let start = if setting.begins_inside { "the first of them is inside" } else { "all are idle" };
    let failure = setting.failure;
    format!(
        "Explored: {asking}, at the beginning {start}; one fault ({failure}) at any step, and its end at \
         any later one;\nevery order of messages, proposals, news of views and time, which passes in \
         thirds of a lease, up to {FREE_STEPS} of them until\nthe member is excluded.\n\
         Not explored: clocks of different rates, more than one fault, cut links between members, and \
         reads of the\nregistry that are answered late; 'catraca swarm' draws these."
    )
}
