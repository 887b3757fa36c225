//! ARCHITECTURE.md: what it names is there.

use std::collections::BTreeSet;
use std::path::Path;

use super::document::repository;

fn text() -> String {
    std::fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap()
}

/// The sections of a text, each with its heading.
fn sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap_or((section, "")))
}

/// What stands between backticks and is a source file, in the order of the text.
fn files(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs"))
}

#[test]
fn whoever_follows_a_request_a_run_or_a_view_meets_each_file_once_and_finds_it() {
    let text = text();
    let crates = repository().join("crates");
    let mut walks = 0;
    for (heading, section) in sections(&text) {
        if !heading.ends_with("file by file") {
            continue;
        }
        walks += 1;
        let mut met = BTreeSet::new();
        for file in files(section) {
            assert!(crates.join(file).is_file(), "{heading}: there is no {file}");
            assert!(met.insert(file), "{heading}: {file} is met twice");
        }
        assert!(met.len() > 10, "{heading}: {met:?}");
    }
    assert_eq!(walks, 3);
}

#[test]
fn the_map_has_every_crate_and_every_folder_of_the_repository() {
    let text = text();
    let layers = text.split("```").nth(1).unwrap();
    let named: BTreeSet<&str> =
        layers.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut there: BTreeSet<String> = folders(&repository().join("crates"));
    there.insert("xtask".to_string());
    assert_eq!(named, there.iter().map(String::as_str).collect());
    let known = ["crates", "target", "xtask"];
    for folder in folders(&repository()) {
        let is_named = text.contains(&format!("\n| `{folder}/"));
        assert!(is_named || known.contains(&folder.as_str()), "the map does not name {folder}/");
    }
}

/// The folders within a folder, without hidden ones.
fn folders(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let names = folders.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with('.')).collect()
}

#[test]
fn the_glossary_of_the_map_has_at_most_thirty_words_in_order() {
    let text = text();
    let (_, glossary) = sections(&text).find(|(heading, _)| *heading == "Glossary").unwrap();
    let rows = glossary.lines().filter_map(|line| line.strip_prefix("| "));
    let words: Vec<&str> = rows.skip(1).filter_map(|row| row.split(" |").next()).collect();
    assert!(words.len() > 20 && words.len() <= 30, "{}: {words:?}", words.len());
    assert!(words.is_sorted(), "{words:?}");
    assert!(words.iter().all(|word| !word.contains(',')), "one word a row: {words:?}");
}
