//! The processes that a benchmark has started, so that all of them end with it.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How often it is looked whether a process has ended.
const LOOK: Duration = Duration::from_millis(1);

/// Those that run, or nothing once no other may be started.
static RUNNING: Mutex<Option<Vec<Weak<Mutex<Child>>>>> = Mutex::new(Some(Vec::new()));

/// A process of the benchmark. It ends with this value.
pub(super) struct Started(Arc<Mutex<Child>>);

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A list of processes, and a process, are whole whatever has become of another thread.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Started {
    pub(super) fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut running = hold(&RUNNING);
        let Some(running) = running.as_mut() else {
            return Err(io::ErrorKind::Interrupted.into());
        };
        let child = Arc::new(Mutex::new(command.spawn()?));
        running.retain(|it| it.strong_count() > 0);
        running.push(Arc::downgrade(&child));
        Ok(Started(child))
    }

    /// The process, for as long as nobody else has to end it.
    pub(super) fn child(&self) -> MutexGuard<'_, Child> {
        hold(&self.0)
    }

    /// Waits for its end. Others may end it meanwhile.
    pub(super) fn wait(&self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.child().try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself.
        let mut child = self.child();
        child.kill().ok();
        child.wait().ok();
    }
}

/// Ends all of them, and lets nobody start another.
pub(super) fn end_all() {
    let running = hold(&RUNNING).take().unwrap_or_default();
    for child in running.iter().filter_map(Weak::upgrade) {
        // It may have ended by itself.
        hold(&child).kill().ok();
    }
}
