//! Audit logs: what they say of locks on files.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use catraca_node::unix_millis_of;
use serde::Deserialize;

use crate::failure::Failure;
use crate::output::reason;

/// What happened to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// Before everything else at the same moment: it makes room.
    Ended,
    /// Asks the group, be it only whether it can be had at once.
    Asks,
    /// Is willing to wait for it, or for it and other files at once. Of several nothing is asked for until all of
    /// them are free.
    Waits,
    /// What it asked for did not come in its time.
    Refused,
    GivesUp,
    Granted,
    /// It is in the registry, and whoever asked for it is told.
    Confirmed,
    Stolen,
}

/// A line that is about a lock on a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record {
    /// In milliseconds since 1970.
    pub(super) at: u64,
    pub(super) what: What,
    pub(super) name: String,
    pub(super) who: String,
    pub(super) member: String,
    pub(super) team: Option<String>,
}

/// What the logs say, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) records: Vec<Record>,
    /// So many records were not written, as the logs themselves say.
    pub(super) missing: u64,
}

#[derive(Deserialize)]
struct Line {
    time: String,
    member: String,
    what: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    who: String,
    team: Option<String>,
    count: Option<u64>,
}

impl Log {
    pub(super) fn read(&mut self, path: &Path) -> Result<(), Failure> {
        let place = path.display();
        let cannot = |error: &std::io::Error| {
            Failure::input(format!("cannot read '{place}': {}", reason(error)))
        };
        let file = File::open(path).map_err(|error| cannot(&error))?;
        let mut lines = BufReader::new(file).split(b'\n').enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            let line = line.map_err(|error| cannot(&error))?;
            if line.is_empty() {
                continue;
            }
            match serde_json::from_slice(&line) {
                Ok(line) => self.take(line),
                // A node that is being written to, or was cut off, may leave the last line unfinished.
                Err(_) if lines.peek().is_none() && number > 0 => {}
                Err(_) => {
                    return Err(Failure::input(format!(
                        "'{place}' is no audit log: line {} is not one of its records",
                        number + 1
                    )));
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, line: Line) {
        let what = match line.what.as_str() {
            "waits" => What::Asks,
            "gives-up" => What::Refused,
            "git waits" => What::Waits,
            "git gives-up" => What::GivesUp,
            "granted" => What::Granted,
            "git locked" => What::Confirmed,
            "released" | "lost" | "forced" => What::Ended,
            "git steal" => What::Stolen,
            "dropped" => {
                self.missing += line.count.unwrap_or(0);
                return;
            }
            _ => return,
        };
        let Some(at) = unix_millis_of(&line.time).filter(|_| line.name.starts_with("git/")) else {
            return;
        };
        let Line { member, name, who, team, .. } = line;
        self.records.push(Record { at, what, name, who, member, team });
    }

    /// Logs of several members become one. A line that two files have counts once.
    pub(super) fn sort(&mut self) {
        self.records.sort();
        self.records.dedup();
    }
}
