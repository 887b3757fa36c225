//! Locks of a Catraca group for programs of other processes.
//!
//! A [`Client`] has a session at a node of the group, and keeps it: a task in the background renews
//! its lease and goes on over a new connection when one breaks. What it is granted is a [`Guard`],
//! which says when it is lost. Dropping the guard releases the locks.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use catraca_client::{Client, ClientError, Refusal};
//!
//! # async fn deploy(fence: u64) {}
//! # async fn example() -> Result<(), ClientError> {
//! let client = Client::builder()
//!     .addresses(["10.0.0.1:7800", "10.0.0.2:7800"])
//!     .ttl(Duration::from_secs(20))
//!     .connect()
//!     .await?;
//!
//! let guard = client.lock("deploy").within(Duration::from_secs(60)).await?;
//! tokio::select! {
//!     () = deploy(guard.fence()) => guard.release().await?,
//!     why = guard.lost() => eprintln!("stopped: {why}"),
//! }
//!
//! match client.try_lock("nightly").await {
//!     Ok(guard) => println!("fence {}", guard.fence()),
//!     Err(ClientError::Refused(Refusal::Taken)) => println!("somebody else does it"),
//!     Err(error) => return Err(error),
//! }
//! let both = client.lock_all(["db/orders", "db/stock"]).await?;
//! let place = client.semaphore("downloads", 3).await?;
//! drop((both, place));
//! client.close().await
//! # }
//! ```
//!
//! # How certain a lock is
//!
//! A node gives the locks of a session to others when it was not renewed for its time to live. The
//! client counts that time from when it *sent* the last renewal that the node has answered, so it
//! knows before the node does; and it takes off what clocks may differ. The result is
//! [`Guard::valid_until`]. When only a third of that time is left, [`Guard::lost`] says so: there is
//! time to stop. A process that was stopped itself, or ran on a machine that slept, sees by
//! [`Guard::is_valid`] that its time is up; the [clock] goes on meanwhile. What must be safe even if
//! the process is stopped between that look and the action checks the fence where the action takes
//! place.
//!
//! # Layers
//!
//! [`Client`] and [`Guard`] are handles of a task, which steps a plain value, the session, by what
//! comes. [`Connection`] is what they are made of: messages of the [`protocol`], in [frames](frame),
//! after a [`handshake`].

mod acquire;
mod client;
pub mod clock;
mod connection;
mod credentials;
mod driver;
mod durable;
mod error;
pub mod frame;
mod guard;
pub mod handshake;
mod lease;
mod link;
mod listing;
mod nodes;
mod opening;
mod place;
pub mod protocol;
mod request;
mod session;
pub mod stream;
pub mod system;
pub mod tls;

pub use acquire::Acquire;
pub use catraca_group::{
    AcquireDurable, Class, DetectorStatus, DurableHold, DurableLine, HoldId, Line, LineKey,
    LinkStatus, LockName, Member, MemberStatus, NameError, Namespace, NamespaceStatus, Page,
    PastView, Query, Readiness, Refusal, RegistryStatus, Selection, SessionId, Status, Target,
    Time, Unlock, Wait, Who,
};
pub use client::{Builder, Client, DEFAULT_ADDRESS};
pub use connection::Connection;
pub use credentials::Credentials;
pub use durable::{lock_durable, unlock};
pub use error::ClientError;
pub use guard::{Guard, Loss, Validity};
pub use listing::Pages;
pub use nodes::Nodes;
pub use place::{socket, usual_sockets};
