//! The table on the terminal, and what it says.

use std::io::Write;

use catraca_algorithms::{Load, Range};
use catraca_lab::Estimate;
use catraca_sim::{Job, LoadKind, Report, Row, Setup};

use super::conclusion::conclusion;
use super::estimate;
use crate::Outcome;
use crate::table::{Align, Table, grouped, maybe, number};

pub(super) fn print(rows: &[Row], kinds: bool, out: &mut impl Write) -> Outcome {
    // All runs have the same times and resources.
    let Some(Row { job, .. }) = rows.first() else { return Ok(()) };
    let setup = &job.setup;
    writeln!(
        out,
        "T = {} (a message, {}), E = {} (inside, {}), {}\n",
        number(setup.network.latency.mean()),
        setup.network.latency,
        number(setup.workload.hold.mean()),
        setup.workload.hold,
        seeds(job)
    )?;
    let groups = groups(rows);
    for line in table(&groups, setup).lines() {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "\n{LEGEND}")?;
    if job.seeds > 1 {
        writeln!(out, "{OF_SEEDS}")?;
    }
    for (_, _, legend) in more_columns(setup) {
        writeln!(out, "{legend}")?;
    }
    writeln!(out)?;
    if kinds {
        for line in kinds_table(&groups).lines() {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
    }
    for line in groups.iter().flat_map(|group| conclusion(group)) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

pub(super) fn seeds(job: &Job) -> String {
    match job.seeds {
        1 => format!("seed {}", job.seed(0)),
        count => format!("seeds {} to {}", job.seed(0), job.seed(count - 1)),
    }
}

const LEGEND: &str = "\
msgs: messages per entry, measured; theory: the formula evaluated, where it covers the load;
S2: what the chapter's table claims, where it differs for certain from what was measured by more than 5 %.
delay: from a release to the next entry, in T. resp, p99, longest: from request to entry; p99 is exact
up to 65,536 entries, and within 0.1 % above. thrput: entries in the time T+E of a message and a stay;
above 1 only where a node enters without a message, from nearby, or with others inside.
Jain: fairness over nodes, 1 is best. bypass: the most later requests that overtook one.";

const OF_SEEDS: &str = "\
Figures are means over the seeds, longest and bypass the most of all. ±: half the width of Student's
interval of 95 %; where there is none, all seeds agree.";

/// A column that not every table has: its name, its figure, and what it means.
type Column = (&'static str, fn(&Report) -> Option<f64>, &'static str);

const INSIDE: Column = (
    "inside",
    |report| report.concurrency,
    "inside: the mean number of nodes inside at the same time.",
);

const POSSIBLE: Column = (
    "possible",
    |report| report.concurrency_possible,
    "possible: how many could have been, with the waiting requests that meet nobody let in too.",
);

const BETWEEN: Column = (
    "between",
    |report| report.messages_between_per_entry,
    "between: messages between clusters per entry.",
);

fn more_columns(setup: &Setup) -> Vec<Column> {
    let mut columns = Vec::new();
    if setup.spec.resource_count() > 1 {
        columns.extend([INSIDE, POSSIBLE]);
    }
    if setup.clusters.is_some() {
        columns.push(BETWEEN);
    }
    columns
}

/// The rows that can be compared with each other: those of one load and one size.
fn groups(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    let is_alike =
        |a: &Row, b: &Row| a.job.load == b.job.load && a.job.spec().nodes == b.job.spec().nodes;
    for row in rows {
        match groups.iter_mut().find(|group| is_alike(group[0], row)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

fn table(groups: &[Vec<&Row>], setup: &Setup) -> Table {
    use Align::{Left, Right};
    let more = more_columns(setup);
    let mut columns = vec![("load", Left), ("N", Right), ("algorithm", Left)];
    // Those that let only one in are compared too, if they are named.
    let has_k = groups.iter().flatten().any(|row| row.job.spec().k.is_some_and(|k| k > 1));
    if has_k {
        columns.push(("k", Right));
    }
    columns.extend([
        ("msgs", Right),
        ("theory", Right),
        ("S2", Right),
        ("delay", Right),
        ("resp", Right),
        ("p99", Right),
        ("longest", Right),
        ("thrput", Right),
        ("Jain", Right),
        ("bypass", Right),
    ]);
    columns.extend(more.iter().map(|(name, _, _)| (*name, Right)));
    let mut table = Table::new(&columns);
    for group in groups {
        table.gap();
        for row in group {
            let k = has_k.then(|| row.job.spec().capacity().to_string());
            let more = more.iter().map(|(_, figure, _)| mean(row, figure));
            let names = names(row).into_iter().chain(k);
            table.row(names.chain(figures(row)).chain(more).collect());
        }
    }
    table
}

/// A table of its own, because a row of figures and kinds is too long for a screen.
fn kinds_table(groups: &[Vec<&Row>]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("load", Left),
        ("N", Right),
        ("algorithm", Left),
        ("messages per entry by kind", Left),
    ]);
    for group in groups {
        table.gap();
        for row in group {
            let sent = |kind: usize| {
                estimate(row, |report| {
                    let (_, count) = report.by_kind.get(kind)?;
                    Some(*count as f64 / report.entries.max(1) as f64)
                })
            };
            let known = row.reports.first().into_iter().flat_map(|report| &report.by_kind);
            let kind = |(at, (name, _)): (usize, &(&str, u64))| {
                format!("{name} {}", sent(at).map_or("-".to_string(), shown))
            };
            let kinds: Vec<String> = known.enumerate().map(kind).collect();
            table.row(names(row).into_iter().chain([kinds.join(", ")]).collect());
        }
    }
    table
}

fn names(row: &Row) -> [String; 3] {
    let spec = row.job.spec();
    [row.job.load_name(), grouped(spec.nodes.into()), spec.algorithm.clone()]
}

fn figures(row: &Row) -> [String; 10] {
    let is_low = row.job.load == LoadKind::Closed(Load::Low);
    let with_interval =
        |figure: fn(&Report) -> Option<f64>| estimate(row, figure).map_or("-".to_string(), shown);
    let most = |figure: fn(&Report) -> f64| row.reports.iter().map(figure).fold(0.0, f64::max);
    let jain = estimate(row, |report| report.fairness);
    [
        with_interval(|report| report.messages_per_entry),
        row.job.setup.theory().map_or("-".to_string(), |theory| range(theory.messages)),
        claim(row),
        mean(row, |report| report.delay),
        with_interval(|report| report.response_mean),
        mean(row, |report| report.response_p99),
        number(most(|report| report.longest_wait)),
        // At low load the pauses decide it, not the algorithm.
        if is_low { "-".to_string() } else { mean(row, |report| report.throughput_of_bound) },
        jain.map_or("-".to_string(), |jain| format!("{:.3}", jain.mean)),
        grouped(most(|report| report.most_bypasses.into()) as u64),
    ]
}

fn mean(row: &Row, figure: impl Fn(&Report) -> Option<f64>) -> String {
    maybe(estimate(row, figure).map(|one| one.mean))
}

/// A figure with its interval, if it has one, without spaces: rows are long enough.
fn shown(estimate: Estimate) -> String {
    match estimate.half_width > 0.0 {
        true => format!("{}±{}", number(estimate.mean), rough(estimate.half_width)),
        false => number(estimate.mean),
    }
}

/// A digit or two are enough to say how uncertain a figure is.
fn rough(width: f64) -> String {
    match width {
        1.0.. => format!("{width:.0}"),
        0.1.. => format!("{width:.1}"),
        0.01.. => format!("{width:.2}"),
        0.001.. => format!("{width:.3}"),
        _ => format!("{width:.0e}"),
    }
}

fn range(range: Range) -> String {
    // Two whole numbers need no decimals to be told from a measured one.
    let end = |value: f64| match value.fract() == 0.0 {
        true => format!("{value}"),
        false => number(value),
    };
    match range.min == range.max {
        true => number(range.min),
        false => format!("{}..{}", end(range.min), end(range.max)),
    }
}

/// What S2 claims, if the measurements contradict it, whatever the seed.
fn claim(row: &Row) -> String {
    let Some(claimed) = row.job.setup.claimed_messages() else { return String::new() };
    // How much more than 5 % lies between them.
    let excess = estimate(row, |report| {
        let measured = report.messages_per_entry?;
        Some((claimed - measured).abs() - 0.05 * claimed.max(measured) - 1e-9)
    });
    match excess.and_then(|excess| excess.is_positive()) {
        Some(true) => number(claimed),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_a_digit_or_two_and_an_exact_figure_has_none() {
        let figure = |mean, half_width| shown(Estimate { mean, half_width });
        let shown = [figure(12.0, 0.0), figure(12.0, 0.0657), figure(126.04, 16.57)];
        assert_eq!(shown, ["12.00", "12.00±0.07", "126.0±17"]);
        assert_eq!([figure(3.0, 1.0), figure(3000.0, 123.4)], ["3.00±1", "3000±123"]);
        assert_eq!(figure(1.0, 1e-9), "1.00±1e-9");
    }
}
