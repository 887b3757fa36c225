//! Connections between members: who dials, who answers, and what is read.
//!
//! There is one link per pair of members. The one that comes first in the list of members dials; the
//! other answers. A connection that breaks is dialled again, for as long as the node lives.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::AsyncReadExt;
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::desk::Desk;
use crate::handshake::{self, Answer, Caller, HandshakeError, Hello, Introduction, VERSION};
use crate::host::Host;
use crate::link::{Link, LinkError};
use crate::told::Told;

/// A handshake takes no longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// From one attempt to dial to the next, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The other side is told so long after a message that it has come, if not sooner.
const RECEIPT_DELAY: Duration = Duration::from_millis(100);
/// How long a writer waits for a connection that may have been replaced.
const WRITE_PATIENCE: Duration = Duration::from_millis(20);
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

/// This member, as it introduces itself.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) group: String,
    pub(crate) incarnation: u64,
}

/// What connections need to know.
#[derive(Clone)]
pub(crate) struct Transport {
    pub(crate) host: Arc<Host>,
    pub(crate) identity: Identity,
}

impl Transport {
    /// Answers every call. Calls end with this.
    pub(crate) async fn answer(self, listener: TcpListener, desk: Arc<Desk>) {
        let told = Arc::default();
        let mut calls = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = calls.join_next() => continue,
            };
            match accepted {
                Ok((stream, from)) => {
                    let (transport, desk) = (self.clone(), Arc::clone(&desk));
                    let told = Arc::clone(&told);
                    calls.spawn(async move {
                        if let Err(error) = transport.receive(stream, desk).await {
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

    async fn receive(&self, mut stream: TcpStream, desk: Arc<Desk>) -> Result<(), HandshakeError> {
        prepare(&stream)?;
        let hello: Hello = in_time(async {
            handshake::hear_magic(&mut stream).await?;
            handshake::hear(&mut stream).await
        })
        .await?;
        let checked = match (&hello.caller, hello.version) {
            (_, version) if version != VERSION => Err(Answer::Refused(format!(
                "whoever calls speaks version {version}, whoever is called {VERSION}; run the same release on both"
            ))),
            (Caller::Client, _) => Ok(None),
            (Caller::Member(introduction), _) => self.check(introduction).map(Some),
        };
        let (member, introduction) = match (checked, hello.caller) {
            (Ok(None), _) => {
                let welcome =
                    Answer::Welcome { incarnation: self.identity.incarnation, received: 0 };
                handshake::say(&mut stream, false, &welcome).await?;
                let (reader, writer) = stream.into_split();
                desk.serve(reader, writer).await;
                return Ok(());
            }
            (Ok(Some(member)), Caller::Member(introduction)) => (member, introduction),
            (Ok(Some(_)), Caller::Client) => return Ok(()),
            (Err(answer), caller) => {
                handshake::say(&mut stream, false, &answer).await?;
                return Err(self.refusal(&caller, answer));
            }
        };
        let Some(link) = self.host.links.to(member) else { return Ok(()) };
        let incarnation = self.identity.incarnation;
        let welcome = Answer::Welcome { incarnation, received: link.received() };
        handshake::say(&mut stream, false, &welcome).await?;
        let Introduction { incarnation, received, .. } = introduction;
        self.converse(member, link, stream, incarnation, received).await;
        Ok(())
    }

    /// Keeps in mind that a member was turned away, for those who ask how the links are.
    fn refusal(&self, caller: &Caller, answer: Answer) -> HandshakeError {
        let (Answer::Refused(why) | Answer::Restarted(why) | Answer::Forgotten(why)) = answer
        else {
            return HandshakeError::Stranger;
        };
        let Caller::Member(Introduction { from, .. }) = caller else {
            return HandshakeError::Refused(why);
        };
        let members = &self.host.plan.members;
        let member = members.iter().position(|member| member.name == *from);
        if let Some(link) = member.and_then(|member| self.host.links.to(member)) {
            link.refuse(why.clone());
        }
        HandshakeError::Refused(format!("'{from}' is refused: {why}"))
    }

    /// Which member calls, if it is one of ours and means us.
    fn check(&self, introduction: &Introduction) -> Result<usize, Answer> {
        let refused = |why: String| Err(Answer::Refused(why));
        let Introduction { group, from, to, incarnation, plan, known, .. } = introduction;
        let members = &self.host.plan.members;
        let me = &members[self.host.plan.me].name;
        if *group != self.identity.group {
            let own = &self.identity.group;
            return refused(format!("member '{me}' is in group '{own}', not in '{group}'"));
        }
        if to != me {
            return refused(format!(
                "member '{me}' answers where '{to}' should; check the addresses of the members"
            ));
        }
        let Some(member) = members.iter().position(|member| member.name == *from) else {
            return refused(format!("group '{group}' has no member '{from}'"));
        };
        if member >= self.host.plan.me {
            return refused(format!("'{from}' is to be called by '{me}', not the other way round"));
        }
        if *plan != self.host.plan.digest() {
            return refused(format!(
                "'{from}' and '{me}' have different members or namespaces in their configurations; make them equal"
            ));
        }
        if known.is_some_and(|known| known != self.identity.incarnation) {
            let why = restarted(me);
            self.host.cast_out(&why);
            return Err(Answer::Forgotten(why));
        }
        let link = self.host.links.to(member);
        let before = link.and_then(Link::incarnation);
        if before.is_none_or(|before| before == *incarnation) {
            return Ok(member);
        }
        if link.is_some_and(Link::is_up) {
            return refused(format!(
                "another process is connected as member '{from}'; give each node its own --name"
            ));
        }
        Err(Answer::Restarted(restarted(from)))
    }

    /// Calls `member` again and again, for as long as the node lives.
    pub(crate) async fn dial(self, member: usize) {
        let Some(link) = self.host.links.to(member) else { return };
        let name = &self.host.plan.members[member].name;
        let mut pause = FIRST_PAUSE;
        let mut told = Told::default();
        loop {
            match in_time(self.call(member, link)).await {
                Ok((stream, incarnation, received)) => {
                    pause = FIRST_PAUSE;
                    told = Told::default();
                    self.converse(member, link, stream, incarnation, received).await;
                }
                Err(error) => {
                    let why = error.to_string();
                    if let HandshakeError::Restarted(_) = error {
                        self.host.cast_out(&why);
                    }
                    let refused = match error {
                        HandshakeError::Refused(_) | HandshakeError::Restarted(_) => {
                            Some("this member refuses us")
                        }
                        HandshakeError::Forgotten(_) => Some("this member is refused"),
                        _ => None,
                    };
                    // It goes on until somebody has read this; once is enough.
                    let is_news =
                        (refused.is_some() || pause == LONGEST_PAUSE) && told.is_news(why.clone());
                    match refused {
                        Some(what) => {
                            if is_news {
                                tracing::error!(member = %name, %why, "{what}");
                            }
                            link.refuse(why);
                            pause = LONGEST_PAUSE;
                        }
                        None => {
                            if is_news {
                                tracing::warn!(member = %name, %why, "cannot be reached");
                            }
                            link.unreachable(why);
                        }
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn call(
        &self,
        member: usize,
        link: &Link,
    ) -> Result<(TcpStream, u64, u64), HandshakeError> {
        let plan = &self.host.plan;
        let mut stream = TcpStream::connect(&plan.members[member].address).await?;
        prepare(&stream)?;
        let known = link.incarnation();
        let introduction = Introduction {
            group: self.identity.group.clone(),
            from: plan.members[plan.me].name.clone(),
            to: plan.members[member].name.clone(),
            incarnation: self.identity.incarnation,
            plan: plan.digest(),
            known,
            received: link.received(),
        };
        let hello = Hello { version: VERSION, caller: Caller::Member(introduction) };
        handshake::say(&mut stream, true, &hello).await?;
        match handshake::hear(&mut stream).await? {
            Answer::Refused(why) => Err(HandshakeError::Refused(why)),
            Answer::Restarted(why) => Err(HandshakeError::Restarted(why)),
            Answer::Forgotten(why) => Err(HandshakeError::Forgotten(why)),
            Answer::Welcome { incarnation, .. }
                if known.is_some_and(|known| known != incarnation) =>
            {
                Err(HandshakeError::Forgotten(restarted(&plan.members[member].name)))
            }
            Answer::Welcome { incarnation, received } => Ok((stream, incarnation, received)),
        }
    }

    /// Uses a connection until it breaks.
    async fn converse(
        &self,
        member: usize,
        link: &Link,
        stream: TcpStream,
        incarnation: u64,
        received: u64,
    ) {
        let name = &self.host.plan.members[member].name;
        let (reader, writer) = stream.into_split();
        let number = match link.connect(Arc::new(writer), incarnation, received) {
            Ok(number) => number,
            Err(error) => {
                tracing::error!(member = %name, %error, "the two members have lost count");
                return link.refuse(error.to_string());
            }
        };
        tracing::info!(member = %name, "connected");
        self.host.connected();
        let why = match self.read(member, number, reader).await {
            Ok(()) => "the connection was closed".to_string(),
            Err(error) => error.to_string(),
        };
        tracing::info!(member = %name, %why, "disconnected");
        link.disconnect(number, why);
    }

    async fn read(&self, member: usize, number: u64, mut reader: OwnedReadHalf) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(CHUNK);
        loop {
            if reader.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
            let (taken, after) = self.host.take_in(member, number, &bytes);
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
fn turned_away(from: SocketAddr, why: String, told: &Mutex<Told<(IpAddr, String)>>) {
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    if told.is_news((from.ip(), why.clone())) {
        tracing::warn!(%from, %why, "a call was not answered");
    } else {
        tracing::debug!(%from, %why, "a call was not answered again");
    }
}

/// Writes what was not written at once.
pub(crate) async fn write(host: Arc<Host>, member: usize) {
    let Some(link) = host.links.to(member) else { return };
    loop {
        link.unsent.notified().await;
        while !link.write() {
            let Some(stream) = link.stream() else { break };
            // A broken connection is noticed by its reader.
            let _ = timeout(WRITE_PATIENCE, stream.writable()).await;
        }
    }
}

/// Tells the other side now and then what has come.
pub(crate) async fn acknowledge(host: Arc<Host>, member: usize) {
    let Some(link) = host.links.to(member) else { return };
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
    timeout(PATIENCE, work).await.unwrap_or(Err(HandshakeError::Silence))
}
