//! Connections between members: who dials, who answers, and what is read.
//!
//! There is one link per pair of members. The one that comes first in the list of members dials; the
//! other answers. A connection that breaks is dialled again, for as long as the node lives.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use catraca_client::frame;
use catraca_client::handshake::{self, Caller, Greeting, HandshakeError, Hello, VERSION};
use serde::{Deserialize, Serialize};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::AsyncReadExt;
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::engine::Engine;
use crate::link::{Link, LinkError};
use crate::mutex::hold;
use crate::native::Server;
use crate::repeats::Repeats;

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

/// A member that should have called by now is asked whether it will, this often.
const INQUIRY_INTERVAL: Duration = Duration::from_secs(5);

/// A member introduces itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Introduction {
    pub(crate) group: String,
    /// The name of the caller.
    pub(crate) from: String,
    /// The name of the member that it means to call.
    pub(crate) to: String,
    /// Which run of the caller this is.
    pub(crate) incarnation: u64,
    /// What the caller takes for the group's members and algorithms.
    pub(crate) view: u64,
    /// Which run of the called member the caller knows, and the last frame that it has from it.
    pub(crate) known: Option<u64>,
    pub(crate) received: u64,
}

/// The answer to a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MemberAnswer {
    /// The connection can be used.
    Welcome { incarnation: u64, received: u64 },
    /// The two belong together, but the one that is called is to call.
    WillCall,
    /// The two do not belong together, and why.
    Refused(String),
    /// The caller has been restarted, and the group goes on without it.
    Restarted(String),
    /// The one that is called has been restarted, and does not know what the caller knows.
    Forgotten(String),
}

/// What connections need to know.
#[derive(Clone)]
pub(crate) struct Transport {
    pub(crate) engine: Arc<Engine>,
}

/// A connection that can be used: the stream, which run of the other member, and the last frame that
/// it has.
type Connected = (TcpStream, u64, u64);

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
                            turned_away(from, error.to_string(), &told);
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

    async fn receive(
        &self,
        mut stream: TcpStream,
        from: SocketAddr,
        server: &Server,
    ) -> Result<(), HandshakeError> {
        prepare(&stream)?;
        let hello: Hello = in_time(async {
            handshake::hear_magic(&mut stream).await?;
            handshake::hear(&mut stream).await
        })
        .await?;
        let speaks = hello.version;
        let other_version = (speaks != VERSION).then(|| {
            format!(
                "whoever calls speaks version {speaks}, whoever is called {VERSION}; run the same release on both"
            )
        });
        match hello.caller {
            Caller::Client => self.receive_client(stream, from, other_version, server).await,
            Caller::Member(introduction) => {
                if let Some(why) = other_version {
                    handshake::say(&mut stream, &MemberAnswer::Refused(why.clone())).await?;
                    return Err(HandshakeError::Refused(why));
                }
                let introduction = frame::read(&introduction)?;
                self.receive_member(stream, introduction).await
            }
        }
    }

    async fn receive_client(
        &self,
        mut stream: TcpStream,
        from: SocketAddr,
        other_version: Option<String>,
        server: &Server,
    ) -> Result<(), HandshakeError> {
        let full = || "this node has too many connections; close some, or try again".to_string();
        let place = match other_version {
            Some(why) => Err(why),
            None => server.enter(from.ip()).ok_or_else(full),
        };
        let place = match place {
            Ok(place) => place,
            Err(why) => {
                handshake::say(&mut stream, &Greeting::Refused(why.clone())).await?;
                return Err(HandshakeError::Refused(why));
            }
        };
        let welcome = Greeting::Welcome { incarnation: self.engine.incarnation };
        handshake::say(&mut stream, &welcome).await?;
        let (reader, writer) = stream.into_split();
        server.serve(reader, writer, Some(place)).await;
        Ok(())
    }

    async fn receive_member(
        &self,
        mut stream: TcpStream,
        introduction: Introduction,
    ) -> Result<(), HandshakeError> {
        let member = match self.check(&introduction) {
            Ok(member) => member,
            Err(answer) => {
                handshake::say(&mut stream, &answer).await?;
                return self.refusal(&introduction, answer);
            }
        };
        let Some(link) = self.engine.links.to(member) else { return Ok(()) };
        let (incarnation, received) = (self.engine.incarnation, link.received());
        handshake::say(&mut stream, &MemberAnswer::Welcome { incarnation, received }).await?;
        let Introduction { incarnation, received, .. } = introduction;
        self.converse(member, link, (stream, incarnation, received)).await;
        Ok(())
    }

    /// Keeps in mind that a member was turned away, for those who ask how the links are.
    fn refusal(
        &self,
        introduction: &Introduction,
        answer: MemberAnswer,
    ) -> Result<(), HandshakeError> {
        let why = match answer {
            MemberAnswer::Welcome { .. } | MemberAnswer::WillCall => return Ok(()),
            MemberAnswer::Refused(why)
            | MemberAnswer::Restarted(why)
            | MemberAnswer::Forgotten(why) => why,
        };
        let from = &introduction.from;
        let members = &self.engine.view.members;
        let member = members.iter().position(|member| member.name == *from);
        if let Some(link) = member.and_then(|member| self.engine.links.to(member)) {
            link.refuse(why.clone());
        }
        Err(HandshakeError::Refused(format!("'{from}' is refused: {why}")))
    }

    /// Which member calls, if it is one of ours and means us.
    fn check(&self, introduction: &Introduction) -> Result<usize, MemberAnswer> {
        let refused = |why: String| Err(MemberAnswer::Refused(why));
        let Introduction { group, from, to, incarnation, view: theirs, known, .. } = introduction;
        let view = &self.engine.view;
        let me = &view.own().name;
        if *group != self.engine.group {
            let own = &self.engine.group;
            return refused(format!("member '{me}' is in group '{own}', not in '{group}'"));
        }
        if to != me {
            return refused(format!(
                "member '{me}' answers where '{to}' should; check the addresses of the members"
            ));
        }
        let Some(member) = view.members.iter().position(|member| member.name == *from) else {
            return refused(format!(
                "member '{me}' knows no member '{from}' in group '{group}'; give all of them the same list"
            ));
        };
        if *theirs != view.digest() {
            return refused(format!(
                "'{from}' and '{me}' have different members or namespaces in their configurations; make them equal"
            ));
        }
        if member == view.me {
            return refused(format!(
                "another process is connected as member '{from}'; give each node a name of its own"
            ));
        }
        if member > view.me {
            return Err(MemberAnswer::WillCall);
        }
        if known.is_some_and(|known| known != self.engine.incarnation) {
            let why = restarted(me);
            self.engine.expel(&why);
            return Err(MemberAnswer::Forgotten(why));
        }
        let link = self.engine.links.to(member);
        let before = link.and_then(Link::incarnation);
        if before.is_none_or(|before| before == *incarnation) {
            return Ok(member);
        }
        if link.is_some_and(Link::is_up) {
            return refused(format!(
                "another process is connected as member '{from}'; give each node a name of its own"
            ));
        }
        Err(MemberAnswer::Restarted(restarted(from)))
    }

    /// Calls `member` again and again, for as long as the node lives.
    pub(crate) async fn dial(self, member: usize) {
        let Some(link) = self.engine.links.to(member) else { return };
        let name = &self.engine.view.members[member].name;
        let mut pause = FIRST_PAUSE;
        let mut told = Repeats::default();
        loop {
            match in_time(self.call(member, link)).await {
                Ok(Ok(connected)) => {
                    pause = FIRST_PAUSE;
                    told = Repeats::default();
                    self.converse(member, link, connected).await;
                }
                Ok(Err(answer)) => {
                    if let Some((what, why)) = self.turned_down(answer) {
                        // It goes on until somebody has read this; once is enough.
                        if told.is_news(why.clone()) {
                            tracing::error!(member = %name, %why, "{what}");
                        }
                        link.refuse(why);
                    }
                    pause = LONGEST_PAUSE;
                }
                Err(error) => {
                    let why = error.to_string();
                    if pause == LONGEST_PAUSE && told.is_news(why.clone()) {
                        tracing::warn!(member = %name, %why, "cannot be reached");
                    }
                    link.unreachable(why);
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Asks a member that is to call us, and has not, whether it will: one whose list of members
    /// does not have us never does, and we would wait for it without a reason.
    pub(crate) async fn inquire(self, member: usize) {
        let Some(link) = self.engine.links.to(member) else { return };
        let name = &self.engine.view.members[member].name;
        let mut told = Repeats::default();
        loop {
            tokio::time::sleep(INQUIRY_INTERVAL).await;
            if link.is_up() {
                continue;
            }
            if let Ok(Err(answer)) = in_time(self.call(member, link)).await
                && let Some((what, why)) = self.turned_down(answer)
            {
                if told.is_news(why.clone()) {
                    tracing::error!(member = %name, %why, "{what}");
                }
                link.refuse(why);
            }
        }
    }

    /// What it means that a member does not want this connection, and why; nothing if all is well.
    fn turned_down(&self, answer: MemberAnswer) -> Option<(&'static str, String)> {
        match answer {
            MemberAnswer::Welcome { .. } | MemberAnswer::WillCall => None,
            MemberAnswer::Refused(why) => Some(("this member refuses us", why)),
            MemberAnswer::Restarted(why) => {
                self.engine.expel(&why);
                Some(("this member refuses us", why))
            }
            MemberAnswer::Forgotten(why) => Some(("this member is refused", why)),
        }
    }

    /// Calls a member once. An answer that is no connection says why.
    async fn call(
        &self,
        member: usize,
        link: &Link,
    ) -> Result<Result<Connected, MemberAnswer>, HandshakeError> {
        let view = &self.engine.view;
        let mut stream = TcpStream::connect(&view.members[member].address).await?;
        prepare(&stream)?;
        let known = link.incarnation();
        let introduction = Introduction {
            group: self.engine.group.clone(),
            from: view.own().name.clone(),
            to: view.members[member].name.clone(),
            incarnation: self.engine.incarnation,
            view: view.digest(),
            known,
            received: link.received(),
        };
        let introduction = frame::encode(&introduction)?;
        handshake::greet(&mut stream, Caller::Member(introduction)).await?;
        Ok(match handshake::hear(&mut stream).await? {
            MemberAnswer::Welcome { incarnation, .. }
                if known.is_some_and(|known| known != incarnation) =>
            {
                Err(MemberAnswer::Forgotten(restarted(&view.members[member].name)))
            }
            MemberAnswer::Welcome { incarnation, received } => Ok((stream, incarnation, received)),
            answer => Err(answer),
        })
    }

    /// Uses a connection until it breaks.
    async fn converse(&self, member: usize, link: &Link, connected: Connected) {
        let (stream, incarnation, received) = connected;
        let name = &self.engine.view.members[member].name;
        let (reader, writer) = stream.into_split();
        let number = match link.connect(Arc::new(writer), incarnation, received) {
            Ok(number) => number,
            Err(error) => {
                tracing::error!(member = %name, %error, "this connection cannot be used");
                return link.refuse(error.to_string());
            }
        };
        tracing::info!(member = %name, "connected");
        self.engine.connected(member, incarnation);
        let why = match self.read(member, number, reader).await {
            Ok(()) => "the connection was closed".to_string(),
            Err(error) => error.to_string(),
        };
        tracing::info!(member = %name, %why, "disconnected");
        if link.disconnect(number, why) {
            self.engine.disconnected(member);
        }
    }

    async fn read(&self, member: usize, number: u64, mut reader: OwnedReadHalf) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(CHUNK);
        loop {
            if reader.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
            let (taken, after) = self.engine.take_in(member, number, &bytes);
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
fn turned_away(from: SocketAddr, why: String, told: &Mutex<Repeats<(IpAddr, String)>>) {
    let mut told = hold(told);
    if told.is_news((from.ip(), why.clone())) {
        tracing::warn!(%from, %why, "a call was not answered");
    } else {
        tracing::debug!(%from, %why, "a call was not answered again");
    }
}

/// Writes what was not written at once.
pub(crate) async fn write(engine: Arc<Engine>, member: usize) {
    let Some(link) = engine.links.to(member) else { return };
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
pub(crate) async fn acknowledge(engine: Arc<Engine>, member: usize) {
    let Some(link) = engine.links.to(member) else { return };
    loop {
        link.unacknowledged.notified().await;
        tokio::time::sleep(RECEIPT_DELAY).await;
        link.acknowledge();
    }
}

/// Sets a new connection up: small messages leave at once, and the end of the other side is noticed.
fn prepare(stream: &TcpStream) -> io::Result<()> {
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

fn restarted(name: &str) -> String {
    format!(
        "member '{name}' has been restarted and has forgotten its locks; restart the whole group"
    )
}

async fn in_time<T>(
    work: impl Future<Output = Result<T, HandshakeError>>,
) -> Result<T, HandshakeError> {
    timeout(HANDSHAKE_TIME, work).await.unwrap_or(Err(HandshakeError::Silence))
}
