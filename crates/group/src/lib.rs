//! A member of a lock group as a plain value.
//!
//! Everything that one member decides is here, and nothing that a real machine adds to it: no
//! sockets, no threads, no clock, no randomness. The crate builds without `std`, which makes the
//! compiler enforce most of that. A driver brings inputs one at a time and carries out what follows.
//! The daemon is one driver, the simulator another, the checker a third: they run the same member.
//!
//! A member has two parts. Its locks are in [`Shard`]s, which can be stepped side by side: a lock
//! whose token is here is granted by stepping one shard. Everything else, sessions, requests for
//! several locks, patience, other members, is in its [`Service`].
//!
//! What to read first: `lock.rs` (the queue in front of one lock), `shard.rs` (what happens when an
//! input comes), `service.rs`, `member.rs` (both together).
#![no_std]
extern crate alloc;

mod anatomy;
mod blocks;
mod detector;
mod driver;
mod durable;
mod fence;
mod force;
mod histogram;
mod kind;
mod listing;
mod lock;
mod member;
mod membership;
mod name;
mod question;
mod recent;
mod refusal;
pub mod registry;
mod request;
mod returning;
mod service;
mod session;
mod shard;
mod status;
mod survey;
#[cfg(test)]
mod testing;
mod time;
mod timed;
mod turns;
mod view;
mod wait;

pub use ahash::RandomState;
pub use anatomy::{Anatomy, Instance, Layout, Links, Picture, ShownNode};
pub use detector::USUAL as USUAL_DETECTOR;
pub use driver::{
    Change, Client, Driver, Ending, Event, LockIndex, Outcome, Outputs, Place, SeatTimer, Settled,
    StepMessage, Timer,
};
pub use durable::{
    AcquireDurable, Adopted, DurableHold, DurablePart, HoldId, LONGEST_NOTE, LONGEST_OWNER, Target,
    Transfer, Unlock,
};
pub use fence::{MOST_HANDOVERS, unpack as unpack_fence};
pub use force::{Force, Order};
pub use histogram::{Histogram, Times};
pub use listing::{DurableLine, Line, LineKey, MOST_LINES, Page, PageBuilder, Query, Selection};
#[doc(hidden)]
pub use lock::mutants::{MUTANTS, Mutant};
pub use lock::{MOST_WAITERS, Owner, Stand, Ticket};
pub use member::{Input, WholeMember};
pub use membership::{
    Beat, Cause, Directive, Entry, Lease, Leaving, Membership, Past, Roster, Run, Settings,
    ViewMessage, ViewRecord,
};
#[doc(hidden)]
pub use membership::{VIEW_MUTANTS, ViewMutant};
pub use name::{LONGEST_NAME, LockName, NameError};
pub use question::{Answer, PeerMessage, Question};
pub use recent::PastGrant;
pub use refusal::{Class, Refusal};
pub use request::{Acquire, Hold, MOST_NAMES, Origin, RequestId};
pub use returning::Returning;
pub use service::{Behalf, Health, Host, MOST_FORCED, Notice, Output, Service, USUAL_IDLE_NAMES};
pub use session::{
    BYTES_OF_A_NAME, MOST_NAME_BYTES, MOST_REQUESTS, MOST_REQUESTS_IN_ALL, MOST_SESSIONS, Over,
    SessionId, TTL_RANGE, Who,
};
pub use shard::{Ask, Asked, Counts, Held, HeldLock, Key, Progress, Shard};
pub use status::{
    DetectorStatus, LinkStatus, MemberStatus, NamespaceStatus, NodeState, PastView, Readiness,
    RegistryStatus, Status, Tally,
};
pub use survey::{LongQueue, MOST_OLD, OldHold, Survey};
pub use time::Time;
pub use timed::{
    AcquireTimed, LONGEST_TOKEN, MOST_QUESTIONS, Operation, Renewal, TIMED_TTL_RANGE, TimedCopy,
    TimedHold, Which,
};
pub use turns::Turns;
pub use view::{
    Epoch, MOST_MEMBERS, MOST_PERMITS, MOST_RESOURCES, MOST_SETS, Member, Namespace, View, fits,
};
pub use wait::Wait;
