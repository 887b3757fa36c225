//! Who asks when, and for how long.

use catraca_core::{Claim, NodeId, NodeSet};

use crate::claims::Claims;
use crate::distribution::Distribution;
use crate::time::Time;

/// When nodes ask.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// One node after the other, drawn uniformly: the next asks a pause after the last has left.
    /// At most one request is outstanding; with a pause that lets the network fall quiet this is
    /// the low load of the literature.
    Serial {
        /// From a release to the next request.
        pause: Distribution,
    },
    /// Every node asks, enters, leaves, thinks, and asks again. Without thinking this is the high
    /// load of the literature.
    Closed {
        /// From a release to the same node's next request, and from the start to the first.
        think: Distribution,
        /// How often each node enters; without limit if not given.
        rounds: Option<u32>,
        /// Who does so; all nodes, if not given.
        requesters: Option<NodeSet>,
    },
    /// Requests come as a Poisson process over the whole group, each at a node drawn uniformly. A
    /// node that is busy takes them up one after the other.
    Open {
        /// The mean time from one request to the next.
        interval: Time,
    },
    /// Every so often some nodes ask at once, drawn uniformly.
    Bursts {
        /// How many.
        size: u32,
        /// From one burst to the next.
        every: Time,
    },
    /// Exactly these requests.
    Schedule(Vec<Scheduled>),
}

/// A request that is to come.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduled {
    /// When.
    pub at: Time,
    /// Where.
    pub node: NodeId,
    /// For what; drawn like that of other requests, if not given.
    pub claim: Option<Claim>,
}

impl Arrivals {
    /// Whether requests keep coming whatever the nodes do: then the next one is always planned.
    pub fn keep_coming(&self) -> bool {
        matches!(self, Arrivals::Open { .. } | Arrivals::Bursts { .. })
    }

    /// Whether requests keep coming until the run is stopped.
    pub fn is_endless(&self) -> bool {
        !matches!(self, Arrivals::Closed { rounds: Some(_), .. } | Arrivals::Schedule(_))
    }
}

/// When nodes ask, for what, and how long they stay inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// When nodes ask.
    pub arrivals: Arrivals,
    /// How long they stay inside. Its mean is the E of the literature.
    pub hold: Distribution,
    /// What they ask for, where there is more than one resource.
    pub claims: Claims,
    /// The share of serial and open requests that come from the cluster of the request before.
    pub locality: Option<f64>,
}
