//! `catraca git init`: sets a repository up for locks.

use std::io::Write;
use std::path::Path;

use super::address::{Address, without_secrets};
use super::config::LFS_CONFIG;
use super::hook_files::{OF_BARE, OF_CLONES};
use super::repository::{Repository, run, succeeds};
use super::server::ServerArguments;
use crate::Outcome;
use crate::failure::Failure;
use crate::output::{PendingFile, Stdout, reason};

/// Sets up a clone, or a bare repository, for locks, and shows what it changed.
///
/// In a clone: the server in .lfsconfig, files that are read-only unless they are locked in .gitattributes,
/// and hooks. Commit the two files, and everybody has them; everybody says it once in each clone for the
/// hooks. In a bare repository: the server in its configuration, and the hooks that refuse pushes and
/// release locks. A second time changes nothing. Hooks that are there are kept, and run after ours.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    /// Files that are locked before they are changed, as .gitattributes writes them: '*.psd', 'art/*.blend'.
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,
    /// Ask the server for locks only, and leave the objects of Git LFS where they are: for repositories at
    /// a forge that is reached by SSH.
    #[arg(long)]
    locks_only: bool,
}

const HELP: &str = "\
A bare repository remembers the file of --token-file as well, for its hooks.

Examples:
  catraca git init --url https://locks.example.org:7880/git/art/game '*.psd' '*.blend'
  catraca git init                     # in a clone of it: the hooks
  catraca git init --url http://127.0.0.1:7880/git/art/game --token-file /etc/catraca/hook.token";

/// The remote that Git LFS asks for locks, where it asks another one for objects.
const LOCKS_REMOTE: &str = "locks";
const ATTRIBUTES: &str = ".gitattributes";

impl Arguments {
    pub(super) fn run(self, server: &ServerArguments) -> Outcome {
        let repository = Repository::find()?;
        let url = match &server.url {
            Some(url) => {
                let address = Address::parse(url).map_err(Failure::Input)?;
                if repository.top.is_some()
                    && (address.user.is_some() || address.password.is_some())
                {
                    return Err(Failure::input(format!(
                        "{LFS_CONFIG} is for everybody: leave name and password out of '{}'. Git asks for \
                         them, and a credential helper keeps them",
                        without_secrets(url)
                    )));
                }
                Some(url.trim_end_matches('/').to_string())
            }
            None => None,
        };
        if url.is_none() && server.known(&repository.config).is_none() {
            return Err(Failure::input(
                "which server? say --url https://HOST:PORT/git/TEAM/REPOSITORY, at the HTTP port of a node",
            ));
        }
        let program = std::env::current_exe().unwrap_or_else(|_| "catraca".into());
        let changes = match &repository.top {
            Some(top) => self.clone(&repository, top, url.as_deref(), &program)?,
            None => self.bare(&repository, server, url.as_deref(), &program)?,
        };
        tell(&repository, &changes)
    }

    fn clone(
        &self,
        repository: &Repository,
        top: &Path,
        url: Option<&str>,
        program: &Path,
    ) -> Result<Vec<String>, Failure> {
        let mut changes = Vec::new();
        if let Some(url) = url {
            let remote_key = format!("remote.{LOCKS_REMOTE}.lfsurl");
            let key = if self.locks_only { remote_key.as_str() } else { "lfs.url" };
            changes.extend(shared(repository, top, key, url)?);
            changes.extend(shared(repository, top, "lfs.locksverify", "true")?);
        }
        let is_asked = repository.config.shared_value(&format!("remote.{LOCKS_REMOTE}.lfsurl"));
        if self.locks_only || is_asked.is_some() {
            // Git LFS reads it from git's own configuration only.
            changes.extend(own(repository, "remote.lfspushdefault", LOCKS_REMOTE)?);
        }
        changes.extend(attributes(top, &self.patterns)?);
        let has_lfs = succeeds(repository.git().args(["lfs", "version"]));
        if has_lfs && repository.config.value("filter.lfs.process").is_none() {
            run(repository.git().args(["lfs", "install", "--local", "--skip-repo"]))?;
            changes.push(
                "git's configuration: filter.lfs, as 'git lfs install --local' sets it".into(),
            );
        }
        for hook in &OF_CLONES {
            changes.extend(hook.install(&repository.hooks, program)?);
        }
        if has_lfs {
            // What the next checkout would do: lockable files are read-only. Nothing is lost without it.
            succeeds(repository.git().args(["lfs", "post-checkout", "HEAD", "HEAD", "0"]));
        }
        Ok(changes)
    }

    fn bare(
        &self,
        repository: &Repository,
        server: &ServerArguments,
        url: Option<&str>,
        program: &Path,
    ) -> Result<Vec<String>, Failure> {
        if !self.patterns.is_empty() || self.locks_only {
            return Err(Failure::input(
                "this is a bare repository, without files: patterns and --locks-only are for its clones",
            ));
        }
        let mut changes = Vec::new();
        if let Some(url) = url {
            changes.extend(own(repository, "catraca.url", url)?);
        }
        if let Some(file) = &server.token_file {
            let file = file.canonicalize().map_err(|error| {
                let why = reason(&error);
                Failure::input(format!("--token-file: cannot read '{}': {why}", file.display()))
            })?;
            changes.extend(own(repository, "catraca.tokenFile", &file.to_string_lossy())?);
        }
        for hook in &OF_BARE {
            changes.extend(hook.install(&repository.hooks, program)?);
        }
        Ok(changes)
    }
}

/// Sets a value of git's own configuration, of this repository alone.
fn own(repository: &Repository, key: &str, value: &str) -> Result<Option<String>, Failure> {
    let there = repository.config.value(&key.to_lowercase());
    if there == Some(value) {
        return Ok(None);
    }
    run(repository.git().args(["config", "--local", key, value]))?;
    Ok(Some(format!("git's configuration: {key} = {value}{}", was(there))))
}

/// Sets a value of the file that everybody gets.
fn shared(
    repository: &Repository,
    top: &Path,
    key: &str,
    value: &str,
) -> Result<Option<String>, Failure> {
    let there = repository.config.shared_value(key);
    if there == Some(value) {
        return Ok(None);
    }
    run(repository.git().args(["config", "--file"]).arg(top.join(LFS_CONFIG)).args([key, value]))?;
    Ok(Some(format!("{LFS_CONFIG}: {key} = {value}{}", was(there))))
}

fn was(there: Option<&str>) -> String {
    there.map_or(String::new(), |there| format!(" (was {})", without_secrets(there)))
}

/// Adds a line for each pattern that has none.
fn attributes(top: &Path, patterns: &[String]) -> Result<Vec<String>, Failure> {
    let file = top.join(ATTRIBUTES);
    let mut text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(Failure::input(format!("cannot read {ATTRIBUTES}: {}", reason(&error))));
        }
    };
    let mut changes = Vec::new();
    for pattern in patterns {
        if pattern.is_empty() || pattern.starts_with('!') || pattern.contains(char::is_control) {
            return Err(Failure::input(format!("'{pattern}' is no pattern for {ATTRIBUTES}")));
        }
        let pattern = written(pattern);
        if is_lockable(&text, &pattern) {
            continue;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &format!("{pattern} lockable\n");
        changes.push(format!("{ATTRIBUTES}: {pattern} lockable"));
    }
    if !changes.is_empty() {
        PendingFile::create(&file)?.finish_with(text.as_bytes())?;
    }
    Ok(changes)
}

/// A pattern as the file has it: in quotes if it has blanks or looks like something else.
fn written(pattern: &str) -> String {
    let is_plain = !pattern.contains([' ', '"', '\\']) && !pattern.starts_with(['#', '[']);
    match is_plain {
        true => pattern.to_string(),
        false => format!("\"{}\"", pattern.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// Whether a line says so of the pattern already.
fn is_lockable(text: &str, pattern: &str) -> bool {
    let rest = |line: &str| Some(line.trim().strip_prefix(pattern)?.to_string());
    let mut lines = text.lines().filter_map(rest);
    lines.any(|rest| {
        rest.starts_with(char::is_whitespace) && rest.split_whitespace().any(|it| it == "lockable")
    })
}

fn tell(repository: &Repository, changes: &[String]) -> Outcome {
    let mut out = Stdout::lock();
    if changes.is_empty() {
        writeln!(out, "Nothing to change: this repository is set up.")?;
    } else {
        writeln!(out, "Changed:")?;
        for change in changes {
            writeln!(out, "  {change}")?;
        }
    }
    let files: Vec<&str> = [LFS_CONFIG, ATTRIBUTES]
        .into_iter()
        .filter(|file| changes.iter().any(|change| change.starts_with(&format!("{file}: "))))
        .collect();
    if !files.is_empty() {
        let files = files.join(" ");
        writeln!(out, "Commit it, so that everybody has it: git add {files} && git commit")?;
    }
    let place = if repository.top.is_some() { "" } else { ", here and in a clone" };
    writeln!(out, "'catraca git doctor' tells whether everything works{place}.")?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_added_once_and_nothing_that_is_there_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(ATTRIBUTES);
        std::fs::write(&file, "*.psd filter=lfs -text lockable\n*.png -lockable\n*.txt text")
            .unwrap();
        let patterns = ["*.psd", "*.png", "a b/*.x", "#odd", "*.t"].map(String::from);
        let changes = attributes(folder.path(), &patterns).unwrap();
        assert_eq!(changes.len(), 4);
        let text = std::fs::read_to_string(&file).unwrap();
        let expected =
            "*.txt text\n*.png lockable\n\"a b/*.x\" lockable\n\"#odd\" lockable\n*.t lockable\n";
        assert!(text.ends_with(expected), "{text}");
        assert!(attributes(folder.path(), &patterns).unwrap().is_empty());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert!(attributes(folder.path(), &["!x".to_string()]).is_err());
    }
}
