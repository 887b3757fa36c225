//! What deny.toml allows: licences, sources, and crates in several versions.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{Expression, Metadata, Package};
use crate::shell;

/// What is not as deny.toml says, a line each.
pub(super) fn broken(metadata: &Metadata) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(shell::root().join("deny.toml"))
        .context("deny.toml is not there")?;
    Ok(Rules::parse(&text)?.broken_by(&metadata.packages))
}

/// What deny.toml allows.
#[derive(Deserialize)]
struct Rules {
    licenses: Licences,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licences {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Double>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Double {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: BTreeSet<String>,
}

impl Rules {
    fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context("deny.toml cannot be read")
    }

    /// What is not as the rules say, a line each.
    fn broken_by(&self, packages: &[Package]) -> Vec<String> {
        let mut broken = self.licences(packages);
        broken.extend(self.doubles(packages));
        for package in packages {
            let is_known = |source: &String| {
                let place = source.strip_prefix("registry+").unwrap_or(source);
                self.sources.allow_registry.contains(place)
            };
            if let Some(source) = package.source.as_ref().filter(|source| !is_known(source)) {
                broken.push(format!("{}: comes from {source}", package.name));
            }
        }
        broken
    }

    fn licences(&self, packages: &[Package]) -> Vec<String> {
        let mut broken = Vec::new();
        for Package { name, license, .. } in packages {
            match license.as_deref().map(Expression::parse) {
                None => broken.push(format!("{name}: has no licence")),
                Some(Err(error)) => broken.push(format!("{name}: {error}")),
                Some(Ok(licence)) if !licence.is_met_by(&self.licenses.allow) => {
                    broken.push(format!("{name}: may not be used under '{licence}'"));
                }
                Some(Ok(_)) => {}
            }
        }
        broken
    }

    /// One version of each crate is for nothing; each other one has to be listed, with its reason.
    fn doubles(&self, packages: &[Package]) -> Vec<String> {
        let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for package in packages {
            versions.entry(&package.name).or_default().insert(&package.version);
        }
        let mut broken = Vec::new();
        let mut listed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for double in &self.bans.skip {
            let (name, version) = double.name.split_once('@').unwrap_or((&double.name, ""));
            listed.entry(name).or_default().insert(version);
            if double.reason.is_empty() {
                broken.push(format!("{}: deny.toml lists it without a reason", double.name));
            }
            if !versions.get(name).is_some_and(|all| all.len() > 1 && all.contains(version)) {
                broken.push(format!(
                    "{}: is no double any more; take it from deny.toml",
                    double.name
                ));
            }
        }
        for (name, versions) in &versions {
            let known = listed.get(name);
            let unlisted =
                |version: &&&str| !known.is_some_and(|listed| listed.contains(**version));
            if versions.iter().filter(unlisted).count() > 1 {
                let versions: Vec<&str> = versions.iter().copied().collect();
                broken.push(format!(
                    "{name}: is there in the versions {}; use one, or list all but one in deny.toml with the reason",
                    versions.join(" and ")
                ));
            }
        }
        broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, license: &str) -> Package {
        let text = serde_json::json!({
            "id": format!("{name}@{version}"), "name": name, "version": version, "license": license,
            "source": "registry+https://github.com/rust-lang/crates.io-index", "keywords": [],
            "categories": [], "manifest_path": "", "dependencies": [],
        });
        serde_json::from_value(text).unwrap()
    }

    fn rules(skip: &str) -> Rules {
        let text = format!(
            "[licenses]\nallow = [\"MIT\"]\n[bans]\nskip = [{skip}]\n[sources]\n\
             allow-registry = [\"https://github.com/rust-lang/crates.io-index\"]\n"
        );
        Rules::parse(&text).unwrap()
    }

    #[test]
    fn everything_that_is_used_may_be_used_comes_once_and_from_where_it_should() {
        let metadata = Metadata::read().unwrap();
        assert!(metadata.packages.len() > 100);
        let broken = broken(&metadata).unwrap();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }

    #[test]
    fn licences_sources_and_doubles_that_nobody_allowed_are_told() {
        let of_git = Package {
            source: Some("git+https://e.org/d".to_string()),
            ..package("d", "1.0.0", "MIT")
        };
        let packages = [
            package("a", "1.0.0", "MIT OR GPL-3.0-only"),
            package("b", "1.0.0", "MIT AND GPL-3.0-only"),
            package("c", "1.0.0", "MIT"),
            package("c", "2.0.0", "MIT"),
            of_git,
        ];
        let expected = [
            "b: may not be used under 'MIT AND GPL-3.0-only'",
            "c: is there in the versions 1.0.0 and 2.0.0; use one, or list all but one in deny.toml with the \
             reason",
            "d: comes from git+https://e.org/d",
        ];
        assert_eq!(rules("").broken_by(&packages), expected);
        let listed = rules("{ crate = \"c@1.0.0\", reason = \"old\" }");
        assert_eq!(listed.doubles(&packages), [""; 0]);
        let stale = rules("{ crate = \"c@1.0.0\", reason = \"\" }").doubles(&packages[3..]);
        assert_eq!(stale.len(), 2, "{stale:?}");
    }
}
