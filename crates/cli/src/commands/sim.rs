//! `catraca sim`: one described run.

mod words;

use std::io::Write;
use std::path::{Path, PathBuf};

use catraca_draw::{DiagramOptions, space_time};
use catraca_sim::{
    Digest, End, Hooks, KEYS, Report, Scenario, ScenarioError, Setup, TICKS_PER_UNIT, Time,
    Violation, run,
};
use catraca_trace::{Event, Header, Origin, Trace, Writer};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::failure::Failure;
use crate::output::{PendingFile, PendingPicture, Stdout, reason};
use crate::trees::Trees;
use crate::{Outcome, interrupt, progress};

/// Pictures are drawn from at most so many events from the beginning of a run.
const MOST_EVENTS: usize = 1_000_000;

const EXAMPLES: &str = "\
Examples:
  catraca sim --algorithm lamport --nodes 5
  catraca sim --algorithm raymond --nodes 7 --tree star --entries 20 --diagram run.svg
  catraca sim run.toml --seed 2 --trace run.trace
  catraca sim --algorithm naimi-trehel --nodes 6 --tree-diagram tree.svg --tree-at 0 --tree-at 2.5
  catraca sim --algorithm raymond --clusters 4x8 --lan 1 --wan 50 --arrivals serial --locality 0.9

A scenario file says the same in TOML; --hold is 'hold' in the section [workload].
TIME is a number of units of time; DIST is constant:1, uniform:0.5..1.5, exp:1 or just a time.";

/// Runs one described run: a scenario file, flags, or both; flags win.
#[derive(Clone, Default)]
pub(crate) struct Arguments {
    file: Option<PathBuf>,
    /// What the flags say, by path.
    said: Vec<(&'static str, Vec<String>)>,
    self_check: bool,
}

/// The flags are made from the simulator's table of keys.
impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let command = command
            .about("Runs one described run: a scenario file, flags, or both; flags win")
            .after_help(EXAMPLES)
            .arg(
                Arg::new("scenario")
                    .value_name("SCENARIO.toml")
                    .help("The scenario file")
                    .value_parser(clap::value_parser!(PathBuf)),
            )
            .arg(
                Arg::new("self-check")
                    .long("self-check")
                    .action(ArgAction::SetTrue)
                    .help("Runs twice and compares every step"),
            );
        KEYS.iter().fold(command, |command, key| {
            let action = if key.list { ArgAction::Append } else { ArgAction::Set };
            let (section, _) = key.path.split_once('.').unwrap_or(("group", ""));
            command.arg(
                Arg::new(key.path)
                    .long(key.flag)
                    .value_name(key.value)
                    .help(key.help)
                    .help_heading(section)
                    // A tree may begin with the root's '-'. Elsewhere a flag after a flag means
                    // that a value was forgotten.
                    .allow_hyphen_values(key.path == "tree")
                    .allow_negative_numbers(key.path != "tree")
                    .action(action),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut arguments = Arguments::default();
        arguments.update_from_arg_matches(matches)?;
        Ok(arguments)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.file = matches.get_one::<PathBuf>("scenario").cloned();
        self.self_check = matches.get_flag("self-check");
        for key in KEYS {
            if let Some(values) = matches.get_many::<String>(key.path) {
                self.said.push((key.path, values.cloned().collect()));
            }
        }
        Ok(())
    }
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let scenario = self.scenario()?;
        let setup = scenario.setup().map_err(|error| self.at_fault(error))?;
        let window = self.window(&scenario)?;
        let path = |key| scenario.value(key).map(Path::new);
        let json = path("output.json").map(PendingFile::create).transpose()?;
        let mut recording = Recording {
            trace: path("output.trace").map(|path| begin_trace(path, &setup)).transpose()?,
            diagram: path("output.diagram").map(PendingPicture::create).transpose()?,
            trees: self.trees(&scenario)?,
            digest: self.self_check.then(Digest::default),
            ..Recording::of(&setup)
        };
        let report = recording.run(&setup)?;
        if report.end == End::Interrupted {
            return Err(Failure::Interrupted);
        }
        let mut out = Stdout::lock();
        words::print(&report, &setup, &mut out)?;
        if self.self_check {
            self_check(&setup, recording.digest, &report, &mut out)?;
        }
        if let Some(file) = json {
            let mut json = serde_json::to_vec_pretty(&report).map_err(|error| {
                Failure::System(anyhow::Error::new(error).context("the figures as JSON"))
            })?;
            json.push(b'\n');
            file.finish_with(&json)?;
        }
        recording.finish(&window, report.violation.as_ref())?;
        match &report.violation {
            None => Ok(()),
            Some(_) => {
                writeln!(out, "reproduce   {}", scenario.command())?;
                Err(Failure::Violation)
            }
        }
    }

    fn scenario(&self) -> Result<Scenario, Failure> {
        let mut scenario = match &self.file {
            None => Scenario::new(),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Failure::input(format!(
                        "cannot read the scenario '{}': {}",
                        path.display(),
                        reason(&error)
                    ))
                })?;
                Scenario::from_toml(&text).map_err(|error| self.at_fault(error))?
            }
        };
        for (path, values) in &self.said {
            scenario.set(path, values.clone()).map_err(|error| self.at_fault(error))?;
        }
        if self.file.is_none() && scenario.value("algorithm").is_none() {
            return Err(Failure::input(
                "say what to run, as in 'catraca sim --algorithm lamport --nodes 5' or \
                 'catraca sim SCENARIO.toml'; 'catraca algorithms' lists the algorithms",
            ));
        }
        Ok(scenario)
    }

    /// What is wrong, and whether the file says so or a flag.
    fn at_fault(&self, error: ScenarioError) -> Failure {
        let is_flag = |key: &str| self.said.iter().any(|(said, _)| *said == key);
        Failure::of_scenario(error, self.file.as_deref(), is_flag)
    }

    /// The part of the run that is drawn.
    fn window(&self, scenario: &Scenario) -> Result<DiagramOptions, Failure> {
        let wrong = |key, what| self.at_fault(ScenarioError::Value { key, what });
        let ticks = |key| match scenario.value(key).map(str::parse::<Time>) {
            None => Ok(None),
            Some(_) if scenario.value("output.diagram").is_none() => {
                Err(wrong(key, "says which part is drawn; say where with --diagram".to_string()))
            }
            Some(Ok(time)) => Ok(Some(time.0)),
            Some(Err(error)) => Err(wrong(key, error.to_string())),
        };
        let (from, to) = (ticks("output.from")?, ticks("output.to")?);
        Ok(DiagramOptions { from, to, ..DiagramOptions::default() })
    }

    /// The picture of who points to whom, if it is wanted.
    fn trees(&self, scenario: &Scenario) -> Result<Option<Trees>, Failure> {
        const KEY: &str = "output.tree-at";
        let wrong = |what| self.at_fault(ScenarioError::Value { key: KEY, what });
        let instants = scenario.values(KEY);
        let Some(path) = scenario.value("output.tree-diagram") else {
            return match instants {
                [] => Ok(None),
                _ => Err(wrong("says when; say where with --tree-diagram".to_string())),
            };
        };
        let ticks = |text: &String| match text.parse::<Time>() {
            Ok(time) => Ok(time.0),
            Err(error) => Err(wrong(error.to_string())),
        };
        let instants = instants.iter().map(ticks).collect::<Result<_, _>>()?;
        Trees::create(Path::new(path), instants).map(Some)
    }
}

/// Everything that listens to a run: the trace file, the pictures, the digest.
struct Recording {
    trace: Option<Writer<PendingFile>>,
    diagram: Option<PendingPicture>,
    trees: Option<Trees>,
    /// What the pictures are drawn from.
    drawn: Trace,
    /// Whether the run had more events than are drawn from.
    is_cut: bool,
    digest: Option<Digest>,
    /// The first failure to write; an observer cannot return one.
    failure: Option<std::io::Error>,
}

fn header(setup: &Setup) -> Header {
    Header::new(Origin::Sim, setup.spec.clone(), TICKS_PER_UNIT)
}

fn begin_trace(path: &Path, setup: &Setup) -> Result<Writer<PendingFile>, Failure> {
    let writer = Writer::new(PendingFile::create(path)?, &header(setup));
    writer.map_err(|error| Failure::System(error.into()))
}

impl Recording {
    /// Nothing listens yet.
    fn of(setup: &Setup) -> Self {
        Recording {
            trace: None,
            diagram: None,
            trees: None,
            drawn: Trace { header: header(setup), events: Vec::new() },
            is_cut: false,
            digest: None,
            failure: None,
        }
    }

    fn draws(&self) -> bool {
        self.diagram.is_some() || self.trees.is_some()
    }

    fn event(&mut self, event: &Event) {
        if let Some(trace) = &mut self.trace
            && let Err(error) = trace.event(event)
        {
            self.failure.get_or_insert(error);
        }
        if self.draws() {
            self.is_cut = self.drawn.events.len() >= MOST_EVENTS;
            if !self.is_cut {
                self.drawn.events.push(event.clone());
            }
        }
        if let Some(digest) = &mut self.digest {
            digest.add(event);
        }
    }

    /// Runs; somebody listens only if there is something to listen for, because that costs time.
    fn run(&mut self, setup: &Setup) -> Result<Report, Failure> {
        let listens = self.trace.is_some() || self.draws() || self.digest.is_some();
        let stop = interrupt::flag();
        let mut observer = |event: &Event| self.event(event);
        let observer: Option<&mut dyn FnMut(&Event)> =
            if listens { Some(&mut observer) } else { None };
        let spinner = progress::line();
        spinner.set_message(format!("running {}", setup.spec.algorithm));
        let report = run(setup, Hooks { observer, stop: Some(&stop) })?;
        spinner.finish_and_clear();
        match self.failure.take() {
            Some(error) => Err(Failure::System(error.into())),
            None => Ok(report),
        }
    }

    /// Puts the files in their places.
    fn finish(self, window: &DiagramOptions, violation: Option<&Violation>) -> Outcome {
        if let Some(trace) = self.trace {
            trace.finish().map_err(|error| Failure::System(error.into()))?.finish()?;
        }
        let mut drawn = self.drawn;
        drawn.header.violation = violation.map(|violation| violation.what.clone());
        if let Some(file) = self.diagram {
            let picture = space_time(&drawn, window)
                .map_err(|error| Failure::input(format!("the run {error}")))?;
            file.finish(&picture)?;
        }
        if let Some(trees) = self.trees {
            if self.is_cut && drawn.events.last().is_some_and(|last| last.at() <= trees.last()) {
                return Err(Failure::input(format!(
                    "--tree-at: there are more than {MOST_EVENTS} events before this instant; \
                     choose an earlier one"
                )));
            }
            trees.finish(&drawn, "the run")?;
        }
        Ok(())
    }
}

fn self_check(
    setup: &Setup,
    first: Option<Digest>,
    report: &Report,
    out: &mut impl Write,
) -> Outcome {
    let mut again = Recording { digest: Some(Digest::default()), ..Recording::of(setup) };
    let second = again.run(setup)?;
    if second.end == End::Interrupted {
        return Err(Failure::Interrupted);
    }
    if again.digest == first && second == *report {
        let digest = first.unwrap_or_default();
        writeln!(out, "self-check  two runs are equal in every step, digest {digest}")?;
        return Ok(());
    }
    writeln!(
        out,
        "self-check  two runs of the same setup differ: this is a defect of the simulator"
    )?;
    Err(Failure::Violation)
}
