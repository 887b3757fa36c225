//! A connection to a node: messages to it, and messages from it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use catraca_group::{Page, Query, Refusal, SessionId, Status, Wait, Who};

use crate::credentials::Credentials;
use crate::error::ClientError;
use crate::frame;
use crate::handshake::{self, Caller, Greeting, HandshakeError, Proof};
use crate::nodes::Nodes;
use crate::place;
use crate::protocol::{ClientMessage, Description, ForcedHold, Over, RosterChange, ServerMessage};
use crate::stream::{Reader, Stream, Writer};
use crate::tls;

/// A node answers the first message in this time, or is taken for something else.
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(5);
/// A node answers with a page in this time: it asks the other members, and waits for them a while.
const PAGE_TIME: Duration = Duration::from_secs(15);
/// How long a change of the group may take: the registry has to agree.
const CHANGING: Duration = Duration::from_secs(15);
/// The longest lease passes twice in less time: nothing that waits for one takes longer.
const LEASES: Duration = Duration::from_secs(200);

/// A connection to a node.
pub struct Connection {
    address: String,
    reader: Reader,
    writer: Writer,
    /// Whether something was written that may not have left yet.
    is_unflushed: bool,
    /// What has come and was not taken yet.
    incoming: Vec<u8>,
    /// What is still to be sent.
    outgoing: Vec<u8>,
    incarnation: u64,
}

impl Connection {
    /// Connects to the node at `address`, and shows nothing of itself.
    pub async fn open(address: &str) -> Result<Self, ClientError> {
        Self::open_with(address, &Credentials::default()).await
    }

    /// Connects to the node at `address`.
    pub async fn open_with(address: &str, credentials: &Credentials) -> Result<Self, ClientError> {
        let unreachable = |reason| ClientError::Unreachable {
            address: address.to_string(),
            reason: Arc::new(reason),
        };
        let connecting = tokio::time::timeout(ANSWER_TIME, place::connect(address, credentials));
        let stream = connecting.await.map_err(|_| unreachable(io::ErrorKind::TimedOut.into()))?;
        let untrusted = |why| ClientError::Untrusted { address: address.to_string(), why };
        let mut stream = stream.map_err(|reason| match tls::complaint(&reason) {
            Some(why) => untrusted(why),
            None => unreachable(reason),
        })?;
        let greeting =
            tokio::time::timeout(ANSWER_TIME, greet(&mut stream, &credentials.proof())).await;
        let address = address.to_string();
        match greeting.unwrap_or(Err(HandshakeError::Silence)) {
            Ok(incarnation) => {
                let (incoming, outgoing) = (Vec::new(), Vec::new());
                let ((reader, writer), is_unflushed) = (stream.into_split(), false);
                Ok(Connection {
                    address,
                    reader,
                    writer,
                    is_unflushed,
                    incoming,
                    outgoing,
                    incarnation,
                })
            }
            Err(HandshakeError::Silence) => Err(ClientError::Silent { address }),
            Err(HandshakeError::Io(error)) => match tls::complaint(&error) {
                Some(why) => Err(untrusted(why)),
                None => Err(error.into()),
            },
            Err(HandshakeError::Refused(why)) => Err(ClientError::Turned { address, why }),
            Err(HandshakeError::Denied(why)) => Err(Refusal::Denied(why).into()),
            Err(error) => Err(ClientError::Stranger { address, reason: error.to_string() }),
        }
    }

    /// Connects to the first of `nodes` that answers.
    pub async fn open_any(nodes: impl Into<Nodes>) -> Result<Self, ClientError> {
        let nodes = nodes.into();
        let mut errors = Vec::new();
        for address in &nodes.addresses {
            match Self::open_with(address, &nodes.credentials).await {
                Ok(connection) => return Ok(connection),
                Err(error) => errors.push(error),
            }
        }
        Err(ClientError::of_all(errors))
    }

    /// Opens a session. Also returns for how long, from asking, the node is certain of what it grants.
    pub async fn open_session(
        &mut self,
        who: Who,
        ttl: Option<Duration>,
    ) -> Result<(SessionId, Duration), ClientError> {
        self.send(&ClientMessage::Open { who, ttl }).await?;
        self.opened().await
    }

    /// Goes on with a session whose connection broke.
    pub async fn resume(
        &mut self,
        session: SessionId,
    ) -> Result<(SessionId, Duration), ClientError> {
        self.send(&ClientMessage::Resume { session }).await?;
        self.opened().await
    }

    async fn opened(&mut self) -> Result<(SessionId, Duration), ClientError> {
        match self.receive().await? {
            ServerMessage::Opened { session, certain } => Ok((session, certain)),
            ServerMessage::Refused { why, .. } => Err(ClientError::Refused(why)),
            ServerMessage::Over(why) => Err(ClientError::Over(why)),
            _ => Err(ClientError::Over(Over::Protocol)),
        }
    }

    /// Asks for locks. [`receive`](Self::receive) tells what came of it. After
    /// [`resume`](Self::resume) the same request can be made again: the node may have seen it, or not.
    pub async fn acquire(
        &mut self,
        request: u32,
        names: &[String],
        permits: u32,
        wait: Wait,
    ) -> Result<(), ClientError> {
        let names = names.to_vec();
        self.send(&ClientMessage::Acquire { request, names, permits, wait }).await
    }

    /// Takes a request back, or releases what it was granted.
    pub async fn release(&mut self, request: u32) -> Result<(), ClientError> {
        self.send(&ClientMessage::Release { request }).await
    }

    /// Renews the session.
    pub async fn renew(&mut self) -> Result<(), ClientError> {
        self.send(&ClientMessage::Renew).await
    }

    /// Ends the session, and returns when everything that it held is free.
    pub async fn close(mut self) -> Result<(), ClientError> {
        self.send(&ClientMessage::Close).await?;
        loop {
            if let ServerMessage::Over(_) = self.receive().await? {
                return Ok(());
            }
        }
    }

    /// One page of who holds and who waits.
    pub async fn page(&mut self, query: Query) -> Result<Page, ClientError> {
        let address = self.address.clone();
        let asking = async {
            self.send(&ClientMessage::List(query)).await?;
            loop {
                match self.receive().await? {
                    ServerMessage::Page(page) => return Ok(page),
                    ServerMessage::Refused { why, .. } => return Err(ClientError::Refused(why)),
                    ServerMessage::Over(why) => return Err(ClientError::Over(why)),
                    _ => {}
                }
            }
        };
        let silent = |_| Err(ClientError::Silent { address });
        tokio::time::timeout(PAGE_TIME, asking).await.unwrap_or_else(silent)
    }

    /// How the node and its links are doing.
    pub async fn status(&mut self) -> Result<Status, ClientError> {
        let address = self.address.clone();
        let asking = async {
            self.send(&ClientMessage::Status).await?;
            loop {
                match self.receive().await? {
                    ServerMessage::Status(status) => return Ok(*status),
                    ServerMessage::Refused { request: 0, why } => return Err(why.into()),
                    ServerMessage::Over(why) => return Err(ClientError::Over(why)),
                    _ => {}
                }
            }
        };
        let silent = |_| Err(ClientError::Silent { address });
        tokio::time::timeout(ANSWER_TIME, asking).await.unwrap_or_else(silent)
    }

    /// What the group is that the node belongs to.
    pub async fn describe(&mut self) -> Result<Description, ClientError> {
        let address = self.address.clone();
        let asking = async {
            self.send(&ClientMessage::Describe).await?;
            match self.receive().await? {
                ServerMessage::Description(description) => Ok(*description),
                ServerMessage::Refused { why, .. } => Err(why.into()),
                ServerMessage::Over(why) => Err(ClientError::Over(why)),
                _ => Err(ClientError::Over(Over::Protocol)),
            }
        };
        let silent = |_| Err(ClientError::Silent { address });
        tokio::time::timeout(ANSWER_TIME, asking).await.unwrap_or_else(silent)
    }

    /// Changes who belongs to the group. The inner error says why that cannot be.
    pub async fn change_roster(
        &mut self,
        change: RosterChange,
    ) -> Result<Result<(), String>, ClientError> {
        self.administer(ClientMessage::ChangeRoster(change)).await
    }

    /// Tells the node to leave its group for ever, and to stop.
    pub async fn leave(&mut self) -> Result<Result<(), String>, ClientError> {
        self.administer(ClientMessage::Leave).await
    }

    /// Ends whatever holds `name`, at whichever member; of several only those with these fences. Returns
    /// what has ended: that takes as long as a lease, if a holder does not answer.
    pub async fn force_release(
        &mut self,
        name: &str,
        fences: &[u64],
        by: &str,
    ) -> Result<Vec<ForcedHold>, ClientError> {
        let (name, fences, by) = (name.to_string(), fences.to_vec(), by.to_string());
        let message = ClientMessage::ForceRelease { name, fences, by };
        match self.ask_for_long(message).await? {
            ServerMessage::Forced(result) => result.map_err(ClientError::Refused),
            ServerMessage::Refused { why, .. } => Err(ClientError::Refused(why)),
            ServerMessage::Over(why) => Err(ClientError::Over(why)),
            _ => Err(ClientError::Over(Over::Protocol)),
        }
    }

    /// Has a member leave the view at once. Returns when it is out of it: one that does not answer is when
    /// its lease is over.
    pub async fn kick(
        &mut self,
        member: &str,
        by: &str,
    ) -> Result<Result<(), String>, ClientError> {
        let message = ClientMessage::Kick { member: member.to_string(), by: by.to_string() };
        match self.ask_for_long(message).await? {
            ServerMessage::Done(done) => Ok(done),
            ServerMessage::Refused { why, .. } => Err(ClientError::Refused(why)),
            ServerMessage::Over(why) => Err(ClientError::Over(why)),
            _ => Err(ClientError::Over(Over::Protocol)),
        }
    }

    async fn ask_for_long(&mut self, message: ClientMessage) -> Result<ServerMessage, ClientError> {
        let address = self.address.clone();
        let asking = async {
            self.send(&message).await?;
            self.receive().await
        };
        let silent = |_| Err(ClientError::Silent { address });
        tokio::time::timeout(LEASES, asking).await.unwrap_or_else(silent)
    }

    async fn administer(
        &mut self,
        message: ClientMessage,
    ) -> Result<Result<(), String>, ClientError> {
        let address = self.address.clone();
        let asking = async {
            self.send(&message).await?;
            match self.receive().await? {
                ServerMessage::Done(done) => Ok(done),
                ServerMessage::Refused { why, .. } => Err(why.into()),
                ServerMessage::Over(why) => Err(ClientError::Over(why)),
                _ => Err(ClientError::Over(Over::Protocol)),
            }
        };
        let silent = |_| Err(ClientError::Silent { address });
        tokio::time::timeout(CHANGING, asking).await.unwrap_or_else(silent)
    }

    /// Where the node is.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Which run of the node this is.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Sends one message, after those that were [queued](Self::queue).
    pub async fn send(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        self.queue(message)?;
        self.writer.write_all(&self.outgoing).await?;
        self.outgoing.clear();
        self.writer.flush().await?;
        Ok(())
    }

    /// Puts a message behind those that wait to be sent. [`receive`](Self::receive) sends them.
    pub fn queue(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        frame::write(message, &mut self.outgoing)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error).into())
    }

    /// Waits for what the node says next, and sends meanwhile what was queued. Nothing is lost if the
    /// future is dropped.
    pub async fn receive(&mut self) -> Result<ServerMessage, ClientError> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(message);
            }
            let (reader, writer) = (&mut self.reader, &mut self.writer);
            let has_more = self.is_unflushed || !self.outgoing.is_empty();
            tokio::select! {
                read = reader.read_buf(&mut self.incoming) => {
                    if read? == 0 {
                        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                    }
                }
                written = advance(writer, &self.outgoing), if has_more => match written {
                    Ok(written) => {
                        self.outgoing.drain(..written);
                        self.is_unflushed = written > 0;
                    }
                    // What the node has said before it hung up can still be read.
                    Err(_) => {
                        self.outgoing.clear();
                        self.is_unflushed = false;
                    }
                }
            }
        }
    }

    /// The next message that has come as a whole.
    fn take(&mut self) -> Result<Option<ServerMessage>, ClientError> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let first = frame::split(&self.incoming, frame::LONGEST_FRAME).map_err(invalid)?;
        let Some((body, _)) = first else { return Ok(None) };
        let taken = body.len() + frame::PREFIX;
        let message = frame::read(body).map_err(invalid)?;
        self.incoming.drain(..taken);
        Ok(Some(message))
    }
}

/// Writes some of `bytes`; where there are none, sees to it that all before them leaves.
async fn advance(writer: &mut Writer, bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return writer.flush().await.map(|()| 0);
    }
    writer.write(bytes).await
}

/// Says hello. Returns which run of the node answers.
async fn greet(stream: &mut Stream, proof: &Proof) -> Result<u64, HandshakeError> {
    let greeted = handshake::greet(stream, Caller::Client, proof).await;
    match handshake::hear(stream).await {
        Ok(Greeting::Welcome { incarnation }) => Ok(incarnation),
        Ok(Greeting::Refused(why)) => Err(HandshakeError::Refused(why)),
        Ok(Greeting::Denied(why)) => Err(HandshakeError::Denied(why)),
        // Whoever hangs up has said why before, if it has said anything.
        Err(HandshakeError::Io(error)) if tls::complaint(&error).is_none() => {
            Err(greeted.err().unwrap_or(error.into()))
        }
        Err(error) => Err(error),
    }
}
