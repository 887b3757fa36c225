//! `catraca graph propositions`: the propositions of S1 on every small graph.

use std::io::Write;
use std::path::PathBuf;

use catraca_algorithms::relabelling::{ENTRIES, mutants_of};
use catraca_sim::evolving::propositions::{
    Counterexample, Finding, Proposition, Space, exhaustive, random,
};
use catraca_sim::evolving::{Setup, Workload};

use super::run::{observed, strip_of};
use super::words;
use crate::failure::Failure;
use crate::output::{PendingPicture, Stdout};
use crate::table::{Align, Table, counted, grouped};
use crate::{Outcome, interrupt, progress, value};

/// Of a random graph the earliest arrivals are kept: so many have 16 MB.
const MOST_ARRIVALS: u64 = 1_000_000;

/// More graphs than this cannot be tried in a day.
const MOST_GRAPHS: u64 = 1 << 26;

/// Checks the propositions of S1 on every graph with so many nodes and instants, or on random larger
/// ones, and shows the smallest counterexample.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many nodes; of random graphs, at most.
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true,
        value_parser = value::at_least(2u32))]
    nodes: u32,
    /// How many instants; of random graphs, at most.
    #[arg(long, value_name = "T", default_value_t = 4, allow_negative_numbers = true,
        value_parser = value::at_least(1u64))]
    instants: u64,
    /// The last instant at which anybody asks.
    #[arg(long, value_name = "T", conflicts_with = "random", allow_negative_numbers = true,
        value_parser = value::at_least(0u64))]
    asks_until: Option<u64>,
    /// So many random graphs instead of all.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = value::at_least(1u64))]
    random: Option<u64>,
    /// The seed of random graphs.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true,
        value_parser = value::at_least(0u64))]
    seed: u64,
    /// A deliberately broken variant of one of the two algorithms instead of the correct one, as in
    /// evolving-helary:keeps-token; 'catraca algorithms NAME' lists them.
    #[arg(long, value_name = "ALGORITHM:NAME", conflicts_with = "random",
        value_parser = mutant_of)]
    mutant: Option<(String, String)>,
    /// Draws the smallest counterexample instant by instant, .svg, .png or .pdf.
    #[arg(long, value_name = "FILE")]
    strip: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let picture = self.strip.as_deref().map(PendingPicture::create).transpose()?;
        let stop = interrupt::flag();
        let spinner = progress::line();
        let mut out = Stdout::lock();
        let findings = match self.random {
            Some(count) => {
                self.refuse_large()?;
                spinner.set_message(format!("running {count} random graphs"));
                writeln!(
                    out,
                    "{} random graphs of up to {} nodes and {} instants, seed {}\n",
                    grouped(count),
                    self.nodes,
                    self.instants,
                    self.seed
                )?;
                random(count, self.nodes, self.instants, self.seed, &stop)
            }
            None => {
                let space = self.space()?;
                let graphs = space.graphs().unwrap_or(0);
                spinner.set_message(format!("running all {graphs} graphs"));
                writeln!(
                    out,
                    "all {} graphs with {} nodes and {}; requests at instants 0 to {}\n",
                    grouped(graphs),
                    self.nodes,
                    counted(self.instants, "instant", "instants"),
                    space.asks_until
                )?;
                exhaustive(&space, &stop)
            }
        };
        spinner.finish_and_clear();
        let findings = findings.ok_or(Failure::Interrupted)?;
        print(&findings, &mut out)?;
        // That proposition 1 is wrong as stated is known.
        let is_new = |one: &&Finding| one.refuted > 0 && one.proposition != Proposition::One;
        let is_refuted = |one: &&Finding| one.refuted > 0;
        let shown = findings.iter().find(is_new).or_else(|| findings.iter().find(is_refuted));
        if let (Some(file), Some(one)) = (picture, shown.and_then(|one| one.smallest.as_ref())) {
            file.finish(&self.draw(one)?)?;
        }
        if findings.iter().any(|one| is_new(&one)) { Err(Failure::Violation) } else { Ok(()) }
    }

    fn refuse_large(&self) -> Outcome {
        let pairs = u64::from(self.nodes).saturating_mul(self.nodes.into());
        if pairs.saturating_mul(self.instants) <= MOST_ARRIVALS {
            return Ok(());
        }
        Err(Failure::input(format!(
            "graphs of up to {} nodes and {} instants are too large to be tried at random; \
             nodes times nodes times instants may be {MOST_ARRIVALS}",
            self.nodes, self.instants
        )))
    }

    fn draw(&self, one: &Counterexample) -> Result<catraca_draw::Picture, Failure> {
        let requests = one.requests.clone();
        let workload = Workload { requests, rounds: Some(1), hold: 1, pause: 0 };
        let broken = self.mutant.as_ref().filter(|(algorithm, _)| algorithm == one.algorithm);
        let mutant = broken.map(|(_, name)| name.clone());
        let setup = Setup { token: one.token, mutant, ..Setup::new(&one.graph, workload) };
        let mut snapshots = Vec::new();
        observed(one.algorithm, &setup, Some(&mut snapshots))?;
        let title = format!("{}: the smallest counterexample", one.algorithm);
        strip_of(&title, one.graph.names(), &snapshots)
    }

    fn space(&self) -> Result<Space, Failure> {
        let mut space = Space::new(self.nodes, self.instants);
        if let Some(last) = self.asks_until {
            space.asks_until = last.min(self.instants - 1);
        }
        space.mutant.clone_from(&self.mutant);
        match space.graphs() {
            Some(graphs) if graphs <= MOST_GRAPHS && self.nodes <= 5 => Ok(space),
            _ => Err(Failure::input(format!(
                "there are too many graphs with {} nodes and {} instants to go through all; \
                 take fewer, or --random N of them",
                self.nodes, self.instants
            ))),
        }
    }
}

/// Reads which mutant of which algorithm is meant.
fn mutant_of(text: &str) -> Result<(String, String), String> {
    let (algorithm, name) = text.split_once(':').unwrap_or((text, ""));
    let known = mutants_of(algorithm);
    if known.iter().any(|mutant| mutant.name == name) {
        return Ok((algorithm.to_string(), name.to_string()));
    }
    let all = ENTRIES.iter().flat_map(|entry| {
        mutants_of(entry.name).into_iter().map(|mutant| format!("{}:{}", entry.name, mutant.name))
    });
    Err(format!("there is no such mutant; there are {}", all.collect::<Vec<_>>().join(", ")))
}

fn print(findings: &[Finding], out: &mut impl Write) -> Outcome {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("runs", Align::Right),
        ("contradict", Align::Right),
        ("verdict", Align::Left),
        ("what it says", Align::Left),
    ]);
    for finding in findings {
        let verdict = match (finding.cases, finding.refuted) {
            (0, _) => "no case",
            (_, 0) => "holds",
            _ => "wrong",
        };
        table.row(vec![
            finding.proposition.to_string(),
            grouped(finding.cases),
            grouped(finding.refuted),
            verdict.to_string(),
            finding.proposition.claim().to_string(),
        ]);
    }
    for line in table.lines() {
        writeln!(out, "{line}")?;
    }
    for finding in findings {
        if let Some(smallest) = &finding.smallest {
            writeln!(out, "\nthe smallest counterexample to {}:", finding.proposition)?;
            describe(smallest, out)?;
        }
    }
    Ok(())
}

fn describe(one: &Counterexample, out: &mut impl Write) -> Outcome {
    writeln!(out, "  {}", words::size(&one.graph))?;
    for contact in one.graph.contacts() {
        writeln!(out, "  {} meets {} at instant {}", contact.a, contact.b, contact.from)?;
    }
    for (at, node) in &one.requests {
        writeln!(out, "  {node} asks at instant {at}")?;
    }
    for served in &one.report.served {
        writeln!(out, "  {} enters at instant {}", served.node, served.entered)?;
    }
    for waiting in &one.report.waiting {
        writeln!(out, "  {} waits for ever", waiting.node)?;
    }
    if let Some(what) = &one.report.violation {
        writeln!(out, "  violation of {what}")?;
    }
    Ok(())
}
