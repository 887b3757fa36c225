//! Nothing runs under a lock that is lost, whatever is stopped or killed: `catraca lock`, its guardian,
//! or what is going to be the command.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use support::Folder;
use support::service::{Process, Service, is_running, signal, wait_until};

/// Later than every clock shows.
const FAR: u64 = 1 << 62;

/// Starts a command that writes its process number into a file.
fn begin(service: &Service, on_term: &str) -> (Process, String) {
    let line = format!("trap {on_term} TERM; echo $$ > pid; while :; do sleep 0.05; done");
    let holder = service.lock(0, "--ttl 2 x", &line);
    wait_until("it begins", || {
        service.folder.names().contains(&"pid".to_string())
            && service.folder.read("pid").ends_with('\n')
    });
    (holder, service.folder.read("pid"))
}

/// Whoever is inside next sees that the command with the number in the file `pid` has ended.
#[track_caller]
fn ends_before_the_next_one_is_inside(service: &Service, pid: &str) {
    // Nobody may have waited for its end, so it can still be a zombie.
    let gone = "! grep -q '^State:.[RSDT]' /proc/$(cat pid)/status 2>/dev/null";
    let ran = service.lock(0, "-w 100 x", gone).ends();
    assert_eq!(ran.code, Some(0), "the command still ran: {ran:?}");
    assert!(!is_running(pid));
}

#[test]
fn nothing_is_left_behind_when_the_client_is_killed() {
    let service = Service::start(1, &[]);
    let (holder, pid) = begin(&service, "''");
    holder.signal("KILL");
    ends_before_the_next_one_is_inside(&service, &pid);
}

#[test]
fn nothing_runs_on_under_a_lock_whose_client_is_stopped() {
    for on_term in ["''", "-"] {
        let service = Service::start(1, &[]);
        let (holder, pid) = begin(&service, on_term);
        holder.signal("STOP");
        ends_before_the_next_one_is_inside(&service, &pid);
        holder.signal("CONT");
        let ran = holder.ends();
        assert_eq!(ran.code, Some(123), "{ran:?}");
        assert!(ran.stderr.contains("this process was stopped for longer than --ttl"), "{ran:?}");
    }
}

/// The guardian of a client.
fn guardian(client: &Process) -> Option<u32> {
    let id = client.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let is_guardian = |child: &&str| {
        let line = std::fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
        line.ends_with("\0guardian\0")
    };
    children.split_whitespace().find(is_guardian)?.parse().ok()
}

#[test]
fn a_guardian_that_was_killed_is_replaced() {
    let service = Service::start(1, &[]);
    let (holder, pid) = begin(&service, "''");
    let first = guardian(&holder).unwrap();
    signal(first, "KILL");
    holder.complains("the guardian of the command was killed; another one takes over");
    wait_until("there is another one", || guardian(&holder).is_some_and(|other| other != first));
    assert!(is_running(&pid));
    holder.signal("KILL");
    ends_before_the_next_one_is_inside(&service, &pid);
}

/// Stops without a signal: a client that cannot write does nothing else either. It has been granted
/// the lock, and is about to start its command.
#[test]
fn a_client_that_is_stopped_before_its_command_begins_does_not_begin_it_late() {
    let service = Service::start(1, &[]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut flood = writer.try_clone().unwrap();
    let words = ["lock", "--node", &service.addresses[0], "-v", "--ttl", "1", "x"];
    let mut command = service.folder.command(&[&words[..], &["--", "touch", "started"]].concat());
    command.stderr(writer);
    // Fills the pipe, until nobody reads it any more.
    let flooding = std::thread::spawn(move || while flood.write_all(&[b'.'; 4096]).is_ok() {});
    let mut client = Running(command.spawn().unwrap());
    drop(command);
    wait_until("it is inside", || service.locks(0).contains("1 holder"));
    wait_until("its session runs out", || service.locks(0).contains("Nobody"));
    assert!(client.0.try_wait().unwrap().is_none());
    let reading = std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        let mut text = String::new();
        while !text.contains("lost the lock") {
            let read = reader.read(&mut bytes).unwrap();
            text.extend(String::from_utf8_lossy(&bytes[..read]).chars().filter(|&c| c != '.'));
        }
        text
    });
    wait_until("it ends", || client.0.try_wait().unwrap().is_some());
    assert_eq!(client.0.wait().unwrap().code(), Some(123));
    wait_until("it was read", || reading.is_finished());
    let text = reading.join().unwrap();
    assert!(text.contains("this process was stopped for longer than --ttl"), "{text}");
    assert!(!service.folder.names().contains(&"started".to_string()));
    flooding.join().unwrap();
}

/// A child that does not outlive a failed test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn what_becomes_the_command_does_so_only_in_time() {
    let folder = Folder::new();
    let far = format!("{FAR}\\n");
    for (gate, code, complaint, starts) in [
        (far.as_str(), 0, "", true),
        ("5\\n", 123, "the lock could have been lost", false),
        ("late\\n", 123, "", false),
        ("", 125, "its guardian was killed", false),
        (&far[..10], 125, "its guardian was killed", false),
    ] {
        // The command must not inherit the gate.
        let command = "sh -c 'test ! -e /dev/fd/3 && touch started'";
        let ran = folder.shell(&format!(
            "rm -f started; printf '{gate}' > gate; catraca guardian --start 3 -- {command} 3<gate"
        ));
        assert_eq!(ran.code, Some(code), "{gate:?}: {ran:?}");
        assert!(ran.stderr.contains(complaint), "{gate:?}: {ran:?}");
        assert_eq!(folder.names().contains(&"started".to_string()), starts, "{gate:?}");
    }
}

/// A guardian, and a process group that it is told of.
fn guarded(folder: &Folder) -> (Process, Running) {
    let mut command = folder.command(&["guardian"]);
    command.stdin(Stdio::piped());
    let mut sleeper = Command::new("sleep");
    let sleeper = sleeper.arg("1000").process_group(0).spawn().unwrap();
    (Process::start(command), Running(sleeper))
}

#[test]
fn the_gate_opens_when_the_group_is_known_and_the_group_ends_with_the_pipe() {
    let (mut guardian, mut sleeper) = guarded(&Folder::new());
    guardian.types(&format!("lease {FAR} {FAR}\ngroup {}\n", sleeper.0.id()));
    guardian.says(&format!("{FAR}\n"));
    guardian.end_input();
    wait_until("the group has ended", || sleeper.0.try_wait().unwrap().is_some());
    assert_eq!(guardian.ends().code, Some(1));
}

#[test]
fn the_gate_stays_shut_when_it_is_late_and_a_late_group_is_ended() {
    let (mut guardian, mut sleeper) = guarded(&Folder::new());
    guardian.types(&format!("group {}\nlease 1 1\n", sleeper.0.id()));
    wait_until("the group has ended", || sleeper.0.try_wait().unwrap().is_some());
    let ran = guardian.ends();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
}

/// Of the command it knows, and not until when it may run: it may not run.
#[test]
fn a_group_without_a_lease_is_ended_with_the_pipe() {
    let (mut guardian, mut sleeper) = guarded(&Folder::new());
    guardian.types(&format!("group {}\n", sleeper.0.id()));
    guardian.end_input();
    wait_until("the group has ended", || sleeper.0.try_wait().unwrap().is_some());
    let ran = guardian.ends();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
}

#[test]
fn the_gate_stays_shut_for_a_group_that_was_never_named() {
    for lease in ["", "lease 1 1\n", &format!("lease {FAR} {FAR}\n")] {
        let (mut guardian, mut sleeper) = guarded(&Folder::new());
        guardian.types(lease);
        guardian.end_input();
        let ran = guardian.ends();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "late\n"), "{lease}");
        assert!(sleeper.0.try_wait().unwrap().is_none());
    }
}
