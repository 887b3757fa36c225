//! `catraca node`, `catraca config` and `catraca status`, as processes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;

use support::Folder;
use support::service::{Process, Service, addresses, at_terminal};

#[test]
fn a_node_alone_says_where_it_listens_and_what_to_type_next() {
    let folder = Folder::new();
    for signal in ["TERM", "INT"] {
        let node = Process::start(folder.command(&["node", "--listen", "127.0.0.1:0"]));
        node.says("catraca status --node ");
        let said = node.stdout();
        let address = said.split("listens at ").nth(1).unwrap().split(". ").next().unwrap();
        assert!(said.contains(&format!("catraca lock --node {address} deploy -- ./deploy.sh")));
        let lock = ["lock", "--node", address, "x", "--", "true"];
        folder.run(&lock).quietly(0);
        node.signal(signal);
        let ran = node.ends();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("stopping"), "{ran:?}");
    }
}

#[test]
fn what_describes_no_node_is_refused_in_one_line() {
    let folder = Folder::new();
    folder.write("two.toml", "[members]\na = '127.0.0.1:1'\nb = '127.0.0.1:2'\n");
    let cases: &[(&str, &[&str])] = &[
        ("--members a=h:1,b=h:2", &["which member is this node?", "a, b"]),
        ("--name c --members a=h:1,b=h:2", &["there is no member 'c'; the members are a, b"]),
        ("--name a --members a=h:1,a=h:2", &["two members are called 'a'"]),
        ("--name a --members a=h:1,b=h:1", &["members 'a' and 'b' have the same address h:1"]),
        ("--name a --members a", &["'a' is no member: say NAME=HOST:PORT"]),
        ("--name a --members a=h", &["'h' is no address: say HOST:PORT"]),
        ("--name a --members a=h:1@x --cluster y", &["--cluster: the list of members says"]),
        ("--listen nowhere", &["'nowhere' is no address"]),
        ("--algorithm raymnd", &["there is no algorithm 'raymnd'. Did you mean 'raymond'?"]),
        ("--group a/b", &["'a/b' is no name for a group"]),
        ("--config none.toml", &["cannot read 'none.toml': there is no such file"]),
        ("--config two.toml", &["which member is this node?", "a, b"]),
        ("--config two.toml --name c", &["two.toml: there is no member 'c'"]),
    ];
    for (flags, texts) in cases {
        let words: Vec<&str> = ["node"].into_iter().chain(flags.split(' ')).collect();
        folder.run(&words).refused(texts);
    }
}

#[test]
fn an_address_that_cannot_be_had_is_told_in_one_line() {
    let service = Service::start(1, &[]);
    let ran = service.folder.run(&["node", "--listen", &service.addresses[0]]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran.complained(&["cannot listen at 127.", "address already in use", "is a node running"]);
    // An address for documentation: nobody has it.
    let ran = service.folder.run(&["node", "--listen", "192.0.2.1:7800"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran.complained(&["cannot listen at 192.0.2.1:7800", "choose an address of this machine"]);
}

#[test]
fn a_file_is_explained_or_refused_with_its_line() {
    let folder = Folder::new();
    folder.write(
        "group.toml",
        "group = 'build'\nlocks = 5000\n[members]\na = '10.0.0.1:7800'\n\
         b = { address = 'host-b:7800', cluster = 'rio' }\n\
         [[namespace]]\nnames = 'ci/*'\nalgorithm = 'raymond'\n",
    );
    folder
        .run(&["config", "check", "group.toml"])
        .quietly(0)
        .says("Group 'build', 2 of at most 64 members")
        .says("b       host-b:7800    rio")
        .says("ci/*   raymond")
        .says("*      bertier")
        .says("5,000 locks per node")
        .says("catraca node --config group.toml --name MEMBER");
    folder.run(&["config", "check", "group.toml", "--name", "b"]).says("b (this node)");
    folder.write("all.toml", "[[namespace]]\nnames = '*'\nalgorithm = 'raymond'\n");
    let all = folder.run(&["config", "check", "all.toml"]).quietly(0).says("*      raymond");
    assert!(!all.stdout.contains("naimi-trehel"), "it never applies: {}", all.stdout);
    for (text, expected) in [
        ("[members]\na = '10.0.0.1'\n", "bad.toml: line 2: '10.0.0.1' is no address"),
        ("\nmember = 3\n", "bad.toml: line 2: unknown field"),
        (
            "[[namespace]]\nnames = 'x'\nalgorithm = 'lampport'",
            "bad.toml: line 1: namespace 'x': there is no algorithm 'lampport'. Did you mean 'lamport'?",
        ),
        ("handovers = 999", "bad.toml: line 1: handovers is 999, but goes from 0 to 63"),
    ] {
        folder.write("bad.toml", text);
        folder.run(&["config", "check", "bad.toml"]).refused(&[expected]);
    }
}

#[test]
fn three_nodes_find_each_other_and_tell_how_they_are() {
    let service = Service::start(3, &["--algorithm", "raymond"]);
    service.lock(1, "x", "true").ends().quietly(0);
    service.lock(2, "x", "true").ends().quietly(0);
    let status = service.client(2, &["status"], &[]).ends().quietly(0);
    let status =
        status.says("Node 'c' of group 'catraca'").says("this node").says("*      raymond");
    assert!(!status.stdout.contains("naimi-trehel"), "it never applies: {}", status.stdout);
    service.lock(2, "--permits 2 x", "true").ends().quietly(0);
    let status = service.client(2, &["status"], &[]).ends().quietly(0);
    status.says("* (semaphores)  raymond-k  reply ");
    let json = service.client(1, &["status", "--json"], &[]).ends().quietly(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["members"][0]["link"], "up");
    assert_eq!(json["counters"]["grants"], 1);
    assert_eq!(json["counters"]["anomalies"], 0);
    service.nodes[0].complains("connected, member b");
}

#[test]
fn members_with_labels_are_clusters() {
    let (folder, addresses) = (Folder::new(), addresses(2));
    let list = format!("a={}@paris,b={}@rio", addresses[0], addresses[1]);
    let start = |name| {
        let words = ["node", "--name", name, "--members", &list];
        Process::start(folder.command(&words))
    };
    let nodes = [start("a"), start("b")];
    nodes[0].complains("connected, member b");
    nodes[1].complains("connected, member a");
    folder.run(&["status", "--node", &addresses[1]]).quietly(0).says("rio").says("bertier");
    folder.run(&["lock", "--node", &addresses[1], "x", "--", "true"]).quietly(0);
}

#[test]
fn a_node_takes_as_many_connections_as_the_system_lets_it() {
    let folder = Folder::new();
    // So few that the node would soon stop to accept.
    let line = "ulimit -Sn 24; ulimit -Hn 300; exec \"$0\" node -v --listen 127.0.0.1:0";
    let mut command = std::process::Command::new("bash");
    command.args(["-c", line, env!("CARGO_BIN_EXE_catraca")]).stdin(std::process::Stdio::null());
    let node = Process::start(command);
    node.says("listens at ");
    node.complains("at most 300 open files, and nearly as many connections");
    let said = node.stdout();
    let address = said.split("listens at ").nth(1).unwrap().split(". ").next().unwrap();
    let hello = [&b"catraca\n"[..], &[2, 0, 0, 0, 2, 0]].concat();
    let clients: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut client = TcpStream::connect(address).unwrap();
            client.set_read_timeout(Some(support::GENEROUS)).unwrap();
            client.write_all(&hello).unwrap();
            client.read_exact(&mut [0; 4]).unwrap();
            client
        })
        .collect();
    folder.run(&["lock", "--node", address, "x", "--", "true"]).quietly(0);
    drop(clients);
}

#[test]
fn garbage_on_the_port_does_not_disturb_a_node() {
    let service = Service::start(1, &["-v"]);
    let say = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(&service.addresses[0]).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    let closed = |mut stream: TcpStream| {
        stream.set_read_timeout(Some(support::GENEROUS)).unwrap();
        // It may also be reset, which is as good.
        let end = stream.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
        assert_ne!(end, Err(std::io::ErrorKind::WouldBlock), "it is still open");
    };
    // Another protocol; a frame of 2 GB announced in the handshake, and after it; nonsense after it.
    closed(say(b"GET / HTTP/1.1\r\n\r\n"));
    closed(say(&[&b"catraca\n"[..], &[0, 0, 0, 128]].concat()));
    let hello = [&b"catraca\n"[..], &[2, 0, 0, 0, 2, 0]].concat();
    let mut client = say(&hello);
    let mut welcome = [0; 4];
    client.read_exact(&mut welcome).unwrap();
    client.write_all(&[0, 0, 0, 128]).unwrap();
    closed(client);
    let mut client = say(&hello);
    client.read_exact(&mut welcome).unwrap();
    client.write_all(&[3, 0, 0, 0, 99, 99, 99]).unwrap();
    closed(client);
    service.nodes[0].complains("does not speak catraca's protocol");
    service.nodes[0].complains("a frame of 2147483648 bytes is too long");
    service.lock(0, "x", "true").ends().quietly(0);
}

#[test]
fn members_of_different_groups_refuse_each_other_and_say_so() {
    let (folder, addresses) = (Folder::new(), addresses(2));
    let list = format!("a={},b={}", addresses[0], addresses[1]);
    let start = |name, group| {
        let words = ["node", "--name", name, "--members", &list, "--group", group];
        Process::start(folder.command(&words))
    };
    let (a, b) = (start("a", "one"), start("b", "two"));
    a.complains("this member refuses us, member b, why member 'b' is in group 'two', not in 'one'");
    b.complains("'a' is refused: member 'b' is in group 'two', not in 'one'");
    for address in &addresses {
        let status = folder.run(&["status", "--node", address]).quietly(3);
        status.says("refused: member 'b' is in group 'two', not in 'one'");
    }
    let catraca = env!("CARGO_BIN_EXE_catraca");
    let line = format!("stty cols 70; {catraca} status --node {}", addresses[0]);
    let narrow = at_terminal(&folder, &line).ends().stdout;
    assert!(narrow.lines().all(|line| line.chars().count() <= 70), "{narrow}");
    let words: Vec<&str> = narrow.split_whitespace().collect();
    assert!(words.join(" ").contains("member 'b' is in group 'two', not in 'one'"), "{narrow}");
}

#[test]
fn members_that_were_told_different_things_refuse_each_other() {
    let (folder, addresses) = (Folder::new(), addresses(2));
    let list = format!("a={},b={}", addresses[0], addresses[1]);
    let start = |name, algorithm| {
        let words = ["node", "--name", name, "--members", &list, "--algorithm", algorithm];
        Process::start(folder.command(&words))
    };
    let (a, b) = (start("a", "raymond"), start("b", "lamport"));
    for node in [&a, &b] {
        node.complains("'a' and 'b' have different members or namespaces");
    }
}

#[test]
fn a_restarted_member_is_refused_and_the_others_say_so() {
    let mut service = Service::start(2, &[]);
    drop(service.nodes.remove(1));
    service.nodes[0].complains("disconnected, member b");
    let again = service.node(1, &[]);
    service.nodes[0]
        .complains("this member is refused, member b, why member 'b' has been restarted");
    again.complains("member 'b' has been restarted");
    let status = |member: usize| service.client(member, &["status"], &[]).ends().quietly(3);
    status(0).says("refused: member 'b' has been restarted");
    // Whatever it is asked for, somebody may hold it: it grants nothing.
    for flags in ["", "-n ", "-w 60 "] {
        for name in ["x", "y", "z"] {
            let ran = service.lock(1, &format!("{flags}{name}"), "true").ends();
            assert_eq!(ran.code, Some(122), "{ran:?}");
            ran.complained(&["member 'b' has been restarted", "restart the whole group"]);
        }
    }
}

#[test]
fn a_second_process_with_the_name_of_a_member_is_told_so() {
    let service = Service::start(2, &[]);
    let listen = &addresses(1)[0];
    let second = service.node(0, &["--listen", listen]);
    second
        .complains("another process is connected as member 'a'; give each node a name of its own");
    service.lock(0, "x", "true").ends().quietly(0);
    service.lock(1, "x", "true").ends().quietly(0);
}

#[test]
fn a_group_that_is_not_whole_grants_nothing_and_says_who_is_missing() {
    let (folder, addresses) = (Folder::new(), addresses(2));
    let list = format!("a={},b={}", addresses[0], addresses[1]);
    let start =
        |name| Process::start(folder.command(&["node", "--name", name, "--members", &list]));
    let first = start("a");
    first.says("listens at");
    let lock = ["lock", "--node", &addresses[0]];
    for name in ["x", "y", "z"] {
        let ran = folder.run(&[&lock[..], &["-n", name, "--", "true"]].concat());
        assert_eq!(ran.code, Some(122), "{ran:?}");
        ran.complained(&["'b' has not been yet"]);
    }
    let ran = folder.run(&[&lock[..], &["-w", "0.2", "x", "--", "true"]].concat());
    assert_eq!(ran.code, Some(122), "{ran:?}");
    ran.complained(&["'b' has not been yet"]);
    first.complains("not connected yet; locks are granted once all members have been");
    first.complains("cannot be reached, member b");
    let waits = Process::start(folder.command(&[&lock[..], &["x", "--", "true"]].concat()));
    waits.complains("member 'b' is not connected");
    let _second = start("b");
    assert_eq!(waits.ends().code, Some(0));
    first.complains("all members have been connected");
}

#[test]
fn signals_stop_a_node_in_order_or_not_at_all() {
    for signal in ["HUP", "INT", "TERM"] {
        let mut service = Service::start(1, &[]);
        let node = service.nodes.remove(0);
        // These are not for it.
        node.signal("USR2");
        node.signal("USR1");
        node.complains("status, readiness Ready, locks 0");
        service.lock(0, "x", "true").ends().quietly(0);
        node.signal(signal);
        let ran = node.ends();
        assert_eq!(ran.code, Some(0), "{signal}: {ran:?}");
        assert!(ran.stderr.contains(&format!("stopping, signal SIG{signal}")), "{ran:?}");
        // Every line says when.
        for line in ran.stderr.lines() {
            let (date, rest) = line.split_at_checked(24).unwrap_or_default();
            let shape = date.replace(|digit: char| digit.is_ascii_digit(), "0");
            assert_eq!((shape.as_str(), &rest[..1]), ("0000-00-00T00:00:00.000Z", " "), "{line}");
        }
    }
}

#[test]
fn a_member_that_the_others_do_not_know_is_told_why_nobody_calls_it() {
    let (folder, addresses) = (Folder::new(), addresses(3));
    let [a, b, c] = &addresses[..] else { panic!("three") };
    let start = |name, list: &str| {
        Process::start(folder.command(&["node", "--name", name, "--members", list]))
    };
    let (two, three) = (format!("a={a},b={b}"), format!("a={a},b={b},c={c}"));
    let known = [start("a", &two), start("b", &two)];
    let unknown = start("c", &three);
    unknown.complains("knows no member 'c' in group 'catraca'; give all of them the same list");
    known[0].complains("'c' is refused: member 'a' knows no member 'c'");
    let status = folder.run(&["status", "--node", c]).quietly(3);
    status.says("refused: member 'a' knows no member 'c'");
    folder.run(&["lock", "--node", a, "x", "--", "true"]).quietly(0);
}
