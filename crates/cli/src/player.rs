//! The page that plays a run, as a file.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use catraca_player::{MOST_STEPS, PlayerError, Rest, Window, check_nodes, page, record};
use catraca_sim::{Time, quoted};
use catraca_trace::{Origin, Trace};

use crate::Outcome;
use crate::failure::Failure;
use crate::output::PendingFile;

/// The flags that choose a part.
const PARTS: [&str; 2] = ["--html-from", "--html-to"];

/// A page that is written when the run is over.
pub(crate) struct PendingPage {
    file: PendingFile,
    window: Window,
}

impl PendingPage {
    /// Fails at once if the place cannot be written to or the group cannot be shown.
    pub(crate) fn create(path: &Path, nodes: u32, window: Window) -> Result<Self, Failure> {
        check_nodes(nodes).map_err(|error| refused("the run", &error))?;
        Ok(PendingPage { file: PendingFile::create(path)?, window })
    }

    /// Whether an event at this time is on it.
    pub(crate) fn shows(&self, at: u64) -> bool {
        self.window.shows(at)
    }

    /// Writes the page of a trace, which a message calls `what`.
    pub(crate) fn finish(self, trace: &Trace, what: &str) -> Outcome {
        let mut recording = record(trace, self.window).map_err(|error| refused(what, &error))?;
        if recording.is_empty() {
            return Err(refused(what, &PlayerError::Empty));
        }
        if let Some(Rest { next, is_wrong }) = recording.rest() {
            let time = |ticks: u64| match trace.header.origin {
                Origin::Sim => Time(ticks).to_string(),
                Origin::Check => ticks.to_string(),
            };
            let shows = format!("the first {MOST_STEPS} steps");
            let notice = cut(&shows, [time(next.from), time(next.to)], is_wrong);
            recording.note(notice);
        }
        let page = page(&recording).map_err(|error| Failure::System(error.into()))?;
        self.file.finish_with(page.as_bytes())
    }
}

/// Why there is no page.
pub(crate) fn refused(what: &str, error: &PlayerError) -> Failure {
    let flags = match error {
        PlayerError::Empty => " with --html-from and --html-to",
        _ => "",
    };
    Failure::input(format!("{what} {error}{flags}"))
}

/// Says on standard error that a page shows only a part, and how to see the next one. Returns what the page says of
/// it.
pub(crate) fn cut(shows: &str, next: [String; 2], is_wrong: bool) -> String {
    let wrong = if is_wrong { " What is wrong with the run comes later." } else { "" };
    let command = again(std::env::args_os().skip(1), &next);
    let notice = format!(
        "This page shows {shows} of the run; more do not fit.{wrong} The next part: {command}"
    );
    writeln!(std::io::stderr(), "catraca: {}{}", notice[..1].to_lowercase(), &notice[1..]).ok();
    notice
}

/// The command that was given, for another part.
fn again(arguments: impl Iterator<Item = OsString>, part: &[String; 2]) -> String {
    let mut command = without(arguments, &PARTS);
    for (flag, value) in PARTS.iter().zip(part) {
        command.push_str(&format!(" {flag} {value}"));
    }
    command
}

/// The command with these arguments, but for some flags, each of which has a value.
fn without(arguments: impl Iterator<Item = OsString>, flags: &[&str]) -> String {
    let mut words = vec!["catraca".to_string()];
    let mut is_value = false;
    for argument in arguments {
        let argument = argument.to_string_lossy();
        let is_flag = flags.contains(&argument.as_ref());
        let is_whole = flags.iter().any(|flag| argument.starts_with(&format!("{flag}=")));
        if !std::mem::replace(&mut is_value, is_flag) && !is_flag && !is_whole {
            words.push(quoted(&argument));
        }
    }
    words.join(" ")
}

/// The command that was given, without the files that it writes.
pub(crate) fn given_without(flags: &[&str]) -> String {
    without(std::env::args_os().skip(1), flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_another_part_is_the_one_that_was_given_with_other_ends() {
        let given = "sim --fault|crash 1 at 5|--html-from|1.5|--html|run.html|--html-to=9";
        let given = given.replace("sim --fault", "sim|--fault");
        let words = given.split('|').map(OsString::from);
        assert_eq!(
            again(words, &["7".to_string(), "8.25".to_string()]),
            "catraca sim --fault 'crash 1 at 5' --html run.html --html-from 7 --html-to 8.25"
        );
    }
}
