//! Calls that come: who calls, whether it may, and who serves it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catraca_client::frame;
use catraca_client::handshake::{self, Caller, Greeting, HandshakeError, Hello, Proof, VERSION};
use catraca_client::stream::Stream;
use catraca_group::Run;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;

use super::{Introduction, MOST_STRANGERS, MemberAnswer, Transport, in_time, prepare};
use crate::acceptor::AcceptError;
use crate::access::{Certificate, Denied, Origin};
use crate::link::Resumption;
use crate::mutex::hold;
use crate::native::Server;
use crate::port::take_calls;
use crate::repeats::Repeats;
use crate::socket::Socket;

/// A caller that speaks another version has so long to read why it is refused.
const FAREWELL: Duration = Duration::from_secs(1);

impl Transport {
    /// Answers every call. Calls end with this.
    pub(crate) async fn answer(self, listener: TcpListener, server: Arc<Server>) {
        let told = Arc::default();
        let receive = |(stream, from): (TcpStream, SocketAddr)| {
            let (transport, server) = (self.clone(), Arc::clone(&server));
            let told = Arc::clone(&told);
            Some(async move {
                if let Err(error) = transport.receive(stream, from, &server).await {
                    turned_away(from.ip(), error.to_string(), &told);
                }
            })
        };
        match take_calls(&listener, &mut JoinSet::new(), receive).await {}
    }

    /// Answers every call of users of this machine.
    pub(crate) async fn answer_users(self, listener: Socket, server: Arc<Server>) {
        let told = Arc::default();
        let receive = |stream| {
            let (transport, server) = (self.clone(), Arc::clone(&server));
            let told = Arc::clone(&told);
            Some(async move {
                // All of them are this machine, and have places of their own beside those over TCP.
                let from = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
                if let Err(error) = transport.receive_user(stream, from, &server).await {
                    turned_away(from, error.to_string(), &told);
                }
            })
        };
        match take_calls(&listener, &mut JoinSet::new(), receive).await {}
    }

    /// What a caller says of itself, unless it takes too long, or too many others do.
    async fn introduced<T>(
        &self,
        saying: impl Future<Output = Result<T, HandshakeError>>,
    ) -> Result<T, HandshakeError> {
        let said = self.acceptor.introduced(in_time(saying)).await;
        said.unwrap_or_else(|| {
            let why = "too many others called before it had said who it is";
            Err(HandshakeError::Refused(why.to_string()))
        })
    }

    async fn receive_user(
        &self,
        stream: UnixStream,
        from: IpAddr,
        server: &Server,
    ) -> Result<(), HandshakeError> {
        let (stream, origin) = self.acceptor.accept_unix(stream)?;
        self.hear(stream, from, origin, server).await
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
        let hello: Hello = self
            .introduced(async {
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
        let (hello, proof): (Hello, Proof) = self
            .introduced(async {
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
                    let refused = Greeting::Refused(why.clone());
                    handshake::refuse(&mut stream, &refused, FAREWELL).await?;
                    Err(HandshakeError::Refused(why))
                }
            },
            Caller::Member(introduction) => {
                if let Some(why) = other_version {
                    let refused = MemberAnswer::Refused(why.clone());
                    handshake::refuse(&mut stream, &refused, FAREWELL).await?;
                    return Err(HandshakeError::Refused(why));
                }
                if let Err(why) = self.admit_member(&proof, &origin, from) {
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
                    let admitted = self.admit_member(&proof, &origin, from);
                    admitted.map_err(|why| HandshakeError::Denied(why.to_string()))?;
                    if let Err(error) = self.calls.answer(stream).await {
                        tracing::debug!(%from, %error, "a member asks the registry no more");
                    }
                    Ok(())
                }
            },
        }
    }

    /// Whether somebody may speak as another member. What it shows is written down.
    fn admit_member(&self, proof: &Proof, origin: &Origin, from: IpAddr) -> Result<(), Denied> {
        match self.acceptor.access.admit_member(proof.token.as_deref(), origin) {
            Ok(None) => Ok(()),
            Ok(Some(identity)) => {
                self.engine.record_token(&identity, &format!("another member, from {from}"));
                Ok(())
            }
            Err(why) => {
                self.engine.deny(why.who(), &why.to_string());
                Err(why)
            }
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
                self.engine.deny(None, &why.to_string());
                handshake::say(&mut stream, &Greeting::Denied(why.to_string())).await?;
                return Err(HandshakeError::Denied(why.to_string()));
            }
        };
        let Some(place) = server.enter(from) else {
            let why = "this node has too many connections; close some, or try again".to_string();
            handshake::say(&mut stream, &Greeting::Refused(why.clone())).await?;
            return Err(HandshakeError::Refused(why));
        };
        let from =
            if let Origin::Unix { .. } = origin { "the socket".into() } else { from.to_string() };
        self.engine.record_token(&identity, &format!("native, from {from}"));
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
