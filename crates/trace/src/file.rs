//! The file format: JSON lines, the header first.

use std::io::{self, BufRead, Read, Write};

use catraca_algorithms::{Spec, SpecError};
use serde::{Deserialize, Serialize};

use crate::record::Event;

/// The version of the format that this crate writes, and the only one that it reads.
pub const VERSION: u32 = 1;

/// The most events that are read: a trace is held in memory, and so many have about a gigabyte.
const MAX_EVENTS: usize = 2_000_000;

/// No line is longer. What has one is no trace, and is not read to its end.
const LONGEST_LINE: u64 = 16 << 20;

/// Who wrote a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The simulator: `at` is time.
    Sim,
    /// The checker: `at` counts steps.
    Check,
}

/// The first line of a trace: everything that is needed to build the same group again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The format's version. Its name marks the file as a trace.
    #[serde(rename = "catraca-trace")]
    pub version: u32,
    /// Who wrote it.
    pub origin: Origin,
    /// The group.
    pub spec: Spec,
    /// How many ticks of `at` are one unit of time.
    pub ticks_per_unit: u64,
    /// What the run showed, if it showed a violation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violation: Option<String>,
}

impl Header {
    /// The header of a run without a violation.
    pub fn new(origin: Origin, spec: Spec, ticks_per_unit: u64) -> Self {
        Header { version: VERSION, origin, spec, ticks_per_unit, violation: None }
    }
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The group and the origin.
    pub header: Header,
    /// What happened, in order.
    pub events: Vec<Event>,
}

/// Why a trace cannot be read or run again.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file is empty.
    #[error("is empty: a trace begins with a header line")]
    Empty,
    /// The first line is no header.
    #[error(
        "is no trace: its first line is not a header that 'catraca sim --trace' or 'catraca check' writes ({0})"
    )]
    NoTrace(serde_json::Error),
    /// Another version.
    #[error(
        "is a trace of version {0}, and this program reads version {VERSION}; write it again with this program"
    )]
    Version(u64),
    /// A line is broken.
    #[error(
        "is cut off or changed: line {line} is no event ({}); write it again",
        without_line(cause)
    )]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// More events than are read.
    #[error("has more than {MAX_EVENTS} events; record a shorter run")]
    TooLong,
    /// The header describes no group.
    #[error("describes no group: {0}")]
    Spec(#[from] SpecError),
    /// A step names a node that does not exist, or a message that its algorithm does not have.
    #[error("event {event} cannot be run: {what}")]
    Event {
        /// Counted from 1.
        event: usize,
        /// What is wrong with it.
        what: String,
    },
}

impl Trace {
    /// Reads a trace.
    pub fn read(mut input: impl BufRead) -> Result<Self, TraceError> {
        let mut line = String::new();
        read_line(&mut input, &mut line, TraceError::NoTrace)?;
        // Some editors mark a file as UTF-8 at its beginning.
        let first = line.trim_start_matches('\u{feff}');
        if first.trim().is_empty() {
            return Err(TraceError::Empty);
        }
        let header = read_header(first)?;
        let mut events = Vec::new();
        loop {
            let broken = |cause| TraceError::Line { line: events.len() + 2, cause };
            if !read_line(&mut input, &mut line, broken)? {
                return Ok(Trace { header, events });
            }
            if events.len() == MAX_EVENTS {
                return Err(TraceError::TooLong);
            }
            let event = serde_json::from_str(&line).map_err(broken)?;
            events.push(event);
        }
    }

    /// Writes the trace.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut writer = Writer::new(out, &self.header)?;
        for event in &self.events {
            writer.event(event)?;
        }
        writer.finish().map(drop)
    }
}

/// Reads the next line; false at the end. What is no text, or has no end, is `broken`.
fn read_line(
    input: &mut impl BufRead,
    line: &mut String,
    broken: impl Fn(serde_json::Error) -> TraceError,
) -> Result<bool, TraceError> {
    let broken = |what: &str| broken(serde::de::Error::custom(what));
    line.clear();
    let read = input.take(LONGEST_LINE).read_line(line).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => broken("not text"),
        _ => TraceError::Io(error),
    })?;
    match read as u64 {
        LONGEST_LINE => Err(broken("it is longer than 16 MiB")),
        read => Ok(read > 0),
    }
}

/// Every line is read by itself, so the line that the reader names is always the first.
fn without_line(cause: &serde_json::Error) -> String {
    cause.to_string().replace(" at line 1 column ", " at column ")
}

/// Looks at the version before anything else, so that a trace of another version says so.
fn read_header(line: &str) -> Result<Header, TraceError> {
    #[derive(Deserialize)]
    struct Marker {
        #[serde(rename = "catraca-trace")]
        version: u64,
    }
    let marker: Marker = serde_json::from_str(line).map_err(TraceError::NoTrace)?;
    if marker.version != u64::from(VERSION) {
        return Err(TraceError::Version(marker.version));
    }
    serde_json::from_str(line).map_err(TraceError::NoTrace)
}

/// Writes a trace as it happens.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    pub fn new(mut out: W, header: &Header) -> io::Result<Self> {
        serde_json::to_writer(&mut out, header)?;
        out.write_all(b"\n")?;
        Ok(Writer { out })
    }

    /// Writes one event.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, event)?;
        self.out.write_all(b"\n")
    }

    /// Flushes everything and gives the output back.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::{Claim, Fence, Input, NodeId};

    use super::*;
    use crate::record::{Outcome, Step};

    fn sample() -> Trace {
        let step = Step {
            at: 3,
            node: NodeId(0),
            input: Input::Request(Claim::single()),
            delivers: None,
            outcomes: vec![Outcome::Granted(Fence(1))],
        };
        let header = Header::new(Origin::Check, Spec::new("ricart-agrawala", 1), 1);
        Trace { header, events: vec![Event::Step(step), Event::Crash { at: 4, node: NodeId(0) }] }
    }

    fn error_of(text: &str) -> String {
        Trace::read(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_trace_reads_back_as_it_was_written() {
        let mut file = Vec::new();
        sample().write(&mut file).unwrap();
        assert_eq!(Trace::read(file.as_slice()).unwrap(), sample());
        // An editor may have marked it as UTF-8.
        let marked = ["\u{feff}".as_bytes(), &file].concat();
        assert_eq!(Trace::read(marked.as_slice()).unwrap(), sample());
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        assert!(error_of("").contains("is empty"));
        assert!(error_of("hello\n").contains("is no trace"));
        let endless = io::BufReader::new(io::repeat(b' '));
        let error = Trace::read(endless).unwrap_err().to_string();
        assert!(error.contains("is no trace") && error.contains("longer than 16 MiB"), "{error}");
        assert!(error_of("{\"catraca-trace\":7}\n").contains("version 7"));
        assert!(
            Trace::read(&[0xff, 0xfe, b'\n'][..]).unwrap_err().to_string().contains("no trace")
        );
        let mut file = Vec::new();
        sample().write(&mut file).unwrap();
        file.extend(b"{\"step\":");
        assert!(error_of(&String::from_utf8(file).unwrap()).contains("line 4 is no event"));
    }
}
