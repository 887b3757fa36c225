//! Flags that are made from the simulator's table of keys: `sim`, `compare` and `check` say the same
//! things in the same words.

use std::marker::PhantomData;

use catraca_sim::{KEYS, Key, Scenario, ScenarioError};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::failure::Failure;

/// The keys that a command takes.
pub(crate) trait Choice {
    /// Whether it takes this one.
    fn takes(key: &Key) -> bool;

    /// What holds if nothing is said.
    fn default(key: &Key) -> Option<&'static str> {
        key.default
    }

    /// What the flag was called before. It still works, and is not shown.
    fn old_flag(_key: &Key) -> Option<&'static str> {
        None
    }
}

/// What flags say.
pub(crate) struct Said<C> {
    scenario: Scenario,
    choice: PhantomData<C>,
}

impl<C: Choice> Said<C> {
    pub(crate) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// What is wrong with it.
    pub(crate) fn at_fault(&self, error: ScenarioError) -> Failure {
        Failure::of_scenario(error, None, |_| true)
    }

    fn keys() -> impl Iterator<Item = &'static Key> {
        KEYS.iter().filter(|key| C::takes(key))
    }
}

impl<C: Choice> Args for Said<C> {
    fn augment_args(command: Command) -> Command {
        Self::keys().fold(command, |command, key| {
            let action = if key.list { ArgAction::Append } else { ArgAction::Set };
            let (section, _) = key.path.split_once('.').unwrap_or(("group", ""));
            let help = match C::default(key) {
                Some(default) => format!("{} [default: {default}]", key.help),
                None => key.help.to_string(),
            };
            command.arg(
                Arg::new(key.path)
                    .long(key.flag)
                    .aliases(C::old_flag(key))
                    .value_name(key.value)
                    .help(help)
                    .help_heading(section)
                    // A tree may begin with the root's '-'. Elsewhere a flag after a flag means
                    // that a value was forgotten.
                    .allow_hyphen_values(key.path == "tree")
                    .allow_negative_numbers(key.path != "tree")
                    .action(action),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<C: Choice> FromArgMatches for Said<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut said = Said { scenario: Scenario::new(), choice: PhantomData };
        said.update_from_arg_matches(matches)?;
        Ok(said)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for key in Self::keys() {
            if let Some(values) = matches.get_many::<String>(key.path) {
                self.scenario
                    .set(key.path, values.cloned().collect())
                    .map_err(|error| clap::Error::raw(ErrorKind::ValueValidation, error))?;
            }
        }
        Ok(())
    }
}
