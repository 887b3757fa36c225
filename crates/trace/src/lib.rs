//! What happened in a run, step by step.
//!
//! Simulator and checker both write traces; [`replay()`] runs one again on fresh nodes and says where
//! it differs, and diagrams are drawn from them. A trace is a text file of JSON lines: a
//! [`Header`] that describes the group, then one [`Event`] a line.
//!
//! ```
//! use catraca_algorithms::Spec;
//! use catraca_core::{Algorithm, Claim, Effects, Input, NodeId};
//! use catraca_trace::{Event, Header, Origin, Recorder, Trace, replay};
//!
//! let spec = Spec::new("ricart-agrawala", 1);
//! let mut recorder = Recorder::new();
//! let alone = catraca_topology::Members { nodes: 1 };
//! let mut node = catraca_algorithms::RicartAgrawala::new(NodeId(0), &alone, &spec.start);
//!
//! let input = Input::Request(Claim::single());
//! let mut out = Effects::new();
//! node.step(&alone, input.clone(), &mut out);
//! let step = recorder.step(0, NodeId(0), &input, None, out.as_slice());
//! assert_eq!(step.to_string(), "node 0 asks: enters with fence 1");
//!
//! let header = Header::new(Origin::Check, spec, 1);
//! let trace = Trace { header, events: vec![Event::Step(step)] };
//! assert_eq!(replay(&trace)?.difference, None);
//! # Ok::<(), catraca_trace::TraceError>(())
//! ```

mod file;
mod follow;
mod instant;
mod kind;
mod monitor;
mod record;
mod replay;
mod syntax;
mod words;

pub use file::{Header, Origin, Trace, TraceError, VERSION, Writer};
pub use follow::{Observer, follow};
pub use instant::{Instant, instant_at, pointers_at};
pub use kind::{KIND_NUMBERS, kind_number, kind_numbers};
pub use record::{Event, Outcome, Payload, Recorder, SendId, Step};
pub use replay::{Difference, Replay, replay};
pub use syntax::{ClaimError, StartError, parse_claim, parse_start};
