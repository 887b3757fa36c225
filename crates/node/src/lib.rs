//! The daemon: a group of nodes that hands out named locks to programs, scripts and jobs.
//!
//! A [`Node`] is a member of a group. It runs the algorithms of `catraca-algorithms`, the very ones
//! that the simulator and the checker step, over TCP: one instance per name, created on first use on
//! every member. A program starts a node within itself and asks it for locks; nothing lies between
//! the two but a short mutex. Programs of other processes use a [`Client`].
//!
//! What to read first: `lock.rs` (the queue of one node in front of one lock), `shard.rs` (what
//! happens when an input comes), `link.rs` (a channel that loses and repeats nothing), `node.rs`.
mod client;
mod config;
mod desk;
mod detector;
mod fence;
mod frame;
mod handshake;
mod host;
mod inquiry;
mod kind;
#[cfg(test)]
mod limits;
mod link;
mod listing;
mod lock;
mod name;
mod node;
mod outgoing;
mod plan;
mod protocol;
mod request;
mod returning;
mod session;
mod shard;
mod timers;
mod told;
mod transport;

pub use catraca_algorithms::hi_adsd;
pub use client::{Client, ClientError, Event};
pub use config::{CLUSTER_ALGORITHM, Config, ConfigError, DEFAULT_ADDRESS, DEFAULT_ALGORITHM};
pub use name::{LONGEST_NAME, LockName, NameError};
pub use node::{Node, StartError};
pub use plan::{MOST_MEMBERS, MOST_PERMITS, MOST_RESOURCES, MOST_SETS, Member, Namespace};
pub use protocol::{
    Denial, DetectorStatus, Line, LinkStatus, Listing, MemberStatus, NamespaceStatus, Status, Wait,
    Who,
};
pub use request::{ANSWER_TIME, Acquire, Guard, LockError, MOST_NAMES, Request};
