//! Everything that reads bytes from outside, as plain functions that take any bytes.
//!
//! `cargo xtask test` and `cargo xtask soak` give them inputs that nobody has thought of, and so do the targets
//! for cargo-fuzz in `fuzz/`. They must not panic, and what was read must be what was written.

use catraca_client::frame::{self, LONGEST_FRAME};
use catraca_client::handshake::{Greeting, Hello};
use catraca_client::protocol::{ClientMessage, ServerMessage};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::frame::Frame;
use crate::transport::Introduction;

/// Something that reads bytes.
pub struct Target {
    /// What it reads; a folder of `fuzz/corpus` has this name.
    pub name: &'static str,
    /// Reads them, whatever they are.
    pub read: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "frame", read: frames },
    Target { name: "resp", read: commands },
    Target { name: "http", read: bodies },
    Target { name: "config", read: config },
];

/// Frames of clients, nodes and members, one after the other.
pub fn frames(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((body, after))) = frame::split(rest, LONGEST_FRAME) {
        read_again::<Hello>(body);
        read_again::<Greeting>(body);
        read_again::<ClientMessage>(body);
        read_again::<ServerMessage>(body);
        read_again::<Introduction>(body);
        read_again::<Frame<'_>>(body);
        rest = after;
    }
}

/// A body that can be read says the same once it was written and read again.
fn read_again<'a, T: Deserialize<'a> + Serialize>(body: &'a [u8]) {
    let Ok(message) = frame::read::<T>(body) else { return };
    let written = frame::encode(&message).unwrap_or_default();
    // The shortest form of a number is the one that is written; others are read too.
    assert!(written.len() <= body.len(), "what was read is written longer");
}

/// Commands of the RESP port, one after the other.
pub fn commands(bytes: &[u8]) {
    crate::resp::fuzzing::commands(bytes);
}

/// The body of an HTTP request.
pub fn bodies(bytes: &[u8]) {
    crate::http::fuzzing::bodies(bytes);
}

/// A file that describes a group.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for name in [None, Some("a")] {
        if let Ok(config) = Config::from_shared_toml(text, name) {
            // A file can describe a group that cannot be; that is told apart here.
            let _ = config.check();
        }
    }
}
