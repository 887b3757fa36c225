//! `catraca replay`: runs a trace again and says where it differs.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use catraca_draw::{DiagramOptions, space_time};
use catraca_sim::Time;
use catraca_trace::{Origin, Replay, Trace, replay};

use crate::Outcome;
use crate::failure::Failure;
use crate::output::PendingPicture;
use crate::table::grouped;

/// Runs a trace again on fresh nodes and says where it differs.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The trace, written by 'catraca sim --trace' or 'catraca check'.
    trace: PathBuf,
    /// Draws the space-time diagram, .svg or .png.
    #[arg(long, value_name = "FILE")]
    diagram: Option<PathBuf>,
    /// Draws only from this time (for a checker's trace: this step) on.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Draws only up to this time (or step).
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Prints every step in words.
    #[arg(long)]
    words: bool,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let trace = read(&self.trace)?;
        let replayed = replay(&trace).map_err(|error| of_file(&self.trace, &error))?;
        if let Some(path) = &self.diagram {
            let file = PendingPicture::create(path)?;
            let ticks = |text: &String| ticks(&trace, text);
            let from = self.from.as_ref().map(ticks).transpose()?;
            let to = self.to.as_ref().map(ticks).transpose()?;
            let options = DiagramOptions { from, to, ..DiagramOptions::default() };
            let picture = space_time(&trace, &options)
                .map_err(|error| Failure::input(format!("'{}' {error}", self.trace.display())))?;
            file.finish(&picture)?;
        }
        let mut out = std::io::stdout().lock();
        if self.words {
            print_words(&trace, &mut out)?;
        }
        print_summary(&replayed, &mut out)
    }
}

fn read(path: &Path) -> Result<Trace, Failure> {
    let file = File::open(path).map_err(|error| {
        Failure::input(format!("cannot read the trace '{}': {error}", path.display()))
    })?;
    Trace::read(BufReader::new(file)).map_err(|error| of_file(path, &error))
}

fn of_file(path: &Path, error: &catraca_trace::TraceError) -> Failure {
    Failure::input(format!("'{}' {error}", path.display()))
}

/// A time in the ticks of the trace.
fn ticks(trace: &Trace, text: &str) -> Result<u64, Failure> {
    match trace.header.origin {
        Origin::Sim => text.parse::<Time>().map(|time| time.0).map_err(Failure::input),
        Origin::Check => text
            .parse()
            .map_err(|_| Failure::input(format!("'{text}' is no step: give a whole number"))),
    }
}

fn print_words(trace: &Trace, out: &mut impl Write) -> Outcome {
    for event in &trace.events {
        match trace.header.origin {
            Origin::Sim => writeln!(out, "{:>12}  {event}", Time(event.at()).to_string())?,
            Origin::Check => writeln!(out, "{:>4}  {event}", event.at())?,
        }
    }
    Ok(())
}

fn print_summary(replayed: &Replay, out: &mut impl Write) -> Outcome {
    writeln!(
        out,
        "{} steps, {} messages, {} entries",
        grouped(replayed.steps as u64),
        grouped(replayed.messages as u64),
        grouped(replayed.entries as u64)
    )?;
    for (event, what) in &replayed.violations {
        writeln!(out, "violation at event {event}: {what}")?;
    }
    match &replayed.difference {
        Some(difference) => {
            writeln!(out, "differs at event {}:", difference.event)?;
            writeln!(out, "  trace:  {}", difference.recorded)?;
            writeln!(out, "  replay: {}", difference.replayed)?;
            return Err(Failure::Violation);
        }
        None => writeln!(out, "the replay does exactly what the trace says")?,
    }
    if replayed.violations.is_empty() { Ok(()) } else { Err(Failure::Violation) }
}
