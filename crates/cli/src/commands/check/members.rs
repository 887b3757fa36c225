//! `catraca check NAME --members N`: whole members with their clients instead of an algorithm alone.

use std::io::Write;

use catraca_algorithms::SpecError;
use catraca_check::group::{NextView, Setting, SettingError, Violation, check};
use catraca_check::{Limits, Progress, Report, Verdict, views};
use catraca_node::Turns;

use super::faults;
use crate::failure::Failure;
use crate::output::Stdout;
use crate::table::{Align, Table, bytes, grouped};
use crate::{Outcome, progress, value};

/// What is said of members. Without --members nodes of the algorithm alone are explored.
#[derive(clap::Args)]
pub(super) struct Members {
    /// Explores whole members, as the daemon runs them, with local queues, hand-overs and fences; each
    /// client makes one request unless --requests says otherwise.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value::at_least(1u16))]
    members: Option<u16>,
    /// Clients of each member [default: 2, or 1 with --fault].
    #[arg(long, value_name = "N", requires = "members",
        allow_negative_numbers = true, value_parser = value::at_least(1u16))]
    clients: Option<u16>,
    /// How many may be inside at once: a semaphore.
    #[arg(long, value_name = "K", default_value_t = 1, requires = "members",
        allow_negative_numbers = true, value_parser = value::at_least(1u32))]
    permits: u32,
    /// How often in a row clients of one member hand the lock over, at the most.
    #[arg(long, value_name = "N", default_value_t = Turns::USUAL.handovers, requires = "members",
        allow_negative_numbers = true, value_parser = value::at_least(0u8))]
    handovers: u8,
    /// How many are served in a turn of a member for each client that was there when it began.
    #[arg(long, value_name = "N", default_value_t = Turns::USUAL.rounds, requires = "members",
        allow_negative_numbers = true, value_parser = value::at_least(1u8))]
    turn_rounds: u8,
    /// How many requests may be taken back while they wait, in all.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "members",
        allow_negative_numbers = true, value_parser = value::at_least(0u32))]
    cancels: u32,
    /// What the clients ask for, as in 'x,y|y,z': client i asks for the names at place i, going round.
    #[arg(long, value_name = "NAMES", default_value = "x", requires = "members")]
    names: String,
    /// A view that may follow at any moment: 'same' members, or all but one, as in 'without:1'.
    #[arg(long, value_name = "VIEW", requires = "members", value_parser = next_view)]
    next_view: Option<NextView>,
    /// Explores a group with leases and a registry in which one member fails at any step: 'crash',
    /// 'restart', 'pause' or 'cut' (from the registry), of any member, or of one as in 'crash:1'. The
    /// others exclude it, and it may come back at any later step.
    #[arg(long, value_name = "FAULT", requires = "members",
        conflicts_with_all = ["next_view", "cancels"])]
    fault: Option<views::Failure>,
    /// With --fault: how many of all clients ask, those of the first members first [default: all].
    #[arg(long, value_name = "N", requires = "fault",
        allow_negative_numbers = true, value_parser = value::at_least(1u16))]
    askers: Option<u16>,
    /// With --fault: the first client is inside at the beginning.
    #[arg(long, requires = "fault")]
    begin_inside: bool,
}

fn next_view(text: &str) -> Result<NextView, String> {
    let member = text.strip_prefix("without:").and_then(|member| member.parse().ok());
    match (text, member) {
        ("same", _) => Ok(NextView::Same),
        (_, Some(member)) => Ok(NextView::Without(member)),
        _ => Err(format!("'{text}' is no view: say same, or without:N as in without:1")),
    }
}

impl Members {
    /// Whether members are to be explored.
    pub(super) fn are_meant(&self) -> bool {
        self.members.is_some()
    }

    /// Explores them.
    pub(super) fn run(
        &self,
        algorithm: &str,
        requests: Option<u32>,
        mutant: Option<&str>,
        limits: &Limits,
    ) -> Outcome {
        if let Some(failure) = self.fault {
            let setting = self.failing(algorithm, failure, requests);
            return faults::explore(setting, mutant, limits);
        }
        let defaults = Setting::new(algorithm);
        let setting = Setting {
            members: self.members.map_or(defaults.members, usize::from),
            clients: self.clients.map_or(defaults.clients, usize::from),
            requests: requests.unwrap_or(defaults.requests),
            permits: self.permits,
            turns: self.turns(),
            names: self.names(),
            cancels: self.cancels,
            next_view: self.next_view,
            ..defaults
        };
        let setting = match mutant {
            Some(mutant) => setting.mutated(mutant).map_err(refused)?,
            None => setting,
        };
        let report = watched(|show| check(&setting, limits, show).map_err(refused))?;
        let Setting { algorithm, members, clients, requests, .. } = &setting;
        conclude((algorithm, *members, *clients, *requests), &report, "")
    }

    /// The group in which a member fails.
    fn failing(
        &self,
        algorithm: &str,
        failure: views::Failure,
        requests: Option<u32>,
    ) -> views::Setting {
        let defaults = views::Setting::new(algorithm, failure);
        views::Setting {
            members: self.members.map_or(defaults.members, usize::from),
            clients: self.clients.map_or(defaults.clients, usize::from),
            requests: requests.unwrap_or(defaults.requests),
            askers: self.askers.map_or(defaults.askers, usize::from),
            permits: self.permits,
            turns: self.turns(),
            names: self.names(),
            begins_inside: self.begin_inside,
            ..defaults
        }
    }

    fn turns(&self) -> Turns {
        Turns { handovers: self.handovers, rounds: self.turn_rounds }
    }

    fn names(&self) -> Vec<Vec<String>> {
        let list = |names: &str| names.split(',').map(|name| name.trim().to_string()).collect();
        self.names.split('|').map(list).collect()
    }
}

/// Explores, and shows how far it has come.
pub(super) fn watched<T>(
    explore: impl FnOnce(&mut dyn FnMut(&Progress)) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let line = progress::line();
    let mut show = |progress: &Progress| {
        line.set_message(format!(
            "{} states, depth {}, {:.0} s",
            grouped(progress.states),
            progress.depth,
            progress.elapsed.as_secs_f64()
        ));
    };
    let explored = explore(&mut show);
    line.finish_and_clear();
    explored
}

pub(super) fn refused(error: SettingError) -> Failure {
    match error {
        SettingError::Algorithm(error @ SpecError::UnknownAlgorithm(_)) => error.into(),
        error => Failure::input(error),
    }
}

/// Shows what an exploration of members has shown: who they were, and what was not looked at.
pub(super) fn conclude(
    (algorithm, members, clients, requests): (&str, usize, usize, u32),
    report: &Report<Violation>,
    scope: &str,
) -> Outcome {
    let mut table = Table::new(&[
        ("algorithm", Align::Left),
        ("members", Align::Right),
        ("clients of each", Align::Right),
        ("requests", Align::Right),
        ("states", Align::Right),
        ("generated", Align::Right),
        ("depth", Align::Right),
        ("seconds", Align::Right),
        ("verdict", Align::Left),
    ]);
    let (verdict, end) = match &report.verdict {
        Verdict::Holds => ("holds".to_string(), Ok(())),
        Verdict::Violated(it) => (format!("VIOLATED: {}", it.property), Err(Failure::Violation)),
        Verdict::OutOfMemory { used, .. } => {
            (format!("no verdict: gave up at {}", bytes(*used)), Err(Failure::GaveUp))
        }
        Verdict::TooManyStates { limit } => {
            (format!("no verdict: gave up after {} states", grouped(*limit)), Err(Failure::GaveUp))
        }
        Verdict::TooLarge { .. } => ("no verdict: too large".to_string(), Err(Failure::GaveUp)),
        Verdict::Interrupted => return Err(Failure::Interrupted),
    };
    table.row(vec![
        algorithm.to_string(),
        members.to_string(),
        clients.to_string(),
        requests.to_string(),
        grouped(report.states),
        grouped(report.generated),
        report.depth.to_string(),
        format!("{:.2}", report.elapsed.as_secs_f64()),
        verdict,
    ]);
    let mut out = Stdout::lock();
    for line in table.lines() {
        writeln!(out, "{line}")?;
    }
    if !scope.is_empty() {
        writeln!(out, "\n{scope}")?;
    }
    if let Verdict::Violated(violation) = &report.verdict {
        writeln!(out, "\n{}\nThe shortest way there:", violation.what)?;
        for (number, step) in (1..).zip(&violation.steps) {
            writeln!(out, "{number:>4}  {}", step.action)?;
            for effect in &step.effects {
                writeln!(out, "        {effect}")?;
            }
        }
    }
    out.flush()?;
    end
}
