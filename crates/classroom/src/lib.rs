//! S3's system: one coordinator, processes that ask it over TCP, and two files that show what
//! happened.
//!
//! The paper describes messages of ten bytes, a log and a result file; a program written from it
//! works with this one. Behind the socket is the `coordinator` algorithm, the same code that the
//! simulator runs and the checker explores. What the paper leaves out is decided here:
//!
//! - A client that hangs up while it waits leaves the queue; one that hangs up inside releases.
//! - A message that is malformed, or that its sender may not send now, is answered by closing the
//!   connection; the log says why. A client that is closed inside releases.
//! - An id belongs to one connection at a time; the second one that uses it is closed.
//! - A message may come in pieces, but not for ever; clients, their unread grants and the processes
//!   that are counted one by one have limits ([`Limits`], [`COUNTED`]).
//!
//! What to read first: [`Message`], then [`CoordinatorState`], which is all of it without a socket; then
//! [`Server`], [`Process`], [`verify()`] and [`Experiment`].
//!
//! ```
//! use catraca_classroom::{CoordinatorState, Kind, Message};
//!
//! let mut state = CoordinatorState::new(2);
//! let (first, second) = (state.connect().unwrap(), state.connect().unwrap());
//! let request = Message::parse(b"1|76|89820")?;
//! assert!(state.receive(first, &request)?.is_some(), "76 may enter");
//! assert!(state.receive(second, &Message::parse(b"1|13|90201")?)?.is_none(), "13 waits");
//! let disconnection = state.disconnect(first);
//! assert_eq!(disconnection.next.unwrap().id.to_string(), "13");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod connections;
mod coordinator;
mod experiment;
mod log;
mod message;
mod server;
mod stamp;
mod terminal;
mod verify;

pub use client::{Entry, NoEntry, Process, ProcessError};
pub use connections::{Connections, QueueSnapshot};
pub use coordinator::{COUNTED, CoordinatorState, Disconnection, Grant, Refusal, Served};
pub use experiment::{Experiment, ExperimentError, LOG, RESULT};
pub use log::{Event, Line, Log, NoLine};
pub use message::{Frame, IdError, Kind, LENGTH, Malformed, Message, ProcessId};
pub use server::{BindError, Ended, Limits, Server, listen};
pub use stamp::{NoStamp, Stamp};
pub use terminal::{InputEnd, answer_terminal, may_read};
pub use verify::{Account, Defect, Expected, Share, verify};
