//! `catraca algorithms`: the catalogue.

use std::io::Write;

use catraca_algorithms::mutants::Caught;
use catraca_algorithms::registry::{self, ENTRIES};
use catraca_algorithms::relabelling;
use catraca_algorithms::{Entry, SpecError};

use crate::Outcome;
use crate::output::Stdout;
use crate::table::{Align, Table};

/// Lists the algorithms, or tells all about one.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The algorithm to tell all about.
    name: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        match self.name {
            None => list(),
            Some(name) => match registry::entry(&name) {
                Some(entry) => describe(entry),
                None => match relabelling::entry(&name) {
                    Some(entry) => describe_evolving(entry),
                    None => Err(SpecError::UnknownAlgorithm(name).into()),
                },
            },
        }
    }
}

/// What the short names of the papers stand for.
const SOURCES: &str = "\
S0 is a paper on token algorithms for version control, S1 one on dynamic networks, S2 a textbook
chapter on mutual exclusion, S3 a report on a coordinator over sockets";

fn list() -> Outcome {
    let mut table = Table::new(&[
        ("name", Align::Left),
        ("kind", Align::Left),
        ("channels", Align::Left),
        ("messages per entry", Align::Left),
        ("delay", Align::Left),
        ("source", Align::Left),
    ]);
    for entry in ENTRIES {
        table.row(vec![
            entry.name.to_string(),
            entry.family.to_string(),
            entry.channels.to_string(),
            entry.messages.to_string(),
            entry.delay.to_string(),
            entry.source.to_string(),
        ]);
    }
    let mut out = Stdout::lock();
    for line in table.lines() {
        writeln!(out, "{line}")?;
    }
    list_evolving(&mut out)?;
    writeln!(
        out,
        "\nN nodes, T the mean message delay. {SOURCES}.\n'catraca algorithms NAME' tells all about one."
    )?;
    Ok(())
}

/// Relabelling systems share labels instead of sending messages: other columns.
fn list_evolving(out: &mut impl Write) -> Outcome {
    let mut table = Table::new(&[
        ("on evolving graphs", Align::Left),
        ("kind", Align::Left),
        ("needs", Align::Left),
        ("a label holds", Align::Left),
        ("source", Align::Left),
    ]);
    for entry in relabelling::ENTRIES {
        table.row(vec![
            entry.name.to_string(),
            entry.family.to_string(),
            entry.needs.to_string(),
            entry.label.to_string(),
            entry.source.to_string(),
        ]);
    }
    writeln!(out)?;
    for line in table.lines() {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn describe_evolving(entry: &relabelling::Entry) -> Outcome {
    let mut out = Stdout::lock();
    writeln!(out, "{}: {}\n", entry.name, entry.title)?;
    for line in entry.header() {
        writeln!(out, "{}", line.replace(['*', '`'], ""))?;
    }
    writeln!(out, "\nKind:        {}, on evolving graphs ('catraca graph')", entry.family)?;
    writeln!(out, "Needs:       {}", entry.needs)?;
    writeln!(out, "Label:       {}", entry.label)?;
    writeln!(out, "Fence:       {}", entry.fence)?;
    writeln!(out, "\nMutants, deliberately broken, for 'catraca graph run TRACE --mutant':")?;
    for mutant in relabelling::mutants_of(entry.name) {
        writeln!(out, "  {}: {}", mutant.name, mutant.breaks)?;
        writeln!(out, "    caught on all graphs with 3 nodes and 2 instants: {}", mutant.property)?;
    }
    Ok(())
}

fn describe(entry: &Entry) -> Outcome {
    let mut out = Stdout::lock();
    writeln!(out, "{}: {}\n", entry.name, entry.title)?;
    for line in entry.header() {
        writeln!(out, "{}", line.replace(['*', '`'], ""))?;
    }
    let parameters = match entry.parameters {
        [] => "none".to_string(),
        some => some.iter().map(|name| format!("--{name}")).collect::<Vec<_>>().join(", "),
    };
    writeln!(out, "\nKind:        {}", entry.family)?;
    writeln!(out, "Channels:    {}", entry.channels)?;
    writeln!(out, "Messages:    {}", entry.messages)?;
    writeln!(out, "Delay:       {}", entry.delay)?;
    writeln!(out, "Fence:       {}", entry.fence)?;
    writeln!(out, "Parameters:  {parameters}")?;
    writeln!(out, "Most nodes:  {}", crate::table::grouped(entry.max_nodes.into()))?;
    writeln!(out, "\nMutants, deliberately broken, for 'catraca check {} --mutant':", entry.name)?;
    for mutant in registry::mutants(entry.name) {
        let Caught { nodes, requests, property } = mutant.caught;
        writeln!(out, "  {}: {}", mutant.name, mutant.breaks)?;
        writeln!(out, "    caught with --nodes {nodes} --requests {requests}: {property}")?;
    }
    Ok(())
}
