//! Topologies: the shapes that algorithms run on.
//!
//! - [`Members`]: everybody talks to everybody.
//! - [`Tree`]: Raymond's static tree (balanced binary, star, chain, or given).
//! - [`Clusters`]: sets of nodes, each with a proxy.
//! - [`Hypercube`]: the clusters of Hi-ADSD, the trees of STA.
//! - [`Quorums`]: Maekawa's sets, any two of which intersect (grid, finite projective plane).
//! - [`evolving`]: graphs that change over time, journeys in them, and what they allow.
//!
//! Shapes are values without behaviour. They are built once, checked while they are
//! built, and shared by all nodes of a group.
//!
//! ```
//! use catraca_core::NodeId;
//! use catraca_topology::Quorums;
//!
//! let plane = Quorums::plane(13)?;
//! assert_eq!(plane.of(NodeId(0)).len(), 4);
//! assert!(Quorums::plane(12).is_err());
//! # Ok::<(), catraca_topology::QuorumError>(())
//! ```
#![no_std]

extern crate alloc;

pub mod evolving;

mod cluster;
mod field;
mod hypercube;
mod members;
mod quorum;
mod tree;

pub use cluster::{ClusterError, ClusterShape, Clusters, Proxies};
pub use hypercube::Hypercube;
pub use members::Members;
pub use quorum::{QuorumError, QuorumKind, Quorums};
pub use tree::{Tree, TreeError, TreeShape};
