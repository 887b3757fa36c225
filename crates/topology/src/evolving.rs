//! Evolving graphs: who meets whom, and when.
//!
//! A network of people, buses or satellites is a sequence of graphs G0, G1, ... over the same nodes,
//! one for every instant. An [`EvolvingGraph`] holds it as contacts with their times. It is finite,
//! or it is a prefix followed by a cycle that repeats for ever, which is what makes 'for ever' a
//! question with an answer.
//!
//! A journey is a path over time: hops at instants that never decrease. Several hops may be made in
//! one instant, so within an instant everybody of a connected component reaches everybody. The
//! definition of S1, section 2.1, takes hop i from the graph G_i; what is meant, and what is done
//! here, is the graph at the instant t_i of the hop.
//!
//! - [`EvolvingGraph`], [`Contact`]: the graph.
//! - [`Reader`], [`Import`], [`Format`], [`write()`]: files in several formats, with their times and what
//!   was passed over.
//! - [`generate`]: graphs to experiment with.
//! - [`Journeys`]: foremost, shortest and fastest journeys.
//! - [`Reachability`]: all pairs at once.
//! - [`Conditions`]: the conditions C1 to C4 of S1, and the round trip that corrects C1.

pub mod generate;

mod conditions;
mod fastest;
mod graph;
mod journey;
mod reach;
mod read;
mod sweep;
mod write;

pub use conditions::{
    BrokenTrip, Conclusion, Conditions, Question, Reason, Truth, Verdict, Witness,
};
pub use graph::{Contact, EvolvingGraph, GraphError, MAX_CONTACTS, MAX_GRAPH_NODES, MAX_INSTANT};
pub use journey::{Arrivals, Hop, Journey, Journeys};
pub use reach::{Farthest, Reachability};
pub use read::{
    Clock, Format, FormatError, Import, LineError, LineFault, Moment, Origin, OriginError, Reader,
    Resolution, ResolutionError, Skipped,
};
pub use write::{WriteError, write};
