//! The figures of a run on the terminal.

use std::io::Write;

use catraca_sim::{End, Report, Setup, Violation};

use crate::Outcome;
use crate::failure::Failure;
use crate::table::{grouped, maybe, number};

pub(super) fn print(report: &Report, setup: &Setup, out: &mut impl Write) -> Outcome {
    let spec = &setup.spec;
    writeln!(
        out,
        "{} on {} nodes, seed {}",
        spec.algorithm,
        grouped(spec.nodes.into()),
        setup.seed
    )?;
    print_end(report.end, report.time, report.events, out)?;
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
        "messages    {} ({}), {} per entry{}",
        grouped(report.messages),
        if kinds.is_empty() { "none".to_string() } else { kinds.join(", ") },
        maybe(report.messages_per_entry),
        if report.waiting > 0 { ", with the messages of those still waiting" } else { "" }
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
    print_verdict(report.violation.as_ref(), report.end, out)
}

/// When and why a run ended.
pub(super) fn print_end(end: End, time: f64, events: u64, out: &mut impl Write) -> Outcome {
    let why = match end {
        End::Entries => "all entries made",
        End::Time => "time is up",
        End::Quiet => "nothing more to do",
        End::Served => "everybody was served",
        End::Violation => "an invariant broke",
        End::Interrupted => "interrupted",
        End::TooManyRequests
        | End::TooManyEvents
        | End::EventBound
        | End::SameInstant
        | End::EndOfTime
        | End::NobodyEnters
        | End::Restless => "gave up",
    };
    let (time, events) = (number(time), grouped(events));
    writeln!(out, "ended       at {time} after {events} events: {why}")?;
    Ok(())
}

/// What was found.
pub(super) fn print_verdict(
    violation: Option<&Violation>,
    end: End,
    out: &mut impl Write,
) -> Outcome {
    match (violation, end.gave_up()) {
        (None, None) => writeln!(out, "verdict     no invariant broke")?,
        (None, Some(why)) => {
            writeln!(out, "gave up     {why}\nverdict     no invariant broke until then")?;
        }
        (Some(violation), _) => writeln!(
            out,
            "violation   {} at {}: {}",
            violation.invariant, violation.at, violation.what
        )?,
    }
    Ok(())
}

/// Whether a second run was the same; if it was, with which digest.
pub(super) fn print_self_check(digest: Option<&String>, out: &mut impl Write) -> Outcome {
    if let Some(digest) = digest {
        writeln!(out, "self-check  two runs are equal in every step, digest {digest}")?;
        return Ok(());
    }
    writeln!(
        out,
        "self-check  two runs of the same setup differ: this is a defect of the simulator"
    )?;
    Err(Failure::Violation)
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
        "throughput  {} entries per unit of time, {} in the time T+E of a message and a stay",
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
