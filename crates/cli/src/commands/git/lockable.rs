//! Files that are read-only unless they are locked: those with the attribute `lockable`.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::config::is_true;
use super::repository::{Repository, by_zeros, run_with};

/// These files are the user's: they become writable, if they were made read-only. What cannot be changed
/// stays as it is: it is the user's to change, and the lock is had all the same.
pub(super) fn is_held(repository: &Repository, paths: &[String]) {
    set(repository, paths, |mode| mode | 0o200);
}

/// These files are not the user's any more: they become read-only, if they are meant to be.
pub(super) fn is_released(repository: &Repository, paths: &[String]) {
    let key = "lfs.setlockablereadonly";
    let said = repository.config.value(key).map(String::from);
    let said = std::env::var("GIT_LFS_SET_LOCKABLE_READONLY").ok().or(said);
    if said.is_none_or(|said| is_true(&said)) {
        set(repository, paths, |mode| mode & !0o222);
    }
}

fn set(repository: &Repository, paths: &[String], change: impl Fn(u32) -> u32) {
    let lockable = of(repository, paths);
    if lockable.is_empty() {
        return;
    }
    for path in &lockable {
        let file = repository.root().join(path);
        let Ok(about) = file.symlink_metadata() else { continue };
        if about.is_file() {
            let mode = PermissionsExt::from_mode(change(about.permissions().mode()));
            std::fs::set_permissions(file, mode).ok();
        }
    }
    tell_git_lfs(repository);
}

/// Those of the paths that are lockable.
pub(super) fn of(repository: &Repository, paths: &[String]) -> Vec<String> {
    let mut input = Vec::new();
    for path in paths {
        input.extend(path.bytes().chain([0]));
    }
    let mut command = repository.git();
    command.args(["check-attr", "-z", "--stdin", "lockable"]);
    let Ok(answer) = run_with(&mut command, input) else { return Vec::new() };
    let words: Vec<&[u8]> = by_zeros(&answer).collect();
    let is_lockable = |words: &&[&[u8]]| !matches!(words[2], b"unspecified" | b"unset");
    let lockable = words.chunks_exact(3).filter(is_lockable);
    lockable.map(|words| String::from_utf8_lossy(words[0]).into_owned()).collect()
}

/// Git LFS keeps a list of the user's locks, by which its hooks make files read-only: it is told to look
/// at the server anew.
fn tell_git_lfs(repository: &Repository) {
    if !repository.common.join("lfs").is_dir() {
        return;
    }
    let mut command = repository.git();
    command.args(["lfs", "locks", "--verify"]).env("GIT_TERMINAL_PROMPT", "0");
    command.env("GIT_ASKPASS", "").env_remove("GIT_LITERAL_PATHSPECS");
    // Without Git LFS there is nothing to be told; the lock is had in any case.
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().ok();
}
