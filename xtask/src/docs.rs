//! `cargo xtask docs`: the manual.
//!
//! Its texts are the Markdown files of the repository, in the order of docs/SUMMARY.md. The pages of the
//! algorithms are written here, from the headers of their files and from runs. mdBook makes a book of it
//! all, which needs no network: neither while it is made, nor while it is read.

mod book;
mod catalogue;
mod links;
mod measured;
mod pages;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Writes nothing; fails if a page that is written by this chore is stale, if a link leads nowhere, or
    /// if a page is not in docs/SUMMARY.md. Needs no mdBook; where it is, the book is made and looked at too.
    #[arg(long)]
    check: bool,
    /// Where the book goes; what is there is replaced.
    #[arg(long, value_name = "DIR", default_value = "target/book", conflicts_with = "check")]
    out: PathBuf,
}

/// Writes the pages of the algorithms, checks all pages, and makes the book.
pub(crate) fn all(options: &Options) -> Result<()> {
    if options.check {
        return check();
    }
    let root = shell::root();
    let written = catalogue::files()?;
    for (path, text) in &written {
        put(&root.join(path), text)?;
    }
    for path in left_over(&root, &written)? {
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    fail_with(problems(&root)?)?;
    book::build(&root, &options.out)
}

/// Fails if something of the manual is stale or leads nowhere.
pub(crate) fn check() -> Result<()> {
    println!("$ cargo xtask docs --check");
    let root = shell::root();
    stale(&root, &catalogue::files()?)?;
    fail_with(problems(&root)?)?;
    if !book::check(&root)? {
        println!("the book was left out: mdBook is not here, and 'cargo xtask docs' installs it");
    }
    Ok(())
}

/// What is wrong with the pages, a line each: links that lead nowhere, pages that the summary forgets.
fn problems(root: &Path) -> Result<Vec<String>> {
    let files = pages::files(root)?;
    let mut problems = links::problems(root, &files)?;
    let summary = std::fs::read_to_string(root.join(pages::SUMMARY));
    let summary = summary.with_context(|| format!("cannot read {}", pages::SUMMARY))?;
    problems.extend(pages::problems(&summary, &files));
    Ok(problems)
}

fn fail_with(problems: Vec<String>) -> Result<()> {
    if !problems.is_empty() {
        bail!("the manual is not whole:\n{}", problems.join("\n"));
    }
    Ok(())
}

/// Fails if a file that this chore writes is not as it would be written, or is there without being written.
fn stale(root: &Path, written: &[(PathBuf, String)]) -> Result<()> {
    for (path, text) in written {
        let there = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        if there != *text {
            let differs = there.lines().zip(text.lines()).position(|(old, new)| old != new);
            let line = differs.unwrap_or(there.lines().count()) + 1;
            bail!("{} is stale from line {line} on; run 'cargo xtask docs'", path.display());
        }
    }
    match left_over(root, written)?.first() {
        Some(path) => bail!("nobody writes {} any more; run 'cargo xtask docs'", path.display()),
        None => Ok(()),
    }
}

/// Files in the folder of the algorithms that are of none.
fn left_over(root: &Path, written: &[(PathBuf, String)]) -> Result<Vec<PathBuf>> {
    let folder = root.join(catalogue::FOLDER);
    let mut left = Vec::new();
    for entry in folder.read_dir().into_iter().flatten() {
        let path = entry?.path();
        if !written.iter().any(|(known, _)| root.join(known) == path) {
            left.push(path);
        }
    }
    Ok(left)
}

fn put(path: &Path, text: &str) -> Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_of_the_repository_leads_somewhere_and_every_page_is_in_the_summary() {
        let problems = problems(&shell::root()).unwrap();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn a_page_that_says_something_else_is_stale_and_so_is_one_that_nobody_writes() {
        let folder = tempfile::tempdir().unwrap();
        let page = |name: &str| Path::new(catalogue::FOLDER).join(name);
        let written = [(page("a.md"), "one\ntwo\n".to_string())];
        let said = |written: &[_]| stale(folder.path(), written).unwrap_err().to_string();
        assert!(said(&written).starts_with("docs/algorithms/a.md is stale from line 1 on"));
        put(&folder.path().join(page("a.md")), "one\nthree\n").unwrap();
        assert!(said(&written).contains("from line 2 on"));
        put(&folder.path().join(page("a.md")), "one\ntwo\n").unwrap();
        stale(folder.path(), &written).unwrap();
        put(&folder.path().join(page("b.svg")), "").unwrap();
        assert!(said(&written).contains("nobody writes"));
    }
}
