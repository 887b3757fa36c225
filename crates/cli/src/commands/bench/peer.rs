//! The other processes of a benchmark: this binary again, told what to be.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::child::Started;
use super::{group, ping};
use crate::Outcome;
use crate::failure::Failure;

/// Where a process may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cores {
    /// Wherever the system puts it.
    Any,
    /// All of them on one core.
    One,
}

/// A process of the benchmark. It ends with this value.
pub(super) struct Peer {
    _process: Started,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    pub(super) fn start(arguments: &[&str], cores: Cores) -> Result<Self> {
        let binary = std::env::current_exe().context("this program cannot be found again")?;
        let mut command = match cores {
            Cores::Any => Command::new(&binary),
            Cores::One => {
                let mut command = Command::new("taskset");
                command.args(["-c", "0"]).arg(&binary);
                command
            }
        };
        command.arg("bench-peer").args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let process = Started::spawn(&mut command)
            .with_context(|| format!("{} cannot be run", command.get_program().display()))?;
        let (input, output) = {
            let mut child = process.child();
            (child.stdin.take(), child.stdout.take())
        };
        let (Some(input), Some(output)) = (input, output) else {
            bail!("a process of the benchmark has no pipes");
        };
        Ok(Peer { _process: process, input, output: BufReader::new(output) })
    }

    /// Tells the process what to do next.
    pub(super) fn tell(&mut self, line: &str) -> Result<()> {
        writeln!(self.input, "{line}").context("a process of the benchmark has gone")
    }

    /// The next line that it says.
    pub(super) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.is_empty() {
            bail!("a process of the benchmark ended too early");
        }
        Ok(line.trim_end().to_string())
    }
}

/// A process of the benchmark.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    role: String,
    rest: Vec<String>,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let rest: Vec<&str> = self.rest.iter().map(String::as_str).collect();
        let done = match (self.role.as_str(), rest.as_slice()) {
            ("echo", []) => ping::echo(say),
            ("ping", [address, seconds]) => match seconds.parse() {
                Ok(seconds) => ping::ping(address, Duration::from_secs_f64(seconds), say),
                Err(error) => Err(anyhow::Error::new(error)),
            },
            ("node", [cores, name, members, data]) => {
                let cores = if *cores == "one" { Cores::One } else { Cores::Any };
                group::node(name, members, data, cores, say)
            }
            _ => return Err(Failure::input("'bench-peer' is for 'catraca bench' alone")),
        };
        done.map_err(Failure::System)
    }
}

/// One line to the process that measures. Without it there is nothing left to do.
fn say(line: &str) {
    if writeln!(std::io::stdout(), "{line}").is_err() {
        std::process::exit(0);
    }
}
