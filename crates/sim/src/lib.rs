//! The deterministic simulator.
//!
//! A run is determined by its [`Setup`]: integer time, an event queue ordered by time and then by
//! insertion, one pinned generator. The same setup gives the same bytes on every machine. Monitors
//! watch every run; the first broken invariant ends it.
//!
//! The key decision: the simulator is generic over the algorithm and contains no dynamic call
//! inside its loop, so the very code that runs in production is stepped at tens of nanoseconds an
//! event.
//!
//! ```
//! use catraca_sim::{Hooks, Scenario, run};
//!
//! let scenario = Scenario::new()
//!     .with("algorithm", "ricart-agrawala")
//!     .with("nodes", 10)
//!     .with("workload.rounds", 3);
//! let report = run(&scenario.setup()?, Hooks::default())?;
//! assert_eq!(report.entries, 30);
//! assert_eq!(report.messages_per_entry, Some(18.0)); // 2(N-1)
//! assert!(report.violation.is_none());
//! # Ok::<(), catraca_sim::ScenarioError>(())
//! ```

pub mod evolving;
pub mod members;

mod claims;
mod compare;
mod concurrency;
mod digest;
mod distribution;
mod engine;
mod estimate;
mod faults;
mod locality;
mod marks;
mod metrics;
mod monitor;
mod network;
mod queue;
mod random;
mod recording;
mod report;
mod responses;
mod scenario;
mod setup;
mod theory;
mod time;
pub mod views;
mod waits;
mod workload;

pub use claims::{ClaimSize, ClaimSizeError, Claims, MAX_SKEW};
pub use compare::{Comparison, Job, LoadKind, Row, run_all};
pub use digest::Digest;
pub use distribution::{Distribution, DistributionError};
pub use engine::{Hooks, run, run_algorithm};
pub use estimate::{Estimate, short};
pub use faults::{Fault, FaultError, Faults};
pub use monitor::Violation;
pub use network::{Latency, Network, Order, OrderError};
pub use queue::EventQueue;
pub use random::Random;
pub use report::{End, Report};
pub use scenario::{
    EXPERIMENT, KEYS, Key, Own, ReadError, Scenario, ScenarioError, quoted, read_text, table,
};
pub use setup::{Limits, MOST_EVENTS, Setup};
pub use time::{MAX_UNITS, TICKS_PER_UNIT, Time, TimeError};
pub use workload::{Arrivals, Scheduled, Workload};
