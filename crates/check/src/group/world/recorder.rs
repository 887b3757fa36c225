//! A driver that writes down what a member asks for.

use std::time::Duration;

use catraca_core::Fence;
use catraca_group::{Change, Driver, Event, Owner, PeerMessage, StepMessage, Time, Timer};

/// Writes down what one step asks for. Time stands still.
#[derive(Debug, Default)]
pub(in crate::group) struct Recorder {
    /// Messages as bytes, with their receivers.
    pub(super) sent: Vec<(usize, Vec<u8>)>,
    /// Timers that are set, or else cancelled.
    pub(super) timers: Vec<(Timer, bool)>,
    /// Who was let into which lock, and with which fence.
    pub(super) let_in: Vec<(String, Owner, Fence)>,
    /// Whether a message could not be written as bytes.
    pub(super) unwritten: bool,
}

impl Recorder {
    pub(super) fn post(&mut self, member: usize, message: &PeerMessage<'_>) {
        match postcard::to_stdvec(message) {
            Ok(bytes) => self.sent.push((member, bytes)),
            Err(_) => self.unwritten = true,
        }
    }
}

impl Driver for Recorder {
    fn now(&mut self) -> Time {
        Time(0)
    }

    fn send(&mut self, member: usize, message: StepMessage<'_>) {
        self.post(member, &PeerMessage::Step(message));
    }

    fn set_timer(&mut self, timer: Timer, after: Option<Duration>) {
        self.timers.push((timer, after.is_some()));
    }

    fn is_watched(&self) -> bool {
        true
    }

    fn event(&mut self, event: Event<'_>) {
        if let Change::Granted(fence) = event.change {
            self.let_in.push((event.key.name.to_string(), event.owner, fence));
        }
    }
}
