//! Mutual exclusion observed from outside: real nodes, real clients, connections that are cut, and a
//! witness that knows nothing of Catraca.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use support::Folder;
use support::service::{Process, addresses, wait_until};

const CLIENTS: usize = 30;
/// How many seconds leases of clients and of members last: the machine may be busy.
const PATIENCE: u32 = 60;
const NAMES: [&str; 3] = ["one", "two", "three"];

/// What a client does under the lock: it tells the server, changes the witness in two steps, and
/// tells the server again.
const UNDER_THE_LOCK: &str = "echo enter $CATRACA_LOCK $CATRACA_FENCE > events; \
    read n < $CATRACA_LOCK; echo $((n + 1)) > $CATRACA_LOCK.new; mv $CATRACA_LOCK.new $CATRACA_LOCK; \
    echo leave $CATRACA_LOCK $CATRACA_FENCE > events";

/// Passes bytes on from whoever calls to `target`, and cuts every connection after a while.
fn cut_connections(
    listener: TcpListener,
    target: String,
    over: Arc<AtomicBool>,
    cuts: Arc<AtomicU64>,
) {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64 ^ listener.local_addr().unwrap().port() as u64;
    for near in listener.incoming() {
        if over.load(Ordering::SeqCst) {
            return;
        }
        let near = near.unwrap();
        let Ok(far) = TcpStream::connect(&target) else { continue };
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Enough for the handshake and some messages, of locks or of the registry.
        let left = 1000 + (seed >> 33) % 4000;
        let cuts = Arc::clone(&cuts);
        // One direction is counted, the other is passed on until the connection is cut.
        let (mut back_from, mut back_to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
        std::thread::spawn(move || {
            let (mut near, mut far) = (near, far);
            // Whatever goes wrong is a cut too.
            let _ = std::io::copy(&mut Read::by_ref(&mut near).take(left), &mut far);
            let _ = near.shutdown(Shutdown::Both);
            let _ = far.shutdown(Shutdown::Both);
            cuts.fetch_add(1, Ordering::SeqCst);
        });
    }
}

/// A group whose members reach each other through connections that are cut.
struct Group {
    folder: Folder,
    addresses: Vec<String>,
    nodes: Vec<Process>,
    over: Arc<AtomicBool>,
    cuts: Arc<AtomicU64>,
    cutters: Vec<String>,
}

impl Group {
    fn start(count: usize, algorithm: &str) -> Self {
        let addresses = addresses(count as u16);
        let (over, cuts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut group = Group {
            folder: Folder::new(),
            addresses,
            nodes: Vec::new(),
            over,
            cuts,
            cutters: Vec::new(),
        };
        // Whoever calls a member gets there over connections that are cut.
        let ways: Vec<String> = (0..count).map(|member| group.cutter(member)).collect();
        let listed = ways.iter().enumerate().map(|(at, way)| format!("{} = '{way}'\n", name(at)));
        let members: String = listed.collect();
        for member in 0..count {
            let (name, listen) = (name(member), &group.addresses[member]);
            let file = format!("{name}.toml");
            let text = format!(
                "name = '{name}'\nlisten = '{listen}'\nlease = {PATIENCE}\ndata = 'data-{name}'\n\
                 [members]\n{members}"
            );
            group.folder.write(&file, &text);
            let words = ["node", "--config", &file, "--algorithm", algorithm];
            let command = group.folder.command(&words);
            group.nodes.push(Process::start(command));
        }
        for node in &group.nodes {
            node.says("listens at ");
        }
        group
    }

    /// A new way to `member`, over connections that are cut.
    fn cutter(&mut self, member: usize) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        self.cutters.push(address.clone());
        let target = self.addresses[member].clone();
        let (over, cuts) = (Arc::clone(&self.over), Arc::clone(&self.cuts));
        std::thread::spawn(move || cut_connections(listener, target, over, cuts));
        address
    }

    /// A process that takes its lock `rounds` times.
    fn client(&self, number: usize, rounds: usize) -> Process {
        let binary = env!("CARGO_BIN_EXE_catraca");
        let node = &self.addresses[number % self.addresses.len()];
        let lock = NAMES[number % NAMES.len()];
        let script = format!(
            "for round in $(seq {rounds}); do {binary} lock --node {node} --ttl {PATIENCE} {lock} -- \
             sh -c '{UNDER_THE_LOCK}' || exit; done"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(self.folder.path(""));
        Process::start(command)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        for cutter in &self.cutters {
            // It wakes up, and sees that it is over.
            TcpStream::connect(cutter).ok();
        }
    }
}

fn name(member: usize) -> String {
    char::from(b'a' + member as u8).to_string()
}

/// Reads what the clients say, in the order in which they say it, up to `entries` entries.
fn record(folder: &Folder, entries: usize) -> std::thread::JoinHandle<Vec<String>> {
    let path = folder.path("events");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    // Open for writing too: the pipe does not end while no client has it open.
    let pipe = std::fs::File::options().read(true).write(true).open(path).unwrap();
    std::thread::spawn(move || {
        BufReader::new(pipe).lines().map(Result::unwrap).take(2 * entries).collect()
    })
}

/// One holder of a name at a time, and fences that grow.
fn check(events: &[String], what: &str) -> BTreeMap<String, usize> {
    let mut inside: BTreeMap<&str, &str> = BTreeMap::new();
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    let mut entries: BTreeMap<String, usize> = BTreeMap::new();
    for event in events {
        let words: Vec<&str> = event.split(' ').collect();
        let [act, lock, fence] = words[..] else { panic!("{what}: '{event}'") };
        if act == "leave" {
            assert_eq!(inside.remove(lock), Some(fence), "{what}: '{event}'");
            continue;
        }
        assert_eq!(inside.insert(lock, fence), None, "{what}: two are inside {lock}");
        let number: u64 = fence.parse().unwrap();
        let before = last.insert(lock, number).unwrap_or(0);
        assert!(before < number, "{what}: {lock} has fence {number} after {before}");
        *entries.entry(lock.to_string()).or_default() += 1;
    }
    entries
}

fn observe(algorithm: &str, nodes: usize, rounds: usize) -> u64 {
    let what = format!("{algorithm} with {nodes} nodes");
    let group = Group::start(nodes, algorithm);
    for lock in NAMES {
        group.folder.write(lock, "0\n");
    }
    let events = record(&group.folder, CLIENTS * rounds);
    let clients: Vec<Process> = (0..CLIENTS).map(|number| group.client(number, rounds)).collect();
    for client in clients {
        let ran = client.ends();
        assert_eq!(ran.code, Some(0), "{what}: {}", ran.stderr);
        // Whoever has waited for long may be told that a connection is cut just now.
        let unexpected: Vec<&str> =
            ran.stderr.lines().filter(|line| !line.contains(": waits; member '")).collect();
        assert!(unexpected.is_empty(), "{what}: {unexpected:?}");
    }
    wait_until("every event is recorded", || events.is_finished());
    let entries = check(&events.join().unwrap(), &what);
    for lock in NAMES {
        let expected = CLIENTS * rounds / NAMES.len();
        assert_eq!(entries.get(lock), Some(&expected), "{what}");
        assert_eq!(group.folder.read(lock).trim(), expected.to_string(), "{what}: the witness");
    }
    group.cuts.load(Ordering::SeqCst)
}

fn all(nodes: usize, rounds: usize) {
    let mut cuts = 0;
    for entry in catraca_algorithms::registry::ENTRIES {
        cuts += observe(entry.name, nodes, rounds);
    }
    assert!(cuts > 20, "only {cuts} connections were cut");
}

#[test]
fn three_nodes_exclude_whatever_the_algorithm_while_connections_are_cut() {
    all(3, 2);
}

#[test]
fn five_nodes_exclude_whatever_the_algorithm_while_connections_are_cut() {
    all(5, 1);
}
