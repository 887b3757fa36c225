//! The project's own chores, run with `cargo xtask`.

mod bench;
mod chaos;
mod claims;
mod dependencies;
mod docs;
mod fuzz;
mod package;
mod packages;
mod shell;
mod soak;
mod test;

use std::process::ExitCode;

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
    /// Writes the pages of the algorithms, checks every link, and makes the manual as a book
    Docs(docs::Options),
    /// Runs the benchmarks and prints a table of the figures with their goals
    #[command(args_conflicts_with_subcommands = true)]
    Bench {
        #[command(subcommand)]
        other: Option<bench::Other>,
        /// Leaves the criterion benchmarks out and prints only the table
        #[arg(long)]
        table: bool,
        /// Prints only what the table says of evolving graphs
        #[arg(long)]
        graphs: bool,
        /// Measures only what the hook of a repository costs a push
        #[arg(long)]
        git: bool,
        /// Builds the program anew and prints the ten crates that take longest
        #[arg(long)]
        build: bool,
    },
    /// Explores what takes too long for every day: larger groups, more seeds
    Soak(soak::Options),
    /// Runs real members and clients under real faults, and judges what the clients saw
    ///
    /// Exits with 0 if everything held, 3 if something was violated, 1 if the system is in the way, 2 if
    /// the input is wrong, 4 if this user or system cannot have namespaces, 130 if it was stopped.
    Chaos(chaos::Options),
    /// Builds what users install: a package for Debian, a container image, an archive, and their sums
    Package(package::Options),
    /// The table of the bench chore, in the profile that this was built with
    #[command(hide = true)]
    Measure {
        #[arg(long)]
        graphs: bool,
    },
    /// The work of 'bench peers', in the profile that this was built with
    #[command(hide = true)]
    MeasurePeers(bench::PeersOptions),
    /// The smallest lock service, which 'bench peers' compares others with
    #[command(hide = true)]
    BareServer {
        /// Where to listen
        address: String,
    },
    /// The work of the soak chore, in the profile that this was built with
    #[command(hide = true)]
    Explore(soak::Options),
    /// The work of the chaos chore, in namespaces of its own
    #[command(hide = true)]
    ChaosInside(chaos::Inside),
    /// A client of the chaos chore
    #[command(hide = true)]
    ChaosClient(chaos::ClientOptions),
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().chore {
        Chore::Test => test::all()?,
        Chore::Claims { check } => claims::write(check)?,
        Chore::Docs(options) => docs::all(&options)?,
        Chore::Bench { other: Some(bench::Other::Peers(options)), .. } => bench::peers(&options)?,
        Chore::Bench { other: Some(bench::Other::Dashboard(options)), .. } => {
            bench::dashboard(&options)?;
        }
        Chore::Bench { build: true, .. } => bench::build()?,
        Chore::Bench { other: None, table, graphs, git, .. } => bench::all(table, graphs, git)?,
        Chore::Soak(options) => soak::all(&options)?,
        Chore::Chaos(options) => return chaos::all(options),
        Chore::Package(options) => package::all(&options)?,
        Chore::Measure { graphs } => bench::measure(graphs)?,
        Chore::MeasurePeers(options) => bench::measure_peers(&options)?,
        Chore::BareServer { address } => bench::bare_server(&address)?,
        Chore::Explore(options) => soak::explore(&options)?,
        Chore::ChaosInside(inside) => return chaos::inside(&inside),
        Chore::ChaosClient(options) => return chaos::client(&options),
    }
    Ok(ExitCode::SUCCESS)
}
