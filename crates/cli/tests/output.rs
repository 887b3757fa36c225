//! Where results go: help, pipes, full disks, links and special files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::process::Command;

use support::{Folder, Ran};

const COMMANDS: [&[&str]; 7] = [
    &["compare", "--nodes", "4", "--entries", "20"],
    &["sim", "--algorithm", "lamport", "--entries", "20"],
    &["check", "lamport", "--nodes", "2"],
    &["experiment", "schedule"],
    &["algorithms"],
    &["algorithms", "maekawa"],
    &["demo", "--nodes", "2", "--time", "300ms"],
];

#[test]
fn every_help_text_fits_a_screen_and_goes_to_standard_output() {
    let folder = Folder::new();
    for command in ["compare", "sim", "check", "replay", "experiment", "algorithms"] {
        let ran = folder.run(&[command, "--help"]).quietly(0).says("Usage: catraca ");
        let widest = ran.stdout.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 100, "{command}: {widest} columns");
    }
    folder.run(&["--help"]).quietly(0).says("130  interrupted");
}

#[test]
fn every_example_in_a_help_text_works_as_printed() {
    let folder = Folder::new();
    folder.write("run.toml", "algorithm = 'raymond'\nnodes = 3\n[run]\ntime = 30\n");
    // In this order: 'sim' writes the trace that 'replay' reads.
    for command in ["compare", "sim", "check", "replay", "experiment"] {
        let help = folder.run(&[command, "--help"]).quietly(0).stdout;
        let examples = help.lines().filter_map(|line| line.strip_prefix("  catraca "));
        let examples: Vec<&str> = examples.collect();
        assert!(examples.len() >= 3, "{help}");
        for example in examples {
            let is_broken = example.contains("--mutant");
            folder.shell(&format!("catraca {example}")).quietly(if is_broken { 3 } else { 0 });
        }
    }
}

#[test]
fn no_progress_bar_appears_in_a_pipe() {
    for arguments in COMMANDS {
        let ran = Folder::new().run(arguments).quietly(0);
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\r'));
    }
}

#[test]
fn a_full_disk_behind_standard_output_is_told_in_one_line() {
    let folder = Folder::new();
    for arguments in COMMANDS.into_iter().chain([&["--help"][..], &["sim", "--help"]]) {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran: Ran = folder.command(arguments).stdout(full).output().unwrap().into();
        assert_eq!(ran.code, Some(1), "{arguments:?}: {}", ran.stderr);
        ran.complained(&["cannot write to standard output: no storage space"]);
    }
}

#[test]
fn a_reader_that_goes_away_costs_neither_the_files_nor_the_verdict() {
    let folder = Folder::new();
    let unread = |arguments: &[&str]| -> Ran {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        folder.command(arguments).stdout(writer).output().unwrap().into()
    };
    for arguments in COMMANDS {
        unread(arguments).quietly(0);
    }
    unread(&["--help"]).quietly(0);
    unread(&["compare", "--nodes", "4", "--entries", "20", "--csv", "rows.csv"]).quietly(0);
    unread(&["check", "lamport", "--nodes", "2", "--mutant", "no-tie-break"]).quietly(3);
    unread(&["replay", "lamport-no-tie-break.trace", "--words"]).quietly(3);
    assert_eq!(folder.names(), ["lamport-no-tie-break.trace", "rows.csv"]);
}

#[test]
fn a_link_stays_a_link_and_the_file_behind_it_is_written() {
    let folder = Folder::new();
    folder.write("rows.csv", "old");
    std::os::unix::fs::symlink("rows.csv", folder.path("link.csv")).unwrap();
    let flags = ["--algorithms", "lamport", "--nodes", "2", "--entries", "5"];
    folder.run(&[&["compare", "--csv", "link.csv"], &flags[..]].concat()).quietly(0);
    assert!(folder.path("link.csv").is_symlink());
    assert!(folder.read("rows.csv").starts_with("algorithm,load,seed,nodes,"));
}

/// A device must never be replaced by a file; a named pipe is one that a test can make.
#[test]
fn a_pipe_is_written_into_and_stays_a_pipe() {
    let folder = Folder::new();
    let pipe = folder.path("run.trace");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let flags = ["--algorithm", "lamport", "--nodes", "2", "--entries", "3"];
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    folder.run(&[&["sim", "--trace", "run.trace"], &flags[..]].concat()).quietly(0);
    // Before the reader is waited for: it would wait for ever if the pipe were gone.
    assert!(pipe.metadata().unwrap().file_type().is_fifo());
    let read = reader.join().unwrap();
    assert!(read.starts_with(r#"{"catraca-trace":1,"#) && read.ends_with("}\n"));
    assert_eq!(folder.names(), ["run.trace"]);
}
