//! Why a command fails, and with which exit code.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use catraca_algorithms::SpecError;
use catraca_algorithms::registry::{self, ENTRIES};
use catraca_sim::{KEYS, Key, ScenarioError};
use clap::error::{ContextKind, ErrorKind};

use crate::interrupt;
use crate::output::{is_unread, reason};
use crate::suggest::unknown;
use crate::table::cut;

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
            Failure::System(error) => (1, complain(&mut stderr, &format!("{error:#}"))),
            Failure::Input(message) => (2, complain(&mut stderr, &message)),
            Failure::Unread => (0, Ok(())),
            Failure::Violation => (3, Ok(())),
            Failure::GaveUp => (4, Ok(())),
            Failure::Own(code, None) => (code, Ok(())),
            Failure::Own(code, Some(message)) => (code, complain(&mut stderr, &message)),
            Failure::Interrupted => (130, interrupt::tell(&mut stderr)),
        };
        said.ok();
        ExitCode::from(code)
    }
}

fn complain(stderr: &mut impl Write, message: &str) -> std::io::Result<()> {
    writeln!(stderr, "catraca: {}", limited(&shortened(message)))
}

/// A message repeats what was wrong. Of what is very long, as the content of a file taken for a name,
/// the beginning says enough; the end has the remedy.
fn limited(message: &str) -> String {
    const MOST: usize = 1500;
    const KEPT: usize = 600;
    let characters = message.chars().count();
    if characters <= MOST {
        return message.to_string();
    }
    let beginning: String = message.chars().take(KEPT).collect();
    let end: String = message.chars().skip(characters - KEPT).collect();
    format!("{beginning} ... {end}")
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
            // be named if the other said nothing.
            ScenarioError::Spec(error) => match Failure::from(error) {
                Failure::Input(message)
                    if !KEYS.iter().any(|key| is_of_group(key) && is_flag(key.path)) =>
                {
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

/// The keys that describe the group are those outside of every section.
fn is_of_group(key: &Key) -> bool {
    !key.path.contains('.')
}

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
    let printed = match error.use_stderr() {
        true => write!(std::io::stderr(), "{}", shortened(&error.render().to_string())),
        false => error.print(),
    };
    match printed {
        Err(closed) if closed.kind() == std::io::ErrorKind::BrokenPipe => {}
        Err(error) => return Failure::from(error).report(),
        Ok(()) => {}
    }
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

/// Longer quotations are cut: whoever wrote them knows the rest.
const QUOTED: usize = 100;

/// The same message with long quotations cut. A quotation begins after a space or at the beginning,
/// and ends before anything but a letter or a digit.
fn shortened(message: &str) -> String {
    let mut text = String::new();
    let mut rest = message;
    while let Some(begin) = rest.find('\'') {
        let (before, quoted) = rest.split_at(begin + 1);
        text.push_str(before);
        rest = quoted;
        let is_first = begin == 0 || before[..begin].ends_with([' ', '(']);
        let is_end = |&(at, _): &(usize, &str)| {
            !quoted[at + 1..].starts_with(|next: char| next.is_alphanumeric())
        };
        let end = quoted.match_indices('\'').find(is_end).filter(|_| is_first);
        if let Some((end, _)) = end {
            text.push_str(&cut(&quoted[..end], QUOTED));
            text.push('\'');
            rest = &quoted[end + 1..];
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_quotations_are_cut() {
        let short = "there is no key 'nodse'. Did you mean 'nodes'? S2's table's 'it's' and 'open";
        assert_eq!(shortened(short), short);
        let long = format!("--tree: '{}' is no tree: say 'star'", "0,".repeat(300_000));
        let cut = format!("--tree: '{}..' is no tree: say 'star'", "0,".repeat(49));
        assert_eq!(shortened(&long), cut);
    }

    #[test]
    fn of_a_very_long_message_the_beginning_and_the_end_are_told() {
        let message = format!("{} is no number: give one such as 0.5", "é".repeat(100_000));
        let limited = limited(&message);
        assert!(limited.len() < 3_000, "{}", limited.len());
        assert!(limited.starts_with("éé") && limited.ends_with("give one such as 0.5"));
        assert_eq!(super::limited("a short one"), "a short one");
    }
}
