//! Commands that go on telling: a reader that goes away, and terminals of any size.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use support::service::Service;
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
