//! The figures of a run on the terminal.

use std::io::Write;

use catraca_sim::{End, Report, Setup};

use crate::Outcome;
use crate::table::{grouped, maybe, number};

pub(super) fn print(report: &Report, setup: &Setup, out: &mut impl Write) -> Outcome {
    let spec = &setup.spec;
    let end = match report.end {
        End::Entries => "all entries made",
        End::Time => "time is up",
        End::Quiet => "nothing more to do",
        End::Violation => "an invariant broke",
        End::Interrupted => "interrupted",
    };
    writeln!(
        out,
        "{} on {} nodes, seed {}",
        spec.algorithm,
        grouped(spec.nodes.into()),
        setup.seed
    )?;
    writeln!(
        out,
        "ended       at {} after {} events: {end}",
        number(report.time),
        grouped(report.events)
    )?;
    let kinds: Vec<String> = report
        .by_kind
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{kind} {}", grouped(*count)))
        .collect();
    writeln!(
        out,
        "entries     {}, {} still waiting",
        grouped(report.entries),
        grouped(report.waiting)
    )?;
    writeln!(
        out,
        "messages    {} ({}), {} per entry",
        grouped(report.messages),
        if kinds.is_empty() { "none".to_string() } else { kinds.join(", ") },
        maybe(report.messages_per_entry)
    )?;
    if let (Some(within), Some(between)) = (report.messages_within, report.messages_between) {
        writeln!(
            out,
            "clusters    {} messages within, {} between: {} and {} per entry",
            grouped(within),
            grouped(between),
            maybe(report.messages_within_per_entry),
            maybe(report.messages_between_per_entry)
        )?;
    }
    print_times(report, out)?;
    match &report.violation {
        None => writeln!(out, "verdict     no invariant broke")?,
        Some(violation) => writeln!(
            out,
            "violation   {} at {}: {}",
            violation.invariant, violation.at, violation.what
        )?,
    }
    Ok(())
}

fn print_times(report: &Report, out: &mut impl Write) -> Outcome {
    writeln!(out, "delay       {} T from a release to the next entry", maybe(report.delay))?;
    writeln!(
        out,
        "response    mean {}, p99 {}, longest wait {}",
        maybe(report.response_mean),
        maybe(report.response_p99),
        number(report.longest_wait)
    )?;
    writeln!(
        out,
        "throughput  {} entries per unit of time, {} of the bound 1/(T+E)",
        maybe(report.throughput),
        maybe(report.throughput_of_bound)
    )?;
    if report.concurrency.is_some() {
        writeln!(
            out,
            "inside      {} nodes at the same time, {} possible",
            maybe(report.concurrency),
            maybe(report.concurrency_possible)
        )?;
    }
    writeln!(
        out,
        "fairness    Jain {}, most bypasses {}",
        maybe(report.fairness),
        grouped(report.most_bypasses.into())
    )?;
    if report.cluster_fairness.is_some() {
        writeln!(out, "            Jain {} between clusters", maybe(report.cluster_fairness))?;
    }
    Ok(())
}
