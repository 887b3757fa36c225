//! `catraca sim`: one described run.

mod members;
mod words;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use catraca_draw::{DiagramOptions, check_instants, check_nodes, is_visible, space_time};
use catraca_player::{MOST_STEPS, Window};
use catraca_sim::{
    Digest, End, Hooks, Key, Report, Scenario, ScenarioError, Setup, TICKS_PER_UNIT, Time,
    Violation, read_text, run,
};
use catraca_trace::{Event, Header, Origin, Trace, Writer};
use serde::Serialize;

use crate::document::{self, Format};
use crate::failure::Failure;
use crate::flags::{Choice, Said};
use crate::output::{PendingFile, PendingPicture, Stdout};
use crate::player::PendingPage;
use crate::trees::Trees;
use crate::{Outcome, interrupt, progress};

/// Pictures are drawn from at most so many events from the beginning of a run.
const MOST_EVENTS: usize = 1_000_000;

/// So many events are kept for a page: what it shows, and as much again, of which is said where it ends.
const MOST_ON_PAGE: usize = 2 * MOST_STEPS + 1;

const EXAMPLES: &str = "\
Examples:
  catraca sim --algorithm lamport --nodes 5
  catraca sim --algorithm raymond --nodes 7 --tree star --entries 20 --diagram run.svg
  catraca sim run.toml --seed 2 --trace run.trace
  catraca sim --algorithm raymond --nodes 7 --entries 20 --html run.html
  catraca sim --algorithm naimi-trehel --nodes 6 --tree-diagram tree.svg --tree-at 0 --tree-at 2.5
  catraca sim --algorithm raymond --clusters 4x8 --lan 1 --wan 50 --arrivals serial --locality 0.9
  catraca sim --members 3 --clients 8 --algorithm raymond --fault 'pause 1 from 5 to 20'

A scenario file says the same in TOML; --hold is 'hold' in the section [workload].
The percentile p99 is exact up to 65,536 entries, and within 0.1 % above.
TIME is a number of units of time; DIST is constant:1, uniform:0.5..1.5, exp:1 or just a time.";

/// Runs one described run: a scenario file, flags, or both; flags win.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The scenario file.
    #[arg(value_name = "SCENARIO.toml")]
    file: Option<PathBuf>,
    /// Runs twice and compares every step.
    #[arg(long)]
    self_check: bool,
    #[command(flatten)]
    said: Said<Everything>,
}

/// A run can be described in every way.
struct Everything;

impl Choice for Everything {
    fn takes(_: &Key) -> bool {
        true
    }
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let scenario = self.scenario()?;
        if let Some(setup) = scenario.members().map_err(|error| self.at_fault(error))? {
            return members::simulate(&scenario, &setup, self.self_check);
        }
        let setup = scenario.setup().map_err(|error| self.at_fault(error))?;
        let window = self.window(&scenario)?;
        let path = |key| scenario.value(key).map(Path::new);
        let json = path("output.json").map(PendingFile::create).transpose()?;
        let mut recording = Recording {
            trace: path("output.trace").map(|path| begin_trace(path, &setup)).transpose()?,
            diagram: path("output.diagram").map(|path| diagram(path, &setup)).transpose()?,
            trees: self.trees(&scenario, setup.spec.nodes)?,
            page: self.page(&scenario, setup.spec.nodes)?,
            window,
            digest: self.self_check.then(Digest::default),
            ..Recording::of(&setup)
        };
        let report = recording.run(&setup)?;
        if report.end == End::Interrupted {
            return Err(Failure::Interrupted);
        }
        let mut out = Stdout::lock();
        words::print(&report, &setup, &mut out)?;
        if self.self_check {
            self_check(&setup, recording.digest, &report, &mut out)?;
        }
        if let Some(file) = json {
            let content = RunContent {
                algorithm: &setup.spec.algorithm,
                nodes: setup.spec.nodes,
                k: setup.spec.capacity(),
                seed: setup.seed,
                report: &report,
            };
            let command = scenario.clone().without_files().command();
            document::write(file, Format::Run, &command, content)?;
        }
        recording.finish(report.violation.as_ref())?;
        judged(report.violation.as_ref(), report.end, &scenario, &mut out)
    }

    fn scenario(&self) -> Result<Scenario, Failure> {
        let mut scenario = match &self.file {
            None => Scenario::new(),
            Some(path) => {
                let text = read_text(path).map_err(|why| {
                    Failure::input(format!("cannot read the scenario '{}': {why}", path.display()))
                })?;
                Scenario::from_toml(&text).map_err(|error| self.at_fault(error))?
            }
        };
        scenario.overlay(self.said.scenario());
        if self.file.is_none() && scenario.value("algorithm").is_none() {
            return Err(Failure::input(
                "say what to run, as in 'catraca sim --algorithm lamport --nodes 5' or \
                 'catraca sim SCENARIO.toml'; 'catraca algorithms' lists the algorithms",
            ));
        }
        Ok(scenario)
    }

    /// What is wrong, and whether the file says so or a flag.
    fn at_fault(&self, error: ScenarioError) -> Failure {
        let said = self.said.scenario();
        Failure::of_scenario(error, self.file.as_deref(), |key| said.says(key))
    }

    /// The part of the run that is drawn.
    fn window(&self, scenario: &Scenario) -> Result<DiagramOptions, Failure> {
        let ticks = |key| self.end_of_part(scenario, key, ("output.diagram", "drawn", "--diagram"));
        let (from, to) = (ticks("output.from")?, ticks("output.to")?);
        Ok(DiagramOptions { from, to, ..DiagramOptions::default() })
    }

    /// Where the part that `whole` shows begins or ends, if the scenario says so.
    fn end_of_part(
        &self,
        scenario: &Scenario,
        key: &'static str,
        (whole, shown, flag): (&str, &str, &str),
    ) -> Result<Option<u64>, Failure> {
        let wrong = |what| self.at_fault(ScenarioError::Value { key, what });
        match scenario.value(key).map(str::parse::<Time>) {
            None => Ok(None),
            Some(_) if scenario.value(whole).is_none() => {
                Err(wrong(format!("says which part is {shown}; say where with {flag}")))
            }
            Some(Ok(time)) => Ok(Some(time.0)),
            Some(Err(error)) => Err(wrong(error.to_string())),
        }
    }

    /// The page that plays the run, if it is wanted.
    fn page(&self, scenario: &Scenario, nodes: u32) -> Result<Option<PendingPage>, Failure> {
        let ticks = |key| self.end_of_part(scenario, key, ("output.html", "on the page", "--html"));
        let (from, to) = (ticks("output.html-from")?, ticks("output.html-to")?);
        let window = Window { from: from.unwrap_or(0), to: to.unwrap_or(u64::MAX) };
        let path = scenario.value("output.html").map(Path::new);
        path.map(|path| PendingPage::create(path, nodes, window)).transpose()
    }

    /// The picture of who points to whom, if it is wanted.
    fn trees(&self, scenario: &Scenario, nodes: u32) -> Result<Option<Trees>, Failure> {
        const KEY: &str = "output.tree-at";
        let wrong = |what| self.at_fault(ScenarioError::Value { key: KEY, what });
        let instants = scenario.values(KEY);
        let Some(path) = scenario.value("output.tree-diagram") else {
            return match instants {
                [] => Ok(None),
                _ => Err(wrong("says when; say where with --tree-diagram".to_string())),
            };
        };
        let ticks = |text: &String| match text.parse::<Time>() {
            Ok(time) => Ok(time.0),
            Err(error) => Err(wrong(error.to_string())),
        };
        let instants: Vec<u64> = instants.iter().map(ticks).collect::<Result<_, _>>()?;
        let trees = Trees::create(Path::new(path), instants.clone())?;
        check_nodes(nodes)
            .and_then(|()| check_instants(instants.len()))
            .map_err(|error| Failure::input(format!("the run {error}")))?;
        Ok(Some(trees))
    }
}

/// A run in a file.
#[derive(Serialize)]
struct RunContent<'a> {
    algorithm: &'a str,
    nodes: u32,
    /// How many may be inside at once.
    k: u32,
    seed: u64,
    #[serde(flatten)]
    report: &'a Report,
}

/// Whether the run fails; if it does, how to repeat it.
fn judged(
    violation: Option<&Violation>,
    end: End,
    scenario: &Scenario,
    out: &mut impl Write,
) -> Outcome {
    let failure = match (violation, end.gave_up()) {
        (Some(_), _) => Failure::Violation,
        (None, Some(_)) => Failure::GaveUp,
        (None, None) => return Ok(()),
    };
    writeln!(out, "reproduce   {}", scenario.command())?;
    Err(failure)
}

/// What is made of the events of a run: the trace file, the pictures, the digest.
struct Recording {
    trace: Option<Writer<PendingFile>>,
    diagram: Option<PendingPicture>,
    trees: Option<Trees>,
    page: Option<PendingPage>,
    /// How many of the events that are kept are in the part that the page shows.
    on_page: usize,
    /// The part of the run that the diagram shows.
    window: DiagramOptions,
    /// How many steps are in it so far.
    shown: usize,
    /// What the pictures are drawn from.
    drawn: Trace,
    /// Whether the run had more events than are drawn from.
    is_cut: bool,
    digest: Option<Digest>,
    /// The first failure to write; an observer cannot return one.
    failure: Option<std::io::Error>,
}

fn header(setup: &Setup) -> Header {
    Header::new(Origin::Sim, setup.spec.clone(), TICKS_PER_UNIT)
}

/// Fails at once if the group cannot be drawn.
fn diagram(path: &Path, setup: &Setup) -> Result<PendingPicture, Failure> {
    check_nodes(setup.spec.nodes).map_err(|error| Failure::input(format!("the run {error}")))?;
    PendingPicture::create(path)
}

fn begin_trace(path: &Path, setup: &Setup) -> Result<Writer<PendingFile>, Failure> {
    let writer = Writer::new(PendingFile::create(path)?, &header(setup));
    writer.map_err(|error| Failure::System(error.into()))
}

impl Recording {
    /// Nothing is made of them yet.
    fn of(setup: &Setup) -> Self {
        Recording {
            trace: None,
            diagram: None,
            trees: None,
            page: None,
            on_page: 0,
            window: DiagramOptions::default(),
            shown: 0,
            drawn: Trace { header: header(setup), events: Vec::new() },
            is_cut: false,
            digest: None,
            failure: None,
        }
    }

    fn draws(&self) -> bool {
        self.diagram.is_some() || self.trees.is_some() || self.page.is_some()
    }

    /// Whether something is drawn from what happens next.
    fn goes_on(&self) -> bool {
        let is_page_full = self.page.is_none() || self.on_page >= MOST_ON_PAGE;
        self.diagram.is_some() || self.trees.is_some() || !is_page_full
    }

    /// Whether there is more in the window than can be drawn.
    fn is_too_long(&self) -> bool {
        self.shown > self.window.max_events
    }

    fn event(&mut self, event: &Event) {
        if let Some(trace) = &mut self.trace
            && let Err(error) = trace.event(event)
        {
            self.failure.get_or_insert(error);
        }
        if self.diagram.is_some() && is_visible(event) {
            let DiagramOptions { from, to, .. } = self.window;
            let shows = (from.unwrap_or(0)..=to.unwrap_or(u64::MAX)).contains(&event.at());
            self.shown += usize::from(shows);
        }
        if self.goes_on() {
            self.is_cut = self.drawn.events.len() >= MOST_EVENTS;
            if !self.is_cut {
                self.drawn.events.push(event.clone());
                let is_on_page = self.page.as_ref().is_some_and(|page| page.shows(event.at()));
                self.on_page += usize::from(is_on_page);
            }
        }
        if let Some(digest) = &mut self.digest {
            digest.add(event);
        }
    }

    /// Runs; the run is observed only if something is made of it, because that costs time.
    fn run(&mut self, setup: &Setup) -> Result<Report, Failure> {
        let is_observed = self.trace.is_some() || self.draws() || self.digest.is_some();
        let (interrupted, ended) = (interrupt::flag(), AtomicBool::new(false));
        let mut observer = |event: &Event| {
            self.event(event);
            // Nothing would come of going on.
            if self.is_too_long() || interrupt::requested() {
                ended.store(true, Ordering::Relaxed);
            }
        };
        let observer: Option<&mut dyn FnMut(&Event)> =
            if is_observed { Some(&mut observer) } else { None };
        let stop = if is_observed { &ended } else { &*interrupted };
        let spinner = progress::line();
        spinner.set_message(format!("running {}", setup.spec.algorithm));
        let report = run(setup, Hooks { observer, stop: Some(stop) })?;
        spinner.finish_and_clear();
        if self.is_too_long() {
            return Err(Failure::input(format!(
                "the run has more than the {} steps that can be drawn legibly; choose a window with \
                 --from and --to",
                self.window.max_events
            )));
        }
        match self.failure.take() {
            Some(error) => Err(Failure::System(error.into())),
            None => Ok(report),
        }
    }

    /// Puts the files in their places.
    fn finish(self, violation: Option<&Violation>) -> Outcome {
        if let Some(trace) = self.trace {
            trace.finish().map_err(|error| Failure::System(error.into()))?.finish()?;
        }
        let mut drawn = self.drawn;
        drawn.header.violation = violation.map(|violation| violation.what.clone());
        if let Some(file) = self.diagram {
            let picture = space_time(&drawn, &self.window)
                .map_err(|error| Failure::input(format!("the run {error}")))?;
            file.finish(&picture)?;
        }
        if let Some(page) = self.page {
            // The events of a run come in the order of time, so nothing of the part is missing unless it
            // begins or goes on behind the last one that was kept.
            let is_full = self.on_page > MOST_STEPS;
            if self.is_cut && !is_full && page.shows(drawn.events.last().map_or(0, Event::at)) {
                return Err(Failure::input(format!(
                    "--html-to: there are more than {MOST_EVENTS} events before this instant; choose \
                     an earlier one"
                )));
            }
            page.finish(&drawn, "the run")?;
        }
        if let Some(trees) = self.trees {
            if self.is_cut && drawn.events.last().is_some_and(|last| last.at() <= trees.last()) {
                return Err(Failure::input(format!(
                    "--tree-at: there are more than {MOST_EVENTS} events before this instant; \
                     choose an earlier one"
                )));
            }
            trees.finish(&drawn, "the run")?;
        }
        Ok(())
    }
}

fn self_check(
    setup: &Setup,
    first: Option<Digest>,
    report: &Report,
    out: &mut impl Write,
) -> Outcome {
    let mut again = Recording { digest: Some(Digest::default()), ..Recording::of(setup) };
    let second = again.run(setup)?;
    if second.end == End::Interrupted {
        return Err(Failure::Interrupted);
    }
    let same = again.digest == first && second == *report;
    words::print_self_check(same.then_some(&first.unwrap_or_default().to_string()), out)
}
