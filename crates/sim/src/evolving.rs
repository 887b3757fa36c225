//! Relabelling systems on evolving graphs.
//!
//! A run goes from instant to instant. At each, releases and requests come first; then the
//! nodes of every connected component join what they have gathered, apply their rules, join again
//! and apply them once more (S1's strong progression). An instant at which no contact begins and nobody
//! asks or leaves changes nothing, so it is passed over; any other costs time in proportion to its
//! contacts.
//!
//! ```
//! use catraca_core::NodeId;
//! use catraca_sim::evolving::{Setup, Workload, run};
//! use catraca_topology::evolving::{Contact, EvolvingGraph};
//!
//! // Three nodes; 0 meets 2 at instant 1 and 1 at instant 5. Only 0 asks.
//! let contacts = vec![Contact::at(1, 0, 2), Contact::at(5, 0, 1)];
//! let graph = EvolvingGraph::numbered(3, contacts, 5, None)?;
//! let setup = Setup::new(&graph, Workload::once(vec![NodeId(0)], 0));
//! let report = run("evolving-ricart-agrawala", &setup)?;
//! assert_eq!(report.served[0].entered, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod components;
mod engine;
mod labels;
pub mod propositions;
mod report;
mod setup;
mod snapshot;
mod timeline;

pub use engine::{Hooks, run, run_observed};
pub use report::{End, Report, Served, Waiting};
pub use setup::{MAX_ENTRIES, MAX_STAY, Setup, SetupError, Workload};
pub use snapshot::{NodeView, Snapshot};

use catraca_topology::evolving::generate::Draw;

use crate::Random;

impl Draw for Random {
    fn below(&mut self, limit: u64) -> u64 {
        Random::below(self, limit)
    }

    fn fraction(&mut self) -> f64 {
        Random::fraction(self)
    }
}
