//! A client of a group.

use std::sync::Arc;
use std::time::Duration;

use catraca_group::{Query, Status, Wait, Who};
use tokio::sync::oneshot;

use crate::acquire::Acquire;
use crate::connection::Connection;
use crate::credentials::Credentials;
use crate::driver::{Command, Handle};
use crate::error::ClientError;
use crate::listing::Pages;
use crate::nodes::Nodes;
use crate::opening::Settings;

/// Where a node listens, unless it was told otherwise.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:7800";
/// For how long a connection that breaks before the session is open is made anew.
const RETRY: Duration = Duration::from_secs(5);
/// A node cuts longer labels to so many characters.
const LONGEST_LABEL: usize = 255;

/// How a client is made: see [`Client::builder`].
#[derive(Clone, Debug)]
pub struct Builder {
    settings: Settings,
}

impl Builder {
    /// Where nodes of the group listen, instead of [`DEFAULT_ADDRESS`]. They are tried in turn.
    pub fn addresses<S: Into<String>>(mut self, addresses: impl IntoIterator<Item = S>) -> Self {
        self.settings.nodes.addresses = addresses.into_iter().map(Into::into).collect();
        self
    }

    /// What is shown to the nodes, instead of nothing.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.settings.nodes.credentials = credentials;
        self
    }

    /// How long the locks stay held after the last renewal, instead of 10 seconds, or less where the
    /// group takes a silent node for crashed sooner. From 100 ms to one day.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = Some(ttl);
        self
    }

    /// Who this client is, as lists of locks show it, instead of the program's name.
    pub fn who(mut self, who: Who) -> Self {
        let cut = |text: String| text.chars().take(LONGEST_LABEL).collect();
        self.settings.who = Who { label: cut(who.label), host: cut(who.host), ..who };
        self
    }

    /// For how long a connection that breaks before the session is open is made anew, instead of 5
    /// seconds.
    pub fn retry(mut self, limit: Duration) -> Self {
        self.settings.retry = limit;
        self
    }

    /// Connects to the first address that serves, and opens a session there.
    pub async fn connect(self) -> Result<Client, ClientError> {
        let settings = self.settings;
        let opened = settings.open(&settings.places_from(0), settings.first_ttl()).await?;
        Ok(Client { handle: Arc::new(Handle::start(settings, opened)) })
    }
}

/// A client of a group: one session, any number of requests. Clones are the same client.
///
/// A task in the background keeps the session: it renews the lease, and goes on over a new
/// connection when one breaks. The session ends when the client, all of its clones and all of their
/// guards are gone, or by [`close`](Self::close).
///
/// A session lives at one node. If that node is gone, what was held is lost, and what was waited for
/// is asked for anew at the next address.
#[derive(Clone)]
pub struct Client {
    pub(crate) handle: Arc<Handle>,
}

impl Client {
    /// A client that is going to be, with the usual settings.
    pub fn builder() -> Builder {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let program = std::env::current_exe().ok();
        let program = program.as_ref().and_then(|program| program.file_name());
        let label = program.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let who = Who { pid: std::process::id(), host, ..Who::default() };
        let nodes = Nodes::at([DEFAULT_ADDRESS]);
        let settings = Settings { nodes, who: who.clone(), ttl: None, retry: RETRY };
        Builder { settings }.who(Who { label, ..who })
    }

    /// Connects to a node of this machine, at [`DEFAULT_ADDRESS`].
    pub async fn connect() -> Result<Client, ClientError> {
        Self::builder().connect().await
    }

    /// A lock. Waits until it is granted, unless [`Acquire`] is told otherwise.
    pub fn lock(&self, name: impl Into<String>) -> Acquire {
        Acquire::new(self, vec![name.into()], 1)
    }

    /// A lock, if nobody else holds it: otherwise [`Refusal::Taken`](catraca_group::Refusal::Taken).
    pub fn try_lock(&self, name: impl Into<String>) -> Acquire {
        self.lock(name).wait(Wait::no())
    }

    /// Several locks: all of them are held, or none. Nobody waits in a circle, whatever the order.
    pub fn lock_all<S: Into<String>>(&self, names: impl IntoIterator<Item = S>) -> Acquire {
        Acquire::new(self, names.into_iter().map(Into::into).collect(), 1)
    }

    /// A place in a semaphore that lets `permits` in. All who use it give the same number.
    pub fn semaphore(&self, name: impl Into<String>, permits: u32) -> Acquire {
        Acquire::new(self, vec![name.into()], permits)
    }

    /// The address of the node at which the session is.
    pub fn address(&self) -> &str {
        &self.handle.settings.nodes.addresses[self.handle.place()]
    }

    /// Another connection to the node of the session.
    async fn connection(&self) -> Result<Connection, ClientError> {
        let credentials = &self.handle.settings.nodes.credentials;
        Connection::open_with(self.address(), credentials).await
    }

    /// How the node of the session and its links are doing.
    pub async fn status(&self) -> Result<Status, ClientError> {
        self.connection().await?.status().await
    }

    /// Who holds and who waits, page by page.
    pub async fn locks(&self, query: Query) -> Result<Pages, ClientError> {
        Ok(Pages::new(self.connection().await?, query))
    }

    /// Ends the session, and returns when everything that it held is free. Guards that are left are
    /// lost. An error if the node has not confirmed it in time: then the session runs out.
    pub async fn close(self) -> Result<(), ClientError> {
        let (reply, closed) = oneshot::channel();
        self.handle.tell(Command::Close { reply });
        // Another clone may have closed it before.
        closed.await.unwrap_or(Ok(()))
    }
}
