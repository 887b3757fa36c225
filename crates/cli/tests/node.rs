//! `catraca node`, `catraca config` and `catraca status`, as processes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;

use support::Folder;
use support::service::{Process, Service, addresses, at_terminal, wait_until};

/// What a client says first: the version, that it is a client, and that it has nothing to prove itself with.
fn hello() -> Vec<u8> {
    let version = u8::try_from(catraca_client::handshake::VERSION).unwrap();
    [&b"catraca\n"[..], &[2, 0, 0, 0, version, 0], &[1, 0, 0, 0, 0]].concat()
}

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
        .says("where others reach a node, it does not start")
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
    let members = json["members"].as_array().unwrap();
    assert_eq!(members.iter().filter(|member| member["link"] == "up").count(), 2);
    assert!(members.iter().all(|member| member["in_view"] == true));
    assert_eq!(json["registry"]["voters"].as_array().unwrap().len(), 3);
    assert_eq!(json["counters"]["grants"], 1);
    assert_eq!(json["counters"]["anomalies"], 0);
    service.nodes[0].complains("connected, member b");
}

#[test]
fn members_with_labels_are_clusters() {
    let (folder, addresses) = (Folder::new(), addresses(2));
    let list = format!("a={}@paris,b={}@rio", addresses[0], addresses[1]);
    let start = |name| {
        let words = ["node", "--name", name, "--members", &list, "--data", name];
        Process::start(folder.command(&words))
    };
    let _nodes = [start("a"), start("b")];
    let is_well = || folder.run(&["status", "--node", &addresses[1]]).code == Some(0);
    wait_until("they are in one view", is_well);
    let status = folder.run(&["status", "--node", &addresses[1]]).quietly(0);
    status.says("rio").says("bertier");
    // Who votes knows who does.
    let notice = "A group of two does not go on without a.";
    wait_until("it is known who votes", || {
        folder.run(&["status", "--node", &addresses[0]]).stdout.contains(notice)
    });
    folder.run(&["lock", "--node", &addresses[1], "x", "--", "true"]).quietly(0);
}

#[test]
fn a_node_takes_as_many_connections_as_the_system_lets_it() {
    let folder = Folder::new();
    // So few that the node would soon stop to accept.
    let line = "ulimit -Sn 24; ulimit -Hn 300; exec \"$0\" node -v --listen 127.0.0.1:0";
    let mut command = std::process::Command::new("bash");
    command.args(["-c", line, env!("CARGO_BIN_EXE_catraca")]).stdin(std::process::Stdio::null());
    command.env("XDG_DATA_HOME", folder.path(""));
    let node = Process::start(command);
    node.says("listens at ");
    node.complains("at most 300 open files, and nearly as many connections");
    let said = node.stdout();
    let address = said.split("listens at ").nth(1).unwrap().split(". ").next().unwrap();
    let hello = hello();
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
    let hello = hello();
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

/// Two members of a list, each with flags of its own. The first founds the group.
fn two(folder: &Folder, addresses: &[String], flags: [&[&str]; 2]) -> [Process; 2] {
    let list = format!("a={},b={}", addresses[0], addresses[1]);
    let start = |name, flags: &[&str]| {
        let own = ["node", "--name", name, "--members", &list, "--data", name];
        Process::start(folder.command(&[&own, flags].concat()))
    };
    let first = start("a", flags[0]);
    first.complains("locks are granted");
    [first, start("b", flags[1])]
}

#[test]
fn a_member_with_another_group_namespaces_or_lease_stays_out_and_says_why() {
    let cases: [([&[&str]; 2], &str); 3] = [
        ([&["--group", "one"], &["--group", "two"]], "this member is not in the group 'two'"),
        (
            [&["--algorithm", "raymond"], &["--algorithm", "lamport"]],
            "here differ from those of a; make the configurations equal",
        ),
        (
            [&["--lease", "5s"], &["--lease", "6s"]],
            "here differ from those of a; make the configurations equal",
        ),
    ];
    for (flags, why) in cases {
        let (folder, addresses) = (Folder::new(), addresses(2));
        let [_a, b] = two(&folder, &addresses, flags);
        b.complains("not in the group yet, why ");
        b.complains(why);
        let status = folder.run(&["status", "--node", &addresses[1]]).quietly(4);
        status.says("not in its group yet: ").says(why);
        let ran = folder.run(&["lock", "-n", "--node", &addresses[1], "x", "--", "true"]);
        assert_eq!(ran.code, Some(122), "{ran:?}");
        ran.complained(&["this node is not in its group yet: ", why]);
        // The one that was first is not disturbed.
        folder.run(&["lock", "--node", &addresses[0], "x", "--", "true"]).quietly(0);
        let catraca = env!("CARGO_BIN_EXE_catraca");
        let line = format!("stty cols 70; {catraca} status --node {}", addresses[0]);
        let narrow = at_terminal(&folder, &line).ends().stdout;
        assert!(narrow.lines().all(|line| line.chars().count() <= 70), "{narrow}");
    }
}

#[test]
fn a_restarted_member_joins_by_itself() {
    for signal in ["TERM", "KILL"] {
        let mut service = Service::start(2, &["--lease", "2s"]);
        let node = service.nodes.pop().unwrap();
        node.signal(signal);
        node.ends();
        service.nodes.push(service.node(1, &["--lease", "2s"]));
        service.is_whole();
        for name in ["x", "y", "z"] {
            service.lock(1, name, "true").ends().quietly(0);
            service.lock(0, name, "true").ends().quietly(0);
        }
    }
}

#[test]
fn a_directory_belongs_to_one_node_of_one_group() {
    let mut service = Service::start(1, &[]);
    let other = addresses(1).remove(0);
    let node = |flags: &str| {
        let own = ["node", "--listen", &other, "--data", "a"];
        let flags: Vec<&str> = flags.split(' ').collect();
        let ran = service.folder.run(&[&own[..], &flags].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        ran
    };
    node("--name a").complained(&["another node uses the directory a: stop it"]);
    service.nodes[0].signal("TERM");
    wait_until("it ends", || service.nodes[0].has_ended());
    let owner = "the directory a belongs to 'a' of the group 'catraca'";
    node("--name a --group other").complained(&[owner, "give this node a directory of its own"]);
    node("--name b").complained(&[owner]);
    let file = service.folder.path("a/registry.redb");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[..4096].fill(0xa5);
    std::fs::write(&file, bytes).unwrap();
    node("--name a").complained(&["the registry in the directory a is damaged"]);
    std::fs::write(&file, "").unwrap();
    node("--name a").complained(&["the registry in the directory a is damaged"]);
}

#[test]
fn a_group_without_most_of_its_registry_grants_nothing_and_says_who_is_missing() {
    let (folder, addresses) = (Folder::new(), addresses(3));
    let list = format!("a={},b={},c={}", addresses[0], addresses[1], addresses[2]);
    let start = |name| {
        let words = ["node", "--name", name, "--members", &list, "--data", name];
        Process::start(folder.command(&words))
    };
    let first = start("a");
    first.says("listens at");
    let lock = ["lock", "--node", &addresses[0]];
    for flags in [&["-n"][..], &["-w", "0.2"]] {
        let ran = folder.run(&[&lock[..], flags, &["x", "--", "true"]].concat());
        assert_eq!(ran.code, Some(122), "{ran:?}");
        ran.complained(&["this node is not in its group yet"]);
    }
    first.complains("not in the group yet, why the registry cannot be reached");
    let waits = Process::start(folder.command(&[&lock[..], &["x", "--", "true"]].concat()));
    // All that vote have to be there when a group begins.
    let _others = [start("b"), start("c")];
    assert_eq!(waits.ends().code, Some(0));
}

#[test]
fn signals_stop_a_node_in_order_or_not_at_all() {
    for signal in ["INT", "TERM"] {
        let mut service = Service::start(1, &[]);
        let node = service.nodes.remove(0);
        // These are not for it.
        node.signal("USR2");
        node.signal("HUP");
        node.complains("tokens and certificates were read again");
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
fn a_member_that_the_others_do_not_know_is_told_so() {
    let (folder, addresses) = (Folder::new(), addresses(3));
    let known = two(&folder, &addresses[..2], [&[], &[]]);
    let is_well = || folder.run(&["status", "--node", &addresses[1]]).code == Some(0);
    wait_until("they are in one view", is_well);
    let list = format!("a={},b={},c={}", addresses[0], addresses[1], addresses[2]);
    let words = ["node", "--name", "c", "--members", &list, "--data", "c"];
    let unknown = Process::start(folder.command(&words));
    unknown.complains("'c' does not belong to the group; add it to the members, or let it join");
    let status = folder.run(&["status", "--node", &addresses[2]]).quietly(4);
    status.says("'c' does not belong to the group");
    folder.run(&["lock", "--node", &addresses[0], "x", "--", "true"]).quietly(0);
    drop(known);
}
