//! What becomes the command: it waits at the gate, looks at the clock, and executes it.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::Command;

use catraca_client::{Time, clock};

use super::opened;
use crate::Outcome;
use crate::commands::lock::LOST;
use crate::failure::Failure;
use crate::output::reason;
use crate::service::NO_NODE;

/// The flags of the starter.
#[derive(clap::Args)]
pub(crate) struct Starter {
    /// Waits at this gate, and becomes the command.
    #[arg(long = "start", value_name = "GATE", requires = "command")]
    gate: Option<i32>,
    /// The command and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Starter {
    /// Becomes the command, or says why not; nothing if there is none to become.
    pub(crate) fn run(&self) -> Option<Outcome> {
        Some(Err(self.start(self.gate?)))
    }

    fn start(&self, gate: i32) -> Failure {
        let not_started = |why: &str| format!("the command was not started: {why}");
        let lost_at = match opened(gate).and_then(|gate| wait(BufReader::new(gate))) {
            Ok(Opening::Until(lost_at)) => lost_at,
            // 'catraca lock' says it.
            Ok(Opening::Late) => return Failure::Own(LOST, None),
            Ok(Opening::Shut) => {
                return Failure::Own(NO_NODE, Some(not_started("its guardian was killed")));
            }
            Err(error) => return Failure::Own(NO_NODE, Some(not_started(&reason(&error)))),
        };
        let Some((program, arguments)) = self.command.split_first() else {
            return Failure::input("there is no command to start");
        };
        let mut command = Command::new(program);
        command.args(arguments);
        // The last look. Whoever is stopped from here on is ended by the guardian.
        if lost_at <= clock::now() {
            return Failure::Own(LOST, Some(not_started("the lock could have been lost")));
        }
        not_run(&program.to_string_lossy(), &command.exec())
    }
}

/// What is heard at the gate instead of a time, when it is too late.
pub(super) const LATE: &str = "late";

/// What comes of waiting at the gate.
#[derive(Debug, PartialEq, Eq)]
enum Opening {
    /// The command may start, before then.
    Until(Time),
    Late,
    Shut,
}

fn wait(mut gate: impl BufRead) -> io::Result<Opening> {
    let mut line = String::new();
    gate.read_line(&mut line)?;
    Ok(match line.strip_suffix('\n') {
        Some(LATE) => Opening::Late,
        Some(time) => time.parse().map_or(Opening::Shut, |time| Opening::Until(Time(time))),
        None => Opening::Shut,
    })
}

fn not_run(program: &str, error: &io::Error) -> Failure {
    let (code, why) = match error.kind() {
        ErrorKind::NotFound => (127, "command not found".to_string()),
        kind => (126, kind.to_string()),
    };
    Failure::Own(code, Some(format!("{program}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_line_opens_the_gate() {
        let read = |text: &str| wait(text.as_bytes()).unwrap();
        assert_eq!(read("17\n"), Opening::Until(Time(17)));
        assert_eq!(read("late\n"), Opening::Late);
        for text in ["", "17", "late", "\n", "soon\n"] {
            assert_eq!(read(text), Opening::Shut, "{text:?}");
        }
    }
}
