//! S3's system.
mod desk;
mod hall;
mod log;
mod message;
mod server;
mod stamp;
mod terminal;
pub use desk::{COUNTED, Departure, Desk, Grant, Refusal, Served};
pub use hall::{Hall, Standing};
pub use log::{Event, Line, Log, NoLine};
pub use message::{Frame, IdError, Kind, LENGTH, Malformed, Message, ProcessId};
pub use server::{BindError, Ended, Limits, Server};
pub use stamp::{NoStamp, Stamp};
pub use terminal::{Silence, attend};
