//! `catraca lock` and `catraca locks`: real nodes, real commands, real signals.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};

use support::Folder;
use support::service::{Process, Service, at_terminal, is_running, wait_until};

/// Runs until it is ended by a signal, and says when it has begun.
const LONG: &str = "echo begun; while :; do sleep 0.05; done";

#[test]
fn the_status_of_the_command_passes_through() {
    let service = Service::start(1, &[]);
    for (line, code) in [("true", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137)] {
        assert_eq!(service.lock(0, "x", line).ends().code, Some(code), "{line}");
    }
    let run = |program| service.client(0, &["lock"], &["x", "--", program]).ends();
    let missing = run("no-such-program");
    assert_eq!(missing.code, Some(127));
    missing.complained(&["no-such-program: command not found"]);
    assert_eq!(run("/etc/passwd").code, Some(126));
    assert_eq!(service.locks(0), "Nobody holds a lock, nobody waits.\n");
}

#[test]
fn the_command_finds_names_fences_and_deadline_in_its_environment() {
    let service = Service::start(1, &[]);
    service.lock(0, "b", "true").ends().quietly(0);
    let line = "echo $CATRACA_LOCK; echo $CATRACA_FENCE; echo $CATRACA_DEADLINE";
    let ran = service.lock(0, "b a b", line).ends().quietly(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "b a");
    let fences: Vec<u64> = lines[1].split(' ').map(|fence| fence.parse().unwrap()).collect();
    assert!(fences.len() == 2 && fences[0] > fences[1], "{fences:?}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let deadline: u128 = lines[2].parse().unwrap();
    assert!(deadline.abs_diff(now.as_millis()) < support::GENEROUS.as_millis(), "{deadline}");
}

#[test]
fn whoever_does_not_wait_is_told_by_the_exit_code() {
    let service = Service::start(2, &[]);
    let holder = service.lock(0, "x", LONG);
    holder.says("begun");
    for member in [0, 1] {
        for (flags, code) in [
            ("-n x", 1),
            ("-w 0 x", 1),
            ("-n -E 42 x", 42),
            ("-w 0.2 x", 124),
            ("-w 0.2 -E 9 x", 9),
        ] {
            let ran = service.lock(member, flags, "true").ends();
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""), "{member}: {flags}");
        }
    }
    service.lock(1, "-v -n x", "true").ends().complained(&["'x': somebody else holds the lock"]);
    service.lock(1, "-n y", "true").ends().quietly(0);
    holder.signal("TERM");
    assert_eq!(holder.ends().code, Some(143));
    service.lock(1, "-w 60 x", "true").ends().quietly(0);
}

#[test]
fn several_names_are_refused_if_one_is_held_anywhere_and_nothing_is_kept() {
    for flags in [&[][..], &["--algorithm", "bouabdallah-laforest"]] {
        let service = Service::start(3, flags);
        let holder = service.lock(0, "y", LONG);
        holder.says("begun");
        for member in 0..3 {
            assert_eq!(service.lock(member, "-n x y z", "true").ends().code, Some(1), "{member}");
        }
        assert!(service.locks(2).contains("1 holder, 0 waiters"), "{}", service.locks(2));
        holder.signal("TERM");
        assert_eq!(holder.ends().code, Some(143));
        service.lock(1, "-w 60 x y z", "true").ends().quietly(0);
    }
}

#[test]
fn the_list_shows_who_holds_and_who_waits_over_the_whole_group() {
    let service = Service::start(3, &[]);
    let holder = service.lock(0, "--label nightly x", LONG);
    holder.says("begun");
    let waiters: Vec<Process> = (1..=2)
        .map(|place| {
            let waiter = service.lock(1, "x", "true");
            wait_until("it waits", || service.locks(2).contains(&format!("waits {place}")));
            waiter
        })
        .collect();
    let table = service.locks(2);
    assert!(table.contains("1 holder, 2 waiters"), "{table}");
    let json = service.client(2, &["locks", "--json"], &[]).ends().quietly(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let lines = json["locks"].as_array().unwrap();
    assert_eq!((&lines[0]["state"], &lines[0]["label"]), (&"holds".into(), &"nightly".into()));
    assert_eq!((&lines[0]["node"], &lines[0]["pid"]), (&"a".into(), &holder.id().into()));
    assert!(lines[0]["fence"].is_u64() && lines[0]["host"].is_string());
    for (line, (place, waiter)) in lines[1..].iter().zip((1..).zip(&waiters)) {
        assert_eq!((&line["state"], &line["place"]), (&"waits".into(), &place.into()));
        assert_eq!((&line["label"], &line["pid"]), (&"tester:sh".into(), &waiter.id().into()));
        assert_eq!((&line["node"], &line["fence"]), (&"b".into(), &serde_json::Value::Null));
    }
    holder.signal("TERM");
    for waiter in waiters {
        waiter.ends().quietly(0);
    }
}

#[test]
fn the_list_fits_the_terminal_and_is_whole_elsewhere() {
    let service = Service::start(1, &[]);
    let label = "nightly-report-of-all-departments-and-their-subsidiaries";
    let holder = service.lock(0, &format!("--label {label} db/orders"), LONG);
    holder.says("begun");
    assert!(service.locks(0).contains(label));
    let catraca = env!("CARGO_BIN_EXE_catraca");
    let line = format!("stty cols 80; {catraca} locks --node {}", service.addresses[0]);
    let ran = at_terminal(&service.folder, &line).ends();
    assert!(ran.stdout.contains("db/orders  holds  nightly"), "{ran:?}");
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{ran:?}");
    holder.signal("TERM");
    holder.ends();
}

#[test]
fn a_member_that_does_not_answer_is_named() {
    let mut service = Service::start(2, &[]);
    drop(service.nodes.remove(1));
    let ran = service.client(0, &["locks"], &[]).ends();
    assert_eq!(ran.code, Some(0));
    ran.complained(&["no answer from b"]).says("Nobody holds a lock");
}

#[test]
fn watching_goes_on_until_ctrl_c() {
    let service = Service::start(1, &[]);
    let watch = service.client(0, &["locks", "--watch"], &[]);
    watch.says("Nobody holds a lock");
    let holder = service.lock(0, "x", LONG);
    watch.says("1 holder");
    watch.signal("INT");
    watch.ends().quietly(0);
    holder.signal("TERM");
    holder.ends();
}

#[test]
fn signals_reach_the_whole_process_group() {
    let service = Service::start(1, &[]);
    // The first wait is interrupted by the signal.
    let line = "trap : USR1; sh -c \"trap 'echo heard; exit 0' USR1; echo begun; \
                while :; do sleep 0.05; done\" & wait; wait; exit 5";
    let holder = service.lock(0, "x", line);
    holder.says("begun");
    holder.signal("USR1");
    let ran = holder.ends();
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stdout.contains("heard"), "{ran:?}");
}

#[test]
fn a_waiter_that_is_interrupted_is_gone_at_once() {
    let service = Service::start(1, &[]);
    let holder = service.lock(0, "x", LONG);
    holder.says("begun");
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let waiter = service.lock(0, "--ttl 3600 x", "true");
        wait_until("it waits", || service.locks(0).contains("1 waiter"));
        waiter.signal(signal);
        assert_eq!(waiter.ends().code, Some(code));
        assert!(service.locks(0).contains("0 waiters"));
    }
    holder.signal("INT");
    assert_eq!(holder.ends().code, Some(130));
    assert!(service.locks(0).contains("Nobody"));
}

#[test]
fn without_a_command_the_lock_is_held_until_a_signal_or_the_end_of_input() {
    let service = Service::start(1, &[]);
    let mut command = service.command(0, &["lock"], &["x"]);
    command.stdin(Stdio::piped());
    let mut piped = Process::start(command);
    piped.says("\n");
    assert!(piped.stdout().trim().parse::<u64>().is_ok(), "{}", piped.stdout());
    assert_eq!(service.lock(0, "-n x", "true").ends().code, Some(1));
    piped.end_input();
    piped.ends().quietly(0);
    for signal in ["INT", "TERM"] {
        // Its input is /dev/null, which is always at its end.
        let held = service.client(0, &["lock"], &["x"]);
        held.says("\n");
        assert_eq!(service.lock(0, "-n x", "true").ends().code, Some(1));
        held.signal(signal);
        let ran = held.ends();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.complained(&["held until Ctrl-C or SIGTERM; to run a command, put '--' before it"]);
        assert!(service.locks(0).contains("Nobody"));
    }
}

#[test]
fn whoever_has_no_name_in_the_environment_is_called_what_the_system_calls_it() {
    let service = Service::start(1, &[]);
    let mut command = service.command(0, &["lock"], &["x", "--", "sh", "-c", LONG]);
    command.env_remove("USER");
    let holder = Process::start(command);
    holder.says("begun");
    let name = service.folder.shell("id -un || id -u").stdout;
    let who = format!("{}:sh", name.trim());
    assert!(service.locks(0).contains(&who), "{who}: {}", service.locks(0));
    holder.signal("TERM");
    holder.ends();
}

#[test]
fn a_fence_that_cannot_be_printed_is_not_taken_for_a_lock_of_somebody_else() {
    let service = Service::start(1, &[]);
    let line = format!(
        "{} lock --node {} x > /dev/full",
        env!("CARGO_BIN_EXE_catraca"),
        service.addresses[0]
    );
    let ran = service.folder.shell(&line);
    assert_eq!(ran.code, Some(125), "{ran:?}");
    ran.complained(&["cannot write to standard output", "the lock is not held"]);
    assert!(service.locks(0).contains("Nobody"));
}

#[test]
fn when_the_node_dies_the_command_is_ended_before_its_time_to_live() {
    let mut service = Service::start(1, &[]);
    let stubborn = "trap 'echo asked' TERM; echo begun $$; while :; do sleep 0.05; done";
    let holder = service.lock(0, "-v --ttl 6 x", stubborn);
    holder.says("begun");
    let node = service.nodes.remove(0);
    node.signal("KILL");
    let killed = Instant::now();
    node.ends();
    let ran = holder.ends();
    assert!(killed.elapsed() < Duration::from_secs(6), "{:?}", killed.elapsed());
    assert_eq!(ran.code, Some(123), "{ran:?}");
    assert!(ran.stdout.contains("asked"), "{ran:?}");
    assert!(ran.stderr.contains("lost the lock 'x'"), "{ran:?}");
    assert!(ran.stderr.contains("did not answer in time"), "{ran:?}");
    assert!(!ran.stderr.contains("release"), "what is lost is not released: {ran:?}");
    let pid = ran.stdout.split(' ').nth(1).unwrap().lines().next().unwrap().to_string();
    assert!(!is_running(&pid));
}

#[test]
fn a_node_that_stops_without_time_to_finish_tells_its_clients_at_once() {
    let mut service = Service::start(1, &["--drain", "0s", "--lease", "2s"]);
    let holder = service.lock(0, "--ttl 3600 x", LONG);
    let idle = service.client(0, &["lock", "--ttl", "3600"], &["y"]);
    holder.says("begun");
    idle.says("\n");
    let waiter = service.lock(0, "--ttl 3600 x", "true");
    wait_until("it waits", || service.locks(0).contains("1 waiter"));
    let node = service.nodes.remove(0);
    node.signal("TERM");
    assert_eq!(node.ends().code, Some(0));
    for client in [holder, idle] {
        let ran = client.ends();
        assert_eq!(ran.code, Some(123), "{ran:?}");
        assert!(ran.stderr.contains("has stopped"), "{ran:?}");
    }
    let waited = waiter.ends();
    assert_eq!(waited.code, Some(122));
    waited.complained(&["this node is leaving its group; ask another one"]);
}

#[test]
fn a_waiter_that_was_stopped_for_too_long_asks_again() {
    let service = Service::start(1, &[]);
    let holder = service.lock(0, "x", LONG);
    holder.says("begun");
    let waiter = service.lock(0, "--ttl 1 -v x", "echo ran");
    wait_until("it waits", || service.locks(0).contains("1 waiter"));
    waiter.signal("STOP");
    wait_until("its session runs out", || service.locks(0).contains("0 waiters"));
    waiter.signal("CONT");
    wait_until("it waits again", || service.locks(0).contains("1 waiter"));
    // Now it is granted the lock while it is stopped, and wakes up when somebody else has it.
    waiter.signal("STOP");
    holder.signal("TERM");
    holder.ends();
    let other = service.lock(0, "--label other -w 100 x", LONG);
    other.says("begun");
    waiter.signal("CONT");
    wait_until("it waits again", || service.locks(0).contains("1 waiter"));
    assert_eq!(waiter.stdout(), "");
    other.signal("TERM");
    other.ends();
    let ran = waiter.ends();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ran\n"), "{ran:?}");
}

#[test]
fn several_names_do_not_deadlock() {
    let service = Service::start(3, &[]);
    let line = "n=$(cat one two 2>/dev/null | wc -l); echo x >> one; echo x >> two; \
                test $(cat one two | wc -l) = $((n + 2))";
    let orders = ["a b", "b a"];
    let clients: Vec<Process> =
        (0..12).map(|client| service.lock(client % 3, orders[client % 2], line)).collect();
    for client in clients {
        client.ends().quietly(0);
    }
    assert_eq!(service.folder.read("one").lines().count(), 12);
}

#[test]
fn a_semaphore_lets_so_many_in() {
    let service = Service::start(2, &[]);
    let holders = [0, 1].map(|member| service.lock(member, "--permits 2 x", LONG));
    for holder in &holders {
        holder.says("begun");
    }
    assert_eq!(service.lock(0, "-n --permits 2 x", "true").ends().code, Some(1));
    for holder in holders {
        holder.signal("TERM");
        assert_eq!(holder.ends().code, Some(143));
    }
    service.lock(0, "-w 60 --permits 2 x", "true").ends().quietly(0);
}

#[test]
fn what_cannot_be_locked_is_refused_in_one_line() {
    let folder = Folder::new();
    let long = "n".repeat(4096);
    let cases: &[(&[&str], &str)] = &[
        (&["a b"], "no spaces"),
        (&[""], "a lock needs a name"),
        (&[&long], "a name of 4096 bytes is too long; a lock's name has at most 255"),
        (&["--permits", "2", "a", "b"], "--permits is for one name at a time"),
        (&["--permits", "65", "a"], "--permits: "),
        (&["--ttl", "0", "a"], "--ttl: '0' is no time: give 0.5 to 86400 seconds"),
        (&["-w", "soon", "a"], "--wait: 'soon' is no time"),
        (&["-w", "-1", "a"], "--wait: '-1' is no time"),
        (&["--node", "nowhere", "a"], "--node: 'nowhere' is no address"),
    ];
    for (words, text) in cases {
        folder.run(&[&["lock"], *words, &["--", "true"]].concat()).refused(&[text]);
    }
    folder.run(&["lock", "a", "--"]).refused(&["no command stands after '--'"]);
}

#[test]
fn a_command_without_its_separator_is_not_taken_for_names_of_locks() {
    let service = Service::start(1, &[]);
    let refused = service.client(0, &["lock"], &["x", "sleep", "1"]).ends();
    refused.refused(&["'sleep' looks like a command", "catraca lock x -- sleep 1", "--hold"]);
    let refused = service.client(0, &["lock"], &["x", "no-such-program", "now"]).ends();
    refused.refused(&[
        "no command stands after '--'",
        "catraca lock x -- no-such-program now",
        "--hold",
    ]);
    let held = service.client(0, &["lock", "--hold"], &["x", "sleep"]);
    held.says(" ");
    assert!(service.locks(0).contains("2 holders"));
    held.signal("TERM");
    assert_eq!(held.ends().code, Some(0));
    // After '--' everything is the command's.
    service.client(0, &["lock"], &["x", "sleep", "--", "true"]).ends().quietly(0);
}

#[test]
fn of_several_nodes_the_first_that_serves_is_asked() {
    let mut service = Service::start(3, &[]);
    let nowhere = support::service::addresses(1).remove(0);
    let nodes = format!("{nowhere},{},{}", service.addresses[0], service.addresses[1]);
    let lock = |line: &str| {
        let mut command = service.folder.command(&["lock", "x", "--", "sh", "-c", line]);
        command.env("CATRACA_NODE", &nodes);
        Process::start(command)
    };
    let holder = service.lock(1, "x", LONG);
    holder.says("begun");
    let waiter = lock("echo ran");
    wait_until("it waits", || service.locks(1).contains("1 waiter"));
    // It waits at the first node, and goes to the second when that one stops.
    let node = service.nodes.remove(0);
    assert!(service.client(1, &["locks", "--json"], &[]).ends().stdout.contains("\"node\":\"a\""));
    node.signal("TERM");
    assert_eq!(node.ends().code, Some(0));
    wait_until("it waits at the second", || {
        let listed = service.client(1, &["locks", "--json"], &[]).ends().stdout;
        listed.contains("\"state\":\"waits\"") && !listed.contains("\"node\":\"a\"")
    });
    waiter.signal("TERM");
    assert_eq!(waiter.ends().code, Some(143));
    holder.signal("TERM");
    holder.ends();
}
