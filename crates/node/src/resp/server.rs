//! Serves the clients of the Redis protocol.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use catraca_client::stream::Stream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet, coop};
use tokio::time::Instant;

use crate::acceptor::{AcceptError, Acceptor};
use crate::access::{Denied, Origin};
use crate::config::Config;
use crate::metrics::{Interface, Metrics};
use crate::native::quota::{self, Bytes, MOST_FAREWELLS, Quota};
use crate::node::StartError;
use crate::patience::{self, IDLE_CHUNK, USUAL_BUFFER, at, farewell, read_some, too_slow};
use crate::port::take_calls;
use crate::transport::prepare;

use super::client::{Client, Next, Shared};
use super::frame::{Decoder, FrameError};

/// With so many bytes unread, nothing more is heard from a client.
pub(crate) const MOST_UNREAD: usize = 64 << 10;
/// A command that has begun comes to its end in this time, or not at all.
pub(crate) const COMMAND_TIME: Duration = Duration::from_secs(10);
/// Who has to say who it is does so in this time.
pub(crate) const AUTH_TIME: Duration = Duration::from_secs(30);
/// So many bytes are heard behind a command that waits.
pub(crate) const MOST_BEHIND: usize = 64 << 10;

/// Said to whoever finds no place.
const FULL: &str = "-ERR max number of clients reached; close some, or try again\r\n";
/// Said to whoever does not speak TLS where everybody has to.
const PLAIN: &str = "-ERR at this port everybody speaks TLS: use rediss:// or turn TLS on\r\n";
/// Said to whoever begins a command and does not end it.
const SLOW: &str = "-ERR Protocol error: the command did not come to its end in time\r\n";
/// Said where all clients together have begun too much.
const UNFINISHED: &str = "-ERR too many commands have not come to their end; try again later\r\n";
/// Said to whoever waits for a lock when its token is revoked.
const REVOKED: &str = "-NOAUTH the token was revoked\r\n";

/// The Redis protocol, while it is served. Dropping it ends every connection.
pub(crate) struct Serving {
    /// Where.
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Serving {
    /// Serves, if the configuration says where.
    pub(crate) async fn start(
        config: &Config,
        shared: Shared,
        quota: Arc<Quota>,
        acceptor: &Acceptor,
    ) -> Result<Option<Self>, StartError> {
        let Some(address) = &config.resp.listen else { return Ok(None) };
        let failed = |reason| StartError::Listen { address: address.clone(), reason };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        if !config.security.may_listen_at(address.ip()) {
            return Err(StartError::Insecure(address));
        }
        let (shared, acceptor) = (Arc::new(shared), acceptor.clone());
        let server = Server { shared, quota, acceptor };
        Ok(Some(Serving { address, task: tokio::spawn(server.run(listener)) }))
    }
}

/// Where clients are served.
pub(crate) struct Server {
    pub(crate) shared: Arc<Shared>,
    pub(crate) quota: Arc<Quota>,
    pub(crate) acceptor: Acceptor,
}

impl Server {
    /// Answers every call. Calls end with this.
    pub(crate) async fn run(self, listener: TcpListener) {
        let server = Arc::new(self);
        let receive = |(stream, from)| {
            let server = Arc::clone(&server);
            Some(async move {
                if let Err(error) = server.receive(stream, from).await {
                    tracing::debug!(%from, %error, "a client went away");
                }
            })
        };
        match take_calls(&listener, &mut JoinSet::new(), receive).await {}
    }

    /// Makes a connection ready, and serves it.
    async fn receive(&self, stream: TcpStream, from: SocketAddr) -> io::Result<()> {
        prepare(&stream)?;
        let Some(place) = self.quota.enter(from.ip()) else {
            // There may be very many of them: not everybody is told.
            let mut turn = self.quota.farewells();
            if turn.set(1, MOST_FAREWELLS) {
                farewell(stream, FULL.as_bytes()).await;
            }
            return Ok(());
        };
        match self.acceptor.accept(stream, from).await {
            Ok((Stream::Tcp(stream), origin)) => {
                let (reader, writer) = stream.into_split();
                self.serve(reader, writer, from, origin, place).await
            }
            Ok((stream, origin)) => {
                let (reader, writer) = tokio::io::split(stream);
                self.serve(reader, writer, from, origin, place).await
            }
            Err(AcceptError::Plain(stream)) => {
                farewell(stream, PLAIN.as_bytes()).await;
                Ok(())
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Serves one client until it hangs up.
    pub(crate) async fn serve(
        &self,
        reader: impl AsyncRead + Unpin,
        writer: impl AsyncWrite + Unpin,
        from: SocketAddr,
        origin: Origin,
        place: quota::Place,
    ) -> io::Result<()> {
        let client = Client::new(&self.shared, origin, from.ip(), place.machine());
        let mut connection = Connection {
            client,
            quota: &self.quota,
            metrics: self.shared.engine.metrics(),
            readings: self.shared.access.readings(),
            place,
            reader,
            writer,
            decoder: Decoder::default(),
            bytes: Vec::new(),
            unfinished: self.quota.unfinished(),
            begun: None,
            unread: Vec::new(),
        };
        connection.run().await
    }
}

/// One connection.
struct Connection<'a, R, W> {
    client: Client,
    quota: &'a Quota,
    metrics: &'a Metrics,
    /// Tells when the client may not be known any more.
    readings: tokio::sync::watch::Receiver<u64>,
    place: quota::Place,
    reader: R,
    writer: W,
    decoder: Decoder,
    /// What has come and is not answered.
    bytes: Vec<u8>,
    /// Counts them, unless they are answered at once.
    unfinished: Bytes<'a>,
    /// When the command has to be whole whose beginning has come.
    begun: Option<Instant>,
    /// What has been answered and is not written.
    unread: Vec<u8>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Connection<'_, R, W> {
    async fn run(&mut self) -> io::Result<()> {
        let metrics = self.metrics;
        let _connected = metrics.connect(Interface::Resp);
        let connected = Instant::now();
        let mut stays = false;
        loop {
            let answered = self.answer_all().await;
            self.write().await?;
            if answered? == Next::End {
                return Ok(());
            }
            if !self.count() {
                self.say_last(UNFINISHED).await?;
                return Err(too_much());
            }
            let nobody = (!self.client.is_identified()).then_some(connected + AUTH_TIME);
            let limit = self.begun.into_iter().chain(nobody).min();
            if !stays && (self.client.bound.is_used() || self.client.watching.is_on()) {
                self.place.stay();
                stays = true;
            }
            let outbox = Arc::clone(&self.client.bound.outbox);
            tokio::select! {
                read = hear(&mut self.reader, &mut self.bytes, metrics) => {
                    if read? == 0 {
                        return Ok(());
                    }
                }
                () = outbox.filled() => {
                    if let Err(failure) = self.client.bound.check() {
                        // The end of the connection tells the client that its locks are lost.
                        return Err(io::Error::other(failure.to_string()));
                    }
                }
                item = self.client.watching.next() => {
                    let Some(item) = item else { return Ok(()) };
                    self.client.tell(&item);
                    self.take_replies();
                }
                Ok(()) = self.readings.changed() => {
                    if self.client.is_revoked() {
                        return Err(io::Error::other(Denied::UnknownToken));
                    }
                }
                () = at(limit) => {
                    // Whoever has said nothing waits for no answer, and would take it for that to the next command.
                    if self.begun.is_some() {
                        self.say_last(SLOW).await?;
                    }
                    return Err(too_slow());
                }
                () = self.place.makes_way() => {
                    return Err(io::Error::other("it makes way for others"));
                }
            }
        }
    }

    /// Bytes of a command that is not whole count. Returns false if there are too many, of all clients.
    fn count(&mut self) -> bool {
        if self.bytes.is_empty() {
            self.begun = None;
            if self.bytes.capacity() > USUAL_BUFFER {
                self.bytes = Vec::new();
            }
        } else {
            self.begun.get_or_insert_with(|| Instant::now() + COMMAND_TIME);
        }
        self.unfinished.set(self.bytes.len(), quota::MOST_UNFINISHED)
    }

    /// Tells a client that is about to be hung up on why.
    async fn say_last(&mut self, word: &str) -> io::Result<()> {
        self.unread.extend_from_slice(word.as_bytes());
        self.write().await
    }

    /// Answers the commands that have come. Answers are written when there is nothing more to do at once.
    async fn answer_all(&mut self) -> io::Result<Next> {
        let mut begin = 0;
        loop {
            let length = match self.decoder.check(&self.bytes[begin..]) {
                Ok(Some(length)) => length,
                Ok(None) => break,
                Err(error) => return Ok(self.refuse(&error)),
            };
            let next = self.answer(begin).await?;
            self.decoder.reset();
            begin += length;
            if next == Next::End {
                return Ok(Next::End);
            }
            self.begun = None;
            if self.unread.len() > MOST_UNREAD {
                self.write().await?;
            }
            coop::consume_budget().await;
        }
        self.bytes.drain(..begin);
        Ok(Next::GoOn)
    }

    /// What has come is no command: where the next one begins is not known.
    fn refuse(&mut self, error: &FrameError) -> Next {
        self.client.replies.error(&format!("ERR {error}"));
        self.take_replies();
        Next::End
    }

    /// Answers the command that begins there and is whole.
    async fn answer(&mut self, begin: usize) -> io::Result<Next> {
        let (mut later, mut last_word) = (Vec::new(), None);
        let identity = self.client.identity.clone();
        let is_revoked = || identity.as_ref().is_ok_and(|identity| !identity.is_known());
        let next = {
            let command = self.decoder.command(&self.bytes[begin..]);
            let mut answering = pin!(self.client.answer(command));
            let polled = poll_fn(|context| Poll::Ready(answering.as_mut().poll(context))).await;
            if polled.is_pending() {
                write(&mut self.writer, &mut self.unread, self.quota, self.metrics).await?;
            }
            match polled {
                Poll::Ready(next) => next,
                Poll::Pending => loop {
                    let has_room = later.len() < MOST_BEHIND;
                    // Many wait, and most commands are short: those do not count.
                    let kept = (self.bytes.len() + later.len()).saturating_sub(IDLE_CHUNK);
                    if !self.unfinished.set(kept, quota::MOST_UNFINISHED) {
                        last_word = Some(UNFINISHED);
                        break Next::End;
                    }
                    tokio::select! {
                        next = &mut answering => break next,
                        // Commands behind one that waits, wait. The end of the connection ends it.
                        read = hear(&mut self.reader, &mut later, self.metrics), if has_room => {
                            if read? == 0 {
                                return Ok(Next::End);
                            }
                        }
                        Ok(()) = self.readings.changed() => {
                            if is_revoked() {
                                last_word = Some(REVOKED);
                                break Next::End;
                            }
                        }
                    }
                },
            }
        };
        if let Some(word) = last_word {
            // What the client waited for is given up.
            self.say_last(word).await?;
            return Ok(Next::End);
        }
        self.bytes.extend_from_slice(&later);
        self.take_replies();
        Ok(next)
    }

    fn take_replies(&mut self) {
        self.unread.extend_from_slice(self.client.replies.bytes());
        self.client.replies.clear();
    }

    async fn write(&mut self) -> io::Result<()> {
        write(&mut self.writer, &mut self.unread, self.quota, self.metrics).await
    }
}

/// Reads what has come.
async fn hear(
    reader: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
    metrics: &Metrics,
) -> io::Result<usize> {
    let read = read_some(reader, bytes).await?;
    metrics.receive(Interface::Resp, read);
    Ok(read)
}

/// Writes what there is to say.
async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    bytes: &mut Vec<u8>,
    quota: &Quota,
    metrics: &Metrics,
) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    patience::write(writer, bytes, quota).await?;
    metrics.send(Interface::Resp, bytes.len());
    bytes.clear();
    if bytes.capacity() > USUAL_BUFFER {
        *bytes = Vec::new();
    }
    Ok(())
}

/// That all clients together have begun too much.
fn too_much() -> io::Error {
    io::Error::other("too many commands have not come to their end")
}
