//! Connections between members: who calls, who answers, and what is read.
//!
//! There is one link for each pair of runs of two members. Whoever joined the group later calls; the other
//! answers. A connection that breaks is made anew, for as long as both are in the view.

mod answering;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use catraca_client::frame;
use catraca_client::handshake::{self, Caller, HandshakeError};
use catraca_client::stream::Stream;
use catraca_client::tls;
use catraca_group::{Entry, MOST_MEMBERS, Run};
use serde::{Deserialize, Serialize};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::acceptor::Acceptor;
use crate::dialer::Dialer;
use crate::engine::{Engine, Peers};
use crate::link::{Link, LinkError, Resumption};
use crate::registry::Calls;
use crate::repeats::Repeats;
use crate::wire::{self, WireReader};

/// A handshake takes no longer.
pub(crate) const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// From one attempt to dial to the next, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The other side is told so long after a message that it has come, if not sooner.
const RECEIPT_DELAY: Duration = Duration::from_millis(100);
/// How long a writer waits for a connection that may have been replaced.
const WRITE_TIME: Duration = Duration::from_millis(20);
/// A machine that loses its power or its network says no goodbye. So a connection on which nothing
/// comes for this long is asked whether it still stands, again at this interval, and given up after
/// so many questions without an answer: what its client held is free half a minute later.
const IDLE: Duration = Duration::from_secs(10);
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
const PROBES: u32 = 3;
/// Nobody is asked while something is unacknowledged: that ends the connection after as long.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(25);
/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// A link to somebody who is not in the view is kept for so long without a connection.
const KEPT: Duration = Duration::from_secs(30);
/// How often links are looked through for those that nobody needs.
const TIDYING: Duration = Duration::from_secs(5);
/// More runs that are not in the view are not listened to.
const MOST_STRANGERS: usize = MOST_MEMBERS;

/// A member introduces itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Introduction {
    pub(crate) group: String,
    /// Who calls.
    pub(crate) from: Run,
    /// The run that it means to call.
    pub(crate) to: Run,
    /// The link's name, whether it has been connected before, and the last frame that the caller has.
    pub(crate) link: u64,
    pub(crate) is_resumed: bool,
    pub(crate) received: u64,
}

/// The answer to a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MemberAnswer {
    /// The connection can be used; the last frame that has come from the caller.
    Welcome { received: u64 },
    /// What was said over the link before is not known here any more.
    Forgotten,
    /// The two do not belong together, and why.
    Refused(String),
}

/// What connections need to know.
#[derive(Clone)]
pub(crate) struct Transport {
    pub(crate) engine: Arc<Engine>,
    /// Who answers what other members ask of the registry here.
    pub(crate) calls: Arc<Calls>,
    /// How connections are taken.
    pub(crate) acceptor: Acceptor,
    /// How other members are called.
    pub(crate) dialer: Arc<Dialer>,
}

/// A task that ends with this.
struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Transport {
    /// Keeps links to whoever is in the view, and to no others.
    pub(crate) async fn keep_links(self) {
        let mut peers = self.engine.peers.subscribe();
        let mut dialling: BTreeMap<Run, Running> = BTreeMap::new();
        let mut of = peers.borrow().own.clone();
        loop {
            let Peers { own, entries, called } = peers.borrow_and_update().clone();
            if own != of {
                // All links are those of another run.
                dialling.clear();
                of = own.clone();
            }
            let to_call = &entries[..called.min(entries.len())];
            dialling.retain(|run, _| to_call.iter().any(|entry| entry.run() == *run));
            for entry in to_call {
                dialling.entry(entry.run()).or_insert_with(|| {
                    let (transport, own) = (self.clone(), own.clone());
                    Running(tokio::spawn(transport.dial(own, entry.clone())))
                });
            }
            self.engine.links.retain(|link| {
                entries.iter().any(|entry| entry.run() == link.run) || link.is_fresh(KEPT)
            });
            tokio::select! {
                changed = peers.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(TIDYING) => {}
            }
        }
    }

    /// Calls a run of another member again and again, for as long as it is wanted.
    async fn dial(self, own: Run, entry: Entry) {
        let (run, address) = (entry.run(), entry.member.address);
        let mut pause = FIRST_PAUSE;
        let mut told = Repeats::default();
        loop {
            let link = self.engine.links.to(&run);
            match in_time(self.call(&own, &link, &address)).await {
                Ok((stream, MemberAnswer::Welcome { received })) => {
                    pause = FIRST_PAUSE;
                    told = Repeats::default();
                    self.converse(&link, stream, received).await;
                }
                Ok((_, MemberAnswer::Forgotten)) => {
                    self.engine.links.begin_anew(&run);
                    self.engine.forgotten(&run);
                }
                Ok((_, MemberAnswer::Refused(why))) => {
                    // It goes on until somebody has read this; once is enough.
                    if told.is_news(why.clone()) {
                        tracing::warn!(member = %run, %why, "this member refuses us");
                    }
                    link.refuse(why);
                    pause = LONGEST_PAUSE;
                }
                Err(error) => {
                    let why = error.to_string();
                    if pause == LONGEST_PAUSE && told.is_news(why.clone()) {
                        tracing::warn!(member = %run, %why, "cannot be reached");
                    }
                    link.unreachable(why);
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Calls a member once.
    async fn call(
        &self,
        own: &Run,
        link: &Link,
        address: &str,
    ) -> Result<(Stream, MemberAnswer), HandshakeError> {
        let mut stream = self.dialer.connect(&link.run.name, address).await?;
        let Resumption { id, is_resumed, received } = link.call(fresh_id());
        let introduction = Introduction {
            group: self.engine.group.clone(),
            from: own.clone(),
            to: link.run.clone(),
            link: id,
            is_resumed,
            received,
        };
        let introduction = frame::encode(&introduction)?;
        let proof = self.dialer.proof();
        let greeted = handshake::greet(&mut stream, Caller::Member(introduction), &proof).await;
        // Whoever hangs up has said why before, if it has said anything.
        match handshake::hear(&mut stream).await.map_err(tell_why) {
            Err(HandshakeError::Io(error)) => Err(greeted.err().unwrap_or(error.into())),
            answer => Ok((stream, answer?)),
        }
    }

    /// Uses a connection until it breaks, or the link is not wanted any more.
    async fn converse(&self, link: &Arc<Link>, stream: Stream, received: u64) {
        let member = &link.run;
        let Some((reader, writer)) = wire::split(stream) else { return };
        let number = match link.connect(Arc::new(writer), received) {
            Ok(number) => number,
            Err(error) => {
                tracing::warn!(%member, %error, "this connection cannot be used");
                return link.refuse(error.to_string());
            }
        };
        tracing::info!(%member, "connected");
        let _writing = Running(tokio::spawn(write(Arc::clone(link))));
        let _telling = Running(tokio::spawn(acknowledge(Arc::clone(link))));
        // The connection may be cut off from outside at any moment: then it is noted all the same.
        let broken = Broken { transport: self, link, number };
        self.engine.look_at(link);
        let why = match self.read(link, number, reader).await {
            _ if link.is_closed() => "the link is not needed any more".to_string(),
            Ok(()) => "the connection was closed".to_string(),
            Err(error) => error.to_string(),
        };
        tracing::info!(%member, %why, "disconnected");
        broken.because(why);
    }

    async fn read(&self, link: &Link, number: u64, mut reader: WireReader) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(CHUNK);
        loop {
            if reader.read(&mut bytes).await? == 0 {
                return Ok(());
            }
            let (taken, after) = self.engine.take_in(link, number, &bytes);
            if !after.is_nothing() {
                // Whoever has got a lock has waited longest, and may have something to send too.
                let_others_run().await;
            }
            drop(after);
            match taken {
                Ok(taken) => drop(bytes.drain(..taken)),
                Err(LinkError::Replaced) => return Ok(()),
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            }
        }
    }
}

/// A connection in use. It is noted when it ends, however it ends.
struct Broken<'a> {
    transport: &'a Transport,
    link: &'a Link,
    number: u64,
}

impl Broken<'_> {
    fn because(self, why: String) {
        self.link.disconnect(self.number, why);
    }
}

impl Drop for Broken<'_> {
    fn drop(&mut self) {
        self.link.disconnect(self.number, "the connection was given up".to_string());
        self.transport.engine.look_at(self.link);
    }
}

/// An error of TLS in words that say what to do.
fn tell_why(error: HandshakeError) -> HandshakeError {
    match error {
        HandshakeError::Io(error) => match tls::complaint(&error) {
            Some(why) => HandshakeError::Refused(why),
            None => HandshakeError::Io(error),
        },
        other => other,
    }
}

/// A name for a link that no other has had.
fn fresh_id() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0u8)
}

/// Goes behind the tasks that are ready already. Unlike tokio's `yield_now` it does not look for new
/// events first, which is a system call.
async fn let_others_run() {
    let mut is_first = true;
    std::future::poll_fn(|context| {
        if std::mem::take(&mut is_first) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

/// Writes what was not written at once.
async fn write(link: Arc<Link>) {
    loop {
        link.unsent.notified().await;
        while !link.write() {
            let Some(stream) = link.stream() else { break };
            // A broken connection is noticed by its reader.
            let _ = timeout(WRITE_TIME, stream.writable()).await;
        }
    }
}

/// Tells the other side now and then what has come.
async fn acknowledge(link: Arc<Link>) {
    loop {
        link.unacknowledged.notified().await;
        tokio::time::sleep(RECEIPT_DELAY).await;
        link.acknowledge();
    }
}

/// Sets a new connection up: small messages leave at once, and the end of the other side is noticed.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive =
        TcpKeepalive::new().with_time(IDLE).with_interval(PROBE_INTERVAL).with_retries(PROBES);
    // A socket that takes no such options still takes messages.
    let socket = SockRef::from(stream);
    let _ = socket.set_tcp_keepalive(&keepalive);
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    Ok(())
}

async fn in_time<T>(
    work: impl Future<Output = Result<T, HandshakeError>>,
) -> Result<T, HandshakeError> {
    timeout(HANDSHAKE_TIME, work).await.unwrap_or(Err(HandshakeError::Silence))
}
