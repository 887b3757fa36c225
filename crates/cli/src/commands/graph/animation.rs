//! The page that plays a run on an evolving graph.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use catraca_algorithms::relabelling::ENTRIES;
use catraca_core::Phase;
use catraca_player::{Contacts, Entry, Instant, Label, Window, check_nodes, contacts_page};
use catraca_sim::evolving::{Hooks, NodeView, Report, Setup, Snapshot, run_observed};

use super::trace::Source;
use super::workload::at_fault;
use crate::failure::Failure;
use crate::output::PendingFile;
use crate::player::{cut, refused};
use crate::{Outcome, interrupt, value};

/// An instant takes as long as looking through all contacts, so no more than this are gone through.
const MOST_PASSED: u64 = 200_000;

#[derive(clap::Args)]
pub(super) struct PageFlags {
    /// Writes a page that plays the run: contacts, labels and journeys (one algorithm).
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The first instant on the page [default: 0].
    #[arg(long, value_name = "T", requires = "html", allow_negative_numbers = true,
        value_parser = value::instant)]
    html_from: Option<u64>,
    /// The last instant on the page.
    #[arg(long, value_name = "T", requires = "html", allow_negative_numbers = true,
        value_parser = value::instant)]
    html_to: Option<u64>,
}

/// A page that is written when the run is over.
pub(super) struct Animation {
    file: PendingFile,
    window: Window,
}

impl PageFlags {
    pub(super) fn is_given(&self) -> bool {
        self.html.is_some()
    }

    /// Fails at once if the place cannot be written to.
    pub(super) fn create(&self) -> Result<Option<Animation>, Failure> {
        let Some(path) = &self.html else { return Ok(None) };
        let window =
            Window { from: self.html_from.unwrap_or(0), to: self.html_to.unwrap_or(u64::MAX) };
        Ok(Some(Animation { file: PendingFile::create(path)?, window }))
    }
}

impl Animation {
    /// Refuses a graph that no page can show, before anything runs.
    pub(super) fn check(&self, source: &Source) -> Outcome {
        check_nodes(source.graph.nodes()).map_err(|error| refused("the graph", &error))
    }

    /// Runs `algorithm` again, for whoever looks, and writes the page.
    pub(super) fn finish(
        self,
        source: &Source,
        algorithm: &str,
        setup: &Setup<'_>,
        report: &Report,
    ) -> Outcome {
        let header = ENTRIES.iter().find(|entry| entry.name == algorithm);
        let header = header.into_iter().flat_map(|entry| entry.header());
        let mutant = setup.mutant.as_ref().map_or(String::new(), |name| format!(", mutant {name}"));
        let title = format!("{algorithm}{mutant} on {}", source.title());
        let names = source.graph.names().to_vec();
        let run = Contacts::new(title, algorithm, header, names, self.window);
        let mut run = run.map_err(|error| refused("the graph", &error))?;
        let last = setup.until.unwrap_or(u64::MAX).min(self.window.to).min(report.last);
        if last > MOST_PASSED {
            return Err(Failure::input(format!(
                "--html: a page can begin and end up to instant {MOST_PASSED}; say --html-to T, or \
                 make instants longer with --instant"
            )));
        }
        let next = add_all(&mut run, algorithm, &Setup { until: Some(last), ..setup.clone() })?;
        if let Some(next) = next {
            let shows = format!("instants {} to {}", self.window.from, run.last());
            let part = [next.from, next.to].map(|at| at.to_string());
            run.note(cut(&shows, part, report.violation.is_some()));
        }
        let entries = report.served.iter().map(|served| Entry {
            node: served.node.0,
            asked: served.asked,
            entered: served.entered,
        });
        let run = run.end(entries, report.violation.clone());
        let run = run.map_err(|error| refused("the run", &error))?;
        let page = contacts_page(&run).map_err(|error| Failure::System(error.into()))?;
        self.file.finish_with(page.as_bytes())
    }
}

/// Adds the instants of a run for which there is room; returns the next part, if there is more.
fn add_all(
    run: &mut Contacts,
    algorithm: &str,
    setup: &Setup<'_>,
) -> Result<Option<Window>, Failure> {
    let stop = AtomicBool::new(false);
    // The page of the next part is filled as well, to know how far it goes.
    let mut next: Option<Contacts> = None;
    let mut observer = |snapshot: Snapshot| {
        let instant = instant(&snapshot);
        let is_over = match &mut next {
            Some(next) => !next.add(&instant),
            None if run.add(&instant) => false,
            None => {
                let mut part = run.of_part(Window { from: instant.at, to: u64::MAX });
                part.add(&instant);
                next = Some(part);
                false
            }
        };
        if is_over || interrupt::requested() {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let hooks = Hooks { observer: Some(&mut observer), stop: Some(&stop) };
    run_observed(algorithm, setup, hooks).map_err(at_fault)?;
    if interrupt::requested() {
        return Err(Failure::Interrupted);
    }
    let from = run.cut();
    Ok(from.zip(next).map(|(from, next)| Window { from, to: next.last() }))
}

fn instant(snapshot: &Snapshot) -> Instant {
    let label = |node: &NodeView| Label {
        phase: match node.phase {
            Phase::Idle => "idle",
            Phase::Waiting => "waiting",
            Phase::Inside => "inside",
        },
        token: node.has_token,
        knows: node.pending.iter().map(|one| (one.requester.0, one.answers)).collect(),
    };
    Instant {
        at: snapshot.at,
        edges: snapshot.edges.iter().map(|(a, b)| (a.0, b.0)).collect(),
        labels: snapshot.nodes.iter().map(label).collect(),
    }
}
