//! Runs on an evolving graph with all that they mean, for a JSON file.

use catraca_sim::evolving::{Report, Setup};
use serde::Serialize;

use super::times::ClockRecord;
use super::trace::Source;

/// What was run, and what came of it.
#[derive(Serialize)]
pub(super) struct Record<'a> {
    trace: String,
    /// The names of the nodes, which entries mean by their places here.
    names: &'a [String],
    contacts: usize,
    /// The last instant of the trace.
    last: u64,
    /// The instant from which on it repeats, if it does.
    cycle: Option<u64>,
    /// What times are counted in.
    unit: &'static str,
    /// What sizes are counted in.
    size_unit: &'static str,
    /// When instants are, where the file says it.
    clock: Option<ClockRecord>,
    /// Who has the token at first.
    token: &'a str,
    mutant: Option<&'a str>,
    runs: &'a [Report],
}

impl<'a> Record<'a> {
    pub(super) fn new(source: &'a Source, setup: &'a Setup<'_>, runs: &'a [Report]) -> Self {
        let graph = &source.graph;
        Record {
            trace: source.title(),
            names: graph.names(),
            contacts: graph.contacts().len(),
            last: graph.last(),
            cycle: graph.cycle(),
            unit: "instant",
            size_unit: "byte",
            clock: source.times.record(),
            token: graph.name(setup.token),
            mutant: setup.mutant.as_deref(),
            runs,
        }
    }
}
