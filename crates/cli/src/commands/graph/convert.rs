//! `catraca graph convert`: a trace in another format.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use catraca_topology::evolving::{EvolvingGraph, Format, write};

use super::trace::Trace;
use crate::failure::Failure;
use crate::output::{PendingFile, Stdout};
use crate::{Outcome, value};

/// Writes a trace in another format.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    trace: Trace,
    #[command(flatten)]
    target: Target,
}

/// Where a graph is written to, and how.
#[derive(clap::Args)]
pub(super) struct Target {
    /// The file to write [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The format to write: catraca, sociopatterns, csv or one.
    #[arg(long, value_name = "FORMAT", default_value = "catraca")]
    to: Format,
    /// Ends the graph with this instant; laps of a cycle are written out.
    #[arg(long, value_name = "T", allow_negative_numbers = true,
        value_parser = value::instant)]
    until: Option<u64>,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let source = self.trace.read()?;
        self.target.write(&source.graph)
    }
}

impl Target {
    pub(super) fn write(&self, graph: &EvolvingGraph) -> Outcome {
        let file = self.output.as_deref().map(PendingFile::create).transpose()?;
        let cut = match self.until {
            Some(last) => Some(
                graph
                    .until(last)
                    .map_err(|error| Failure::input(format!("--until: the graph {error}")))?,
            ),
            None => None,
        };
        let graph = cut.as_ref().unwrap_or(graph);
        match file {
            Some(mut file) => {
                let system = |error: io::Error| Failure::System(error.into());
                Text::new(&mut file).write(graph, self.to, system)?;
                file.finish()
            }
            None => {
                let mut out = BufWriter::new(Stdout::lock());
                Text::new(&mut out).write(graph, self.to, Failure::from)?;
                Ok(out.flush()?)
            }
        }
    }
}

/// Takes text to where bytes go. A large graph is never in memory as text.
struct Text<'a, W> {
    out: &'a mut W,
    error: Option<io::Error>,
}

impl<'a, W: Write> Text<'a, W> {
    fn new(out: &'a mut W) -> Self {
        Text { out, error: None }
    }

    fn write(
        mut self,
        graph: &EvolvingGraph,
        format: Format,
        failed: impl Fn(io::Error) -> Failure,
    ) -> Outcome {
        let written = write(graph, format, &mut self);
        match self.error {
            Some(error) => Err(failed(error)),
            None => written.map_err(|error| Failure::input(format!("--to: {error}"))),
        }
    }
}

impl<W: Write> fmt::Write for Text<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.error = Some(error);
            fmt::Error
        })
    }
}
