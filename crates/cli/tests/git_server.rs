//! Git locks of real nodes as processes: killed, restarted, and told what cannot be.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use support::Folder;
use support::etcd::Etcd;
use support::service::{Process, Service, addresses, wait_until};

/// "ann:x", as a client sends it.
const ANN: &str = "Basic YW5uOng=";
/// "bob:x".
const BOB: &str = "Basic Ym9iOng=";

/// Asks a node, and reads its answer: the status, and the body.
fn ask(at: &str, who: &str, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(at).ok()?;
    let body = if method == "GET" { String::new() } else { body.to_string() };
    let head = format!(
        "{method} /git/art/game{path} HTTP/1.1\r\nHost: {at}\r\nAuthorization: {who}\r\nConnection: close\r\n\
         Content-Type: application/vnd.git-lfs+json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).ok()?))
}

/// A group whose members serve HTTP, and where.
struct Group {
    service: Service,
    http: Vec<String>,
    flags: Vec<String>,
}

impl Group {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(flags: &[&str]) -> Self {
        let service = Service { folder: Folder::new(), addresses: addresses(3), nodes: Vec::new() };
        let flags = flags.iter().map(|flag| flag.to_string()).collect();
        let mut group = Group { service, http: addresses(3), flags };
        group.start_all();
        group
    }

    fn start_all(&mut self) {
        self.service.nodes = (0..3).map(|member| self.node(member)).collect();
        self.service.is_whole();
    }

    fn node(&self, member: usize) -> Process {
        let flags = self.flags.iter().map(String::as_str);
        let flags: Vec<&str> = flags.chain(["--http", &self.http[member]]).collect();
        self.service.node(member, &flags)
    }

    /// Kills all nodes at once, and waits until they are gone.
    fn kill(&mut self) {
        self.service.nodes.iter().for_each(|node| node.signal("KILL"));
        for node in self.service.nodes.drain(..) {
            node.ends();
        }
    }

    /// All locks, as a node tells them when it can.
    fn locks(&self, member: usize) -> Value {
        let mut locks = Value::Null;
        wait_until("a node lists locks", || {
            match ask(&self.http[member], BOB, "GET", "/locks", &Value::Null) {
                Some((200, listed)) => {
                    locks = listed["locks"].clone();
                    true
                }
                _ => false,
            }
        });
        locks
    }
}

#[test]
fn locks_are_there_after_all_nodes_were_killed_and_belong_to_the_same_owner() {
    let mut group = Group::start();
    for number in 0..20 {
        let asked = json!({"path": format!("f{number:02}")});
        let (status, answer) = ask(&group.http[number % 3], ANN, "POST", "/locks", &asked).unwrap();
        assert_eq!(status, 201, "{answer}");
    }
    let before = group.locks(1);
    assert_eq!(before.as_array().unwrap().len(), 20);
    group.kill();
    group.start_all();
    for member in 0..3 {
        assert_eq!(group.locks(member), before);
    }
    let taken = ask(&group.http[2], BOB, "POST", "/locks", &json!({"path": "f07"})).unwrap();
    assert_eq!((taken.0, &taken.1["lock"]), (409, &before[7]));
    let unlock = format!("/locks/{}/unlock", before[7]["id"].as_str().unwrap());
    assert_eq!(ask(&group.http[0], ANN, "POST", &unlock, &json!({})).unwrap().0, 200);
    assert_eq!(ask(&group.http[2], BOB, "POST", "/locks", &json!({"path": "f07"})).unwrap().0, 201);
}

#[test]
fn a_node_that_is_killed_while_it_locks_leaves_whole_locks_and_the_others_go_on() {
    let group = Group::start();
    let at = group.http[0].clone();
    let locking = std::thread::spawn(move || {
        let lock = |number: &u32| {
            let asked = json!({"path": format!("f{number:05}")});
            let answer = ask(&at, ANN, "POST", "/locks", &asked);
            answer.is_some_and(|(status, _)| status == 201)
        };
        (0..100_000).take_while(lock).count()
    });
    wait_until("some are locked", || group.locks(1).as_array().unwrap().len() > 50);
    group.service.nodes[0].signal("KILL");
    let confirmed = locking.join().unwrap();
    let listed = group.locks(1);
    let listed = listed.as_array().unwrap().len();
    // All that was confirmed is there; of the last one nobody knew.
    assert!(
        listed == confirmed.min(1000) || listed == (confirmed + 1).min(1000),
        "{listed} of {confirmed}"
    );
    let next = json!({"path": format!("f{confirmed:05}")});
    wait_until("asking again tells", || match ask(&group.http[2], ANN, "POST", "/locks", &next) {
        Some((201, _)) => true,
        Some((409, answer)) => answer["code"] == "own-lock",
        _ => false,
    });
}

/// Locks files one after the other, asking again as long as nobody knows. Returns those that it got.
fn locks_all(at: &str, who: &str, files: std::ops::Range<u32>) -> BTreeSet<String> {
    let mut got = BTreeSet::new();
    for number in files {
        let path = format!("f{number:03}");
        wait_until("it is known who has a file", || {
            match ask(at, who, "POST", "/locks", &json!({"path": path})) {
                Some((201, _)) => got.insert(path.clone()),
                Some((409, answer)) if answer["code"] == "own-lock" => {
                    got.insert(path.clone());
                    true
                }
                Some((409, answer)) => answer["lock"].is_object(),
                _ => false,
            }
        });
    }
    got
}

#[test]
fn a_node_that_is_stopped_while_it_locks_and_goes_on_later_gives_no_lock_to_two() {
    let group = Group::start_with(&["--lease", "3s"]);
    let at = group.http[0].clone();
    let ann = std::thread::spawn(move || locks_all(&at, ANN, 0..150));
    wait_until("some are locked", || group.locks(1).as_array().unwrap().len() > 20);
    group.service.nodes[0].signal("STOP");
    // The others go on without it, and what it had granted stays.
    let bob = locks_all(&group.http[1], BOB, 0..150);
    assert!(!bob.is_empty(), "it was stopped too late");
    group.service.nodes[0].signal("CONT");
    let ann = ann.join().unwrap();
    assert!(ann.is_disjoint(&bob), "both were told: {:?}", ann.intersection(&bob));
    assert_eq!(ann.len() + bob.len(), 150);
    for member in 0..3 {
        let listed = group.locks(member);
        for lock in listed.as_array().unwrap() {
            let owner = if ann.contains(lock["path"].as_str().unwrap()) { "ann" } else { "bob" };
            assert_eq!(lock["owner"]["name"], owner, "{lock}");
        }
        assert_eq!(listed.as_array().unwrap().len(), 150);
    }
}

#[test]
fn a_node_that_is_stopped_in_the_middle_of_a_set_leaves_all_of_it_or_nothing() {
    let group = Group::start_with(&["--lease", "3s"]);
    let at = group.http[0].clone();
    let paths: Vec<String> = (0..200).map(|number| format!("f{number:03}")).collect();
    let asked = json!({"paths": paths});
    let ann = std::thread::spawn(move || ask(&at, ANN, "POST", "/locks/batch", &asked));
    wait_until("it has begun", || !group.locks(1).as_array().unwrap().is_empty());
    group.service.nodes[0].signal("STOP");
    let seen = || group.locks(1).as_array().unwrap().len();
    wait_until("it is whole or gone", || matches!(seen(), 0 | 200));
    // Others who want the same are not kept out by the turn of a node that does nothing.
    let other = json!({"paths": ["other/a", "other/b"]});
    wait_until("others go on", || {
        matches!(ask(&group.http[2], BOB, "POST", "/locks/batch", &other), Some((201 | 409, _)))
    });
    group.service.nodes[0].signal("CONT");
    let answer = ann.join().unwrap();
    wait_until("it is whole or gone for good", || matches!(seen(), 2 | 202));
    match answer {
        Some((201, _)) => assert_eq!(seen(), 202),
        // Whoever was not told that all are locked can ask.
        _ => assert!(matches!(seen(), 2 | 202)),
    }
}

#[test]
fn locks_of_a_group_whose_registry_is_in_etcd_have_one_owner_and_survive_all_nodes() {
    let folder = Folder::new();
    let etcd = Etcd::start(&folder);
    let mut group = Group::start_with(&["--registry", &etcd.url]);
    let racers = [(0, ANN), (1, BOB)].map(|(member, who)| {
        let at = group.http[member].clone();
        std::thread::spawn(move || locks_all(&at, who, 0..40))
    });
    let [ann, bob] = racers.map(|racer| racer.join().unwrap());
    assert!(ann.is_disjoint(&bob) && ann.len() + bob.len() == 40, "{ann:?} {bob:?}");
    let set = json!({"paths": ["s/1", "s/2", "s/3"]});
    let (status, answer) = ask(&group.http[2], ANN, "POST", "/locks/batch", &set).unwrap();
    assert_eq!(status, 201, "{answer}");
    let (status, answer) = ask(&group.http[1], BOB, "POST", "/locks/batch", &set).unwrap();
    assert_eq!((status, answer["locks"].as_array().unwrap().len()), (409, 3), "{answer}");
    let before = group.locks(0);
    assert_eq!(before.as_array().unwrap().len(), 43);
    group.kill();
    group.start_all();
    for member in 0..3 {
        assert_eq!(group.locks(member), before);
    }
    let steal = format!("/locks/{}/steal", before[0]["id"].as_str().unwrap());
    let thief = if before[0]["owner"]["name"] == "ann" { BOB } else { ANN };
    assert_eq!(ask(&group.http[1], thief, "POST", &steal, &json!({})).unwrap().0, 200);
}

#[test]
fn what_cannot_be_is_refused_before_the_node_runs() {
    let folder = Folder::new();
    let both = folder.run(&["node", "--lfs-objects", "x", "--lfs-forward", "https://forge/{team}"]);
    assert_eq!(both.code, Some(2), "{both:?}");
    assert!(both.stderr.contains("--lfs-forward"), "{both:?}");
    let forward = folder.run(&["node", "--lfs-forward", "forge"]);
    assert_eq!(forward.code, Some(2), "{forward:?}");
    assert!(forward.stderr.contains("'forge' is no address"), "{forward:?}");
    let hook = "name = 'alone'\n[http]\nlisten = '127.0.0.1:0'\n[[git.webhook]]\nurl = 'http://localhost:9/'\nsecret-file = 'none'\n";
    folder.write("group.toml", hook);
    let at = addresses(1).remove(0);
    let secret = folder.run(&["node", "--config", "group.toml", "--listen", &at]);
    assert_ne!(secret.code, Some(0), "{secret:?}");
    assert!(secret.stderr.contains("cannot read its secret from 'none'"), "{secret:?}");
    let checked = folder.run(&["config", "check", "group.toml"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}
