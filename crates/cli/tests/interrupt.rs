//! Ctrl-C: exit code 130, and no trace of what was not finished.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};

use support::service::{Service, at_terminal, signal};
use support::{Folder, GENEROUS, Running};

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

/// Somebody who takes connections, and says nothing.
struct Silent {
    address: String,
    taken: Receiver<TcpStream>,
}

impl Silent {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (take, taken) = channel();
        std::thread::spawn(move || {
            // It ends with whoever takes them.
            listener.incoming().map_while(Result::ok).try_for_each(|stream| take.send(stream))
        });
        Silent { address, taken }
    }
}

/// All that ask a node, or another server, at ADDR; and whether they end as interrupted, or by the signal.
const ASKING: &[(bool, &[&str])] = &[
    (false, &["status", "--node", "ADDR"]),
    (false, &["unlock", "--node", "ADDR", "--owner", "ana", "x"]),
    (false, &["locks", "--node", "ADDR"]),
    (false, &["locks", "--node", "ADDR", "--watch"]),
    (false, &["members", "list", "--node", "ADDR"]),
    (false, &["members", "add", "b=127.0.0.1:1", "--node", "ADDR"]),
    (false, &["members", "remove", "b", "--node", "ADDR"]),
    (false, &["leave", "--node", "ADDR"]),
    (false, &["kick", "b", "--node", "ADDR"]),
    (false, &["force-release", "--yes", "x", "--node", "ADDR"]),
    (false, &["process", "--connect", "ADDR", "--id", "1"]),
    (false, &["git", "locks", "--url", "http://ADDR/git/art"]),
    (false, &["git", "lock", "file", "--even-if-stale", "--url", "http://ADDR/git/art"]),
    (false, &["git", "unlock", "file", "--url", "http://ADDR/git/art"]),
    (true, &["lock", "--node", "ADDR", "x", "--", "true"]),
    (true, &["lock", "--node", "ADDR", "--durable", "--owner", "ana", "x"]),
    (true, &["node", "--join", "ADDR", "--name", "d", "--listen", "127.0.0.1:1"]),
];

#[test]
fn whoever_waits_for_a_server_that_says_nothing_ends_at_the_first_signal() {
    let folder = Folder::new();
    folder.shell("git init -q . && touch file").quietly(0);
    for (&(by_signal, words), (name, number)) in
        ASKING.iter().flat_map(|it| [("-INT", 2), ("-TERM", 15)].map(|signal| (it, signal)))
    {
        let silent = Silent::new();
        let words: Vec<String> =
            words.iter().map(|word| word.replace("ADDR", &silent.address)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = folder.command(&words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running(command.spawn().unwrap());
        let taken = silent.taken.recv_timeout(GENEROUS);
        let _connection = taken.unwrap_or_else(|_| panic!("{words:?} asks nobody"));
        running.signal(name);
        running.wait_until(&format!("{words:?} ends at {name}"), |child| {
            child.try_wait().unwrap().is_some()
        });
        let status = running.0.wait().unwrap();
        let ran = running.ran();
        if by_signal {
            // As shells say it: with this code, or by the signal itself.
            let signal = status.code().map_or(status.signal(), |code| Some(code - 128));
            assert_eq!(signal, Some(number), "{words:?}: {ran:?}");
        } else {
            assert_eq!(ran.code, Some(130), "{words:?}: {ran:?}");
            assert!(ran.stderr.ends_with("catraca: interrupted\n"), "{words:?}: {ran:?}");
        }
    }
}

#[test]
fn a_question_at_a_terminal_ends_at_the_first_signal_and_nothing_is_done() {
    let service = Service::start(1, &[]);
    let holder = service.lock(0, "x", "echo inside; exec sleep 1000");
    holder.says("inside");
    let (catraca, node) = (env!("CARGO_BIN_EXE_catraca"), &service.addresses[0]);
    let line = format!("echo process $$ .; exec {catraca} force-release --node {node} x");
    for is_typed in [true, false] {
        let mut terminal = at_terminal(&service.folder, &line);
        terminal.says("x is held by");
        if is_typed {
            terminal.types("\x03");
        } else {
            let said = terminal.stdout();
            let id = said.split_whitespace().skip_while(|word| *word != "process").nth(1);
            signal(id.unwrap().parse().unwrap(), "TERM");
        }
        let ran = terminal.ends();
        assert_eq!(ran.code, Some(130), "{ran:?}");
        assert!(ran.stdout.contains("catraca: interrupted"), "{ran:?}");
    }
    assert!(service.locks(0).contains("1 holder"));
    // And an answer is taken as before.
    let mut terminal = at_terminal(&service.folder, &line);
    terminal.says("x is held by");
    terminal.types("y\n");
    terminal.says("released x");
    assert_eq!(terminal.ends().code, Some(0));
    assert_eq!(holder.ends().code, Some(123));
}

#[test]
fn an_interrupted_demonstration_tells_what_it_has_shown_though_somebody_is_inside() {
    let folder = Folder::new();
    let words = ["demo", "--nodes", "2", "--clients", "2", "--hold", "1000s", "--time", "1000s"];
    let mut command = folder.command(&words);
    command.stdin(Stdio::null());
    let demo = support::service::Process::start(command);
    demo.says("grants/s");
    demo.signal("TERM");
    let ran = demo.ends();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.says(" by 2 clients at 2 nodes");
}
