//! Keeps a session alive: signs of life, and a new connection when one breaks.

use std::time::{Duration, Instant};

use catraca_node::{Client, ClientError, Denial, Event, Wait, Who};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::lease::Lease;

/// A session makes one request.
const REQUEST: u32 = 1;
/// From one attempt to connect to the next.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) names: Vec<String>,
    pub(crate) permits: u32,
    pub(crate) patience: Patience,
}

/// How long to wait for the locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Endless,
    Until(Instant),
    None,
}

impl Patience {
    fn wait(self) -> Wait {
        match self {
            Patience::Endless => Wait::Endless,
            Patience::Until(end) => {
                Wait::Millis(end.saturating_duration_since(Instant::now()).as_millis() as u64)
            }
            Patience::None => Wait::Not,
        }
    }
}

/// What happens to a session.
#[derive(Debug)]
pub(crate) enum News {
    Granted(Vec<u64>),
    Denied(Denial),
    /// A sign of life was answered.
    Renewed(Lease),
    /// The session is over.
    Lost(Loss),
}

/// How a session can be over before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The node has said so: it stops.
    Over,
    /// The node does not know the session: it was restarted, and may have given the lock away.
    Unknown,
}

/// A session that is kept alive by a task of its own.
pub(crate) struct Keeper {
    news: mpsc::UnboundedReceiver<News>,
    close: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Keeper {
    /// Opens a session at the node, which `client` is connected to, and asks for the locks.
    pub(crate) async fn begin(
        mut client: Client,
        address: &str,
        who: Who,
        ttl: Duration,
        wish: Wish,
    ) -> Result<(Keeper, Lease), ClientError> {
        let lease = Lease::new(ttl, Instant::now());
        let session = client.open(who, Some(ttl)).await?;
        // If this breaks the connection, the keeper comes back and asks again.
        client.lock(REQUEST, &wish.names, wish.permits, wish.patience.wait()).await.ok();
        let (tell, news) = mpsc::unbounded_channel();
        let (close, closing) = oneshot::channel();
        let address = address.to_string();
        let (lease_kept, granted, is_closing) = (lease.clone(), false, false);
        let work = Work { address, session, wish, lease: lease_kept, granted, is_closing, tell };
        let task = tokio::spawn(work.go_on(client, closing));
        Ok((Keeper { news, close, task }, lease))
    }

    /// What happens next. Nothing is lost if the future is dropped.
    pub(crate) async fn news(&mut self) -> News {
        match self.news.recv().await {
            Some(news) => news,
            // The task ends only after it has said so.
            None => std::future::pending().await,
        }
    }

    /// Ends the session. Returns whether the node has confirmed, in this time, that everything is
    /// free.
    pub(crate) async fn close(self, limit: Duration) -> bool {
        // The task may have ended by itself; then there is nothing to close.
        let _ = self.close.send(());
        matches!(tokio::time::timeout(limit, self.task).await, Ok(Ok(())))
    }
}

/// The keeper's side of it.
struct Work {
    address: String,
    session: u64,
    wish: Wish,
    lease: Lease,
    granted: bool,
    is_closing: bool,
    tell: mpsc::UnboundedSender<News>,
}

/// Why a connection is no longer used.
enum End {
    Closed,
    Over,
    Broken,
}

impl Work {
    async fn go_on(mut self, mut client: Client, mut closing: oneshot::Receiver<()>) {
        loop {
            match self.converse(client, &mut closing).await {
                End::Closed => return,
                End::Over => return self.say(News::Lost(Loss::Over)),
                End::Broken => self.lease.disconnected(),
            }
            client = match self.come_back().await {
                Some(client) => client,
                None => return self.say(News::Lost(Loss::Unknown)),
            };
            if self.is_closing {
                // It was tried before; if this fails too, the session ends by itself.
                return drop(client.close().await);
            }
        }
    }

    fn say(&self, news: News) {
        // The other side may have heard enough.
        let _ = self.tell.send(news);
    }

    /// Uses a connection until it breaks or is not needed any more.
    async fn converse(&mut self, mut client: Client, closing: &mut oneshot::Receiver<()>) -> End {
        loop {
            let done = tokio::select! {
                biased;
                _ = &mut *closing => {
                    self.is_closing = true;
                    return match client.close().await {
                        Ok(()) => End::Closed,
                        Err(_) => End::Broken,
                    };
                }
                event = client.event() => self.take(event),
                () = tokio::time::sleep_until(self.lease.beat().into()) => {
                    self.lease.send(Instant::now());
                    client.alive().await.map_err(|_| End::Broken)
                }
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    fn take(&mut self, event: Result<Event, ClientError>) -> Result<(), End> {
        match event {
            Ok(Event::Alive) => {
                self.lease.answered();
                self.say(News::Renewed(self.lease.clone()));
            }
            // It may be said twice, if a connection broke in between.
            Ok(Event::Granted { fences, .. }) if !self.granted => {
                self.granted = true;
                self.say(News::Granted(fences));
            }
            Ok(Event::Denied { why, .. }) => self.say(News::Denied(why)),
            Ok(Event::Granted { .. } | Event::Released { .. }) => {}
            Err(ClientError::Over) => return Err(End::Over),
            Err(_) => return Err(End::Broken),
        }
        Ok(())
    }

    /// Connects again and goes on with the session; nothing if the node does not know it.
    async fn come_back(&mut self) -> Option<Client> {
        loop {
            match self.resume().await {
                Ok(client) => return Some(client),
                Err(ClientError::Over) => return None,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn resume(&mut self) -> Result<Client, ClientError> {
        let mut client = Client::connect(&self.address).await?;
        self.lease.disconnected();
        self.lease.send(Instant::now());
        client.resume(self.session).await?;
        self.lease.answered();
        self.say(News::Renewed(self.lease.clone()));
        if !self.granted {
            // The node may not have seen it.
            let Wish { names, permits, patience } = &self.wish;
            client.lock(REQUEST, names, *permits, patience.wait()).await?;
        }
        Ok(client)
    }
}
