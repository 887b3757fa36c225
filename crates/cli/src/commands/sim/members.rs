//! A run of members and their clients.

use std::io::Write;
use std::path::Path;

use catraca_sim::members::{Hooks, Observer, Report, Setup, SetupError, run};
use catraca_sim::{End, Scenario, ScenarioError, Time};
use serde::Serialize;

use super::words;
use crate::document::{self, Format};
use crate::failure::Failure;
use crate::output::{PendingFile, Stdout};
use crate::table::{grouped, maybe, number};
use crate::{Outcome, interrupt, progress};

/// Runs `setup`, which `scenario` describes, and prints what it shows.
pub(super) fn simulate(scenario: &Scenario, setup: &Setup, self_check: bool) -> Outcome {
    let create = |key| scenario.value(key).map(Path::new).map(PendingFile::create).transpose();
    let (json, mut log) = (create("output.json")?, create("output.log")?);
    let report = logged(setup, log.as_mut())?;
    let mut out = Stdout::lock();
    print(&report, setup, &mut out)?;
    if self_check {
        let same = logged(setup, None)? == report;
        words::print_self_check(same.then_some(&report.digest), &mut out)?;
    }
    if let Some(file) = json {
        let content = MembersContent {
            algorithm: &setup.algorithm,
            members: setup.members,
            clients: setup.clients,
            locks: setup.locks,
            permits: setup.permits,
            seed: setup.seed,
            report: &report,
        };
        let command = scenario.clone().without_files().command();
        document::write(file, Format::Members, &command, content)?;
    }
    if let Some(log) = log {
        log.finish()?;
    }
    super::judged(report.violation.as_ref(), report.end, scenario, &mut out)
}

/// A run of members in a file.
#[derive(Serialize)]
struct MembersContent<'a> {
    algorithm: &'a str,
    members: u32,
    clients: u32,
    locks: u32,
    permits: u32,
    seed: u64,
    #[serde(flatten)]
    report: &'a Report,
}

/// Runs `setup` and writes a line for everything that happens, if somebody wants it.
fn logged(setup: &Setup, log: Option<&mut PendingFile>) -> Result<Report, Failure> {
    let stop = interrupt::flag();
    let spinner = progress::line();
    spinner.set_message(format!("running {} members", setup.members));
    let mut failure = None;
    let report = match log {
        None => run(setup, Hooks { observer: None, stop: Some(&stop) }),
        Some(log) => {
            let mut observer = |at: Time, line: std::fmt::Arguments<'_>| {
                if let Err(error) = writeln!(log, "{at} {line}") {
                    failure.get_or_insert(error);
                }
            };
            let observer: &mut Observer<'_> = &mut observer;
            run(setup, Hooks { observer: Some(observer), stop: Some(&stop) })
        }
    };
    spinner.finish_and_clear();
    let of_setup =
        |error: SetupError| Failure::of_scenario(ScenarioError::Members(error), None, |_| false);
    let report = report.map_err(of_setup)?;
    match (failure, report.end) {
        (Some(error), _) => Err(Failure::System(error.into())),
        (None, End::Interrupted) => Err(Failure::Interrupted),
        (None, _) => Ok(report),
    }
}

fn print(report: &Report, setup: &Setup, out: &mut impl Write) -> Outcome {
    let counted = |count: u32, what: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{} {what}{plural}", grouped(count.into()))
    };
    let mut group = vec![counted(setup.members, "member"), counted(setup.clients, "client")];
    group.push(counted(setup.locks, "lock"));
    if setup.permits > 1 {
        group.push(format!("{} permits", setup.permits));
    }
    writeln!(out, "{}: {}, seed {}", setup.algorithm, group.join(", "), setup.seed)?;
    words::print_end(report.end, report.time, report.events, out)?;
    writeln!(
        out,
        "entries     {}, {} by hand-over, {} still waiting",
        grouped(report.entries),
        grouped(report.handovers),
        grouped(report.waiting)
    )?;
    if report.is_stuck {
        writeln!(
            out,
            "stuck       these wait for a member that has crashed, and {} does not survive that",
            setup.algorithm
        )?;
    }
    writeln!(
        out,
        "messages    {} between members ({}), {} per entry",
        grouped(report.messages),
        counts(report.by_kind.iter().map(|(kind, count)| (kind.as_str(), *count))),
        maybe(report.messages_per_entry)
    )?;
    if report.within > 0 {
        let within = grouped(report.within);
        writeln!(
            out,
            "            of these kinds, {within} were between seats of one member and not sent"
        )?;
    }
    writeln!(
        out,
        "response    mean {}, p99 {}, longest wait {}",
        maybe(report.response_mean),
        maybe(report.response_p99),
        number(report.longest_wait)
    )?;
    writeln!(
        out,
        "fairness    Jain {} over clients, {} over members",
        maybe(report.client_fairness),
        maybe(report.member_fairness)
    )?;
    print_refusals(report, out)?;
    words::print_verdict(report.violation.as_ref(), report.end, out)
}

/// What clients asked for and did not get, or lost.
fn print_refusals(report: &Report, out: &mut impl Write) -> Outcome {
    let refused = report.refused.iter().map(|(code, count)| (code.as_str(), *count));
    let others = [
        ("timed-out", report.timed_out),
        ("taken back", report.cancelled),
        ("lost with their session", report.lost),
    ];
    writeln!(out, "refused     {}", counts(refused.chain(others)))?;
    let gone = match report.vanished {
        0 => String::new(),
        vanished => format!(", {} clients went without releasing", grouped(vanished)),
    };
    writeln!(out, "sessions    {}{gone}", grouped(report.sessions))?;
    Ok(())
}

/// What there is any of.
fn counts<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> String {
    let counts = counts.filter(|(_, count)| *count > 0);
    let counts: Vec<String> =
        counts.map(|(what, count)| format!("{what} {}", grouped(count))).collect();
    if counts.is_empty() { "none".to_string() } else { counts.join(", ") }
}
