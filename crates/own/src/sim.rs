//! `sim`: one run, its figures, its trace and its picture; `diagram`: a short run, for its picture.

use std::io::Write;
use std::path::Path;

use catraca_core::Algorithm;
use catraca_draw::{DiagramOptions, space_time};
use catraca_sim::{End, Hooks, Key, Own, Report, Setup, TICKS_PER_UNIT, Time, run_algorithm};
use catraca_trace::{Event, Header, Origin, Trace};

use crate::failure::Failure;
use crate::files::{self, PictureFile};
use crate::flags::{Command, Said};
use crate::table::number;
use crate::{Driver, OwnAlgorithm, drive, help, own};

pub(crate) const SIM: Command = Command {
    name: "sim",
    about: "Runs it once and prints the figures",
    operand: None,
    takes: |key| Own::takes(key) && (is_of_run(key) || OUTPUTS.contains(&key.path)),
    flags: &[],
};

pub(crate) const DIAGRAM: Command = Command {
    name: "diagram",
    about: "Draws the space-time diagram of a run, by default of 4 nodes that enter once",
    operand: Some("FILE.svg"),
    takes: |key| Own::takes(key) && (is_of_run(key) || WINDOW.contains(&key.path)),
    flags: &[],
};

const OUTPUTS: [&str; 4] = ["output.diagram", "output.trace", "output.from", "output.to"];
const WINDOW: [&str; 2] = ["output.from", "output.to"];

/// Events are kept for a trace or a picture up to so many; who wants more of them takes a shorter run.
const MOST_EVENTS: usize = 1_000_000;

fn is_of_run(key: &Key) -> bool {
    !key.path.starts_with("output.")
}

pub(crate) fn run<A: OwnAlgorithm>(words: &[String], out: &mut dyn Write) -> Result<(), Failure> {
    let said = SIM.parse(words)?;
    if said.wants_help {
        return Ok(help::command(&SIM, out)?);
    }
    let picture = said.scenario.value("output.diagram").map(PictureFile::at).transpose()?;
    simulate::<A>(&said, picture, out)
}

pub(crate) fn draw<A: OwnAlgorithm>(words: &[String], out: &mut dyn Write) -> Result<(), Failure> {
    let mut said = DIAGRAM.parse(words)?;
    if said.wants_help {
        return Ok(help::command(&DIAGRAM, out)?);
    }
    let missing = "say where to, as in 'diagram run.svg'; .png is possible too";
    let path = said.operand.as_deref().ok_or_else(|| Failure::Input(missing.to_string()))?;
    let picture = PictureFile::at(path)?;
    for (key, value) in [("nodes", 4), ("workload.rounds", 1)] {
        let is_free = key != "workload.rounds" || !said.scenario.says("workload.arrivals");
        if !said.scenario.says(key) && is_free {
            said.scenario = said.scenario.with(key, value);
        }
    }
    simulate::<A>(&said, Some(picture), out)
}

/// Drives one run.
struct Simulate<'a> {
    setup: &'a Setup,
    events: Option<&'a mut Vec<Event>>,
}

impl Driver for Simulate<'_> {
    type Output = Report;

    fn drive<B: Algorithm>(self, config: B::Config) -> Report {
        let Some(events) = self.events else {
            return run_algorithm::<B>(self.setup, config, Hooks::default());
        };
        let mut keep = |event: &Event| {
            if events.len() < MOST_EVENTS {
                events.push(event.clone());
            }
        };
        run_algorithm::<B>(self.setup, config, Hooks { observer: Some(&mut keep), stop: None })
    }
}

fn simulate<A: OwnAlgorithm>(
    said: &Said,
    picture: Option<PictureFile>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let scenario = &said.scenario;
    let setup = scenario.setup_own(own::<A>())?;
    let options = window(said)?;
    let trace = scenario.value("output.trace").map(Path::new);
    trace.map_or(Ok(()), files::check_folder)?;
    let mut events = Vec::new();
    let kept = (picture.is_some() || trace.is_some()).then_some(&mut events);
    let simulate = Simulate { setup: &setup, events: kept };
    let report = drive::<A, _>(scenario.value("mutant"), setup.spec.nodes, simulate)?;
    print(&report, &setup, out)?;
    let mut header = Header::new(Origin::Sim, setup.spec.clone(), TICKS_PER_UNIT);
    header.violation = report.violation.as_ref().map(|violation| violation.what.clone());
    let recorded = Trace { header, events };
    if let Some(path) = trace {
        let mut content = Vec::new();
        recorded.write(&mut content)?;
        files::write(path, &content)?;
    }
    if let Some(picture) = picture {
        picture.write(&space_time(&recorded, &options)?)?;
        picture.tell(out)?;
    }
    match (&report.violation, report.end.gave_up()) {
        (Some(_), _) => Err(Failure::Violation),
        (None, Some(_)) => Err(Failure::GaveUp),
        (None, None) => Ok(()),
    }
}

/// The part of the run that is drawn.
fn window(said: &Said) -> Result<DiagramOptions, Failure> {
    let ticks = |key: &'static str| match said.scenario.value(key).map(str::parse::<Time>) {
        None => Ok(None),
        Some(Ok(time)) => Ok(Some(time.0)),
        Some(Err(error)) => {
            Err(Failure::from(catraca_sim::ScenarioError::Value { key, what: error.to_string() }))
        }
    };
    let (from, to) = (ticks("output.from")?, ticks("output.to")?);
    Ok(DiagramOptions { from, to, ..DiagramOptions::default() })
}

fn print(report: &Report, setup: &Setup, out: &mut dyn Write) -> Result<(), Failure> {
    let spec = &setup.spec;
    let mutant = spec.mutant.as_ref().map(|name| format!(", mutant {name}")).unwrap_or_default();
    writeln!(out, "{}{mutant} on {} nodes, seed {}", spec.algorithm, spec.nodes, setup.seed)?;
    let why = match report.end {
        End::Entries => "all entries made",
        End::Time => "time is up",
        End::Quiet => "nothing more to do",
        End::Served => "everybody was served",
        End::Violation => "an invariant broke",
        _ => "gave up",
    };
    writeln!(out, "ended       at {} after {} events: {why}", number(report.time), report.events)?;
    writeln!(out, "entries     {}, {} still waiting", report.entries, report.waiting)?;
    let kinds: Vec<String> =
        report.by_kind.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let per_entry = number(report.messages_per_entry);
    writeln!(out, "messages    {} ({}), {per_entry} per entry", report.messages, kinds.join(", "))?;
    writeln!(out, "delay       {} T from a release to the next entry", number(report.delay))?;
    writeln!(
        out,
        "response    mean {}, p99 {}, longest wait {}",
        number(report.response_mean),
        number(report.response_p99),
        number(report.longest_wait)
    )?;
    let jain = report.fairness.map_or("-".to_string(), |jain| format!("{jain:.3}"));
    writeln!(out, "fairness    Jain {jain}, most bypasses {}", report.most_bypasses)?;
    match (&report.violation, report.end.gave_up()) {
        (Some(violation), _) => writeln!(
            out,
            "violation   {} at {}: {}",
            violation.invariant, violation.at, violation.what
        )?,
        (None, Some(why)) => writeln!(out, "gave up     {why}")?,
        (None, None) => writeln!(out, "verdict     no invariant broke")?,
    }
    Ok(())
}
