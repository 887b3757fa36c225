//! An experiment with all of its results, for a JSON file.

use std::collections::BTreeMap;

use catraca_lab::{Column, Experiment, Finding, Measured, Results, Run};
use catraca_sim::Report;
use serde::Serialize;

use crate::document::{Figure, INTERVAL};

#[derive(Serialize)]
pub(super) struct Record<'a> {
    name: &'a str,
    title: &'a str,
    question: &'a str,
    paper: Option<&'a str>,
    section: Option<&'a str>,
    /// What a unit of time is, if it is something.
    unit: Option<&'a str>,
    interval: &'static str,
    rows: Vec<RowRecord<'a>>,
    claims: Vec<ClaimRecord<'a>>,
}

/// One row of the table, with its runs.
#[derive(Serialize)]
struct RowRecord<'a> {
    /// Its value of what was varied.
    varied: BTreeMap<&'a str, &'a str>,
    algorithm: &'a str,
    nodes: u32,
    k: u32,
    seeds: Vec<u64>,
    /// Those of the table, by name, over all seeds.
    figures: BTreeMap<String, Option<Figure>>,
    formulas: BTreeMap<String, f64>,
    runs: Vec<RunRecord<'a>>,
}

#[derive(Serialize)]
struct RunRecord<'a> {
    seed: u64,
    command: String,
    #[serde(flatten)]
    report: &'a Report,
}

#[derive(Serialize)]
struct ClaimRecord<'a> {
    section: &'a str,
    says: &'a str,
    /// Whether it is a question of our own.
    is_question: bool,
    on_record: String,
    /// What these runs say; nothing, if a figure is missing.
    found: Option<String>,
    /// With how many seeds.
    seeds: u32,
    measured: String,
    why: &'a str,
}

pub(super) fn record<'a>(experiment: &'a Experiment, results: &'a Results) -> Record<'a> {
    let rows = experiment.runs.iter().zip(&results.rows);
    Record {
        name: &experiment.name,
        title: &experiment.title,
        question: &experiment.question,
        paper: experiment.paper.as_deref(),
        section: experiment.section.as_deref(),
        unit: experiment.unit.as_deref(),
        interval: INTERVAL,
        rows: rows.map(|(run, measured)| row(experiment, run, measured)).collect(),
        claims: experiment.findings(results).into_iter().map(claim).collect(),
    }
}

fn row<'a>(experiment: &'a Experiment, run: &'a Run, measured: &'a Measured) -> RowRecord<'a> {
    let dimensions = experiment.dimensions.iter().map(|dimension| dimension.name.as_str());
    let (mut figures, mut formulas) = (BTreeMap::new(), BTreeMap::new());
    for column in &experiment.columns {
        match column {
            Column::Figure(figure) => {
                let estimate = measured.estimate(figure, &run.setup);
                figures.insert(column.name(), estimate.map(Figure::from));
            }
            Column::Formula(formula) => {
                formulas.insert(column.name(), formula.of(run.setup.spec.nodes));
            }
        }
    }
    let one = |(repeat, report)| RunRecord {
        seed: run.seed(repeat),
        command: run.described(repeat).command(),
        report,
    };
    RowRecord {
        varied: dimensions.zip(run.coordinates.iter().map(String::as_str)).collect(),
        algorithm: &run.setup.spec.algorithm,
        nodes: run.setup.spec.nodes,
        k: run.setup.spec.capacity(),
        seeds: (0..measured.reports.len() as u32).map(|repeat| run.seed(repeat)).collect(),
        figures,
        formulas,
        runs: (0..).zip(&measured.reports).map(one).collect(),
    }
}

fn claim(finding: Finding<'_>) -> ClaimRecord<'_> {
    ClaimRecord {
        section: &finding.claim.section,
        says: &finding.claim.says,
        is_question: finding.claim.is_question,
        on_record: finding.claim.verdict.to_string(),
        found: finding.found.map(|found| found.to_string()),
        seeds: finding.seeds,
        measured: finding.measured,
        why: &finding.claim.why,
    }
}
