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
use crate::shell::{self, run_with};

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
    make(&mdbook()?, root, &out)?;
    println!("the manual: {}", out.join("index.html").display());
    Ok(())
}

/// Makes the book and looks at what it has become. Only if mdBook is here: whether it is.
pub(super) fn check(root: &Path) -> Result<bool> {
    let Some(mdbook) = present() else { return Ok(false) };
    let folder = tempfile::tempdir()?;
    make(&mdbook, root, folder.path())?;
    let flaws = flaws(folder.path())?;
    if !flaws.is_empty() {
        bail!("the book is not as it should be:\n{}", flaws.join("\n"));
    }
    Ok(true)
}

fn make(mdbook: &Path, root: &Path, out: &Path) -> Result<()> {
    let staged = shell::built("docs");
    stage(root, &staged)?;
    let status = std::process::Command::new(mdbook)
        .arg("build")
        .arg(&staged)
        .arg("--dest-dir")
        .arg(out)
        .env("MDBOOK_LOG", "warn")
        .status();
    let status = status.with_context(|| format!("{} could not be started", mdbook.display()))?;
    if !status.success() {
        bail!(
            "mdBook could not make the manual ({status}); what it was given is in {}",
            staged.display()
        );
    }
    Ok(())
}

/// What a book lacks, and what in it would make a browser ask another host.
fn flaws(book: &Path) -> Result<Vec<String>> {
    let mut flaws = Vec::new();
    let mut files = Vec::new();
    collect(book, &mut files)?;
    let has = |is_it: &dyn Fn(&str) -> bool| {
        files.iter().any(|file| file.file_name().is_some_and(|name| is_it(&name.to_string_lossy())))
    };
    if !book.join("index.html").is_file() {
        flaws.push("it has no index.html".to_string());
    }
    if !has(&|name| name.starts_with("searchindex") && name.ends_with(".js")) {
        flaws.push("it has no index for searching".to_string());
    }
    for file in files {
        let kind = file.extension().unwrap_or_default();
        let find = match kind.to_str() {
            Some("html") => fetched_by_page,
            Some("css") => fetched_by_style,
            _ => continue,
        };
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.strip_prefix(book).unwrap_or(&file).display();
        flaws.extend(find(&text).into_iter().map(|what| format!("{name} asks for {what}")));
    }
    Ok(flaws)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// What a page makes a browser fetch from other hosts. A link that somebody has to follow is none of it.
fn fetched_by_page(text: &str) -> Vec<&str> {
    let tags = text.split('<').skip(1).filter_map(|rest| rest.split_once('>').map(|(tag, _)| tag));
    let fetching = tags.filter(|tag| !tag.starts_with("a ") && !tag.starts_with("a\n"));
    let values = fetching.flat_map(|tag| {
        ["src=\"", "href=\"", "data=\"", "srcset=\""]
            .into_iter()
            .flat_map(move |name| tag.split(name).skip(1).filter_map(|rest| rest.split('"').next()))
    });
    values.filter(|target| is_of_another_host(target)).collect()
}

fn fetched_by_style(text: &str) -> Vec<&str> {
    let targets = ["url(", "@import "].into_iter().flat_map(|begin| text.split(begin).skip(1));
    let targets = targets.map(|rest| rest.trim_start_matches(['"', '\'']));
    let targets = targets.filter_map(|rest| rest.split(['"', '\'', ')', ';']).next());
    targets.filter(|target| is_of_another_host(target)).collect()
}

fn is_of_another_host(target: &str) -> bool {
    target.starts_with("//") || target.starts_with("http://") || target.starts_with("https://")
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

/// Where mdBook is, if it is here in this release: on the PATH, or installed for this repository alone.
fn present() -> Option<PathBuf> {
    let version = format!("v{MDBOOK}");
    let places = [PathBuf::from("mdbook"), own()];
    places.into_iter().find(|place| said(place).is_some_and(|said| said.contains(&version)))
}

/// Where it is installed for this repository alone.
fn own() -> PathBuf {
    shell::built("tools/bin/mdbook")
}

/// Where mdBook is; it is installed if it is not here.
fn mdbook() -> Result<PathBuf> {
    if let Some(mdbook) = present() {
        return Ok(mdbook);
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
    present().with_context(|| format!("mdBook was installed, but {} does not run", own().display()))
}

fn said(program: &Path) -> Option<String> {
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
    fn a_book_has_an_index_and_a_search_and_asks_no_other_host() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| write(&folder.path().join(name), text).unwrap();
        let found = || flaws(folder.path()).unwrap();
        assert_eq!(found(), ["it has no index.html", "it has no index for searching"]);
        put(
            "index.html",
            "<link rel=\"stylesheet\" href=\"book.css\"><a href=\"https://e.org\">e</a>\
             <script src=\"book.js\"></script><img src=\"docs/a.png\">",
        );
        put("searchindex-1a2b.js", "");
        put("css/book.css", "@import 'other.css'; a { background: url(\"a.svg\") }");
        assert!(found().is_empty(), "{:?}", found());
        put("docs/a.html", "<p><script async\n src=\"https://cdn.example.org/x.js\"></script>");
        put("css/other.css", "@font-face { src: url(//fonts.example.org/y) }");
        let mut found = found();
        found.sort();
        assert_eq!(
            found,
            [
                "css/other.css asks for //fonts.example.org/y",
                "docs/a.html asks for https://cdn.example.org/x.js"
            ]
        );
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

    #[test]
    fn the_settings_of_the_book_are_those_that_it_is_made_for() {
        let text = read(&shell::root(), Path::new(SETTINGS)).unwrap();
        let settings: toml::Table = text.parse().unwrap();
        assert_eq!(settings["book"]["src"].as_str(), Some("src"), "where pages are put");
        // A page that is in the summary and not there is an error, and pages are used as they are.
        assert_eq!(settings["build"]["create-missing"].as_bool(), Some(false));
        assert_eq!(settings["build"]["use-default-preprocessors"].as_bool(), Some(false));
        let html = &settings["output"]["html"];
        assert!(html["search"].is_table(), "it can be searched");
        let styles = html["additional-css"].as_array().unwrap();
        let styles: Vec<_> = styles.iter().filter_map(|style| style.as_str()).collect();
        let beside = BESIDE.map(|file| file.strip_prefix("docs/").unwrap());
        assert_eq!(styles, beside, "what is copied beside the settings");
        assert!(BESIDE.iter().all(|file| shell::root().join(file).is_file()));
    }
}
