//! The command that runs under the lock, in a process group of its own.

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp, tcsetpgrp};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use super::ending::{Ending, has_terminal};
use crate::commands::guardian::Gate;

/// What has become of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It has ended.
    Ended(Ending),
    /// It was stopped by this signal.
    Stopped(Signal),
}

/// The running command and whatever it has started.
pub(crate) struct Child {
    group: Pid,
    changes: Stream,
    /// Whether the terminal was ours, and is the command's now.
    has_terminal: bool,
}

impl Child {
    /// Starts what becomes `command` when `gate` opens. If the terminal is ours, it gets that, at once
    /// or when it asks.
    pub(crate) fn start(
        gate: Gate,
        command: &[OsString],
        environment: &[(&str, String)],
    ) -> io::Result<Self> {
        // Before the command begins, so that no end is missed.
        let changes = signal(SignalKind::child())?;
        let environment = environment.iter().map(|(key, value)| (key, value));
        let child = gate.starter(command)?.envs(environment).spawn()?;
        let group = Pid::from_raw(child.id() as i32);
        let mut child = Child { group, changes, has_terminal: false };
        // In the middle of a pipeline others may want the terminal more, a pager for example.
        if io::stdout().is_terminal() {
            child.give_terminal();
        }
        Ok(child)
    }

    /// The number of its process group.
    pub(crate) fn group(&self) -> i32 {
        self.group.as_raw()
    }

    /// Signals the whole group.
    pub(crate) fn signal(&self, which: Signal) {
        // It may have ended in this moment.
        killpg(self.group, which).ok();
    }

    /// Waits for the next change. Nothing is lost if the future is dropped.
    pub(crate) async fn change(&mut self) -> Change {
        loop {
            let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED;
            match waitpid(self.group, Some(flags)) {
                Ok(WaitStatus::Exited(_, code)) => {
                    return Change::Ended(Ending::Code(code as u8));
                }
                Ok(WaitStatus::Signaled(_, which, _)) => {
                    return Change::Ended(Ending::of(which, self.has_terminal));
                }
                Ok(WaitStatus::Stopped(_, which)) => return Change::Stopped(which),
                // Somebody else has taken its status: nothing is known but that it has ended.
                Err(Errno::ECHILD) => return Change::Ended(Ending::Code(1)),
                _ => {}
            }
            self.changes.recv().await;
        }
    }

    /// The command was stopped. If it wanted the terminal, it gets it. If it was Ctrl-Z, we stop too,
    /// as the shell expects, until it lets us go on; the lock is not kept alive meanwhile.
    pub(crate) fn rest(&mut self, which: Signal) {
        if !self.has_terminal {
            if matches!(which, Signal::SIGTTIN | Signal::SIGTTOU) {
                self.give_terminal();
            }
            return;
        }
        self.take_terminal();
        nix::sys::signal::raise(Signal::SIGSTOP).ok();
        self.give_terminal();
        self.signal(Signal::SIGCONT);
    }

    fn give_terminal(&mut self) {
        if has_terminal() {
            self.has_terminal = set_foreground(self.group);
            // It may have been stopped for reading before the terminal was its own.
            self.signal(Signal::SIGCONT);
        }
    }

    fn take_terminal(&mut self) {
        if std::mem::take(&mut self.has_terminal) {
            set_foreground(getpgrp());
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.take_terminal();
    }
}

/// Makes `group` the one that the terminal belongs to.
fn set_foreground(group: Pid) -> bool {
    // Whoever is in the background is stopped for this, unless it blocks the signal.
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTTOU);
    stop.thread_block().ok();
    let done = tcsetpgrp(io::stdin(), group).is_ok();
    stop.thread_unblock().ok();
    done
}
