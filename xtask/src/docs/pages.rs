//! Which Markdown files there are, and which of them the manual has as pages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::links::{links, meant};

/// The order of the pages of the manual.
pub(super) const SUMMARY: &str = "docs/SUMMARY.md";

/// Folders whose Markdown is no page: what was built, what others have made, and what is written elsewhere.
const NO_PAGES: [&str; 3] = ["target", "node_modules", "template"];

/// All Markdown files of the repository, seen from its root, in order.
pub(super) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(root.join(&folder));
        for entry in entries.with_context(|| format!("cannot list {}", folder.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            if entry.file_type()?.is_dir() {
                let is_hidden = name.starts_with('.') && name != ".github";
                if !is_hidden && !NO_PAGES.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if name.ends_with(".md") {
                found.insert(path);
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// The pages of the manual, in its order, seen from the root of the repository.
pub(super) fn listed(summary: &str) -> Vec<PathBuf> {
    let targets = links(summary).into_iter().map(|link| link.target);
    targets.map(|target| meant(Path::new(SUMMARY), &target).0).collect()
}

/// Markdown files that belong into the manual and are not in its summary, or are there twice.
pub(super) fn problems(summary: &str, files: &[PathBuf]) -> Vec<String> {
    let listed = listed(summary);
    let mut problems = Vec::new();
    for file in files {
        let count = listed.iter().filter(|page| *page == file).count();
        let is_page = !file.starts_with(".github") && file != Path::new(SUMMARY);
        match (is_page, count) {
            (true, 0) => problems.push(format!("{}: it is not in {SUMMARY}", file.display())),
            (_, 2..) => problems.push(format!("{}: it is twice in {SUMMARY}", file.display())),
            _ => {}
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_forgotten_or_there_twice_are_told() {
        let files =
            ["README.md", ".github/x.md", "docs/A.md", "docs/B.md", SUMMARY].map(PathBuf::from);
        let summary = "[Read](../README.md)\n- [B](B.md)\n- [Again](B.md)\n";
        let expected = [
            "docs/A.md: it is not in docs/SUMMARY.md",
            "docs/B.md: it is twice in docs/SUMMARY.md",
        ];
        assert_eq!(problems(summary, &files), expected);
    }

    #[test]
    fn files_are_found_in_all_folders_but_those_of_what_was_built() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.md", "b/c.md", "b/d.txt", "target/e.md", ".git/f.md", ".github/g.md"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let expected = [".github/g.md", "a.md", "b/c.md"].map(PathBuf::from);
        assert_eq!(files(folder.path()).unwrap(), expected);
    }
}
