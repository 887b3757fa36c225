//! `catraca graph draw`: pictures of a trace.

use std::path::PathBuf;

use catraca_core::Phase;
use catraca_draw::{
    ContactChart, Picture, StripNode, StripPanel, check_strip_size, contact_chart, strip,
};

use super::trace::{Source, Trace};
use crate::failure::Failure;
use crate::output::PendingPicture;
use crate::{Outcome, value};

/// More instants than this are not drawn side by side.
const MOST_PANELS: u64 = 64;

/// Draws a trace: as snapshots side by side, or as a chart with a line per node. 'catraca graph run
/// --strip FILE' draws the states of a run too.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    trace: Trace,
    /// The picture, .svg, .png or .pdf.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A line per node with its contacts over time.
    #[arg(long)]
    chart: bool,
    /// The first instant [default: that of the first contact].
    #[arg(long, value_name = "T", allow_negative_numbers = true,
        value_parser = value::instant)]
    from: Option<u64>,
    /// The last instant [default: that of the last contact, or two laps of a cycle].
    #[arg(long, value_name = "T", allow_negative_numbers = true,
        value_parser = value::instant)]
    to: Option<u64>,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let file = PendingPicture::create(&self.file)?;
        let source = self.trace.read()?;
        let graph = &source.graph;
        let from = self.from.unwrap_or(graph.contacts().first().map_or(0, |contact| contact.from));
        let two_laps = graph.period().map_or(0, |period| period.saturating_mul(2) - 1);
        let to = self.to.unwrap_or(match graph.cycle() {
            Some(cycle) => cycle + two_laps,
            None => graph.contacts().iter().map(|contact| contact.to).max().unwrap_or(0),
        });
        if to < from {
            return Err(Failure::input(
                "--from: the picture ends before it begins; put the smaller instant first",
            ));
        }
        let picture = if self.chart {
            let (title, axis) = (source.title(), source.times.axis());
            let chart = ContactChart { title, graph, from, to, axis, journeys: Vec::new() };
            contact_chart(&chart).map_err(|error| Failure::input(format!("the trace {error}")))?
        } else {
            snapshots(&source, from, to)?
        };
        file.finish(&picture)
    }
}

fn snapshots(source: &Source, from: u64, to: u64) -> Result<Picture, Failure> {
    let graph = &source.graph;
    let too_large = |error| Failure::input(format!("the trace {error}, or draw a --chart"));
    if to - from >= MOST_PANELS {
        return Err(Failure::input(format!(
            "the picture would show {} instants, more than {MOST_PANELS}; choose some with --from and --to, \
             or draw a --chart",
            to - from + 1
        )));
    }
    check_strip_size(graph.nodes()).map_err(too_large)?;
    let idle = StripNode { phase: Phase::Idle, has_token: false, pending: Vec::new() };
    let panels: Vec<StripPanel> = (from..=to)
        .map(|at| {
            let local = graph.local(at);
            let present = graph.contacts().iter().filter(|contact| contact.is_at(local));
            StripPanel {
                at,
                edges: present.map(|contact| (contact.a, contact.b)).collect(),
                nodes: vec![idle.clone(); graph.nodes() as usize],
            }
        })
        .collect();
    strip(&source.title(), graph.names(), &panels).map_err(too_large)
}
