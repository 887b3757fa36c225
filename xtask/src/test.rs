//! `cargo xtask test`: everything that must be true before a change lands.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::shell::{self, run, run_with, succeeds};

/// The Debian packages that the tests need: a font, for pictures as PNG; 'kill'; etcd and its tool, to
/// keep a registry in; what makes certificates for it; networks for `cargo xtask chaos`; what shows manual
/// pages; a terminal for `catraca top`; what makes the user of a service; what runs the client for Python,
/// lock libraries, and examples, and reads YAML; Redis, to compare with; PostgreSQL, whose tables refuse old
/// fences, and curl, for examples; and a browser with its driver, for pages.
const PACKAGES: &[&str] = &[
    "adduser",
    "chromium",
    "chromium-driver",
    "curl",
    "etcd-client",
    "etcd-server",
    "faketime",
    "fonts-dejavu-core",
    "git-lfs",
    "groff",
    "iproute2",
    "man-db",
    "openssl",
    "postgresql",
    "procps",
    "python3",
    "python3-pandas",
    "python3-venv",
    "python3-yaml",
    "redis-server",
    "tmux",
];

/// The same for programs that many have from elsewhere, with the command that shows it: what runs lock libraries
/// of JavaScript, and what installs them.
const UNLESS_THERE: &[(&str, &str)] = &[("nodejs", "node --version"), ("npm", "npm --version")];

/// With this a test does not leave out what could be had.
const REQUIRE: &[(&str, &str)] = &[("CATRACA_TESTS_REQUIRE", "1")];

pub(crate) fn all() -> Result<()> {
    let missing = UNLESS_THERE.iter().filter(|(_, command)| !succeeds(command));
    let missing: Vec<&str> = missing.map(|(package, _)| *package).collect();
    crate::packages::install(&[PACKAGES, &missing].concat(), "cargo xtask test")?;
    run("cargo fmt --all --check")?;
    run("cargo clippy --workspace --all-targets -- -D warnings")?;
    run_with("cargo doc --workspace --no-deps", &[("RUSTDOCFLAGS", "-D warnings")])?;
    dependencies()?;
    if succeeds("cargo nextest --version") {
        run_with("cargo nextest run --workspace", REQUIRE)?;
    } else {
        run_with("cargo test --workspace --lib --bins --tests", REQUIRE)?;
    }
    // As the README has it: which of the binaries is meant must be clear.
    run("cargo run --quiet -- --version")?;
    run("cargo test --workspace --doc")?;
    crate::package::trial(&shell::built("debug/catraca"))?;
    chaos()?;
    crate::claims::write(true)?;
    crate::docs::check()?;
    println!("all tests passed");
    Ok(())
}

/// What this project is made of, and whether others could get its crates: as far as that needs no network.
fn dependencies() -> Result<()> {
    crate::dependencies::check()?;
    if succeeds("cargo deny --version") {
        run("cargo deny --offline check licenses bans sources")?;
        advisories()?;
    } else {
        println!("cargo-deny was left out: it is not installed");
    }
    run(
        "cargo package --workspace --exclude xtask --exclude rust-service --no-verify --offline --allow-dirty --quiet",
    )
}

/// Known weaknesses of dependencies, where their database has been fetched: a test fetches nothing.
fn advisories() -> Result<()> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    if home.is_some_and(|home| has_advisories(&home)) {
        return run("cargo deny --offline check advisories");
    }
    println!("advisories were left out: 'cargo deny fetch db' fetches their database");
    Ok(())
}

/// Whether a database of advisories is in cargo's folder, where cargo-deny keeps them.
fn has_advisories(home: &Path) -> bool {
    let is_database = |entry: std::fs::DirEntry| {
        let is_named = entry.file_name().to_string_lossy().starts_with("advisory-db");
        let has_something =
            std::fs::read_dir(entry.path()).is_ok_and(|mut all| all.next().is_some());
        is_named && has_something
    };
    std::fs::read_dir(home).into_iter().flatten().flatten().any(is_database)
}

#[test]
fn advisories_are_checked_only_where_their_database_is() {
    let home = tempfile::tempdir().unwrap();
    assert!(!has_advisories(home.path()) && !has_advisories(&home.path().join("none")));
    std::fs::create_dir_all(home.path().join("registry/index")).unwrap();
    std::fs::create_dir_all(home.path().join("advisory-dbs")).unwrap();
    assert!(!has_advisories(home.path()));
    std::fs::create_dir_all(home.path().join("advisory-dbs/advisory-db-1")).unwrap();
    assert!(has_advisories(home.path()));
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
