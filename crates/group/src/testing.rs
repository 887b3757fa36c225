//! A driver that writes down what it is asked for, for tests.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use catraca_core::NodeId;

use crate::driver::{Change, Driver, Event, StepMessage, Timer};
use crate::view::Epoch;
use crate::{Key, Time};

/// A message that was sent, with everything that it borrowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) member: usize,
    pub(crate) epoch: Epoch,
    pub(crate) name: String,
    pub(crate) permits: u32,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) body: Vec<u8>,
}

impl Sent {
    pub(crate) fn message(&self) -> StepMessage<'_> {
        let Sent { epoch, from, to, .. } = *self;
        let key = Key { name: &self.name, permits: self.permits };
        StepMessage { epoch, key, from, to, body: &self.body }
    }
}

/// Writes everything down.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) now: Time,
    pub(crate) sent: Vec<Sent>,
    pub(crate) timers: BTreeMap<Timer, Option<Duration>>,
    /// How many more locks there is room for; no limit if nothing.
    pub(crate) room: Option<usize>,
    /// The lease of the member is over.
    pub(crate) is_lapsed: bool,
    pub(crate) events: Option<Vec<(String, Change)>>,
}

impl Driver for Recorder {
    fn now(&mut self) -> Time {
        self.now
    }

    fn send(&mut self, member: usize, message: StepMessage<'_>) {
        let StepMessage { epoch, key, from, to, body } = message;
        let (name, permits, body) = (key.name.to_string(), key.permits, body.to_vec());
        self.sent.push(Sent { member, epoch, name, permits, from, to, body });
    }

    fn set_timer(&mut self, timer: Timer, after: Option<Duration>) {
        self.timers.insert(timer, after);
    }

    fn is_valid_at(&mut self, _now: Time) -> bool {
        !self.is_lapsed
    }

    fn take_room(&mut self) -> bool {
        match &mut self.room {
            None => true,
            Some(0) => false,
            Some(room) => {
                *room -= 1;
                true
            }
        }
    }

    fn give_room(&mut self, locks: usize) {
        self.room = self.room.map(|room| room + locks);
    }

    fn is_watched(&self) -> bool {
        self.events.is_some()
    }

    fn event(&mut self, event: Event<'_>) {
        if let Some(events) = &mut self.events {
            events.push((event.key.name.to_string(), event.change));
        }
    }
}
