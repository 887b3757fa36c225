//! The project's own chores, run with `cargo xtask`.

mod bench;
mod claims;
mod shell;
mod soak;
mod test;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own chores")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Installs what the tests need and runs all of them
    Test,
    /// Measures every claim of the papers again and writes docs/CLAIMS.md
    Claims {
        /// Writes nothing; fails if the file does not say what the runs say
        #[arg(long)]
        check: bool,
    },
    /// Runs the benchmarks and prints a table of the figures with their goals
    Bench {
        /// Leaves the criterion benchmarks out and prints only the table
        #[arg(long)]
        table: bool,
        /// Prints only what the table says of evolving graphs
        #[arg(long)]
        graphs: bool,
    },
    /// Explores what takes too long for every day: larger groups, more seeds
    Soak {
        /// Minutes for the seeded runs
        #[arg(long, default_value_t = 10)]
        minutes: u64,
    },
    /// The table of the bench chore, in the profile that this was built with
    #[command(hide = true)]
    Measure {
        #[arg(long)]
        graphs: bool,
    },
    /// The work of the soak chore, in the profile that this was built with
    #[command(hide = true)]
    Explore { minutes: u64 },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().chore {
        Chore::Test => test::all(),
        Chore::Claims { check } => claims::write(check),
        Chore::Bench { table, graphs } => bench::all(table, graphs),
        Chore::Soak { minutes } => soak::all(minutes),
        Chore::Measure { graphs } => bench::measure(graphs),
        Chore::Explore { minutes } => soak::explore(minutes),
    }
}
