//! A client that keeps durable holds: it asks by `catraca lock --durable`, asks again while it holds,
//! and releases by `catraca unlock`.
//!
//! Whoever does not get an answer asks again, with the same request: so in the end it knows what it
//! has. It never gives up before it knows.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use catraca_sim::Random;
use tokio::sync::watch;

use super::history::{Event, NEVER, Writer};

/// How many names there are.
const NAMES: u64 = 3;
const PAUSE: Duration = Duration::from_millis(200);
/// Seconds that one asks and waits for; what has not ended by the second is ended, and counts as no
/// answer.
const WAIT: &str = "5";
const LIMIT: &str = "20";

/// Exit codes of `catraca lock` that say that nothing was granted.
const NOT_HAD: [i32; 2] = [1, 124];
/// The exit code of `catraca unlock` that says that nobody has such a hold.
const NOT_HELD: i32 = 1;

/// One who asks for durable holds, one after the other.
pub(crate) struct Keeper {
    pub(crate) log: Arc<Writer>,
    pub(crate) catraca: PathBuf,
    pub(crate) nodes: String,
    pub(crate) owner: String,
    pub(crate) random: Random,
    pub(crate) finish: watch::Receiver<bool>,
}

/// What an attempt came to.
enum Answer {
    Granted(u64),
    Refused(String),
    /// Perhaps it was carried out.
    Unknown,
}

impl Keeper {
    pub(crate) fn work(mut self) -> Result<()> {
        while !*self.finish.borrow() {
            let name = format!("durable/{}", self.random.below(NAMES));
            self.keep(&name)?;
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Asks for a hold, keeps it for a while if it is granted, and releases it.
    fn keep(&mut self, name: &str) -> Result<()> {
        let request = self.log.asked(1, &[name.to_string()])?;
        loop {
            match self.ask(name, request)? {
                Answer::Granted(fence) => {
                    self.granted(request, fence)?;
                    break;
                }
                Answer::Refused(why) => {
                    return self.log.happened(request, Event::Refused { why });
                }
                Answer::Unknown => thread::sleep(PAUSE),
            }
        }
        // Across most faults.
        for _ in 0..self.random.below(8) {
            thread::sleep(Duration::from_millis(self.random.below(1_500)));
            match self.ask(name, request)? {
                Answer::Granted(fence) => self.granted(request, fence)?,
                Answer::Refused(why) => return self.lost(request, why),
                Answer::Unknown => {}
            }
        }
        self.release(name, request)
    }

    fn granted(&self, request: u64, fence: u64) -> Result<()> {
        self.log.happened(request, Event::Granted { until: NEVER, fences: vec![fence] })
    }

    fn lost(&self, request: u64, why: String) -> Result<()> {
        self.log.happened(request, Event::Lost { until: NEVER, why })
    }

    fn ask(&self, name: &str, request: u64) -> Result<Answer> {
        let request = format!("{}-{request}", self.owner);
        let arguments = ["lock", "--durable", "--request", &request, "-w", WAIT];
        let output = self.call(&arguments, name)?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
        Ok(match output.status.code() {
            Some(0) => {
                let words = said(&output.stdout);
                let fence =
                    words.split_whitespace().filter_map(|word| word.parse().ok()).next_back();
                Answer::Granted(fence.ok_or_else(|| anyhow!("there is no fence in '{words}'"))?)
            }
            Some(code) if NOT_HAD.contains(&code) => {
                Answer::Refused(format!("exit code {code} {}", said(&output.stderr)))
            }
            _ => Answer::Unknown,
        })
    }

    fn release(&self, name: &str, request: u64) -> Result<()> {
        self.log.happened(request, Event::Releasing)?;
        let mut may_be_released = false;
        loop {
            match self.call(&["unlock"], name)?.status.code() {
                Some(0) => return self.log.happened(request, Event::Released),
                Some(NOT_HELD) if may_be_released => {
                    return self.log.happened(request, Event::Released);
                }
                Some(NOT_HELD) => {
                    let why = "there is no such hold to be released".to_string();
                    return self.lost(request, why);
                }
                _ => may_be_released = true,
            }
            thread::sleep(PAUSE);
        }
    }

    fn call(&self, arguments: &[&str], name: &str) -> Result<std::process::Output> {
        let mut command = Command::new("timeout");
        // In the process group of this client: whoever kills that leaves nobody behind who goes on asking.
        command.args(["--foreground", "--signal", "KILL", LIMIT]);
        command.arg(&self.catraca).args(arguments);
        command.args(["--node", &self.nodes, "--owner", &self.owner, name]);
        command.stdin(Stdio::null()).output().context("'timeout' cannot be started")
    }
}
