//! `catraca sim`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use catraca_sim::KEYS;
use support::Folder;

#[test]
fn without_a_file_and_an_algorithm_an_example_is_given() {
    let folder = Folder::new();
    folder.run(&["sim"]).refused(&["'catraca sim --algorithm lamport --nodes 5'"]);
    folder.shell("catraca sim --algorithm lamport --nodes 5").quietly(0);
    folder.run(&["sim", "--nodes", "3"]).refused(&["say what to run"]);
}

#[test]
fn a_self_check_finds_two_runs_equal() {
    let arguments = ["sim", "--algorithm", "maekawa", "--delay", "exp:1", "--self-check"];
    Folder::new().run(&arguments).quietly(0).says("two runs are equal in every step, digest ");
}

#[test]
fn the_same_seed_gives_the_same_trace_byte_by_byte_and_another_seed_another() {
    let folder = Folder::new();
    let flags = ["sim", "--algorithm", "singhal", "--delay", "exp:1", "--entries", "50"];
    let trace = |name: &str, seed: &str| {
        folder.run(&[&flags[..], &["--trace", name, "--seed", seed]].concat()).quietly(0);
        folder.read(name)
    };
    let first = trace("first.trace", "5");
    assert!(first.lines().count() > 100);
    assert_eq!(first, trace("second.trace", "5"));
    assert_ne!(first, trace("third.trace", "6"));
}

#[test]
fn a_violation_is_told_with_the_command_that_reproduces_it() {
    let folder = Folder::new();
    let flags = ["sim", "--algorithm", "lamport", "--mutant", "no-tie-break", "--nodes", "3"];
    let ran = folder.run(&flags).quietly(3).says("violation   mutual exclusion at 2: ");
    let command = ran.stdout.lines().last().unwrap().strip_prefix("reproduce   ").unwrap();
    assert_eq!(folder.shell(command).quietly(3).stdout, ran.stdout);
}

#[test]
fn json_and_diagram_are_written() {
    let folder = Folder::new();
    let flags = ["sim", "--algorithm", "raymond", "--nodes", "3", "--rounds", "2"];
    let outputs = ["--json", "run.json", "--diagram", "run.svg"];
    folder.run(&[&flags[..], &outputs].concat()).quietly(0);
    assert_eq!(folder.json("run.json")["entries"], 6);
    assert!(folder.read("run.svg").starts_with("<svg"));
    assert_eq!(folder.names(), ["run.json", "run.svg"]);
}

/// A group that brings its own detector.
const ROBUST: &[&str] = &["--algorithm", "robust-k", "--test-interval", "4", "--test-timeout", "3"];

/// For every key: what else the run needs, a wrong value for the file, a right one for the flag.
const VALUES: &[(&str, &[&str], &str, &str)] = &[
    ("algorithm", &[], "nope", "lamport"),
    ("nodes", &[], "0", "3"),
    ("resources", &[], "0", "3"),
    ("clusters", &[], "2,0", "2x4"),
    ("max-preempt", &["--algorithm", "bertier"], "x", "3"),
    ("k", &["--algorithm", "robust-k"], "0", "2"),
    ("test-interval", &["--algorithm", "robust-k", "--test-timeout", "3"], "x", "4"),
    ("test-timeout", &["--algorithm", "robust-k", "--test-interval", "4"], "5", "3"),
    ("news", ROBUST, "slow", "immediate"),
    ("ack-timeout", ROBUST, "0", "9"),
    ("tree", &["--algorithm", "raymond", "--nodes", "3"], "bush", "-,0,0"),
    ("quorum", &["--algorithm", "maekawa"], "square", "grid"),
    ("mutant", &[], "nope", "release-not-sent"),
    ("start.inside", &[], "9", "1"),
    ("start.token", &[], "9", "1"),
    ("workload.arrivals", &[], "often", "serial"),
    ("workload.think", &[], "-1", "exp:2"),
    ("workload.rounds", &[], "0", "2"),
    ("workload.requesters", &[], "0..9", "1,2"),
    ("workload.pause", &["--arrivals", "serial"], "long", "2"),
    ("workload.rate", &["--arrivals", "open"], "nan", "0.5"),
    ("workload.burst", &["--arrivals", "bursts", "--every", "9"], "0", "2"),
    ("workload.every", &["--arrivals", "bursts", "--burst", "2"], "0", "9"),
    ("workload.schedule", &["--arrivals", "schedule"], "9 at 1", "1 at 1"),
    ("workload.hold", &[], "x", "uniform:1..2"),
    ("workload.claim", &["--resources", "3"], "3..1", "1..3"),
    ("workload.skew", &["--resources", "3"], "-1", "0.8"),
    ("workload.locality", &["--arrivals", "serial", "--clusters", "2x2"], "2", "0.9"),
    ("network.delay", &[], "x", "2"),
    ("network.order", &[], "lifo", "fifo"),
    ("network.lan", &["--clusters", "2x2"], "x", "2"),
    ("network.wan", &["--clusters", "2x2"], "x", "exp:20"),
    ("network.matrix", &["--clusters", "5"], "x", "1"),
    ("faults.events", &[], "crash 9 at 1", "crash 1 at 9"),
    ("faults.detector", &[], "x", "2"),
    ("run.seed", &[], "-1", "2"),
    ("run.entries", &[], "0", "2"),
    ("run.time", &[], "soon", "5"),
    ("run.warmup", &[], "x", "1"),
    ("run.max-bypass", &[], "x", "9"),
    ("output.trace", &[], "missing/run.trace", "run.trace"),
    ("output.diagram", &[], "run.gif", "run.svg"),
    ("output.from", &["--diagram", "run.svg"], "x", "0"),
    ("output.to", &["--diagram", "run.svg"], "x", "9"),
    ("output.json", &[], "missing/run.json", "run.json"),
];

#[test]
fn every_key_can_be_said_in_the_file_and_is_overridden_by_its_flag() {
    let folder = Folder::new();
    let paths: Vec<&str> = KEYS.iter().map(|key| key.path).collect();
    assert_eq!(VALUES.iter().map(|value| value.0).collect::<Vec<_>>(), paths);
    for (key, (path, others, wrong, right)) in KEYS.iter().zip(VALUES) {
        let mut file = format!("{path} = '{wrong}'\n");
        if !["algorithm", "tree", "quorum"].contains(path) {
            file.push_str("algorithm = 'lamport'\n");
        }
        folder.write("run.toml", file);
        // Short, unless the length is the question.
        let short: &[&str] = if *path == "run.entries" { &[] } else { &["--entries", "5"] };
        let common = [&["sim", "run.toml"], *others, short].concat();
        // The file's value is read, or it would not be wrong.
        folder.run(&common).refused(&[]);
        let flag = format!("--{}", key.flag);
        let ran = folder.run(&[&common[..], &[&flag, right]].concat());
        // Only a mutant does something wrong.
        let code = if *path == "mutant" { 3 } else { 0 };
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""), "{path}: {}", ran.stdout);
    }
}

#[test]
fn what_is_wrong_is_found_where_it_was_said() {
    let folder = Folder::new();
    folder.write("run.toml", "algorithm = 'lamport'\n[workload]\nhold = 'x'\n");
    folder.run(&["sim", "run.toml"]).refused(&["run.toml: workload.hold: 'x' is no distribution"]);
    let both = ["sim", "run.toml", "--hold", "y"];
    folder.run(&both).refused(&["catraca: --hold: 'y' is no distribution"]);
    let good = ["sim", "run.toml", "--hold", "1", "--nodes", "0"];
    folder.run(&good).refused(&["catraca: 'lamport' runs on 1 to"]);
}
