//! S3's system as real processes: coordinator, process, classroom.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

use support::{Folder, Ran, Running};

const LOG: &str = "coordenador_log.txt";
const RESULT: &str = "resultado.txt";

/// A coordinator that has said where it listens.
struct Coordinator {
    running: Running,
    address: String,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Coordinator {
    fn start(folder: &Folder, stdin: Stdio) -> Self {
        let mut command = folder.command(&["coordinator", "--listen", "127.0.0.1:0"]);
        command.stdin(stdin);
        Self::of(command)
    }

    fn of(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running(command.spawn().unwrap());
        let mut stdout = BufReader::new(running.0.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let rest = line.strip_prefix("listening at ").unwrap_or_else(|| panic!("{line}"));
        let address = rest.split_once(',').unwrap().0.to_string();
        Coordinator { running, address, stdout }
    }

    fn stdin(&mut self) -> ChildStdin {
        self.running.0.stdin.take().unwrap()
    }

    /// Its exit code, and what else it has said on both channels.
    fn ended(mut self) -> (Option<i32>, String, String) {
        self.running.wait_until("it ends", |child| child.try_wait().unwrap().is_some());
        let (mut said, mut complained) = (String::new(), String::new());
        self.stdout.read_to_string(&mut said).unwrap();
        self.running.0.stderr.take().unwrap().read_to_string(&mut complained).unwrap();
        (self.running.0.wait().unwrap().code(), said, complained)
    }
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

/// '5 processos com 3 repetições', with a shorter hold. Reference: S3, section 3.
#[test]
fn paper_the_experiment_of_s3_is_run_and_found_right() {
    let folder = Folder::new();
    let arguments =
        ["classroom", "--processes", "5", "--rounds", "3", "--hold", "20ms", "--out", "run"];
    // A second run replaces the files of the first.
    for _ in 0..2 {
        let ran = folder.run(&arguments).quietly(0);
        let ran = ran.says("15 grants and 15 entries in the same order, none overlapping,");
        let ran = ran.says("first come first served, everybody 3 times");
        let ran = ran.says("ideal     300.00 ms  (5 x 3 x 20.00 ms)").says("overhead  ");
        let rows = |id: &&str| ran.stdout.lines().any(|line| line.starts_with(&format!("{id}  ")));
        assert!(["1", "2", "3", "4", "5"].iter().all(rows), "{}", ran.stdout);
        assert_eq!(lines(&folder.read(&format!("run/{LOG}"))), 3 * 15);
        assert_eq!(lines(&folder.read(&format!("run/{RESULT}"))), 15);
    }
    assert_eq!(folder.names(), ["run"]);
}

#[test]
fn the_least_experiment_and_one_without_a_hold_are_right_too() {
    let folder = Folder::new();
    let ran = folder.run(&["classroom", "--processes", "1", "--rounds", "1", "--hold", "1ms"]);
    let ran = ran.quietly(0).says("1 grant and 1 entry in the same order");
    ran.says("first come first served, everybody once\n");
    folder.run(&["classroom", "--processes", "3", "--rounds", "9", "--hold", "0s"]).quietly(0);
    assert!(folder.names().is_empty());
}

/// A classroom in which somebody is inside for an hour, and the ids of its processes.
fn long_experiment(folder: &Folder) -> (Running, Vec<u32>) {
    std::fs::create_dir(folder.path("tmp")).unwrap();
    let mut command = folder.command(&["classroom", "--hold", "3600s", "--out", "run"]);
    command.env("TMPDIR", folder.path("tmp")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    let everybody_has_asked =
        || logs_in(&folder.path("tmp")).any(|log| log.matches("RECEBIDO: 1|").count() == 5);
    running.wait_until("all have asked", |_| everybody_has_asked());
    let children = children_of(running.0.id());
    assert_eq!(children.len(), 6);
    (running, children)
}

/// The logs of all experiments that have their files in `folder`.
fn logs_in(folder: &Path) -> impl Iterator<Item = String> {
    let experiments = std::fs::read_dir(folder).unwrap().flatten();
    experiments.filter_map(|experiment| std::fs::read_to_string(experiment.path().join(LOG)).ok())
}

fn children_of(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|&id| status(id).is_some_and(|(of, _)| of == parent)).collect()
}

/// The parent of a process that exists, and its state.
fn status(id: u32) -> Option<(u32, char)> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((fields.next()?.parse().ok()?, state))
}

/// Ended, though perhaps nobody has asked how.
fn has_ended(id: &u32) -> bool {
    status(*id).is_none_or(|(_, state)| state == 'Z')
}

#[test]
fn ctrl_c_ends_the_whole_classroom() {
    let folder = Folder::new();
    let (mut running, children) = long_experiment(&folder);
    running.signal("-INT");
    running.wait_until("it ends", |child| child.try_wait().unwrap().is_some());
    assert!(children.iter().all(has_ended), "{children:?}");
    let ran = running.ran();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(130), ""));
    ran.complained(&["catraca: interrupted"]);
    assert!(logs_in(&folder.path("tmp")).next().is_none());
    assert_eq!(std::fs::read_dir(folder.path("run")).unwrap().count(), 0);
}

#[test]
fn a_classroom_that_is_killed_leaves_no_process_behind() {
    let folder = Folder::new();
    let (mut running, children) = long_experiment(&folder);
    running.signal("-KILL");
    running.wait_until("all have ended", |child| {
        // Asked, so that it does not stay as a zombie.
        child.try_wait().unwrap();
        children.iter().all(has_ended)
    });
}

#[test]
fn a_process_that_fails_ends_the_classroom_with_its_reason() {
    let folder = Folder::new();
    let (mut running, children) = long_experiment(&folder);
    let victim = children.iter().max().unwrap().to_string();
    let killed = std::process::Command::new("kill").args(["-KILL", &victim]).status();
    assert!(killed.unwrap().success());
    running.wait_until("it ends", |child| child.try_wait().unwrap().is_some());
    assert!(children.iter().all(has_ended), "{children:?}");
    let ran = running.ran();
    assert_eq!(ran.code, Some(1));
    ran.complained(&["process ", " failed: signal: 9"]);
}

#[test]
fn the_coordinator_takes_commands_from_a_pipe() {
    let folder = Folder::new();
    let mut coordinator = Coordinator::start(&folder, Stdio::piped());
    let mut client = TcpStream::connect(&coordinator.address).unwrap();
    client.write_all(b"1|76|89820").unwrap();
    client.read_exact(&mut [0; 10]).unwrap();
    let mut stdin = coordinator.stdin();
    // In any case; what is unknown is repeated as it was said.
    stdin.write_all(b"Queue\natendimentos\nX\nQUIT\n").unwrap();
    let (code, said, complained) = coordinator.ended();
    assert_eq!((code, complained.as_str()), (Some(0), ""));
    let expected = "inside: 76\nnobody waits\nnobody has been served yet\n\
                    there is no command 'X': say help\n";
    assert_eq!(said, expected);
    assert_eq!(client.read(&mut [0; 10]).unwrap(), 0);
    assert_eq!(lines(&folder.read(LOG)), 2);
}

#[test]
fn a_coordinator_without_input_runs_until_it_is_interrupted() {
    let folder = Folder::new();
    let coordinator = Coordinator::start(&folder, Stdio::null());
    let to = coordinator.address.clone();
    let entered = ["process", "--connect", &to, "--id", "76", "--rounds", "2", "--hold", "1ms"];
    let ran = folder.run(&entered).quietly(0);
    assert_eq!(ran.stdout, "process 76: 2 entries\n");
    let taken = folder.run(&["coordinator", "--listen", &to, "--log", "other.txt"]);
    assert_eq!(taken.code, Some(1));
    taken.complained(&[&to, "end that program or take another port"]);
    coordinator.running.signal("-TERM");
    let (code, said, complained) = coordinator.ended();
    assert_eq!((code, said.as_str()), (Some(130), ""));
    assert_eq!(complained, "catraca: interrupted\n");
    // Six messages, and nothing of the one that could not listen.
    assert_eq!(lines(&folder.read(LOG)), 6);
    assert_eq!(lines(&folder.read(RESULT)), 2);
    assert_eq!(folder.names(), [LOG, RESULT]);
}

#[test]
fn a_log_that_cannot_grow_is_told_in_words() {
    let folder = Folder::new();
    // The system refuses every byte of every file.
    let limited = "trap '' XFSZ; ulimit -f 0; exec \"$0\" coordinator --listen 127.0.0.1:0";
    let mut shell = Command::new("sh");
    shell.args(["-c", limited, env!("CARGO_BIN_EXE_catraca")]).current_dir(folder.path(""));
    shell.stdin(Stdio::null());
    let coordinator = Coordinator::of(shell);
    let mut client = TcpStream::connect(&coordinator.address).unwrap();
    client.write_all(b"1|76|89820").unwrap();
    let (code, _, complained) = coordinator.ended();
    assert_eq!(code, Some(1));
    assert_eq!(complained, format!("catraca: cannot write the log '{LOG}': file too large\n"));
}

#[test]
fn a_process_that_is_killed_inside_lets_the_next_one_in() {
    let folder = Folder::new();
    let coordinator = Coordinator::start(&folder, Stdio::null());
    let to = &coordinator.address;
    let start = |arguments: &[&str]| {
        let mut command = folder.command(&[&["process", "--connect", to], arguments].concat());
        Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    let logged =
        |text: &str| Path::new(&folder.path(LOG)).exists() && folder.read(LOG).contains(text);
    let mut first = start(&["--id", "1", "--rounds", "1", "--hold", "3600s"]);
    first.wait_until("1 is inside", |_| logged("ENVIADO: 2|1|"));
    let mut second = start(&["--id", "2", "--rounds", "1", "--hold", "1ms"]);
    second.wait_until("2 waits", |_| logged("RECEBIDO: 1|2|"));
    first.signal("-KILL");
    second.wait_until("2 has been served", |child| child.try_wait().unwrap().is_some());
    let ran: Ran = second.ran();
    assert_eq!(ran.quietly(0).stdout, "process 2: 1 entry\n");
    assert!(logged("| - | 1 | CLOSED: "));
}

#[test]
fn a_process_whose_coordinator_is_killed_does_not_send_its_user_to_the_log_alone() {
    let folder = Folder::new();
    let coordinator = Coordinator::start(&folder, Stdio::null());
    let to = &coordinator.address;
    let mut command = folder.command(&["process", "--connect", to, "--id", "5", "--hold", "3600s"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut process = Running(child);
    process.wait_until("5 is inside", |_| folder.read(LOG).contains("ENVIADO: 2|5|"));
    coordinator.running.signal("-KILL");
    process.wait_until("it ends", |child| child.try_wait().unwrap().is_some());
    let ran = process.ran();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    ran.complained(&["if it still runs, its log says why; if not, start it again"]);
    assert!(!folder.read(LOG).contains("CLOSED"), "nobody was left to write why");
}

#[test]
fn wrong_input_is_refused_with_what_would_be_right() {
    let folder = Folder::new();
    let cases: &[(&str, &[&str])] = &[
        ("process --id ''", &["--id: the id is empty: give 1 to 7 characters"]),
        ("process --id 12345678", &["--id: the id has more than 7 characters"]),
        ("process --id a|b", &["--id: the id has a character other than"]),
        ("process --id 5 --rounds 0", &["--rounds: '0' is no whole number of at least 1"]),
        ("process --id 5 --rounds -1", &["--rounds: '-1'"]),
        ("process --id 5 --hold 2", &["--hold: '2' is no time", "2s, 1.5s or 500ms"]),
        ("process --id 5 --hold -2s", &["--hold: '-2s'"]),
        ("process --id 5 --hold ''", &["--hold: ''"]),
        ("process --id 5 --result no/file", &["'no/file': the folder does not exist"]),
        ("coordinator --listen 7880", &["--listen: '7880' is no address: give one such as"]),
        ("coordinator --listen 127.0.0.1:0 --log .", &["cannot write '.': it is a folder"]),
        ("classroom --processes 0", &["--processes: '0'"]),
        ("classroom --processes 1001", &["--processes: '1001' is more than 1000"]),
        ("classroom --rounds 0", &["--rounds: '0'"]),
        ("classroom --rounds 200001", &["would enter 1000005 times: take at most 1000000"]),
        ("classroom --hold 2h", &["--hold: '2h' is no time from 0s to 1h"]),
    ];
    for (line, texts) in cases {
        let words = line.split(' ').map(|word| if word == "''" { "" } else { word });
        folder.run(&words.collect::<Vec<_>>()).refused(texts);
    }
    assert!(folder.names().is_empty());
    folder.write("file", "");
    folder.run(&["classroom", "--out", "file"]).refused(&["--out: cannot make the folder 'file'"]);
    let address = ["process", "--id", "5", "--connect", "nowhere"];
    folder.run(&address).refused(&["--connect: 'nowhere' is no address"]);
}

#[test]
fn an_address_that_the_system_refuses_fails_coordinator_and_node_alike() {
    let folder = Folder::new();
    for command in ["coordinator", "node"] {
        let ran = folder.run(&[command, "--listen", "192.0.2.1:7880"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{command}: {}", ran.stderr);
        ran.complained(&["192.0.2.1:7880", "address of this machine"]);
    }
    assert!(folder.names().is_empty());
}

#[test]
fn a_coordinator_that_is_not_there_is_told_with_what_to_do() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let ran = folder.run(&["process", "--id", "5", "--connect", &address]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    ran.complained(&[&address, "start one with 'catraca coordinator'"]);
}
