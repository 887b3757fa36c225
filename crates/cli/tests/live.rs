//! Commands that go on telling: a reader that goes away, and terminals of any size.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use support::Running;
use support::service::Service;

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
