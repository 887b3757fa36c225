//! Every scenario in `experiments/` runs, and ends as its comment says.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod watch;

use std::path::Path;

use catraca_core::property;
use catraca_sim::{Report, Scenario};

use watch::figures;

/// Groups of more nodes are made so small here.
const MOST_NODES: u64 = 10_000;

/// The scenarios that show something break.
const VIOLATIONS: &[(&str, &str)] = &[
    ("coordinator-crash.toml", property::NOBODY_WAITS_FOR_EVER),
    ("partition.toml", property::NOBODY_WAITS_FOR_EVER),
    ("robust-wrong-detector.toml", property::MUTUAL_EXCLUSION),
    ("s4-raymond.toml", property::NOBODY_WAITS_FOR_EVER),
];

/// The files, by name.
fn files() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let scenarios = entries.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let mut files: Vec<(String, String)> = scenarios
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_string();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

fn scenario(name: &str, text: &str) -> Scenario {
    let mut scenario = Scenario::from_toml(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let nodes = scenario.value("nodes").map_or(0, |nodes| nodes.parse().unwrap());
    if nodes > MOST_NODES {
        scenario.set("nodes", vec![MOST_NODES.to_string()]).unwrap();
    }
    scenario
}

fn report(name: &str) -> Report {
    let (name, text) = files().into_iter().find(|(file, _)| file == name).unwrap();
    figures(&scenario(&name, &text))
}

#[test]
fn every_experiment_runs_and_breaks_exactly_what_it_should() {
    let files = files();
    for (name, text) in &files {
        let report = figures(&scenario(name, text));
        let broken = report.violation.map(|violation| violation.invariant);
        let expected = VIOLATIONS.iter().find(|(file, _)| file == name).map(|(_, what)| *what);
        assert_eq!(broken, expected, "{name}");
        assert!(report.entries > 0, "{name}");
    }
    for (name, _) in VIOLATIONS {
        assert!(files.iter().any(|(file, _)| file == name), "{name} is gone");
    }
}

#[test]
fn every_experiment_begins_with_what_it_shows_and_the_command_to_run_it() {
    for (name, text) in files() {
        let comment: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
        assert!(comment.first().is_some_and(|line| line.ends_with('.')), "{name}");
        let command = format!("#     catraca sim experiments/{name}");
        assert!(comment.iter().any(|line| line.starts_with(&command)), "{name}");
    }
}

#[test]
fn the_comments_of_the_experiments_are_true() {
    let million = report("raymond-million.toml");
    assert!(million.messages_per_entry < Some(4.0), "{million:?}");
    let plane = report("maekawa-plane.toml").messages_per_entry.unwrap();
    assert!((9.0..=18.0).contains(&plane), "{plane}");
    let partition = report("partition.toml");
    assert_eq!((partition.entries, partition.waiting), (1, 2));
    let crash = report("coordinator-crash.toml");
    assert_eq!((crash.waiting, crash.end), (4, catraca_sim::End::Violation));
    let clusters = report("clusters.toml");
    assert!(clusters.response_mean > Some(40.0), "{clusters:?}");
    let raymond = report("s4-raymond.toml");
    assert_eq!((raymond.entries, raymond.waiting, raymond.time), (94, 1, 75.0));
    let robust = report("s4-robust.toml");
    assert_eq!((robust.entries, robust.waiting), (402, 0));
    let late = report("robust-late-detector.toml");
    assert!(late.longest_wait > 40.0 && late.entries > 20, "{late:?}");
    let wrong = report("robust-wrong-detector.toml").violation.unwrap().what;
    assert!(wrong.contains("node 3 was taken for crashed by node 1 at 5.5"), "{wrong}");
    let schedule = report("schedule.toml");
    assert_eq!((schedule.messages, schedule.longest_wait), (12, 4.5));
}
