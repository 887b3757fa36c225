//! The boundary that every algorithm of Catraca is written against.
//!
//! An algorithm is a plain value. A driver owns it, hands it one [`Input`] at a time and takes the
//! [`Effects`] away; one call is one atomic step. The same value is driven by a simulator, by an
//! exhaustive checker and by a daemon on a real network, so nothing in this crate, and nothing in
//! an algorithm, knows a clock, a socket, a thread or a source of randomness. The crate builds
//! without `std`, which makes the compiler enforce most of that.
//!
//! What to read first: [`Algorithm`], then [`Input`] and [`Effect`].
//!
//! ```
//! use catraca_core::{
//!     Algorithm, Bounds, Claim, Effect, Effects, Fence, Input, Message, NodeId, Start,
//! };
//! use serde::{Deserialize, Serialize};
//!
//! /// A lock for a group of one: it never has to ask anybody.
//! #[derive(Clone, Debug, PartialEq, Eq, Hash)]
//! struct Alone {
//!     entries: u64,
//! }
//!
//! #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
//! enum Never {}
//!
//! impl Message for Never {
//!     const KINDS: &'static [&'static str] = &[];
//!     fn kind(&self) -> usize {
//!         match *self {}
//!     }
//!     fn is_possible(&self, _bounds: Bounds) -> bool {
//!         match *self {}
//!     }
//! }
//!
//! impl Algorithm for Alone {
//!     type Message = Never;
//!     type Config = ();
//!
//!     fn new(_me: NodeId, _config: &(), _start: &Start) -> Self {
//!         Alone { entries: 0 }
//!     }
//!     fn on_request(&mut self, _config: &(), _claim: Claim, out: &mut Effects<Never>) {
//!         self.entries += 1;
//!         out.granted(Fence(self.entries));
//!     }
//!     fn on_release(&mut self, _config: &(), _out: &mut Effects<Never>) {}
//!     fn on_message(&mut self, _: &(), _from: NodeId, message: Never, _: &mut Effects<Never>) {
//!         match message {}
//!     }
//! }
//!
//! let mut node = Alone::new(NodeId(0), &(), &Start::idle());
//! let mut out = Effects::new();
//! node.step(&(), Input::Request(Claim::single()), &mut out);
//! assert_eq!(out.as_slice(), [Effect::Granted(Fence(1))]);
//! ```
#![no_std]

extern crate alloc;

mod algorithm;
mod bounds;
mod claim;
mod clock;
mod effects;
mod id;
mod input;
mod node_set;
pub mod property;
mod start;
mod variables;

pub use algorithm::{Algorithm, Envelope, Message, Snapshot};
pub use bounds::Bounds;
pub use claim::{Claim, ResourceId};
pub use clock::{LogicalClock, Stamp};
pub use effects::{Effect, Effects};
pub use id::{Fence, NodeId, TimerTag};
pub use input::{Input, Phase};
pub use node_set::{NodeSet, NodeSetError};
pub use start::Start;
pub use variables::{Value, Variable, Variables};
