//! What members ask of each other's registries, over connections of their own.
//!
//! Many requests are on their way over one connection, each with a number; replies come in any order. A
//! request whose caller is gone has nobody to be given to, and its reply is dropped.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catraca_client::handshake::{self, Caller};
use catraca_client::stream::{Reader, Stream, Writer};
use catraca_registry::Embedded;
use catraca_registry::embedded::{CallError, Calling, LONGEST_MESSAGE, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::dialer::Dialer;
use crate::mutex::hold;

/// A connection is made in this time, or not at all.
const CONNECTING: Duration = Duration::from_secs(1);
/// A message that has begun comes to its end in this time.
const MESSAGE_TIME: Duration = Duration::from_secs(10);
/// Of each connection so many requests are answered at a time.
const AT_A_TIME: usize = 64;
/// More connections are not answered.
const MOST_CONNECTIONS: usize = 256;
/// All unfinished messages together take no more bytes.
const MOST_UNFINISHED: usize = 128 << 20;
/// A message is read in parts of so many bytes, so that one that never comes costs nothing.
const PART: usize = 64 << 10;
/// What stands before a message: its length, and the number of the request.
const HEAD: usize = 12;

/// Where members can be reached.
#[derive(Debug, Default)]
pub(crate) struct Addresses(Mutex<BTreeMap<String, String>>);

impl Addresses {
    pub(crate) fn learn<'a>(&self, members: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let mut known = hold(&self.0);
        for (name, address) in members {
            if known.get(name).is_none_or(|before| before != address) {
                known.insert(name.to_string(), address.to_string());
            }
        }
    }

    pub(crate) fn of(&self, name: &str) -> Option<String> {
        hold(&self.0).get(name).cloned()
    }
}

/// Requests to other members, and those of other members.
#[derive(Default)]
pub(crate) struct Calls {
    pub(crate) addresses: Addresses,
    dialer: Arc<Dialer>,
    connections: Mutex<HashMap<String, Arc<Connection>>>,
    /// The registry here, while it is open.
    registry: Mutex<Option<Embedded>>,
    answering: AtomicUsize,
    unfinished: AtomicUsize,
}

/// A connection to another member.
struct Connection {
    address: String,
    send: mpsc::Sender<(u64, Vec<u8>)>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Vec<u8>>>>,
    last: AtomicU64,
}

/// Nobody waits for the reply any more when this is dropped.
struct Waiting<'a> {
    connection: &'a Connection,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        hold(&self.connection.waiting).remove(&self.number);
    }
}

impl Transport for Calls {
    fn call<'a>(&'a self, to: &'a str, request: Vec<u8>) -> Calling<'a> {
        Box::pin(async move {
            let connection = self.connection(to).await.map_err(CallError::NotSent)?;
            let number = connection.last.fetch_add(1, Ordering::Relaxed);
            let (tell, reply) = oneshot::channel();
            hold(&connection.waiting).insert(number, tell);
            let _waiting = Waiting { connection: &connection, number };
            let gone = || format!("the connection to '{to}' broke");
            if connection.send.send((number, request)).await.is_err() {
                return Err(CallError::NotSent(gone()));
            }
            reply.await.map_err(|_| CallError::NoReply(gone()))
        })
    }
}

impl Calls {
    /// No requests yet; they will be made by this dialer.
    pub(crate) fn new(dialer: Arc<Dialer>) -> Self {
        Calls { dialer, ..Calls::default() }
    }

    /// From now on requests of others are answered by this registry.
    pub(crate) fn serve(&self, registry: Embedded) {
        *hold(&self.registry) = Some(registry);
    }

    /// Nothing is answered any more. The registry and its way to the others refer to each other, and would
    /// never go otherwise.
    pub(crate) fn end(&self) {
        let registry = hold(&self.registry).take();
        drop(registry);
        let connections = std::mem::take(&mut *hold(&self.connections));
        drop(connections);
    }

    /// The connection to a member, which is made if there is none.
    async fn connection(&self, to: &str) -> Result<Arc<Connection>, String> {
        let address =
            self.addresses.of(to).ok_or_else(|| format!("nobody knows where '{to}' is"))?;
        let is_good = |connection: &&Arc<Connection>| {
            !connection.send.is_closed() && connection.address == address
        };
        if let Some(known) = hold(&self.connections).get(to).filter(is_good) {
            return Ok(Arc::clone(known));
        }
        let stream = timeout(CONNECTING, self.connect(to, &address)).await;
        let stream = stream.map_err(|_| format!("'{to}' at {address} does not answer"))?;
        let stream = stream.map_err(|error| format!("'{to}' at {address}: {error}"))?;
        let (send, requests) = mpsc::channel(AT_A_TIME);
        let waiting = Mutex::default();
        let connection = Arc::new(Connection { address, send, waiting, last: AtomicU64::new(0) });
        let (reader, writer) = stream.into_split();
        let reading = Arc::clone(&connection);
        tokio::spawn(async move {
            tokio::select! {
                _ = reading.read(reader) => {}
                _ = write(writer, requests) => {}
            }
            // Whoever waits for a reply on this connection gets none.
            hold(&reading.waiting).clear();
        });
        hold(&self.connections).insert(to.to_string(), Arc::clone(&connection));
        Ok(connection)
    }

    async fn connect(&self, to: &str, address: &str) -> io::Result<Stream> {
        let mut stream = self.dialer.connect(to, address).await?;
        let greeted = handshake::greet(&mut stream, Caller::Registry, &self.dialer.proof()).await;
        greeted.map_err(|error| io::Error::other(error.to_string()))?;
        Ok(stream)
    }

    /// Answers the requests of another member until it hangs up.
    pub(crate) async fn answer(&self, stream: Stream) -> io::Result<()> {
        let Some(registry) = hold(&self.registry).clone() else {
            return Err(io::Error::other("the registry is not open here yet"));
        };
        if self.answering.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
            self.answering.fetch_sub(1, Ordering::Relaxed);
            return Err(io::Error::other("there are too many connections of members"));
        }
        let answered = self.answer_all(&registry, stream).await;
        self.answering.fetch_sub(1, Ordering::Relaxed);
        answered
    }

    async fn answer_all(&self, registry: &Embedded, stream: Stream) -> io::Result<()> {
        let (mut reader, writer) = stream.into_split();
        let (send, replies) = mpsc::channel(AT_A_TIME);
        let turns = Arc::new(Semaphore::new(AT_A_TIME));
        let mut under_way = JoinSet::new();
        let reading = async {
            loop {
                let (number, request) = read(&mut reader, &self.unfinished).await?;
                let turn = Arc::clone(&turns).acquire_owned().await;
                let (registry, send) = (registry.clone(), send.clone());
                under_way.spawn(async move {
                    let reply = registry.serve(request).await;
                    // The other side may be gone.
                    send.send((number, reply)).await.ok();
                    drop(turn);
                });
                while under_way.try_join_next().is_some() {}
            }
        };
        tokio::select! {
            ended = reading => ended,
            ended = write(writer, replies) => ended,
        }
    }
}

impl Connection {
    /// Gives replies to whoever waits for them.
    async fn read(&self, mut reader: Reader) -> io::Result<()> {
        let unfinished = AtomicUsize::new(0);
        loop {
            let (number, reply) = read(&mut reader, &unfinished).await?;
            if let Some(waiting) = hold(&self.waiting).remove(&number) {
                waiting.send(reply).ok();
            }
        }
    }
}

/// Writes messages for as long as there are any.
async fn write(mut writer: Writer, mut messages: mpsc::Receiver<(u64, Vec<u8>)>) -> io::Result<()> {
    while let Some((number, message)) = messages.recv().await {
        let mut head = (message.len() as u32).to_le_bytes().to_vec();
        head.extend(number.to_le_bytes());
        head.extend(message);
        timeout(MESSAGE_TIME, writer.write_all(&head)).await??;
        timeout(MESSAGE_TIME, writer.flush()).await??;
    }
    Ok(())
}

/// Reads one message. `unfinished` counts the bytes of all that have begun and not ended.
async fn read(reader: &mut Reader, unfinished: &AtomicUsize) -> io::Result<(u64, Vec<u8>)> {
    let mut head = [0; HEAD];
    reader.read_exact(&mut head).await?;
    let (length, number) = head.split_at(4);
    let length = length.try_into().map_or(usize::MAX, |it| u32::from_le_bytes(it) as usize);
    let number = number.try_into().map_or(0, u64::from_le_bytes);
    if length > LONGEST_MESSAGE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
    }
    let mut counted = Counted { unfinished, bytes: 0 };
    let body = async {
        let mut body = Vec::new();
        while body.len() < length {
            let before = body.len();
            let part = PART.min(length - before);
            if !counted.more(part) {
                return Err(io::Error::other("too many messages have not come to their end"));
            }
            body.resize(before + part, 0);
            reader.read_exact(&mut body[before..]).await?;
        }
        Ok(body)
    };
    let body = timeout(MESSAGE_TIME, body).await??;
    Ok((number, body))
}

/// Bytes of a message that has not come to its end.
struct Counted<'a> {
    unfinished: &'a AtomicUsize,
    bytes: usize,
}

impl Counted<'_> {
    fn more(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.unfinished.fetch_add(bytes, Ordering::Relaxed) + bytes <= MOST_UNFINISHED
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.unfinished.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
