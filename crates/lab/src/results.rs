//! Runs an experiment on several threads, and what comes of it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catraca_draw::{DiagramOptions, DrawError, Picture, space_time};
use catraca_sim::{End, Estimate, Hooks, Report, ScenarioError, Setup, TICKS_PER_UNIT, Time, run};
use catraca_trace::{Event, Header, Origin, Trace};

use crate::claim::Finding;
use crate::experiment::{Experiment, Run};
use crate::figure::Figure;
use crate::table::{Column, Table, TableRow, csv_line};
use crate::timeline::Timeline;

/// A diagram is drawn from at most so many events from the beginning of a run.
const MOST_EVENTS: usize = 100_000;

/// Points, or intervals.
type Pairs = Vec<(f64, f64)>;

/// What the runs of an experiment have shown, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// One a run.
    pub rows: Vec<Measured>,
}

/// What one run has shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The figures, one report a seed; the first is of the run as it is described.
    pub reports: Vec<Report>,
    /// What the charts over time count, one list a seed: for each of those charts, in order, what it counts.
    pub(crate) timelines: Vec<Vec<Timeline>>,
    /// Every step, where a diagram is wanted.
    pub(crate) trace: Option<Trace>,
}

impl Measured {
    /// A figure over all seeds, if it has a value with each of them.
    pub fn estimate(&self, figure: &Figure, setup: &Setup) -> Option<Estimate> {
        let values = self.reports.iter().map(|report| figure.of(setup, report));
        Estimate::of(&values.collect::<Option<Vec<f64>>>()?)
    }

    /// One of the counts over time: the middle of each interval of time that every seed has seen whole with
    /// the mean over the seeds, and from where to where that is uncertain.
    pub(crate) fn counted(&self, which: usize) -> (Pairs, Pairs) {
        let seeds = self.timelines.iter().zip(&self.reports);
        let each: Vec<Pairs> = seeds
            .map(|(timelines, report)| {
                let end = Time((report.time * TICKS_PER_UNIT as f64).round() as u64);
                timelines[which].points(end)
            })
            .collect();
        let shortest = each.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |at: usize| {
            let counts: Vec<f64> = each.iter().map(|points| points[at].1).collect();
            let estimate = Estimate::of(&counts)?;
            Some(((each[0][at].0, estimate.mean), estimate.drawn()))
        };
        (0..shortest).filter_map(mean).unzip()
    }
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
        let rows = 0..self.runs.len();
        let mut order: Vec<(usize, u32)> =
            rows.flat_map(|row| (0..self.seeds).map(move |repeat| (row, repeat))).collect();
        order.sort_by_key(|&(row, _)| std::cmp::Reverse(self.runs[row].setup.spec.nodes));
        let next = AtomicUsize::new(0);
        let nothing = vec![None; self.runs.len() * self.seeds as usize];
        let measured: Mutex<Vec<Option<Measured>>> = Mutex::new(nothing);
        let worker = || {
            while let Some(&(row, repeat)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let one = self.measure_one(&self.runs[row], repeat, stop)?;
                let at = row * self.seeds as usize + repeat as usize;
                measured.lock().unwrap_or_else(|poisoned| poisoned.into_inner())[at] = Some(one);
                done(&self.runs[row]);
            }
            Ok::<(), ScenarioError>(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                (0..threads.clamp(1, order.len().max(1))).map(|_| scope.spawn(worker)).collect();
            for worker in workers {
                match worker.join() {
                    Ok(finished) => finished?,
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok::<(), ScenarioError>(())
        })?;
        let measured = measured.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let single: Option<Vec<Measured>> = measured.into_iter().collect();
        let is_whole = |row: &Measured| row.reports.iter().all(|one| one.end != End::Interrupted);
        let single = single.filter(|single| single.iter().all(is_whole));
        Ok(single.map(|single| Results { rows: self.gathered(single) }))
    }

    /// The measurements of all seeds of a run as one.
    fn gathered(&self, single: Vec<Measured>) -> Vec<Measured> {
        let mut rows: Vec<Measured> = Vec::new();
        for (at, one) in single.into_iter().enumerate() {
            match rows.last_mut().filter(|_| at % self.seeds as usize > 0) {
                Some(row) => {
                    row.reports.extend(one.reports);
                    row.timelines.extend(one.timelines);
                }
                None => rows.push(one),
            }
        }
        rows
    }

    /// A run with one of its seeds. It is observed only if something is made of that, because it costs time;
    /// a diagram is drawn of the first.
    fn measure_one(
        &self,
        described: &Run,
        repeat: u32,
        stop: &AtomicBool,
    ) -> Result<Measured, ScenarioError> {
        let setup = &described.repeated(repeat)?;
        let header = || Header::new(Origin::Sim, setup.spec.clone(), TICKS_PER_UNIT);
        let is_drawn = self.diagram && repeat == 0;
        let mut trace = is_drawn.then(|| Trace { header: header(), events: Vec::new() });
        let charts = self.charts.iter();
        let mut timelines: Vec<Timeline> = charts.flat_map(|chart| chart.timelines()).collect();
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
        Ok(Measured { reports: vec![report], timelines: vec![timelines], trace })
    }

    /// The table of figures.
    pub fn table(&self, results: &Results) -> Table {
        let row = |(run, measured): (&Run, &Measured)| TableRow {
            coordinates: run.coordinates.clone(),
            figures: self.columns.iter().map(|column| column.of(&run.setup, measured)).collect(),
        };
        Table {
            varied: self.dimensions.iter().map(|dimension| dimension.name.clone()).collect(),
            seeds: self.runs.iter().map(|run| (run.seed(0), self.seeds)).collect(),
            columns: self.columns.clone(),
            rows: self.runs.iter().zip(&results.rows).map(row).collect(),
        }
    }

    /// Every run with each of its seeds, as comma-separated values: what was varied, the seed, the figures
    /// of the table with full precision, and the command that repeats it.
    pub fn runs_csv(&self, results: &Results) -> String {
        let is_varied = |name: &str| self.dimensions.iter().any(|one| one.name == name);
        // A formula is no result.
        let figures = self.columns.iter().filter_map(|column| match column {
            Column::Figure(figure) => Some(figure),
            Column::Formula(_) => None,
        });
        let figures: Vec<&Figure> = figures.filter(|figure| !is_varied(&figure.name())).collect();
        let varied = self.dimensions.iter().map(|dimension| dimension.name.clone());
        let names = figures.iter().map(|figure| figure.name());
        let heads = varied.chain(["seed".to_string()]).chain(names);
        let mut text = csv_line(heads.chain(["command".to_string()]));
        for (run, measured) in self.runs.iter().zip(&results.rows) {
            for (repeat, report) in (0..).zip(&measured.reports) {
                let plain = |figure: &&Figure| {
                    figure.of(&run.setup, report).map_or(String::new(), |value| value.to_string())
                };
                let values = [run.seed(repeat).to_string()].into_iter();
                let values = values.chain(figures.iter().map(plain));
                let command = [run.described(repeat).command()];
                text.push_str(&csv_line(
                    run.coordinates.iter().cloned().chain(values).chain(command),
                ));
            }
        }
        text
    }

    /// What the runs say of each claim.
    pub fn findings(&self, results: &Results) -> Vec<Finding<'_>> {
        self.claims.iter().map(|claim| claim.finding(self, results)).collect()
    }

    /// What broke that was not to break, what was to break and did not, and which runs gave up,
    /// with the command that shows it.
    pub fn surprises(&self, results: &Results) -> Vec<String> {
        let rows = self.runs.iter().zip(&results.rows);
        let each =
            rows.flat_map(|(run, row)| row.reports.iter().zip(0..).map(move |one| (run, one)));
        each.filter_map(|(run, (report, repeat))| surprise(run, report, repeat)).collect()
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

/// What is not as expected of one run with one of its seeds.
fn surprise(run: &Run, report: &Report, repeat: u32) -> Option<String> {
    let broken = &report.violation;
    let expected = run.breaks.as_deref();
    let found = broken.as_ref().map(|broken| broken.invariant);
    let what = match (expected, broken, report.end.gave_up()) {
        (_, _, Some(why)) => format!("gave up: {why}"),
        _ if expected == found => return None,
        (_, Some(broken), _) => format!("'{}' broke: {}", broken.invariant, broken.what),
        (expected, None, _) => format!("'{}' did not break", expected.unwrap_or_default()),
    };
    Some(format!("{what}; see {}", run.described(repeat).command()))
}
