//! Paths that users give, as the repository calls them.

use std::path::{Component, Path};

use super::repository::Repository;
use crate::failure::Failure;

/// The paths of files, from the top of the repository on, each once.
pub(super) fn of_files(repository: &Repository, given: &[String]) -> Result<Vec<String>, Failure> {
    let mut paths = Vec::new();
    for text in given {
        let path = within(repository, text)?;
        if path.is_empty() || repository.root().join(&path).is_dir() && !is_link(repository, &path)
        {
            return Err(Failure::input(format!(
                "'{text}' is a folder: a lock is for a file. Name the files, or list what is locked \
                 there: catraca git locks --under '{text}'"
            )));
        }
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    Ok(paths)
}

fn is_link(repository: &Repository, path: &str) -> bool {
    repository.root().join(path).is_symlink()
}

/// A path within the repository, from its top on; empty for the top itself.
pub(super) fn within(repository: &Repository, text: &str) -> Result<String, Failure> {
    let outside = || {
        let top = repository.root().display();
        Failure::input(format!("'{text}' is not in this repository, which is at '{top}'"))
    };
    if text.is_empty() {
        return Err(Failure::input("a path is empty: name a file"));
    }
    if text.contains(char::is_control) {
        return Err(Failure::input(format!("'{text}' has a character that no path of a lock has")));
    }
    let path = Path::new(text);
    let path = match path.is_absolute() {
        true => below_top(repository.root(), path).ok_or_else(outside)?,
        false => Path::new(&repository.prefix).join(path),
    };
    let mut parts: Vec<&str> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str().ok_or_else(outside)?),
            Component::ParentDir => drop(parts.pop().ok_or_else(outside)?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    if parts.first() == Some(&".git") {
        return Err(Failure::input(format!("'{text}' belongs to git itself, and to no commit")));
    }
    Ok(parts.join("/"))
}

/// The rest of an absolute path, whichever way it names the top.
fn below_top(top: &Path, path: &Path) -> Option<std::path::PathBuf> {
    if let Ok(rest) = path.strip_prefix(top) {
        return Some(rest.to_path_buf());
    }
    // The folder may be reached by a link; the file itself may be one, and need not be there.
    let folder = path.parent()?.canonicalize().ok()?;
    let rest = folder.strip_prefix(top.canonicalize().ok()?).ok()?.join(path.file_name()?);
    Some(rest)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::commands::git::config::Config;

    fn repository(prefix: &str) -> Repository {
        Repository {
            top: Some(PathBuf::from("/nowhere/game")),
            prefix: prefix.to_string(),
            common: PathBuf::from("/nowhere/game/.git"),
            hooks: PathBuf::from("/nowhere/game/.git/hooks"),
            config: Config::default(),
        }
    }

    #[test]
    fn paths_are_seen_from_the_top_wherever_the_command_runs() {
        let named = |prefix: &str, text: &str| within(&repository(prefix), text).ok();
        let is = |prefix: &str, text: &str, path: &str| {
            assert_eq!(named(prefix, text).as_deref(), Some(path), "{prefix} {text}");
        };
        is("", "a.psd", "a.psd");
        is("art/", "a.psd", "art/a.psd");
        is("art/", "./x/../b c.psd", "art/b c.psd");
        is("art/", "../code/-x'\"ü", "code/-x'\"ü");
        is("art/", "/nowhere/game/top.bin", "top.bin");
        is("art/", ".", "art");
        is("", "a\\b", "a\\b");
        for text in ["../../x", "/etc/passwd", "", "a\nb", "../.git/config"] {
            assert_eq!(named("art/", text), None, "{text}");
        }
    }
}
