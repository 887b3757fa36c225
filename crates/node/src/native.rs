//! The native interface: clients of other processes, over catraca's own protocol.

mod outbox;
mod permission;
pub(crate) mod quota;
mod server;

pub(crate) use outbox::{Outbox, message};
pub(crate) use server::Server;
#[cfg(test)]
pub(crate) use server::{
    IDLE_TIME, MESSAGE_TIME, MOST_LISTS, MOST_UNDER_WAY, MOST_UNREAD, MOST_UNREAD_BYTES,
};
