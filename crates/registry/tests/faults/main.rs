//! What the embedded registry stands: cuts, crashes, lost disks, directories of others.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod cuts;
mod directory;
mod kill;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../suite/mod.rs"]
mod suite;
#[path = "../support/mod.rs"]
mod support;
mod voters;
mod writers;
