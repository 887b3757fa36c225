//! Git locks of real nodes as processes: killed, restarted, and told what cannot be.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use support::Folder;
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
}

impl Group {
    fn start() -> Self {
        let service = Service { folder: Folder::new(), addresses: addresses(3), nodes: Vec::new() };
        let mut group = Group { service, http: addresses(3) };
        group.start_all();
        group
    }

    fn start_all(&mut self) {
        self.service.nodes = (0..3).map(|member| self.node(member)).collect();
        self.service.is_whole();
    }

    fn node(&self, member: usize) -> Process {
        self.service.node(member, &["--http", &self.http[member]])
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
