//! `catraca guardian`: starts what runs under a lock in time, and ends it in time, when `catraca lock`
//! cannot.
//!
//! `catraca lock` may be killed or stopped itself, and then renews nothing: the lock goes to somebody
//! else while the command runs on. So it starts this process beside the command and tells it, over a
//! pipe, until when the lock is certain. When that time is up, or the pipe breaks, the guardian ends
//! the command's process group.
//!
//! The command itself is started by a third process, `catraca guardian --start`, which becomes the
//! command. It is the head of the command's process group from the beginning, and waits at a gate, a
//! pipe from the guardian. The guardian opens the gate when it knows the group and the time is not
//! up; the starter looks at the clock once more and executes the command. Whichever of the three is
//! stopped or killed at whatever moment, either the command is not started or there is somebody who
//! knows its group and ends it.
//!
//! A guardian that is stopped guards nothing: `catraca lock` lets it go on at once. One that does not go on,
//! because a debugger or a container keeps it, is ended, and is replaced if the command still runs.

mod starter;

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use catraca_client::{Time, Validity, clock};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use self::starter::Starter;
use crate::Outcome;
use crate::service::ends_with;

/// The exit code of a guardian that has ended the command.
const ACTED: u8 = 1;
/// The clock is looked at so often: timers stand still while the machine sleeps.
const LOOK: Duration = Duration::from_millis(250);
/// A guardian that is told to end does so within this time, or is ended.
const FAREWELL: Duration = Duration::from_secs(2);
/// How often it is looked whether the group has ended.
const TICK: Duration = Duration::from_millis(20);

/// Ends a process group in time. For `catraca lock` only.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    starter: Starter,
}

/// What the guardian is told, one line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Until when the lock is certain: when the group is asked to end, and when it is ended. Times of
    /// a clock that all processes of the machine share.
    Lease { lost_at: Time, until: Time },
    /// The process group; from now on there is something to end.
    Group(i32),
    /// The command has ended.
    Done,
}

impl Word {
    fn read(line: &str) -> Option<Word> {
        let mut words = line.split(' ');
        let word = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        match word {
            "lease" => Some(Word::Lease { lost_at: Time(number()?), until: Time(number()?) }),
            "group" => Some(Word::Group(i32::try_from(number()?).ok()?)),
            "done" => Some(Word::Done),
            _ => None,
        }
    }
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        if let Some(started) = self.starter.run() {
            return started;
        }
        let (tell, words) = mpsc::channel();
        std::thread::spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if let Some(word) = Word::read(&line)
                    && tell.send(word).is_err()
                {
                    return;
                }
            }
        });
        ends_with(if watch(&words) { ACTED } else { 0 })
    }
}

/// Waits until the command has ended, or ends it. Returns whether it had to.
fn watch(words: &Receiver<Word>) -> bool {
    let mut group = None;
    let mut lease: Option<(Time, Time)> = None;
    let mut is_open = false;
    loop {
        let left = lease.map_or(LOOK, |(lost_at, _)| lost_at.since(clock::now()));
        match words.recv_timeout(left.min(LOOK)) {
            Ok(Word::Lease { lost_at, until }) => lease = Some((lost_at, until)),
            Ok(Word::Group(number)) => group = Some(Pid::from_raw(number)),
            Ok(Word::Done) => return false,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let Some((lost_at, _)) = lease else { continue };
        if lost_at <= clock::now() {
            break;
        }
        if group.is_some() && !is_open {
            say_at_gate(&lost_at.0.to_string());
            is_open = true;
        }
    }
    match group {
        Some(group) => end(group, lease.map_or(clock::now(), |(_, until)| until)),
        // The gate stays shut.
        None => say_at_gate(starter::LATE),
    }
    true
}

fn say_at_gate(line: &str) {
    let mut out = io::stdout().lock();
    // If nobody waits at the gate any more, there is nothing to start.
    writeln!(out, "{line}").and_then(|()| out.flush()).ok();
}

/// Asks the group to end, and ends it when nothing may run under the lock any more.
fn end(group: Pid, until: Time) {
    killpg(group, Signal::SIGTERM).ok();
    // What is stopped cannot end in an orderly way unless it goes on.
    killpg(group, Signal::SIGCONT).ok();
    while clock::now() < until && killpg(group, None).is_ok() {
        std::thread::sleep(TICK);
    }
    killpg(group, Signal::SIGKILL).ok();
}

/// Its own file, even if that has been replaced or moved meanwhile.
fn itself() -> io::Result<Command> {
    let linux = PathBuf::from("/proc/self/exe");
    let itself = if linux.exists() { linux } else { std::env::current_exe()? };
    let mut command = Command::new(itself);
    command.arg("guardian").process_group(0);
    Ok(command)
}

/// A running guardian, seen by `catraca lock`.
pub(crate) struct Guardian {
    process: Child,
    changes: Stream,
    /// How it has ended, if it is known to have.
    end: Option<End>,
}

/// How a guardian has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It has ended the command, or has not let it start.
    Acted,
    /// Somebody has ended it.
    Killed,
}

impl Guardian {
    /// Starts a guardian, and the gate that it opens.
    pub(crate) fn start(validity: &Validity) -> io::Result<(Self, Gate)> {
        let mut guardian = Self::spawn(Stdio::piped())?;
        guardian.renew(validity);
        let gate = guardian.process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((guardian, Gate(OwnedFd::from(gate))))
    }

    /// Starts one for a command that runs already.
    pub(crate) fn replace(validity: &Validity, group: i32) -> io::Result<Self> {
        let mut guardian = Self::spawn(Stdio::null())?;
        // The group first: whoever learns of a lease that is over must know what to end.
        guardian.guard(group);
        guardian.renew(validity);
        Ok(guardian)
    }

    fn spawn(gate: Stdio) -> io::Result<Self> {
        // Before it begins, so that no end is missed.
        let changes = signal(SignalKind::child())?;
        // Signals from the terminal are not for it: it is a process group of its own.
        let process = itself()?.stdin(Stdio::piped()).stdout(gate).stderr(Stdio::null()).spawn()?;
        if let Some(pipe) = &process.stdin {
            // Whoever reads it may never do so again.
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Guardian { process, changes, end: None })
    }

    /// The command, or what becomes it, is this group.
    pub(crate) fn guard(&mut self, group: i32) {
        self.tell(&format!("group {group}"));
    }

    pub(crate) fn renew(&mut self, validity: &Validity) {
        let (Time(lost_at), Time(until)) = (validity.lost_at, validity.until);
        self.tell(&format!("lease {lost_at} {until}"));
    }

    /// Waits until it has ended. Nothing is lost if the future is dropped.
    pub(crate) async fn ended(&mut self) -> End {
        loop {
            if let Some(end) = self.look() {
                return end;
            }
            self.changes.recv().await;
        }
    }

    /// How it has ended, if it has. If somebody has stopped it, it goes on.
    fn look(&mut self) -> Option<End> {
        let id = Pid::from_raw(self.process.id() as i32);
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED;
        while self.end.is_none() {
            match waitpid(id, Some(flags)) {
                Ok(WaitStatus::Stopped(..)) => {
                    kill(id, Signal::SIGCONT).ok();
                }
                // Somebody else has taken its status: nothing is known but that it has ended.
                Err(Errno::ECHILD) => self.end = Some(End::Killed),
                status => {
                    self.end = status.ok().and_then(how);
                    break;
                }
            }
        }
        self.end
    }

    /// The command has ended. Returns whether the guardian has ended it.
    pub(crate) async fn dismiss(mut self) -> bool {
        self.tell("done");
        drop(self.process.stdin.take());
        match tokio::time::timeout(FAREWELL, self.ended()).await {
            Ok(end) => end == End::Acted,
            Err(_) => {
                self.kill();
                false
            }
        }
    }

    fn tell(&mut self, line: &str) {
        let Some(pipe) = &mut self.process.stdin else { return };
        // So short a line is written as a whole, or not at all. If it was killed, its end tells.
        let written = pipe.write_all(format!("{line}\n").as_bytes());
        if written.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            // It has not read for very long: another one has to take over.
            self.kill();
        }
    }

    fn kill(&mut self) {
        // Once its end has been seen, its number may belong to somebody else.
        if self.end.is_none() {
            kill(Pid::from_raw(self.process.id() as i32), Signal::SIGKILL).ok();
        }
    }
}

/// How a process has ended, if it has.
fn how(status: WaitStatus) -> Option<End> {
    match status {
        WaitStatus::Exited(_, code) if code == i32::from(ACTED) => Some(End::Acted),
        WaitStatus::Exited(..) | WaitStatus::Signaled(..) => Some(End::Killed),
        _ => None,
    }
}

/// Where a command waits until its guardian lets it start.
pub(crate) struct Gate(OwnedFd);

impl Gate {
    /// A process that becomes `command` when the gate opens.
    pub(crate) fn starter(&self, command: &[std::ffi::OsString]) -> io::Result<Command> {
        // The starter takes it over by its number, and closes it.
        rustix::io::fcntl_setfd(&self.0, rustix::io::FdFlags::empty())?;
        let mut starter = itself()?;
        starter.args(["--start", &self.0.as_raw_fd().to_string(), "--"]).args(command);
        Ok(starter)
    }
}

/// The other end of a gate, by the number under which it was inherited.
fn opened(number: i32) -> io::Result<File> {
    let gate = File::open(format!("/dev/fd/{number}"))?;
    // The command must not inherit it.
    nix::unistd::close(number)?;
    Ok(gate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guardian_understands_what_it_is_told_and_nothing_else() {
        let lease = Word::Lease { lost_at: Time(30), until: Time(50) };
        assert_eq!(Word::read("lease 30 50"), Some(lease));
        assert_eq!(Word::read("group 12"), Some(Word::Group(12)));
        assert_eq!(Word::read("done"), Some(Word::Done));
        for line in ["", "group", "group x", "group 99999999999", "lease 1", "else"] {
            assert_eq!(Word::read(line), None, "{line}");
        }
    }

    #[test]
    fn a_guardian_that_has_acted_is_told_from_one_that_was_killed() {
        let id = Pid::from_raw(7);
        assert_eq!(how(WaitStatus::Exited(id, i32::from(ACTED))), Some(End::Acted));
        for code in [0, 101] {
            assert_eq!(how(WaitStatus::Exited(id, code)), Some(End::Killed));
        }
        let killed = WaitStatus::Signaled(id, Signal::SIGKILL, false);
        assert_eq!(how(killed), Some(End::Killed));
        for status in [WaitStatus::StillAlive, WaitStatus::Continued(id)] {
            assert_eq!(how(status), None);
        }
    }
}
