//! S3's experiment: a coordinator and its processes as real processes of the system, and the check
//! of what they leave behind.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{Account, Defect, Expected, ProcessId, verify};

/// S3's name for the coordinator's log.
pub const LOG: &str = "coordenador_log.txt";

/// S3's name for the result file.
pub const RESULT: &str = "resultado.txt";

/// How often the processes are looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Beyond twice the ideal total, an experiment may take so long.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The program that has the commands `coordinator` and `process`.
    pub program: PathBuf,
    /// Their names.
    pub processes: Vec<ProcessId>,
    /// How often each enters.
    pub rounds: u32,
    /// How long each stays inside.
    pub hold: Duration,
}

impl Experiment {
    /// The time that all stays take if nothing comes between them.
    pub fn ideal(&self) -> Duration {
        let stays = u32::try_from(self.processes.len()).unwrap_or(u32::MAX);
        self.hold.saturating_mul(stays.saturating_mul(self.rounds))
    }

    /// Runs it with its two files in `folder`, then checks them. However it ends, no process is
    /// left behind.
    pub fn run(&self, folder: &Path, interrupted: &AtomicBool) -> Result<Account, ExperimentError> {
        let (log, result) = (folder.join(LOG), folder.join(RESULT));
        let mut coordinator = Running::coordinator(self.command("coordinator"), &log)?;
        let address = coordinator.address()?;
        let mut processes = Vec::new();
        for id in &self.processes {
            processes.push(self.process(id, &address, &result)?);
        }
        self.watch(&mut coordinator, processes, interrupted)?;
        coordinator.quit()?;
        let read = |path: &Path| fs::read_to_string(path).map_err(ExperimentError::Files);
        let expected =
            Expected { processes: self.processes.clone(), rounds: self.rounds, hold: self.hold };
        Ok(verify(&read(&log)?, &read(&result)?, &expected)?)
    }

    /// Ctrl-C reaches a whole group of processes. Ours are apart from it, so that they end when
    /// this one says so.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(name).process_group(0).stderr(Stdio::piped());
        command
    }

    fn process(&self, id: &ProcessId, to: &str, result: &Path) -> Result<Running, ExperimentError> {
        let mut command = self.command("process");
        command.args(["--connect", to, "--id", &id.to_string()]);
        command.args(["--rounds", &self.rounds.to_string()]);
        command.args(["--hold", &format!("{}us", self.hold.as_micros())]);
        command.arg("--result").arg(result).stdin(Stdio::null()).stdout(Stdio::null());
        Running::start(format!("process {id}"), command)
    }

    /// Waits until every process has come to a good end.
    fn watch(
        &self,
        coordinator: &mut Running,
        mut processes: Vec<Running>,
        interrupted: &AtomicBool,
    ) -> Result<(), ExperimentError> {
        let (begin, limit) = (Instant::now(), self.ideal().saturating_mul(2) + TIME_LIMIT);
        while !processes.is_empty() {
            if interrupted.load(Ordering::Relaxed) {
                return Err(ExperimentError::Interrupted);
            }
            if begin.elapsed() > limit {
                return Err(ExperimentError::TooLong(limit));
            }
            // First: without it, the processes fail because of it.
            if coordinator.has_ended()? {
                return Err(coordinator.failed("ended too soon"));
            }
            let mut remaining = Vec::new();
            for mut process in processes {
                if !process.has_ended()? {
                    remaining.push(process);
                }
            }
            processes = remaining;
            sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

/// A process of ours. It does not outlive this value.
struct Running {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Running {
    fn start(name: String, mut command: Command) -> Result<Self, ExperimentError> {
        match command.spawn() {
            Ok(mut child) => Ok(Running { name, stdin: child.stdin.take(), child }),
            Err(error) => Err(ExperimentError::Failed { name, why: error.kind().to_string() }),
        }
    }

    /// It ends with its input, thus also if we end without being able to say anything.
    fn coordinator(mut command: Command, log: &Path) -> Result<Self, ExperimentError> {
        command.args(["--listen", "127.0.0.1:0", "--until-input-ends", "--log"]).arg(log);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Running::start("the coordinator".to_string(), command)
    }

    /// Where the coordinator says that it listens.
    fn address(&mut self) -> Result<String, ExperimentError> {
        let mut line = String::new();
        if let Some(stdout) = self.child.stdout.take() {
            BufReader::new(stdout.take(1024))
                .read_line(&mut line)
                .map_err(ExperimentError::Files)?;
        }
        match line.strip_prefix("listening at ").and_then(|rest| rest.split_once(',')) {
            Some((address, _)) => Ok(address.to_string()),
            None => Err(self.failed("does not say where it listens")),
        }
    }

    /// Whether it has ended, and if so, well.
    fn has_ended(&mut self) -> Result<bool, ExperimentError> {
        match self.child.try_wait() {
            Ok(None) => Ok(false),
            Ok(Some(status)) if status.success() => Ok(true),
            Ok(Some(status)) => Err(self.failed(&status.to_string())),
            Err(error) => Err(self.failed(&error.kind().to_string())),
        }
    }

    fn quit(mut self) -> Result<(), ExperimentError> {
        // If it does not listen any more, it has ended, and its exit says how.
        if let Some(mut stdin) = self.stdin.take() {
            stdin.write_all(b"quit\n").ok();
        }
        let begin = Instant::now();
        while !self.has_ended()? {
            if begin.elapsed() > TIME_LIMIT {
                return Err(self.failed("does not quit"));
            }
            sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// What it said itself, or else `why`.
    fn failed(&mut self, why: &str) -> ExperimentError {
        self.end();
        let mut said = String::new();
        if let Some(stderr) = self.child.stderr.take() {
            // What is not text is not worth printing.
            stderr.take(1024).read_to_string(&mut said).ok();
        }
        let line = said.lines().next().unwrap_or_default();
        let why = match line.strip_prefix("catraca: ").unwrap_or(line) {
            "" => why,
            line => line,
        };
        ExperimentError::Failed { name: self.name.clone(), why: why.to_string() }
    }

    fn end(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Why an experiment fails.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// Coordinator or process.
    #[error("{name} failed: {why}")]
    Failed {
        /// Which.
        name: String,
        /// What it said.
        why: String,
    },
    /// The files cannot be read.
    #[error("cannot read what the coordinator and the processes wrote: {}", .0.kind())]
    Files(#[source] io::Error),
    /// A process hangs.
    #[error("the processes have not ended after {0:?}")]
    TooLong(Duration),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The files do not show mutual exclusion.
    #[error(transparent)]
    Defect(#[from] Defect),
}
