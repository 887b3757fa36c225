//! `catraca replay`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use support::Folder;

/// A folder with `run.trace` in it.
fn recorded() -> Folder {
    let folder = Folder::new();
    let flags = ["--algorithm", "lamport", "--nodes", "3", "--entries", "5"];
    folder.run(&[&["sim", "--trace", "run.trace"], &flags[..]].concat()).quietly(0);
    folder
}

#[test]
fn a_recorded_run_replays_identically() {
    let ran = recorded().run(&["replay", "run.trace"]).quietly(0);
    assert_eq!(
        ran.stdout,
        "42 steps, 34 messages, 5 entries\nthe replay does exactly what the trace says\n"
    );
}

#[test]
fn every_step_is_told_in_words() {
    let ran = recorded().run(&["replay", "run.trace", "--words"]).quietly(0);
    assert_eq!(ran.stdout.lines().count(), 42 + 2);
    ran.says("           0  node 0 asks: sends request 1 to 1, sends request 1 to 2\n");
}

#[test]
fn a_changed_trace_differs_at_the_event_that_was_changed() {
    let folder = recorded();
    let trace = folder.read("run.trace");
    // The second event: node 1 asks. Line 1 is the header.
    let mut lines: Vec<String> = trace.lines().map(str::to_string).collect();
    let changed = lines[2].replace(r#""to":2"#, r#""to":0"#);
    assert_ne!(changed, lines[2]);
    lines[2] = changed;
    folder.write("changed.trace", lines.join("\n"));
    let ran = folder.run(&["replay", "changed.trace"]).quietly(3).says("differs at event 2:\n");
    let ran = ran.says("  trace:  node 1 asks: sends request 1 to 0, sends request 1 to 0\n");
    ran.says("  replay: node 1 asks: sends request 1 to 0, sends request 1 to 2\n");
}

#[test]
fn a_window_is_drawn_and_an_empty_one_is_refused() {
    let folder = recorded();
    let draw = |window: &[&str]| {
        folder.run(&[&["replay", "run.trace", "--diagram", "run.svg"], window].concat())
    };
    draw(&["--from", "1", "--to", "4"]).quietly(0);
    let part = folder.read("run.svg");
    draw(&[]).quietly(0);
    assert!(part.starts_with("<svg") && part.len() < folder.read("run.svg").len());
    draw(&["--from", "500"]).refused(&["has no steps to draw", "choose a wider window"]);
    draw(&["--from", "soon"]).refused(&["--from: 'soon' is no time"]);
    assert_eq!(folder.names(), ["run.svg", "run.trace"]);
}

#[test]
fn files_that_are_no_traces_are_refused_with_the_reason() {
    let folder = recorded();
    let trace = folder.read("run.trace");
    let version = trace.replacen(r#""catraca-trace":1"#, r#""catraca-trace":2"#, 1);
    let stranger = trace.replacen("lamport", "lamprt", 1);
    let binary = [trace.as_bytes(), &[0xff, 0xfe, b'\n']].concat();
    let cases: [(&[u8], &str); 7] = [
        (b"", "is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "is no trace"),
        (b"hello\n", "is no trace"),
        (version.as_bytes(), "is a trace of version 2, and this program reads version 1"),
        (&trace.as_bytes()[..900], "is cut off or changed: line 5 is no event"),
        (&binary, "is cut off or changed: line 44 is no event (not text)"),
        (stranger.as_bytes(), "there is no algorithm 'lamprt'. Did you mean 'lamport'?"),
    ];
    for (content, reason) in cases {
        folder.write("other.trace", content);
        folder.run(&["replay", "other.trace"]).refused(&["'other.trace' ", reason]);
    }
    folder.run(&["replay", "none.trace"]).refused(&["'none.trace': there is no such file"]);
    folder.run(&["replay", "."]).refused(&["'.': it is a folder"]);
}

#[test]
fn a_replayed_deadlock_is_still_a_violation() {
    let folder = Folder::new();
    let flags = ["--mutant", "no-staircase", "--nodes", "2", "--requests", "1"];
    folder.run(&[&["check", "singhal"], &flags[..]].concat()).quietly(3);
    let ran = folder.run(&["replay", "singhal-no-staircase.trace"]).quietly(3);
    ran.says("which is a violation of nobody waits for ever: node 1 is waiting");
}

#[test]
fn trees_are_drawn_at_the_instants_that_are_named() {
    let folder = recorded();
    let flags = ["--algorithm", "raymond", "--nodes", "5", "--entries", "5"];
    folder.run(&[&["sim", "--trace", "tree.trace"], &flags[..]].concat()).quietly(0);
    let draw = |trace: &str, instants: &[&str]| {
        folder.run(&[&["replay", trace, "--tree-diagram", "tree.svg"], instants].concat())
    };
    draw("tree.trace", &["--tree-at", "0", "--tree-at", "2.5"]).quietly(0);
    assert!(folder.read("tree.svg").contains("(b) at time 2.5"));
    draw("tree.trace", &[]).refused(&["say which", "--tree-at 2.5"]);
    draw("tree.trace", &["--tree-at", "soon"]).refused(&["--tree-at: 'soon' is no time"]);
    draw("tree.trace", &["--tree-at", "-1"]).refused(&["--tree-at: '-1' is no time"]);
    draw("tree.trace", &["--tree-at", "500"]).refused(&["ends at time ", "at time 500; choose"]);
    draw("run.trace", &["--tree-at", "1"])
        .refused(&["has no tree: its nodes do not point to each other"]);
}

#[test]
fn runs_with_sets_of_resources_replay_without_a_violation() {
    let folder = Folder::new();
    for algorithm in ["bouabdallah-laforest", "ordered:raymond", "ordered:suzuki-kasami"] {
        let flags = ["--algorithm", algorithm, "--resources", "2", "--entries", "10"];
        folder.run(&[&["sim", "--trace", "run.trace"], &flags[..]].concat()).quietly(0);
        let ran = folder.run(&["replay", "run.trace"]).quietly(0);
        assert!(ran.stdout.ends_with("entries\nthe replay does exactly what the trace says\n"));
    }
}

#[test]
fn a_trace_without_an_end_is_refused() {
    let folder = Folder::new();
    folder.run(&["replay", "/dev/zero"]).refused(&["'/dev/zero' is no trace"]);
}
