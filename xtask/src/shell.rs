//! Running other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// A file that cargo has built.
pub(crate) fn built(path: &str) -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    folder.unwrap_or_else(|| root().join("target")).join(path)
}

/// Runs a command in the root and fails if it does.
pub(crate) fn run(command: &str) -> Result<()> {
    run_with(command, &[])
}

/// The same with variables in its environment.
pub(crate) fn run_with(command: &str, environment: &[(&str, &str)]) -> Result<()> {
    println!("$ {command}");
    let status = prepared(command, environment).status();
    let status = status.with_context(|| format!("'{command}' could not be started"))?;
    if !status.success() {
        bail!("'{command}' failed ({status})");
    }
    Ok(())
}

/// Whether a command can be run and succeeds; it prints nothing.
pub(crate) fn succeeds(command: &str) -> bool {
    let mut command = prepared(command, &[]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn prepared(command: &str, environment: &[(&str, &str)]) -> Command {
    let mut words = command.split_whitespace();
    let mut prepared = Command::new(words.next().unwrap_or_default());
    prepared.args(words).envs(environment.iter().copied()).current_dir(root());
    told_by_cargo().for_each(|name| {
        prepared.env_remove(name);
    });
    prepared
}

/// What cargo tells a program of its own package. Build scripts look at that: if it went on to the cargo that
/// is run here, that would compile anew what the one that runs this has compiled.
fn told_by_cargo() -> impl Iterator<Item = String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
}
