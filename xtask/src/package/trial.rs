//! Tries what was packed: installs it, uses it, removes it. Nothing of it is ever seen outside.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::binary::Binary;
use super::{debian, write};
use crate::shell;

/// The script says so where the system does not let it have a copy of itself.
const MAY_NOT: i32 = 4;

/// Packs a binary and installs its package into a copy of this system.
pub(crate) fn trial(binary: &Path) -> Result<()> {
    if !rustix::process::geteuid().is_root() || !shell::succeeds("dpkg --version") {
        println!("the trial of the package was left out: it needs root and dpkg");
        return Ok(());
    }
    let binary = Binary::read(binary)?;
    let folder = tempfile::tempdir()?;
    let packages = folder.path().join("packages");
    write(&binary, &packages)?;
    let mount = folder.path().join("mount");
    std::fs::create_dir(&mount)?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "sh"]);
    command.arg(shell::root().join("packaging/debian/trial.sh"));
    command.arg(packages.join(debian::file_name(&binary))).arg(&mount);
    match command.status().context("'unshare' cannot be started")?.code() {
        Some(0) => println!("the package was installed, used and removed"),
        Some(MAY_NOT) => println!("the trial of the package was left out: no copy of this system"),
        _ => bail!("the trial of the package failed; see above"),
    }
    Ok(())
}
