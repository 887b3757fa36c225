//! The comparison as CSV, JSON and pictures.

use catraca_draw::{Axis, Chart, Picture, Series, chart_column};
use catraca_sim::{Report, Row};
use serde::Serialize;

use crate::failure::Failure;

/// One row, flat, for files.
#[derive(Serialize)]
struct Record<'a> {
    algorithm: &'a str,
    nodes: u32,
    load: String,
    theory_messages_min: Option<f64>,
    theory_messages_max: Option<f64>,
    s2_messages: Option<f64>,
    theory_delay_min: Option<f64>,
    theory_delay_max: Option<f64>,
    #[serde(flatten)]
    report: &'a Report,
    command: String,
}

fn record(row: &Row) -> Record<'_> {
    let spec = row.job.spec();
    let theory = row.job.setup.theory();
    Record {
        algorithm: &spec.algorithm,
        nodes: spec.nodes,
        load: row.job.load_name(),
        theory_messages_min: theory.map(|theory| theory.messages.min),
        theory_messages_max: theory.map(|theory| theory.messages.max),
        s2_messages: row.job.setup.claimed_messages(),
        theory_delay_min: theory.map(|theory| theory.delay.min),
        theory_delay_max: theory.map(|theory| theory.delay.max),
        report: &row.report,
        command: row.job.scenario.command(),
    }
}

pub(super) fn json(rows: &[Row]) -> Result<Vec<u8>, Failure> {
    let records: Vec<Record<'_>> = rows.iter().map(record).collect();
    let mut text = serde_json::to_vec_pretty(&records)
        .map_err(|error| Failure::System(anyhow::Error::new(error).context("the table as JSON")))?;
    text.push(b'\n');
    Ok(text)
}

/// A head and a line a row. No value has a comma or a quote in it.
pub(super) fn csv(rows: &[Row]) -> String {
    let mut text = String::from(
        "algorithm,nodes,load,messages_per_entry,theory_min,theory_max,s2,delay,response_mean,\
         response_p99,longest_wait,throughput,throughput_of_bound,fairness,most_bypasses,entries,\
         messages,concurrency,concurrency_possible,messages_within,messages_between,\
         messages_between_per_entry,cluster_fairness,seed\n",
    );
    let plain = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let whole = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    for row in rows {
        let (record, report) = (record(row), &row.report);
        let cells = [
            record.algorithm.to_string(),
            record.nodes.to_string(),
            record.load.clone(),
            plain(report.messages_per_entry),
            plain(record.theory_messages_min),
            plain(record.theory_messages_max),
            plain(record.s2_messages),
            plain(report.delay),
            plain(report.response_mean),
            plain(report.response_p99),
            report.longest_wait.to_string(),
            plain(report.throughput),
            plain(report.throughput_of_bound),
            plain(report.fairness),
            report.most_bypasses.to_string(),
            report.entries.to_string(),
            report.messages.to_string(),
            plain(report.concurrency),
            plain(report.concurrency_possible),
            whole(report.messages_within),
            whole(report.messages_between),
            plain(report.messages_between_per_entry),
            plain(report.cluster_fairness),
            row.job.setup.seed.to_string(),
        ];
        text.push_str(&cells.join(","));
        text.push('\n');
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
    let chart = |load: &str, what: &str, figure: fn(&Report) -> Option<f64>| Chart {
        title: format!("{what}, {load} load"),
        x: Axis::logarithmic("nodes"),
        y: Axis::logarithmic(what),
        series: series(rows, load, figure),
    };
    let charts: Vec<Chart> = loads
        .into_iter()
        .flat_map(|load| {
            [
                chart(&load, "messages per entry", |report| report.messages_per_entry),
                chart(&load, "mean response time", |report| report.response_mean),
            ]
        })
        .collect();
    chart_column(&charts)
}

fn series(rows: &[Row], load: &str, figure: fn(&Report) -> Option<f64>) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for row in rows.iter().filter(|row| row.job.load_name() == load) {
        let spec = row.job.spec();
        let index = series.iter().position(|one| one.name == spec.algorithm).unwrap_or_else(|| {
            series.push(Series { name: spec.algorithm.clone(), ..Series::default() });
            series.len() - 1
        });
        if let Some(value) = figure(&row.report) {
            series[index].points.push((spec.nodes.into(), value));
        }
    }
    series
}
