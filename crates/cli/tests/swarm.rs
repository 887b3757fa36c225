//! `catraca swarm`: groups under faults, from the command line.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use support::Folder;

#[test]
fn a_group_survives_and_a_broken_rule_is_found_with_the_command_that_shows_it() {
    let folder = Folder::new();
    let ran = folder.shell("catraca swarm --runs 5");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("everybody was served"), "{ran:?}");
    let ran = folder.shell("catraca swarm --mutant start-before-reports --runs 3000");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let line = ran.stdout.lines().find(|line| line.starts_with("reproduce")).unwrap();
    let again = line.trim_start_matches("reproduce").trim();
    let ran = folder.shell(again);
    assert_eq!(ran.code, Some(3), "{again}: {ran:?}");
    assert!(folder.read("run.log").contains("VIOLATION"));
}

#[test]
fn a_hold_that_is_ended_by_force_too_early_is_found() {
    let folder = Folder::new();
    let ran = folder.shell("catraca swarm --forces 40 --runs 5");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = folder.shell("catraca swarm --forces 40 --mutant forced-at-once --runs 3000");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stdout.contains(" --forces 40 --mutant forced-at-once"), "{ran:?}");
    assert!(ran.stdout.contains("held by"), "{ran:?}");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let folder = Folder::new();
    for (flags, complaint) in [
        ("--members 0", "1 to 16 members"),
        ("--algorithm nope", "no algorithm 'nope'"),
        ("--mutant nope", "'list' names them"),
        ("--runs 0", "at least 1 run"),
        ("--permits 2 --claim 2", "several permits"),
        ("--claim 3", "there are 2"),
        ("--log x", "--runs 1"),
        ("--forces 4000000000", "goes up to 10000"),
        ("--timed 2 --forces 2", "take one of them"),
    ] {
        let ran = folder.shell(&format!("catraca swarm {flags}"));
        assert_eq!(ran.code, Some(2), "{flags}: {ran:?}");
        assert!(ran.stderr.contains(complaint), "{flags}: {ran:?}");
        assert!(folder.names().is_empty(), "{flags}");
    }
}
