//! `catraca bench`: how fast the node is, beside what the machine itself can do.
//!
//! Every figure is measured next to a raw exchange of 32 bytes over TCP between two processes, in
//! the same run, because machines are shared and noisy: the ratio says more than the time.

mod beside;
mod changes;
mod child;
mod group;
mod local;
pub(crate) mod peer;
mod ping;

use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::failure::Failure;
use crate::output::Stdout;
use crate::table::{Align, Table};
use crate::{Outcome, interrupt};

/// Measures the node beside what the machine itself can do
#[derive(clap::Args)]
#[command(after_help = "The goals are ratios: c is one way of 32 bytes over TCP between two \
    processes, measured in the same run. Pinned rows run every process on one core.\n\n\
    With --beside, both builds are measured in turns, five times each, and the middle of each figure is \
    printed. A ratio above 1 is a larger figure of this build: better for a rate, worse for a time or \
    for bytes.")]
pub(crate) struct Arguments {
    /// How long each figure is measured, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    seconds: f64,
    /// Another build of catraca, measured in turns with this one: its figures are printed beside
    #[arg(long, value_name = "PATH")]
    beside: Option<PathBuf>,
    /// Measures what a change of the group costs whoever waits, and how many durable grants there are,
    /// instead
    #[arg(long, conflicts_with = "beside")]
    changes: bool,
}

/// What can be measured at all takes so long, in seconds.
const SHORTEST: f64 = 0.1;

/// How soon Ctrl-C is noticed.
const LOOK: Duration = Duration::from_millis(20);
/// How long a measurement may then take to put its files in order.
const FAREWELL: Duration = Duration::from_millis(500);

/// Measures for so long.
type Measure = fn(Duration) -> anyhow::Result<Vec<Row>>;

/// One figure beside its goal.
struct Row {
    what: String,
    figure: String,
    goal: String,
    /// Whether it is as good as it should be, if there is a goal.
    met: Option<bool>,
}

impl Row {
    fn new(what: impl Into<String>, figure: String, goal: String, met: bool) -> Self {
        Row { what: what.into(), figure, goal, met: Some(met) }
    }

    /// A figure that others are compared with.
    fn plain(what: impl Into<String>, figure: String) -> Self {
        Row { what: what.into(), figure, goal: String::new(), met: None }
    }
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        if !(SHORTEST..=600.0).contains(&self.seconds) {
            let what = "--seconds: a figure is measured for 0.1 to 600 seconds";
            return Err(Failure::input(what));
        }
        if let Some(other) = &self.beside {
            return beside::run(other, self.seconds);
        }
        let time = Duration::from_secs_f64(self.seconds);
        let mut rows = Vec::new();
        let steady: &[Measure] =
            &[local::one_lock, local::many_locks, group::hand_over, group::crowd, group::memory];
        let measures = if self.changes { &[changes::measure as Measure] } else { steady };
        for measure in measures {
            rows.extend(unless_interrupted(*measure, time)?);
        }
        let mut table = Table::new(&[
            ("what", Align::Left),
            ("measured", Align::Right),
            ("goal", Align::Right),
            ("", Align::Left),
        ]);
        for Row { what, figure, goal, met } in rows {
            let verdict = met.map_or("", |met| if met { "met" } else { "missed" });
            table.row(vec![what, figure, goal, verdict.to_string()]);
        }
        let mut out = Stdout::lock();
        for line in table.lines() {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

/// Measures, until somebody asks us to end. Then the processes that take part end at once, and with them the
/// measurement, which takes its files away; what it does in this process ends with it.
fn unless_interrupted(measure: Measure, time: Duration) -> Result<Vec<Row>, Failure> {
    let (sender, measured) = mpsc::channel();
    std::thread::spawn(move || sender.send(measure(time)));
    loop {
        match measured.recv_timeout(LOOK) {
            Ok(rows) if !interrupt::requested() => return rows.map_err(Failure::System),
            Err(RecvTimeoutError::Timeout) if !interrupt::requested() => {}
            Ok(_) => return Err(Failure::Interrupted),
            Err(RecvTimeoutError::Timeout) => {
                child::end_all();
                measured.recv_timeout(FAREWELL).ok();
                return Err(Failure::Interrupted);
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::System(anyhow::Error::msg("the measurement has panicked")));
            }
        }
    }
}

/// The middle one.
fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// Nanoseconds, as people read them.
fn nanos(value: f64) -> String {
    match value {
        value if value < 1e4 => format!("{value:.0} ns"),
        value if value < 1e7 => format!("{:.1} us", value / 1e3),
        value => format!("{:.1} ms", value / 1e6),
    }
}
