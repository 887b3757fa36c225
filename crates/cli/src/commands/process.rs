//! `catraca process`: a process of S3's system.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use catraca_classroom::{Process, ProcessError, ProcessId, RESULT};

use super::coordinator::ADDRESS;
use crate::Outcome;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{Stdout, append};
use crate::table::counted;
use crate::value::{at_least, duration};

const EXAMPLES: &str = "\
Examples:
  catraca process --id 76
  catraca process --id 13 --rounds 10 --hold 500ms --result shared.txt";

/// Runs a process of S3's system: asks the coordinator, enters, writes its line, leaves.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Its name, 1 to 7 characters; no other process that is connected may have it.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    id: ProcessId,
    /// Where the coordinator listens.
    #[arg(long, value_name = "ADDR", default_value = ADDRESS)]
    connect: String,
    /// How often it enters.
    #[arg(long, value_name = "COUNT", default_value = "3", value_parser = at_least(1u32), allow_negative_numbers = true)]
    rounds: u32,
    /// How long it stays inside, such as 2s, 1.5s or 500ms.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration, allow_hyphen_values = true)]
    hold: Duration,
    /// The file that it adds a line to when it enters: its id and the time, in UTC.
    #[arg(long, value_name = "FILE", default_value = RESULT)]
    result: PathBuf,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let mut result = append(&self.result)?;
        let process = Process { id: self.id, rounds: self.rounds, hold: self.hold };
        process.run(&self.connect, &mut result, &interrupt::flag()).map_err(
            |error| match error {
                ProcessError::NoAddress(_) => Failure::input(format!("--connect: {error}")),
                ProcessError::Interrupted => Failure::Interrupted,
                error => Failure::System(error.into()),
            },
        )?;
        let entries = counted(self.rounds.into(), "entry", "entries");
        writeln!(Stdout::lock(), "process {}: {entries}", self.id)?;
        Ok(())
    }
}
