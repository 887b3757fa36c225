//! `catraca compare`: which algorithm, for how many nodes, under which load.

mod conclusion;
mod files;
mod words;

use std::io::Write;
use std::path::PathBuf;

use catraca_algorithms::registry::ENTRIES;
use catraca_lab::{Estimate, MOST_SEEDS};
use catraca_sim::{Comparison, Key, LoadKind, Report, Row, run_all};

use crate::failure::Failure;
use crate::flags::{Choice, Said};
use crate::output::{PendingFile, PendingPicture, Stdout};
use crate::{Outcome, interrupt, progress, value};

/// An algorithm made for sets, one lock for everything, and single locks in ascending order.
const WAYS_TO_TAKE_SETS: [&str; 3] =
    ["bouabdallah-laforest", "naimi-trehel", "ordered:naimi-trehel"];

const EXAMPLES: &str = "\
Examples:
  catraca compare
  catraca compare --algorithms lamport,maekawa --nodes 9,25 --load high --kinds
  catraca compare --rate 0.2 --hold exp:1 --csv runs.csv --plot rows.svg
  catraca compare --think exp:40 --nodes 16 --seeds 20 --json rows.json
  catraca compare --k 3 --nodes 8,32
  catraca compare --resources 8 --claim 1..3 --skew 0.8 --nodes 16
  catraca compare --clusters 4x8 --lan 1 --wan 50 --locality 0.9";

/// With how many seeds every run is made, unless it is said.
const SEEDS: u32 = 5;

/// Runs algorithms side by side and prints one table.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Which algorithms, separated by commas; ordered:NAME takes single locks in ascending order
    /// [default: all; for sets bouabdallah-laforest, one lock for everything, and single locks; for --k
    /// those that let several in].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    algorithms: Vec<String>,
    /// How many nodes, separated by commas [default: 4,16,64].
    #[arg(long, value_name = "N,...", value_delimiter = ',', conflicts_with = "clusters",
        allow_negative_numbers = true, value_parser = value::at_least(1u32))]
    nodes: Vec<u32>,
    /// low (one request at a time), medium (nodes think so long that they ask for half of what one lock
    /// can serve), high (everybody asks again at once), or several of them; --think and --rate are loads
    /// of your own instead [default: low,medium,high].
    #[arg(long, value_name = "LOADS", value_delimiter = ',',
        conflicts_with_all = ["workload.rate", "workload.think"], value_parser = value::load)]
    load: Vec<LoadKind>,
    /// With how many seeds every run is made, from --seed on; figures are their means.
    #[arg(long, value_name = "NUMBER", default_value_t = SEEDS,
        value_parser = value::within(1, MOST_SEEDS))]
    seeds: u32,
    #[command(flatten)]
    said: Said<Compared>,
    /// Shows the messages by kind too, in a second table.
    #[arg(long)]
    kinds: bool,
    /// Writes every run as a line of comma-separated values, with its seed.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Writes rows and runs as JSON, each run with its seed and the command that repeats it.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draws messages per entry and response time over N, .svg, .png or .pdf.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// What can be said of all runs at once: who is compared, how many and how often they ask is varied.
struct Compared;

impl Choice for Compared {
    fn takes(key: &Key) -> bool {
        const GROUP: [&str; 7] =
            ["resources", "clusters", "max-preempt", "proxies", "k", "tree", "quorum"];
        const WORKLOAD: [&str; 6] = [
            "workload.think",
            "workload.rate",
            "workload.hold",
            "workload.claim",
            "workload.skew",
            "workload.locality",
        ];
        const REST: [&str; 6] = [
            "network.delay",
            "network.lan",
            "network.wan",
            "run.seed",
            "run.entries",
            "run.events",
        ];
        [&GROUP[..], &WORKLOAD, &REST].concat().contains(&key.path)
    }

    fn default(key: &Key) -> Option<&'static str> {
        match key.path {
            "run.entries" => Some("by the size of the group"),
            "workload.think" => Some("by the load"),
            _ => key.default,
        }
    }
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let csv = self.csv.as_deref().map(PendingFile::create).transpose()?;
        let json = self.json.as_deref().map(PendingFile::create).transpose()?;
        let plot = self.plot.as_deref().map(PendingPicture::create).transpose()?;
        let comparison = self.comparison()?;
        let rows = self.measure(&comparison)?;
        if let Some(file) = csv {
            file.finish_with(files::csv(&rows).as_bytes())?;
        }
        if let Some(file) = json {
            file.finish_with(&files::json(&rows, &self.command(&comparison))?)?;
        }
        if let Some(file) = plot {
            file.finish(&files::plot(&rows))?;
        }
        let mut out = Stdout::lock();
        words::print(&rows, self.kinds, &mut out)?;
        judged(&rows, &mut out)
    }

    /// Those that were named; else all, or for sets the three ways of taking them.
    fn names(&self) -> Result<Vec<String>, Failure> {
        if !self.algorithms.is_empty() {
            return Ok(self.algorithms.clone());
        }
        let resources = self.said.scenario().resource_count();
        let all = || ENTRIES.iter();
        let names: Vec<&str> = match resources.map_err(|error| self.said.at_fault(error))? {
            2.. => WAYS_TO_TAKE_SETS.to_vec(),
            _ if self.said.scenario().says("k") => {
                let lets_several_in = all().filter(|entry| entry.parameters.contains(&"k"));
                lets_several_in.map(|entry| entry.name).collect()
            }
            _ => all().map(|entry| entry.name).collect(),
        };
        Ok(names.into_iter().map(str::to_string).collect())
    }

    fn comparison(&self) -> Result<Comparison, Failure> {
        let common = self.said.scenario().clone();
        let mut comparison = Comparison {
            algorithms: self.names()?,
            seeds: self.seeds,
            common,
            ..Comparison::default()
        };
        if !self.nodes.is_empty() {
            comparison.nodes.clone_from(&self.nodes);
        }
        let says = |key| comparison.common.says(key);
        match (says("workload.rate"), says("workload.think")) {
            (true, true) => {
                let what = "--rate and --think are loads of their own; leave one of them out";
                return Err(Failure::input(what));
            }
            (true, false) => comparison.loads = vec![LoadKind::Open],
            (false, true) => comparison.loads = vec![LoadKind::Thinking],
            (false, false) if !self.load.is_empty() => comparison.loads.clone_from(&self.load),
            (false, false) => {}
        }
        Ok(comparison)
    }

    /// The command that makes the same comparison, without the files that it writes.
    fn command(&self, comparison: &Comparison) -> String {
        let mut command =
            format!("catraca compare --algorithms {}", comparison.algorithms.join(","));
        if !comparison.common.says("clusters") {
            let sizes: Vec<String> = comparison.nodes.iter().map(u32::to_string).collect();
            command.push_str(&format!(" --nodes {}", sizes.join(",")));
        }
        let loads: Vec<&str> = comparison.loads.iter().filter_map(LoadKind::name).collect();
        if !loads.is_empty() {
            command.push_str(&format!(" --load {}", loads.join(",")));
        }
        format!("{command} --seeds {}{}", self.seeds, comparison.common.flags())
    }

    fn measure(&self, comparison: &Comparison) -> Result<Vec<Row>, Failure> {
        let jobs = comparison.jobs().map_err(|error| self.said.at_fault(error))?;
        let bar = progress::bar(jobs.len() as u64 * u64::from(self.seeds), "runs");
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let stop = interrupt::flag();
        let rows = run_all(jobs, threads, &stop, |job| {
            bar.inc(1);
            bar.set_message(job.spec().algorithm.clone());
        })
        .map_err(|error| self.said.at_fault(error))?;
        bar.finish_and_clear();
        if interrupt::requested() { Err(Failure::Interrupted) } else { Ok(rows) }
    }
}

/// A figure over all seeds of a row, if it has a value with each of them.
fn estimate(row: &Row, figure: impl Fn(&Report) -> Option<f64>) -> Option<Estimate> {
    let values = row.reports.iter().map(figure);
    Estimate::of(&values.collect::<Option<Vec<f64>>>()?)
}

/// Tells which runs broke an invariant or gave up, each with the command that shows it.
fn judged(rows: &[Row], out: &mut impl Write) -> Outcome {
    let runs = || rows.iter().flat_map(|row| (0..).zip(&row.reports).map(move |run| (row, run)));
    let (mut is_broken, mut gave_up) = (false, false);
    for (row, (repeat, report)) in runs() {
        if let Some(violation) = &report.violation {
            is_broken = true;
            writeln!(out, "violation: {}: {}", violation.invariant, violation.what)?;
            writeln!(out, "reproduce: {}", row.job.repeated(repeat).command())?;
        }
    }
    // One of a row is enough: the others give up for the same reason.
    for row in rows {
        let end =
            (0..).zip(&row.reports).find_map(|(repeat, one)| Some((repeat, one.end.gave_up()?)));
        if let Some((repeat, why)) = end {
            gave_up = true;
            writeln!(out, "gave up: {why}")?;
            writeln!(out, "reproduce: {}", row.job.repeated(repeat).command())?;
        }
    }
    match (is_broken, gave_up) {
        (true, _) => Err(Failure::Violation),
        (false, true) => Err(Failure::GaveUp),
        (false, false) => Ok(()),
    }
}
