//! `catraca`: parses, calls, prints. Everything else is in the libraries.

mod commands;
mod document;
mod failure;
mod flags;
mod interrupt;
mod log;
mod manager;
mod nodes;
mod open_files;
mod output;
mod player;
mod progress;
mod screen;
mod service;
mod signals;
mod suggest;
mod table;
#[cfg(test)]
mod testing;
mod trees;
mod value;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::failure::Failure;

/// Distributed mutual exclusion: locks for programs and scripts, from every classic algorithm; the
/// same algorithms simulated and exhaustively checked.
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
    3  a violation was found, a replay differs from its trace, or runs contradict a verdict
    4  gave up without a verdict (a limit on memory, states or events)
  130  interrupted; no half-written file is left behind
'catraca lock', 'locks', 'status' and 'git' have their own: see 'catraca lock --help'.";

#[derive(Subcommand)]
enum Command {
    Node(Box<commands::node::Arguments>),
    Lock(commands::lock::Arguments),
    Unlock(commands::unlock::Arguments),
    Locks(commands::locks::Arguments),
    Status(commands::status::Arguments),
    Top(commands::top::Arguments),
    Members(commands::members::Arguments),
    Leave(commands::leave::Arguments),
    ForceRelease(commands::force_release::Arguments),
    Kick(commands::kick::Arguments),
    Recover(commands::recover::Arguments),
    Config(commands::config::Arguments),
    Token(commands::token::Arguments),
    Cert(commands::cert::Arguments),
    Git(Box<commands::git::Arguments>),
    Demo(commands::demo::Arguments),
    Bench(commands::bench::Arguments),
    Compare(commands::compare::Arguments),
    Sim(commands::sim::Arguments),
    Swarm(commands::swarm::Arguments),
    Check(commands::check::Arguments),
    Replay(commands::replay::Arguments),
    Experiment(commands::experiment::Arguments),
    Graph(commands::graph::Arguments),
    Lab(commands::lab::Arguments),
    Algorithms(commands::algorithms::Arguments),
    NewAlgorithm(commands::new_algorithm::Arguments),
    Classroom(commands::classroom::Arguments),
    Coordinator(commands::coordinator::Arguments),
    Process(commands::process::Arguments),
    Completions(commands::completions::Arguments),
    Man(commands::man::Arguments),
    #[command(hide = true)]
    BenchPeer(commands::bench::peer::Arguments),
    #[command(hide = true)]
    Guardian(commands::guardian::Arguments),
}

impl Command {
    /// Whether it takes signals itself: a daemon to stop, a lock to pass them on.
    fn takes_signals(&self) -> bool {
        matches!(
            self,
            Command::Node(_)
                | Command::Lock(_)
                | Command::Top(_)
                | Command::Guardian(_)
                | Command::Lab(_)
        )
    }

    /// Whether it has something to put in order at its end beside its files: other processes, or what it
    /// still has to tell. All others may be ended at any moment: that a connection ends is all that its
    /// server has to know.
    fn ends_in_order(&self) -> bool {
        matches!(
            self,
            Command::Demo(_)
                | Command::Bench(_)
                | Command::BenchPeer(_)
                | Command::Classroom(_)
                | Command::Coordinator(_)
        )
    }
}

fn main() -> ExitCode {
    let words = commands::git::as_called(std::env::args_os());
    let matches = match Cli::command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) => return failure::of_usage(&error),
    };
    let command = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli.command,
        Err(error) => return failure::of_usage(&error),
    };
    if !command.takes_signals() {
        interrupt::install(command.ends_in_order());
    }
    if matches!(command, Command::Locks(_)) {
        output::end_when_unread();
    }
    let result = match command {
        Command::Node(arguments) => arguments.run(),
        Command::Lock(arguments) => arguments.run(),
        Command::Locks(arguments) => arguments.run(),
        Command::Status(arguments) => arguments.run(),
        Command::Top(arguments) => arguments.run(),
        Command::Unlock(arguments) => arguments.run(),
        Command::Members(arguments) => arguments.run(),
        Command::Leave(arguments) => arguments.run(),
        Command::ForceRelease(arguments) => arguments.run(),
        Command::Kick(arguments) => arguments.run(),
        Command::Recover(arguments) => arguments.run(),
        Command::Config(arguments) => arguments.run(),
        Command::Token(arguments) => arguments.run(),
        Command::Cert(arguments) => arguments.run(),
        Command::Git(arguments) => arguments.run(),
        Command::Demo(arguments) => arguments.run(),
        Command::Bench(arguments) => arguments.run(),
        Command::Compare(arguments) => arguments.run(),
        Command::Sim(arguments) => arguments.run(),
        Command::Swarm(arguments) => arguments.run(),
        Command::Check(arguments) => arguments.run(),
        Command::Replay(arguments) => arguments.run(),
        Command::Experiment(arguments) => arguments.run(),
        Command::Graph(arguments) => arguments.run(),
        Command::Lab(arguments) => arguments.run(),
        Command::Algorithms(arguments) => arguments.run(),
        Command::NewAlgorithm(arguments) => arguments.run(),
        Command::Classroom(arguments) => arguments.run(),
        Command::Coordinator(arguments) => arguments.run(),
        Command::Process(arguments) => arguments.run(),
        Command::Completions(arguments) => arguments.run(),
        Command::Man(arguments) => arguments.run(),
        Command::BenchPeer(arguments) => arguments.run(),
        Command::Guardian(arguments) => arguments.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The definition of everything that users are shown, for manual pages and completions.
fn shown() -> clap::Command {
    let whole = Cli::command();
    let commands: Vec<_> =
        whole.get_subcommands().filter(|it| !it.is_hide_set()).cloned().collect();
    clap::Command::new("catraca")
        .version(env!("CARGO_PKG_VERSION"))
        .about(whole.get_about().cloned().unwrap_or_default())
        .subcommand_required(true)
        .after_help(EXIT_CODES)
        .subcommands(commands)
}

/// What every command returns.
type Outcome = Result<(), Failure>;
