//! `catraca graph run`: mutual exclusion on an evolving graph.

use std::io::Write;
use std::path::PathBuf;

use catraca_algorithms::relabelling::ENTRIES;
use catraca_draw::{
    Axis, Chart, DrawError, Picture, Series, StripNode, StripPanel, chart_column, check_strip_size,
    strip,
};
use catraca_sim::evolving::{End, Hooks, Report, Setup, Snapshot, run_observed};

use super::animation::PageFlags;
use super::record::Record;
use super::trace::{Source, Trace};
use super::words;
use super::workload::{Flags, at_fault};
use crate::document::{self, Format};
use crate::failure::Failure;
use crate::output::{PendingFile, PendingPicture, Stdout};
use crate::player::given_without;
use crate::table::{Align, Table, bytes, counted, grouped, maybe, number};
use crate::{Outcome, interrupt};

/// Snapshots are kept for a picture of at most so many instants.
const MOST_SNAPSHOTS: usize = 65;

/// Runs mutual exclusion on an evolving graph: who is served, how fast, and who waits for ever.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    trace: Trace,
    /// Which algorithms, separated by commas [default: all for evolving graphs].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    algorithm: Vec<String>,
    #[command(flatten)]
    flags: Flags,
    /// Draws the run instant by instant, .svg, .png or .pdf (one algorithm).
    #[arg(long, value_name = "FILE")]
    strip: Option<PathBuf>,
    /// Draws the size of labels over time, .svg, .png or .pdf.
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    #[command(flatten)]
    animation: PageFlags,
    /// Writes the figures and every entry as a JSON document that says what is in it.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let picture =
            |path: &Option<PathBuf>| path.as_deref().map(PendingPicture::create).transpose();
        let (strip, labels) = (picture(&self.strip)?, picture(&self.labels)?);
        let json = self.json.as_deref().map(PendingFile::create).transpose()?;
        let animation = self.animation.create()?;
        let names = self.names()?;
        let source = self.trace.read()?;
        let setup = self.flags.setup(&source)?;
        if strip.is_some() {
            check_strip_size(source.graph.nodes()).map_err(undrawn)?;
        }
        if let Some(animation) = &animation {
            animation.check(&source)?;
        }
        let mut snapshots = Vec::new();
        let mut reports = Vec::new();
        for name in &names {
            let wanted = strip.is_some().then_some(&mut snapshots);
            reports.push(observed(name, &setup, wanted)?);
        }
        if let Some(file) = strip {
            file.finish(&draw_strip(&source, &names[0], &snapshots)?)?;
        }
        if let Some(animation) = animation {
            animation.finish(&source, &names[0], &setup, &reports[0])?;
        }
        if let Some(file) = labels {
            file.finish(&draw_labels(&source, &reports))?;
        }
        if let Some(file) = json {
            let command = given_without(&["--json", "--strip", "--labels", "--html"]);
            let record = Record::new(&source, &setup, &reports);
            document::write(file, Format::GraphRun, &command, record)?;
        }
        print(&source, &reports, &mut Stdout::lock())
    }

    fn names(&self) -> Result<Vec<String>, Failure> {
        let names: Vec<String> = match self.algorithm.is_empty() {
            false => self.algorithm.clone(),
            true => ENTRIES.iter().map(|entry| entry.name.to_string()).collect(),
        };
        let is_one = names.len() == 1;
        if self.strip.is_some() && !is_one {
            return Err(Failure::input("--strip draws one run; say which with --algorithm"));
        }
        if self.animation.is_given() && !is_one {
            return Err(Failure::input("--html plays one run; say which with --algorithm"));
        }
        Ok(names)
    }
}

/// Runs one algorithm and keeps its first instants, if they are wanted.
pub(super) fn observed(
    name: &str,
    setup: &Setup<'_>,
    snapshots: Option<&mut Vec<Snapshot>>,
) -> Result<Report, Failure> {
    let stop = interrupt::flag();
    let report = match snapshots {
        None => run_observed(name, setup, Hooks { observer: None, stop: Some(&stop) }),
        Some(kept) => {
            // What does not fit into a picture is not worth observing.
            let until = Some(setup.until.unwrap_or(u64::MAX).min(MOST_SNAPSHOTS as u64 - 1));
            let short = Setup { until, ..setup.clone() };
            let mut observer = |snapshot| kept.push(snapshot);
            let hooks = Hooks { observer: Some(&mut observer), stop: Some(&stop) };
            run_observed(name, &short, hooks).map_err(at_fault)?;
            run_observed(name, setup, Hooks { observer: None, stop: Some(&stop) })
        }
    };
    let report = report.map_err(at_fault)?;
    if report.end == End::Interrupted { Err(Failure::Interrupted) } else { Ok(report) }
}

pub(super) fn draw_strip(
    source: &Source,
    algorithm: &str,
    snapshots: &[Snapshot],
) -> Result<Picture, Failure> {
    let title = format!("{algorithm} on {}", source.title());
    strip_of(&title, source.graph.names(), snapshots)
}

pub(super) fn strip_of(
    title: &str,
    names: &[String],
    snapshots: &[Snapshot],
) -> Result<Picture, Failure> {
    let panel = |snapshot: &Snapshot| StripPanel {
        at: snapshot.at,
        edges: snapshot.edges.clone(),
        nodes: snapshot
            .nodes
            .iter()
            .map(|node| StripNode {
                phase: node.phase,
                has_token: node.has_token,
                pending: node.pending.iter().map(|one| (one.requester, one.answers)).collect(),
            })
            .collect(),
    };
    let panels: Vec<StripPanel> = snapshots.iter().map(panel).collect();
    strip(title, names, &panels).map_err(undrawn)
}

fn undrawn(error: DrawError) -> Failure {
    let remedy = match error {
        DrawError::Instants { .. } => "; --until T takes the beginning",
        _ => "",
    };
    Failure::input(format!("the picture {error}{remedy}"))
}

/// The largest label over time, and what it would be if nothing were collected.
fn draw_labels(source: &Source, reports: &[Report]) -> Picture {
    let series = reports.iter().flat_map(|report| {
        let line = |name: String, of: fn(&(u64, u64, u64)) -> u64| Series {
            name,
            points: thinned(&report.labels)
                .map(|point| (point.0 as f64, of(&point) as f64))
                .collect(),
            ..Series::default()
        };
        [
            line(report.algorithm.clone(), |point| point.1),
            line(format!("{}, nothing collected", report.algorithm), |point| point.2),
        ]
    });
    chart_column(&[Chart {
        title: format!("The largest label on {}", source.title()),
        x: Axis::linear(source.times.axis()),
        y: Axis::logarithmic("bytes"),
        series: series.collect(),
        ..Chart::default()
    }])
}

/// The largest of each stretch, in about as many stretches as a chart has room for markers.
fn thinned(points: &[(u64, u64, u64)]) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
    points.chunks(points.len().div_ceil(40).max(1)).filter_map(|stretch| {
        let &(at, _, uncollected) = stretch.last()?;
        let largest = stretch.iter().map(|point| point.1).max()?;
        Some((at, largest, uncollected))
    })
}

fn print(source: &Source, reports: &[Report], out: &mut impl Write) -> Outcome {
    writeln!(out, "{}: {}", source.title(), words::size(&source.graph))?;
    if let Some(beginning) = source.times.beginning().filter(|_| source.times.says_more()) {
        writeln!(out, "{beginning}")?;
    }
    writeln!(out)?;
    let mut table = Table::new(&[
        ("algorithm", Align::Left),
        ("requests", Align::Right),
        ("entries", Align::Right),
        ("instants to entry", Align::Right),
        ("longest", Align::Right),
        ("contacts", Align::Right),
        ("used", Align::Right),
        ("bytes per entry", Align::Right),
        ("largest label", Align::Right),
    ]);
    for report in reports {
        table.row(vec![
            report.algorithm.clone(),
            grouped(report.requests),
            grouped(report.served.len() as u64),
            maybe(report.wait_mean),
            grouped(report.wait_longest),
            grouped(report.contacts),
            grouped(report.contacts_used),
            report.bytes_per_entry().map_or("-".to_string(), number),
            bytes(report.largest_label),
        ]);
    }
    for line in table.lines() {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    for report in reports {
        print_end(source, report, out)?;
    }
    let is_broken = reports.iter().any(|report| report.violation.is_some());
    let gave_up = reports.iter().any(|report| report.end == End::TooMuchWork);
    match (is_broken, gave_up) {
        (true, _) => Err(Failure::Violation),
        (false, true) => Err(Failure::GaveUp),
        (false, false) => Ok(()),
    }
}

fn print_end(source: &Source, report: &Report, out: &mut impl Write) -> Outcome {
    let last = source.times.at(report.last);
    let end = match report.end {
        End::Served => format!("everybody was served, by instant {last}"),
        End::Quiet => format!("nothing changes any more after instant {last}"),
        End::Graph => format!("the trace ends with instant {last}"),
        End::Until => format!("stopped after instant {last}"),
        End::Entries => format!(
            "stopped after {}, as asked",
            counted(report.served.len() as u64, "entry", "entries")
        ),
        End::Violation => format!("broken at instant {last}"),
        End::Interrupted => "interrupted".to_string(),
        End::TooMuchWork => format!(
            "gave up at instant {last}: too many nodes and requests meet; let fewer ask \
             (--requesters), or end the run earlier (--entries, --until)"
        ),
    };
    writeln!(out, "{}: {end}", report.algorithm)?;
    if let Some(what) = &report.violation {
        writeln!(out, "  violation of {what}")?;
    }
    let ever = if report.end == End::Quiet { "waits for ever" } else { "still waits" };
    for waiting in report.waiting.iter().take(MOST_WAITING) {
        let name = source.graph.name(waiting.node);
        writeln!(out, "  {name} {ever}, since instant {}", source.times.at(waiting.since))?;
    }
    if let Some(more) = report.waiting.len().checked_sub(MOST_WAITING).filter(|&more| more > 0) {
        writeln!(out, "  and {} more", grouped(more as u64))?;
    }
    Ok(())
}

const MOST_WAITING: usize = 12;
