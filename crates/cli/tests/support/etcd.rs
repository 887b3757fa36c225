//! A real etcd, as Debian packages it.

use std::net::TcpStream;
use std::process::Command;

use super::Folder;
use super::service::{Process, addresses, wait_until};

/// A server of etcd, which ends with its value.
pub(crate) struct Etcd {
    process: Process,
    /// As `--registry` wants it.
    pub(crate) url: String,
}

impl Etcd {
    pub(crate) fn start(folder: &Folder) -> Self {
        Etcd::start_at(folder, &addresses(1).remove(0))
    }

    /// One that listens to its clients there, and keeps what it has in the folder.
    pub(crate) fn start_at(folder: &Folder, client: &str) -> Self {
        let peer = addresses(1).remove(0);
        let mut command = Command::new("etcd");
        command.args(["--name=m0", "--unsafe-no-fsync", "--log-level=error"]);
        command.arg(format!("--data-dir={}", folder.path("etcd").display()));
        command.arg(format!("--listen-client-urls=http://{client}"));
        command.arg(format!("--advertise-client-urls=http://{client}"));
        command.arg(format!("--listen-peer-urls=http://{peer}"));
        command.arg(format!("--initial-advertise-peer-urls=http://{peer}"));
        command.arg(format!("--initial-cluster=m0=http://{peer}"));
        let process = Process::start(command);
        wait_until("etcd listens", || TcpStream::connect(client).is_ok());
        Etcd { process, url: format!("etcd://{client}") }
    }

    /// It does nothing from now on, and its connections stay open.
    pub(crate) fn stop(&self) {
        self.process.signal("STOP");
    }

    pub(crate) fn go_on(&self) {
        self.process.signal("CONT");
    }
}
