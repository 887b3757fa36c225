//! `catraca bench --beside`: two builds in one run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use support::Folder;
use support::service::{Process, wait_until};

/// The processes that were told of a file or a folder at `place`.
fn told_of(place: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let lines = processes.filter_map(|it| std::fs::read_to_string(it.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(place)).count()
}

#[test]
fn a_build_beside_itself_has_a_ratio_for_every_row() {
    let ran = Folder::new().run(&[
        "bench",
        "--seconds",
        "0.1",
        "--beside",
        env!("CARGO_BIN_EXE_catraca"),
    ]);
    let ran = ran.quietly(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].contains("this build") && lines[0].contains("ratio"), "{}", ran.stdout);
    assert_eq!(lines.len(), 2 + 12, "{}", ran.stdout);
    for name in ["Jain's index of the 8 ", "Jain's index of the 64", "8 clients on one lock"] {
        assert!(lines.iter().any(|line| line.starts_with(name)), "{}", ran.stdout);
    }
    for line in &lines[2..] {
        let ratio = line.split(' ').next_back().unwrap();
        assert!(ratio.parse::<f64>().is_ok_and(|ratio| ratio > 0.0), "{line}");
    }
}

#[test]
fn the_rows_of_the_manual_are_those_of_the_program() {
    let ran = Folder::new().run(&["bench", "--seconds", "0.1"]).quietly(0);
    let manual = include_str!("../../../docs/SERVICE.md");
    let shown = manual.split("$ catraca bench\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(rows(shown), rows(&ran.stdout));
}

/// What is measured, without figures, and the goals.
fn rows(table: &str) -> Vec<[String; 2]> {
    let row = |line: &str| {
        let mut columns = line.split("  ").map(str::trim).filter(|column| !column.is_empty());
        let (what, _, goal) = (columns.next(), columns.next(), columns.next());
        [without_figures(what.unwrap_or("")), goal.unwrap_or("").to_string()]
    };
    table.lines().skip(2).map(row).collect()
}

fn without_figures(what: &str) -> String {
    let is_figure = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let is_unit = |word: &str| ["ns", "us", "ms"].contains(&word);
    let words = what.split([' ', '(', ')', '/']);
    let words: Vec<&str> = words.filter(|word| !is_figure(word) && !is_unit(word)).collect();
    words.join(" ")
}

#[test]
fn what_is_no_build_of_catraca_is_wrong_input() {
    let folder = Folder::new();
    folder.write("plain", "");
    for (path, why) in [
        ("nowhere/catraca", "cannot be run"),
        ("./plain", "cannot be run"),
        ("/bin/sh", "'/bin/sh'"),
        ("/bin/false", "ended with"),
        ("/bin/echo", "is another program"),
    ] {
        let ran = folder.run(&["bench", "--seconds", "0.1", "--beside", path]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{path}: {}", ran.stderr);
        let said = ran.stderr.lines().next_back().unwrap();
        assert!(said.contains("--beside") && said.contains(why), "{path}: {said}");
        assert!(said.contains("another build of catraca"), "{path}: {said}");
    }
}

/// How many threads a process has.
fn threads(status: &str) -> u32 {
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn an_interrupted_benchmark_ends_with_all_its_processes_and_its_files() {
    for (kind, signal) in [("--changes", "INT"), ("--changes", "TERM"), ("", "TERM")] {
        let folder = Folder::new();
        std::fs::create_dir(folder.path("files")).unwrap();
        // No figure is measured for longer: it would not end by itself in time.
        let words = ["bench", "--seconds", "600", kind];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let mut command = folder.command(&words);
        command.env("TMPDIR", folder.path("files"));
        let mut bench = Process::start(command);
        let place = folder.path("files").display().to_string();
        wait_until("it measures", || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", bench.id())).unwrap();
            assert!(!bench.has_ended(), "{}", bench.stderr());
            match kind {
                // Its threads are there: the first figure is measured in its own process.
                "" => threads(&status) >= 3,
                _ => told_of(&place) > 0,
            }
        });
        bench.signal(signal);
        let ran = bench.ends();
        assert_eq!(ran.code, Some(130), "{ran:?}");
        ran.complained(&["catraca: interrupted"]);
        wait_until("its processes have ended", || told_of(&place) == 0);
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0, "it left files");
    }
}
