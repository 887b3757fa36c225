//! `catraca graph convert`: a trace in another format.

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
        value_parser = value::at_least(0u64))]
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
        let mut text = String::new();
        write(cut.as_ref().unwrap_or(graph), self.to, &mut text)
            .map_err(|error| Failure::input(format!("--to: {error}")))?;
        match file {
            Some(file) => file.finish_with(text.as_bytes()),
            None => {
                use std::io::Write;
                Ok(Stdout::lock().write_all(text.as_bytes())?)
            }
        }
    }
}
