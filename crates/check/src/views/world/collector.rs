//! A driver that writes down what a member asks for.

use std::sync::Arc;
use std::time::Duration;

use catraca_group::{Driver, PeerMessage, Run, StepMessage, Time, Timer, View};

/// Writes down what one step asks for.
pub(super) struct Collector {
    pub(super) now: Time,
    pub(super) valid_until: Time,
    pub(super) view: Option<Arc<View>>,
    /// Messages as bytes, with the names of their receivers.
    pub(super) sent: Vec<(String, Vec<u8>)>,
    /// Timers that are set, or else cancelled.
    pub(super) timers: Vec<(Timer, Option<Time>)>,
    /// Whether a message could not be written as bytes.
    pub(super) unwritten: bool,
}

impl Collector {
    pub(super) fn post(&mut self, name: String, message: &PeerMessage<'_>) {
        match postcard::to_stdvec(message) {
            Ok(bytes) => self.sent.push((name, bytes)),
            Err(_) => self.unwritten = true,
        }
    }

    /// The name of the member at this place of the view.
    pub(super) fn name(&self, place: usize) -> String {
        let member = self.view.as_ref().and_then(|view| view.members.get(place));
        member.map_or_else(String::new, |member| member.name.clone())
    }
}

impl Driver for Collector {
    fn now(&mut self) -> Time {
        self.now
    }

    fn send(&mut self, member: usize, message: StepMessage<'_>) {
        let name = self.name(member);
        self.post(name, &PeerMessage::Step(message));
    }

    fn set_timer(&mut self, timer: Timer, after: Option<Duration>) {
        self.timers.push((timer, after.map(|after| self.now + after)));
    }

    fn is_valid_at(&mut self, now: Time) -> bool {
        now < self.valid_until
    }

    fn set_validity(&mut self, until: Time) {
        self.valid_until = until;
    }

    fn begin_view(&mut self, view: &Arc<View>, _: &[Run]) {
        self.view = Some(Arc::clone(view));
    }
}
