//! What determines a run.

use catraca_core::NodeId;
use catraca_topology::evolving::{EvolvingGraph, MAX_INSTANT};

/// The most entries of a run: every one is reported, and they have to fit into memory.
pub const MAX_ENTRIES: u64 = 10_000_000;
/// The longest hold or pause, so that all of them together fit into a number.
pub const MAX_STAY: u64 = u32::MAX as u64;

/// Who asks, when, how often, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// The first requests: an instant and a node. One that comes while the node is not idle waits
    /// until it is.
    pub requests: Vec<(u64, NodeId)>,
    /// How often each of them asks, the first time included. None is without end.
    pub rounds: Option<u32>,
    /// How many instants pass from the entry to the exit, at least one.
    pub hold: u64,
    /// How many instants pass from the exit to the next request.
    pub pause: u64,
}

impl Workload {
    /// Each of `nodes` asks once, at the instant `at`, and stays inside for one instant.
    pub fn once(nodes: Vec<NodeId>, at: u64) -> Self {
        let requests = nodes.into_iter().map(|node| (at, node)).collect();
        Workload { requests, rounds: Some(1), hold: 1, pause: 0 }
    }
}

/// A run on a graph.
#[derive(Clone, Debug)]
pub struct Setup<'g> {
    /// The graph.
    pub graph: &'g EvolvingGraph,
    /// What the applications do.
    pub workload: Workload,
    /// Who has the token at first, where there is one.
    pub token: NodeId,
    /// A mutant instead of the correct algorithm.
    pub mutant: Option<String>,
    /// The last instant that is run; of a finite graph its own last one at the latest.
    pub until: Option<u64>,
    /// Stop after so many entries.
    pub entries: Option<u64>,
}

impl<'g> Setup<'g> {
    /// The token at node 0, no mutant, no limits.
    pub fn new(graph: &'g EvolvingGraph, workload: Workload) -> Self {
        Setup { graph, workload, token: NodeId(0), mutant: None, until: None, entries: None }
    }

    pub(super) fn check(&self) -> Result<(), SetupError> {
        let nodes = self.graph.nodes();
        let named = self.workload.requests.iter().map(|&(_, node)| node).chain([self.token]);
        if let Some(node) = named.into_iter().find(|node| node.0 >= nodes) {
            return Err(SetupError::UnknownNode { node: node.0, nodes });
        }
        if self.workload.hold == 0 {
            return Err(SetupError::NoHold);
        }
        let latest = self.workload.requests.iter().map(|&(at, _)| at).chain(self.until).max();
        if latest.is_some_and(|latest| latest > MAX_INSTANT) {
            return Err(SetupError::TooLate);
        }
        if self.workload.hold.max(self.workload.pause) > MAX_STAY {
            return Err(SetupError::TooLong);
        }
        let is_bounded = self.until.is_some() || self.entries.is_some();
        if self.graph.cycle().is_some() && self.workload.rounds.is_none() && !is_bounded {
            return Err(SetupError::Endless);
        }
        if self.most_entries() > MAX_ENTRIES {
            return Err(SetupError::TooManyEntries);
        }
        Ok(())
    }

    /// No run has more entries than this.
    fn most_entries(&self) -> u64 {
        let asked = self
            .workload
            .rounds
            .map(|rounds| u64::from(rounds).saturating_mul(self.workload.requests.len() as u64));
        // One is inside at a time.
        let end = self.graph.cycle().is_none().then(|| self.graph.last());
        let stays = self.until.into_iter().chain(end).min();
        let stays = stays.map(|last| last / self.workload.hold + 1);
        [asked, stays, self.entries].into_iter().flatten().min().unwrap_or(u64::MAX)
    }
}

/// Why there is no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// No such algorithm, or no such mutant of it.
    #[error("there is no algorithm '{0}' for evolving graphs")]
    UnknownAlgorithm(String),
    /// No such mutant of the algorithm.
    #[error("there is no mutant '{mutant}' of {algorithm}")]
    UnknownMutant {
        /// The algorithm.
        algorithm: String,
        /// The mutant.
        mutant: String,
    },
    /// A node that the graph does not have.
    #[error("there is no node {node}: the graph has {nodes} nodes")]
    UnknownNode {
        /// The node.
        node: u32,
        /// How many there are.
        nodes: u32,
    },
    /// Nobody would be inside.
    #[error("a node that enters must stay inside for at least one instant")]
    NoHold,
    /// An instant that is no instant of any graph.
    #[error("instants beyond {MAX_INSTANT} are too late; count time in larger instants")]
    TooLate,
    /// Inside, or between two requests, for longer than a number holds.
    #[error("nobody can stay inside, or pause, for more than {MAX_STAY} instants")]
    TooLong,
    /// They would not fit into memory.
    #[error("the run could have more than {MAX_ENTRIES} entries; say after how many it ends")]
    TooManyEntries,
    /// The run would not end.
    #[error(
        "the graph goes on for ever, and so do the requests; say how long to run, or how often each asks"
    )]
    Endless,
}
