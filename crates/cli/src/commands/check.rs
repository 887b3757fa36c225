//! `catraca check`: explores every interleaving.

mod faults;
mod group;
mod members;

use std::io::Write;
use std::path::{Path, PathBuf};

use catraca_algorithms::Spec;
use catraca_algorithms::registry::ENTRIES;
use catraca_check::{Limits, Options, Progress, Report, Verdict, Violation, check};
use catraca_draw::{DiagramOptions, check_nodes, space_time};
use catraca_player::Window;

use self::group::Group;
use self::members::Members;
use crate::failure::Failure;
use crate::output::{PendingFile, PendingPicture, Stdout};
use crate::player::PendingPage;
use crate::table::{Align, Table, bytes, grouped};
use crate::{Outcome, interrupt, progress, value};

const GIB: u64 = 1 << 30;
/// The requests of each node, unless said otherwise.
const REQUESTS: u32 = 2;

const EXAMPLES: &str = "\
Examples:
  catraca check all --nodes 2
  catraca check ricart-agrawala --requests 1
  catraca check raymond-k --k 2 --crashes 1 --requests 1
  catraca check naimi-trehel --members 2 --clients 2 --next-view without:1
  catraca check naimi-trehel --members 3 --askers 2 --fault pause:1
  catraca check lamport --nodes 2 --mutant no-tie-break --diagram broken.svg
  catraca check maekawa --nodes 4 --requests 1 --mutant no-displaced-failed --html why.html";

/// Explores every interleaving of a small group and says whether anything can go wrong.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The algorithm, or 'all'.
    algorithm: String,
    #[command(flatten)]
    group: Group,
    #[command(flatten)]
    members: Members,
    /// How many requests each node makes [default: 2].
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = value::at_least(1u32))]
    requests: Option<u32>,
    /// How many nodes may crash, each at any step or in the middle of one, with a part of its messages
    /// sent; the others are told, each at any later step.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
        value_parser = value::at_least(0u32))]
    crashes: u32,
    /// How many threads explore [default: all cores]. The result does not depend on it.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = value::threads)]
    threads: Option<u16>,
    /// Gives up at so many GiB of memory [default: four fifths of what is free].
    #[arg(long, value_name = "GIB", allow_negative_numbers = true, value_parser = value::number)]
    memory: Option<f64>,
    /// Gives up after so many different states.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = value::at_least(1u64))]
    states: Option<u64>,
    /// Where the trace of a violation is written [default: ALGORITHM.trace in this folder].
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Draws the trace of a violation, .svg, .png or .pdf.
    #[arg(long, value_name = "FILE")]
    diagram: Option<PathBuf>,
    /// Writes a page that plays the trace of a violation step by step, and opens there.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let all = self.algorithm == "all";
        if self.members.are_meant() {
            return self.explore_members();
        }
        if let Some(option) = self.group.particular().filter(|_| all) {
            return Err(Failure::input(format!("--{option} needs one algorithm, not 'all'")));
        }
        let names = match all {
            true => ENTRIES.iter().map(|entry| entry.name).collect(),
            false => vec![self.algorithm.as_str()],
        };
        let specs: Vec<Spec> =
            names.into_iter().map(|name| self.group.spec(name)).collect::<Result<_, _>>()?;
        let options: Vec<Options> =
            specs.iter().map(|spec| self.options(spec)).collect::<Result<_, _>>()?;
        let trace = self.trace.as_deref().map(PendingFile::create).transpose()?;
        if self.diagram.is_some() {
            for spec in &specs {
                check_nodes(spec.nodes)
                    .map_err(|error| Failure::input(format!("the group {error}")))?;
            }
        }
        let diagram = self.diagram.as_deref().map(PendingPicture::create).transpose()?;
        let nodes = specs.iter().map(|spec| spec.nodes).max().unwrap_or(0);
        let page = |path| PendingPage::create(path, nodes, Window::default());
        let page = self.html.as_deref().map(page).transpose()?;
        let mut out = Stdout::lock();
        let mut table = table();
        let mut worst = Worst::default();
        for (spec, options) in specs.iter().zip(&options) {
            let report = explore(spec, options)?;
            table.row(row(spec, options, &report));
            if !worst.note(spec, report) && !all {
                break;
            }
        }
        for line in table.lines() {
            writeln!(out, "{line}")?;
        }
        self.conclude(worst, trace, (diagram, page), &mut out)
    }

    fn options(&self, spec: &Spec) -> Result<Options, Failure> {
        let defaults = Options::of(spec)?;
        let memory_limit = self.memory_limit()?;
        Ok(Options {
            requests: self.requests.unwrap_or(REQUESTS),
            crashes: self.crashes(spec)?,
            claims: self.group.claims(spec)?,
            network: self.group.network()?.unwrap_or(defaults.network),
            threads: self.threads.map_or(defaults.threads, usize::from),
            memory_limit,
            state_limit: self.states,
            stop: Some(interrupt::flag()),
        })
    }

    fn memory_limit(&self) -> Result<Option<u64>, Failure> {
        match self.memory {
            None => Ok(free_memory().map(|free| free / 5 * 4)),
            Some(gib) if gib > 0.0 && gib.is_finite() => Ok(Some((gib * GIB as f64) as u64)),
            Some(gib) => Err(Failure::input(format!(
                "--memory: '{gib}' is no amount of memory: give a positive number of GiB"
            ))),
        }
    }

    /// Explores whole members instead of nodes.
    fn explore_members(&self) -> Outcome {
        let nodes_only = [
            ("crashes", self.crashes > 0),
            ("trace", self.trace.is_some()),
            ("diagram", self.diagram.is_some()),
            ("html", self.html.is_some()),
        ];
        let given = nodes_only.iter().find_map(|&(flag, is_given)| is_given.then_some(flag));
        if let Some(flag) = given.or_else(|| self.group.of_nodes()) {
            let instead = match flag {
                "trace" | "diagram" | "html" => {
                    "what breaks among whole members is told in words, step by step: "
                }
                _ => "",
            };
            return Err(Failure::input(format!(
                "--{flag} is for nodes of an algorithm alone; {instead}leave it out, or leave out --members"
            )));
        }
        let limits = Limits {
            threads: self.threads.map_or_else(|| Limits::default().threads, usize::from),
            memory_limit: self.memory_limit()?,
            state_limit: self.states,
            stop: Some(interrupt::flag()),
        };
        let mutant = self.group.mutant();
        self.members.run(&self.algorithm, self.requests, mutant.as_deref(), &limits)
    }

    /// A group of which nobody is left has nothing to show.
    fn crashes(&self, spec: &Spec) -> Result<u32, Failure> {
        if self.crashes >= spec.nodes {
            return Err(Failure::input(format!(
                "--crashes: {} of {} nodes would leave nobody; leave at least one alive",
                self.crashes, spec.nodes
            )));
        }
        Ok(self.crashes)
    }

    fn conclude(
        &self,
        worst: Worst,
        trace: Option<PendingFile>,
        pictures: (Option<PendingPicture>, Option<PendingPage>),
        out: &mut impl Write,
    ) -> Outcome {
        if worst.interrupted {
            return Err(Failure::Interrupted);
        }
        if let Some((spec, violation)) = worst.violation {
            writeln!(out, "\n{} breaks '{}': {}", name(&spec), violation.property, violation.what)?;
            let path =
                self.trace.clone().unwrap_or_else(|| format!("{}.trace", name(&spec)).into());
            let trace = trace.map_or_else(|| PendingFile::create(&path), Ok)?;
            explain(&violation, (trace, &path), pictures, out)?;
            return Err(Failure::Violation);
        }
        match worst.gave_up {
            None => Ok(()),
            Some(why) => {
                writeln!(out, "\n{why}")?;
                Err(Failure::GaveUp)
            }
        }
    }
}

/// The first violation and the first reason to give up.
#[derive(Default)]
struct Worst {
    violation: Option<(Spec, Violation)>,
    gave_up: Option<String>,
    interrupted: bool,
}

impl Worst {
    /// Returns whether everything was well.
    fn note(&mut self, spec: &Spec, report: Report) -> bool {
        let limit =
            "every property holds in the states seen so far, and cycles were not looked for";
        match report.verdict {
            Verdict::Holds => return true,
            Verdict::Violated(violation) => {
                self.violation.get_or_insert((spec.clone(), *violation));
            }
            Verdict::OutOfMemory { used, limit: allowed } => {
                let why = format!(
                    "{}: gave up at {} of the {} allowed; {limit}. Take fewer nodes or requests, or raise --memory.",
                    name(spec),
                    bytes(used),
                    bytes(allowed)
                );
                self.gave_up.get_or_insert(why);
            }
            Verdict::TooManyStates { limit: allowed } => {
                let why = format!(
                    "{}: gave up after {} states; {limit}. Raise --states to go on.",
                    name(spec),
                    grouped(allowed)
                );
                self.gave_up.get_or_insert(why);
            }
            Verdict::TooLarge { what, most } => {
                let why = format!(
                    "{}: too many {what} to be explored; take up to {}.",
                    name(spec),
                    grouped(most.into())
                );
                self.gave_up.get_or_insert(why);
            }
            Verdict::Interrupted => self.interrupted = true,
        }
        false
    }
}

fn name(spec: &Spec) -> String {
    match &spec.mutant {
        Some(mutant) => format!("{}-{mutant}", spec.algorithm),
        None => spec.algorithm.clone(),
    }
}

fn explore(spec: &Spec, options: &Options) -> Result<Report, Failure> {
    let line = progress::line();
    let mut show = |progress: &Progress| {
        let memory = progress.memory.map_or(String::new(), |used| format!(", {}", bytes(used)));
        line.set_message(format!(
            "{}: {} states, depth {}, {:.0} s{memory}",
            name(spec),
            grouped(progress.states),
            progress.depth,
            progress.elapsed.as_secs_f64()
        ));
    };
    let report = check(spec, options, &mut show)?;
    line.finish_and_clear();
    Ok(report)
}

fn table() -> Table {
    Table::new(&[
        ("algorithm", Align::Left),
        ("N", Align::Right),
        ("requests", Align::Right),
        ("network", Align::Left),
        ("states", Align::Right),
        ("generated", Align::Right),
        ("depth", Align::Right),
        ("seconds", Align::Right),
        ("states/s", Align::Right),
        ("verdict", Align::Left),
    ])
}

fn row(spec: &Spec, options: &Options, report: &Report) -> Vec<String> {
    let seconds = report.elapsed.as_secs_f64();
    let verdict = match &report.verdict {
        Verdict::Holds => "holds".to_string(),
        Verdict::Violated(violation) => format!("VIOLATED: {}", violation.property),
        Verdict::OutOfMemory { .. } => "no verdict: out of memory".to_string(),
        Verdict::TooManyStates { .. } => "no verdict: too many states".to_string(),
        Verdict::TooLarge { what, .. } => format!("no verdict: too many {what}"),
        Verdict::Interrupted => "no verdict: interrupted".to_string(),
    };
    vec![
        name(spec),
        spec.nodes.to_string(),
        options.requests.to_string(),
        options.network.to_string(),
        grouped(report.states),
        grouped(report.generated),
        report.depth.to_string(),
        format!("{seconds:.2}"),
        grouped((report.states as f64 / seconds.max(1e-6)) as u64),
        verdict,
    ]
}

/// The shortest trace in words, as a file and as a picture.
fn explain(
    violation: &Violation,
    (mut file, path): (PendingFile, &Path),
    (diagram, page): (Option<PendingPicture>, Option<PendingPage>),
    out: &mut impl Write,
) -> Outcome {
    writeln!(out, "The shortest way there:")?;
    for event in &violation.trace.events {
        writeln!(out, "{:>4}  {event}", event.at())?;
    }
    violation.trace.write(&mut file).map_err(|error| Failure::System(error.into()))?;
    file.finish()?;
    let shown = path.display();
    writeln!(
        out,
        "\nWritten to {shown}; draw it with 'catraca replay {shown} --diagram FILE.svg'."
    )?;
    if let Some(file) = diagram {
        let picture = space_time(&violation.trace, &DiagramOptions::default())
            .map_err(|error| Failure::input(format!("the trace {error}")))?;
        file.finish(&picture)?;
    }
    if let Some(page) = page {
        page.finish(&violation.trace, "the trace")?;
    }
    Ok(())
}

/// The memory that programs can still take, where the system tells.
fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
