//! A node as a program uses it: start it, ask it for locks.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catraca_client::system::plain;
use catraca_group::{Page, Query, Refusal, Status};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::config::{Config, ConfigError};
use crate::engine::{Engine, Limits};
use crate::native::{Outbox, Server};
use crate::program::{Names, Request};
use crate::transport::{self, Transport};

/// A node that stops waits no longer for its clients to hear of it.
const FAREWELL: Duration = Duration::from_secs(1);

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
        _ => "choose an address of this machine",
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
    pub(crate) engine: Arc<Engine>,
    address: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
}

impl Node {
    /// Starts a node: it listens when this returns, and finds the other members by itself.
    pub async fn start(config: Config) -> Result<Node, StartError> {
        let view = config.view()?;
        let address = config.listen.clone().unwrap_or_else(|| view.own().address.clone());
        let listener = TcpListener::bind(&address)
            .await
            .map_err(|reason| StartError::Listen { address: address.clone(), reason })?;
        Self::start_at(config, listener).await
    }

    /// Starts a node that listens at a socket which is bound already.
    pub async fn start_at(config: Config, listener: TcpListener) -> Result<Node, StartError> {
        let view = config.view()?;
        let address = listener
            .local_addr()
            .map_err(|reason| StartError::Listen { address: view.own().address.clone(), reason })?;
        let limits = Limits { turns: config.turns, most_locks: config.most_locks };
        let engine = Arc::new(Engine::new(view, &config.group, incarnation(), limits));
        let transport = Transport { engine: Arc::clone(&engine) };
        let mut tasks = vec![tokio::spawn(remind(Arc::clone(&engine)))];
        for member in engine.view.others() {
            tasks.push(tokio::spawn(transport::write(Arc::clone(&engine), member)));
            tasks.push(tokio::spawn(transport::acknowledge(Arc::clone(&engine), member)));
            tasks.push(match member > engine.view.me {
                true => tokio::spawn(transport.clone().dial(member)),
                false => tokio::spawn(transport.clone().inquire(member)),
            });
        }
        let server = Arc::new(Server::new(Arc::clone(&engine)));
        tasks.push(tokio::spawn(transport.answer(listener, server)));
        tasks.push(tokio::spawn(run_timers(Arc::clone(&engine))));
        Ok(Node { engine, address, tasks })
    }

    /// Where the node listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the node has been connected to every other member. Before that it grants nothing:
    /// requests wait.
    pub async fn ready(&self) -> Result<(), Refusal> {
        self.engine.ready().await
    }

    /// Asks for the lock `name`; await it to be inside.
    pub fn lock<'a>(&'a self, name: &'a str) -> Request<'a> {
        Request::new(&self.engine, Names::One(name))
    }

    /// Asks for all of `names` at once: all or none, without deadlock.
    pub fn lock_all<'a>(&'a self, names: &'a [&'a str]) -> Request<'a> {
        Request::new(&self.engine, Names::All(names))
    }

    /// Asks for one of `permits` permits of the semaphore `name`.
    pub fn semaphore<'a>(&'a self, name: &'a str, permits: u32) -> Request<'a> {
        Request::new(&self.engine, Names::One(name)).permits(permits)
    }

    /// How the node and its links are doing.
    pub fn status(&self) -> Status {
        self.engine.status()
    }

    /// A page of who holds and who waits.
    pub async fn locks(&self, query: Query) -> Page {
        // It is answered for as long as the node lives.
        self.engine.list(query).await.unwrap_or_default()
    }

    /// Stops the node. Its locks are lost; guards that are still held say so, and so do the clients
    /// of other processes. The locks are not passed on: whoever holds them has yet to notice.
    pub async fn stop(mut self) {
        let told = self.engine.stop();
        let tasks = std::mem::take(&mut self.tasks);
        let all_told = async {
            for outbox in &told {
                // It is closed after its last message.
                outbox.closed().await;
            }
        };
        // Whoever does not listen will find out.
        let _ = tokio::time::timeout(FAREWELL, all_told).await;
        for task in tasks {
            task.abort();
            // It has been told to end; how it ends does not matter.
            let _ = task.await;
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _: Vec<Arc<Outbox>> = self.engine.stop();
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Members that are started together have found each other after this time.
const GATHERING: Duration = Duration::from_secs(3);

/// Tells the operator whom the group waits for.
async fn remind(engine: Arc<Engine>) {
    tokio::time::sleep(GATHERING).await;
    if let Some(members) = engine.awaited() {
        let members = members.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>();
        let members = members.join(", ");
        tracing::warn!(%members, "not connected yet; locks are granted once all members have been");
    }
}

/// Lets timers run out when their time has come.
async fn run_timers(engine: Arc<Engine>) {
    loop {
        let timer = engine.timers.next().await;
        engine.run_out(timer);
    }
}

/// A number that no other run of this member has: the time, to the nanosecond.
fn incarnation() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    since.as_nanos() as u64
}
