//! The native interface: clients of other processes, over catraca's own protocol.

mod outbox;
mod permission;
pub(crate) mod quota;
mod server;

pub(crate) use outbox::{Outbox, message};
#[cfg(test)]
pub(crate) use server::MOST_UNREAD;
pub(crate) use server::Server;
