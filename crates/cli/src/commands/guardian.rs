//! `catraca guardian`: ends what runs under a lock when `catraca lock` cannot.
//!
//! `catraca lock` may be killed or stopped itself, and then gives no signs of life: the lock goes to
//! somebody else while the command runs on. So it starts this process beside the command and tells
//! it, over a pipe, how long the lock is certain. When that time is up, or the pipe breaks, the
//! guardian ends the command's process group. `catraca lock` may even end after it has started the
//! command and before it has said which group that is; then the guardian looks for its mark.

use std::fs::{self, DirEntry};
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgid};

use super::lock::Lease;
use crate::Outcome;

/// The variable by which a guardian knows its command: it holds the guardian's process number.
pub(crate) const MARK: &str = "CATRACA_GUARDIAN";

/// Ends a process group in time. For `catraca lock` only.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// What the guardian is told, one line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// The process group; from now on there is something to end.
    Group(i32),
    /// The lock is certain for so long: until the group is asked to end, and until it is ended.
    Certain(Duration, Duration),
    /// The command has ended.
    Done,
}

impl Word {
    fn read(line: &str) -> Option<Word> {
        let mut words = line.split(' ');
        let word = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        match word {
            "group" => Some(Word::Group(i32::try_from(number()?).ok()?)),
            "certain" => {
                let (soft, hard) = (number()?, number()?);
                Some(Word::Certain(Duration::from_millis(soft), Duration::from_millis(hard)))
            }
            "done" => Some(Word::Done),
            _ => None,
        }
    }
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
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
        watch(&words);
        Ok(())
    }
}

fn watch(words: &Receiver<Word>) {
    let mut group = None;
    // Until it is told, there is nothing that could be late.
    let (mut soft, mut hard) = (Instant::now() + Duration::from_secs(86_400), None);
    loop {
        match words.recv_timeout(soft.saturating_duration_since(Instant::now())) {
            Ok(Word::Group(number)) => group = Some(Pid::from_raw(number)),
            Ok(Word::Certain(first, second)) => {
                let now = Instant::now();
                (soft, hard) = (now + first, Some(now + second));
            }
            Ok(Word::Done) => return,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    // Before the first of these words there is no command.
    let Some(hard) = hard else { return };
    let Some(group) = group.or_else(|| search(hard)) else { return };
    // What is stopped cannot end in an orderly way unless it goes on.
    killpg(group, Signal::SIGTERM).ok();
    killpg(group, Signal::SIGCONT).ok();
    while Instant::now() < hard && killpg(group, None).is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
    killpg(group, Signal::SIGKILL).ok();
}

/// Looks for the group of the command, until nothing may run under the lock any more.
fn search(until: Instant) -> Option<Pid> {
    let mark = format!("{MARK}={}", std::process::id());
    loop {
        let found = marked(mark.as_bytes());
        if found.is_some() || Instant::now() >= until {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The group of a process with `mark` in its environment.
fn marked(mark: &[u8]) -> Option<Pid> {
    let is_marked = |process: &DirEntry| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == mark)
    };
    let found = fs::read_dir("/proc").ok()?.flatten().find(is_marked)?;
    let number: i32 = found.file_name().to_str()?.parse().ok()?;
    getpgid(Some(Pid::from_raw(number))).ok()
}

/// A running guardian, seen by `catraca lock`.
pub(crate) struct Guardian(Child);

impl Guardian {
    pub(crate) fn start() -> io::Result<Self> {
        // Its own file, even if that has been replaced or moved meanwhile.
        let linux = PathBuf::from("/proc/self/exe");
        let itself = if linux.exists() { linux } else { std::env::current_exe()? };
        let mut command = Command::new(itself);
        // Signals from the terminal are not for it.
        command.arg("guardian").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Guardian)
    }

    /// What the command's environment says of its guardian.
    pub(crate) fn mark(&self) -> (&'static str, String) {
        (MARK, self.0.id().to_string())
    }

    /// The command has been started, and is this group.
    pub(crate) fn guard(&mut self, group: i32) {
        self.tell(&format!("group {group}"));
    }

    pub(crate) fn renew(&mut self, lease: &Lease) {
        let now = Instant::now();
        let left = |until: Instant| until.saturating_duration_since(now).as_millis();
        // The warning is rounded up: `catraca lock` knows that the lock is lost before this one acts,
        // and does not take the signal for the command's own end.
        self.tell(&format!("certain {} {}", left(lease.warning()) + 1, left(lease.deadline())));
    }

    /// The command has ended.
    pub(crate) fn dismiss(mut self) {
        self.tell("done");
        drop(self.0.stdin.take());
        self.0.wait().ok();
    }

    fn tell(&mut self, line: &str) {
        if let Some(pipe) = &mut self.0.stdin {
            // If it was killed, `catraca lock` still ends the command itself.
            writeln!(pipe, "{line}").ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guardian_understands_what_it_is_told_and_nothing_else() {
        assert_eq!(Word::read("group 12"), Some(Word::Group(12)));
        let (soft, hard) = (Duration::from_millis(30), Duration::from_millis(50));
        assert_eq!(Word::read("certain 30 50"), Some(Word::Certain(soft, hard)));
        assert_eq!(Word::read("done"), Some(Word::Done));
        for line in ["", "group", "group x", "group 99999999999", "certain 1", "else"] {
            assert_eq!(Word::read(line), None, "{line}");
        }
    }
}
