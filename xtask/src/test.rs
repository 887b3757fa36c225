//! `cargo xtask test`: everything that must be true before a change lands.

use anyhow::{Result, bail};

use crate::shell::{run, run_with, succeeds};

/// The Debian packages that the tests need: a font, for pictures as PNG; 'kill'; etcd and its tool, to
/// keep a registry in; what makes certificates for it; and networks for `cargo xtask chaos`.
const PACKAGES: &[&str] =
    &["etcd-client", "etcd-server", "fonts-dejavu-core", "iproute2", "openssl", "procps"];

pub(crate) fn all() -> Result<()> {
    install_packages()?;
    run("cargo fmt --all --check")?;
    run("cargo clippy --workspace --all-targets -- -D warnings")?;
    run_with("cargo doc --workspace --no-deps", &[("RUSTDOCFLAGS", "-D warnings")])?;
    if succeeds("cargo nextest --version") {
        run("cargo nextest run --workspace")?;
    } else {
        run("cargo test --workspace --lib --bins --tests")?;
    }
    // As the README has it: which of the binaries is meant must be clear.
    run("cargo run --quiet -- --version")?;
    run("cargo test --workspace --doc")?;
    crate::schemathesis::all()?;
    chaos()?;
    crate::claims::write(true)?;
    println!("all tests passed");
    Ok(())
}

/// Real nodes and clients under faults, for half a minute, always in the same way.
fn chaos() -> Result<()> {
    /// It needs networks of its own, which not every machine lets it have.
    const MAY_NOT: i32 = 4;
    let mut chaos = std::process::Command::new(std::env::current_exe()?);
    match chaos.args(["chaos", "--short"]).status()?.code() {
        Some(0) => Ok(()),
        Some(MAY_NOT) => {
            println!("chaos was left out: it may not make networks here");
            Ok(())
        }
        _ => bail!("chaos has found something; see above"),
    }
}

/// Installs the packages that are missing, and only those.
fn install_packages() -> Result<()> {
    if !succeeds("dpkg --version") {
        println!("not a Debian system: the tests expect {} to be there", PACKAGES.join(", "));
        return Ok(());
    }
    let is_missing = |package: &&str| !succeeds(&format!("dpkg -s {package}"));
    let missing: Vec<&str> = PACKAGES.iter().copied().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    let sudo = match (succeeds("test -w /var/lib/dpkg"), succeeds("sudo -n true")) {
        (true, _) => "",
        (false, true) => "sudo ",
        (false, false) => bail!(
            "the tests need these Debian packages, and only root can install them: {packages}\n\
             run 'apt-get install {packages}' as root, then 'cargo xtask test' again"
        ),
    };
    run(&format!("{sudo}apt-get update --quiet"))?;
    run(&format!("{sudo}apt-get install --yes --no-install-recommends {packages}"))
}
