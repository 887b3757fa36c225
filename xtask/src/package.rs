//! `cargo xtask package`: what users install.
//!
//! Everything is written here, byte for byte, without tools of a distribution: the same commit and the same
//! compiler give the same packages on every machine.

mod archive;
mod bill;
mod binary;
mod debian;
mod image;
mod tree;
mod trial;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use self::binary::Binary;
use self::tree::Tree;
use crate::shell;

pub(crate) use trial::trial;

/// The version of everything in the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The file with the sums of all others.
const SUMS: &str = "SHA256SUMS";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where the packages go; it is made if it is not there.
    #[arg(long, value_name = "DIR", default_value = "target/package")]
    out: PathBuf,
    /// Packs this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Also installs its package into a copy of this system, uses it and removes it.
    #[arg(long, requires = "binary")]
    trial: bool,
}

/// Builds the binary, and packs it in every way.
pub(crate) fn all(options: &Options) -> Result<()> {
    let binary = match &options.binary {
        Some(path) => Binary::read(path)?,
        None => Binary::build()?,
    };
    println!("{}", binary.words());
    for path in write(&binary, &options.out)? {
        println!("{}", path.display());
    }
    match &options.binary {
        Some(path) if options.trial => trial(path),
        _ => Ok(()),
    }
}

/// Writes all packages of a binary to `folder`, and returns their paths.
fn write(binary: &Binary, folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let shared = shared(binary)?;
    let time = time()?;
    let machine = binary.machine;
    let packages = [
        (debian::file_name(binary), debian::package(binary, &shared, time)?),
        (format!("catraca-{VERSION}-{machine}.oci.tar"), image::archive(binary, time)?),
        (format!("catraca-{VERSION}-{machine}-linux.tar.gz"), plain(binary, &shared, time)?),
        (bill::file_name(), bill::bill(time)?),
    ];
    let mut sums = String::new();
    let mut paths = Vec::new();
    for (name, bytes) in packages {
        sums += &format!("{}  {name}\n", hex(&Sha256::digest(&bytes)));
        paths.push(put(folder, &name, &bytes)?);
    }
    paths.push(put(folder, SUMS, sums.as_bytes())?);
    Ok(paths)
}

fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// What every package has below `usr`, beside the binary: pages of the manual and completions, from the
/// binary's own definitions, and the command for git.
fn shared(binary: &Binary) -> Result<Tree> {
    let mut tree = Tree::default();
    let folder = tempfile::tempdir()?;
    binary.run(&["man", "--out", &folder.path().to_string_lossy()])?;
    for entry in std::fs::read_dir(folder.path())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let page = archive::gzip(&std::fs::read(entry.path())?)?;
        tree.file(&format!("share/man/man1/{name}.gz"), 0o644, page);
    }
    let completions = [
        ("bash", "share/bash-completion/completions/catraca"),
        ("zsh", "share/zsh/vendor-completions/_catraca"),
        ("fish", "share/fish/vendor_completions.d/catraca.fish"),
    ];
    for (shell, place) in completions {
        tree.file(place, 0o644, binary.run(&["completions", shell])?);
    }
    // What git runs for 'git catraca'.
    tree.file("bin/git-catraca", 0o755, b"#!/bin/sh\nexec catraca git \"$@\"\n".to_vec());
    Ok(tree)
}

/// What there is to read: the manual with its pictures, and what belongs to operations.
fn documents() -> Result<Tree> {
    let mut tree = Tree::default();
    for name in ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"] {
        tree.file(name, 0o644, source(name)?);
    }
    for folder in ["contrib", "docs"] {
        gather(folder, &mut tree)?;
    }
    Ok(tree)
}

/// Everything in a folder of the repository.
fn gather(folder: &str, tree: &mut Tree) -> Result<()> {
    let path = shell::root().join(folder);
    let entries =
        std::fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        match entry.file_type()?.is_dir() {
            true => gather(&name, tree)?,
            false => tree.file(&name, 0o644, source(&name)?),
        }
    }
    Ok(())
}

/// A folder to unpack anywhere.
fn plain(binary: &Binary, shared: &Tree, time: u64) -> Result<Vec<u8>> {
    let mut inner = Tree::default();
    inner.file("bin/catraca", 0o755, binary.bytes.clone());
    inner.merge("", shared);
    inner.merge("", &documents()?);
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md"] {
        inner.file(name, 0o644, source(name)?);
    }
    for name in ["catraca.service", "catraca.toml"] {
        inner.file(name, 0o644, source(&format!("packaging/{name}"))?);
    }
    let mut tree = Tree::default();
    tree.merge(&format!("catraca-{VERSION}"), &inner);
    archive::gzip(&archive::tar(&tree, time)?)
}

/// A file of the repository.
fn source(path: &str) -> Result<Vec<u8>> {
    std::fs::read(shell::root().join(path)).with_context(|| format!("cannot read {path}"))
}

/// The time that all files in packages have, in seconds since 1970: what SOURCE_DATE_EPOCH says, or that of
/// the commit.
fn time() -> Result<u64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        return text.parse().context("SOURCE_DATE_EPOCH is no number of seconds");
    }
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(shell::root());
    let output = git.output().context("git is not there; say SOURCE_DATE_EPOCH")?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.trim().parse() {
        Ok(time) => Ok(time),
        Err(_) => bail!("this is no Git repository; say SOURCE_DATE_EPOCH"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_the_whole_manual_and_every_picture_that_it_shows() {
        let documents = documents().unwrap();
        let packed: Vec<&str> = documents.files().map(|(path, _)| path).collect();
        let mut missing = Vec::new();
        for (path, content) in documents.files().filter(|(path, _)| path.ends_with(".md")) {
            let text = String::from_utf8_lossy(content);
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let pictures = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            for (link, _) in
                pictures.filter(|(link, _)| link.ends_with(".png") || link.ends_with(".svg"))
            {
                let wanted =
                    if folder.is_empty() { link.into() } else { format!("{folder}/{link}") };
                if !link.contains("://") && !link.starts_with("../") && !packed.contains(&&*wanted)
                {
                    missing.push(format!("{path}: {link}"));
                }
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
        for wanted in
            ["docs/SERVICE.md", "docs/algorithms/README.md", "contrib/grafana/catraca.json"]
        {
            assert!(packed.contains(&wanted), "{wanted}");
        }
    }
}
