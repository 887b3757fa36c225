//! S3's system.
mod desk;
mod log;
mod message;
mod stamp;
pub use desk::{COUNTED, Departure, Desk, Grant, Refusal, Served};
pub use log::{Event, Line, Log, NoLine};
pub use message::{Frame, IdError, Kind, LENGTH, Malformed, Message, ProcessId};
pub use stamp::{NoStamp, Stamp};
