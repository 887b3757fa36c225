//! What becomes of nodes, as processes, when their registry is not as it should be: an etcd that is away, a
//! disk that is full, a majority that is lost for good.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use support::etcd::Etcd;
use support::service::{Process, Service, addresses, wait_until};
use support::{Folder, Ran};

/// Tries to lock without waiting.
fn try_lock(folder: &Folder, node: &str) -> Ran {
    folder.run(&["lock", "--node", node, "-n", "x", "--", "true"])
}

fn status(folder: &Folder, node: &str) -> Ran {
    folder.run(&["status", "--node", node])
}

fn is_served(folder: &Folder, node: &str) -> bool {
    try_lock(folder, node).code == Some(0)
}

#[test]
fn a_group_without_its_etcd_stops_to_grant_and_goes_on_by_itself_when_it_is_back() {
    let folder = Folder::new();
    let etcd = Etcd::start(&folder);
    let mut service = Service { folder, addresses: addresses(2), nodes: Vec::new() };
    let flags = ["--registry", &etcd.url, "--lease", "2s"];
    service.nodes = (0..2).map(|member| service.node(member, &flags)).collect();
    service.is_whole();
    let (folder, node) = (&service.folder, service.addresses[0].clone());
    let hold = ["lock", "--node", &node, "--durable", "--owner", "ana", "kept"];
    let hold = folder.run(&hold).quietly(0).stdout;
    etcd.stop();
    // The lease may be over before anybody knows that the registry does not answer.
    wait_until("the lease is over, and why", || {
        let told = status(folder, &node);
        told.code == Some(4) && told.stdout.contains("In trouble: the registry")
    });
    assert_eq!(
        try_lock(folder, &node).code,
        Some(122),
        "it cannot serve, and does not know who has it"
    );
    service.nodes[0].complains("the registry is in trouble");
    etcd.go_on();
    wait_until("it serves again", || is_served(folder, &node));
    service.is_whole();
    let (folder, node) = (&service.folder, &service.addresses[1]);
    // The hold is the same, and nobody else gets in.
    let id = hold.split(' ').next().unwrap();
    wait_until("the hold is known", || {
        folder.run(&["locks", "--node", node]).stdout.contains("ana")
    });
    assert_eq!(folder.run(&["lock", "--node", node, "-n", "kept", "--", "true"]).code, Some(1));
    folder.run(&["unlock", "--node", node, "--owner", "ana", id]).quietly(0);
}

#[test]
fn a_node_waits_for_an_etcd_that_is_not_there_yet_and_says_so() {
    let (folder, [etcd, node]) = (Folder::new(), addresses(2).try_into().unwrap());
    let words = ["node", "--listen", &node, "--registry", &format!("etcd://{etcd}")];
    let waits = Process::start(folder.command(&words));
    waits.complains("this node waits for its registry");
    waits.says(&format!("listens at {node}"));
    let ran = try_lock(&folder, &node);
    assert_eq!(ran.code, Some(122), "{ran:?}");
    ran.complained(&["this node is not in its group yet"]);
    assert_eq!(status(&folder, &node).code, Some(4));
    let _etcd = Etcd::start_at(&folder, &etcd);
    wait_until("it serves", || is_served(&folder, &node));
}

#[test]
fn groups_in_one_etcd_know_nothing_of_each_other_and_a_member_of_another_kind_stays_out() {
    let folder = Folder::new();
    let etcd = Etcd::start(&folder);
    let at = addresses(3);
    let node = |number: usize, group: &str, name: &str, more: &[&str]| {
        let own = ["node", "--listen", &at[number], "--registry", &etcd.url, "--lease", "2s"];
        let who = ["--group", group, "--name", name];
        Process::start(folder.command(&[&own[..], &who, more].concat()))
    };
    let groups = [node(0, "one", "a", &[]), node(1, "two", "a", &[])];
    groups.iter().for_each(|node| node.says("listens at"));
    let hold = |at: &str| Process::start(folder.command(&["lock", "--node", at, "x"]));
    // Both hold the lock of this name: it is not the same one.
    let _holders = [hold(&at[0]), hold(&at[1])];
    wait_until("both hold it", || {
        let table = |at: &String| folder.run(&["locks", "--node", at]).stdout;
        at[..2].iter().all(|at| table(at).contains("1 holder, 0 waiters"))
    });
    // Somebody who was told of the wrong group does not get in by its name, and knows why.
    let members = format!("a={},b={}", at[0], at[2]);
    let other = node(2, "one", "b", &["--members", &members, "--algorithm", "raymond"]);
    let why = "'b' does not belong to the group";
    wait_until("it knows why it stays out", || {
        let told = status(&folder, &at[2]);
        told.code == Some(4) && told.stdout.contains(why)
    });
    assert_eq!(try_lock(&folder, &at[2]).code, Some(122));
    drop((other, groups));
}

/// A node alone on a small disk of its own. Whoever is in it can fill the disk, and make room again.
fn on_a_small_disk(folder: &Folder, node: &str) -> Process {
    let script = "mkdir disk && mount -t tmpfs -o size=6m none disk || exit 9
        \"$0\" node --listen \"$1\" --data disk/own --lease 2s & node=$!
        while read -r word; do case $word in
            fill) head -c 8m /dev/zero > disk/filler 2> /dev/null; echo filled;;
            free) rm disk/filler; echo freed;;
        esac; done
        kill -TERM $node; wait $node";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--user", "--mount", "sh", "-c", script]);
    command.args([env!("CARGO_BIN_EXE_catraca"), node]);
    command.current_dir(folder.path("")).stdin(Stdio::piped());
    command.env_remove("XDG_RUNTIME_DIR");
    Process::start(command)
}

#[test]
fn a_node_whose_disk_is_full_says_so_and_goes_on_by_itself_when_there_is_room() {
    let (folder, node) = (Folder::new(), addresses(1).remove(0));
    let mut disk = on_a_small_disk(&folder, &node);
    disk.says("listens at");
    wait_until("it serves", || is_served(&folder, &node));
    let durable = |flags: &[&str]| {
        let words = ["lock", "--node", &node, "--durable", "--owner", "ana", "-n"];
        folder.run(&[&words[..], flags].concat())
    };
    let before = ["--request", "1", "before"];
    let had = durable(&before).quietly(0).stdout;
    disk.types("fill\n");
    disk.says("filled");
    // Beats are small, and fit for a while: these holds do not.
    let (number, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let large = || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let name = |part| format!("filling/{number}/{part}/{}", "x".repeat(150));
        let names: Vec<String> = (0..100).map(name).collect();
        durable(&names.iter().map(String::as_str).collect::<Vec<_>>())
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                large();
            }
        });
        wait_until("it says why", || {
            let told = status(&folder, &node);
            matches!(told.code, Some(3 | 4)) && told.stdout.contains("the disk is full")
        });
        is_over.store(true, Ordering::Relaxed);
    });
    disk.complains("the registry is in trouble");
    disk.types("free\n");
    disk.says("freed");
    wait_until("all is well", || status(&folder, &node).code == Some(0));
    disk.complains("the registry is well again");
    assert_eq!(large().code, Some(0));
    // Whoever asks again gets the hold of before.
    assert_eq!(durable(&before).quietly(0).stdout, had);
    assert_eq!(folder.run(&["lock", "--node", &node, "-n", "before", "--", "true"]).code, Some(1));
    disk.end_input();
    assert_eq!(disk.ends().code, Some(0));
}

#[test]
fn what_one_voter_knows_can_be_made_to_go_on_when_the_others_are_gone_for_good() {
    let mut service = Service::start(3, &["--lease", "2s"]);
    let folder = &service.folder;
    let hold = ["lock", "--node", &service.addresses[1], "--durable", "--owner", "ana", "kept"];
    let hold = folder.run(&hold).quietly(0).stdout;
    // Every voter has heard of it when a later change has reached all of them.
    wait_until("all know the hold", || (0..3).all(|member| service.locks(member).contains("ana")));
    let recover = |flags: &[&str]| folder.run(&[&["recover", "--data"], flags].concat());
    let sure = "--i-know-the-others-are-gone";
    let ran = recover(&["a"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    ran.complained(&["this forgets what only the other voters know", sure]);
    let ran = recover(&["a", sure]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran.complained(&["another node uses the directory a"]);
    std::fs::create_dir(folder.path("other")).unwrap();
    for place in ["none", "other"] {
        let ran = recover(&[place, sure]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        ran.complained(&["there is no registry in the directory"]);
    }
    assert!(std::fs::read_dir(folder.path("other")).unwrap().next().is_none(), "it left something");
    service.nodes.iter().for_each(|node| node.signal("KILL"));
    for node in std::mem::take(&mut service.nodes) {
        node.ends();
    }
    // Alone it has no majority, and says what is missing.
    let alone = service.node(0, &["--lease", "2s"]);
    alone.complains("not in the group yet");
    let told = status(folder, &service.addresses[0]);
    assert_eq!(told.code, Some(4), "{told:?}");
    alone.signal("KILL");
    alone.ends();
    recover(&["a", sure]).quietly(0).says("goes on alone");
    let alone = service.node(0, &["--lease", "2s"]);
    wait_until("it serves", || is_served(folder, &service.addresses[0]));
    let ask = ["lock", "--node", &service.addresses[0], "-n", "kept", "--", "true"];
    assert_eq!(folder.run(&ask).code, Some(1), "somebody has it");
    for gone in ["b", "c"] {
        std::fs::remove_dir_all(folder.path(gone)).unwrap();
    }
    service.nodes = vec![alone];
    service.nodes.extend([1, 2].map(|member| service.node(member, &["--lease", "2s"])));
    service.is_whole();
    let id = hold.split(' ').next().unwrap();
    let unlock = ["unlock", "--node", &service.addresses[2], "--owner", "ana", id];
    service.folder.run(&unlock).quietly(0);
}
