//! Nothing runs under a lock that is lost, whatever is stopped or killed: `catraca lock`, its guardian,
//! or what is going to be the command.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

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

#[test]
fn a_guardian_that_was_stopped_goes_on_and_holds_nobody_up() {
    let service = Service::start(1, &[]);
    let (holder, _) = begin(&service, "-");
    let id = guardian(&holder).unwrap();
    let is_stopped = || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status"));
        status.is_ok_and(|status| status.contains("State:\tT"))
    };
    signal(id, "STOP");
    wait_until("it goes on", || !is_stopped());
    assert_eq!(guardian(&holder), Some(id), "it is the same one");
    // Stopped at the end of the command, it must not keep the client from ending.
    signal(id, "STOP");
    holder.signal("TERM");
    assert_eq!(holder.ends().code, Some(143));
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

/// Whom a try stops.
#[derive(Clone, Copy, Debug)]
enum Stopped {
    Client,
    Guardian,
    Starter,
}

/// The process that is to be stopped, as soon as there is one.
fn find(client: &Process, which: Stopped) -> Option<Pid> {
    let id = client.id();
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).ok()?;
    let children =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let children: String = children.collect();
    let is_it = |child: &&str| {
        let line = std::fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
        match which {
            Stopped::Client => false,
            Stopped::Guardian => line.ends_with("\0guardian\0"),
            Stopped::Starter => line.contains("\0guardian\0--start\0"),
        }
    };
    match which {
        Stopped::Client => Some(Pid::from_raw(id as i32)),
        _ => Some(Pid::from_raw(children.split_whitespace().find(is_it)?.parse().ok()?)),
    }
}

/// One try: stops one of the three processes for longer than the time to live, `wait` after it is there,
/// and lets somebody else wait for the lock. Returns whether the command was started, and if not, whether
/// the lock had been granted: then the window was hit.
fn stop_around_the_grant(
    service: &Service,
    try_: usize,
    which: Stopped,
    wait: Duration,
) -> (bool, bool) {
    let line = format!("echo $$ > t-{try_}; mv t-{try_} pid-{try_}; sleep 0.9");
    let mut client = service.lock(0, &format!("--ttl 0.5 x-{try_}"), &line);
    let mut target = None;
    if try_ % 6 == 3 {
        wait_until("the command is about to start", || {
            find(&client, Stopped::Starter).is_some() || client.has_ended()
        });
    }
    wait_until("there is somebody to stop", || {
        target = find(&client, which);
        target.is_some() || client.has_ended()
    });
    std::thread::sleep(wait);
    let stop = |signal| target.is_some_and(|target| kill(target, signal).is_ok());
    stop(Signal::SIGSTOP);
    let begin = Instant::now();
    // What runs when it is inside, and what begins while it is.
    let runs = format!(
        "runs() {{ test -e pid-{try_} && grep -q '^State:.[RSDT]' /proc/$(cat pid-{try_})/status \
         2>/dev/null; }}; runs && exit 7; touch in-{try_}; sleep 0.5; runs && exit 8; exit 0"
    );
    let next = service.lock(0, &format!("-w 100 x-{try_}"), &runs);
    let is_inside = service.folder.path(&format!("in-{try_}"));
    wait_until("it was stopped for long enough", || {
        is_inside.exists() || begin.elapsed() > Duration::from_millis(900)
    });
    stop(Signal::SIGCONT);
    let ran = next.ends();
    assert_eq!(ran.code, Some(0), "try {try_}, {which:?} after {wait:?}: {ran:?}");
    let ran = client.ends();
    let began = service.folder.path(&format!("pid-{try_}")).exists();
    // Whoever was never granted the lock has not lost it.
    (began, !began && ran.code == Some(123))
}

/// The window between the grant and the start of the command, hit from all sides.
#[test]
fn nothing_begins_late_whoever_is_stopped_around_the_grant() {
    // As many tries as it takes to hit the window, but not for ever.
    const LEAST: usize = 48;
    const MOST: usize = 480;
    let service = Service::start(1, &[]);
    let (next, started, refused) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let try_ = next.fetch_add(1, Ordering::Relaxed);
                    let is_hit = refused.load(Ordering::Relaxed) > 0;
                    if try_ >= MOST || try_ >= LEAST && is_hit {
                        return;
                    }
                    let which = [Stopped::Client, Stopped::Starter, Stopped::Guardian][try_ % 3];
                    // The client needs some milliseconds to be granted the lock; from then on it is
                    // a matter of one or two.
                    let spread = if try_ % 6 == 0 { 40_000 } else { 3000 };
                    let wait = Duration::from_micros(try_ as u64 * 7919 % spread);
                    let (began, hit) = stop_around_the_grant(&service, try_, which, wait);
                    started.fetch_add(usize::from(began), Ordering::Relaxed);
                    refused.fetch_add(usize::from(hit), Ordering::Relaxed);
                }
            });
        }
    });
    let (started, refused) = (started.into_inner(), refused.into_inner());
    println!("{started} commands were started, {refused} were not though the lock was granted");
    assert!(refused > 0, "in {MOST} tries nobody was stopped between the grant and the start");
}

#[test]
fn a_script_without_an_interpreter_is_run_as_shells_do() {
    let service = Service::start(1, &[]);
    service.folder.write("script", "echo \"$0 $# $1\"; exit 7\n");
    service.folder.write("empty", "");
    service.folder.write("plain", "echo never\n");
    service.folder.shell("chmod +x script empty");
    let run = |words: &[&str]| service.client(0, &["lock"], words).ends();
    let ran = run(&["x", "--", "./script", "a b"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(7), "./script 1 a b\n"), "{ran:?}");
    run(&["x", "--", "./empty"]).quietly(0);
    let ran = run(&["x", "--", "./plain"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(126), ""), "{ran:?}");
}
