//! Runs an experiment on several threads, and what comes of it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catraca_draw::{DiagramOptions, DrawError, Picture, space_time};
use catraca_sim::{End, Hooks, Report, ScenarioError, TICKS_PER_UNIT, Time, run};
use catraca_trace::{Event, Header, Origin, Trace};

use crate::claim::Finding;
use crate::experiment::{Experiment, Run};
use crate::table::{Table, TableRow};
use crate::timeline::Timeline;

/// A diagram is drawn from at most so many events from the beginning of a run.
const MOST_EVENTS: usize = 100_000;

/// What the runs of an experiment have shown, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// One a run.
    pub rows: Vec<Measured>,
}

/// What one run has shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The figures.
    pub report: Report,
    /// What the charts over time count: for each of those charts, in order, what it counts.
    pub(crate) timelines: Vec<Timeline>,
    /// Every step, where a diagram is wanted.
    pub(crate) trace: Option<Trace>,
}

/// A picture and the name of its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The name, with its ending.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// The picture.
    pub picture: Picture,
}

impl Experiment {
    /// Runs everything on `threads` threads; the results do not depend on how many. `done` is
    /// called after each run. Nothing comes of it if `stop` becomes true meanwhile.
    pub fn measure(
        &self,
        threads: usize,
        stop: &AtomicBool,
        done: impl Fn(&Run) + Sync,
    ) -> Result<Option<Results>, ScenarioError> {
        // The large ones first, so that no thread is left alone with one at the end.
        let mut order: Vec<usize> = (0..self.runs.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(self.runs[at].setup.spec.nodes));
        let next = AtomicUsize::new(0);
        let measured: Mutex<Vec<Option<Measured>>> = Mutex::new(vec![None; self.runs.len()]);
        let worker = || {
            while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let one = self.measure_one(&self.runs[at], stop)?;
                measured.lock().unwrap_or_else(|poisoned| poisoned.into_inner())[at] = Some(one);
                done(&self.runs[at]);
            }
            Ok::<(), ScenarioError>(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                (0..threads.clamp(1, order.len())).map(|_| scope.spawn(worker)).collect();
            for worker in workers {
                match worker.join() {
                    Ok(finished) => finished?,
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok::<(), ScenarioError>(())
        })?;
        let measured = measured.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let rows: Option<Vec<Measured>> = measured.into_iter().collect();
        let whole =
            |rows: &Vec<Measured>| rows.iter().all(|row| row.report.end != End::Interrupted);
        Ok(rows.filter(whole).map(|rows| Results { rows }))
    }

    /// The run is observed only if something is made of it, because that costs time.
    fn measure_one(&self, described: &Run, stop: &AtomicBool) -> Result<Measured, ScenarioError> {
        let setup = &described.setup;
        let header = || Header::new(Origin::Sim, setup.spec.clone(), TICKS_PER_UNIT);
        let mut trace = self.diagram.then(|| Trace { header: header(), events: Vec::new() });
        let mut timelines: Vec<Timeline> =
            self.charts.iter().flat_map(|chart| chart.timelines()).collect();
        let is_observed = trace.is_some() || !timelines.is_empty();
        let mut observer = |event: &Event| {
            timelines.iter_mut().for_each(|line| line.event(event));
            if let Some(trace) = trace.as_mut().filter(|trace| trace.events.len() < MOST_EVENTS) {
                trace.events.push(event.clone());
            }
        };
        let observer: Option<&mut dyn FnMut(&Event)> =
            if is_observed { Some(&mut observer) } else { None };
        let report = run(setup, Hooks { observer, stop: Some(stop) })?;
        let end = Time((report.time * TICKS_PER_UNIT as f64).round() as u64);
        timelines.iter_mut().for_each(|line| line.until(end));
        if let Some(trace) = &mut trace {
            trace.header.violation = report.violation.as_ref().map(|broken| broken.what.clone());
        }
        Ok(Measured { report, timelines, trace })
    }

    /// The table of figures.
    pub fn table(&self, results: &Results) -> Table {
        let row = |(run, measured): (&Run, &Measured)| TableRow {
            coordinates: run.coordinates.clone(),
            figures: self
                .columns
                .iter()
                .map(|column| column.of(&run.setup, &measured.report))
                .collect(),
        };
        Table {
            varied: self.dimensions.iter().map(|dimension| dimension.name.clone()).collect(),
            columns: self.columns.clone(),
            rows: self.runs.iter().zip(&results.rows).map(row).collect(),
        }
    }

    /// What the runs say of each claim.
    pub fn findings(&self, results: &Results) -> Vec<Finding<'_>> {
        self.claims.iter().map(|claim| claim.finding(self, results)).collect()
    }

    /// What broke that was not to break, what was to break and did not, and which runs gave up,
    /// with the command that shows it.
    pub fn surprises(&self, results: &Results) -> Vec<String> {
        let surprise = |(run, measured): (&Run, &Measured)| {
            let broken = &measured.report.violation;
            let expected = run.breaks.as_deref();
            let found = broken.as_ref().map(|broken| broken.invariant);
            let what = match (expected, broken) {
                _ if measured.report.end.gave_up().is_some() => {
                    format!("gave up: {}", measured.report.end.gave_up().unwrap_or_default())
                }
                _ if expected == found => return None,
                (_, Some(broken)) => format!("'{}' broke: {}", broken.invariant, broken.what),
                (expected, None) => format!("'{}' did not break", expected.unwrap_or_default()),
            };
            Some(format!("{what}; see {}", run.scenario.command()))
        };
        self.runs.iter().zip(&results.rows).filter_map(surprise).collect()
    }

    /// The names of the files of the pictures, without drawing them.
    pub fn picture_files(&self) -> Vec<String> {
        let charts = self.charts.iter().map(|chart| format!("{}-{}.svg", self.name, chart.name));
        charts.chain(self.diagram_files()).collect()
    }

    fn diagram_files(&self) -> impl Iterator<Item = String> {
        let all: Vec<usize> =
            if self.diagram { (0..self.runs.len()).collect() } else { Vec::new() };
        all.clone().into_iter().map(move |row| {
            let label = self.label(&all, row);
            let words = label.split(|one: char| !one.is_ascii_alphanumeric() && one != '.');
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            [&[self.name.as_str()], words.as_slice()].concat().join("-") + ".svg"
        })
    }

    /// Draws the charts and the diagrams.
    pub fn pictures(&self, results: &Results) -> Result<Vec<Drawn>, DrawError> {
        let mut drawn = Vec::new();
        for chart in &self.charts {
            let picture = chart.draw(self, results);
            let file = format!("{}-{}.svg", self.name, chart.name);
            drawn.push(Drawn { file, title: chart.title.clone(), picture });
        }
        let all: Vec<usize> = (0..self.runs.len()).collect();
        let traces = results.rows.iter().filter_map(|row| row.trace.as_ref());
        for ((file, trace), &row) in self.diagram_files().zip(traces).zip(&all) {
            let title = match self.label(&all, row) {
                label if label.is_empty() => self.title.clone(),
                label => format!("{}: {label}", self.title),
            };
            let scenario = &self.runs[row].scenario;
            let ticks = |key| Some(scenario.value(key)?.parse::<Time>().ok()?.0);
            let (from, to) = (ticks("output.from"), ticks("output.to"));
            let options = DiagramOptions { from, to, ..DiagramOptions::default() };
            drawn.push(Drawn { file, title, picture: space_time(trace, &options)? });
        }
        Ok(drawn)
    }
}
