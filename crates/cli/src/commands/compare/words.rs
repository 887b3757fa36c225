//! The table on the terminal, and what it says.

use std::io::Write;

use catraca_algorithms::{Load, Range};
use catraca_sim::{Job, LoadKind, Report, Row, Setup};

use crate::Outcome;
use crate::table::{Align, Table, grouped, maybe, number};

pub(super) fn print(rows: &[Row], kinds: bool, out: &mut impl Write) -> Outcome {
    // All runs have the same times and resources.
    let Some(Row { job: Job { setup, .. }, .. }) = rows.first() else { return Ok(()) };
    writeln!(
        out,
        "T = {} (a message, {}), E = {} (inside, {}), seed {}\n",
        number(setup.network.latency.mean()),
        setup.network.latency,
        number(setup.workload.hold.mean()),
        setup.workload.hold,
        setup.seed
    )?;
    let groups = groups(rows);
    for line in table(&groups, setup).lines() {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "\n{LEGEND}")?;
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

const LEGEND: &str = "\
msgs: messages per entry, measured; theory: the formula evaluated, where it covers the load;
S2: what the chapter's table claims, where it differs from what was measured by more than 5 %.
delay: from a release to the next entry, in T. resp, p99, longest: from request to entry; p99 is exact
up to 65,536 entries, and within 0.1 % above. thrput: entries in the time T+E of a message and a stay;
above 1 only where a node enters without a message, from nearby, or with others inside.
Jain: fairness over nodes, 1 is best. bypass: the most later requests that overtook one.";

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
    let mut columns = vec![
        ("load", Left),
        ("N", Right),
        ("algorithm", Left),
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
    ];
    columns.extend(more.iter().map(|(name, _, _)| (*name, Right)));
    let mut table = Table::new(&columns);
    for group in groups {
        table.gap();
        for row in group {
            let more = more.iter().map(|(_, figure, _)| maybe(figure(&row.report)));
            table.row(names(row).into_iter().chain(figures(row)).chain(more).collect());
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
            let entries = row.report.entries.max(1) as f64;
            let kind =
                |&(kind, count): &(&str, u64)| format!("{kind} {}", number(count as f64 / entries));
            let kinds: Vec<String> = row.report.by_kind.iter().map(kind).collect();
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
    let report = &row.report;
    let is_low = row.job.load == LoadKind::Closed(Load::Low);
    [
        maybe(report.messages_per_entry),
        row.job.setup.theory().map_or("-".to_string(), |theory| range(theory.messages)),
        claim(row),
        maybe(report.delay),
        maybe(report.response_mean),
        maybe(report.response_p99),
        number(report.longest_wait),
        // At low load the pauses decide it, not the algorithm.
        if is_low { "-".to_string() } else { maybe(report.throughput_of_bound) },
        report.fairness.map_or("-".to_string(), |jain| format!("{jain:.3}")),
        grouped(report.most_bypasses.into()),
    ]
}

fn range(range: Range) -> String {
    if range.min == range.max {
        number(range.min)
    } else {
        format!("{}..{}", number(range.min), number(range.max))
    }
}

/// What S2 claims, if the measurement contradicts it.
fn claim(row: &Row) -> String {
    match (row.job.setup.claimed_messages(), row.report.messages_per_entry) {
        (Some(claimed), Some(measured))
            if (claimed - measured).abs() > 0.05 * claimed.max(measured) =>
        {
            number(claimed)
        }
        _ => String::new(),
    }
}

/// The best of a group, in words; nothing if there is no choice.
fn conclusion(group: &[&Row]) -> Vec<String> {
    let is_sound =
        |row: &&Row| row.report.violation.is_none() && row.report.end.gave_up().is_none();
    let sound: Vec<&Row> = group.iter().copied().filter(is_sound).collect();
    let [first, _, ..] = sound[..] else { return Vec::new() };
    let best = |figure: fn(&Row) -> Option<f64>| {
        let least = sound.iter().filter_map(|row| figure(row)).min_by(f64::total_cmp)?;
        // Whoever is within a hundredth of the best is as good.
        let alike = |row: &&&Row| figure(row).is_some_and(|value| value <= least * 1.01 + 1e-9);
        let (good, rest): (Vec<&&Row>, Vec<&&Row>) = sound.iter().partition(alike);
        let names = |rows: &[&&Row]| {
            rows.iter().map(|row| row.job.spec().algorithm.as_str()).collect::<Vec<_>>().join(", ")
        };
        let names = match rest.len() {
            0 => "all".to_string(),
            few if few < good.len() => format!("all but {}", names(&rest)),
            _ => names(&good),
        };
        Some(format!("{names} ({})", number(least)))
    };
    let messages = best(|row| row.report.messages_per_entry);
    let response = best(|row| row.report.response_mean);
    let (Some(messages), Some(response)) = (messages, response) else { return Vec::new() };
    vec![
        format!(
            "{} load, {} nodes:",
            first.job.load_name(),
            grouped(first.job.spec().nodes.into())
        ),
        format!("  fewest messages    {messages}"),
        format!("  shortest response  {response}"),
    ]
}
