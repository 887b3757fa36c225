//! A run before it starts: everything that determines it.

use catraca_algorithms::Spec;
use catraca_topology::Clusters;

use crate::faults::Faults;
use crate::network::Network;
use crate::time::Time;
use crate::workload::Workload;

/// When a run ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// After so many entries, the warm-up not counted.
    pub entries: Option<u64>,
    /// At this time.
    pub time: Option<Time>,
}

/// Everything that determines a run: the same setup gives the same run, on every machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The group.
    pub spec: Spec,
    /// The clusters of the network and of the workload.
    pub clusters: Option<Clusters>,
    /// Who asks when.
    pub workload: Workload,
    /// How messages travel.
    pub network: Network,
    /// What goes wrong.
    pub faults: Faults,
    /// How long after a crash the others suspect the node; never, if not given.
    pub detector: Option<Time>,
    /// The seed of the generator.
    pub seed: u64,
    /// When the run ends.
    pub limits: Limits,
    /// Entries that do not count.
    pub warmup: u64,
    /// How often a request may be overtaken; without bound, if not given.
    pub max_bypass: Option<u32>,
    /// How many events the run may take before it gives up.
    pub most_events: u64,
}

/// How many events a run may take that does not say it: about a minute of a run.
pub const MOST_EVENTS: u64 = 1_000_000_000;
