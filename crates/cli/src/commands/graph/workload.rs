//! Who asks on a graph, and what runs.

use catraca_algorithms::relabelling::{self, ENTRIES};
use catraca_core::NodeId;
use catraca_sim::evolving::{MAX_ENTRIES, MAX_STAY, Setup, SetupError, Workload};

use super::trace::Source;
use crate::failure::Failure;
use crate::suggest::unknown;
use crate::value;

#[derive(clap::Args)]
pub(super) struct Flags {
    /// Who asks, separated by commas [default: everybody].
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    requesters: Vec<String>,
    /// The instant at which they ask first.
    #[arg(long, value_name = "T", default_value_t = 0, allow_negative_numbers = true,
        value_parser = value::instant)]
    at: u64,
    /// A request by itself, as in 5@12 (node 5 at instant 12); may be repeated.
    #[arg(long, value_name = "NODE@T", conflicts_with_all = ["requesters", "at"])]
    request: Vec<String>,
    /// How often each asks.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
        value_parser = value::at_least(1u32))]
    rounds: u32,
    /// Everybody asks again and again.
    #[arg(long, conflicts_with = "rounds")]
    endless: bool,
    /// How many instants one stays inside.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
        value_parser = value::within(1, MAX_STAY))]
    hold: u64,
    /// How many instants pass from an exit to the next request.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
        value_parser = value::within(0, MAX_STAY))]
    pause: u64,
    /// Who has the token at first [default: the first node].
    #[arg(long, value_name = "NODE")]
    token: Option<String>,
    /// A deliberately broken variant; 'catraca algorithms NAME' lists them.
    #[arg(long, value_name = "NAME")]
    mutant: Option<String>,
    /// The last instant.
    #[arg(long, value_name = "T", allow_negative_numbers = true,
        value_parser = value::instant)]
    until: Option<u64>,
    /// Ends after so many entries.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = value::within(1, MAX_ENTRIES))]
    entries: Option<u64>,
}

impl Flags {
    pub(super) fn setup<'g>(&self, source: &'g Source) -> Result<Setup<'g>, Failure> {
        let requests = if self.request.is_empty() {
            let nodes = source.nodes("--requesters", &self.requesters)?;
            nodes.into_iter().map(|node| (self.at, node)).collect()
        } else {
            let requests = self.request.iter().map(|text| request(source, text));
            requests.collect::<Result<Vec<(u64, NodeId)>, Failure>>()?
        };
        let token = match &self.token {
            Some(name) => source.node("--token", name)?,
            None => NodeId(0),
        };
        let rounds = (!self.endless).then_some(self.rounds);
        let workload = Workload { requests, rounds, hold: self.hold, pause: self.pause };
        let (mutant, until, entries) = (self.mutant.clone(), self.until, self.entries);
        Ok(Setup { graph: &source.graph, workload, token, mutant, until, entries })
    }
}

fn request(source: &Source, text: &str) -> Result<(u64, NodeId), Failure> {
    let wrong =
        || Failure::input(format!("--request: '{text}' is no request: say NODE@T, as in 5@12"));
    let (name, at) = text.rsplit_once('@').ok_or_else(wrong)?;
    let at = value::instant(at).map_err(|_| wrong())?;
    Ok((at, source.node("--request", name)?))
}

/// What is wrong with a setup, in terms of flags.
pub(super) fn at_fault(error: SetupError) -> Failure {
    match error {
        SetupError::UnknownAlgorithm(name) => {
            let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
            Failure::Input(unknown("algorithm for evolving graphs", &name, &names))
        }
        SetupError::UnknownMutant { algorithm, mutant } => {
            let mutants = relabelling::mutants_of(&algorithm);
            let names: Vec<&str> = mutants.iter().map(|mutant| mutant.name).collect();
            Failure::Input(unknown(&format!("mutant of {algorithm}"), &mutant, &names))
        }
        SetupError::Endless => Failure::input(
            "the graph goes on for ever, and so do the requests; say --until, --entries or --rounds",
        ),
        SetupError::TooManyEntries => Failure::input(format!(
            "the run could have more than {MAX_ENTRIES} entries; end it with --entries or --until"
        )),
        other => Failure::input(other),
    }
}
