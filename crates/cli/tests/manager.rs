//! `catraca node` under a service manager that speaks the protocol of systemd.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use support::service::{Process, addresses, wait_until};
use support::{Folder, GENEROUS};

/// A service manager's socket, with everything that was said to it.
struct Manager {
    socket: UnixDatagram,
    heard: String,
}

impl Manager {
    fn new(folder: &Folder) -> Self {
        let socket = UnixDatagram::bind(folder.path("notify")).unwrap();
        socket.set_read_timeout(Some(GENEROUS)).unwrap();
        Manager { socket, heard: String::new() }
    }

    /// The next datagram.
    fn hears(&mut self) -> String {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).unwrap();
        let text = String::from_utf8(bytes[..length].to_vec()).unwrap();
        self.heard += &format!("{text}\n");
        text
    }

    /// Waits for a line.
    fn hears_of(&mut self, line: &str) {
        while !self.hears().lines().any(|it| it.starts_with(line)) {}
    }
}

fn node(folder: &Folder, arguments: &[&str], watchdog: Option<Duration>) -> Process {
    let mut command = folder.command(&[&["node", "--data", "data"], arguments].concat());
    command.env("NOTIFY_SOCKET", folder.path("notify"));
    if let Some(watchdog) = watchdog {
        command.env("WATCHDOG_USEC", watchdog.as_micros().to_string());
    }
    Process::start(command)
}

#[test]
fn the_manager_hears_that_the_node_is_ready_goes_on_and_stops() {
    let (folder, address) = (Folder::new(), addresses(1).remove(0));
    let mut manager = Manager::new(&folder);
    let node = node(&folder, &["--listen", &address], Some(Duration::from_millis(200)));
    manager.hears_of("READY=1");
    // It can be used from then on.
    folder.run(&["lock", "--node", &address, "-n", "x", "--", "true"]).quietly(0);
    for _ in 0..5 {
        manager.hears_of("WATCHDOG=1");
    }
    // One that is stopped by the system does not go on: the manager would end it.
    node.signal("STOP");
    manager.socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut bytes = [0; 4096];
    wait_until("it is silent", || manager.socket.recv(&mut bytes).is_err());
    node.signal("CONT");
    manager.socket.set_read_timeout(Some(GENEROUS)).unwrap();
    manager.hears_of("WATCHDOG=1");
    node.signal("TERM");
    manager.hears_of("STOPPING=1");
    assert_eq!(node.ends().code, Some(0));
    assert_eq!(manager.heard.matches("READY=1").count(), 1, "{}", manager.heard);
}

#[test]
fn a_member_without_its_group_is_not_ready_and_says_why() {
    let (folder, addresses) = (Folder::new(), addresses(3));
    let list = format!("a={},b={},c={}", addresses[0], addresses[1], addresses[2]);
    let mut manager = Manager::new(&folder);
    let node = node(&folder, &["--name", "a", "--members", &list], None);
    manager.hears_of("STATUS=not in its group yet: the registry cannot be reached");
    node.signal("TERM");
    manager.hears_of("STOPPING=1");
    node.ends();
    assert!(!manager.heard.contains("READY=1"), "{}", manager.heard);
    assert!(!manager.heard.contains("WATCHDOG=1"), "nobody has asked for it");
}

#[test]
fn a_manager_that_is_gone_does_not_keep_a_node_from_its_work() {
    let (folder, address) = (Folder::new(), addresses(1).remove(0));
    let node = node(&folder, &["--listen", &address], Some(Duration::from_millis(50)));
    node.says("listens at");
    folder.run(&["lock", "--node", &address, "x", "--", "true"]).quietly(0);
    node.signal("TERM");
    assert_eq!(node.ends().code, Some(0));
}
