//! Ctrl-C: exit code 130, and no trace of what was not finished.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::process::Stdio;

use support::{Folder, Running};

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

/// A command that does not look at the flag, because it waits for its scenario, ends all the same.
#[test]
fn whatever_a_command_does_it_ends_at_the_first_signal() {
    for signal in ["-INT", "-TERM"] {
        let folder = Folder::new();
        folder.shell("mkfifo run.toml").quietly(0);
        let mut command = folder.command(&["sim", "run.toml"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running(command.spawn().unwrap());
        let status = format!("/proc/{}/status", running.0.id());
        // It has a handler of its own once it catches the signal.
        running.wait_until("it catches the signal", |_| {
            let status = std::fs::read_to_string(&status).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
            // SIGINT is 2, SIGTERM is 15.
            caught & (1 << 1 | 1 << 14) == (1 << 1 | 1 << 14)
        });
        running.signal(signal);
        running.wait_until("it ends", |child| child.try_wait().unwrap().is_some());
        let ran = running.ran();
        assert_eq!(ran.code, Some(130), "{ran:?}");
        ran.complained(&["catraca: interrupted"]);
        assert_eq!(folder.names(), ["run.toml"]);
    }
}

#[test]
fn two_signals_at_once_leave_neither_files_nor_their_folder() {
    let folder = Folder::new();
    folder.write(
        "long.toml",
        "algorithm = 'lamport'\n[run]\nentries = 1000000000\n[experiment]\ntitle = 'long'\n\
         question = 'how long?'\ncolumns = ['delay']\n",
    );
    let mut command = folder.command(&["experiment", "long.toml", "--out", "new"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    let is_pending = || std::fs::read_dir(folder.path("new")).is_ok_and(|files| files.count() > 0);
    running.wait_until("it opens its files", |_| is_pending());
    running.signal("-INT");
    running.signal("-INT");
    running.wait_until("it ends", |child| child.try_wait().unwrap().is_some());
    assert_eq!(running.ran().code, Some(130));
    assert_eq!(folder.names(), ["long.toml"]);
}
