//! A process that is to run, and what is done to it.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

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

    /// Sends a signal to it and to all that it has started, if it runs.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let Some(id) = self.id() else { return Ok(()) };
        match kill_process_group(id, signal) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing that is waited for takes nearly so long.
    const GENEROUS: Duration = Duration::from_secs(60);

    fn started(line: &str) -> Process {
        let mut process = Process::new("test".to_string(), PathBuf::from("/dev/null"));
        assert_eq!(process.look().unwrap(), Seen::Due);
        process.start(shell(line)).unwrap();
        process
    }

    fn shell(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    }

    /// What is seen next.
    fn next(process: &mut Process) -> Seen {
        let begin = Instant::now();
        loop {
            match process.look().unwrap() {
                Seen::Nothing => assert!(begin.elapsed() < GENEROUS),
                seen => return seen,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn has_ended(process: &mut Process) {
        let begin = Instant::now();
        while process.is_running() {
            assert_eq!(process.look().unwrap(), Seen::Nothing);
            assert!(begin.elapsed() < GENEROUS);
        }
    }

    #[test]
    fn a_process_that_ends_by_itself_is_told_of_and_started_again() {
        let mut process = started("exit 7");
        assert_eq!(next(&mut process), Seen::EndedByItself("exit status: 7".to_string()));
        assert_eq!(next(&mut process), Seen::Due);
    }

    #[test]
    fn a_process_that_was_killed_is_started_again_when_it_is_wanted_and_not_before() {
        let mut process = started("sleep 1000");
        assert!(process.memory().unwrap() > 0);
        process.end(Signal::KILL).unwrap();
        has_ended(&mut process);
        assert_eq!(process.look().unwrap(), Seen::Nothing);
        process.want();
        assert_eq!(process.look().unwrap(), Seen::Due);
    }

    #[test]
    fn a_process_that_is_wanted_again_before_it_has_ended_is_started_after_its_end() {
        let mut process = started("trap 'exit 0' TERM; read line");
        process.end(Signal::STOP).unwrap();
        process.want();
        assert_eq!(process.look().unwrap(), Seen::Nothing);
        process.signal(Signal::KILL).unwrap();
        assert_eq!(next(&mut process), Seen::Due);
    }

    #[test]
    fn what_a_process_has_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("id");
        let mut process =
            started(&format!("sleep 1000 & echo $! > {file}; wait", file = file.display()));
        let begin = Instant::now();
        let id = loop {
            let id = std::fs::read_to_string(&file).unwrap_or_default();
            if id.ends_with('\n') {
                break id.trim().to_string();
            }
            assert!(begin.elapsed() < GENEROUS);
        };
        process.end(Signal::KILL).unwrap();
        has_ended(&mut process);
        // Nobody may have waited for it yet.
        let runs = || {
            let status = std::fs::read_to_string(format!("/proc/{id}/status"));
            status.is_ok_and(|status| !status.contains("State:\tZ"))
        };
        while runs() {
            assert!(begin.elapsed() < GENEROUS);
        }
    }

    #[test]
    fn a_process_comes_to_its_end_when_its_input_does() {
        let mut process = started("read line; exit 0");
        process.finish();
        has_ended(&mut process);
        assert_eq!(process.look().unwrap(), Seen::Nothing);
    }
}
