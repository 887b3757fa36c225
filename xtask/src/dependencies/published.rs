//! The crates that are published: whether they say what a registry wants to know.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;

use super::{Metadata, Package};
use crate::shell;

/// What a registry shows of a crate, and what it checks.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Shown {
    readme: Option<String>,
    rust_version: Option<String>,
    keywords: Vec<String>,
    categories: Vec<String>,
    /// The registries that it may be published to: all, if it does not say.
    publish: Option<Vec<String>>,
    manifest_path: PathBuf,
    dependencies: Vec<Wanted>,
}

/// What a crate says of another one that it needs.
#[derive(Clone, Debug, Deserialize)]
struct Wanted {
    name: String,
    req: String,
    kind: Option<String>,
}

/// Categories of crates.io (https://crates.io/category_slugs) that fit this project. It drops others with a
/// warning, so a mistake would not be noticed.
const CATEGORIES: &[&str] = &[
    "algorithms",
    "command-line-utilities",
    "concurrency",
    "database",
    "development-tools::debugging",
    "development-tools::testing",
    "network-programming",
    "no-std",
    "science",
    "simulation",
    "visualization",
];

/// The crates of this workspace that are published.
fn published(metadata: &Metadata) -> impl Iterator<Item = &Package> {
    let is_published =
        |package: &&Package| metadata.is_own(package) && package.shown.publish.is_none();
    metadata.packages.iter().filter(is_published)
}

#[test]
fn every_crate_that_is_published_says_what_a_registry_shows() {
    let metadata = Metadata::read().unwrap();
    let root = shell::root();
    let versions: BTreeSet<&str> = published(&metadata).map(|one| one.version.as_str()).collect();
    assert_eq!(versions.len(), 1, "all crates have one version");
    assert!(published(&metadata).count() > 10);
    for package in published(&metadata) {
        let name = &package.name;
        assert_eq!(package.license.as_deref(), Some("MIT OR Apache-2.0"), "{name}");
        assert!(package.description.as_ref().is_some_and(|text| text.len() > 20), "{name}");
        assert!(package.shown.readme.is_some() && package.shown.rust_version.is_some(), "{name}");
        assert!(
            (3..=5).contains(&package.shown.keywords.len()),
            "{name}: {:?}",
            package.shown.keywords
        );
        let is_keyword = |word: &String| {
            word.len() <= 20
                && word.starts_with(|c: char| c.is_ascii_alphanumeric())
                && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_+".contains(c))
        };
        assert!(
            package.shown.keywords.iter().all(is_keyword),
            "{name}: {:?}",
            package.shown.keywords
        );
        assert!(!package.shown.categories.is_empty(), "{name}");
        let unknown = package.shown.categories.iter().find(|it| !CATEGORIES.contains(&it.as_str()));
        assert_eq!(unknown, None, "{name}: crates.io does not know this category");
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let own = package.shown.manifest_path.with_file_name(licence);
            let (own, ours) =
                (std::fs::read(own).unwrap(), std::fs::read(root.join(licence)).unwrap());
            assert!(own == ours, "{name} has another {licence}");
        }
    }
}

#[test]
fn crates_want_each_other_in_the_version_that_they_have() {
    let metadata = Metadata::read().unwrap();
    let own: BTreeMap<&str, &str> =
        published(&metadata).map(|one| (one.name.as_str(), one.version.as_str())).collect();
    for package in published(&metadata) {
        for wanted in &package.shown.dependencies {
            let Some(version) = own.get(wanted.name.as_str()) else { continue };
            let says = wanted.req.trim_start_matches('^');
            assert_eq!(says, *version, "{} wants {}: see Cargo.toml", package.name, wanted.name);
        }
        let tests = |wanted: &&Wanted| wanted.kind.as_deref() != Some("dev");
        let needed = package.shown.dependencies.iter().filter(tests);
        let unpublished = needed.filter(|wanted| wanted.name == "xtask").count();
        assert_eq!(unpublished, 0, "{} needs what nobody publishes", package.name);
    }
}
