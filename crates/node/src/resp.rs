//! The Redis protocol: own commands, and those that lock libraries send, on locks of the group.
//!
//! What to read first: `server.rs` (connections), `client.rs` (what a command does), `keys.rs` (what Redis
//! does with keys, done with locks), `script.rs` (scripts of libraries, which are recognised and not run).

mod bound;
mod client;
mod command;
mod evaluation;
mod failure;
mod frame;
pub(crate) mod fuzzing;
mod keys;
mod reply;
mod script;
mod server;
mod watch;

pub(crate) use client::Shared;
pub(crate) use server::Serving;
