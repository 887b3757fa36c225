//! Foresees who leaves a lock only to ask for it again.
//!
//! A program that works in a loop releases a lock and asks for it again less than a microsecond
//! later. To the group these are two messages, often to the same member. Sent one by one they are two
//! system calls and two segments, before which the next holder does not run if it shares the core. So
//! the release of somebody who is expected back waits for the request.

use core::time::Duration;

use crate::driver::LockIndex;
use crate::time::Time;

/// Whoever asks again within this time has come back at once. A message to another process takes
/// longer.
const AT_ONCE: Duration = Duration::from_micros(2);

/// What is known of the lock of a shard that was last given to another member.
#[derive(Clone, Copy, Debug, Default)]
pub struct Returning(Option<Leave>);

#[derive(Clone, Copy, Debug)]
struct Leave {
    lock: LockIndex,
    at: Time,
    /// Whether somebody of this node has asked for it again at once.
    is_back: bool,
}

impl Returning {
    /// Whether somebody will ask for `lock` again at once, if it is left now: it was so last time.
    pub fn is_expected(&self, lock: LockIndex) -> bool {
        self.0.is_some_and(|last| last.lock == lock && last.is_back)
    }

    /// Everything that comes of leaving `lock` is done.
    pub fn has_left(&mut self, lock: LockIndex, at: Time) {
        self.0 = Some(Leave { lock, at, is_back: false });
    }

    /// Somebody of this node asks for `lock` and has to wait.
    pub fn asks(&mut self, lock: LockIndex, at: Time) {
        if let Some(last) = self.0.as_mut().filter(|last| last.lock == lock) {
            last.is_back = at.since(last.at) <= AT_ONCE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: LockIndex = LockIndex(0);
    const B: LockIndex = LockIndex(1);

    #[test]
    fn who_came_back_at_once_is_expected_the_next_time_and_only_then() {
        let (start, mut returning) = (Time(1000), Returning::default());
        assert!(!returning.is_expected(A), "nobody has left yet");
        returning.has_left(A, start);
        assert!(!returning.is_expected(A), "nobody has come back yet");
        returning.asks(A, start + AT_ONCE);
        assert!(returning.is_expected(A) && !returning.is_expected(B));
        returning.has_left(A, start);
        assert!(!returning.is_expected(A), "this time nobody came");
    }

    #[test]
    fn who_takes_longer_is_not_expected() {
        let (start, mut returning) = (Time(1000), Returning::default());
        returning.has_left(A, start);
        returning.asks(A, start + AT_ONCE * 2);
        assert!(!returning.is_expected(A));
        returning.has_left(A, start);
        returning.asks(B, start);
        assert!(!returning.is_expected(A) && !returning.is_expected(B));
    }
}
