//! Timers that have been set, and when they run out.
//!
//! Whoever owns a state sets and cancels its timers, and [claims](Timers::claim) them, under the
//! mutex of that state. So a timer that a step has cancelled never reaches a later one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use catraca_client::clock;
use catraca_group::Time;
use tokio::sync::Notify;

use crate::mutex::{Held, hold};

/// Timers, each known by its place.
pub(crate) struct Timers<P> {
    set: Mutex<Set<P>>,
    /// The next timer has changed.
    changed: Notify,
}

struct Set<P> {
    by_time: BTreeSet<(Time, P)>,
    by_place: BTreeMap<P, Time>,
}

impl<P: Ord + Copy> Timers<P> {
    pub(crate) fn new() -> Self {
        let set = Set { by_time: BTreeSet::new(), by_place: BTreeMap::new() };
        Timers { set: Mutex::new(set), changed: Notify::new() }
    }

    fn set(&self) -> Held<'_, Set<P>> {
        hold(&self.set)
    }

    /// Sets a timer anew, or cancels it where there is no duration.
    pub(crate) fn change(&self, place: P, after: Option<Duration>) {
        let mut set = self.set();
        let first = set.by_time.first().copied();
        if let Some(before) = set.by_place.remove(&place) {
            set.by_time.remove(&(before, place));
        }
        if let Some(after) = after {
            let at = clock::now() + after;
            set.by_place.insert(place, at);
            set.by_time.insert((at, place));
        }
        let is_sooner = set.by_time.first().is_some_and(|now| first.is_none_or(|old| *now < old));
        drop(set);
        if is_sooner {
            self.changed.notify_one();
        }
    }

    /// Waits until a timer has run out. It stays set until it is claimed.
    pub(crate) async fn next(&self) -> P {
        loop {
            let first = self.set().by_time.first().copied();
            match first {
                Some((at, place)) if at <= clock::now() => return place,
                Some((at, _)) => {
                    tokio::select! {
                        () = clock::sleep_until(at) => {}
                        () = self.changed.notified() => {}
                    }
                }
                None => self.changed.notified().await,
            }
        }
    }

    /// Takes a timer that has run out; false if it was cancelled or set anew meanwhile.
    pub(crate) fn claim(&self, place: P) -> bool {
        let mut set = self.set();
        match set.by_place.get(&place) {
            Some(&at) if at <= clock::now() => {
                set.by_place.remove(&place);
                set.by_time.remove(&(at, place))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Option<Duration> = Some(Duration::from_millis(1));
    const LATE: Option<Duration> = Some(Duration::from_secs(3600));

    #[tokio::test]
    async fn timers_run_out_in_order_and_once() {
        let timers = Timers::new();
        timers.change('b', Some(Duration::from_millis(2)));
        timers.change('a', SOON);
        timers.change('c', LATE);
        for place in ['a', 'b'] {
            assert_eq!(timers.next().await, place);
            assert!(timers.claim(place) && !timers.claim(place));
        }
        assert!(!timers.claim('c'), "it has not run out");
    }

    #[tokio::test]
    async fn a_timer_that_is_cancelled_or_set_anew_after_it_ran_out_is_not_claimed() {
        for change in [None, LATE] {
            let timers = Timers::new();
            timers.change('a', SOON);
            assert_eq!(timers.next().await, 'a');
            timers.change('a', change);
            assert!(!timers.claim('a'));
        }
    }
}
