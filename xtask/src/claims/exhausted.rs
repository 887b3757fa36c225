//! Claims that an exhaustive search settles, and the tables of what was searched.

use anyhow::{Result, bail};
use catraca_algorithms::mutants::Caught;
use catraca_algorithms::registry::{self, ENTRIES};
use catraca_algorithms::{Channels, Spec};
use catraca_check::{Network, Options, Report, Verdict as Checked, check};
use catraca_core::{NodeId, Start};

use super::{Finding, Verdict, settle};

/// The groups that are explored from several starts: nodes, requests each, and the number of states
/// past which a group counts as too large for every day. `cargo xtask soak` goes further.
const GROUPS: [(u32, u32, u64); 2] = [(3, 2, 8_000_000), (4, 1, 2_500_000)];
/// The same for all other explorations, which are small.
const MOST_STATES: u64 = 1_000_000;

/// A claim that all runs of small groups confirm, or one refutes.
pub(super) struct Claim {
    pub(super) section: &'static str,
    pub(super) says: &'static str,
    /// The group that is explored.
    pub(super) group: Group,
    /// What the search finds: nothing, or a broken property.
    pub(super) finds: Option<&'static str>,
    pub(super) verdict: Verdict,
    pub(super) sentence: &'static str,
}

/// A small group.
#[derive(Clone, Copy)]
pub(super) struct Group {
    pub(super) algorithm: &'static str,
    pub(super) mutant: Option<&'static str>,
    pub(super) nodes: u32,
    pub(super) requests: u32,
    pub(super) network: Option<Network>,
}

impl Group {
    pub(super) const fn new(algorithm: &'static str, nodes: u32, requests: u32) -> Self {
        Group { algorithm, mutant: None, nodes, requests, network: None }
    }

    fn explore(self) -> Result<Report> {
        let mut spec = Spec::new(self.algorithm, self.nodes);
        spec.mutant = self.mutant.map(str::to_string);
        explore(&spec, self.requests, self.network, MOST_STATES)
    }

    fn command(self) -> String {
        let mut command = format!(
            "catraca check {} --nodes {} --requests {}",
            self.algorithm, self.nodes, self.requests
        );
        if let Some(mutant) = self.mutant {
            command.push_str(&format!(" --mutant {mutant}"));
        }
        if let Some(network) = self.network {
            command.push_str(&format!(" --network {network}"));
        }
        command
    }
}

fn explore(spec: &Spec, requests: u32, network: Option<Network>, most: u64) -> Result<Report> {
    let defaults = Options::of(spec)?;
    let network = network.unwrap_or(defaults.network);
    let options = Options { requests, network, state_limit: Some(most), ..defaults };
    Ok(check(spec, &options, &mut |_| {})?)
}

/// What a search found, in words that do not change from run to run.
fn words(report: &Report) -> String {
    match &report.verdict {
        Checked::Holds => format!("all {} states hold", grouped(report.states)),
        Checked::Violated(violation) => {
            format!("'{}' breaks after {} steps", violation.property, report.depth)
        }
        Checked::TooManyStates { limit } => {
            format!("more than {} states; those hold", grouped(*limit))
        }
        Checked::OutOfMemory { .. } | Checked::Interrupted => "cut short".to_string(),
    }
}

fn broken(report: &Report) -> Option<&'static str> {
    match &report.verdict {
        Checked::Violated(violation) => Some(violation.property),
        _ => None,
    }
}

impl Claim {
    pub(super) fn finding(&self) -> Result<Finding> {
        let report = self.group.explore()?;
        let measured = words(&report);
        let as_recorded = broken(&report) == self.finds;
        let other = match self.verdict {
            Verdict::Holds => Verdict::Wrong,
            Verdict::Wrong => Verdict::Holds,
        };
        let found = if as_recorded { self.verdict } else { other };
        let verdict = settle(self.says, self.verdict, found, &measured)?;
        let (section, says, sentence) = (self.section, self.says, self.sentence);
        Ok(Finding { section, says, measured, command: self.group.command(), verdict, sentence })
    }
}

/// Every algorithm with 3 nodes that ask twice and with 4 that ask once, from every kind of start.
pub(super) fn groups() -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for entry in ENTRIES {
        for (nodes, requests, most) in GROUPS {
            let mut starts = vec![("idle".to_string(), Start::idle())];
            for node in [NodeId(0), NodeId(nodes - 1)] {
                starts.push((format!("inside:{node}"), Start::inside(node)));
            }
            for (name, start) in starts {
                let spec = Spec::new(entry.name, nodes).starting(start);
                let report = explore(&spec, requests, None, most)?;
                if let Some(property) = broken(&report) {
                    bail!("{} breaks '{property}' from {name}", entry.name);
                }
                let exhausted = report.verdict == Checked::Holds;
                let unknown = || "-".to_string();
                rows.push(vec![
                    entry.name.to_string(),
                    nodes.to_string(),
                    requests.to_string(),
                    name,
                    if exhausted { grouped(report.states) } else { unknown() },
                    if exhausted { report.depth.to_string() } else { unknown() },
                    if exhausted { "holds".to_string() } else { words(&report) },
                ]);
                if !exhausted {
                    break; // The other starts have more states still.
                }
            }
        }
    }
    Ok(rows)
}

/// Which algorithms need channels that keep the order.
pub(super) fn orders() -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for entry in ENTRIES {
        let report = explore(&Spec::new(entry.name, 3), 2, Some(Network::Any), MOST_STATES)?;
        let needs_fifo = broken(&report).is_some();
        if needs_fifo != (entry.channels == Channels::Fifo) {
            bail!("the catalogue says {} for {}: {}", entry.channels, entry.name, words(&report));
        }
        let needs = if needs_fifo { "yes" } else { "no" };
        let command = format!("catraca check {} --network any", entry.name);
        rows.push(vec![entry.name.into(), needs.into(), words(&report), format!("`{command}`")]);
    }
    Ok(rows)
}

/// Every mutant, and what catches it.
pub(super) fn mutants() -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for entry in ENTRIES {
        for mutant in registry::mutants(entry.name) {
            let Caught { nodes, requests, property } = mutant.caught;
            let setting = registry::setting(entry.name, mutant.name);
            let spec = setting.of(Spec::new(entry.name, nodes).broken(mutant.name));
            let defaults = Options::of(&spec)?;
            let crashes = setting.crashes;
            let options = Options { requests, crashes, state_limit: Some(MOST_STATES), ..defaults };
            let report = check(&spec, &options, &mut |_| {})?;
            if broken(&report) != Some(property) {
                bail!("{} {}: {}", entry.name, mutant.name, words(&report));
            }
            rows.push(vec![
                entry.name.to_string(),
                mutant.name.to_string(),
                mutant.breaks.to_string(),
                format!("{nodes} x {requests}{setting}"),
                property.to_string(),
                report.depth.to_string(),
            ]);
        }
    }
    Ok(rows)
}

fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}
