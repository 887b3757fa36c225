//! `cargo xtask chaos`: real members and real clients under real faults, and a judge of what the
//! clients saw.

mod client;
mod durable;
mod enclosure;
mod fault;
mod history;
mod judge;
mod mutants;
mod network;
mod options;
mod plan;
mod process;
mod processes;
mod report;
mod run;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use catraca_group::VIEW_MUTANTS;

pub(crate) use client::ClientOptions;
pub(crate) use mutants::all as mutants;
pub(crate) use options::{Inside, Options};
use run::Outcome;
use workload::Workload;

use crate::shell;

/// Wrong input; a violation was found; this system does not let it.
const WRONG: u8 = 2;
const VIOLATED: u8 = 3;
const MAY_NOT: u8 = 4;
/// Stopped by Ctrl-C or SIGTERM, as shells say it.
const STOPPED: u8 = 130;

/// Builds what is needed and runs inside an enclosure.
pub(crate) fn all(options: Options) -> Result<ExitCode> {
    run_one(options).map(ExitCode::from)
}

/// The same, and what it exits with.
fn run_one(options: Options) -> Result<u8> {
    let options = options.seeded();
    if let Some(why) = wrong(&options) {
        eprintln!("{why}");
        return Ok(WRONG);
    }
    if let Some(why) = enclosure::hindrance() {
        eprintln!("no chaos here: {why}");
        return Ok(MAY_NOT);
    }
    let catraca = build(&options)?;
    let folder = shell::root().join("target/chaos").join(options.seed().to_string());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("the files of an earlier run are in the way")?;
    }
    std::fs::create_dir_all(&folder)?;
    let mut arguments = vec!["chaos-inside".to_string()];
    arguments.extend(options.arguments());
    arguments.push(format!("--catraca={}", catraca.display()));
    arguments.push(format!("--folder={}", folder.display()));
    let status = enclosure::run(&arguments)?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// What cannot be done as it was asked for, if so.
fn wrong(options: &Options) -> Option<String> {
    if let Err(error) = Workload::of(&options.algorithm) {
        return Some(error.to_string());
    }
    if let Err(kind) = options.kinds() {
        return Some(format!("a group with this registry has no fault '{kind}'"));
    }
    let rule = options.broken.as_ref()?;
    if VIEW_MUTANTS.iter().any(|mutant| mutant.name == rule) {
        return None;
    }
    let known: Vec<&str> = VIEW_MUTANTS.iter().map(|mutant| mutant.name).collect();
    Some(format!("no rule is called '{rule}': {}", known.join(", ")))
}

/// Builds the binary of the members. One that can break rules is kept apart from all others.
fn build(options: &Options) -> Result<PathBuf> {
    let target = shell::root().join("target");
    // With the features of the whole workspace, so that nothing is compiled once more.
    let build = "cargo build --quiet --workspace --bin catraca";
    if options.broken.is_some() {
        shell::run(&format!(
            "{build} --features catraca-node/mutants --target-dir target/mutants"
        ))?;
        return Ok(target.join("mutants/debug/catraca"));
    }
    shell::run(build)?;
    Ok(target.join("debug/catraca"))
}

/// The run, inside the enclosure.
pub(crate) fn inside(inside: &Inside) -> Result<ExitCode> {
    let Ok(kinds) = inside.options.kinds() else { return Ok(ExitCode::from(WRONG)) };
    Ok(match run::run(inside, kinds)? {
        Outcome::Holds => ExitCode::SUCCESS,
        Outcome::Violated => ExitCode::from(VIOLATED),
        Outcome::Stopped => ExitCode::from(STOPPED),
    })
}

/// A client, in a process of its own.
pub(crate) fn client(options: &ClientOptions) -> Result<ExitCode> {
    client::run(options)?;
    Ok(ExitCode::SUCCESS)
}
