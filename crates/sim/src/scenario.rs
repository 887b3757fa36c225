//! A run described in words: a TOML file, flags, or both.
//!
//! One table, [`KEYS`], lists everything that can be said. It drives the reader of files, the flags
//! of the command line and the command that reproduces a run, so none of them can fall behind.

mod file;
mod keys;
mod members;
mod network;
mod own;
mod parse;
mod values;
mod workload;

use std::collections::BTreeMap;

use catraca_algorithms::mutants::{Caught, Listed};

pub use file::{ReadError, read_text};
pub use keys::{KEYS, Key};
pub use own::Own;

/// What was said about a run: for each key of [`KEYS`], the texts it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scenario {
    values: BTreeMap<&'static str, Vec<String>>,
}

/// Why a scenario describes no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The file is not TOML.
    #[error("line {line}, column {column}: {message}")]
    Toml {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// A key that is not in the table.
    #[error("there is no key '{0}'")]
    UnknownKey(String),
    /// A value that is neither a text, a number, nor a list of these.
    #[error("'{0}' must be a text, a number or a list of them")]
    Kind(String),
    /// A value that cannot be.
    #[error("{key}: {what}")]
    Value {
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// A group that cannot be.
    #[error(transparent)]
    Spec(#[from] catraca_algorithms::SpecError),
    /// Members that cannot be.
    #[error(transparent)]
    Members(#[from] crate::members::SetupError),
}

impl Scenario {
    /// A scenario about which nothing has been said.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says one more thing; `path` is that of a key in [`KEYS`]. Replaces what was said before.
    pub fn set(&mut self, path: &str, values: Vec<String>) -> Result<(), ScenarioError> {
        let key = keys::find(path).ok_or_else(|| ScenarioError::UnknownKey(path.to_string()))?;
        if !key.list && values.len() != 1 {
            let what = "takes one value, not a list".to_string();
            return Err(ScenarioError::Value { key: key.path, what });
        }
        self.values.insert(key.path, values);
        Ok(())
    }

    /// The same with one more thing said. For scenarios that are made by the program itself.
    pub fn with(mut self, path: &'static str, value: impl ToString) -> Self {
        self.values.insert(path, vec![value.to_string()]);
        self
    }

    /// The same without what was said about `path`.
    pub fn without(mut self, path: &str) -> Self {
        self.values.remove(path);
        self
    }

    /// The same without the files that it writes.
    pub fn without_files(self) -> Self {
        let files = KEYS.iter().map(|key| key.path).filter(|path| path.starts_with("output."));
        files.fold(self, Self::without)
    }

    /// The run that catches `mutant`, a broken `algorithm`, if it takes a run to catch it.
    pub fn catching(algorithm: &str, mutant: &Listed) -> Option<Self> {
        let Caught::Simulated { scenario, .. } = mutant.caught else { return None };
        let group = Scenario::new().with("algorithm", algorithm).with("mutant", mutant.name);
        Some(scenario.iter().fold(group, |scenario, (path, value)| scenario.with(path, value)))
    }

    /// The value of `path`, if exactly one was given.
    pub fn value(&self, path: &str) -> Option<&str> {
        match self.values.get(path)?.as_slice() {
            [value] => Some(value),
            _ => None,
        }
    }

    /// Whether anything was said about `path`.
    pub fn says(&self, path: &str) -> bool {
        !self.values(path).is_empty()
    }

    /// Every value of `path`.
    pub fn values(&self, path: &str) -> &[String] {
        self.values.get(path).map_or(&[], Vec::as_slice)
    }

    /// Reads a TOML file. What it says about an experiment, in the table [`EXPERIMENT`], is left to
    /// the crate that runs experiments.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        let mut table = table(text)?;
        table.remove(EXPERIMENT);
        let mut scenario = Scenario::new();
        scenario.say(&table)?;
        Ok(scenario)
    }

    /// Says what the keys of `table` say. Replaces what was said of them before.
    pub fn say(&mut self, table: &toml::Table) -> Result<(), ScenarioError> {
        self.add_table("", table)
    }

    fn add_table(&mut self, prefix: &str, table: &toml::Table) -> Result<(), ScenarioError> {
        for (name, value) in table {
            let path = format!("{prefix}{name}");
            match value {
                toml::Value::Table(inner) => self.add_table(&format!("{path}."), inner)?,
                toml::Value::Array(items) => {
                    let texts = items.iter().map(|item| plain_text(&path, item));
                    self.set(&path, texts.collect::<Result<_, _>>()?)?;
                }
                plain => self.set(&path, vec![plain_text(&path, plain)?])?,
            }
        }
        Ok(())
    }

    /// Says all that `other` says. Replaces what was said of the same keys before.
    pub fn overlay(&mut self, other: &Scenario) {
        self.values.extend(other.values.clone());
    }

    /// The command that describes the same run by flags alone.
    pub fn command(&self) -> String {
        format!("catraca sim{}", self.flags())
    }

    /// What was said, as flags in the order of the table, each after a space, as a shell reads them.
    pub fn flags(&self) -> String {
        let mut flags = String::new();
        for key in KEYS {
            for value in self.values.get(key.path).into_iter().flatten() {
                flags.push_str(&format!(" --{} {}", key.flag, quoted(value)));
            }
        }
        flags
    }
}

/// The table of a scenario file that describes an experiment.
pub const EXPERIMENT: &str = "experiment";

/// The contents of a TOML file.
pub fn table(text: &str) -> Result<toml::Table, ScenarioError> {
    text.parse().map_err(|error| toml_error(text, &error))
}

fn plain_text(path: &str, value: &toml::Value) -> Result<String, ScenarioError> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        _ => Err(ScenarioError::Kind(path.to_string())),
    }
}

fn toml_error(text: &str, error: &toml::de::Error) -> ScenarioError {
    let before = &text[..error.span().map_or(0, |span| span.start).min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&character| character != '\n').count() + 1;
    let message = error.message().lines().collect::<Vec<_>>().join("; ");
    ScenarioError::Toml { line, column, message }
}

/// As a shell reads it back.
pub fn quoted(value: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_.,:/".contains(character);
    if !value.is_empty() && value.chars().all(plain) {
        value.to_string()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_its_command_say_the_same() {
        let text = "algorithm = 'ricart-agrawala'\nnodes = 3\n[workload]\nhold = 0.5\n\
                    [faults]\nevents = ['crash 1 at 5']\n";
        let scenario = Scenario::from_toml(text).unwrap();
        assert_eq!(
            scenario.command(),
            "catraca sim --algorithm ricart-agrawala --nodes 3 --hold 0.5 --fault 'crash 1 at 5'"
        );
    }

    #[test]
    fn a_run_without_its_files_is_the_same_run() {
        let scenario = Scenario::new().with("nodes", 3).with("run.seed", 2);
        let written = scenario.clone().with("output.json", "a.json").with("output.from", 2);
        assert_eq!(written.without_files(), scenario);
    }

    #[test]
    fn what_a_file_says_of_an_experiment_is_nothing_to_the_run() {
        let text = "nodes = 3\n[experiment]\ntitle = 'three nodes'\n";
        assert_eq!(Scenario::from_toml(text).unwrap().command(), "catraca sim --nodes 3");
    }

    #[test]
    fn broken_files_say_where() {
        let error = |text| Scenario::from_toml(text).unwrap_err().to_string();
        assert!(error("nodes = 3\nseed = = 4\n").starts_with("line 2, column 8: "));
        assert!(error("nodes = 3\nnodes = 4\n").starts_with("line 2"));
        assert_eq!(error("nodse = 3"), "there is no key 'nodse'");
        assert_eq!(error("[workload]\nhodl = 3"), "there is no key 'workload.hodl'");
        assert!(error("nodes = 1979-05-27").contains("must be a text, a number"));
        for text in ["nodes = []", "[output]\ntrace = ['a', 'b']"] {
            assert!(error(text).ends_with("takes one value, not a list"), "{text}");
        }
    }

    #[test]
    fn quoting_survives_a_shell() {
        assert_eq!(quoted("constant:1"), "constant:1");
        assert_eq!(quoted("hold 0->1"), "'hold 0->1'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
