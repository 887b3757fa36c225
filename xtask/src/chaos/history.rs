//! What a client has asked for and got, in its own words: a file of lines that only it writes.
//!
//! All processes of a run are on one machine and read one clock, so the times of different histories
//! can be compared. A line is the time in nanoseconds, the number of the request, and what happened.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::str::{FromStr, SplitWhitespace};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use catraca_client::{Time, clock};

/// When a durable hold ends by itself.
pub(crate) const NEVER: Time = Time(u64::MAX);

/// What stands for the client as a whole, where a request has its number.
pub(crate) const NO_REQUEST: u64 = u64::MAX;

/// What happened to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Places in these names were asked for.
    Asked { permits: u32, names: Vec<String> },
    /// All faults are over: this request has to be served.
    Insisted,
    /// They were granted, with a fence for each name, and are certain until then. A durable hold is
    /// granted again, with the same fences, when it is asked for again.
    Granted { until: Time, fences: Vec<u64> },
    /// The client is certain of them until another time from now on.
    Renewed { until: Time },
    /// The client was told that they are lost; it may rely on them until then.
    Lost { until: Time, why: String },
    /// The client does not use them any more, and is about to say so.
    Releasing,
    /// That was confirmed.
    Released,
    /// Nothing was granted.
    Refused { why: String },
    /// The client has done everything that it was to do.
    Done,
}

/// A line of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) at: Time,
    pub(crate) request: u64,
    pub(crate) event: Event,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.at.0, self.request)?;
        match &self.event {
            Event::Asked { permits, names } => write!(f, "asked {permits} {}", names.join(" ")),
            Event::Granted { until, fences } => {
                let fences: Vec<String> = fences.iter().map(u64::to_string).collect();
                write!(f, "granted {} {}", until.0, fences.join(" "))
            }
            Event::Renewed { until } => write!(f, "renewed {}", until.0),
            Event::Lost { until, why } => write!(f, "lost {} {why}", until.0),
            Event::Insisted => f.write_str("insisted"),
            Event::Releasing => f.write_str("releasing"),
            Event::Released => f.write_str("released"),
            Event::Refused { why } => write!(f, "refused {why}"),
            Event::Done => f.write_str("done"),
        }
    }
}

impl FromStr for Record {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> Result<Self> {
        let mut words = line.split_whitespace();
        let record = read(&mut words);
        record.with_context(|| format!("this is no line of a history: '{line}'"))
    }
}

fn read(words: &mut SplitWhitespace<'_>) -> Result<Record> {
    let at = Time(number(words)?);
    let request = number(words)?;
    let event = match words.next().ok_or_else(|| anyhow!("the line is cut off"))? {
        "asked" => {
            let permits = number(words)?;
            Event::Asked { permits, names: words.map(str::to_string).collect() }
        }
        "granted" => {
            let until = Time(number(words)?);
            let fences: Result<_, _> = words.map(str::parse).collect();
            Event::Granted { until, fences: fences? }
        }
        "renewed" => Event::Renewed { until: Time(number(words)?) },
        "lost" => Event::Lost { until: Time(number(words)?), why: rest(words) },
        "insisted" => Event::Insisted,
        "releasing" => Event::Releasing,
        "released" => Event::Released,
        "refused" => Event::Refused { why: rest(words) },
        "done" => Event::Done,
        other => bail!("'{other}' is nothing that happens"),
    };
    Ok(Record { at, request, event })
}

fn number<N: FromStr>(words: &mut SplitWhitespace<'_>) -> Result<N> {
    let word = words.next().ok_or_else(|| anyhow!("the line is cut off"))?;
    word.parse().map_err(|_| anyhow!("'{word}' is no number"))
}

fn rest(words: &mut SplitWhitespace<'_>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

/// What one process of a client has written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    pub(crate) client: String,
    /// The process was killed on purpose: it need not have come to an end.
    pub(crate) was_killed: bool,
    pub(crate) records: Vec<Record>,
}

impl History {
    /// A client that has not written anything yet.
    pub(crate) fn new(client: &str) -> Self {
        History { client: client.to_string(), ..History::default() }
    }

    /// Takes over what was written. What follows the last line break was not written to its end, by a
    /// process that was killed, or is just being written. Returns how many bytes were taken.
    pub(crate) fn extend(&mut self, written: &str) -> Result<usize> {
        let whole = written.rfind('\n').map_or(0, |last| last + 1);
        for line in written[..whole].lines() {
            let record = line.parse().with_context(|| format!("in the history of {}", self.client));
            self.records.push(record?);
        }
        Ok(whole)
    }
}

/// Writes a history. A line is in the file when the call returns.
pub(crate) struct Writer {
    file: Mutex<File>,
    requests: AtomicU64,
}

impl Writer {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create_new(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Writer { file: Mutex::new(file), requests: AtomicU64::new(0) })
    }

    /// Begins a request, and returns its number.
    pub(crate) fn asked(&self, permits: u32, names: &[String]) -> Result<u64> {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        self.happened(request, Event::Asked { permits, names: names.to_vec() })?;
        Ok(request)
    }

    /// Something happened to a request just now.
    pub(crate) fn happened(&self, request: u64, event: Event) -> Result<()> {
        self.happened_at(clock::now(), request, event)
    }

    /// Something happened to a request. What the event says of the client's certainty must have been
    /// looked up after `at`: so it held then.
    pub(crate) fn happened_at(&self, at: Time, request: u64, event: Event) -> Result<()> {
        let line = format!("{}\n", Record { at, request, event });
        let mut file = self.file.lock().map_err(|_| anyhow!("another task has panicked"))?;
        file.write_all(line.as_bytes()).context("cannot write the history")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_reads_as_it_was_written() {
        let names = vec!["a/1".to_string(), "a/2".to_string()];
        let why = "the node did not answer".to_string();
        let events = [
            Event::Asked { permits: 2, names },
            Event::Insisted,
            Event::Granted { until: Time(9), fences: vec![3, u64::MAX] },
            Event::Renewed { until: NEVER },
            Event::Lost { until: Time(7), why: why.clone() },
            Event::Releasing,
            Event::Released,
            Event::Refused { why },
            Event::Done,
        ];
        for event in events {
            let record = Record { at: Time(5), request: 8, event };
            assert_eq!(record.to_string().parse::<Record>().unwrap(), record);
        }
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for line in ["", "5", "5 1", "5 1 slept", "x 1 done", "5 1 renewed", "5 1 granted 8 x"] {
            assert!(line.parse::<Record>().is_err(), "{line}");
        }
    }

    #[test]
    fn a_line_that_was_not_written_to_its_end_is_left_for_later() {
        let mut history = History::new("c");
        let written = "5 1 asked 1 x\n6 1 granted 9";
        let taken = history.extend(written).unwrap();
        assert_eq!(history.records.len(), 1);
        assert_eq!(&written[taken..], "6 1 granted 9");
        assert!(history.extend("what is this\n").is_err());
    }
}
