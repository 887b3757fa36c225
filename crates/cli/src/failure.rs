//! Why a command fails, and with which exit code.

use std::io::Write;
use std::process::ExitCode;

use catraca_algorithms::SpecError;
use catraca_algorithms::registry::{self, ENTRIES};
use catraca_sim::{KEYS, ScenarioError};

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
    /// Whoever read our output has gone away: not a failure, but there is nobody to talk to.
    NobodyReads,
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
            Failure::Violation => (3, Ok(())),
            Failure::GaveUp => (4, Ok(())),
            Failure::Interrupted => (130, writeln!(stderr, "catraca: interrupted")),
            Failure::NobodyReads => (0, Ok(())),
        };
        said.ok();
        ExitCode::from(code)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::NobodyReads,
            _ => Failure::System(error.into()),
        }
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

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        match error {
            ScenarioError::Spec(error) => error.into(),
            ScenarioError::UnknownKey(key) => {
                let paths: Vec<&str> = KEYS.iter().map(|key| key.path).collect();
                Failure::Input(unknown("key", &key, &paths))
            }
            other => Failure::input(other),
        }
    }
}

/// Help and version go to standard output and succeed; wrong usage is wrong input.
pub(crate) fn of_usage(error: &clap::Error) -> ExitCode {
    // A closed output is not worth a second error.
    error.print().ok();
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}
