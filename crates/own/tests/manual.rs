//! Every command that docs/OWN-ALGORITHM.md and the README of a new crate show does what they say, with the
//! files that `catraca new-algorithm` writes. In a crate of its own they are built first, which takes minutes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

#[path = "../template/src/algorithm.rs"]
mod algorithm;
#[path = "../template/src/mutants.rs"]
mod mutants;

use std::path::Path;

use catraca_own::Failure;

const MANUAL: &str = include_str!("../../../docs/OWN-ALGORITHM.md");
const README: &str = include_str!("../template/README.md");

/// The exit code of a program that did what the words say.
fn runs(words: &[String]) -> i32 {
    let mut said = Vec::new();
    match catraca_own::run::<algorithm::Node>(words, &mut said) {
        Ok(()) => 0,
        Err(Failure::Violation) => 3,
        Err(failure) => panic!("{words:?}: {failure:?}\n{}", String::from_utf8_lossy(&said)),
    }
}

#[test]
fn every_command_that_is_shown_runs_and_ends_with_the_code_that_is_shown() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-manual");
    std::fs::create_dir_all(&folder).unwrap();
    std::env::set_current_dir(&folder).unwrap();
    let lines = MANUAL.lines().chain(README.lines()).map(|line| line.trim_start_matches("$ "));
    let mut ran = 0;
    for line in lines.filter_map(|line| line.strip_prefix("cargo run -- ")) {
        let (command, remark) = line.split_once(" # ").unwrap_or((line, ""));
        let words: Vec<String> = command.split_whitespace().map(str::to_string).collect();
        let code = remark.trim().strip_prefix("exit code ").map_or(0, |code| code.parse().unwrap());
        let pictures: Vec<&String> = words.iter().filter(|word| word.ends_with(".svg")).collect();
        for picture in &pictures {
            std::fs::remove_file(picture).ok();
        }
        assert_eq!(runs(&words), code, "{line}");
        assert!(pictures.iter().all(|it| Path::new(it.as_str()).is_file()), "{line}");
        ran += 1;
    }
    assert!(ran >= 11, "only {ran} were found");
}
