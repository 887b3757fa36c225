//! A process that is to run, and what is done to it.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

/// One that ends by itself is started again after this time.
const RESTART: Duration = Duration::from_millis(500);

/// A process that is started again whenever it ends, unless it is not to run.
pub(crate) struct Process {
    pub(crate) name: String,
    /// Where its output goes, of all its runs.
    log: PathBuf,
    child: Option<Child>,
    is_wanted: bool,
    /// It was told to end, or killed.
    is_ending: bool,
    ended: Option<Instant>,
}

/// What was seen of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Nothing,
    /// It is to be started.
    Due,
    /// It ended although nobody told it to; how.
    EndedByItself(String),
}

impl Process {
    pub(crate) fn new(name: String, log: PathBuf) -> Self {
        Process { name, log, child: None, is_wanted: true, is_ending: false, ended: None }
    }

    /// Starts it.
    pub(crate) fn start(&mut self, mut command: Command) -> Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log);
        let log = log.with_context(|| format!("cannot write {}", self.log.display()))?;
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        // Ctrl-C at the terminal is for the run as a whole.
        command.process_group(0);
        let child = command.spawn().with_context(|| format!("{} cannot be started", self.name))?;
        (self.child, self.is_ending, self.ended) = (Some(child), false, None);
        Ok(())
    }

    /// Looks how it is doing.
    pub(crate) fn look(&mut self) -> Result<Seen> {
        let Some(child) = &mut self.child else {
            let is_due = self.ended.is_none_or(|ended| ended.elapsed() >= RESTART);
            return Ok(if self.is_wanted && is_due { Seen::Due } else { Seen::Nothing });
        };
        let Some(status) = child.try_wait()? else { return Ok(Seen::Nothing) };
        self.child = None;
        if self.is_ending {
            // It is started again as soon as it is wanted.
            return Ok(if self.is_wanted { Seen::Due } else { Seen::Nothing });
        }
        self.ended = Some(Instant::now());
        Ok(Seen::EndedByItself(status.to_string()))
    }

    /// It is to run from now on.
    pub(crate) fn want(&mut self) {
        self.is_wanted = true;
        self.ended = None;
    }

    /// Tells it to end, or ends it; it is not to run until further notice.
    pub(crate) fn end(&mut self, signal: Signal) -> Result<()> {
        self.is_wanted = false;
        self.is_ending = true;
        self.signal(signal)
    }

    /// Sends a signal, if it runs.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let Some(id) = self.id() else { return Ok(()) };
        match kill_process(id, signal) {
            // It has ended meanwhile.
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("{} takes no signal", self.name)),
        }
    }

    fn id(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.as_ref()?.id()).ok()?)
    }

    /// Closes its standard input, which tells it to come to its end.
    pub(crate) fn finish(&mut self) {
        (self.is_wanted, self.is_ending) = (false, true);
        if let Some(child) = &mut self.child {
            drop(child.stdin.take());
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// How much memory it has, in bytes.
    pub(crate) fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.as_ref()?.id()));
        let status = status.ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS"))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib * 1024)
    }
}
