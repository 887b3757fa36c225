//! The coordinator on a socket.
//!
//! Everything runs on one thread, so requests are served in the order in which the system reports
//! them, and a process that disconnects and connects again is removed before it is added. Only
//! the terminal looks in from another thread; the mutex is never held across an await.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener as StdListener, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use tokio::time::{interval, sleep};

use crate::{Connections, Event, Log};

/// How soon Ctrl-C is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// So many connections may wait to be accepted. The standard library allows 128; with more, connecting
/// takes seconds.
const BACKLOG: i32 = 4096;

/// How long to wait before accepting again when the system cannot.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// What a server puts up with.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So many may be connected at once.
    pub clients: u32,
    /// So long a message may take from its first to its last byte.
    pub message_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { clients: 10_000, message_timeout: Duration::from_secs(10) }
    }
}

/// A coordinator that is not yet running.
pub struct Server {
    listener: StdListener,
    connections: Arc<Connections>,
    limits: Limits,
}

/// How a server that did not fail came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// [`Connections::quit`] was called.
    Quit,
    /// The flag was set.
    Interrupted,
}

impl Server {
    /// A coordinator for a listener that [`listen`] has made.
    pub fn new(listener: StdListener, log: Log, limits: Limits) -> Self {
        Server { listener, connections: Arc::new(Connections::new(limits.clients, log)), limits }
    }

    /// What goes on inside, also while it runs.
    pub fn connections(&self) -> Arc<Connections> {
        Arc::clone(&self.connections)
    }

    /// Serves until it is asked to quit, `interrupted` is set or the log cannot be written. Then all
    /// connections are closed.
    pub fn run(self, interrupted: &AtomicBool) -> io::Result<Ended> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let connections = self.connections();
        let ended = runtime.block_on(self.accept_until(interrupted));
        connections.close();
        ended
    }

    async fn accept_until(self, interrupted: &AtomicBool) -> io::Result<Ended> {
        let listener = TcpListener::from_std(self.listener)?;
        let mut poll = interval(POLL_INTERVAL);
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.connections.accept(stream, peer, self.limits),
                    Err(error) => {
                        let why = format!("cannot accept: {error}");
                        self.connections.write(Event::Closed(None, why));
                        sleep(ACCEPT_RETRY).await;
                    }
                },
                quit = self.connections.until_quit() => return quit.map(|()| Ended::Quit),
                _ = poll.tick() => if interrupted.load(Ordering::Relaxed) {
                    return Ok(Ended::Interrupted);
                },
            }
        }
    }
}

/// Listens at `address`, such as `127.0.0.1:7880`; port 0 is any free port.
pub fn listen(address: &str) -> Result<StdListener, BindError> {
    let failed = |error: io::Error| BindError { address: address.to_string(), error };
    resolve(address).and_then(bind).map_err(failed)
}

fn bind(address: SocketAddr) -> io::Result<StdListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // A coordinator that is started again need not wait until old connections are forgotten.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// The first address that a text such as `localhost:7880` means.
pub(crate) fn resolve(address: &str) -> io::Result<SocketAddr> {
    let unknown = || io::Error::from(ErrorKind::InvalidInput);
    address.to_socket_addrs().map_err(|_| unknown())?.next().ok_or_else(unknown)
}

/// The address cannot be listened at.
#[derive(Debug)]
pub struct BindError {
    address: String,
    error: io::Error,
}

impl BindError {
    /// Whether the text is no address at all. Whatever else is wrong, the system has refused it.
    pub fn is_wrong_input(&self) -> bool {
        self.error.kind() == ErrorKind::InvalidInput
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.address;
        match self.error.kind() {
            ErrorKind::InvalidInput => {
                write!(f, "'{address}' is no address: give one such as 127.0.0.1:7880")
            }
            ErrorKind::AddrNotAvailable => {
                write!(f, "'{address}' is not an address of this machine: take 127.0.0.1:7880")
            }
            ErrorKind::AddrInUse => write!(
                f,
                "somebody listens at '{address}' already: end that program or take another port"
            ),
            ErrorKind::PermissionDenied => {
                write!(f, "not allowed to listen at '{address}': take a port above 1023")
            }
            kind => write!(f, "cannot listen at '{address}': {kind}"),
        }
    }
}

impl std::error::Error for BindError {}
