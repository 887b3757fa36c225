//! The trace that a command is about.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use catraca_core::NodeId;
use catraca_topology::evolving::{
    EvolvingGraph, Format, Moment, Origin, Reader, Resolution, Skipped,
};

use super::times::{self, Times, Told};
use crate::failure::Failure;
use crate::output::reason;
use crate::{interrupt, value};

/// No line of a trace is longer. What is, is no trace, and is not read to its end.
const LONGEST_LINE: u64 = 16 << 20;

#[derive(clap::Args)]
pub(super) struct Trace {
    /// The file of contacts.
    #[arg(value_name = "TRACE")]
    path: PathBuf,
    /// Its format: catraca, sociopatterns, csv or one [default: recognised by its first line].
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// How long an instant is, in the file's unit of time (not in Catraca's own format).
    #[arg(long, value_name = "LENGTH", default_value = "1", allow_hyphen_values = true)]
    instant: Resolution,
    /// When instant 0 begins: 'first', with the first contact, or a time of the file such as 0 (not in
    /// Catraca's own format).
    #[arg(long, value_name = "TIME", default_value = "first", allow_hyphen_values = true)]
    origin: Origin,
    /// How instants are told: instants, seconds or dates [default: dates if the file has seconds since
    /// 1970, seconds if an instant is not one].
    #[arg(long, value_name = "HOW")]
    times: Option<Told>,
    /// Repeats the trace for ever, from instant 0 or with --repeat=T from there.
    #[arg(long, value_name = "T", num_args = 0..=1, default_missing_value = "0",
        require_equals = true, value_parser = value::instant)]
    repeat: Option<u64>,
}

/// A graph and where it came from.
pub(super) struct Source {
    pub(super) graph: EvolvingGraph,
    pub(super) format: Format,
    pub(super) lines: u64,
    pub(super) times: Times,
    pub(super) skipped: Skipped,
    /// How far its samples are apart, where that is longer than an instant.
    pub(super) step: Option<Moment>,
    path: PathBuf,
}

impl Trace {
    /// Reads the trace, and says so if contacts were passed over.
    pub(super) fn read(&self) -> Result<Source, Failure> {
        let source = self.read_quietly()?;
        times::warn(source.skipped);
        Ok(source)
    }

    /// The same for a command that says itself what was passed over.
    pub(super) fn read_quietly(&self) -> Result<Source, Failure> {
        let path = &self.path;
        let unreadable = |error: &std::io::Error| {
            let why = reason(error);
            Failure::input(format!("cannot read the trace '{}': {why}", path.display()))
        };
        let file = File::open(path).map_err(|error| unreadable(&error))?;
        let mut lines = BufReader::with_capacity(1 << 16, file);
        let mut reader = Reader::new(self.format, self.instant).beginning(self.origin);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
            if read.map_err(|error| unreadable(&error))? == 0 {
                break;
            }
            let at = |what: &str| {
                let number = reader.lines() + 1;
                Failure::input(format!("'{}', line {number}: {what}", path.display()))
            };
            if line.len() as u64 == LONGEST_LINE {
                return Err(at("it is longer than 16 MiB; this is no trace"));
            }
            let text = std::str::from_utf8(&line).ok().filter(|text| !text.contains('\0'));
            let text = text.ok_or_else(|| at("it is not text; this is no trace"))?;
            reader.line(text).map_err(|error| self.at_fault(&error))?;
            if reader.lines().is_multiple_of(1 << 16) && interrupt::requested() {
                return Err(Failure::Interrupted);
            }
        }
        let (lines, format) = (reader.lines(), reader.format().unwrap_or(Format::Catraca));
        let import = reader.import().map_err(|error| self.at_fault(&error))?;
        let (mut graph, skipped) = (import.graph, import.skipped);
        let times = Times::new(import.clock, self.times)?;
        let step = import.step.filter(|step| *step > self.instant.length());
        if let Some(cycle) = self.repeat {
            let repeated = graph.repeated(cycle);
            graph =
                repeated.map_err(|error| Failure::input(format!("--repeat: the trace {error}")))?;
        }
        Ok(Source { graph, format, lines, times, skipped, step, path: path.clone() })
    }

    fn at_fault(&self, error: &catraca_topology::evolving::LineError) -> Failure {
        let path = self.path.display();
        Failure::input(format!("'{path}', line {}: {}", error.line, error.fault))
    }
}

impl Source {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file's name, for titles.
    pub(super) fn title(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// The node that is called `name`; `what` is the flag or argument that says so.
    pub(super) fn node(&self, what: &str, name: &str) -> Result<NodeId, Failure> {
        self.graph.node(name).ok_or_else(|| {
            let names = self.graph.names();
            let shown: Vec<&str> = names.iter().take(8).map(String::as_str).collect();
            let more = if names.len() > shown.len() { ", ..." } else { "" };
            Failure::input(format!(
                "{what}: there is no node '{name}' in '{}'; its {} nodes are {}{more}",
                self.path.display(),
                names.len(),
                shown.join(", ")
            ))
        })
    }

    /// The same for several, each once, in ascending order; all nodes if none is named.
    pub(super) fn nodes(&self, what: &str, names: &[String]) -> Result<Vec<NodeId>, Failure> {
        if names.is_empty() {
            return Ok(NodeId::all(self.graph.nodes()).collect());
        }
        let nodes = names.iter().map(|name| self.node(what, name));
        let mut nodes = nodes.collect::<Result<Vec<NodeId>, Failure>>()?;
        nodes.sort_unstable();
        nodes.dedup();
        Ok(nodes)
    }
}
