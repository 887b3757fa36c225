//! The daemon: a group of nodes that grants named locks to programs, scripts and jobs.
//!
//! A [`Node`] is a member of a group. What a member decides is in `catraca-group`, which the
//! simulator and the checker run too; this crate drives it: it has the clock, the connections and the
//! tasks. A program starts a node within itself and asks it for locks; nothing lies between the two
//! but a short mutex. Programs of other processes use `catraca-client`.
//!
//! What to read first: `node.rs`, `program.rs` (asking for a lock), `engine.rs` (how the member is
//! driven), `link.rs` (a channel that loses and repeats nothing), `native/` (clients of other
//! processes).
mod acceptor;
mod access;
mod audit;
mod calendar;
mod changes;
mod config;
mod dialer;
mod engine;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod gateway;
mod git;
mod http;
#[cfg(test)]
mod limits;
mod link;
mod metrics;
mod mutex;
mod native;
mod node;
mod observing;
mod outgoing;
mod patience;
mod port;
mod program;
mod registry;
mod repeats;
mod resp;
mod secret;
mod socket;
#[cfg(test)]
mod testing;
mod timers;
mod tls;
mod transport;
mod wire;

pub use access::{LONGEST_TOKEN_NAME, MOST_TOKENS, Role, TokenEntry, TokenError, TokenFile};
pub use calendar::{rfc3339, unix_millis_of};
pub use catraca_algorithms::hi_adsd;
pub use catraca_client::tls::TlsError;
pub use catraca_group::{
    Class, DetectorStatus, LONGEST_NAME, Line, LineKey, LinkStatus, LockName, MOST_HANDOVERS,
    MOST_MEMBERS, MOST_NAMES, MOST_PERMITS, MOST_RESOURCES, MOST_SETS, Member, MemberStatus,
    NameError, Namespace, NamespaceStatus, Page, PastView, Query, Readiness, Refusal,
    RegistryStatus, Selection, Status, Time, Turns, Wait,
};
pub use catraca_registry::embedded::voters;
pub use catraca_registry::{Memory, Registry};
pub use config::{
    AuditConfig, CLUSTER_ALGORITHM, Config, ConfigError, DEFAULT_ALGORITHM, Fold, GIT_TURNS,
    GitConfig, HttpConfig, LEASE_RANGE, Policy, RepositoryConfig, RepositorySettings, RespConfig,
    SecurityConfig, StealRole, TlsFiles, WebhookConfig,
};
pub use node::{FastStop, Node, ReloadError, StartError};
pub use program::{Acquire, Guard, Request};
pub use registry::recover_alone;
pub use registry::{RegistryError, RegistryPlace};
pub use socket::SocketError;
