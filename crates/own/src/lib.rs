//! What an algorithm of one's own can be asked, outside of the catalogue: a program of one line.
//!
//! The catalogue finds algorithms by name, and everything in it is compiled with all of Catraca. An
//! algorithm under construction lives in a small crate of its own instead, which `catraca new-algorithm`
//! writes. Its `main` is
//!
//! ```ignore
//! fn main() -> std::process::ExitCode {
//!     catraca_own::main::<Node>()
//! }
//! ```
//!
//! and the program that comes of it has four commands: `sim` runs it, `compare` puts it beside
//! algorithms of the catalogue, `check` explores every interleaving of a small group and prints the
//! shortest way to what is broken, `diagram` draws a run. They take the flags of `catraca sim`, made from
//! the same table, and end with the same exit codes.
//!
//! The drivers are those of the catalogue: [`run_algorithm`](catraca_sim::run_algorithm) and
//! [`check_group`](catraca_check::check_group) are generic, so only the own crate is compiled again
//! when the algorithm changes.

mod chart;
mod check;
mod compare;
mod failure;
mod files;
mod flags;
mod help;
mod sim;
mod table;
pub mod testing;

use std::io::Write;
use std::process::ExitCode;

use catraca_algorithms::mutants::{Mutant, MutantConfig};
use catraca_core::Algorithm;
use catraca_sim::Own;

pub use catraca_algorithms::Channels;
pub use catraca_algorithms::mutants::{Caught, Listed, Mutation};
pub use catraca_check::Verdict;
pub use catraca_sim::End;
pub use failure::Failure;

/// An algorithm that is in no registry, with what drivers have to know of it.
pub trait OwnAlgorithm: Algorithm {
    /// What tables and traces call it.
    const NAME: &'static str;

    /// What it needs of its channels. The checker lets messages overtake each other where it needs
    /// nothing.
    const CHANNELS: Channels;

    /// What all nodes of a group of this size share.
    fn config(nodes: u32) -> Self::Config;

    /// Its deliberately broken variants, for `--mutant`.
    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        &[]
    }
}

/// The program: does what the words on the command line say. To be called from `main`.
pub fn main<A: OwnAlgorithm>() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    match run::<A>(&words, &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(A::NAME),
    }
}

/// The same with the words passed in and what is printed passed out.
pub fn run<A: OwnAlgorithm>(words: &[String], out: &mut dyn Write) -> Result<(), Failure> {
    let Some((command, rest)) = words.split_first() else {
        help::overview::<A>(out)?;
        return Ok(());
    };
    match command.as_str() {
        "sim" => sim::run::<A>(rest, out),
        "diagram" => sim::draw::<A>(rest, out),
        "compare" => compare::run::<A>(rest, out),
        "check" => check::run::<A>(rest, out),
        "help" | "--help" | "-h" => Ok(help::overview::<A>(out)?),
        other => Err(Failure::Input(format!(
            "there is no command '{other}': say sim, compare, check or diagram"
        ))),
    }
}

/// What a run has to know of `A`.
fn own<A: OwnAlgorithm>() -> Own {
    Own { name: A::NAME, channels: A::CHANNELS }
}

/// Something that is done with the algorithm or with a mutant of it.
trait Driver {
    type Output;
    fn drive<B: Algorithm>(self, config: B::Config) -> Self::Output;
}

/// Has `driver` drive the algorithm, or the mutant of it with this name.
fn drive<A: OwnAlgorithm, D: Driver>(
    mutant: Option<&str>,
    nodes: u32,
    driver: D,
) -> Result<D::Output, Failure> {
    let config = A::config(nodes);
    let Some(name) = mutant else { return Ok(driver.drive::<A>(config)) };
    let mutations = A::mutations();
    match mutations.iter().find(|mutation| mutation.listed().name == name) {
        Some(&mutation) => Ok(driver.drive::<Mutant<A>>(MutantConfig { config, mutation })),
        None => {
            let names: Vec<&str> = mutations.iter().map(|one| one.listed().name).collect();
            let known = match names.as_slice() {
                [] => "it has none".to_string(),
                names => format!("its mutants are {}", names.join(", ")),
            };
            Err(Failure::Input(format!("--mutant: {} has no mutant '{name}'; {known}", A::NAME)))
        }
    }
}
