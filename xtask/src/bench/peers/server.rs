//! Servers that run for a benchmark and end with it.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::net::TcpStream;

/// How long servers may take to begin, on the busiest machine.
const START: Duration = Duration::from_secs(180);
const AGAIN: Duration = Duration::from_millis(50);

/// An address that no other process uses: all of 127.0.0.0/8 is this machine, and a process has its
/// number for itself. So no port is ever taken.
pub(super) fn address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(7000);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let port = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("127.{}.{middle}.{low}:{port}", 64 + high)
}

/// A place for the files of servers.
pub(super) fn folder() -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix("catraca-peers-")
        .tempdir()
        .context("there is no place for temporary files")
}

/// A process that ends with this value, or with the process that started it, however that ends.
pub(super) struct Server {
    child: Child,
}

impl Server {
    /// Starts `program`; what it says goes to `log`.
    pub(super) fn start(program: &str, arguments: &[String], log: File) -> Result<Self> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", program]).args(arguments);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // Ctrl-C is for whoever started it, who ends it then.
        command.process_group(0);
        let child = command.spawn().context("'setpriv' cannot be started")?;
        Ok(Server { child })
    }

    /// Fails if it has ended.
    fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("a server ended by itself ({status})"),
            None => Ok(()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The servers of one lock service, with their files.
pub(super) struct Servers {
    // Servers go before their files.
    servers: Vec<Server>,
    pub(super) folder: TempDir,
    /// Where clients find them.
    pub(super) addresses: Vec<String>,
}

impl Servers {
    /// None yet.
    pub(super) fn new(count: usize) -> Result<Self> {
        let addresses = (0..count).map(|_| address()).collect();
        Ok(Servers { servers: Vec::new(), folder: folder()?, addresses })
    }

    /// One more.
    pub(super) fn add(&mut self, program: &str, arguments: &[String]) -> Result<()> {
        let log = self.folder.path().join(format!("log-{}", self.servers.len()));
        self.servers.push(Server::start(program, arguments, File::create(log)?)?);
        Ok(())
    }

    /// Waits until all of them accept connections.
    pub(super) async fn listening(&mut self) -> Result<()> {
        for address in self.addresses.clone() {
            self.retry(async || Ok(TcpStream::connect(&address).await?)).await?;
        }
        Ok(())
    }

    /// Tries until it succeeds, the servers end, or their time to start is over.
    pub(super) async fn retry<T>(&mut self, attempt: impl AsyncFn() -> Result<T>) -> Result<T> {
        let began = Instant::now();
        loop {
            let error = match attempt().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let ended = self.servers.iter_mut().try_for_each(Server::check);
            if began.elapsed() > START || ended.is_err() {
                return Err(error).context(self.logs()).context("a server does not start");
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The last lines of what the servers said.
    fn logs(&self) -> String {
        let mut text = String::new();
        for number in 0..self.servers.len() {
            let log = std::fs::read_to_string(self.folder.path().join(format!("log-{number}")));
            let log = log.unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            text += &lines[lines.len().saturating_sub(5)..].join("\n");
        }
        text
    }

    /// The address for a client: clients are spread evenly.
    pub(super) fn of_client(&self, number: usize) -> &str {
        &self.addresses[number % self.addresses.len()]
    }
}

/// Host and port of an address.
pub(super) fn parts(address: &str) -> Result<(String, u16)> {
    let address: SocketAddr = address.parse()?;
    Ok((address.ip().to_string(), address.port()))
}

/// A connection as every client has it.
pub(super) async fn connect(address: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_ends_at_once_is_told_of_with_what_it_said() {
        let mut servers = Servers::new(1).unwrap();
        servers.add("sh", &["-c".to_string(), "echo no such disk; exit 3".to_string()]).unwrap();
        let error = servers.listening().await.unwrap_err();
        assert!(format!("{error:#}").contains("no such disk"), "{error:#}");
    }

    #[test]
    fn a_server_and_its_files_go_with_their_value() {
        let mut servers = Servers::new(1).unwrap();
        servers.add("sleep", &["1000".to_string()]).unwrap();
        let folder = servers.folder.path().to_path_buf();
        let process = format!("/proc/{}", servers.servers[0].child.id());
        assert!(std::path::Path::new(&process).exists() && folder.exists());
        drop(servers);
        assert!(!std::path::Path::new(&process).exists() && !folder.exists());
    }
}
