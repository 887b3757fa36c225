//! Connections between members: who calls, who answers, and what is read.
//!
//! There is one link for each pair of runs of two members. Whoever joined the group later calls; the other
//! answers. A connection that breaks is made anew, for as long as both are in the view.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use catraca_client::frame;
use catraca_client::handshake::{self, Caller, Greeting, HandshakeError, Hello, Proof, VERSION};
use catraca_client::stream::Stream;
use catraca_client::tls;
use catraca_group::{Entry, MOST_MEMBERS, Run};
use serde::{Deserialize, Serialize};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::acceptor::{AcceptError, Acceptor};
use crate::access::{Certificate, Origin};
use crate::dialer::Dialer;
use crate::engine::{Engine, Peers};
use crate::link::{Link, LinkError, Resumption};
use crate::mutex::hold;
use crate::native::Server;
use crate::registry::Calls;
use crate::repeats::Repeats;
use crate::socket::Socket;
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
    /// Answers every call. Calls end with this.
    pub(crate) async fn answer(self, listener: TcpListener, server: Arc<Server>) {
        let told = Arc::default();
        let mut calls = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = calls.join_next() => continue,
            };
            match accepted {
                Ok((stream, from)) => {
                    let (transport, server) = (self.clone(), Arc::clone(&server));
                    let told = Arc::clone(&told);
                    calls.spawn(async move {
                        if let Err(error) = transport.receive(stream, from, &server).await {
                            turned_away(from.ip(), error.to_string(), &told);
                        }
                    });
                }
                Err(error) => {
                    // Too many open files, most likely: others may close.
                    tracing::warn!(%error, "a call could not be taken");
                    tokio::time::sleep(LONGEST_PAUSE).await;
                }
            }
        }
    }

    /// Answers every call of users of this machine.
    pub(crate) async fn answer_users(self, listener: Socket, server: Arc<Server>) {
        let told = Arc::default();
        let mut calls = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = calls.join_next() => continue,
            };
            let (stream, origin) = match accepted.and_then(|it| self.acceptor.accept_unix(it)) {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a call could not be taken");
                    tokio::time::sleep(LONGEST_PAUSE).await;
                    continue;
                }
            };
            let (transport, server) = (self.clone(), Arc::clone(&server));
            let told = Arc::clone(&told);
            calls.spawn(async move {
                // All of them are this machine, and have places of their own beside those over TCP.
                let from = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
                if let Err(error) = transport.hear(stream, from, origin, &server).await {
                    turned_away(from, error.to_string(), &told);
                }
            });
        }
    }

    async fn receive(
        &self,
        stream: TcpStream,
        from: SocketAddr,
        server: &Server,
    ) -> Result<(), HandshakeError> {
        prepare(&stream)?;
        match self.acceptor.accept(stream, from).await {
            Ok((stream, origin)) => self.hear(stream, from.ip(), origin, server).await,
            Err(AcceptError::Plain(stream)) => self.turn_plain_away(Stream::Tcp(stream)).await,
            Err(error) => Err(HandshakeError::Refused(error.to_string())),
        }
    }

    /// Tells whoever does not speak TLS that it has to.
    async fn turn_plain_away(&self, mut stream: Stream) -> Result<(), HandshakeError> {
        let hello: Hello = in_time(async {
            handshake::hear_magic(&mut stream).await?;
            handshake::hear(&mut stream).await
        })
        .await?;
        let why =
            "this node speaks TLS only: whoever calls has to be told which authority to trust";
        match hello.caller {
            Caller::Client => {
                handshake::say(&mut stream, &Greeting::Refused(why.to_string())).await?;
            }
            Caller::Member(_) => {
                handshake::say(&mut stream, &MemberAnswer::Refused(why.to_string())).await?;
            }
            Caller::Registry => {}
        }
        Err(HandshakeError::Refused("whoever calls does not speak TLS".to_string()))
    }

    async fn hear(
        &self,
        mut stream: Stream,
        from: IpAddr,
        origin: Origin,
        server: &Server,
    ) -> Result<(), HandshakeError> {
        let (hello, proof): (Hello, Proof) = in_time(async {
            handshake::hear_magic(&mut stream).await?;
            let hello: Hello = handshake::hear(&mut stream).await?;
            // Another version may say something else after its hello.
            let is_ours = hello.version == VERSION;
            let proof =
                if is_ours { handshake::hear(&mut stream).await? } else { Proof::default() };
            Ok((hello, proof))
        })
        .await?;
        let speaks = hello.version;
        let other_version = (speaks != VERSION).then(|| {
            format!(
                "whoever calls speaks version {speaks}, whoever is called {VERSION}; run the same release on both"
            )
        });
        match hello.caller {
            Caller::Client => match other_version {
                None => self.receive_client(stream, from, (proof, origin), server).await,
                Some(why) => {
                    handshake::say(&mut stream, &Greeting::Refused(why.clone())).await?;
                    Err(HandshakeError::Refused(why))
                }
            },
            Caller::Member(introduction) => {
                if let Some(why) = other_version {
                    handshake::say(&mut stream, &MemberAnswer::Refused(why.clone())).await?;
                    return Err(HandshakeError::Refused(why));
                }
                let access = &self.acceptor.access;
                if let Err(why) = access.admit_member(proof.token.as_deref(), &origin) {
                    let refused = MemberAnswer::Refused(why.to_string());
                    handshake::say(&mut stream, &refused).await?;
                    return Err(HandshakeError::Denied(why.to_string()));
                }
                let introduction = frame::read(&introduction)?;
                self.receive_member(stream, introduction, &origin).await
            }
            Caller::Registry => match other_version {
                // Whoever speaks another version gets no reply, and says so there.
                Some(why) => Err(HandshakeError::Refused(why)),
                None => {
                    let access = &self.acceptor.access;
                    let admitted = access.admit_member(proof.token.as_deref(), &origin);
                    admitted.map_err(|why| HandshakeError::Denied(why.to_string()))?;
                    if let Err(error) = self.calls.answer(stream).await {
                        tracing::debug!(%from, %error, "a member asks the registry no more");
                    }
                    Ok(())
                }
            },
        }
    }

    async fn receive_client(
        &self,
        mut stream: Stream,
        from: IpAddr,
        (proof, origin): (Proof, Origin),
        server: &Server,
    ) -> Result<(), HandshakeError> {
        let identity = match self.acceptor.access.identify(proof.token.as_deref(), &origin) {
            Ok(identity) => identity,
            Err(why) => {
                handshake::say(&mut stream, &Greeting::Denied(why.to_string())).await?;
                return Err(HandshakeError::Denied(why.to_string()));
            }
        };
        let Some(place) = server.enter(from) else {
            let why = "this node has too many connections; close some, or try again".to_string();
            handshake::say(&mut stream, &Greeting::Refused(why.clone())).await?;
            return Err(HandshakeError::Refused(why));
        };
        let welcome = Greeting::Welcome { incarnation: self.engine.incarnation };
        handshake::say(&mut stream, &welcome).await?;
        let (reader, writer) = stream.into_split();
        server.serve(identity, reader, writer, Some(place)).await;
        Ok(())
    }

    async fn receive_member(
        &self,
        mut stream: Stream,
        introduction: Introduction,
        origin: &Origin,
    ) -> Result<(), HandshakeError> {
        let checked =
            is_certified(&introduction.from, origin).and_then(|()| self.check(&introduction));
        if let Err(why) = checked {
            handshake::say(&mut stream, &MemberAnswer::Refused(why.clone())).await?;
            let from = &introduction.from;
            return Err(HandshakeError::Refused(format!("'{from}' is refused: {why}")));
        }
        let Introduction { from, link: id, is_resumed, received, .. } = introduction;
        let call = Resumption { id, is_resumed, received };
        let link = self.engine.links.to(&from);
        let (link, own) = match link.answer(call) {
            Ok(own) => (link, own),
            Err(_) if is_resumed => {
                handshake::say(&mut stream, &MemberAnswer::Forgotten).await?;
                return Ok(());
            }
            Err(_) => {
                // The caller has begun anew, and knows nothing of what was said before.
                let link = self.engine.links.begin_anew(&from);
                self.engine.forgotten(&from);
                let own = link.answer(call).unwrap_or_default();
                (link, own)
            }
        };
        handshake::say(&mut stream, &MemberAnswer::Welcome { received: own }).await?;
        self.converse(&link, stream, received).await;
        Ok(())
    }

    /// Whether the caller may be linked to this member.
    fn check(&self, introduction: &Introduction) -> Result<(), String> {
        let Introduction { group, from, to, .. } = introduction;
        let (own_group, me) = (&self.engine.group, &self.engine.shape.own().name);
        if group != own_group {
            return Err(format!("member '{me}' is in group '{own_group}', not in '{group}'"));
        }
        if to.name != *me {
            return Err(format!(
                "member '{me}' answers where '{to}' should; check the addresses of the members"
            ));
        }
        if from.name == *me {
            return Err(format!(
                "another process is member '{from}'; give each node a name of its own"
            ));
        }
        let peers = self.engine.peers.borrow();
        if to.incarnation != peers.own.incarnation {
            return Err(format!("member '{me}' was started anew, and joins again"));
        }
        let is_known = |run: &Run| peers.entries.iter().any(|entry| entry.run() == *run);
        let links = self.engine.links.all();
        let strangers = links.iter().filter(|link| !is_known(&link.run)).count();
        if strangers >= MOST_STRANGERS && !is_known(from) {
            return Err("too many members want to join at once".to_string());
        }
        Ok(())
    }

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
        handshake::greet(&mut stream, Caller::Member(introduction), &proof).await?;
        let answer = handshake::hear(&mut stream).await.map_err(tell_why)?;
        Ok((stream, answer))
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

/// Whether the caller's certificate, if it has shown one, is that of the member it says it is.
fn is_certified(from: &Run, origin: &Origin) -> Result<(), String> {
    match origin {
        Origin::Certificate(Certificate { names, .. }) if !names.contains(&from.name) => {
            let whose = names.join("', '");
            Err(format!("its certificate is that of '{whose}', not of member '{from}'"))
        }
        _ => Ok(()),
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

/// Tells the operator who was turned away. Members try again every second: the same reason from the
/// same machine is told only once, but to those who want to know everything.
fn turned_away(from: IpAddr, why: String, told: &Mutex<Repeats<(IpAddr, String)>>) {
    let mut told = hold(told);
    if told.is_news((from, why.clone())) {
        tracing::warn!(%from, %why, "a call was not answered");
    } else {
        tracing::debug!(%from, %why, "a call was not answered again");
    }
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
