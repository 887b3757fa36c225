//! `catraca compare`: which algorithm, for how many nodes, under which load.

mod files;
mod words;

use std::io::Write;
use std::path::PathBuf;

use catraca_algorithms::Load;
use catraca_algorithms::registry::ENTRIES;
use catraca_sim::{ClaimSize, Comparison, Distribution, LoadKind, Row, run_all};
use catraca_topology::{ClusterShape, Proxies, QuorumKind, TreeShape};

use crate::failure::Failure;
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
    /// How many nodes, separated by commas.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "4,16,64",
        allow_negative_numbers = true, value_parser = value::at_least(1u32))]
    nodes: Vec<u32>,
    /// low (one request at a time), high (everybody asks again at once), or both.
    #[arg(long, value_name = "LOADS", value_delimiter = ',', default_value = "low,high",
        value_parser = value::load)]
    load: Vec<Load>,
    /// An open load instead: requests per unit of time, over the whole group.
    #[arg(long, value_name = "R", conflicts_with = "load", allow_negative_numbers = true,
        value_parser = value::number)]
    rate: Option<f64>,
    /// How long a node stays inside: constant:1, uniform:0.5..1.5 or exp:1.
    #[arg(long, value_name = "DIST", default_value = "constant:1", allow_hyphen_values = true)]
    hold: Distribution,
    /// How long a message takes.
    #[arg(long, value_name = "DIST", default_value = "constant:1", allow_hyphen_values = true)]
    delay: Distribution,
    /// How many resources there are.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = value::at_least(1u32))]
    resources: Option<u32>,
    /// How many of the resources a request asks for: 2, 1..3, or weighted as in 1:7,5:3.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    claim: Option<ClaimSize>,
    /// How unequally popular the resources are: the exponent of Zipf's law.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = value::number)]
    skew: Option<f64>,
    /// Clusters, which say how many nodes there are: 4x8, 3,3,2 or 0,1,2|5,3,4.
    #[arg(long, value_name = "SHAPE", conflicts_with = "nodes", allow_hyphen_values = true)]
    clusters: Option<ClusterShape>,
    /// For algorithms on clusters: the proxy of each, as in 1,5 [default: the first of each].
    #[arg(long, value_name = "NODES", allow_hyphen_values = true)]
    proxies: Option<Proxies>,
    /// How long a message takes within a cluster.
    #[arg(long, value_name = "DIST", conflicts_with = "delay", allow_hyphen_values = true)]
    lan: Option<Distribution>,
    /// How long a message takes between clusters.
    #[arg(long, value_name = "DIST", conflicts_with = "delay", allow_hyphen_values = true)]
    wan: Option<Distribution>,
    /// At low and open load: the share of requests from the cluster of the request before.
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = value::number)]
    locality: Option<f64>,
    /// For algorithms on clusters: how often in a row the own cluster goes first.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = value::at_least(0u32))]
    max_preempt: Option<u32>,
    /// For raymond: binary, star, chain, or parents as in -,0,0,1.
    #[arg(long, value_name = "SHAPE", allow_hyphen_values = true)]
    tree: Option<TreeShape>,
    /// For maekawa: grid or plane.
    #[arg(long, value_name = "KIND")]
    quorum: Option<QuorumKind>,
    /// The seed of every run.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true,
        value_parser = value::at_least(0u64))]
    seed: u64,
    /// Entries that count in each run [default: by the size of the group].
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = value::at_least(1u64))]
    entries: Option<u64>,
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

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let csv = self.csv.as_deref().map(PendingFile::create).transpose()?;
        let json = self.json.as_deref().map(PendingFile::create).transpose()?;
        let plot = self.plot.as_deref().map(PendingPicture::create).transpose()?;
        let comparison = self.comparison();
        let rows = measure(&comparison)?;
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
        words::print(&rows, &comparison, self.kinds, &mut out)?;
        let broken: Vec<&Row> = rows.iter().filter(|row| row.report.violation.is_some()).collect();
        for row in &broken {
            if let Some(violation) = &row.report.violation {
                writeln!(out, "violation: {}: {}", violation.invariant, violation.what)?;
                writeln!(out, "reproduce: {}", row.job.scenario.command())?;
            }
        }
        if broken.is_empty() { Ok(()) } else { Err(Failure::Violation) }
    }

    /// Those that were named; else all, or for sets the three ways of taking them.
    fn names(&self) -> Vec<String> {
        let names: Vec<&str> = match self.resources {
            _ if !self.algorithms.is_empty() => return self.algorithms.clone(),
            Some(resources) if resources > 1 => WAYS_TO_TAKE_SETS.to_vec(),
            _ => ENTRIES.iter().map(|entry| entry.name).collect(),
        };
        names.into_iter().map(str::to_string).collect()
    }

    fn comparison(&self) -> Comparison {
        let loads = match self.rate {
            Some(rate) => vec![LoadKind::Open(rate)],
            None => self.load.iter().map(|load| LoadKind::Closed(*load)).collect(),
        };
        Comparison {
            algorithms: self.names(),
            nodes: self.nodes.clone(),
            loads,
            tree: self.tree.clone(),
            quorum: self.quorum,
            hold: self.hold,
            delay: self.delay,
            resources: self.resources,
            claim: self.claim,
            skew: self.skew,
            clusters: self.clusters.clone(),
            proxies: self.proxies.clone(),
            lan: self.lan,
            wan: self.wan,
            locality: self.locality,
            max_preempt: self.max_preempt,
            seed: self.seed,
            entries: self.entries,
        }
    }
}

fn measure(comparison: &Comparison) -> Result<Vec<Row>, Failure> {
    // Everything comes from flags here.
    let wrong = |error| Failure::of_scenario(error, None, |_| true);
    let jobs = comparison.jobs().map_err(wrong)?;
    let bar = progress::bar(jobs.len() as u64, "runs");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let stop = interrupt::flag();
    let rows = run_all(jobs, threads, &stop, |row| {
        bar.inc(1);
        bar.set_message(row.job.spec().algorithm.clone());
    })
    .map_err(wrong)?;
    bar.finish_and_clear();
    if interrupt::requested() { Err(Failure::Interrupted) } else { Ok(rows) }
}
