//! What a run has shown.

use catraca_core::{Fence, NodeId};
use serde::{Serialize, Serializer};

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Everybody who asked was served, and nobody will ask again.
    Served,
    /// Nothing can change any more: nodes that wait, wait for ever.
    Quiet,
    /// The graph ended.
    Graph,
    /// The last instant that was asked for.
    Until,
    /// As many entries as were asked for.
    Entries,
    /// An invariant broke.
    Violation,
    /// It was asked to stop.
    Interrupted,
    /// Too many nodes and requests meet: the run would take hours, or all memory.
    TooMuchWork,
}

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Served {
    /// Who entered.
    pub node: NodeId,
    /// The instant of the request.
    pub asked: u64,
    /// The instant of the entry.
    pub entered: u64,
    /// The number that came with it.
    pub fence: Fence,
}

/// A request that was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// Who waits.
    pub node: NodeId,
    /// The instant of the request.
    pub since: u64,
}

/// The figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Which algorithm.
    pub algorithm: String,
    /// Why the run ended.
    pub end: End,
    /// The last instant.
    pub last: u64,
    /// Instants at which something could happen.
    pub instants: u64,
    /// Requests made.
    pub requests: u64,
    /// Every entry, in order.
    pub served: Vec<Served>,
    /// Who waits at the end; for ever, if the end is quiet.
    pub waiting: Vec<Waiting>,
    /// Mean number of instants from request to entry.
    pub wait_mean: Option<f64>,
    /// The most instants from request to entry.
    pub wait_longest: u64,
    /// Contacts that began during the run.
    pub contacts: u64,
    /// Contacts of components in which a node learned something.
    pub contacts_used: u64,
    /// Bytes of labels that had to be sent: for each node that learned something in a join, the
    /// label that it then had.
    pub bytes: u64,
    /// The largest label, in bytes.
    pub largest_label: u64,
    /// The largest label after the last entry of each stretch of the run: at an instant, the bytes
    /// of the label, and those that it would have if nothing were ever collected.
    #[serde(serialize_with = "named_sizes")]
    pub labels: Vec<(u64, u64, u64)>,
    /// What broke, if something did.
    pub violation: Option<String>,
}

/// Sizes of labels with the names of what they are.
fn named_sizes<S: Serializer>(
    labels: &[(u64, u64, u64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Size {
        at: u64,
        bytes: u64,
        bytes_uncollected: u64,
    }
    let sizes =
        labels.iter().map(|&(at, bytes, bytes_uncollected)| Size { at, bytes, bytes_uncollected });
    serializer.collect_seq(sizes)
}

impl Report {
    /// Bytes of labels per entry.
    pub fn bytes_per_entry(&self) -> Option<f64> {
        self.per_entry(self.bytes)
    }

    fn per_entry(&self, total: u64) -> Option<f64> {
        let entries = self.served.len();
        (entries > 0).then(|| total as f64 / entries as f64)
    }
}
