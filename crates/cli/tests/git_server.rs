//! Git locks of real nodes as processes: killed, restarted, and told what cannot be.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::{Arc, Barrier};

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

/// A group whose registry is its own, or in etcd, with the etcd that has to live as long.
fn group_on(etcd: bool, flags: &[&str]) -> (Group, Option<(Etcd, Folder)>) {
    if !etcd {
        return (Group::start_with(flags), None);
    }
    let folder = Folder::new();
    let etcd = Etcd::start(&folder);
    let group = Group::start_with(&[flags, &["--registry", &etcd.url]].concat());
    (group, Some((etcd, folder)))
}

/// Each of these with the registry that the members keep themselves, and with etcd.
macro_rules! with_both_registries {
    ($($embedded:ident, $etcd:ident: $what:ident;)*) => {
        $(#[test]
        fn $embedded() {
            $what(false);
        }
        #[test]
        fn $etcd() {
            $what(true);
        })*
    };
}

with_both_registries! {
    of_racers_at_three_processes_one_wins_every_round,
    of_racers_at_three_processes_one_wins_every_round_with_etcd: race;
    a_node_that_is_killed_while_it_locks_leaves_whole_locks_and_the_others_go_on,
    a_node_that_is_killed_while_it_locks_leaves_whole_locks_with_etcd: kill_while_it_locks;
    a_node_that_is_stopped_while_it_locks_and_goes_on_later_gives_no_lock_to_two,
    a_node_that_is_stopped_while_it_locks_gives_no_lock_to_two_with_etcd: stop_while_it_locks;
}

/// Two users at each of three nodes want one file, twenty times.
fn race(etcd: bool) {
    let (group, _etcd) = group_on(etcd, &[]);
    for round in 0..20_usize {
        let together = Arc::new(Barrier::new(6));
        let racers: Vec<_> = (0..6_usize)
            .map(|racer| {
                let (at, together) = (group.http[racer % 3].clone(), Arc::clone(&together));
                std::thread::spawn(move || {
                    let asked = json!({"path": format!("round {round}")});
                    // "0:x", "1:x" and so on.
                    let who = ["MDp4", "MTp4", "Mjp4", "Mzp4", "NDp4", "NTp4"][racer];
                    together.wait();
                    ask(&at, &format!("Basic {who}"), "POST", "/locks", &asked).unwrap()
                })
            })
            .collect();
        let answers: Vec<_> = racers.into_iter().map(|racer| racer.join().unwrap()).collect();
        let winners: Vec<_> = answers.iter().filter(|(status, _)| *status == 201).collect();
        assert_eq!(winners.len(), 1, "round {round}: {answers:?}");
        let lock = &winners[0].1["lock"];
        for (status, answer) in answers.iter().filter(|(status, _)| *status != 201) {
            assert_eq!((*status, &answer["lock"]), (409, lock), "round {round}: {answers:?}");
        }
        let path = format!("/locks?path=round%20{round}");
        let (_, listed) = ask(&group.http[round % 3], ANN, "GET", &path, &Value::Null).unwrap();
        assert_eq!(listed["locks"], json!([lock]));
    }
}

fn kill_while_it_locks(etcd: bool) {
    let (group, _etcd) = group_on(etcd, &[]);
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

fn stop_while_it_locks(etcd: bool) {
    let (group, _etcd) = group_on(etcd, &["--lease", "3s"]);
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

/// How many locks below this folder a node lists.
fn count(at: &str, folder: &str) -> Option<usize> {
    let (status, listed) = ask(at, BOB, "GET", &format!("/locks?under={folder}"), &Value::Null)?;
    (status == 200).then(|| listed["locks"].as_array().unwrap().len())
}

#[test]
fn a_node_that_is_stopped_in_the_middle_of_a_set_leaves_all_of_it_or_nothing() {
    const FILES: usize = 256;
    let group = Group::start_with(&["--lease", "3s"]);
    let mut cut_short = 0;
    // It may be stopped too late: then the set is whole, and it is tried again.
    for round in 0..10 {
        let (at, folder) = (group.http[0].clone(), format!("round{round}"));
        let files = (0..FILES).map(|number| format!("{folder}/{number:03}"));
        let asked = json!({"paths": files.collect::<Vec<_>>()});
        let ann = std::thread::spawn(move || ask(&at, ANN, "POST", "/locks/batch", &asked));
        let seen = || count(&group.http[1], &folder);
        wait_until("it has begun", || seen().is_some_and(|count| count > 0));
        group.service.nodes[0].signal("STOP");
        wait_until("it is whole or gone", || matches!(seen(), Some(0 | FILES)));
        let left = seen().unwrap();
        // Others who want the same are not kept out by the turn of a node that does nothing.
        let other = json!({"paths": [format!("other/{round}a"), format!("other/{round}b")]});
        wait_until("others go on", || {
            matches!(ask(&group.http[2], BOB, "POST", "/locks/batch", &other), Some((201 | 409, _)))
        });
        group.service.nodes[0].signal("CONT");
        let answer = ann.join().unwrap();
        if let Some((201, answer)) = &answer {
            assert_eq!(left, FILES, "it was told that all are locked: {answer}");
        }
        group.service.is_whole();
        wait_until("it is known", || seen().is_some());
        // Whoever was not told that all are locked can ask, and nothing comes later.
        assert_eq!(seen(), Some(left), "{answer:?}");
        if left == 0 {
            cut_short += 1;
            let some = json!({"paths": [format!("{folder}/000"), format!("{folder}/255")]});
            assert_eq!(ask(&group.http[2], BOB, "POST", "/locks/batch", &some).unwrap().0, 201);
        }
        if cut_short == 2 {
            return;
        }
    }
    assert!(cut_short > 0, "no node was stopped in the middle of a set");
}

/// What `git lfs` does in an empty repository whose locks are at this node.
fn stock(group: &Group, name: &str, member: usize) -> impl Fn(&[&str]) -> Command + use<> {
    let place = group.service.folder.path(name);
    let git = move |words: &[&str]| {
        let mut git = Command::new("git");
        git.args(words).current_dir(&place).env("HOME", &place).env("LC_ALL", "C");
        git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
        git
    };
    std::fs::create_dir(group.service.folder.path(name)).unwrap();
    let url = format!("http://{name}:x@{}/git/art/game", group.http[member]);
    let commit = ["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "--quiet"];
    let commit = [&commit[..], &["--allow-empty", "--message", "first"]].concat();
    for words in [&["init", "--quiet"][..], &["config", "lfs.url", &url], &commit] {
        assert!(git(words).status().unwrap().success());
    }
    git
}

#[test]
fn of_three_stock_clients_at_three_nodes_exactly_one_wins_every_round() {
    let group = Group::start();
    let clients = [("ann", 0), ("bob", 1), ("cy", 2)].map(|(name, at)| stock(&group, name, at));
    for round in 0..20 {
        let path = format!("round {round}.psd");
        let racing: Vec<Process> =
            clients.iter().map(|git| Process::start(git(&["lfs", "lock", &path]))).collect();
        let ended: Vec<support::Ran> = racing.into_iter().map(Process::ends).collect();
        let won = |ran: &support::Ran| ran.code == Some(0);
        assert_eq!(ended.iter().filter(|ran| won(ran)).count(), 1, "{ended:?}");
        let winner = ["ann", "bob", "cy"][ended.iter().position(won).unwrap()];
        for ran in ended.iter().filter(|ran| !won(ran)) {
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.contains(&format!("'{winner}' has locked '{path}'")), "{said}");
        }
        let listed = Process::start(clients[round % 3](&["lfs", "locks", "--path", &path])).ends();
        assert!(listed.stdout.contains(winner) && listed.stdout.lines().count() == 1, "{listed:?}");
    }
}

#[test]
fn whoever_watches_is_told_once_of_a_lock_that_is_released_by_other_means() {
    let group = Group::start();
    let lock = |path: &str| {
        let asked = json!({"path": path});
        let (status, answer) = ask(&group.http[0], ANN, "POST", "/locks", &asked).unwrap();
        assert_eq!(status, 201, "{answer}");
        answer["lock"].clone()
    };
    let locks = ["owner", "force", "holds", "forced"].map(lock);
    let mut watcher = TcpStream::connect(&group.http[1]).unwrap();
    watcher.set_read_timeout(Some(support::GENEROUS)).unwrap();
    let head = format!(
        "GET /git/art/game/changes HTTP/1.1\r\nHost: {}\r\nAuthorization: {BOB}\r\n\r\n",
        group.http[1]
    );
    watcher.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    let mut heard = |what: &str| {
        let mut part = [0; 4096];
        while !text.contains(what) {
            let count = watcher.read(&mut part).unwrap();
            assert!(count > 0, "it ends without '{what}': {text}");
            text += &String::from_utf8_lossy(&part[..count]);
        }
        text.clone()
    };
    heard("retry: 1000");
    // The nodes tell each other what happens as soon as they know that somebody watches.
    let mut probe = 0;
    let mut later = |what: &str| {
        probe += 1;
        let path = format!("{what}{probe}");
        let asked = json!({"path": path});
        assert_eq!(ask(&group.http[1], BOB, "POST", "/locks", &asked).unwrap().0, 201);
        path
    };
    heard(&later("probe"));
    let run = |member: usize, words: &[&str]| {
        let ran = Process::start(group.service.command(member, words, &[])).ends();
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    // At the node where somebody watches, so that all is told in the order in which it happened.
    run(1, &["unlock", "git/art/game/owner", "--owner", "ann"]);
    run(1, &["unlock", "git/art/game/force", "--force"]);
    let id = locks[2]["id"].as_str().unwrap();
    http(&group.http[1], "DELETE", &format!("/v1/holds/{id}?owner=ann"), "");
    http(&group.http[1], "POST", "/v1/force-release", r#"{"name": "git/art/game/forced"}"#);
    let last = later("last");
    let text = heard(&last);
    for lock in &locks {
        let told = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let told = told.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let told: Vec<Value> = told.filter(|it| it["lock"]["id"] == lock["id"]).collect();
        assert_eq!(told.len(), 1, "{lock}: {text}");
        assert_eq!((&told[0]["kind"], &told[0]["lock"]), (&json!("unlocked"), lock));
        let is_own = ["owner", "holds"].contains(&lock["path"].as_str().unwrap());
        assert_eq!(told[0]["by"]["name"] == "ann", is_own, "{}", told[0]);
    }
}

/// Asks for something beside locks of files, which has to work.
fn http(at: &str, method: &str, path: &str, body: &str) {
    let mut stream = TcpStream::connect(at).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {at}\r\nAuthorization: {BOB}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
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
