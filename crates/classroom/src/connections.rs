//! What goes on behind the socket: the coordinator's state, its log and the connections, and a task
//! for each connection that takes its messages.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catraca_core::{NodeId, Phase};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use crate::{
    CoordinatorState, Event, Frame, Grant, Kind, LENGTH, Limits, Line, Log, Malformed, Message,
    ProcessId, Refusal, Served, Stamp,
};

/// A host that disappears without closing its connection is noticed after a minute or so.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(5));

/// A client that leaves more bytes of grants than about this unread does not read.
const UNREAD: usize = 4096;

/// The coordinator's state, log and connections, shared by the tasks of a server and its terminal.
pub struct Connections {
    inner: Mutex<Inner>,
    quit: Notify,
}

struct Inner {
    state: CoordinatorState,
    log: Log,
    /// Without those that could not be sent a message.
    streams: BTreeMap<NodeId, Arc<TcpStream>>,
    /// Why the log cannot be written.
    fault: Option<io::Error>,
}

/// Who is inside and who waits, at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSnapshot {
    /// The one that was granted last, if it has not left.
    pub inside: Option<ProcessId>,
    /// The others that have asked, in the order of arrival.
    pub waiting: Vec<ProcessId>,
}

impl Connections {
    /// Ends the server.
    pub fn quit(&self) {
        self.quit.notify_one();
    }

    /// Who is inside and who waits.
    pub fn queue(&self) -> QueueSnapshot {
        let inner = self.lock();
        QueueSnapshot {
            inside: inner.state.inside(),
            waiting: inner.state.waiting().flatten().collect(),
        }
    }

    /// How often each process has been served.
    pub fn served(&self) -> Served {
        self.lock().state.served().clone()
    }

    pub(crate) fn new(clients: u32, log: Log) -> Self {
        let state = CoordinatorState::new(clients);
        let inner = Inner { state, log, streams: BTreeMap::new(), fault: None };
        Connections { inner: Mutex::new(inner), quit: Notify::new() }
    }

    /// Waits until it is asked to quit, or the log cannot be written.
    pub(crate) async fn until_quit(&self) -> io::Result<()> {
        self.quit.notified().await;
        self.lock().fault.take().map_or(Ok(()), Err)
    }

    /// Lets go of every connection; it is closed when its task has ended too.
    pub(crate) fn close(&self) {
        self.lock().streams.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // If another thread panicked, the state is whole between any two statements that matter.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self, event: Event) {
        self.lock().write(event, &self.quit);
    }

    /// Gives a new connection a node and a task of its own.
    pub(crate) fn accept(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr, limits: Limits) {
        // A socket that takes no options still takes messages.
        stream.set_nodelay(true).ok();
        let (time, interval) = KEEPALIVE;
        let keepalive = TcpKeepalive::new().with_time(time).with_interval(interval);
        SockRef::from(&stream).set_tcp_keepalive(&keepalive).ok();
        SockRef::from(&stream).set_send_buffer_size(UNREAD).ok();
        let mut inner = self.lock();
        let Some(node) = inner.state.connect() else {
            let why = format!("{peer}: {} clients are connected already", limits.clients);
            return inner.write(Event::Closed(None, why), &self.quit);
        };
        let stream = Arc::new(stream);
        inner.streams.insert(node, Arc::clone(&stream));
        drop(inner);
        let connections = Arc::clone(self);
        tokio::spawn(async move {
            let closing = connections.listen(node, &stream, limits.message_timeout).await;
            connections.close_connection(node, peer, &closing);
        });
    }

    /// Takes messages until one is wrong or no more come.
    async fn listen(&self, node: NodeId, stream: &TcpStream, message_timeout: Duration) -> Closing {
        loop {
            let heard = match next_frame(stream, message_timeout).await {
                Ok(frame) => {
                    Message::parse(&frame).map_err(|why| Closing::Malformed { frame, why })
                }
                Err(closing) => Err(closing),
            };
            match heard.and_then(|message| self.receive(node, &message)) {
                // A client that sends without a pause lets others run in between.
                Ok(()) => yield_now().await,
                Err(closing) => return closing,
            }
        }
    }

    fn receive(&self, node: NodeId, message: &Message) -> Result<(), Closing> {
        let mut inner = self.lock();
        if !inner.streams.contains_key(&node) {
            return Err(Closing::NotReading);
        }
        inner.write(Event::Received(*message), &self.quit);
        let next = inner
            .state
            .receive(node, message)
            .map_err(|why| Closing::Refused { id: message.id, why })?;
        inner.deliver(next, &self.quit);
        Ok(())
    }

    fn close_connection(&self, node: NodeId, peer: SocketAddr, closing: &Closing) {
        let mut inner = self.lock();
        inner.streams.remove(&node);
        let disconnection = inner.state.disconnect(node);
        let what = match disconnection.phase {
            Phase::Idle => "",
            Phase::Waiting => "; it leaves the queue",
            Phase::Inside => "; this releases",
        };
        if disconnection.phase != Phase::Idle || !matches!(closing, Closing::HungUp) {
            let id = disconnection.id.or(match closing {
                Closing::Refused { id, .. } => Some(*id),
                _ => None,
            });
            inner.write(Event::Closed(id, format!("{peer}: {closing}{what}")), &self.quit);
        }
        inner.deliver(disconnection.next, &self.quit);
    }
}

impl Inner {
    fn write(&mut self, event: Event, quit: &Notify) {
        if let Err(error) = self.log.write(&Line { at: Stamp::now(), event }) {
            self.fault.get_or_insert(error);
            quit.notify_one();
        }
    }

    /// The log has the line before the client has the message, so an entry is never earlier than
    /// its grant.
    fn deliver(&mut self, grant: Option<Grant>, quit: &Notify) {
        let Some(Grant { node, id }) = grant else {
            return;
        };
        let message = Message::with_random_digits(Kind::Grant, id);
        self.write(Event::Sent(message), quit);
        let Some(stream) = self.streams.get(&node) else {
            return;
        };
        // Past tokio, which would first have to learn from the system that the socket takes bytes.
        // It does, unless its client has not read a great many grants.
        let socket = SockRef::from(stream.as_ref());
        if !matches!(socket.send(message.frame()), Ok(LENGTH)) {
            // Its task finds the connection ended, and frees the node.
            socket.shutdown(Shutdown::Both).ok();
            self.streams.remove(&node);
        }
    }
}

/// Puts a message together, wherever the network has cut it.
async fn next_frame(stream: &TcpStream, message_timeout: Duration) -> Result<Frame, Closing> {
    let mut frame = [0; LENGTH];
    let mut filled = 0;
    let mut limit = None;
    while filled < LENGTH {
        let readable = match limit {
            None => stream.readable().await,
            Some(limit) => timeout_at(limit, stream.readable())
                .await
                .map_err(|_| Closing::TooSlow { filled, message_timeout })?,
        };
        match readable.and_then(|()| stream.try_read(&mut frame[filled..])) {
            Ok(0) if filled == 0 => return Err(Closing::HungUp),
            Ok(0) => return Err(Closing::Incomplete(filled)),
            Ok(count) => {
                filled += count;
                limit.get_or_insert_with(|| Instant::now() + message_timeout);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(Closing::Broken(error.kind())),
        }
    }
    Ok(frame)
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
enum Closing {
    #[error("hung up")]
    HungUp,
    #[error("hung up after {0} of 10 bytes of a message")]
    Incomplete(usize),
    #[error("sent {filled} of 10 bytes of a message and then nothing for {message_timeout:?}")]
    TooSlow { filled: usize, message_timeout: Duration },
    #[error("no message '{}': {why}", frame.escape_ascii())]
    Malformed { frame: Frame, why: Malformed },
    #[error("{why}")]
    Refused { id: ProcessId, why: Refusal },
    #[error("could not be sent its GRANT; it does not read or is gone")]
    NotReading,
    #[error("{0}")]
    Broken(ErrorKind),
}
