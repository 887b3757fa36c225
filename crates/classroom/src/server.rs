//! The coordinator on a socket.
//!
//! Everything runs on one thread, so requests are served in the order in which the system reports
//! them, and a process that hangs up and comes back is found gone before it is found there. Only
//! the terminal looks in from another thread; the mutex is never held across an await.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener as StdListener, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use tokio::time::{interval, sleep};

use crate::{Event, Hall, Log};

/// How soon Ctrl-C is noticed.
const GLANCE: Duration = Duration::from_millis(50);

/// So many may knock at once. The standard library allows 128; with more, connecting takes seconds.
const BACKLOG: i32 = 4096;

/// How long to wait before accepting again when the system cannot.
const BREATH: Duration = Duration::from_millis(200);

/// What a server puts up with.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So many may be connected at once.
    pub clients: u32,
    /// So long a message may take from its first to its last byte.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { clients: 10_000, patience: Duration::from_secs(10) }
    }
}

/// A coordinator that is not yet running.
pub struct Server {
    listener: StdListener,
    hall: Arc<Hall>,
    limits: Limits,
}

/// How a server that did not fail came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Somebody called [`Hall::quit`].
    Quit,
    /// The flag was set.
    Interrupted,
}

impl Server {
    /// A coordinator for a listener that [`listen`] has made.
    pub fn new(listener: StdListener, log: Log, limits: Limits) -> Self {
        allow_files(u64::from(limits.clients) + 64);
        Server { listener, hall: Arc::new(Hall::new(limits.clients, log)), limits }
    }

    /// What goes on inside, also while it runs.
    pub fn hall(&self) -> Arc<Hall> {
        Arc::clone(&self.hall)
    }

    /// Serves until somebody quits, `interrupted` is set or the log cannot be written. Then all
    /// connections are closed.
    pub fn run(self, interrupted: &AtomicBool) -> io::Result<Ended> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let hall = self.hall();
        let ended = runtime.block_on(self.accept_until(interrupted));
        hall.close();
        ended
    }

    async fn accept_until(self, interrupted: &AtomicBool) -> io::Result<Ended> {
        let listener = TcpListener::from_std(self.listener)?;
        let mut glance = interval(GLANCE);
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.hall.welcome(stream, peer, self.limits),
                    Err(error) => {
                        self.hall.write(Event::Closed(None, format!("cannot accept: {error}")));
                        sleep(BREATH).await;
                    }
                },
                quit = self.hall.closing_time() => return quit.map(|()| Ended::Quit),
                _ = glance.tick() => if interrupted.load(Ordering::Relaxed) {
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

/// The first address that a text such as `localhost:7880` stands for.
pub(crate) fn resolve(address: &str) -> io::Result<SocketAddr> {
    let unknown = || io::Error::from(ErrorKind::InvalidInput);
    address.to_socket_addrs().map_err(|_| unknown())?.next().ok_or_else(unknown)
}

/// Many systems allow a program 1,024 open files unless it asks for more: asks for `wanted`. Returns how
/// many are allowed then, nothing if there is no limit. If they are too few, accepting fails, and the
/// log says so.
pub fn allow_files(wanted: u64) -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |most| most.min(wanted)));
        setrlimit(Resource::Nofile, limit).ok();
    }
    getrlimit(Resource::Nofile).current
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
