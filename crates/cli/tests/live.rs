//! Commands that go on telling: a reader that goes away, and terminals of any size.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use support::service::{Service, at_terminal};
use support::{Folder, Running};

#[test]
fn watching_ends_silently_when_its_reader_goes_away() {
    let service = Service::start(1, &[]);
    for command in [&["locks", "--watch"][..], &["locks", "--watch", "--json"]] {
        let mut watching = service.command(0, command, &[]);
        let child = watching.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut watch = Running(child);
        let mut line = String::new();
        BufReader::new(watch.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("Nobody holds") || line.contains("\"locks\":[]"), "{line}");
        watch.wait_until("it ends", |child| child.try_wait().unwrap().is_some());
        let complaint = std::io::read_to_string(watch.0.stderr.take().unwrap()).unwrap();
        assert_eq!((watch.0.wait().unwrap().code(), complaint.as_str()), (Some(0), ""));
    }
}

#[test]
fn a_demonstration_without_time_is_refused() {
    Folder::new().run(&["demo", "--time", "0s"]).refused(&["--time: '0s' is no time to show"]);
}

#[test]
fn a_demonstration_draws_no_conclusion_from_a_single_entry() {
    let one = ["demo", "--nodes", "1", "--clients", "1", "--time", "300ms", "--hold", "2s"];
    let ran = Folder::new().run(&one).quietly(0);
    let ran = ran.says("\n1 entry in 0.").says(" s by 1 client at 1 node.\nToo few entries");
    assert!(!ran.stdout.contains("in the simulator"), "{}", ran.stdout);
}

#[test]
fn a_demonstration_with_enough_entries_stands_beside_the_simulator() {
    let many = ["demo", "--nodes", "2", "--clients", "3", "--time", "1s", "--hold", "1ms"];
    let ran = Folder::new().run(&many).quietly(0);
    ran.says(" by 3 clients at 2 nodes; hand-over ").says(" over TCP, ").says("catraca sim ");
}

#[test]
fn the_live_view_of_a_demonstration_fits_a_small_terminal() {
    let binary = env!("CARGO_BIN_EXE_catraca");
    let demo = "demo --nodes 9 --clients 9 --time 1200ms";
    let line = format!("stty cols 30 rows 8; exec '{binary}' {demo}");
    let ran = at_terminal(&Folder::new(), &line).ends();
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    // Every line of a picture is cleared before it is written.
    let drawn = ran.stdout.lines().filter_map(|line| line.split_once("\x1b[2K"));
    let drawn: Vec<(&str, &str)> = drawn.collect();
    let pictures: Vec<_> = drawn.chunks(7).collect();
    assert!(pictures.len() >= 2, "{}", ran.stdout);
    for (index, picture) in pictures.iter().enumerate() {
        let lines: Vec<&str> = picture.iter().map(|(_, line)| *line).collect();
        assert!(lines[0].starts_with("node") && lines[2].starts_with("n00"), "{lines:?}");
        assert_eq!((lines.len(), lines[4], lines[5]), (7, "and 7 more", ""), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 30), "{lines:?}");
        // Back over all of the last picture, and no further.
        assert!(picture[0].0.ends_with("\x1b[7A") == (index > 0), "{:?}", picture[0]);
    }
}

#[test]
fn the_live_view_of_the_locks_fits_a_small_terminal() {
    let service = Service::start(1, &[]);
    let held: Vec<_> =
        ["p", "q", "r", "s", "t"].map(|name| service.lock(0, name, "echo in; sleep 600")).into();
    held.iter().for_each(|held| held.says("in"));
    let (binary, node) = (env!("CARGO_BIN_EXE_catraca"), &service.addresses[0]);
    let line = format!("stty cols 30 rows 8; exec '{binary}' locks --watch --node {node}");
    let watch = at_terminal(&service.folder, &line);
    watch.says("5 holders, 0 waiters");
    let shown = watch.stdout();
    let picture = shown.split("\x1b[H\x1b[J").nth(1).unwrap();
    let lines: Vec<&str> = picture.lines().collect();
    assert!(lines[0].starts_with("lock") && lines[2].starts_with("p "), "{lines:?}");
    assert_eq!(lines[4..], ["and 3 more", "", "5 holders, 0 waiters"]);
    assert!(lines.iter().all(|line| line.chars().count() <= 30), "{lines:?}");
}
