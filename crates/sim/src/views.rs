//! Whole groups that change, in simulated time: members, their registry, their clients, and everything
//! that can go wrong between them.
//!
//! Members crash, restart, pause and leave; links are cut in one direction or both; the registry answers
//! late, not at all, or carries transactions out long after anybody waits for them; clocks run at
//! different rates. That is the first phase. Then everything heals, and everybody has to be served. A
//! judge watches what clients see and nothing else: who is inside and may believe so, in true time, and
//! whether fences grow.
//!
//! ```
//! use catraca_sim::views::{Setup, run};
//!
//! let report = run(&Setup::new("naimi-trehel", 3), 1);
//! assert!(report.violation.is_none());
//! ```

mod clients;
mod clock;
mod durable;
mod engine;
mod faults;
mod judge;
mod registry;
mod setup;
mod sites;
mod timed;

pub use engine::{Report, run, run_watched};
pub use setup::{Drift, Setup, Strike};
