//! Mutexes whose state can be trusted.
//!
//! A panic while a state is being changed leaves it half changed: the next step could carry out what
//! another lock asked for. No lock at all is better than one that two hold. So such a panic ends the
//! process, and the group notices.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex that is held.
pub(crate) struct Held<'a, T> {
    guard: MutexGuard<'a, T>,
    /// Whether this thread was unwinding already when it took the mutex.
    was_panicking: bool,
}

/// Waits for a mutex.
#[inline]
pub(crate) fn hold<T>(mutex: &Mutex<T>) -> Held<'_, T> {
    // It is never poisoned: whoever panics with it ends the process.
    let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
    Held { guard, was_panicking: std::thread::panicking() }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() && !self.was_panicking {
            end();
        }
    }
}

#[cold]
fn end() {
    tracing::error!("a step has failed half-way; this process ends, so that no lock is held twice");
    std::process::abort();
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Mutex;

    use super::*;

    /// Set for the process that this test starts of itself.
    const CHILD: &str = "CATRACA_TEST_PANIC";

    #[test]
    fn a_panic_with_a_state_in_hand_ends_the_process_and_one_beside_it_does_not() {
        let state = Mutex::new(0);
        if std::env::var_os(CHILD).is_some() {
            std::thread::scope(|scope| {
                let panics = || {
                    let _held = hold(&state);
                    panic!("half-way");
                };
                scope.spawn(panics).join().ok();
            });
            // Never reached.
            std::process::exit(0);
        }
        std::thread::scope(|scope| {
            let beside = || {
                struct Late<'a>(&'a Mutex<i32>);
                impl Drop for Late<'_> {
                    fn drop(&mut self) {
                        *hold(self.0) += 1;
                    }
                }
                let _late = Late(&state);
                panic!("not in a step");
            };
            assert!(scope.spawn(beside).join().is_err());
        });
        assert_eq!(*hold(&state), 1);
        let itself = std::env::current_exe().unwrap();
        let name = "mutex::tests::a_panic_with_a_state_in_hand_ends_the_process_and_one_beside_it_does_not";
        let child = Command::new(itself).args([name, "--exact"]).env(CHILD, "1").output().unwrap();
        assert!(!child.status.success(), "{child:?}");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.status), Some(6));
    }
}
