//! Experiments on the terminal.

use std::io::Write;

use catraca_lab::{Column, Experiment, Finding, Results, all};

use crate::Outcome;
use crate::failure::Failure;
use crate::table::{Align, Table, counted};

/// How wide text may be.
const WIDTH: usize = 100;

/// All experiments, one a line.
pub(super) fn list(out: &mut impl Write) -> Outcome {
    let columns = [
        ("name", Align::Left),
        ("paper", Align::Left),
        ("runs", Align::Right),
        ("title", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for experiment in all().map_err(Failure::input)? {
        table.row(vec![
            experiment.name.clone(),
            experiment.paper.clone().unwrap_or_default(),
            experiment.runs.len().to_string(),
            experiment.title.clone(),
        ]);
    }
    for line in table.lines() {
        writeln!(out, "{line}")?;
    }
    writeln!(
        out,
        "\n'catraca experiment NAME' runs one, 'catraca experiment all' runs all of them."
    )?;
    Ok(())
}

/// Everything about one experiment.
pub(super) fn print(
    experiment: &Experiment,
    results: &Results,
    names_pictures: bool,
    out: &mut impl Write,
) -> Outcome {
    writeln!(out, "{}: {}", experiment.name, experiment.title)?;
    let source = match (&experiment.paper, &experiment.section) {
        (Some(paper), Some(section)) => format!("{paper}, section {section}. "),
        (Some(paper), None) => format!("{paper}. "),
        _ => String::new(),
    };
    let unit = experiment
        .unit
        .as_ref()
        .map_or(String::new(), |unit| format!(" A unit of time is {unit}."));
    for line in wrapped(&format!("{source}{}{unit}", experiment.question), WIDTH) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    for line in table(experiment, results).lines() {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    for line in wrapped(&experiment.about_seeds(), WIDTH) {
        writeln!(out, "{line}")?;
    }
    let legends: Vec<String> = experiment.columns.iter().filter_map(Column::legend).collect();
    if !legends.is_empty() {
        writeln!(out)?;
        for line in wrapped(&format!("{}.", legends.join("; ")), WIDTH) {
            writeln!(out, "{line}")?;
        }
    }
    for finding in experiment.findings(results) {
        writeln!(out)?;
        say(&finding, experiment.paper.as_deref().unwrap_or_default(), out)?;
    }
    for surprise in experiment.surprises(results) {
        writeln!(out, "\nsurprise: {surprise}")?;
    }
    let pictures = experiment.picture_files();
    if names_pictures && !pictures.is_empty() {
        let count = counted(pictures.len() as u64, "picture", "pictures");
        writeln!(out, "\n{count} with --out DIR: {}", pictures.join(", "))?;
    }
    Ok(())
}

fn table(experiment: &Experiment, results: &Results) -> Table {
    let figures = experiment.table(results);
    let words = figures.words();
    let heads = figures.heads();
    let align = |at: usize| {
        let is_number = |row: &Vec<String>| row[at].parse::<f64>().is_ok();
        let is_figure = at >= figures.varied.len();
        if is_figure || words.iter().all(is_number) { Align::Right } else { Align::Left }
    };
    let columns: Vec<(&str, Align)> =
        heads.iter().enumerate().map(|(at, head)| (head.as_str(), align(at))).collect();
    let mut table = Table::new(&columns);
    for (index, row) in words.iter().enumerate() {
        if figures.begins_group(index) {
            table.gap();
        }
        table.row(row.clone());
    }
    table
}

/// A claim, the verdict, and the figures that decide it.
fn say(finding: &Finding<'_>, paper: &str, out: &mut impl Write) -> Outcome {
    let claim = finding.claim;
    let says = format!(
        "{}: {} ({paper}, {}). {}",
        finding.verdict(),
        claim.says,
        claim.section,
        claim.why
    );
    for (index, line) in wrapped(&says, WIDTH - 4).iter().enumerate() {
        writeln!(out, "{}{line}", if index == 0 { "" } else { "    " })?;
    }
    for line in wrapped(&finding.measured, WIDTH - 4) {
        writeln!(out, "    {line}")?;
    }
    if let Some(words) = finding.beside_record() {
        writeln!(out, "    {words}")?;
    }
    Ok(())
}

/// The words of `text` in lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}
