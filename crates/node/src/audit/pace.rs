//! How often one and the same is written: whoever asks without an end must not wash the log away.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::mutex::hold;

/// For so long is counted.
const SPELL: Duration = Duration::from_secs(60);
/// With so many known, those are forgotten whose time is over.
const MANY: usize = 1024;

/// What is done with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Write {
        /// So many were left out before it.
        left_out: u64,
    },
    /// It is written, and those after it are not.
    WriteLast,
    LeaveOut,
}

/// How often records of each identity were written lately.
pub(crate) struct Paces {
    /// So many are written in a window.
    most: u64,
    known: Mutex<HashMap<Option<String>, Window>>,
}

struct Window {
    since: Instant,
    count: u64,
}

impl Paces {
    pub(super) fn new(most: u64) -> Self {
        Paces { most, known: Mutex::default() }
    }

    /// One more record, of `identity` or of somebody who has none.
    pub(crate) fn go_on(&self, identity: Option<&str>) -> Pace {
        self.go_on_at(identity, Instant::now())
    }

    fn go_on_at(&self, identity: Option<&str>, now: Instant) -> Pace {
        let mut known = hold(&self.known);
        let is_over = |window: &Window| now.duration_since(window.since) >= SPELL;
        if known.len() >= MANY {
            known.retain(|_, window| !is_over(window));
        }
        let begun = Window { since: now, count: 0 };
        let window = known.entry(identity.map(String::from)).or_insert(begun);
        let left_out = match is_over(window) {
            true => {
                let left_out = window.count.saturating_sub(self.most);
                *window = Window { since: now, count: 0 };
                left_out
            }
            false => 0,
        };
        window.count += 1;
        match window.count {
            count if count < self.most || left_out > 0 => Pace::Write { left_out },
            count if count == self.most => Pace::WriteLast,
            _ => Pace::LeaveOut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_too_often_is_written_again_a_minute_later_with_how_often_it_came() {
        let (paces, now) = (Paces::new(3), Instant::now());
        let go_on = |who, at| paces.go_on_at(who, now + Duration::from_secs(at));
        let write = Pace::Write { left_out: 0 };
        let first: Vec<Pace> = (0..6).map(|at| go_on(Some("eve"), at)).collect();
        let out = Pace::LeaveOut;
        assert_eq!(first, [write, write, Pace::WriteLast, out, out, out]);
        assert_eq!(go_on(None, 6), write, "others are not meant");
        assert_eq!(go_on(Some("eve"), 59), out);
        assert_eq!(go_on(Some("eve"), 60), Pace::Write { left_out: 4 });
        assert_eq!(go_on(Some("eve"), 61), write);
    }

    #[test]
    fn those_who_have_not_come_for_a_minute_are_forgotten() {
        let (paces, now) = (Paces::new(1), Instant::now());
        for place in 0..10 * MANY as u64 {
            let at = now + Duration::from_secs(place);
            assert_eq!(paces.go_on_at(Some(&place.to_string()), at), Pace::WriteLast);
        }
        assert!(hold(&paces.known).len() <= MANY);
    }
}
