//! What this project is made of: every crate with its version, licence and source.
//!
//! It is read from cargo, which needs no network for it. `deny.toml` says what may be among it.

mod expression;
#[cfg(test)]
mod published;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::shell;
pub(crate) use expression::Expression;

/// What cargo knows of all crates.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    resolve: Resolve,
    workspace_members: BTreeSet<String>,
}

/// A crate, of this workspace or of others.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: Option<String>,
    pub(crate) license: Option<String>,
    pub(crate) repository: Option<String>,
    source: Option<String>,
    #[cfg(test)]
    #[serde(flatten)]
    shown: published::Shown,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Deserialize)]
struct EdgeKind {
    kind: Option<String>,
}

impl Metadata {
    /// Of this workspace, for the system that this runs on.
    pub(crate) fn read() -> Result<Self> {
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--offline",
            "--filter-platform",
        ]);
        let output =
            cargo.arg(&target).current_dir(shell::root()).output().context("cargo is not there")?;
        if !output.status.success() {
            bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        serde_json::from_slice(&output.stdout).context("cargo metadata said something unexpected")
    }

    pub(crate) fn is_own(&self, package: &Package) -> bool {
        self.workspace_members.contains(&package.id)
    }

    /// Everything that is compiled into the crate `name` of this workspace, itself among it, by id; for each
    /// the ids of what it is made of. What only tests need is not among it.
    pub(crate) fn made_of(&self, name: &str) -> BTreeMap<&str, BTreeSet<&str>> {
        let root =
            self.packages.iter().find(|package| package.name == name && self.is_own(package));
        let mut open: Vec<&str> = root.map(|package| package.id.as_str()).into_iter().collect();
        let mut found = BTreeMap::new();
        while let Some(id) = open.pop() {
            if found.contains_key(id) {
                continue;
            }
            let nodes = self.resolve.nodes.iter().filter(|node| node.id == id);
            let is_used = |edge: &&Edge| {
                edge.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev"))
            };
            let edges = nodes.flat_map(|node| node.deps.iter()).filter(is_used);
            let needed: BTreeSet<&str> = edges.map(|edge| edge.pkg.as_str()).collect();
            open.extend(&needed);
            found.insert(id, needed);
        }
        found
    }

    pub(crate) fn package(&self, id: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.id == id)
    }
}

/// Fails if something is not as deny.toml says.
pub(crate) fn check() -> Result<()> {
    let broken = rules::broken(&Metadata::read()?)?;
    if !broken.is_empty() {
        bail!(
            "this may not be a part of the project, or deny.toml is not right:\n{}",
            broken.join("\n")
        );
    }
    Ok(())
}
