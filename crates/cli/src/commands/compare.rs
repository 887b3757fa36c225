//! `catraca compare`: which algorithm, for how many nodes, under which load.

mod files;
mod words;

use std::io::Write;
use std::path::PathBuf;

use catraca_algorithms::Load;
use catraca_algorithms::registry::ENTRIES;
use catraca_sim::{Comparison, Key, LoadKind, Row, run_all};

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
  catraca compare --rate 0.2 --hold exp:1 --csv rows.csv --plot rows.svg
  catraca compare --resources 8 --claim 1..3 --skew 0.8 --nodes 16
  catraca compare --clusters 4x8 --lan 1 --wan 50 --locality 0.9";

/// Runs algorithms side by side and prints one table.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Which algorithms, separated by commas; ordered:NAME takes single locks in ascending order
    /// [default: all; for sets bouabdallah-laforest, one lock for everything, and single locks].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    algorithms: Vec<String>,
    /// How many nodes, separated by commas [default: 4,16,64].
    #[arg(long, value_name = "N,...", value_delimiter = ',', conflicts_with = "clusters",
        allow_negative_numbers = true, value_parser = value::at_least(1u32))]
    nodes: Vec<u32>,
    /// low (one request at a time), high (everybody asks again at once), or both; --rate is an open
    /// load instead [default: low,high].
    #[arg(long, value_name = "LOADS", value_delimiter = ',', conflicts_with = "workload.rate",
        value_parser = value::load)]
    load: Vec<Load>,
    #[command(flatten)]
    said: Said<Compared>,
    /// Shows the messages by kind too, in a second table.
    #[arg(long)]
    kinds: bool,
    /// Writes the table as comma-separated values.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Writes the table as JSON, each row with the command that reproduces it.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draws messages per entry and response time over N, .svg or .png.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// What can be said of all runs at once: who is compared, how many and how often they ask is varied.
struct Compared;

impl Choice for Compared {
    fn takes(key: &Key) -> bool {
        const GROUP: [&str; 6] =
            ["resources", "clusters", "max-preempt", "proxies", "tree", "quorum"];
        const WORKLOAD: [&str; 5] = [
            "workload.rate",
            "workload.hold",
            "workload.claim",
            "workload.skew",
            "workload.locality",
        ];
        const REST: [&str; 5] =
            ["network.delay", "network.lan", "network.wan", "run.seed", "run.entries"];
        [&GROUP[..], &WORKLOAD, &REST].concat().contains(&key.path)
    }

    fn default(key: &Key) -> Option<&'static str> {
        if key.path == "run.entries" { Some("by the size of the group") } else { key.default }
    }
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let csv = self.csv.as_deref().map(PendingFile::create).transpose()?;
        let json = self.json.as_deref().map(PendingFile::create).transpose()?;
        let plot = self.plot.as_deref().map(PendingPicture::create).transpose()?;
        let rows = self.measure()?;
        if let Some(file) = csv {
            file.finish_with(files::csv(&rows).as_bytes())?;
        }
        if let Some(file) = json {
            file.finish_with(&files::json(&rows)?)?;
        }
        if let Some(file) = plot {
            file.finish(&files::plot(&rows))?;
        }
        let mut out = Stdout::lock();
        words::print(&rows, self.kinds, &mut out)?;
        let broken: Vec<&Row> = rows.iter().filter(|row| row.report.violation.is_some()).collect();
        for row in &broken {
            if let Some(violation) = &row.report.violation {
                writeln!(out, "violation: {}: {}", violation.invariant, violation.what)?;
                writeln!(out, "reproduce: {}", row.job.scenario.command())?;
            }
        }
        let mut gave_up = false;
        for row in &rows {
            if let Some(why) = row.report.end.gave_up() {
                writeln!(out, "gave up: {why}")?;
                writeln!(out, "reproduce: {}", row.job.scenario.command())?;
                gave_up = true;
            }
        }
        match (broken.is_empty(), gave_up) {
            (false, _) => Err(Failure::Violation),
            (true, true) => Err(Failure::GaveUp),
            (true, false) => Ok(()),
        }
    }

    /// Those that were named; else all, or for sets the three ways of taking them.
    fn names(&self) -> Result<Vec<String>, Failure> {
        if !self.algorithms.is_empty() {
            return Ok(self.algorithms.clone());
        }
        let resources = self.said.scenario().resource_count();
        let names = match resources.map_err(|error| self.said.at_fault(error))? {
            2.. => WAYS_TO_TAKE_SETS.to_vec(),
            _ => ENTRIES.iter().map(|entry| entry.name).collect(),
        };
        Ok(names.into_iter().map(str::to_string).collect())
    }

    fn comparison(&self) -> Result<Comparison, Failure> {
        let common = self.said.scenario().clone();
        let mut comparison =
            Comparison { algorithms: self.names()?, common, ..Comparison::default() };
        if !self.nodes.is_empty() {
            comparison.nodes.clone_from(&self.nodes);
        }
        if comparison.common.says("workload.rate") {
            comparison.loads = vec![LoadKind::Open];
        } else if !self.load.is_empty() {
            comparison.loads = self.load.iter().map(|load| LoadKind::Closed(*load)).collect();
        }
        Ok(comparison)
    }

    fn measure(&self) -> Result<Vec<Row>, Failure> {
        let jobs = self.comparison()?.jobs().map_err(|error| self.said.at_fault(error))?;
        let bar = progress::bar(jobs.len() as u64, "runs");
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let stop = interrupt::flag();
        let rows = run_all(jobs, threads, &stop, |row| {
            bar.inc(1);
            bar.set_message(row.job.spec().algorithm.clone());
        })
        .map_err(|error| self.said.at_fault(error))?;
        bar.finish_and_clear();
        if interrupt::requested() { Err(Failure::Interrupted) } else { Ok(rows) }
    }
}
