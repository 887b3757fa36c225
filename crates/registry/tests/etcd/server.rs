//! Servers of etcd on loopback addresses that belong to this process.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use catraca_registry::etcd::Options;
use catraca_registry::{Etcd, Trouble};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::time::Instant;

/// Nothing takes longer on the busiest machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A member of etcd, which ends with its value.
pub(crate) struct Server {
    name: String,
    arguments: Vec<String>,
    process: Option<Child>,
    pub(crate) directory: TempDir,
    pub(crate) endpoint: String,
    /// What the tool of etcd needs to get in.
    pub(crate) access: Vec<String>,
}

/// An address that no other process uses: all of 127.0.0.0/8 is this machine, and a process has its
/// number for itself. So ports are never taken, not even after a restart.
pub(crate) fn address() -> String {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    format!("127.{}.{middle}.{low}", 64 + high)
}

fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(2379);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Server {
    /// One member, started.
    pub(crate) fn alone() -> Server {
        Server::with(&[])
    }

    /// One member with more settings, started.
    pub(crate) fn with(settings: &[&str]) -> Server {
        let mut server = Server::members(1, "http", settings).remove(0);
        server.start();
        server
    }

    /// The members of a cluster, started.
    pub(crate) fn cluster(size: usize) -> Vec<Server> {
        let mut servers = Server::members(size, "http", &[]);
        servers.iter_mut().for_each(Server::start);
        servers
    }

    /// Members that are not started yet.
    pub(crate) fn members(size: usize, scheme: &str, settings: &[&str]) -> Vec<Server> {
        let address = address();
        let all: Vec<(String, u16, u16)> =
            (0..size).map(|number| (format!("m{number}"), port(), port())).collect();
        let peer = |(name, _, port): &(String, u16, u16)| format!("{name}=http://{address}:{port}");
        let cluster = all.iter().map(peer).collect::<Vec<_>>().join(",");
        let member = |(name, client, peer): &(String, u16, u16)| {
            let directory = tempfile::tempdir().unwrap();
            let data = directory.path().join("data");
            let mut arguments = vec![
                format!("--name={name}"),
                format!("--data-dir={}", data.display()),
                format!("--listen-client-urls={scheme}://{address}:{client}"),
                format!("--advertise-client-urls={scheme}://{address}:{client}"),
                format!("--listen-peer-urls=http://{address}:{peer}"),
                format!("--initial-advertise-peer-urls=http://{address}:{peer}"),
                format!("--initial-cluster={cluster}"),
                "--heartbeat-interval=50".to_string(),
                "--election-timeout=500".to_string(),
            ];
            arguments.extend(settings.iter().map(ToString::to_string));
            let endpoint = format!("{address}:{client}");
            let (name, process, access) = (name.clone(), None, Vec::new());
            Server { name, arguments, process, directory, endpoint, access }
        };
        all.iter().map(member).collect()
    }

    pub(crate) fn start(&mut self) {
        let log = File::options().append(true).create(true).open(self.log()).unwrap();
        let process = Command::new("etcd")
            .args(&self.arguments)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start etcd ({error}): {INSTALL}"));
        self.process = Some(process);
    }

    fn log(&self) -> std::path::PathBuf {
        self.directory.path().join("log")
    }

    /// Ends it without warning.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Empties it. It must not run.
    pub(crate) fn wipe(&self) {
        std::fs::remove_dir_all(self.directory.path().join("data")).unwrap();
    }

    /// Stops it from doing anything, with all connections open.
    /// Stops it, and waits until each of its threads stands still: one of them could answer until then.
    pub(crate) fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        let id = self.process.as_ref().expect("it runs").id();
        let begun = Instant::now();
        while !stands_still(id) {
            assert!(begun.elapsed() < LIMIT, "it does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        let id = self.process.as_ref().expect("it runs").id();
        kill(Pid::from_raw(id.try_into().unwrap()), signal).unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("etcd://{}", self.endpoint)
    }

    /// The registry of a group, as soon as there is one.
    pub(crate) async fn open(&self, group: &str) -> Etcd {
        match connect(patient(&self.url(), group)).await {
            Ok(etcd) => etcd,
            Err(trouble) => {
                let log = std::fs::read_to_string(self.log()).unwrap_or_default();
                panic!("{}: {trouble}\n{log}", self.name)
            }
        }
    }

    /// Runs the tool of etcd.
    pub(crate) fn control(&self, arguments: &[&str]) {
        let output = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .arg(format!("--endpoints={}", self.endpoint))
            .args(&self.access)
            .args(arguments)
            .output()
            .unwrap_or_else(|error| panic!("cannot run etcdctl ({error}): {INSTALL}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "etcdctl {arguments:?}: {said}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

const INSTALL: &str = "'cargo xtask test' installs the packages that the tests need";

/// As users have it: a call takes two seconds at most.
pub(crate) fn hasty(url: &str, group: &str) -> Options {
    Options::parse(url, group).unwrap()
}

/// For tests in which nothing is late but by a busy machine.
pub(crate) fn patient(url: &str, group: &str) -> Options {
    Options { timeout: LIMIT / 3, ..hasty(url, group) }
}

/// Connects as soon as somebody answers; whatever else is wrong is returned.
pub(crate) async fn connect(options: Options) -> Result<Etcd, Trouble> {
    let started = Instant::now();
    loop {
        match Etcd::connect(options.clone()).await {
            Err(Trouble::Unreachable(_)) if started.elapsed() < LIMIT => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
}

/// Runs the tool that makes certificates.
pub(crate) fn openssl(directory: &Path, arguments: &str) {
    let output = Command::new("openssl")
        .current_dir(directory)
        .args(arguments.split_whitespace())
        .output()
        .unwrap_or_else(|error| panic!("cannot run openssl ({error}): {INSTALL}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments}: {said}");
}

/// Whether every thread of a process is stopped.
fn stands_still(id: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    threads.flatten().all(|thread| {
        // The state comes behind the name, which is in brackets.
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
    })
}
