//! The table on the terminal, and what it says.

use std::io::Write;

use catraca_algorithms::{Load, Range};
use catraca_sim::{Comparison, LoadKind, Row};

use crate::Outcome;
use crate::table::{Align, Table, grouped, maybe, number};

pub(super) fn print(
    rows: &[Row],
    comparison: &Comparison,
    kinds: bool,
    out: &mut impl Write,
) -> Outcome {
    writeln!(
        out,
        "T = {} (a message, {}), E = {} (inside, {}), seed {}\n",
        number(comparison.delay.mean()),
        comparison.delay,
        number(comparison.hold.mean()),
        comparison.hold,
        comparison.seed
    )?;
    for line in table(rows, kinds).lines() {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "\n{LEGEND}")?;
    for line in conclusions(rows) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

const LEGEND: &str = "\
msgs: messages per entry, measured; theory: the formula evaluated; S2: what the chapter's table
claims, where it differs from what was measured by more than 5 %. delay: from a release to the next
entry, in T. resp, p99, longest: from request to entry. thrput: part of the bound 1/(T+E).
Jain: fairness over nodes, 1 is best. bypass: the most later requests that overtook one.
";

fn table(rows: &[Row], kinds: bool) -> Table {
    use Align::{Left, Right};
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
    if kinds {
        columns.push(("messages per entry by kind", Left));
    }
    let mut table = Table::new(&columns);
    for row in rows {
        table.row(cells(row, kinds));
    }
    table
}

fn cells(row: &Row, kinds: bool) -> Vec<String> {
    let report = &row.report;
    let spec = row.job.spec();
    let is_low = row.job.load == LoadKind::Closed(Load::Low);
    let mut cells = vec![
        row.job.load.to_string(),
        grouped(spec.nodes.into()),
        spec.algorithm.clone(),
        maybe(report.messages_per_entry),
        row.theory.map_or("-".to_string(), |theory| range(theory.messages)),
        claim(row),
        maybe(report.delay),
        maybe(report.response_mean),
        maybe(report.response_p99),
        number(report.longest_wait),
        // At low load the pauses decide it, not the algorithm.
        if is_low { "-".to_string() } else { maybe(report.throughput_of_bound) },
        report.fairness.map_or("-".to_string(), |jain| format!("{jain:.3}")),
        grouped(report.most_bypasses.into()),
    ];
    if kinds {
        let per_entry = |count: u64| number(count as f64 / report.entries.max(1) as f64);
        let texts =
            report.by_kind.iter().map(|(kind, count)| format!("{kind} {}", per_entry(*count)));
        cells.push(texts.collect::<Vec<_>>().join(", "));
    }
    cells
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
    match (row.claimed_messages, row.report.messages_per_entry) {
        (Some(claimed), Some(measured))
            if (claimed - measured).abs() > 0.05 * claimed.max(measured) =>
        {
            number(claimed)
        }
        _ => String::new(),
    }
}

/// The best of each load and size, in words.
fn conclusions(rows: &[Row]) -> Vec<String> {
    let mut groups: Vec<(LoadKind, u32)> = Vec::new();
    for row in rows {
        let group = (row.job.load, row.job.spec().nodes);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups.into_iter().filter_map(|(load, nodes)| conclusion(rows, load, nodes)).collect()
}

fn conclusion(rows: &[Row], load: LoadKind, nodes: u32) -> Option<String> {
    let group: Vec<&Row> = rows
        .iter()
        .filter(|row| row.job.load == load && row.job.spec().nodes == nodes)
        .filter(|row| row.report.violation.is_none())
        .collect();
    if group.len() < 2 {
        return None;
    }
    let best = |figure: fn(&Row) -> Option<f64>| {
        let least = group.iter().filter_map(|row| figure(row)).min_by(f64::total_cmp)?;
        // Whoever is within a hundredth of the best is as good.
        let alike = |row: &&&Row| figure(row).is_some_and(|value| value <= least * 1.01 + 1e-9);
        let names: Vec<&str> =
            group.iter().filter(alike).map(|row| row.job.spec().algorithm.as_str()).collect();
        Some(format!("{} ({})", names.join(", "), number(least)))
    };
    let messages = best(|row| row.report.messages_per_entry)?;
    let response = best(|row| row.report.response_mean)?;
    Some(format!(
        "N={nodes}, {load} load: fewest messages {messages}; shortest response {response}."
    ))
}
