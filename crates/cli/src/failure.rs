//! Why a command fails, and with which exit code.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use catraca_algorithms::SpecError;
use catraca_algorithms::registry::{self, ENTRIES};
use catraca_sim::{KEYS, ScenarioError};
use clap::error::{ContextKind, ErrorKind};

use crate::output::{is_unread, reason};
use crate::suggest::unknown;

/// The ways to fail. Each has its exit code; `catraca --help` lists them.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The system failed us.
    System(anyhow::Error),
    /// The input is wrong. One line that says what was wrong and what to do.
    Input(String),
    /// A violation was found. It has been printed already.
    Violation,
    /// No verdict. It has been printed already.
    GaveUp,
    /// Ctrl-C.
    Interrupted,
    /// Nobody reads what a command tells that does nothing else. This is its end, not a fault.
    Unread,
    /// A command with exit codes of its own has one, and something to say about it, or not.
    Own(u8, Option<String>),
}

impl Failure {
    pub(crate) fn input(message: impl ToString) -> Self {
        Failure::Input(message.to_string())
    }

    /// Says why on standard error and returns the code.
    pub(crate) fn report(self) -> ExitCode {
        let mut stderr = std::io::stderr().lock();
        // If standard error is closed there is nothing left to say it to.
        let (code, said) = match self {
            Failure::System(error) => (1, writeln!(stderr, "catraca: {error:#}")),
            Failure::Input(message) => (2, writeln!(stderr, "catraca: {message}")),
            Failure::Unread => (0, Ok(())),
            Failure::Violation => (3, Ok(())),
            Failure::GaveUp => (4, Ok(())),
            Failure::Own(code, None) => (code, Ok(())),
            Failure::Own(code, Some(message)) => (code, writeln!(stderr, "catraca: {message}")),
            Failure::Interrupted => (130, writeln!(stderr, "catraca: interrupted")),
        };
        said.ok();
        ExitCode::from(code)
    }
}

/// Errors of files are told with their place; what is left is standard output.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if is_unread(&error) {
            return Failure::Unread;
        }
        let what = format!("cannot write to standard output: {}", reason(&error));
        Failure::System(anyhow::Error::msg(what))
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        match error {
            SpecError::UnknownAlgorithm(name) => {
                let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
                Failure::Input(unknown("algorithm", &name, &names))
            }
            SpecError::UnknownMutant { algorithm, mutant } => {
                let mutants = registry::mutants(&algorithm);
                let names: Vec<&str> = mutants.iter().map(|mutant| mutant.name).collect();
                Failure::Input(unknown(&format!("mutant of {algorithm}"), &mutant, &names))
            }
            other => Failure::input(other),
        }
    }
}

impl Failure {
    /// What is wrong with a scenario. The place is the flag, for keys that `is_flag` knows, or
    /// else the key in `file`.
    pub(crate) fn of_scenario(
        error: ScenarioError,
        file: Option<&Path>,
        is_flag: impl Fn(&str) -> bool,
    ) -> Self {
        let in_file = |message: String| match file {
            Some(file) => Failure::Input(format!("{}: {message}", file.display())),
            None => Failure::Input(message),
        };
        match error {
            ScenarioError::Value { key, what } if is_flag(key) => {
                let flag = KEYS.iter().find(|known| known.path == key).map_or(key, |key| key.flag);
                Failure::Input(format!("--{flag}: {what}"))
            }
            // It may be the file or a flag that is wrong about the group: only one of them can
            // be blamed if the other said nothing.
            ScenarioError::Spec(error) => match Failure::from(error) {
                Failure::Input(message) if !GROUP.iter().any(|key| is_flag(key)) => {
                    in_file(message)
                }
                failure => failure,
            },
            ScenarioError::UnknownKey(key) => {
                let paths: Vec<&str> = KEYS.iter().map(|key| key.path).collect();
                in_file(unknown("key", &key, &paths))
            }
            other => in_file(other.to_string()),
        }
    }
}

/// The keys that describe the group.
const GROUP: [&str; 15] = [
    "algorithm",
    "nodes",
    "resources",
    "clusters",
    "proxies",
    "max-preempt",
    "k",
    "test-interval",
    "test-timeout",
    "news",
    "ack-timeout",
    "tree",
    "quorum",
    "mutant",
    "start",
];

/// Help and version go to standard output and succeed; wrong usage is wrong input. A wrong value
/// is told in one line; it brings its own remedy, so the usage is not repeated.
pub(crate) fn of_usage(error: &clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::ValueValidation
        && let (Some(argument), Some(cause)) = (error.get(ContextKind::InvalidArg), error.source())
    {
        let argument = argument.to_string();
        let flag = argument.split(' ').next().unwrap_or_default();
        return Failure::input(format!("{flag}: {cause}")).report();
    }
    match error.print() {
        Err(closed) if closed.kind() == std::io::ErrorKind::BrokenPipe => {}
        Err(error) => return Failure::from(error).report(),
        Ok(()) => {}
    }
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}
