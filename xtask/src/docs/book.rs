//! The manual as a book: what mdBook is given, and mdBook itself.
//!
//! Texts stay where they are in the repository, and their links are right there. The book is made of a
//! copy with the same folders, so they are right in it too; what a page refers to and is no page itself,
//! such as a scenario or a script, is copied beside it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::links::{Link, is_elsewhere, links, meant};
use super::pages::{SUMMARY, listed};
use crate::shell::{self, run_with, succeeds};

/// The release of mdBook that the manual is made with.
const MDBOOK: &str = "0.5.4";
/// What is said of the book: docs/book.toml.
const SETTINGS: &str = "docs/book.toml";
/// Files beside the settings that they refer to.
const BESIDE: [&str; 1] = ["docs/book.css"];

/// Writes the book to `out`.
pub(super) fn build(root: &Path, out: &Path) -> Result<()> {
    let out = std::path::absolute(out)?;
    if !may_be_replaced(&out)? {
        bail!(
            "{} has something else than a book in it; say another folder with --out",
            out.display()
        );
    }
    let mdbook = mdbook()?;
    let staged = shell::built("docs");
    stage(root, &staged)?;
    let status = std::process::Command::new(&mdbook)
        .arg("build")
        .arg(&staged)
        .arg("--dest-dir")
        .arg(&out)
        .env("MDBOOK_LOG", "warn")
        .status();
    let status = status.with_context(|| format!("{} could not be started", mdbook.display()))?;
    if !status.success() {
        bail!(
            "mdBook could not make the manual ({status}); what it was given is in {}",
            staged.display()
        );
    }
    println!("the manual: {}", out.join("index.html").display());
    Ok(())
}

/// Whether a folder is not there, is empty, or has a book in it: mdBook removes what it finds.
fn may_be_replaced(folder: &Path) -> Result<bool> {
    /// What every book of mdBook has.
    const SIGN: &str = "toc.html";
    let entries = match folder.read_dir() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        entries => entries.with_context(|| format!("cannot list {}", folder.display()))?,
    };
    Ok(entries.count() == 0 || folder.join(SIGN).is_file())
}

/// Where mdBook is: on the PATH in this release, or else installed for this repository alone.
fn mdbook() -> Result<PathBuf> {
    let version = format!("v{MDBOOK}");
    if said("mdbook").is_some_and(|said| said.contains(&version)) {
        return Ok(PathBuf::from("mdbook"));
    }
    let own = shell::built("tools/bin/mdbook");
    let path = own.to_string_lossy().into_owned();
    if said(&path).is_some_and(|said| said.contains(&version)) {
        return Ok(own);
    }
    println!(
        "mdBook {MDBOOK} is not here: it is downloaded and compiled once, which takes a few minutes of \
         one core"
    );
    let folder = shell::built("tools");
    // Hardly optimised it is quick enough, and compiled sooner. What serves and watches is left out.
    let command = format!(
        "cargo install mdbook --version {MDBOOK} --locked --no-default-features --features search --debug \
         --root {}",
        folder.display()
    );
    let environment = [("CARGO_PROFILE_DEV_DEBUG", "0"), ("CARGO_PROFILE_DEV_OPT_LEVEL", "1")];
    run_with(&command, &environment).context(
        "mdBook could not be installed; without a network, put mdbook of this release on the PATH by \
         other means. 'cargo xtask docs --check' needs neither",
    )?;
    if !succeeds(&format!("{path} --version")) {
        bail!("mdBook was installed, but {path} does not run");
    }
    Ok(own)
}

fn said(program: &str) -> Option<String> {
    let output = std::process::Command::new(program).arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Puts everything that mdBook is given into `folder`, which is made anew.
fn stage(root: &Path, folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let source = folder.join("src");
    let summary = read(root, Path::new(SUMMARY))?;
    let pages = listed(&summary);
    for page in &pages {
        let text = read(root, page)?;
        write(&source.join(page), &staged_page(root, page, &text, &pages, &source)?)?;
    }
    write(&source.join("SUMMARY.md"), &staged_summary(&summary))?;
    write(&folder.join("book.toml"), &read(root, Path::new(SETTINGS))?)?;
    for file in BESIDE {
        let name = Path::new(file).file_name().unwrap_or_default();
        copy(&root.join(file), &folder.join(name))?;
    }
    Ok(())
}

/// The summary, with its links seen from the root of the repository.
fn staged_summary(summary: &str) -> String {
    let mut text = summary.to_string();
    for link in links(summary).into_iter().rev() {
        let (path, _) = meant(Path::new(SUMMARY), &link.target);
        text.replace_range(link.place, &path.to_string_lossy());
    }
    text
}

/// A page as the book has it; what it refers to is copied to `source`.
fn staged_page(
    root: &Path,
    page: &Path,
    text: &str,
    pages: &[PathBuf],
    source: &Path,
) -> Result<String> {
    let mut staged = text.to_string();
    for link in links(text).into_iter().rev().filter(|link| !is_elsewhere(&link.target)) {
        let (path, _) = meant(page, &link.target);
        if pages.contains(&path) {
            continue;
        }
        if root.join(&path).is_file() {
            copy(&root.join(&path), &source.join(&path))?;
        } else if pages.contains(&path.join("README.md")) {
            let target = format!("{}/README.md", link.target.trim_end_matches('/'));
            staged.replace_range(link.place, &target);
        } else {
            // A folder of the repository: the book has no page of it.
            staged.replace_range(link.whole.clone(), words(text, &link));
        }
    }
    Ok(staged)
}

/// The text of a link.
fn words<'a>(text: &'a str, link: &Link) -> &'a str {
    text[link.whole.start..link.place.start].trim_start_matches('[').trim_end_matches("](")
}

fn read(root: &Path, path: &Path) -> Result<String> {
    std::fs::read_to_string(root.join(path))
        .with_context(|| format!("cannot read {}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to.parent().unwrap_or(to))?;
    std::fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_book_is_given_a_copy_in_which_every_link_leads_somewhere() {
        let (root, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let put = |name: &str, text: &str| write(&root.path().join(name), text).unwrap();
        put(
            "README.md",
            "# A\n[b](docs/B.md#x) [e](examples/) [f](experiments) [s](x.sh) [w](https://e.org)\n",
        );
        put("docs/B.md", "# B\n[a](../README.md)\n");
        put("examples/README.md", "# E\n");
        put("experiments/one.toml", "");
        put("x.sh", "true\n");
        put(
            SUMMARY,
            "# Summary\n\n[A](../README.md)\n\n- [B](B.md)\n- [E](../examples/README.md)\n",
        );
        put(SETTINGS, "[book]\n");
        put(BESIDE[0], "");
        let staged = folder.path().join("docs");
        stage(root.path(), &staged).unwrap();
        let text = |name: &str| std::fs::read_to_string(staged.join(name)).unwrap();
        let summary =
            "# Summary\n\n[A](README.md)\n\n- [B](docs/B.md)\n- [E](examples/README.md)\n";
        assert_eq!(text("src/SUMMARY.md"), summary);
        let page = "# A\n[b](docs/B.md#x) [e](examples/README.md) f [s](x.sh) [w](https://e.org)\n";
        assert_eq!(text("src/README.md"), page);
        assert_eq!(
            (text("src/x.sh"), text("book.toml")),
            ("true\n".to_string(), "[book]\n".to_string())
        );
        // What an earlier book had does not stay.
        put(SUMMARY, "[A](../README.md)\n");
        stage(root.path(), &staged).unwrap();
        assert!(!staged.join("src/examples").exists());
    }

    #[test]
    fn a_folder_that_has_something_else_in_it_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let is_replaced = |path: &Path| may_be_replaced(path).unwrap();
        assert!(is_replaced(&folder.path().join("new")) && is_replaced(folder.path()));
        write(&folder.path().join("letters.txt"), "").unwrap();
        assert!(!is_replaced(folder.path()));
        write(&folder.path().join("toc.html"), "").unwrap();
        assert!(is_replaced(folder.path()));
        assert!(may_be_replaced(&folder.path().join("toc.html")).is_err());
    }
}
