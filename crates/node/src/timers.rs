//! The timers that algorithms have set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::host::TimerPlace;

#[derive(Default)]
struct Set {
    by_time: BTreeSet<(Instant, TimerPlace)>,
    by_place: BTreeMap<TimerPlace, Instant>,
}

/// All timers of one node.
pub(crate) struct Timers {
    set: Mutex<Set>,
    /// The next timer has changed.
    changed: Notify,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Timers { set: Mutex::new(Set::default()), changed: Notify::new() }
    }

    /// Sets a timer anew, or cancels it where there is no duration.
    pub(crate) fn change(&self, place: TimerPlace, after: Option<Duration>) {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = set.by_place.remove(&place) {
            set.by_time.remove(&(before, place));
        }
        if let Some(after) = after {
            let at = Instant::now() + after;
            set.by_place.insert(place, at);
            set.by_time.insert((at, place));
        }
        drop(set);
        self.changed.notify_one();
    }

    /// Waits for the next timer, and takes it.
    pub(crate) async fn next(&self) -> TimerPlace {
        loop {
            let first = {
                let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
                let first = set.by_time.first().copied();
                if let Some((at, place)) = first
                    && at <= Instant::now()
                {
                    set.by_time.pop_first();
                    set.by_place.remove(&place);
                    return place;
                }
                first.map(|(at, _)| at)
            };
            match first {
                Some(at) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(at.into()) => {}
                        () = self.changed.notified() => {}
                    }
                }
                None => self.changed.notified().await,
            }
        }
    }
}
