//! Whether copies of files are as new as those of the remote.

use std::collections::BTreeSet;

use catraca_node::Fold;

use super::repository::{Repository, by_zeros, line_if_any, run};
use crate::failure::Failure;

pub(super) enum Copies {
    Current,
    /// Of these the remote has something newer.
    Stale(Vec<String>),
    /// The remote cannot be asked, and this is why.
    Unknown(String),
}

/// Fetches from the remote, and compares. A repository without a remote or without a commit has nothing
/// that could be newer. `fold` says which paths are the same file, however the commits of the remote write them.
pub(super) fn look(
    repository: &Repository,
    paths: &[String],
    fold: Fold,
) -> Result<Copies, Failure> {
    let Some(remote) = remote(repository) else { return Ok(Copies::Current) };
    if line_if_any(repository.git().args(["rev-parse", "--verify", "--quiet", "HEAD"])).is_none() {
        return Ok(Copies::Current);
    }
    let mut fetch = repository.git();
    fetch.args(["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--", &remote]);
    if let Err(failure) = run(&mut fetch) {
        return match failure {
            Failure::Input(why) => Ok(Copies::Unknown(why)),
            other => Err(other),
        };
    }
    let mut newer: BTreeSet<String> = BTreeSet::new();
    for branch in branches(repository, &remote) {
        let mut base = repository.git();
        base.args(["merge-base", "HEAD", &branch]);
        // Histories that have nothing in common are not compared.
        let Some(base) = line_if_any(&mut base) else { continue };
        let mut diff = repository.git();
        diff.args(["diff-tree", "-r", "-z", "--no-renames", "--name-only", &base, &branch, "--"]);
        let changed = run(&mut diff)?;
        newer.extend(by_zeros(&changed).map(|path| fold.path(&String::from_utf8_lossy(path))));
    }
    let is_newer = |path: &&String| newer.contains(&fold.path(path));
    let found: Vec<String> = paths.iter().filter(is_newer).cloned().collect();
    Ok(if found.is_empty() { Copies::Current } else { Copies::Stale(found) })
}

/// What to do about it.
pub(super) fn words(found: &[String]) -> String {
    let files = found.join("', '");
    format!(
        "your copy of '{files}' is older than what the remote has: pull first, or say --even-if-stale"
    )
}

/// The remote of the branch, or else the one that git would take.
pub(super) fn remote(repository: &Repository) -> Option<String> {
    let mut branch = repository.git();
    let branch = line_if_any(branch.args(["symbolic-ref", "--quiet", "--short", "HEAD"]));
    let of_branch = branch.and_then(|branch| {
        repository.config.value(&format!("branch.{branch}.remote")).map(String::from)
    });
    let remotes: Vec<&str> =
        repository.config.subsections("remote", "url").map(|(remote, _)| remote).collect();
    let usual = || {
        let origin = remotes.iter().find(|remote| **remote == "origin");
        origin.or(remotes.first()).map(ToString::to_string)
    };
    of_branch.filter(|remote| remotes.contains(&remote.as_str())).or_else(usual)
}

/// The branches of the remote that matter: the one that is pulled from, and the default one.
fn branches(repository: &Repository, remote: &str) -> Vec<String> {
    let resolved = |name: String| {
        line_if_any(repository.git().args(["rev-parse", "--verify", "--quiet", &name]))
    };
    let upstream = resolved("@{upstream}".to_string());
    let default = ["HEAD", "main", "master"]
        .iter()
        .find_map(|branch| resolved(format!("refs/remotes/{remote}/{branch}")));
    let mut branches: Vec<String> = upstream.into_iter().chain(default).collect();
    branches.dedup();
    branches
}
