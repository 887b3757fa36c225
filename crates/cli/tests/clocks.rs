//! What a step of the clock that can be set does to nodes, their clients and their data: nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use support::left_out::left_out;
use support::service::{Process, addresses, wait_until};
use support::{Folder, Ran};

const HOUR: i64 = 3600;
/// Long enough for a busy machine, and nothing beside an hour.
const LEASE: &str = "15s";

/// Debian's libfaketime, which steps the clock that can be set.
fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.map_while(Result::ok);
    let mut files = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    files.find(|file| file.exists())
}

/// A machine whose clock can be stepped while nodes and clients run.
struct Machine {
    folder: Folder,
    node: String,
    library: PathBuf,
}

impl Machine {
    fn steps_to(&self, seconds: i64) {
        // Whoever looks finds the one or the other, and nothing between.
        self.folder.write("clock.new", format!("{seconds:+}\n"));
        std::fs::rename(self.folder.path("clock.new"), self.folder.path("clock")).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.folder.command(words);
        command.env("LD_PRELOAD", &self.library).env("FAKETIME_NO_CACHE", "1");
        command.env("FAKETIME_TIMESTAMP_FILE", self.folder.path("clock"));
        // The clocks that nobody can set go on as they do.
        command.env("DONT_FAKE_MONOTONIC", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command
    }

    fn start(&self) -> Process {
        let words = ["node", "--listen", &self.node, "--data", "data", "--lease", LEASE];
        let node = Process::start(self.command(&words));
        node.says("listens at");
        node
    }

    fn run(&self, words: &[&str]) -> Ran {
        Process::start(self.command(words)).ends()
    }

    /// Takes a lock, and tells its fence and until when it is certain, in seconds from now by this clock.
    fn lock(&self, name: &str) -> (u64, i64) {
        let line = "echo $CATRACA_FENCE $((CATRACA_DEADLINE / 1000 - $(date +%s)))";
        let ran = self.run(&["lock", "--node", &self.node, name, "--", "sh", "-c", line]);
        let told = ran.quietly(0).stdout;
        let (fence, left) = told.trim().split_once(' ').unwrap();
        (fence.parse().unwrap(), left.parse().unwrap())
    }

    /// When the durable hold was made, as the node's clock said.
    fn made(&self) -> i64 {
        let list = self.run(&["locks", "--node", &self.node, "--json"]).quietly(0).stdout;
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        let locks = list["locks"].as_array().unwrap();
        let made = locks.iter().find_map(|lock| lock["durable"]["unix_millis"].as_i64());
        made.unwrap() / 1000
    }
}

/// Seconds of Unix time, as the clock of this process says, which nobody steps.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

#[test]
fn a_step_of_the_clock_loses_nothing_and_fences_grow() {
    let Some(library) = library() else {
        return left_out("a step of the clock", "libfaketime");
    };
    let machine = Machine { folder: Folder::new(), node: addresses(1).remove(0), library };
    machine.steps_to(0);
    let node = machine.start();
    let words = ["lock", "--node", &machine.node, "--ttl", "15", "x", "--", "sleep", "1000"];
    let mut holder = Process::start(machine.command(&words));
    let is_held = || {
        let ran = machine.run(&["lock", "--node", &machine.node, "-n", "x", "--", "true"]);
        ran.code == Some(1)
    };
    wait_until("it is held", is_held);
    let mut last = 0;
    for step in [0, HOUR, -HOUR, 0] {
        machine.steps_to(step);
        let owner = format!("after{step}");
        let take = ["lock", "--node", &machine.node, "--durable", "--owner", &owner, "kept"];
        machine.run(&take).quietly(0);
        // The step has happened: otherwise this would be no test.
        let error = machine.made() - (now() + step);
        assert!(error.abs() < HOUR / 2, "the clock of the node is wrong by {error} s");
        // So much time passes for everybody; whoever took the step for time would have given up.
        std::thread::sleep(Duration::from_secs(1));
        assert!(is_held() && !holder.has_ended(), "after {step}: {}", holder.stderr());
        let (fence, left) = machine.lock("y");
        assert!(fence > last, "fence {fence} after {last}");
        assert!((-60..=60).contains(&left), "certain for another {left} s");
        last = fence;
        let unlock = ["unlock", "--node", &machine.node, "--owner", &owner, "kept"];
        machine.run(&unlock).quietly(0);
    }
    holder.signal("TERM");
    holder.ends();

    // A node that is killed and finds an earlier time when it is started again: its fences grow all the same.
    machine
        .run(&["lock", "--node", &machine.node, "--durable", "--owner", "ana", "kept"])
        .quietly(0);
    node.signal("KILL");
    node.ends();
    machine.steps_to(-HOUR);
    let node = machine.start();
    let (fence, _) = machine.lock("y");
    assert!(fence > last, "fence {fence} after {last}");
    let taken = machine.run(&["lock", "--node", &machine.node, "-n", "kept", "--", "true"]);
    assert_eq!(taken.code, Some(1), "the durable hold is there: {taken:?}");
    node.signal("TERM");
    assert_eq!(node.ends().code, Some(0));
}
