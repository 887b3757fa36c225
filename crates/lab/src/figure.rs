//! What can be measured of a run, by name.

use std::fmt;

use catraca_algorithms::Visitor;
use catraca_core::{Algorithm, Message};
use catraca_sim::{Report, Setup};

use crate::error::{LabError, one_of};

/// A figure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Figure {
    /// One of the table.
    Named(&'static Named),
    /// Messages of one kind, or of several: `request+reply`.
    Messages(String),
    /// The same per entry.
    MessagesPerEntry(String),
    /// The same per node and unit of time.
    MessagesPerNode(String),
}

/// A figure with a name.
pub struct Named {
    /// As files call it.
    pub name: &'static str,
    /// As tables call it.
    pub head: &'static str,
    /// As charts call it.
    pub label: &'static str,
    /// Whether it is a time, in units of simulated time.
    pub is_time: bool,
    of: fn(&Setup, &Report) -> Option<f64>,
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Named {}

const fn named(
    name: &'static str,
    head: &'static str,
    label: &'static str,
    of: fn(&Setup, &Report) -> Option<f64>,
) -> Named {
    Named { name, head, label, is_time: false, of }
}

/// A figure that is a time.
const fn timed(
    name: &'static str,
    head: &'static str,
    label: &'static str,
    of: fn(&Setup, &Report) -> Option<f64>,
) -> Named {
    Named { name, head, label, is_time: true, of }
}

/// Everything with a name: the numbers of a [`Report`] under their names there, the size of the
/// group, and what theory and S2's table expect at the two loads that they cover.
#[rustfmt::skip]
pub const FIGURES: &[Named] = &[
    named("nodes", "nodes", "nodes", |setup, _| Some(setup.spec.nodes.into())),
    named("k", "k", "how many may be inside at once", |setup, _| Some(setup.spec.k.unwrap_or(1).into())),
    timed("time", "time", "simulated time", |_, report| Some(report.time)),
    named("events", "events", "events", |_, report| Some(report.events as f64)),
    named("entries", "entries", "entries", |_, report| Some(report.entries as f64)),
    timed("last_entry", "last", "time of the last entry", |_, report| report.last_entry),
    named("messages", "messages", "messages", |_, report| Some(report.messages as f64)),
    named("messages_per_entry", "msgs", "messages per entry", |_, report| report.messages_per_entry),
    named("messages_within", "within", "messages within clusters", |_, report| report.messages_within.map(|count| count as f64)),
    named("messages_between", "between", "messages between clusters", |_, report| report.messages_between.map(|count| count as f64)),
    named("messages_within_per_entry", "within", "messages within clusters, per entry", |_, report| report.messages_within_per_entry),
    named("messages_between_per_entry", "between", "messages between clusters, per entry", |_, report| report.messages_between_per_entry),
    named("delay", "delay", "synchronisation delay in T", |_, report| report.delay),
    timed("response_mean", "resp", "mean response time", |_, report| report.response_mean),
    timed("response_p99", "p99", "99th percentile of the response time", |_, report| report.response_p99),
    timed("longest_wait", "longest", "longest wait", |_, report| Some(report.longest_wait)),
    named("throughput", "thrput", "entries per unit of time", |_, report| report.throughput),
    named("throughput_of_bound", "of bound", "entries in the time T+E of a message and a stay", |_, report| report.throughput_of_bound),
    named("fairness", "Jain", "fairness between nodes (Jain)", |_, report| report.fairness),
    named("cluster_fairness", "Jain cl.", "fairness between clusters (Jain)", |_, report| report.cluster_fairness),
    named("cluster_response_ratio", "ratio", "longest mean response of a cluster, in the shortest", |_, report| report.cluster_response_ratio),
    timed("wait_in_use", "in use", "waiting while a wanted resource is in use", |_, report| report.wait_in_use),
    timed("wait_in_line", "in line", "waiting while an earlier request wants one too", |_, report| report.wait_in_line),
    timed("wait_rest", "rest", "the rest: messages, and locks on what is not in use", |_, report| report.wait_rest),
    named("wait_rest_share", "rest share", "the part of waiting that is the rest", |_, report| rest_share(report)),
    timed("single_response_mean", "resp 1", "mean response time of requests for one resource", |_, report| report.single_response_mean),
    timed("single_response_p99", "p99 1", "99th percentile of requests for one resource", |_, report| report.single_response_p99),
    timed("several_response_mean", "resp 2+", "mean response time of requests for several resources", |_, report| report.several_response_mean),
    timed("several_response_p99", "p99 2+", "99th percentile of requests for several resources", |_, report| report.several_response_p99),
    named("one_taken_share", "one taken", "share of requests for several of which exactly one was taken", |_, report| report.one_taken_share),
    timed("one_taken_response_mean", "resp o.t.", "mean response time of requests of which exactly one was taken", |_, report| report.one_taken_response_mean),
    named("concurrency", "inside", "nodes inside at the same time", |_, report| report.concurrency),
    named("concurrency_possible", "possible", "nodes that could have been inside", |_, report| report.concurrency_possible),
    named("most_bypasses", "bypass", "most requests that overtook one", |_, report| Some(report.most_bypasses.into())),
    named("waiting", "waiting", "nodes waiting at the end", |_, report| Some(report.waiting as f64)),
    named("theory_least", "theory", "messages per entry in theory, at least", |setup, _| setup.theory().map(|theory| theory.messages.min)),
    named("theory_most", "to", "messages per entry in theory, at most", |setup, _| setup.theory().map(|theory| theory.messages.max)),
    named("s2_messages", "S2", "messages per entry in S2's table", |setup, _| setup.claimed_messages()),
];

impl Figure {
    /// The figure that `text` names.
    pub(crate) fn parse(place: &str, text: &str) -> Result<Self, LabError> {
        if let Some(kind) = text.strip_prefix("messages.") {
            return Ok(Figure::Messages(kind.to_string()));
        }
        if let Some(kind) = text.strip_prefix("messages_per_entry.") {
            return Ok(Figure::MessagesPerEntry(kind.to_string()));
        }
        if let Some(kind) = text.strip_prefix("messages_per_node.") {
            return Ok(Figure::MessagesPerNode(kind.to_string()));
        }
        match FIGURES.iter().find(|figure| figure.name == text) {
            Some(figure) => Ok(Figure::Named(figure)),
            None => {
                let names = FIGURES.iter().map(|figure| figure.name);
                let names = names.chain([
                    "messages.KIND",
                    "messages_per_entry.KIND",
                    "messages_per_node.KIND",
                ]);
                Err(one_of(place, "figure", text, names))
            }
        }
    }

    /// Refuses a kind of message that no algorithm of `setups` has.
    pub(crate) fn check_kind<'a>(
        &self,
        place: &str,
        setups: impl Iterator<Item = &'a Setup>,
    ) -> Result<(), LabError> {
        match self {
            Figure::Named(_) => Ok(()),
            Figure::Messages(kinds)
            | Figure::MessagesPerEntry(kinds)
            | Figure::MessagesPerNode(kinds) => check_kinds(place, kinds, setups),
        }
    }

    /// As files call it.
    pub fn name(&self) -> String {
        match self {
            Figure::Named(figure) => figure.name.to_string(),
            Figure::Messages(kind) => format!("messages.{kind}"),
            Figure::MessagesPerEntry(kind) => format!("messages_per_entry.{kind}"),
            Figure::MessagesPerNode(kind) => format!("messages_per_node.{kind}"),
        }
    }

    /// As tables call it.
    pub fn head(&self) -> String {
        match self {
            Figure::Named(figure) => figure.head.to_string(),
            Figure::Messages(kind)
            | Figure::MessagesPerEntry(kind)
            | Figure::MessagesPerNode(kind) => kind.clone(),
        }
    }

    /// As charts call it.
    pub fn label(&self) -> String {
        match self {
            Figure::Named(figure) => figure.label.to_string(),
            Figure::Messages(kind) => format!("messages of kind {kind}"),
            Figure::MessagesPerEntry(kind) => format!("messages of kind {kind}, per entry"),
            Figure::MessagesPerNode(kind) => {
                format!("messages of kind {kind}, per node and unit of time")
            }
        }
    }

    /// Whether it is a time, in units of simulated time.
    pub fn is_time(&self) -> bool {
        matches!(self, Figure::Named(figure) if figure.is_time)
    }

    /// The kinds of message that it counts, if it counts such.
    pub fn kind(&self) -> Option<&str> {
        match self {
            Figure::Named(_) => None,
            Figure::Messages(kind)
            | Figure::MessagesPerEntry(kind)
            | Figure::MessagesPerNode(kind) => Some(kind),
        }
    }

    /// Its value in a run, if it has one there.
    pub fn of(&self, setup: &Setup, report: &Report) -> Option<f64> {
        // What an algorithm cannot send is no zero.
        let sent = |kinds: &str| {
            let is_meant = |name: &str| kinds.split('+').any(|kind| kind == name);
            let counts = report.by_kind.iter().filter(|(name, _)| is_meant(name));
            counts.map(|(_, count)| *count as f64).reduce(|sum, count| sum + count)
        };
        match self {
            Figure::Named(figure) => (figure.of)(setup, report),
            Figure::Messages(kind) => sent(kind),
            Figure::MessagesPerEntry(kind) => {
                (report.entries > 0).then_some(sent(kind)? / report.entries as f64)
            }
            Figure::MessagesPerNode(kind) => {
                let node_times = f64::from(setup.spec.nodes) * report.time;
                (node_times > 0.0).then_some(sent(kind)? / node_times)
            }
        }
    }
}

/// Refuses kinds of messages that no algorithm of `setups` has.
pub(crate) fn check_kinds<'a>(
    place: &str,
    kinds: &str,
    setups: impl Iterator<Item = &'a Setup>,
) -> Result<(), LabError> {
    let mut known: Vec<&str> = Vec::new();
    for setup in setups {
        let sent = setup.spec.visit(Kinds).map_err(catraca_sim::ScenarioError::from)?;
        known.extend(sent.iter().filter(|kind| !known.contains(*kind)).collect::<Vec<_>>());
    }
    match kinds.split('+').find(|kind| !known.contains(kind)) {
        None => Ok(()),
        Some(unknown) => Err(one_of(place, "kind of message", unknown, known)),
    }
}

/// The kinds of messages that an algorithm sends.
struct Kinds;

impl Visitor for Kinds {
    type Output = &'static [&'static str];

    fn visit<A: Algorithm>(self, _: A::Config) -> Self::Output {
        A::Message::KINDS
    }
}

fn rest_share(report: &Report) -> Option<f64> {
    let rest = report.wait_rest?;
    let whole = rest + report.wait_in_use? + report.wait_in_line?;
    (whole > 0.0).then(|| rest / whole)
}

#[cfg(test)]
mod tests {
    use catraca_sim::{Hooks, Scenario, run};

    use super::*;

    #[test]
    fn every_number_of_a_report_is_a_figure() {
        let scenario = Scenario::new().with("algorithm", "lamport").with("workload.rounds", 2);
        let setup = scenario.setup().unwrap();
        let report = run(&setup, Hooks::default()).unwrap();
        let fields = serde_json::to_value(&report).unwrap();
        for (name, value) in fields.as_object().unwrap() {
            if ["end", "by_kind", "violation"].contains(&name.as_str()) {
                continue;
            }
            let figure = Figure::parse("here", name).unwrap();
            assert_eq!(figure.of(&setup, &report), value.as_f64(), "{name}");
        }
        let of = |text: &str| Figure::parse("here", text).unwrap().of(&setup, &report);
        let sent = |kind: usize| report.by_kind[kind].1 as f64;
        let entries = report.entries as f64;
        assert_eq!(of("messages_per_entry.reply"), Some(sent(1) / entries));
        assert_eq!(of("messages_per_entry.request+release"), Some((sent(0) + sent(2)) / entries));
        assert_eq!(of("messages_per_node.request"), Some(sent(0) / (5.0 * report.time)));
        assert_eq!(of("messages.tree"), None);
        let replies = Figure::parse("here", "messages_per_entry.reply").unwrap();
        assert_eq!(replies.check_kind("here", [&setup].into_iter()), Ok(()));
    }

    #[test]
    fn unknown_figures_and_kinds_say_what_there_is() {
        let error = Figure::parse("experiment.columns", "mesages").unwrap_err().to_string();
        assert!(error.starts_with("experiment.columns: there is no figure 'mesages'"), "{error}");
        assert!(error.contains("Did you mean 'messages'?"), "{error}");
        assert!(error.contains("messages_per_entry, "), "{error}");
        let setup = Scenario::new().with("algorithm", "lamport").setup().unwrap();
        let figure = Figure::parse("here", "messages.reply+token").unwrap();
        let error = figure.check_kind("here", [&setup].into_iter()).unwrap_err().to_string();
        assert!(error.ends_with("There are: request, reply, release"), "{error}");
    }
}
