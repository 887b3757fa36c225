//! A node as a program uses it: start it, ask it for locks.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catraca_client::clock;
use catraca_client::system::plain;
use catraca_client::tls::TlsError;
use catraca_group::{Leaving, Member, Page, Query, Refusal, Status};
use catraca_registry::Registry;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::acceptor::Acceptor;
use crate::access::{Access, TokenError};
use crate::audit::Audit;
use crate::changes;
use crate::config::{Config, ConfigError, SecurityConfig};
use crate::dialer::Dialer;
use crate::engine::{Engine, Limits};
use crate::gateway::Gateway;
use crate::http;
use crate::mutex::hold;
use crate::native::{Outbox, Server};
use crate::program::{Names, Request};
use crate::registry::{self, Calls, Opened, RegistryError};
use crate::resp;
use crate::socket::{Socket, SocketError};
use crate::tls::Tls;
use crate::transport::Transport;

/// A node that stops waits no longer for its clients to hear of it.
const FAREWELL: Duration = Duration::from_secs(1);
/// A node that leaves looks so often whether it has left.
const LOOK: Duration = Duration::from_millis(50);
/// When nobody is inside any more, it tries for so long to tell the group.
const TELLING: Duration = Duration::from_secs(2);

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration describes no node.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its registry cannot be used.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Its audit log cannot be written.
    #[error("cannot write the audit log {}: {}", .path.display(), plain(.reason))]
    Audit {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// Its tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// Its certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Users of its machine cannot find it.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// Others reach it, and nobody asks them who they are.
    #[error(
        "other machines reach {0}, and nobody asks them who they are: give the node a file of tokens, or certificates and the authority that its clients have theirs from; or tell it that being insecure is wanted"
    )]
    Insecure(SocketAddr),
    /// Its address is taken, or not of this machine.
    #[error("cannot listen at {address}: {}; {}", plain(.reason), remedy(.reason))]
    Listen {
        /// The address.
        address: String,
        /// What the system says.
        reason: io::Error,
    },
    /// A directory cannot be used.
    #[error(
        "cannot keep anything in '{}': {}; choose a directory that this user may write to",
        .folder.display(),
        plain(.reason)
    )]
    Folder {
        /// The directory.
        folder: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// A webhook that cannot be used.
    #[error("the webhook {url}: {why}")]
    Webhook {
        /// Where it is.
        url: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Why a node goes on with tokens or certificates that it has read before.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
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
    gateway: Gateway,
    pub(crate) protection: Protection,
    address: SocketAddr,
    http: Option<http::Serving>,
    socket: Option<PathBuf>,
    resp: Option<resp::Serving>,
    opened: Option<Opened>,
    calls: Arc<Calls>,
    tasks: Vec<JoinHandle<()>>,
}

impl Node {
    /// Starts a node: it listens when this returns, and joins its group by itself.
    pub async fn start(config: Config) -> Result<Node, StartError> {
        let address = config.listen.clone().unwrap_or(config.own()?.address);
        let listener = TcpListener::bind(&address)
            .await
            .map_err(|reason| StartError::Listen { address: address.clone(), reason })?;
        Self::start_at(config, listener).await
    }

    /// Starts a node that listens at a socket which is bound already.
    pub async fn start_at(config: Config, listener: TcpListener) -> Result<Node, StartError> {
        Self::begin(config, listener, None).await
    }

    /// Starts a node whose group keeps its registry there.
    pub async fn start_with(
        config: Config,
        listener: TcpListener,
        registry: Arc<dyn Registry>,
    ) -> Result<Node, StartError> {
        Self::begin(config, listener, Some(registry)).await
    }

    /// Behind a pointer: its code is made here, and not once more in every program that starts a node.
    fn begin(
        config: Config,
        listener: TcpListener,
        registry: Option<Arc<dyn Registry>>,
    ) -> Pin<Box<dyn Future<Output = Result<Node, StartError>> + Send>> {
        Box::pin(Self::begin_here(config, listener, registry))
    }

    async fn begin_here(
        config: Config,
        listener: TcpListener,
        registry: Option<Arc<dyn Registry>>,
    ) -> Result<Node, StartError> {
        let mut settings = config.settings()?;
        let listen = || settings.member.address.clone();
        let address = listener
            .local_addr()
            .map_err(|reason| StartError::Listen { address: listen(), reason })?;
        if !config.security.may_listen_at(address.ip()) {
            return Err(StartError::Insecure(address));
        }
        if config.security.shows_tokens(address.ip()) {
            tracing::warn!(%address, "without TLS, tokens can be read on the way to this node");
        }
        let protection = Protection::new(&config.security)?;
        let socket = user_socket(&config.security)?;
        if settings.member.address.ends_with(":0") {
            // The system has chosen a port: the others have to know which.
            settings.member.address = address.to_string();
        }
        let calls = Arc::new(Calls::new(Arc::clone(&protection.dialer)));
        calls.addresses.learn(settings.roster.iter().map(place));
        let me = settings.member.name.clone();
        let mut members: Vec<String> = settings.roster.iter().map(|it| it.name.clone()).collect();
        if config.may_register {
            // The first one begins a group. One that joins must not.
            members.retain(|name| *name != me);
            members.push(me.clone());
        }
        let Config { turns, most_locks, drain, .. } = config;
        let limits = Limits { turns, most_locks, drain, registry: config.registry.kind() };
        let audit = Audit::open(&config.audit, &me).map_err(|reason| {
            let path = config.audit.file.clone().unwrap_or_default();
            StartError::Audit { path, reason }
        })?;
        let (engine, asked) = Engine::new(settings, &config.group, incarnation(), limits, audit);
        #[cfg(feature = "mutants")]
        engine.break_rule();
        let engine = Arc::new(engine);
        let transport = Transport {
            engine: Arc::clone(&engine),
            calls: Arc::clone(&calls),
            acceptor: protection.acceptor.clone(),
            dialer: Arc::clone(&protection.dialer),
        };
        let access = Arc::clone(&protection.acceptor.access);
        let gateway = Gateway::new(Arc::clone(&engine));
        let server =
            Arc::new(Server::new(Arc::clone(&engine), gateway.clone(), Arc::clone(&access)));
        let http =
            http::Serving::start(&config, &gateway, server.quota(), &protection.acceptor).await?;
        let shared = resp::Shared::new(
            Arc::clone(&engine),
            gateway.clone(),
            Arc::clone(&access),
            config.resp.park,
        );
        let resp =
            resp::Serving::start(&config, shared, server.quota(), &protection.acceptor).await?;
        // Before the registry is opened: the others may have to be heard for that.
        let answering = transport.clone().answer(listener, Arc::clone(&server));
        let mut tasks = vec![tokio::spawn(answering)];
        let socket_path = socket.as_ref().map(|socket| socket.path().to_path_buf());
        if let Some(socket) = socket {
            tasks.push(tokio::spawn(transport.clone().answer_users(socket, server)));
        }
        let opened = match registry {
            Some(registry) => Ok(Opened::of(registry)),
            None => {
                let (place, joins) = (&config.registry, config.may_register);
                Opened::open(place, &config.group, &me, members, joins, &calls).await
            }
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tasks.iter().for_each(JoinHandle::abort);
                calls.end();
                return Err(error.into());
            }
        };
        let registry = || Arc::clone(&opened.registry);
        let its = || Arc::clone(&engine);
        tasks.push(tokio::spawn(registry::carry_out(its(), registry(), asked)));
        tasks.push(tokio::spawn(registry::watch(its(), registry())));
        *hold(&engine.registry) = Some(registry());
        hold(&engine.embedded).clone_from(&opened.embedded);
        tasks.push(tokio::spawn(registry::look(registry())));
        if let Some(embedded) = &opened.embedded {
            tasks.push(tokio::spawn(registry::keep_voters(its(), embedded.clone())));
            let calls = Arc::clone(&calls);
            tasks.push(tokio::spawn(registry::keep_addresses(its(), calls, embedded.clone())));
        }
        tasks.push(tokio::spawn(transport.keep_links()));
        tasks.push(tokio::spawn(run_timers(its())));
        tasks.push(tokio::spawn(changes::pass_on(its())));
        tasks.push(tokio::spawn(remind(its())));
        engine.begin();
        Ok(Node {
            engine,
            gateway,
            protection,
            address,
            socket: socket_path,
            http,
            resp,
            opened: Some(opened),
            calls,
            tasks,
        })
    }

    /// Where the node listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where HTTP is served, if it is.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(|http| http.address)
    }

    /// Where users of this machine find the node, as a Unix socket, if it has one.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Reads the tokens and certificates again. What cannot be read stays as it was; the error says why.
    /// Connections go on, but those of tokens that are not there any more.
    pub fn reload(&self) -> Result<(), ReloadError> {
        self.protection.reload()
    }

    /// Where the Redis protocol is served, if it is.
    pub fn resp_address(&self) -> Option<SocketAddr> {
        self.resp.as_ref().map(|resp| resp.address)
    }

    /// Waits until the node is in its group. Before that it grants nothing: requests wait.
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

    /// What interfaces ask the node for.
    #[cfg(test)]
    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// How the node and its links are doing.
    pub fn status(&self) -> Status {
        self.engine.status()
    }

    /// A page of who holds and who waits.
    pub async fn locks(&self, query: Query) -> Page {
        // It is answered for as long as the node lives.
        self.gateway.page(query).await.unwrap_or_default()
    }

    /// Leaves the group in order, for this run: nothing is granted here any more, whoever is inside may
    /// finish within the time that the configuration gives, and then the others go on at once. Whoever is
    /// still inside is told before.
    pub async fn leave(&self) {
        self.depart(Leaving::ForGood, self.engine.drain).await;
    }

    /// What makes a node that stops be quick about it.
    pub fn fast_stop(&self) -> FastStop {
        FastStop(Arc::downgrade(&self.engine))
    }

    /// Returns when the node has left its group because somebody told it to.
    pub async fn left(&self) {
        self.engine.left().await;
    }

    async fn depart(&self, how: Leaving, drain: Duration) {
        self.engine.depart(how, drain);
        let mut drained = None;
        // If the registry cannot be reached, the lease runs out: that is as good.
        while tokio::time::timeout(LOOK, self.engine.left()).await.is_err() {
            if self.engine.is_drained() {
                let since = *drained.get_or_insert_with(clock::now);
                if clock::now().since(since) > TELLING {
                    return tracing::warn!(
                        "the group could not be told; it goes on when the lease is over"
                    );
                }
            }
        }
        if let Some(Opened { embedded: Some(embedded), .. }) = &self.opened {
            registry::leave_no_voter_behind(&self.engine, embedded).await;
            // If this node leads, nobody else knows what was agreed on last, and it takes time until
            // another one leads.
            embedded.announce().await;
        }
    }

    /// Opens the audit log anew, by its name: whoever rotates logs has moved the file away.
    pub fn reopen_logs(&self) {
        if let Some(audit) = self.engine.audit() {
            audit.reopen();
        }
    }

    /// Stops the node: it leaves its group in order, and gives its directory back.
    pub fn stop(self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.stop_here())
    }

    async fn stop_here(mut self) {
        self.leave().await;
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
        if let Some(http) = self.http.take() {
            http.stop().await;
        }
        drop(self.resp.take());
        for task in tasks {
            task.abort();
            // It has been told to end; how it ends does not matter.
            let _ = task.await;
        }
        self.calls.end();
        if let Some(Opened { embedded: Some(embedded), .. }) = self.opened.take() {
            embedded.close().await;
        }
        changes::pass_on_now(&self.engine);
        let engine = Arc::clone(&self.engine);
        let written = tokio::task::spawn_blocking(move || {
            if let Some(audit) = engine.audit() {
                audit.finish();
            }
        });
        // A disk that does not answer must not keep a node from ending.
        let _ = tokio::time::timeout(FAREWELL, written).await;
    }
}

/// What protects a node.
pub(crate) struct Protection {
    pub(crate) acceptor: Acceptor,
    dialer: Arc<Dialer>,
}

impl Protection {
    fn new(config: &SecurityConfig) -> Result<Self, StartError> {
        let access = Arc::new(Access::new(config)?);
        let tls = config.tls.as_ref().map(Tls::new).transpose()?.map(Arc::new);
        let dialer = Arc::new(Dialer::new(config.own_token.as_deref(), tls.clone())?);
        Ok(Protection { acceptor: Acceptor::new(access, tls), dialer })
    }

    /// All of it, whatever becomes of a part.
    fn reload(&self) -> Result<(), ReloadError> {
        let tokens = self.acceptor.access.reload();
        let tls = self.acceptor.tls.as_ref().map_or(Ok(()), |tls| tls.reload());
        let own = self.dialer.reload();
        tokens?;
        tls?;
        Ok(own?)
    }
}

/// The socket for users of this machine, if there is to be one.
fn user_socket(config: &SecurityConfig) -> Result<Option<Socket>, SocketError> {
    let Some(path) = &config.socket else { return Ok(None) };
    match Socket::bind(path) {
        Err(error) if config.may_lack_socket => {
            tracing::warn!(%error, "goes on without a socket for users of this machine");
            Ok(None)
        }
        bound => bound.map(Some),
    }
}

/// Makes a node that stops be quick about it.
pub struct FastStop(Weak<Engine>);

impl FastStop {
    /// Nobody is given time to finish any more.
    pub fn stop(&self) {
        if let Some(engine) = self.0.upgrade() {
            engine.depart(Leaving::ForGood, Duration::ZERO);
        }
    }
}

/// A node that is dropped goes as one that crashes: its locks are lost, and the others go on when its lease
/// is over. Guards that are still held say so.
impl Drop for Node {
    fn drop(&mut self) {
        let _: Vec<Arc<Outbox>> = self.engine.stop();
        self.calls.end();
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// A member that has been started with the others is in the group after this time.
const JOINING: Duration = Duration::from_secs(5);

/// Tells the operator what a node waits for that is not in its group.
async fn remind(engine: Arc<Engine>) {
    let mut told = None;
    loop {
        tokio::time::sleep(JOINING).await;
        let obstacle = engine.obstacle();
        if obstacle != told {
            if let Some(why) = &obstacle {
                tracing::warn!(%why, "not in the group yet");
            }
            told = obstacle;
        }
    }
}

/// Lets timers run out when their time has come.
async fn run_timers(engine: Arc<Engine>) {
    loop {
        let timer = engine.timers.next().await;
        engine.run_out(timer);
    }
}

fn place(member: &Member) -> (&str, &str) {
    (&member.name, &member.address)
}

/// A number that no other run of this member has: the time, to the nanosecond.
fn incarnation() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    since.as_nanos() as u64
}
