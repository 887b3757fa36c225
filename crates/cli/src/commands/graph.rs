//! `catraca graph`: networks that change over time, and what can work on them.

mod animation;
mod check;
mod convert;
mod draw;
mod generate;
mod info;
mod journey;
mod propositions;
mod record;
mod run;
mod times;
mod trace;
mod words;
mod workload;

use clap::Subcommand;

use crate::Outcome;

const EXAMPLES: &str = "\
Examples:
  catraca graph generate ring --nodes 6 --output ring.txt
  catraca graph info contacts.dat --instant 20
  catraca graph journey contacts.dat 1148 1191 --draw journey.svg
  catraca graph check contacts.dat --requesters 1,5,9 --token 3
  catraca graph run ring.txt --rounds 3 --strip run.svg
  catraca graph run ring.txt --algorithm evolving-helary --html run.html
  catraca graph propositions --nodes 3 --instants 4

A trace is a file of contacts: Catraca's own format, SocioPatterns ('t i j'), CSV with start and end,
or the ONE simulator's events ('time CONN a b up'). docs/GRAPHS.md describes them.";

/// Evolving graphs: traces of contacts, journeys, conditions, and mutual exclusion on them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Info(info::Arguments),
    Convert(convert::Arguments),
    Generate(generate::Arguments),
    Journey(journey::Arguments),
    Check(check::Arguments),
    Run(Box<run::Arguments>),
    Draw(draw::Arguments),
    Propositions(propositions::Arguments),
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        match self.command {
            Command::Info(arguments) => arguments.run(),
            Command::Convert(arguments) => arguments.run(),
            Command::Generate(arguments) => arguments.run(),
            Command::Journey(arguments) => arguments.run(),
            Command::Check(arguments) => arguments.run(),
            Command::Run(arguments) => arguments.run(),
            Command::Draw(arguments) => arguments.run(),
            Command::Propositions(arguments) => arguments.run(),
        }
    }
}
