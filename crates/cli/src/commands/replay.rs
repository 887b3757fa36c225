//! `catraca replay`: runs a trace again and says where it differs.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use catraca_draw::{DiagramOptions, space_time};
use catraca_player::Window;
use catraca_sim::Time;
use catraca_trace::{Origin, Replay, Trace, TraceError, replay};

use crate::Outcome;
use crate::failure::Failure;
use crate::output::{PendingPicture, Stdout, reason};
use crate::player::PendingPage;
use crate::table::counted;
use crate::trees::Trees;

const EXAMPLES: &str = "\
Examples:
  catraca replay run.trace
  catraca replay run.trace --words
  catraca replay run.trace --diagram run.svg --from 10 --to 20
  catraca replay run.trace --html run.html
  catraca replay run.trace --tree-diagram tree.svg --tree-at 1 --tree-at 2.5";

/// Runs a trace again on fresh nodes and says where it differs.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The trace, written by 'catraca sim --trace' or 'catraca check'.
    trace: PathBuf,
    /// Draws the space-time diagram, .svg, .png or .pdf.
    #[arg(long, value_name = "FILE")]
    diagram: Option<PathBuf>,
    /// Draws only from this time (for a checker's trace: this step) on.
    #[arg(long, value_name = "TIME", requires = "diagram", allow_negative_numbers = true)]
    from: Option<String>,
    /// Draws only up to this time (or step).
    #[arg(long, value_name = "TIME", requires = "diagram", allow_negative_numbers = true)]
    to: Option<String>,
    /// Draws who points to whom at the instants of --tree-at, .svg, .png or .pdf.
    #[arg(long, value_name = "FILE")]
    tree_diagram: Option<PathBuf>,
    /// An instant (for a checker's trace: a step) that --tree-diagram draws; may be given several
    /// times.
    #[arg(long, value_name = "TIME", requires = "tree_diagram", allow_negative_numbers = true)]
    tree_at: Vec<String>,
    /// Writes a page that plays the run step by step.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The page shows only from this time (for a checker's trace: this step) on.
    #[arg(long, value_name = "TIME", requires = "html", allow_negative_numbers = true)]
    html_from: Option<String>,
    /// The page shows only up to this time (or step).
    #[arg(long, value_name = "TIME", requires = "html", allow_negative_numbers = true)]
    html_to: Option<String>,
    /// Prints every step in words.
    #[arg(long)]
    words: bool,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let trace = read(&self.trace)?;
        let replayed = replay(&trace).map_err(|error| of_file(&self.trace, error))?;
        let ticks = |flag: &str, text: &Option<String>| {
            text.as_deref().map(|text| ticks(&trace, flag, text)).transpose()
        };
        if let Some(path) = &self.diagram {
            let file = PendingPicture::create(path)?;
            let (from, to) = (ticks("--from", &self.from)?, ticks("--to", &self.to)?);
            let options = DiagramOptions { from, to, ..DiagramOptions::default() };
            let picture = space_time(&trace, &options)
                .map_err(|error| Failure::input(format!("'{}' {error}", self.trace.display())))?;
            file.finish(&picture)?;
        }
        if let Some(path) = &self.tree_diagram {
            let instants = self.tree_at.iter().map(|text| self::ticks(&trace, "--tree-at", text));
            let trees = Trees::create(path, instants.collect::<Result<_, _>>()?)?;
            trees.finish(&trace, &format!("'{}'", self.trace.display()))?;
        }
        if let Some(path) = &self.html {
            let from = ticks("--html-from", &self.html_from)?.unwrap_or(0);
            let to = ticks("--html-to", &self.html_to)?.unwrap_or(u64::MAX);
            let page = PendingPage::create(path, trace.header.spec.nodes, Window { from, to })?;
            page.finish(&trace, &format!("'{}'", self.trace.display()))?;
        }
        let mut out = Stdout::lock();
        if self.words {
            print_words(&trace, &mut out)?;
        }
        print_summary(&trace, &replayed, &mut out)
    }
}

fn read(path: &Path) -> Result<Trace, Failure> {
    let file = File::open(path).map_err(|error| {
        Failure::input(format!("cannot read the trace '{}': {}", path.display(), reason(&error)))
    })?;
    Trace::read(BufReader::new(file)).map_err(|error| of_file(path, error))
}

fn of_file(path: &Path, error: TraceError) -> Failure {
    let path = path.display();
    match error {
        TraceError::Io(error) => {
            Failure::input(format!("cannot read the trace '{path}': {}", reason(&error)))
        }
        TraceError::Spec(error) => match Failure::from(error) {
            Failure::Input(message) => {
                Failure::input(format!("'{path}' describes no group: {message}"))
            }
            failure => failure,
        },
        error => Failure::input(format!("'{path}' {error}")),
    }
}

/// A time in the ticks of the trace.
fn ticks(trace: &Trace, flag: &str, text: &str) -> Result<u64, Failure> {
    let wrong = |what: String| Failure::input(format!("{flag}: {what}"));
    match trace.header.origin {
        Origin::Sim => text.parse::<Time>().map(|time| time.0).map_err(|e| wrong(e.to_string())),
        Origin::Check => {
            text.parse().map_err(|_| wrong(format!("'{text}' is no step: give a whole number")))
        }
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

fn print_summary(trace: &Trace, replayed: &Replay, out: &mut impl Write) -> Outcome {
    writeln!(
        out,
        "{}, {}, {}",
        counted(replayed.steps as u64, "step", "steps"),
        counted(replayed.messages as u64, "message", "messages"),
        counted(replayed.entries as u64, "entry", "entries")
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
    // What no single step shows, such as that a node waits for ever, only the header says.
    if let Some(violation) = &trace.header.violation {
        writeln!(out, "which is a violation of {violation}")?;
        return Err(Failure::Violation);
    }
    if replayed.violations.is_empty() { Ok(()) } else { Err(Failure::Violation) }
}
