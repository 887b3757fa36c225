//! `catraca git report`: what people waited for, from the audit logs of nodes.

mod log;
mod simulated;
mod waits;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use catraca_node::Config;
use serde_json::json;

use self::log::Log;
use self::simulated::Simulated;
use self::waits::{Figures, Selected};
use super::now;
use crate::Outcome;
use crate::failure::Failure;
use crate::output::{Stdout, terminal_width};
use crate::table::{Align, Table, counted, grouped, lasting};
use crate::value::span;

/// Shows how long people waited for locks on files: for other people, and for the network.
///
/// It reads the audit logs of all nodes of a group (catraca node --audit FILE). A wait is for people while
/// somebody has the file; otherwise it is for the network: the algorithm, and the registry that keeps the lock.
/// Whoever finds a file that nobody has 'had it at once', however long the network takes.
/// Beside it are the figures of the simulated teams of 'catraca experiment s0-teams'.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    /// The audit logs, of every node, with the older ones that were moved away.
    #[arg(required = true, value_name = "FILE")]
    logs: Vec<PathBuf>,
    /// Only this repository.
    #[arg(long, value_name = "TEAM/REPOSITORY")]
    repository: Option<String>,
    /// Only locks that were granted in this time until now, as in 4w.
    #[arg(long, value_name = "TIME", value_parser = span)]
    since: Option<Duration>,
    /// The configuration of the group, which says to which teams (clusters) its members belong.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Leave out the simulated teams, which take a few seconds.
    #[arg(long)]
    no_simulation: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Exit codes:
    0  the report was printed
    2  wrong input: no such file, or it is no audit log
  130  interrupted

Example:
  catraca git report a/audit.log* b/audit.log* --config group.toml --since 4w";

impl Arguments {
    pub(super) fn run(self) -> Outcome {
        let teams = self.teams()?;
        let mut log = Log::default();
        for file in &self.logs {
            log.read(file)?;
        }
        log.sort();
        let selected = Selected {
            prefix: match &self.repository {
                Some(repository) => format!("git/{repository}/"),
                None => "git/".to_string(),
            },
            from: self.since.map_or(0, |since| now().saturating_sub(since.as_millis() as u64)),
            teams: &teams,
        };
        let figures = Figures::of(&log, &selected);
        let simulated = match self.no_simulation {
            true => None,
            false => Some(Simulated::run()?),
        };
        match self.json {
            true => print_json(&figures, simulated.as_ref(), log.missing),
            false => print(&figures, simulated.as_ref(), log.missing),
        }
    }

    /// The teams of members, as the configuration of the group has them.
    fn teams(&self) -> Result<BTreeMap<String, String>, Failure> {
        let Some(file) = &self.config else { return Ok(BTreeMap::new()) };
        let wrong = |why: String| Failure::Input(format!("{}: {why}", file.display()));
        let text = catraca_sim::read_text(file)
            .map_err(|why| Failure::input(format!("cannot read '{}': {why}", file.display())))?;
        let config =
            Config::from_shared_toml(&text, None).map_err(|error| wrong(error.to_string()))?;
        let labelled = config.members.into_iter().filter_map(|it| Some((it.name, it.cluster?)));
        Ok(labelled.collect())
    }
}

fn print(figures: &Figures, simulated: Option<&Simulated>, missing: u64) -> Outcome {
    let mut out = Stdout::lock();
    if figures.locks == 0 {
        writeln!(out, "No file was locked in the time of these logs.")?;
    } else {
        let people = counted(figures.people.len() as u64, "person", "people");
        let files = counted(figures.files.len() as u64, "file", "files");
        let locks = counted(figures.locks, "lock", "locks");
        writeln!(out, "{locks} on {files}, by {people}\n")?;
        for line in table(figures, simulated).lines_within(terminal_width(), &[]) {
            writeln!(out, "{line}")?;
        }
        if !figures.teams.is_empty() {
            writeln!(out)?;
            for line in team_table(figures).lines_within(terminal_width(), &[]) {
                writeln!(out, "{line}")?;
            }
        }
        if simulated.is_some() {
            writeln!(out, "\ns0-teams: {}", simulated::WHAT)?;
            writeln!(out, "{NO_MESSAGES}")?;
        }
    }
    if missing > 0 {
        writeln!(out, "\n{} missing in these logs.", counted(missing, "record is", "records are"))?;
    }
    out.flush()?;
    Ok(())
}

/// Why a cell of the table is empty.
const NO_MESSAGES: &str = "Messages are not measured: audit logs have none, and members send them for all locks \
     together (catraca_messages_sent of /metrics counts those).";

fn table(figures: &Figures, simulated: Option<&Simulated>) -> Table {
    let mut columns = vec![("", Align::Left), ("measured", Align::Right)];
    if simulated.is_some() {
        columns.push(("s0-teams", Align::Right));
    }
    let mut table = Table::new(&columns);
    let mut row = |name: &str, measured: String, simulated_value: Option<String>| {
        let mut cells = vec![name.to_string(), measured];
        if simulated.is_some() {
            cells.push(simulated_value.unwrap_or_else(|| "-".to_string()));
        }
        table.row(cells);
    };
    let of = |pick: fn(&Simulated) -> Option<String>| simulated.and_then(pick);
    row("waited, mean", time(figures.mean_wait()), of(|it| Some(time(it.wait()))));
    row("  for people", time(figures.mean_people()), of(|it| Some(time(it.people))));
    row("  for the network", time(figures.mean_network()), of(|it| Some(time(it.network))));
    row(
        "for people, of all waiting",
        share(figures.people_share()),
        of(|it| Some(share(it.people_share()))),
    );
    row(
        "waited, 99 of 100 less than",
        time(figures.percentile_wait()),
        of(|it| Some(time(it.percentile))),
    );
    row("had it at once", share(figures.at_once_share()), None);
    row("gave up waiting", grouped(figures.given_up), None);
    row("held, mean", time(figures.mean_hold()), of(|it| Some(time(it.hold))));
    row("stayed within the team", share(figures.within_share()), of(|it| Some(share(it.within))));
    row(
        "messages between teams, per lock",
        "-".to_string(),
        of(|it| it.between.map(|it| format!("{it:.2}"))),
    );
    table
}

fn team_table(figures: &Figures) -> Table {
    let columns = [
        ("team", Align::Left),
        ("locks", Align::Right),
        ("waited", Align::Right),
        ("for people", Align::Right),
        ("network", Align::Right),
        ("from own team", Align::Right),
    ];
    let mut table = Table::new(&columns);
    for (team, its) in &figures.teams {
        table.row(vec![
            team.clone(),
            grouped(its.locks),
            time(its.mean_wait()),
            time(its.mean_people()),
            time(its.mean_network()),
            share(its.within_share()),
        ]);
    }
    table
}

/// Milliseconds in the unit that leaves something to read.
fn time(millis: Option<f64>) -> String {
    match millis {
        None => "-".to_string(),
        Some(millis) if millis < 100.0 => format!("{millis:.1} ms"),
        Some(millis) if millis < 1000.0 => format!("{millis:.0} ms"),
        Some(millis) => lasting(millis as u64),
    }
}

fn share(share: Option<f64>) -> String {
    share.map_or("-".to_string(), |share| format!("{:.1} %", 100.0 * share))
}

fn print_json(figures: &Figures, simulated: Option<&Simulated>, missing: u64) -> Outcome {
    let of = |it: &waits::Sums| {
        json!({
            "locks": it.locks, "wait_mean_ms": it.mean_wait(), "people_mean_ms": it.mean_people(),
            "network_mean_ms": it.mean_network(), "within_team_share": it.within_share(),
        })
    };
    let teams: serde_json::Map<String, serde_json::Value> =
        figures.teams.iter().map(|(team, its)| (team.clone(), of(its))).collect();
    let mut measured = of(&figures.all);
    measured["people_share"] = json!(figures.people_share());
    measured["wait_p99_ms"] = json!(figures.percentile_wait());
    measured["at_once_share"] = json!(figures.at_once_share());
    measured["given_up"] = json!(figures.given_up);
    measured["hold_mean_ms"] = json!(figures.mean_hold());
    measured["stolen"] = json!(figures.stolen);
    measured["people"] = json!(figures.people.len());
    measured["files"] = json!(figures.files.len());
    let simulated = simulated.map(|it| {
        json!({
            "wait_mean_ms": it.wait(), "people_mean_ms": it.people, "network_mean_ms": it.network,
            "people_share": it.people_share(), "wait_p99_ms": it.percentile, "hold_mean_ms": it.hold,
            "messages_between_per_lock": it.between, "within_team_share": it.within,
        })
    });
    let report = json!({
        "measured": measured, "teams": teams, "s0_teams": simulated, "missing_records": missing,
    });
    let mut out = Stdout::lock();
    writeln!(out, "{report:#}")?;
    out.flush()?;
    Ok(())
}
