//! `catraca top` at a real terminal: one of tmux.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::process::{Command, Output, Stdio};

use catraca_client::Client;
use support::left_out::left_out;
use support::service::{Service, wait_until};
use support::{Folder, Ran};

/// A terminal of 80 columns and 24 rows, with a shell in it.
struct Terminal {
    folder: Folder,
}

impl Terminal {
    /// Nothing where tmux is missing.
    fn open() -> Option<Self> {
        if Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_err() {
            left_out("what a terminal shows", "tmux");
            return None;
        }
        let terminal = Terminal { folder: Folder::new() };
        let shell = "PS1='$ ' exec sh";
        let opened = terminal.tmux(&["new-session", "-d", "-x", "80", "-y", "24", shell]);
        assert!(opened.status.success(), "{opened:?}");
        terminal.shows("$");
        Some(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        // A server of its own, with no settings of whoever tests.
        command.args(["-f", "/dev/null", "-S"]).arg(self.folder.path("socket")).args(arguments);
        command.env_remove("TMUX").env_remove("NO_COLOR").env("TERM", "xterm-256color");
        command.output().unwrap()
    }

    fn types(&self, keys: &[&str]) {
        assert!(self.tmux(&[&["send-keys"], keys].concat()).status.success());
    }

    fn screen(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// Waits until the screen has `text`.
    #[track_caller]
    fn shows(&self, text: &str) {
        wait_until(&format!("'{text}' is on the screen"), || self.screen().contains(text));
    }

    /// Starts the view of a node.
    fn start(&self, address: &str) {
        let catraca = env!("CARGO_BIN_EXE_catraca");
        self.types(&[&format!("{catraca} top --node {address}; echo ended $?"), "Enter"]);
        self.shows("q quit");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn locks_are_watched_inspected_filtered_and_the_terminal_is_given_back() {
    let Some(terminal) = Terminal::open() else { return };
    let service = Service::start(2, &[]);
    let holder = service.lock(0, "--label ana deploy", "echo begun; read x || sleep 1000");
    holder.says("begun");
    let waiter = service.lock(1, "--label rui deploy", "true");
    wait_until("it waits", || service.locks(0).contains("1 waiter"));
    terminal.start(&service.addresses[0]);
    terminal.shows("ana");
    terminal.types(&["Enter"]);
    terminal.shows("deploy: 1 holding, 1 waiting");
    terminal.shows("waits 1    rui");
    terminal.types(&["Escape"]);
    terminal.types(&["/", "nothing", "Enter"]);
    terminal.shows("No lock fits 'nothing'");
    terminal.types(&["Escape"]);
    terminal.shows("ana");
    terminal.types(&["n"]);
    terminal.shows(&format!("b at {}", service.addresses[1]));
    terminal.types(&["?"]);
    terminal.shows("the next part of a long list");
    terminal.types(&["Escape"]);
    terminal.tmux(&["resize-window", "-x", "120", "-y", "30"]);
    terminal.shows("fence");
    terminal.types(&["q"]);
    terminal.shows("ended 0");
    // What was there before is there again, and what is typed is seen.
    terminal.types(&["echo seen $((40 + 2))", "Enter"]);
    terminal.shows("echo seen $((40 + 2))\nseen 42");
    holder.signal("TERM");
    holder.ends();
    waiter.ends();
}

#[test]
fn a_lock_is_released_by_force_when_that_is_meant() {
    let Some(terminal) = Terminal::open() else { return };
    let service = Service::start(2, &[]);
    let holder = service.lock(1, "--label ana deploy", "echo begun; sleep 1000");
    holder.says("begun");
    terminal.start(&service.addresses[0]);
    terminal.shows("ana");
    terminal.types(&["F"]);
    terminal.shows("y releases 'deploy' of ana");
    terminal.types(&["n"]);
    terminal.shows("q quit");
    assert!(service.locks(0).contains("ana"), "it was not meant");
    terminal.types(&["F"]);
    terminal.shows("y releases 'deploy' of ana");
    terminal.types(&["y"]);
    terminal.shows("released 'deploy' of ana at b");
    let lost = holder.ends();
    assert_ne!(lost.code, Some(0), "{lost:?}");
    assert!(!service.locks(0).contains("ana"));
    terminal.types(&["q"]);
    terminal.shows("ended 0");
}

#[test]
fn a_node_that_goes_away_and_comes_back_is_seen_to() {
    let Some(terminal) = Terminal::open() else { return };
    let mut service = Service::start(1, &[]);
    terminal.start(&service.addresses[0]);
    terminal.shows("ready, epoch");
    let node = service.nodes.remove(0);
    node.signal("TERM");
    node.ends();
    terminal.shows("NO ANSWER for");
    service.nodes.push(service.node(0, &[]));
    terminal.shows("answers again");
    terminal.shows("ready, epoch");
    // A node that is paused says nothing at all.
    service.nodes[0].signal("STOP");
    terminal.shows("NO ANSWER for");
    service.nodes[0].signal("CONT");
    terminal.shows("ready, epoch");
    terminal.types(&["C-c"]);
    terminal.shows("ended 0");
}

#[test]
fn a_signal_and_a_closed_terminal_end_it_and_ctrl_z_stops_it() {
    let Some(terminal) = Terminal::open() else { return };
    let service = Service::start(1, &[]);
    let address = &service.addresses[0];
    let own = format!("catraca top --node {address}");
    let find = || {
        let found = Command::new("pgrep").args(["-f", &own]).output().unwrap().stdout;
        let found = String::from_utf8(found).unwrap();
        found.lines().map(str::to_string).collect::<Vec<_>>()
    };
    terminal.start(address);
    let process = find();
    assert_eq!(process.len(), 1, "{process:?}");
    support::service::signal(process[0].parse().unwrap(), "TERM");
    terminal.shows("ended 143");
    terminal.types(&["clear", "Enter"]);
    terminal.start(address);
    terminal.types(&["C-z"]);
    terminal.shows("Stopped");
    terminal.types(&["fg", "Enter"]);
    terminal.shows("q quit");
    assert_eq!(find().len(), 1);
    terminal.tmux(&["kill-session"]);
    wait_until("it ends", || find().is_empty());
}

#[test]
fn very_many_locks_do_not_keep_it_from_hearing_keys() {
    const LOCKS: usize = 100_000;
    let Some(terminal) = Terminal::open() else { return };
    let service = Service::start(1, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::builder().addresses(&service.addresses).connect().await.unwrap();
        let names: Vec<String> = (0..LOCKS).map(|number| format!("lock/{number:06}")).collect();
        let mut held = Vec::new();
        for names in names.chunks(250) {
            held.push(client.lock_all(names).await.unwrap());
        }
        tokio::task::spawn_blocking(move || {
            terminal.start(&service.addresses[0]);
            terminal.shows("100,000 held");
            terminal.shows("part 1 (> next)");
            terminal.types(&["/", "lock/09999", "Enter"]);
            terminal.shows("lock/099999");
            terminal.types(&["Escape"]);
            terminal.shows("lock/000000");
            terminal.types(&[">"]);
            terminal.shows("part 2 (> next)");
            terminal.types(&["q"]);
            terminal.shows("ended 0");
        })
        .await
        .unwrap();
        drop(held);
    });
}

#[test]
fn without_a_terminal_or_a_node_it_does_not_begin() {
    let service = Service::start(1, &[]);
    let ran = service.client(0, &["top"], &[]).ends();
    ran.refused(&["top needs a terminal", "'catraca locks'"]);
    let line = format!("{} top --node {}", env!("CARGO_BIN_EXE_catraca"), "127.0.0.1:1");
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
    let dumb: Ran = command.env("TERM", "dumb").output().unwrap().into();
    assert!(dumb.code == Some(2) && dumb.stdout.contains("top needs a terminal"), "{dumb:?}");
    let nobody: Ran = command.env("TERM", "xterm").output().unwrap().into();
    assert!(nobody.code == Some(125) && nobody.stdout.contains("start a node"), "{nobody:?}");
}

#[test]
fn the_screen_of_the_manual_has_the_heads_and_the_keys_of_the_program() {
    let Some(terminal) = Terminal::open() else { return };
    let service = Service::start(1, &[]);
    let holder = service.lock(0, "--label ana deploy", "echo begun; read x || sleep 1000");
    holder.says("begun");
    terminal.start(&service.addresses[0]);
    terminal.shows("ana");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let screen: Vec<String> = terminal.screen().lines().map(words).collect();
    let manual = include_str!("../../../docs/PACKAGES.md");
    let shown = manual.split("$ catraca top\n").nth(1).unwrap().split("```").next().unwrap();
    let is_fixed = |line: &&str| ["member ", "lock ", "? "].iter().any(|own| line.starts_with(own));
    let fixed: Vec<String> = shown.lines().filter(is_fixed).map(words).collect();
    assert_eq!(fixed.len(), 3, "{shown}");
    for line in fixed {
        assert!(screen.contains(&line), "'{line}' is not on the screen:\n{}", screen.join("\n"));
    }
    holder.signal("TERM");
    holder.ends();
}
