//! An algorithm of one's own, driven as those of Catraca's catalogue are.
//!
//! The algorithm is in `algorithm.rs`, ways to break it are in `mutants.rs`, and what it promises is in
//! `tests.rs`. 'cargo run' lists the commands, 'cargo test' runs the tests.

mod algorithm;
mod mutants;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use algorithm::Node;

fn main() -> ExitCode {
    catraca_own::main::<Node>()
}
