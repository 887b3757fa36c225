//! A node as a program uses it: start it, ask it for locks.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::client::plain;
use crate::config::{Config, ConfigError};
use crate::desk::Desk;
use crate::host::{Habits, Host};
use crate::inquiry::Inquiries;
use crate::listing;
use crate::protocol::{Listing, Status};
use crate::request::{LockError, Names, Request};
use crate::session::{self, Sessions};
use crate::transport::{self, Identity, Transport};

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration describes no node.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its address is taken, or not of this machine.
    #[error("cannot listen at {address}: {}; {}", plain(.reason), remedy(.reason))]
    Listen {
        /// The address.
        address: String,
        /// What the system says.
        reason: io::Error,
    },
}

fn remedy(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::AddrInUse => "is a node running there already?",
        _ => "choose an address of this machine with --listen",
    }
}

/// Part of a running node that its guards keep alive.
pub(crate) struct Running {
    pub(crate) host: Arc<Host>,
    pub(crate) group: String,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) inquiries: Inquiries,
    pub(crate) started: Instant,
    stopped: AtomicBool,
}

impl Running {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}

/// A running node: one member of a group.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use catraca_node::{Config, Node};
///
/// let mut config = Config::alone();
/// config.listen = Some("127.0.0.1:0".to_string());
/// let node = Node::start(config).await?;
/// let guard = node.lock("orders/42").await?;
/// println!("inside with fence {}", guard.fence());
/// guard.release().await;
/// # Ok(())
/// # }
/// ```
pub struct Node {
    pub(crate) running: Arc<Running>,
    address: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
}

impl Node {
    /// Starts a node: it listens when this returns, and finds the other members by itself.
    pub async fn start(config: Config) -> Result<Node, StartError> {
        let plan = config.plan()?;
        let own = plan.members[plan.me].address.clone();
        let address = config.listen.clone().unwrap_or(own);
        let listener = TcpListener::bind(&address)
            .await
            .map_err(|reason| StartError::Listen { address: address.clone(), reason })?;
        Self::start_at(config, listener).await
    }

    /// Starts a node that listens at a socket which is bound already.
    pub async fn start_at(config: Config, listener: TcpListener) -> Result<Node, StartError> {
        let plan = Arc::new(config.plan()?);
        let address = listener.local_addr().map_err(|reason| StartError::Listen {
            address: plan.members[plan.me].address.clone(),
            reason,
        })?;
        let habits = Habits { handovers: config.handovers, most_locks: config.most_locks };
        let host = Arc::new(Host::new(Arc::clone(&plan), habits));
        let (inquiries, mut tasks) = Inquiries::start(&host);
        let running = Arc::new(Running {
            host: Arc::clone(&host),
            group: config.group.clone(),
            sessions: Arc::default(),
            inquiries,
            started: Instant::now(),
            stopped: AtomicBool::new(false),
        });
        let identity = Identity { group: config.group, incarnation: incarnation() };
        let transport = Transport { host: Arc::clone(&host), identity };
        tasks.push(tokio::spawn(remind(Arc::clone(&host))));
        for member in (0..plan.members.len()).filter(|&member| member != plan.me) {
            tasks.push(tokio::spawn(transport::write(Arc::clone(&host), member)));
            tasks.push(tokio::spawn(transport::acknowledge(Arc::clone(&host), member)));
            if member > plan.me {
                tasks.push(tokio::spawn(transport.clone().dial(member)));
            }
        }
        let desk = Arc::new(Desk::new(Arc::clone(&running)));
        tasks.push(tokio::spawn(transport.answer(listener, desk)));
        if host.detector.is_some() {
            tasks.push(tokio::spawn(detect(Arc::clone(&host))));
            tasks.push(tokio::spawn(session::end_excluded(Arc::clone(&running))));
        }
        tasks.push(tokio::spawn(async move {
            loop {
                let timer = host.timers.next().await;
                host.run_out(timer);
            }
        }));
        Ok(Node { running, address, tasks })
    }

    /// Where the node listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the node has been connected to every other member. Before that it hands out
    /// nothing: requests wait.
    pub async fn ready(&self) -> Result<(), LockError> {
        self.running.host.whole().await.map_err(LockError::CastOut)
    }

    /// Asks for the lock `name`; await it to be inside.
    pub fn lock<'a>(&'a self, name: &'a str) -> Request<'a> {
        Request::new(&self.running, Names::One(name))
    }

    /// Asks for all of `names` at once: all or none, without deadlock.
    pub fn lock_all<'a>(&'a self, names: &'a [&'a str]) -> Request<'a> {
        Request::new(&self.running, Names::All(names))
    }

    /// Asks for one of `permits` permits of the semaphore `name`.
    pub fn semaphore<'a>(&'a self, name: &'a str, permits: u32) -> Request<'a> {
        Request::new(&self.running, Names::One(name)).permits(permits)
    }

    /// How the node and its links are doing.
    pub fn status(&self) -> Status {
        listing::status(&self.running)
    }

    /// Who holds and who waits, in the whole group.
    pub async fn locks(&self) -> Listing {
        listing::everywhere(&self.running).await
    }

    /// Stops the node. Its locks are lost; guards that are still held say so, and so do the clients
    /// of other processes. The locks are not passed on: whoever holds them has yet to notice.
    pub async fn stop(mut self) {
        self.halt();
        self.running.sessions.dismiss().await;
        for task in std::mem::take(&mut self.tasks) {
            // It has been told to end; how it ends does not matter.
            let _ = task.await;
        }
    }

    fn halt(&self) {
        self.running.stopped.store(true, Ordering::SeqCst);
        self.running.host.losses.notify_waiters();
        self.running.host.send_departing();
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.halt();
    }
}

/// Members that are started together have found each other after this time.
const GATHERING: Duration = Duration::from_secs(3);

/// Tells the operator whom the group waits for.
async fn remind(host: Arc<Host>) {
    tokio::time::sleep(GATHERING).await;
    if let Some(members) = host.absent().filter(|_| !host.is_cast_out()) {
        tracing::warn!(%members, "not here yet; locks are handed out once all members have been here");
    }
}

/// Lets the detector work when its time comes.
async fn detect(host: Arc<Host>) {
    let Some(detector) = &host.detector else { return };
    loop {
        let tag = detector.timers.next().await;
        host.act_on(detector.run_out(tag));
    }
}

/// A number that no other run of this member has: the time, to the nanosecond.
fn incarnation() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    since.as_nanos() as u64
}
