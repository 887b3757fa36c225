//! Real nodes and real clients as processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Folder, GENEROUS, Ran};

/// Waits until `happened`.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < GENEROUS, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A process that is watched while it runs, and does not outlive a failed test.
pub(crate) struct Process {
    child: Child,
    stdout: Arc<Mutex<String>>,
    stderr: Arc<Mutex<String>>,
    readers: Vec<std::thread::JoinHandle<()>>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) = (Arc::default(), Arc::default());
        let readers = vec![
            collect(child.stdout.take().unwrap(), &stdout),
            collect(child.stderr.take().unwrap(), &stderr),
        ];
        Process { child, stdout, stderr, readers }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stdout(&self) -> String {
        self.stdout.lock().unwrap().clone()
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Waits until it has said `text` on standard output.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        wait_until(&format!("it says '{text}'"), || self.stdout().contains(text));
    }

    /// Waits until it has said `text` on standard error.
    #[track_caller]
    pub(crate) fn complains(&self, text: &str) {
        let begin = Instant::now();
        while !self.stderr().contains(text) {
            assert!(begin.elapsed() < GENEROUS, "'{text}' is not in: {}", self.stderr());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn signal(&self, which: &str) {
        signal(self.id(), which);
    }

    /// Writes to its standard input, which is a pipe.
    pub(crate) fn types(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Closes its standard input, if that is a pipe.
    pub(crate) fn end_input(&mut self) {
        drop(self.child.stdin.take());
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn ends(mut self) -> Ran {
        wait_until("it ends", || self.child.try_wait().unwrap().is_some());
        let code = self.child.wait().unwrap().code();
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        Ran { code, stdout: self.stdout(), stderr: self.stderr() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn collect(
    from: impl Read + Send + 'static,
    to: &Arc<Mutex<String>>,
) -> std::thread::JoinHandle<()> {
    let to = Arc::clone(to);
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = String::new();
        while from.read_line(&mut line).is_ok_and(|read| read > 0) {
            to.lock().unwrap().push_str(&line);
            line.clear();
        }
    })
}

pub(crate) fn signal(id: u32, which: &str) {
    let sent = Command::new("kill").args([&format!("-{which}"), "--", &id.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Whether process `id` runs; one that nobody has waited for does not.
pub(crate) fn is_running(id: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", id.trim()));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

/// A line of shell at a terminal of its own, where its input is typed.
pub(crate) fn at_terminal(folder: &Folder, line: &str) -> Process {
    let mut command = Command::new("script");
    command.args(["-qec", line, "/dev/null"]).current_dir(folder.path("")).stdin(Stdio::piped());
    // Not every shell that a user may have is one for this line.
    command.env("SHELL", "/bin/sh");
    Process::start(command)
}

/// Addresses that no other test has: the loopback network is large.
pub(crate) fn addresses(count: u16) -> Vec<String> {
    static NEXT: AtomicU16 = AtomicU16::new(7000);
    let [_, one, two, three] = std::process::id().to_be_bytes();
    let first = NEXT.fetch_add(count, Ordering::Relaxed);
    (first..first + count).map(|port| format!("127.{}.{two}.{three}:{port}", 100 + one)).collect()
}

/// A group of nodes and the folder that its clients run in.
pub(crate) struct Service {
    pub(crate) folder: Folder,
    pub(crate) addresses: Vec<String>,
    pub(crate) nodes: Vec<Process>,
}

impl Service {
    /// A group of `count` members called a, b, c, all in one view. Their lease is long, so that a busy
    /// machine loses nothing, unless the flags say otherwise.
    pub(crate) fn start(count: u16, flags: &[&str]) -> Self {
        let (folder, addresses) = (Folder::new(), addresses(count));
        let mut service = Service { folder, addresses, nodes: Vec::new() };
        for member in 0..usize::from(count) {
            service.nodes.push(service.node(member, flags));
        }
        for (node, address) in service.nodes.iter().zip(&service.addresses) {
            node.says(&format!("listens at {address}"));
        }
        service.is_whole();
        service
    }

    /// Waits until every member is in the view and linked to all others.
    #[track_caller]
    pub(crate) fn is_whole(&self) {
        for member in 0..self.addresses.len() {
            wait_until("all members are in the view", || {
                self.client(member, &["status"], &[]).ends().code == Some(0)
            });
        }
    }

    /// What all members are told about each other.
    pub(crate) fn members(&self) -> String {
        let one = |(name, address): (char, &String)| format!("{name}={address}");
        ('a'..).zip(&self.addresses).map(one).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn node(&self, member: usize, flags: &[&str]) -> Process {
        let name = char::from(b'a' + member as u8).to_string();
        let members = self.members();
        let own = ["node", "--name", &name, "--members", &members];
        let data = if flags.contains(&"--registry") { &[][..] } else { &["--data", &name] };
        let lease = if flags.contains(&"--lease") { &[][..] } else { &["--lease", "15s"] };
        Process::start(self.folder.command(&[&own[..], data, lease, flags].concat()))
    }

    /// A command that asks `member`.
    pub(crate) fn client(&self, member: usize, command: &[&str], rest: &[&str]) -> Process {
        Process::start(self.command(member, command, rest))
    }

    pub(crate) fn command(&self, member: usize, command: &[&str], rest: &[&str]) -> Command {
        let node = ["--node", &self.addresses[member]];
        let mut command = self.folder.command(&[command, &node, rest].concat());
        command.env("USER", "tester");
        command
    }

    /// `catraca lock` at `member`, with flags and names, running a line of shell.
    pub(crate) fn lock(&self, member: usize, flags: &str, line: &str) -> Process {
        let flags: Vec<&str> = flags.split(' ').collect();
        self.client(member, &["lock"], &[&flags[..], &["--", "sh", "-c", line]].concat())
    }

    /// The table of holders and waiters, as `member` tells it.
    pub(crate) fn locks(&self, member: usize) -> String {
        self.client(member, &["locks"], &[]).ends().quietly(0).stdout
    }
}
