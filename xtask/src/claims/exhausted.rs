//! Claims that an exhaustive search settles, and the tables of what was searched.

use anyhow::{Result, bail};
use catraca_algorithms::mutants::{Caught, Setting};
use catraca_algorithms::registry::{self, ENTRIES};
use catraca_algorithms::{Channels, Spec};
use catraca_check::{Network, Options, Report, Verdict as Checked, check};
use catraca_core::{NodeId, Start};
use catraca_sim::{Hooks, Scenario, run};
use catraca_trace::parse_start;

use super::{Finding, Verdict, settle};

/// The groups that are explored from several starts: nodes, requests each, and the number of states
/// past which a group counts as too large for every day. `cargo xtask soak` goes further.
const GROUPS: [(u32, u32, u64); 2] = [(3, 2, 8_000_000), (4, 1, 2_500_000)];
/// The same for all other explorations, which are small.
const MOST_STATES: u64 = 1_000_000;
/// The same for groups whose nodes crash, and for an algorithm whose states are large.
const MOST_CRASHED: u64 = 3_000_000;
const MOST_LARGE: u64 = 400_000;

/// A claim that all runs of small groups confirm, or one refutes.
pub(super) struct Claim {
    pub(super) section: &'static str,
    pub(super) says: &'static str,
    /// Whether no paper says it: it is a question of our own.
    pub(super) is_question: bool,
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
    pub(super) setting: Setting,
}

impl Group {
    pub(super) const fn new(algorithm: &'static str, nodes: u32, requests: u32) -> Self {
        let setting = Setting { k: None, crashes: 0 };
        Group { algorithm, mutant: None, nodes, requests, network: None, setting }
    }

    fn explore(self) -> Result<Report> {
        let mut spec = self.setting.of(Spec::new(self.algorithm, self.nodes));
        spec.mutant = self.mutant.map(str::to_string);
        let defaults = Options::of(&spec)?;
        let (requests, crashes) = (self.requests, self.setting.crashes);
        let network = self.network.unwrap_or(defaults.network);
        let state_limit = Some(if crashes > 0 { MOST_CRASHED } else { MOST_STATES });
        let options = Options { requests, network, crashes, state_limit, ..defaults };
        Ok(check(&spec, &options, &mut |_| {})?)
    }

    fn command(self) -> String {
        let mut command = format!(
            "catraca check {} --nodes {} --requests {}{}",
            self.algorithm, self.nodes, self.requests, self.setting
        );
        if let Some(mutant) = self.mutant {
            command.push_str(&format!(" --mutant {mutant}"));
        }
        if let Some(network) = self.network {
            command.push_str(&format!(" --order {network}"));
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
        Checked::OutOfMemory { .. } | Checked::TooLarge { .. } | Checked::Interrupted => {
            "cut short".to_string()
        }
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
            // An exhaustive search leaves nothing open.
            Verdict::Wrong | Verdict::Open => Verdict::Holds,
        };
        let found = if as_recorded { self.verdict } else { other };
        let verdict = settle(self.says, self.verdict, found, &measured)?;
        Ok(Finding {
            section: self.section.to_string(),
            says: self.says.to_string(),
            is_question: self.is_question,
            measured,
            command: self.group.command(),
            verdict,
            sentence: self.sentence.to_string(),
        })
    }
}

/// Every algorithm with 3 nodes that ask twice and with 4 that ask once, from every kind of start;
/// then clusters and sets.
pub(super) fn groups() -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for entry in ENTRIES {
        for (nodes, requests, most) in GROUPS {
            let inside = [NodeId(0), NodeId(nodes - 1)].map(Start::inside);
            let starts = [Start::idle()].into_iter().chain(inside);
            let spec = Spec::new(entry.name, nodes);
            let most = if has_large_states(entry.name) { MOST_LARGE } else { most };
            rows.extend(from_each(entry.name, &spec, starts, requests, most)?);
        }
    }
    rows.extend(clusters()?);
    rows.extend(sets()?);
    Ok(rows)
}

/// Whether a group of this algorithm takes so much memory that it is explored less far.
fn has_large_states(algorithm: &str) -> bool {
    algorithm == "robust-k"
}

/// Groups of three whose nodes crash between any two steps and in the middle of any, and are suspected at every later one.
pub(super) fn crashes() -> Result<Vec<Vec<String>>> {
    let groups = [
        ("raymond-k", 1, 0),
        ("raymond-k", 2, 1),
        ("robust-k", 1, 0),
        ("robust-k", 1, 2),
        ("robust-k", 2, 0),
        ("robust-k", 2, 2),
    ];
    let mut rows = Vec::new();
    for (algorithm, k, crashes) in groups {
        let setting = Setting { k: Some(k), crashes };
        let group = Group { setting, ..Group::new(algorithm, 3, 1) };
        let report = group.explore()?;
        if report.verdict != Checked::Holds {
            bail!("{}: {}", group.command(), words(&report));
        }
        rows.push(vec![
            algorithm.to_string(),
            k.to_string(),
            crashes.to_string(),
            grouped(report.states),
            report.depth.to_string(),
            format!("`{}`", group.command()),
        ]);
    }
    Ok(rows)
}

/// Two clusters of two; the first start is in one cluster, the last in the other.
fn clusters() -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for max_preempt in [0, 1, 2] {
        let clusters = Some("2x2".parse()?);
        let spec = Spec { clusters, max_preempt: Some(max_preempt), ..Spec::new("bertier", 4) };
        let name = format!("bertier --clusters 2x2 --max-preempt {max_preempt}");
        for requests in [1, 2] {
            let inside = [NodeId(0), NodeId(3)].map(Start::inside);
            let starts = [Start::idle()].into_iter().chain(inside);
            rows.extend(from_each(&name, &spec, starts, requests, MOST_STATES)?);
        }
    }
    Ok(rows)
}

/// Three resources and claims that overlap: request k of node i asks for i+k and the next one.
fn sets() -> Result<Vec<Vec<String>>> {
    let spec = Spec { resources: Some(3), ..Spec::new("bouabdallah-laforest", 3) };
    let mut starts = Vec::new();
    for text in ["idle", "inside:0=0,1", "inside:2=2,0", "inside:0=0,1|2=2", "inside:0=0|1=1|2=2"] {
        starts.push(parse_start(text)?);
    }
    from_each("bouabdallah-laforest --resources 3", &spec, starts, 2, MOST_STATES)
}

/// A row for each start, as long as all states can be seen: later starts have more.
fn from_each(
    name: &str,
    spec: &Spec,
    starts: impl IntoIterator<Item = Start>,
    requests: u32,
    most: u64,
) -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for start in starts {
        let shown = start.to_string();
        let spec = spec.clone().starting(start);
        let report = explore(&spec, requests, None, most)?;
        if let Some(property) = broken(&report) {
            bail!("{name} breaks '{property}' from {shown}");
        }
        let exhausted = report.verdict == Checked::Holds;
        let unknown = || "-".to_string();
        rows.push(vec![
            name.to_string(),
            spec.nodes.to_string(),
            requests.to_string(),
            // A bar would end the cell of a table.
            shown.replace('|', "\\|"),
            if exhausted { grouped(report.states) } else { unknown() },
            if exhausted { report.depth.to_string() } else { unknown() },
            if exhausted { "holds".to_string() } else { words(&report) },
        ]);
        if !exhausted {
            break;
        }
    }
    Ok(rows)
}

/// Which algorithms need channels that keep the order.
pub(super) fn orders() -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for entry in ENTRIES {
        let most = if has_large_states(entry.name) { MOST_LARGE } else { MOST_STATES };
        let report = explore(&Spec::new(entry.name, 3), 2, Some(Network::Any), most)?;
        let needs_fifo = broken(&report).is_some();
        if needs_fifo != (entry.channels == Channels::Fifo) {
            bail!("the catalogue says {} for {}: {}", entry.channels, entry.name, words(&report));
        }
        let needs = if needs_fifo { "yes" } else { "no" };
        let command = format!("catraca check {} --order any", entry.name);
        rows.push(vec![entry.name.into(), needs.into(), words(&report), format!("`{command}`")]);
    }
    Ok(rows)
}

/// Every mutant, and what catches it.
pub(super) fn mutants() -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for entry in ENTRIES {
        for mutant in registry::mutants(entry.name) {
            let (by, steps) = match mutant.caught {
                Caught::Checked { nodes, requests, property } => {
                    let setting = registry::setting(entry.name, mutant.name);
                    let spec = setting.of(Spec::new(entry.name, nodes).broken(mutant.name));
                    let crashes = setting.crashes;
                    let options = Options {
                        requests,
                        crashes,
                        state_limit: Some(MOST_STATES),
                        ..Options::of(&spec)?
                    };
                    let report = check(&spec, &options, &mut |_| {})?;
                    if broken(&report) != Some(property) {
                        bail!("{} {}: {}", entry.name, mutant.name, words(&report));
                    }
                    (format!("{nodes} x {requests}{setting}"), report.depth.to_string())
                }
                Caught::Simulated { property, .. } => {
                    let scenario = Scenario::catching(entry.name, &mutant).unwrap_or_default();
                    let violation = run(&scenario.setup()?, Hooks::default())?.violation;
                    if violation.as_ref().map(|violation| violation.invariant) != Some(property) {
                        bail!("{} {}: {violation:?}", entry.name, mutant.name);
                    }
                    (format!("`{}`", scenario.command()), "-".to_string())
                }
            };
            rows.push(vec![
                entry.name.to_string(),
                mutant.name.to_string(),
                mutant.breaks.to_string(),
                by,
                mutant.caught.property().to_string(),
                steps,
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
