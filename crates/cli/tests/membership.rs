//! Members that join, leave, are added, taken out and restarted, by commands; with either kind of registry.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use support::etcd::Etcd;
use support::service::{Process, Service, addresses, wait_until};
use support::{Folder, Ran};

/// Nobody ever waits for such a lease to be over: whoever did would be noticed.
const LEASE: &str = "60s";
const SOON: Duration = Duration::from_secs(45);

/// Three members, and an address for a fourth one.
struct Group {
    service: Service,
    fourth: String,
    etcd: Option<Etcd>,
}

impl Group {
    fn new(etcd: Option<Etcd>) -> Self {
        let mut service =
            Service { folder: Folder::new(), addresses: addresses(3), nodes: Vec::new() };
        let flags = Self::flags(etcd.as_ref());
        service.nodes = (0..3).map(|member| service.node(member, &flags)).collect();
        service.is_whole();
        Group { service, fourth: addresses(1).remove(0), etcd }
    }

    fn flags(etcd: Option<&Etcd>) -> Vec<&str> {
        let mut flags = vec!["--lease", LEASE];
        if let Some(etcd) = etcd {
            flags.extend(["--registry", &etcd.url]);
        }
        flags
    }

    /// Starts d, which is told of the group in this way.
    fn start_fourth(&self, told: &[&str]) -> Process {
        let own = ["node", "--name", "d", "--listen", &self.fourth];
        let place = match &self.etcd {
            Some(etcd) => ["--registry", &etcd.url],
            None => ["--data", "d"],
        };
        Process::start(self.service.folder.command(&[&own[..], &place, told].concat()))
    }

    fn run(&self, words: &[&str]) -> Ran {
        self.service.client(0, words, &[]).ends()
    }

    /// How a member stands in the list of all: "in" or "out" of the view, or not there.
    fn place_of(&self, name: &str) -> Option<String> {
        let list = self.run(&["members", "list"]).quietly(0).stdout;
        let mut rows = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.find(|row| row.first() == Some(&name)).map(|row| row[2].to_string())
    }

    /// Waits until all four are in one view, and linked.
    #[track_caller]
    fn has_four(&self) {
        let all = self.service.addresses.iter().chain([&self.fourth]);
        for address in all {
            wait_until("all four are in the view", || {
                let status = self.service.folder.run(&["status", "--node", address]);
                status.code == Some(0) && status.stdout.contains(&self.fourth)
            });
        }
    }

    /// Somebody is served at every one of the three, of a name that is new and of one that is not.
    fn serves(&self, fresh: &str) {
        for member in 0..3 {
            for name in ["known", fresh] {
                let ran = self.service.lock(member, &format!("-w 40 {name}"), "true").ends();
                assert_eq!(ran.code, Some(0), "{name} at {member}: {ran:?}");
            }
        }
    }

    /// d has left in order: it is off the list, and nobody has waited for its lease.
    fn has_left(&self, since: Instant) {
        wait_until("it is off the list", || self.place_of("d").is_none());
        self.service.is_whole();
        self.serves("without-d");
        assert!(since.elapsed() < SOON, "somebody has waited: {:?}", since.elapsed());
    }
}

fn a_member_comes_and_goes_by_commands(group: &Group) {
    let first = group.service.addresses[0].clone();
    let node = group.start_fourth(&["--join", &first]);
    group.has_four();
    assert_eq!(group.place_of("d").as_deref(), Some("in"));
    group.serves("with-d");
    let begin = Instant::now();
    group.run(&["leave", "d"]).quietly(0).says("'d' leaves its group");
    let ran = node.ends();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    group.has_left(begin);

    // Whoever has left for ever does not come back by being started again, and is told why.
    let all = format!("{},d={}", group.service.members(), group.fourth);
    let told = ["--members", &all, "--lease", LEASE];
    let node = group.start_fourth(&told);
    let stays_out = || {
        wait_until("it knows why it stays out", || {
            let status = group.service.folder.run(&["status", "--node", &group.fourth]);
            status.code == Some(4) && status.stdout.contains("'d' does not belong to the group")
        });
    };
    stays_out();
    assert_eq!(group.place_of("d"), None);
    let ran = group.service.folder.run(&["lock", "--node", &group.fourth, "-n", "x", "--", "true"]);
    assert_eq!(ran.code, Some(122), "{ran:?}");

    // Until somebody says so.
    group.run(&["members", "add", &format!("d={}", group.fourth)]).quietly(0);
    group.has_four();
    let begin = Instant::now();
    group.run(&["members", "remove", "d"]).quietly(0);
    group.has_left(begin);
    // Its node goes on, and would be in again if somebody said so.
    stays_out();
    node.signal("TERM");
    assert_eq!(node.ends().code, Some(0));
    for words in [&["leave", "d"][..], &["members", "remove", "d"]] {
        let ran = group.run(words);
        assert!(ran.code != Some(0) && ran.stderr.contains("'d'"), "{words:?}: {ran:?}");
    }
}

#[test]
fn a_member_comes_and_goes_by_commands_where_members_keep_the_registry() {
    a_member_comes_and_goes_by_commands(&Group::new(None));
}

#[test]
fn a_member_comes_and_goes_by_commands_where_etcd_keeps_the_registry() {
    let folder = Folder::new();
    a_member_comes_and_goes_by_commands(&Group::new(Some(Etcd::start(&folder))));
}

#[test]
fn whoever_joins_is_told_if_the_group_keeps_its_registry_elsewhere() {
    let folder = Folder::new();
    let etcd = Etcd::start(&folder);
    let at = addresses(3);
    let node = |flags: &[&str]| {
        let node = Process::start(folder.command(&[&["node"], flags].concat()));
        node.says("listens at");
        node
    };
    let _in_etcd = node(&["--listen", &at[0], "--registry", &etcd.url]);
    let _among_members = node(&["--listen", &at[1], "--data", "a"]);
    let join = ["node", "--name", "d", "--listen", &at[2], "--join"];
    let ran = folder.run(&[&join[..], &[&at[0]]].concat());
    ran.refused(&["keeps its registry in etcd", "say --registry with the same URL"]);
    let ran = folder.run(&[&join[..], &[&at[1], "--registry", &etcd.url]].concat());
    ran.refused(&["--registry", "keeps its registry among its members", "leave the flag out"]);
    assert!(!folder.names().contains(&"d".to_string()), "it has left something");
}

#[test]
fn a_group_in_etcd_is_restarted_member_by_member_and_nobody_waits_for_a_lease() {
    let folder = Folder::new();
    let begin = Instant::now();
    is_restarted_member_by_member(Group::new(Some(Etcd::start(&folder))));
    assert!(begin.elapsed() < SOON * 3, "somebody has waited: {:?}", begin.elapsed());
}

#[test]
fn a_group_that_keeps_its_registry_is_restarted_member_by_member() {
    is_restarted_member_by_member(Group::new(None));
}

fn is_restarted_member_by_member(mut group: Group) {
    let durable = ["lock", "--durable", "--owner", "ana", "kept"];
    let hold = group.run(&durable).quietly(0).stdout;
    let mut last = 0;
    for member in 0..3 {
        let other = (member + 1) % 3;
        let holder = group.service.lock(other, "x", "echo $CATRACA_FENCE .; exec sleep 1000");
        holder.says(" .");
        let fence = holder.stdout().split(' ').next().unwrap().parse::<u64>().unwrap();
        assert!(fence > last, "fence {fence} after {last}");
        last = fence;
        let node = group.service.nodes.remove(member);
        node.signal("TERM");
        assert_eq!(node.ends().code, Some(0));
        // Whoever holds a lock elsewhere goes on, and the others are served.
        let ran = group.service.lock(other, "-w 40 y", "true").ends();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let flags = Group::flags(group.etcd.as_ref());
        let again = group.service.node(member, &flags);
        group.service.nodes.insert(member, again);
        group.service.is_whole();
        let ran = group.service.lock(member, "-n x", "true").ends();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        holder.signal("TERM");
        holder.ends();
    }
    group.serves("after");
    let id = hold.split(' ').next().unwrap();
    group.run(&["unlock", "--owner", "ana", id]).quietly(0);
}

/// Takes connections for `address` at a place of its own, and lets every caller speak the next version.
fn as_another_version(address: &str) -> String {
    /// The magic, the length of the first frame, and the version, which is the first thing in it.
    const BEGINNING: usize = 8 + 4 + 1;
    fn pass_on(mut from: TcpStream, mut to: TcpStream) {
        // Either may go at any moment: then the other one is told.
        std::io::copy(&mut from, &mut to).ok();
        to.shutdown(Shutdown::Write).ok();
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (place, address) = (listener.local_addr().unwrap().to_string(), address.to_string());
    std::thread::spawn(move || {
        for mut caller in listener.incoming().map_while(Result::ok) {
            let mut beginning = [0; BEGINNING];
            let Ok(mut called) = TcpStream::connect(&address) else { continue };
            if caller.read_exact(&mut beginning).is_err() {
                continue;
            }
            beginning[BEGINNING - 1] += 1;
            if called.write_all(&beginning).is_err() {
                continue;
            }
            let back = (called.try_clone().unwrap(), caller.try_clone().unwrap());
            std::thread::spawn(|| pass_on(caller, called));
            std::thread::spawn(|| pass_on(back.0, back.1));
        }
    });
    place
}

#[test]
fn a_member_of_another_version_is_refused_and_both_sides_tell_why() {
    let folder = Folder::new();
    let etcd = Etcd::start(&folder);
    let at = addresses(2);
    let newer = as_another_version(&at[0]);
    // The others know a by the address where whoever calls seems to be of another version.
    let members = format!("a={newer},b={}", at[1]);
    let node = |name: &str, listen: &str| {
        let own = ["node", "--name", name, "--listen", listen, "--members", &members];
        Process::start(folder.command(&[&own[..], &["--registry", &etcd.url]].concat()))
    };
    let status = |address: &str| folder.run(&["status", "--node", address]);
    let first = node("a", &at[0]);
    wait_until("a is in the view", || status(&at[0]).stdout.contains("epoch 1"));
    // Whoever joined later calls.
    let second = node("b", &at[1]);
    let why = "run the same release on both";
    wait_until("b tells that it is refused", || {
        let told = status(&at[1]);
        told.code == Some(4) && told.stdout.contains("refused: ") && told.stdout.contains(why)
    });
    second.complains(why);
    first.complains(why);
    assert_eq!(status(&at[0]).code, Some(3), "a is not linked to b");
    // A client of another version is told the same.
    let ran = status(&newer);
    assert!(ran.code == Some(125) && ran.stderr.contains(why), "{ran:?}");
}
