//! Distributed mutual exclusion: one algorithm a file, found by name.
//!
//! Every algorithm implements [`Algorithm`](catraca_core::Algorithm) and is registered in
//! [`registry`]. Each file starts with a header of five parts (idea, source, assumptions, cost,
//! departures from the paper), then come the messages, the state, the handlers in the order of the
//! paper, and tests.
//!
//! A [`Spec`] says which algorithm to run on how many nodes. Drivers are generic: they hand a
//! [`Visitor`] to [`Spec::visit`], which calls it with the concrete type, so nothing is dynamic
//! inside a run.
//!
//! ```
//! use catraca_algorithms::{Spec, Visitor};
//! use catraca_core::{Algorithm, Claim, Effects, Input, NodeId};
//!
//! /// Counts the messages of one request at node 1.
//! struct Ask<'a>(&'a Spec);
//!
//! impl Visitor for Ask<'_> {
//!     type Output = usize;
//!     fn visit<A: Algorithm>(self, config: A::Config) -> usize {
//!         let mut node = A::new(NodeId(1), &config, &self.0.start);
//!         let mut out = Effects::new();
//!         node.step(&config, Input::Request(Claim::single()), &mut out);
//!         out.as_slice().len()
//!     }
//! }
//!
//! let spec = Spec::new("ricart-agrawala", 5);
//! assert_eq!(spec.visit(Ask(&spec))?, 4);
//! # Ok::<(), catraca_algorithms::SpecError>(())
//! ```
#![no_std]

extern crate alloc;

pub mod hi_adsd;
pub mod mutants;
pub mod ordered;
pub mod registry;
pub mod relabelling;
mod spec;
pub mod sta;
#[cfg(test)]
mod testing;

mod bertier;
mod bouabdallah_laforest;
mod carvalho_roucairol;
mod coordinator;
mod lamport;
mod maekawa;
mod naimi_trehel;
mod raymond;
mod raymond_k;
mod ricart_agrawala;
mod robust_k;
mod singhal;
mod suzuki_kasami;

/// Each node waits once at most, so this is a node that asks again and again.
pub(crate) const TOO_MANY_WAIT: &str = "more requests came than there are nodes";

/// A driver's fault, said as an anomaly: a request at a node that waits or is inside.
pub(crate) const ASKS_TWICE: &str = "a node asks again before it has left";

pub use bertier::Bertier;
pub use bouabdallah_laforest::BouabdallahLaforest;
pub use carvalho_roucairol::CarvalhoRoucairol;
pub use coordinator::Coordinator;
pub use lamport::Lamport;
pub use maekawa::Maekawa;
pub use naimi_trehel::NaimiTrehel;
pub use raymond::Raymond;
pub use raymond_k::RaymondK;
pub use registry::{Channels, Entry, Family, Load, Range, Theory, Visitor};
pub use ricart_agrawala::RicartAgrawala;
pub use robust_k::RobustK;
pub use singhal::Singhal;
pub use spec::{MAX_RESOURCES, Spec, SpecError};
pub use suzuki_kasami::SuzukiKasami;
