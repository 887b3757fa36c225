//! Debian packages that chores need.

use anyhow::{Result, bail};

use crate::shell::{run, succeeds};

/// Installs those of `packages` that are missing. `chore` is who needs them.
pub(crate) fn install(packages: &[&str], chore: &str) -> Result<()> {
    if !succeeds("dpkg --version") {
        println!("not a Debian system: '{chore}' expects {} to be there", packages.join(", "));
        return Ok(());
    }
    let is_missing = |package: &&str| !succeeds(&format!("dpkg -s {package}"));
    let missing: Vec<&str> = packages.iter().copied().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    let sudo = match (succeeds("test -w /var/lib/dpkg"), succeeds("sudo -n true")) {
        (true, _) => "",
        (false, true) => "sudo ",
        (false, false) => bail!(
            "'{chore}' needs these Debian packages, and only root can install them: {packages}\n\
             run 'apt-get install {packages}' as root, then '{chore}' again"
        ),
    };
    run(&format!("{sudo}apt-get update --quiet"))?;
    run(&format!("{sudo}apt-get install --yes --no-install-recommends {packages}"))
}
