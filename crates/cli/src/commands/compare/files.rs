//! The comparison as CSV, JSON and pictures.

use std::collections::BTreeMap;

use catraca_draw::{Axis, Chart, Picture, Series, chart_column};
use catraca_lab::{FIGURES, Figure, csv_line};
use catraca_sim::{Report, Row};
use serde::Serialize;

use super::estimate;
use super::words::seeds;
use crate::document::{self, Format, INTERVAL};
use crate::failure::Failure;

#[derive(Serialize)]
struct Content<'a> {
    interval: &'static str,
    rows: Vec<RowRecord<'a>>,
}

/// One row of the table, with its runs.
#[derive(Serialize)]
struct RowRecord<'a> {
    algorithm: &'a str,
    nodes: u32,
    k: u32,
    load: String,
    seeds: Vec<u64>,
    theory_messages_min: Option<f64>,
    theory_messages_max: Option<f64>,
    s2_messages: Option<f64>,
    theory_delay_min: Option<f64>,
    theory_delay_max: Option<f64>,
    /// Over all seeds, by name.
    figures: BTreeMap<&'static str, document::Figure>,
    runs: Vec<RunRecord<'a>>,
}

#[derive(Serialize)]
struct RunRecord<'a> {
    seed: u64,
    command: String,
    #[serde(flatten)]
    report: &'a Report,
}

/// What is said of the row itself, and is no figure of its runs.
const OF_ROWS: [&str; 5] = ["nodes", "k", "theory_least", "theory_most", "s2_messages"];

fn measured() -> impl Iterator<Item = (&'static str, Figure)> {
    let figures = FIGURES.iter().filter(|named| !OF_ROWS.contains(&named.name));
    figures.map(|named| (named.name, Figure::Named(named)))
}

fn record(row: &Row) -> RowRecord<'_> {
    let (job, spec) = (&row.job, row.job.spec());
    let theory = job.setup.theory();
    let figure = |(name, figure): (&'static str, Figure)| {
        let estimate = estimate(row, |report| figure.of(&job.setup, report))?;
        Some((name, document::Figure::from(estimate)))
    };
    let run = |(repeat, report)| RunRecord {
        seed: job.seed(repeat),
        command: job.repeated(repeat).command(),
        report,
    };
    RowRecord {
        algorithm: &spec.algorithm,
        nodes: spec.nodes,
        k: spec.capacity(),
        load: job.load_name(),
        seeds: (0..job.seeds).map(|repeat| job.seed(repeat)).collect(),
        theory_messages_min: theory.map(|theory| theory.messages.min),
        theory_messages_max: theory.map(|theory| theory.messages.max),
        s2_messages: job.setup.claimed_messages(),
        theory_delay_min: theory.map(|theory| theory.delay.min),
        theory_delay_max: theory.map(|theory| theory.delay.max),
        figures: measured().filter_map(figure).collect(),
        runs: (0..).zip(&row.reports).map(run).collect(),
    }
}

pub(super) fn json(rows: &[Row], command: &str) -> Result<Vec<u8>, Failure> {
    let rows = rows.iter().map(record).collect();
    document::json(Format::Comparison, command, Content { interval: INTERVAL, rows })
}

/// A head, and a line a run with its seed.
pub(super) fn csv(rows: &[Row]) -> String {
    let of_run = ["algorithm", "load", "seed"].map(str::to_string);
    let figures = || FIGURES.iter().map(|named| named.name.to_string());
    let mut text = csv_line(of_run.into_iter().chain(figures()).chain(["command".to_string()]));
    for row in rows {
        let job = &row.job;
        for (repeat, report) in (0..).zip(&row.reports) {
            let names =
                [job.spec().algorithm.clone(), job.load_name(), job.seed(repeat).to_string()];
            let figure = |named| Figure::Named(named).of(&job.setup, report);
            let figures = FIGURES.iter().map(figure);
            let figures = figures.map(|one| one.map_or(String::new(), |value| value.to_string()));
            let command = [job.repeated(repeat).command()];
            text.push_str(&csv_line(names.into_iter().chain(figures).chain(command)));
        }
    }
    text
}

/// For each load, messages per entry and response time over N.
pub(super) fn plot(rows: &[Row]) -> Picture {
    let mut loads: Vec<String> = Vec::new();
    for load in rows.iter().map(|row| row.job.load_name()) {
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    let chart = |load: &str, what: &str, unit: &str, figure: fn(&Report) -> Option<f64>| Chart {
        title: format!("{what}, {load} load"),
        note: note_on_seeds(rows),
        x: Axis::logarithmic("N (nodes)"),
        y: Axis::logarithmic(format!("{what}{unit}")),
        series: series(rows, load, figure),
        ..Chart::default()
    };
    let charts: Vec<Chart> = loads
        .into_iter()
        .flat_map(|load| {
            [
                chart(&load, "messages per entry", "", |report| report.messages_per_entry),
                chart(&load, "mean response time", " (units of time)", |report| {
                    report.response_mean
                }),
            ]
        })
        .collect();
    chart_column(&charts)
}

/// What the figures rest on.
fn note_on_seeds(rows: &[Row]) -> String {
    match rows.first().map(|row| &row.job) {
        Some(job) if job.seeds == 1 => format!("{}, no interval", seeds(job)),
        Some(job) => format!("means of {}; bars: Student's interval of 95 %", seeds(job)),
        None => String::new(),
    }
}

fn series(rows: &[Row], load: &str, figure: fn(&Report) -> Option<f64>) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for row in rows.iter().filter(|row| row.job.load_name() == load) {
        let spec = row.job.spec();
        let index = series.iter().position(|one| one.name == spec.algorithm).unwrap_or_else(|| {
            series.push(Series { name: spec.algorithm.clone(), ..Series::default() });
            series.len() - 1
        });
        if let Some(value) = estimate(row, figure) {
            series[index].points.push((spec.nodes.into(), value.mean));
            series[index].intervals.push(value.interval());
        }
    }
    series
}
