//! `catraca`: parses, calls, prints. Everything else is in the libraries.

mod commands;
mod failure;
mod interrupt;
mod output;
mod progress;
mod suggest;
mod table;
mod value;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::failure::Failure;

/// Distributed mutual exclusion: every classic algorithm, simulated and exhaustively checked.
#[derive(Parser)]
#[command(name = "catraca", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
    0  done, nothing wrong found
    1  the system failed (a disk, a thread)
    2  wrong input; the message says what to change
    3  a violation was found, or a replay differs from its trace
    4  gave up without a verdict (a limit on memory or states)
  130  interrupted; no half-written file is left behind";

#[derive(Subcommand)]
enum Command {
    Compare(commands::compare::Arguments),
    Sim(commands::sim::Arguments),
    Check(commands::check::Arguments),
    Replay(commands::replay::Arguments),
    Graph(commands::graph::Arguments),
    Algorithms(commands::algorithms::Arguments),
}

fn main() -> ExitCode {
    let matches = match Cli::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return failure::of_usage(&error),
    };
    let command = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli.command,
        Err(error) => return failure::of_usage(&error),
    };
    interrupt::install();
    let result = match command {
        Command::Compare(arguments) => arguments.run(),
        Command::Sim(arguments) => arguments.run(),
        Command::Check(arguments) => arguments.run(),
        Command::Replay(arguments) => arguments.run(),
        Command::Graph(arguments) => arguments.run(),
        Command::Algorithms(arguments) => arguments.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// What every command returns.
type Outcome = Result<(), Failure>;
