//! Every command and code block of the documents, run as printed, against real parts.
//!
//! A document is read from top to bottom in one shell, in an empty folder, as by somebody who follows it:
//! what one block makes the next one finds. What a session shows below a command is what the command
//! has to say. How blocks are told what they are is at the top of `block.rs`; a block of which
//! nobody can say what it is fails the test of its document.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]
#![allow(clippy::print_stdout, reason = "it says what was not run")]

mod block;
mod commands;
mod compare;
mod document;
mod examples;
mod followed;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../support/left_out.rs"]
mod left_out;
mod map;
mod mentioned;
mod session;
