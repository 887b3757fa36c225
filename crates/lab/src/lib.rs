//! The laboratory: experiments as data.
//!
//! An experiment is a scenario file with one more table, `[experiment]`. It says what is varied,
//! which figures become a table, which charts are drawn and what a paper claims of them. The runs
//! decide each claim again; a recorded verdict that they contradict is reported.
//!
//! The key decision: whatever a file says is checked before anything runs, so an experiment that
//! begins also ends with its tables and pictures.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use catraca_lab::{Verdict, read_file};
//!
//! let text = r#"
//!     algorithm = "ricart-agrawala"
//!     [workload]
//!     arrivals = "serial"
//!     [experiment]
//!     title = "Ricart-Agrawala asks everybody"
//!     paper = "S2"
//!     question = "How many messages does an entry take?"
//!     columns = ["messages_per_entry"]
//!     formulas = ["2(N - 1)"]
//!     [experiment.vary]
//!     nodes = [4, 8]
//!     [[experiment.claim]]
//!     section = "8.3.2"
//!     says = "2(N-1) messages"
//!     figure = "messages_per_entry"
//!     is = "2(N - 1)"
//!     verdict = "holds"
//!     why = "A request to and a reply from every other node."
//! "#;
//! let experiment = read_file("asks.toml".as_ref(), text)?;
//! let results = experiment.measure(2, &AtomicBool::new(false), |_| {})?.expect("nobody stops it");
//! assert_eq!(experiment.table(&results).words(), [["4", "6", "6"], ["8", "14", "14"]]);
//! assert_eq!(experiment.findings(&results)[0].found, Some(Verdict::Holds));
//! # Ok::<(), catraca_lab::LabError>(())
//! ```

mod catalogue;
mod chart;
mod claim;
mod error;
mod experiment;
mod fields;
mod figure;
mod formula;
mod page;
mod reference;
mod results;
mod table;
mod timeline;
mod vary;

pub use catalogue::{FILES, all, find, names, read_file};
pub use catraca_sim::{Estimate, short};
pub use chart::ChartPlan;
pub use claim::{Claim, Finding, Verdict};
pub use error::LabError;
pub use experiment::{Experiment, MOST_SEEDS, Run};
pub use figure::{FIGURES, Figure, Named};
pub use formula::{FORMULAS, Formula};
pub use page::page;
pub use reference::{REFERENCES, Reference};
pub use results::{Drawn, Measured, Results};
pub use table::{Column, Table, TableRow, csv_line};
pub use vary::{Dimension, Selection};
