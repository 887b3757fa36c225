//! What a run has shown.

use serde::{Serialize, Serializer};

use crate::monitor::Violation;
use crate::time::Time;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// As many entries as were asked for.
    Entries,
    /// The time was up.
    Time,
    /// Nothing more could happen.
    Quiet,
    /// Everybody who asked was served, and messages would go on for ever.
    Served,
    /// An invariant broke.
    Violation,
    /// It was asked to stop.
    Interrupted,
    /// It gave up: too many requests wait at their own nodes.
    TooManyRequests,
    /// It gave up: too many messages and other events are pending.
    TooManyEvents,
    /// It gave up: it takes more events than it may.
    EventBound,
    /// It gave up: time does not advance.
    SameInstant,
    /// It gave up: the clock cannot count further.
    EndOfTime,
    /// It gave up: messages go on and nodes wait, but nobody enters.
    NobodyEnters,
    /// It gave up: everybody was served and messages go on, which the algorithm does not say of itself.
    Restless,
}

impl End {
    /// For a run that gave up: why, and what to change.
    pub fn gave_up(self) -> Option<&'static str> {
        match self {
            End::TooManyRequests => Some(
                "more than a million requests wait at their own nodes, because they come faster \
                 than they can be served; lower the rate, make bursts rarer, or shorten the hold",
            ),
            End::TooManyEvents => Some(
                "the messages on their way take more than 1 GiB, because they are sent faster than \
                 they arrive; take fewer nodes, a longer timeout or shorter delays",
            ),
            End::EventBound => Some(
                "the run has taken as many events as it may; allow it more with --events (in a file \
                 [run] events), or end it earlier with --entries or --time",
            ),
            End::SameInstant => Some(
                "more than ten million events happen at one instant, so time does not advance; \
                 make the hold, the delay, or the time to the next request longer than 0",
            ),
            End::EndOfTime => {
                Some("the clock cannot count further; shorten the times, or end the run earlier")
            }
            End::NobodyEnters => Some(
                "nodes wait and messages go on, more than a million of them, but nobody enters; \
                 'check' says whether somebody waits for ever",
            ),
            End::Restless => Some(
                "everybody was served, but messages go on, more than a million of them; if that is \
                 meant, the algorithm says so with 'const RESTLESS: bool = true;'",
            ),
            End::Entries
            | End::Time
            | End::Quiet
            | End::Served
            | End::Violation
            | End::Interrupted => None,
        }
    }
}

/// The figures of one run. Times are in units; what cannot be said (no entry, no delay) is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Why the run ended.
    pub end: End,
    /// When it ended.
    pub time: f64,
    /// Events processed, the warm-up included.
    pub events: u64,
    /// Entries, without the warm-up.
    pub entries: u64,
    /// When the last of them was.
    pub last_entry: Option<f64>,
    /// Messages sent, without the warm-up.
    pub messages: u64,
    /// Messages sent by kind, without the warm-up. An object in JSON.
    #[serde(serialize_with = "as_object")]
    pub by_kind: Vec<(&'static str, u64)>,
    /// Messages per entry. Those of requests that still wait at the end count too.
    pub messages_per_entry: Option<f64>,
    /// Messages within clusters, where there are clusters.
    pub messages_within: Option<u64>,
    /// Messages between clusters, where there are clusters.
    pub messages_between: Option<u64>,
    /// Messages within clusters per entry.
    pub messages_within_per_entry: Option<f64>,
    /// Messages between clusters per entry.
    pub messages_between_per_entry: Option<f64>,
    /// Mean synchronisation delay in units of T.
    pub delay: Option<f64>,
    /// Mean time from request to entry.
    pub response_mean: Option<f64>,
    /// 99 % of the entries came within this time after the request. Exact up to 65,536 entries, and
    /// within 0.1 % above.
    pub response_p99: Option<f64>,
    /// The longest anybody waited, served or not.
    pub longest_wait: f64,
    /// Entries per unit of time.
    pub throughput: Option<f64>,
    /// Entries in the time of one message and one stay, T+E. At most 1 where each entry needs a
    /// message from the node that was inside before; above 1 where nodes enter again without one, where
    /// several are inside at once, and where the next is nearer than T.
    pub throughput_of_bound: Option<f64>,
    /// Jain's index over the entries of the nodes that are alive.
    pub fairness: Option<f64>,
    /// Jain's index over the entries per living member of each cluster, where there are clusters.
    pub cluster_fairness: Option<f64>,
    /// The longest mean time from request to entry of a cluster, in that of the shortest.
    pub cluster_response_ratio: Option<f64>,
    /// The mean time of a wait in which a wanted resource is in use, where there are several.
    pub wait_in_use: Option<f64>,
    /// The same in which none is in use, but wanted by a request that came earlier.
    pub wait_in_line: Option<f64>,
    /// The same of the rest: messages, and locks that a node has but does not use.
    pub wait_rest: Option<f64>,
    /// Mean time from request to entry of requests for one resource, where there are several.
    pub single_response_mean: Option<f64>,
    /// 99 % of them came within this time after the request.
    pub single_response_p99: Option<f64>,
    /// Mean time from request to entry of requests for several resources.
    pub several_response_mean: Option<f64>,
    /// 99 % of them came within this time after the request.
    pub several_response_p99: Option<f64>,
    /// The share of the requests for several resources of which exactly one was taken.
    pub one_taken_share: Option<f64>,
    /// Mean time from request to entry of those.
    pub one_taken_response_mean: Option<f64>,
    /// The mean number of nodes inside at the same time, where there are several resources.
    pub concurrency: Option<f64>,
    /// The mean number that could have been inside, by a greedy choice of waiting requests.
    pub concurrency_possible: Option<f64>,
    /// The most later requests that overtook one request.
    pub most_bypasses: u32,
    /// Nodes still waiting at the end.
    pub waiting: u64,
    /// What broke, if something did.
    pub violation: Option<Violation>,
}

/// Names and their counts, as an object with a field a name.
pub(crate) fn as_object<N: Serialize, S: Serializer>(
    counts: &[(N, u64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().map(|(name, count)| (name, count)))
}

/// The figures from which the ratios of a report are made.
pub(crate) struct Frame {
    pub(crate) window: Time,
    /// T, in units.
    pub(crate) latency: f64,
    /// E, in units.
    pub(crate) hold: f64,
}

impl Frame {
    pub(crate) fn throughput(&self, entries: u64) -> Option<f64> {
        (self.window > Time::ZERO).then(|| entries as f64 / self.window.as_units())
    }

    pub(crate) fn of_bound(&self, throughput: f64) -> f64 {
        throughput * (self.latency + self.hold)
    }

    pub(crate) fn in_latencies(&self, delay: f64) -> Option<f64> {
        (self.latency > 0.0).then(|| delay / self.latency)
    }
}
