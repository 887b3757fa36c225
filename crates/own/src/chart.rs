//! The picture of a comparison.

use catraca_draw::{Axis, Chart, Picture, Series, chart_column};
use catraca_sim::{Report, Row};

use crate::compare::{estimate, seeds};

/// What is drawn of a run.
type Figure = fn(&Report) -> Option<f64>;

/// Messages per entry and response time over the number of nodes, for each load.
pub(crate) fn plot(rows: &[Row]) -> Picture {
    let mut loads: Vec<String> = rows.iter().map(|row| row.job.load_name()).collect();
    loads.dedup();
    let figures: [(&str, &str, Figure); 2] = [
        ("Messages per entry", "messages", |report| report.messages_per_entry),
        ("Mean time from request to entry", "units of time", |report| report.response_mean),
    ];
    let mut charts = Vec::new();
    for load in &loads {
        for (title, unit, figure) in figures {
            charts.push(Chart {
                title: format!("{title}, {load} load"),
                note: rows.first().map_or(String::new(), note),
                x: Axis::logarithmic("nodes"),
                y: Axis::logarithmic(unit),
                series: series(rows, load, figure),
                ..Chart::default()
            });
        }
    }
    chart_column(&charts)
}

/// What the figures rest on.
fn note(row: &Row) -> String {
    match row.job.seeds {
        1 => format!("{}, no interval", seeds(&row.job)),
        _ => format!("means of {}; bars: Student's interval of 95 %", seeds(&row.job)),
    }
}

/// A line for each algorithm, in the order of the rows.
fn series(rows: &[Row], load: &str, figure: Figure) -> Vec<Series> {
    let mut lines: Vec<Series> = Vec::new();
    for row in rows.iter().filter(|row| row.job.load_name() == load) {
        let spec = row.job.spec();
        let Some(value) = estimate(row, figure) else { continue };
        let (point, interval) = ((f64::from(spec.nodes), value.mean), value.drawn());
        match lines.iter_mut().find(|line| line.name == spec.algorithm) {
            Some(line) => {
                line.points.push(point);
                line.intervals.push(interval);
            }
            None => lines.push(Series {
                name: spec.algorithm.clone(),
                points: vec![point],
                intervals: vec![interval],
                ..Series::default()
            }),
        }
    }
    lines
}
