//! Ctrl-C: exit code 130, and no trace of what was not finished.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use support::Folder;

/// Interrupts a run that would take hours and has `output` among its arguments.
#[track_caller]
fn leaves_the_old_file(output: &str, arguments: &[&str]) {
    let folder = Folder::new();
    folder.write(output, "old");
    let ran = folder.interrupt(arguments);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    ran.complained(&["catraca: interrupted"]);
    assert_eq!(folder.names(), [output]);
    assert_eq!(folder.read(output), "old");
}

#[test]
fn an_interrupted_run_leaves_the_old_trace_and_nothing_else() {
    let flags = ["--algorithm", "lamport", "--entries", "1000000000"];
    leaves_the_old_file("run.trace", &[&["sim", "--trace", "run.trace"], &flags[..]].concat());
}

#[test]
fn an_interrupted_comparison_leaves_the_old_rows_and_nothing_else() {
    let flags = ["--nodes", "64", "--entries", "1000000000"];
    leaves_the_old_file("rows.csv", &[&["compare", "--csv", "rows.csv"], &flags[..]].concat());
}

#[test]
fn an_interrupted_check_leaves_the_old_trace_and_nothing_else() {
    let flags = ["--nodes", "5", "--requests", "9"];
    let check = ["check", "lamport", "--trace", "broken.trace"];
    leaves_the_old_file("broken.trace", &[&check, &flags[..]].concat());
}

#[test]
fn an_interrupted_experiment_leaves_the_old_table_and_nothing_else() {
    let folder = Folder::new();
    folder.write("out.csv", "old");
    folder.write(
        "out.toml",
        "algorithm = 'lamport'\n[run]\nentries = 1000000000\n[experiment]\ntitle = 'long'\n\
         question = 'how long?'\ncolumns = ['delay']\n",
    );
    let ran = folder.interrupt(&["experiment", "out.toml", "--out", "."]);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    ran.complained(&["catraca: interrupted"]);
    assert_eq!(folder.names(), ["out.csv", "out.toml"]);
    assert_eq!(folder.read("out.csv"), "old");
}
