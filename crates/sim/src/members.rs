//! Whole members in simulated time: sessions, queues of clients, hand-overs.
//!
//! The simulator's other engine runs an algorithm alone, with one requester a node. This one runs what
//! the daemon runs, [`WholeMember`](catraca_group::WholeMember)s, with clients that open sessions, wait
//! as long as they please, hold, release and come back. Messages are bytes, as on a real link. A judge
//! watches what the clients see and nothing else.
//!
//! ```
//! use catraca_sim::members::{Hooks, Setup, run};
//!
//! let setup = Setup { clients: 8, rounds: Some(5), ..Setup::new("naimi-trehel", 3) };
//! let report = run(&setup, Hooks::default())?;
//! assert_eq!(report.entries, 40);
//! assert!(report.violation.is_none());
//! # Ok::<(), catraca_sim::members::SetupError>(())
//! ```

mod clients;
mod driver;
mod engine;
mod faults;
mod flaw;
mod judge;
mod random;
mod report;
mod sessions;
mod setup;

pub use engine::{Hooks, Observer, run};
pub use flaw::{FLAWS, Flaw, FlawError};
pub use random::random_scenario;
pub use report::Report;
pub use setup::{Setup, SetupError, Waiting};
