//! The other end of the control interface: a program that uses a node of another process.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::frame;
use crate::handshake::{self, Answer, Caller, HandshakeError, Hello, VERSION};
use crate::protocol::{Ask, Denial, Listing, Status, Tell, Wait, Who};

/// A node answers the first words in this time, or is taken for something else.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a node could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error("no node answers at {address}: {}; start one with 'catraca node'", plain(.reason))]
    Unreachable {
        /// The address.
        address: String,
        /// What the system says.
        reason: io::Error,
    },
    /// Somebody listens there, but not a node of ours.
    #[error("what answers at {address} is no node: {reason}")]
    Stranger {
        /// The address.
        address: String,
        /// What went wrong.
        reason: String,
    },
    /// Somebody takes connections there, but says nothing.
    #[error(
        "the node at {address} accepts calls but does not answer: \
         it may be stopped or overloaded; see its log"
    )]
    Silent {
        /// The address.
        address: String,
    },
    /// The connection broke.
    #[error("the connection to the node broke: {}", plain(.0))]
    Broken(#[from] io::Error),
    /// The node cannot serve another client.
    #[error("{0}")]
    Refused(String),
    /// The session is over.
    #[error("the node has ended the session")]
    Over,
}

impl ClientError {
    /// Whether the connection broke. Another one may do better.
    pub fn is_broken(&self) -> bool {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, InvalidData, InvalidInput};
        match self {
            // What cannot be said or understood is not the connection's fault.
            ClientError::Broken(why) => !matches!(why.kind(), InvalidData | InvalidInput),
            ClientError::Unreachable { reason, .. } => {
                matches!(reason.kind(), ConnectionAborted | ConnectionReset)
            }
            _ => false,
        }
    }
}

/// What a node tells its client unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request was granted.
    Granted {
        /// The request.
        request: u32,
        /// Its fences, one for each name, in the order of asking.
        fences: Vec<u64>,
    },
    /// A request was not granted.
    Denied {
        /// The request.
        request: u32,
        /// Why.
        why: Denial,
    },
    /// What a request held is free.
    Released {
        /// The request.
        request: u32,
    },
    /// A sign of life was seen.
    Alive,
}

/// What the system says, without its number.
pub(crate) fn plain(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "it was closed".to_string();
    }
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}

/// A connection to a node.
pub struct Client {
    stream: TcpStream,
    bytes: Vec<u8>,
    incarnation: u64,
}

impl Client {
    /// Connects to the node at `address`.
    pub async fn connect(address: &str) -> Result<Self, ClientError> {
        let unreachable =
            |reason| ClientError::Unreachable { address: address.to_string(), reason };
        let connecting = tokio::time::timeout(PATIENCE, TcpStream::connect(address));
        let stream = connecting.await.map_err(|_| unreachable(io::ErrorKind::TimedOut.into()))?;
        let mut stream = stream.map_err(unreachable)?;
        stream.set_nodelay(true)?;
        let greeting = tokio::time::timeout(PATIENCE, greet(&mut stream)).await;
        let address = address.to_string();
        match greeting.unwrap_or(Err(HandshakeError::Silence)) {
            Ok(incarnation) => Ok(Client { stream, bytes: Vec::new(), incarnation }),
            Err(HandshakeError::Silence) => Err(ClientError::Silent { address }),
            Err(HandshakeError::Io(error)) => Err(ClientError::Broken(error)),
            Err(HandshakeError::Refused(why)) => {
                Err(ClientError::Refused(format!("the node at {address} refuses us: {why}")))
            }
            Err(error) => Err(ClientError::Stranger { address, reason: error.to_string() }),
        }
    }

    /// Opens a session; returns its number.
    pub async fn open(&mut self, who: Who, ttl: Option<Duration>) -> Result<u64, ClientError> {
        let ttl_millis = ttl.map(|ttl| ttl.as_millis() as u64);
        self.ask(&Ask::Open { who, ttl_millis }).await?;
        self.opened().await
    }

    /// Goes on with a session whose connection broke.
    pub async fn resume(&mut self, session: u64) -> Result<u64, ClientError> {
        self.ask(&Ask::Resume { session }).await?;
        self.opened().await
    }

    async fn opened(&mut self) -> Result<u64, ClientError> {
        match self.hear().await? {
            Tell::Open { session } => Ok(session),
            Tell::Denied { why: Denial::Node(why), .. } => Err(ClientError::Refused(why)),
            _ => Err(ClientError::Over),
        }
    }

    /// Asks for locks. An [`Event`] says what came of it. After [`resume`](Self::resume) the same
    /// request can be made again: the node may have seen it, or not.
    pub async fn lock(
        &mut self,
        request: u32,
        names: &[String],
        permits: u32,
        wait: Wait,
    ) -> Result<(), ClientError> {
        let names = names.to_vec();
        self.ask(&Ask::Lock { request, names, permits, wait }).await
    }

    /// Takes a request back, or releases what it was granted.
    pub async fn release(&mut self, request: u32) -> Result<(), ClientError> {
        self.ask(&Ask::Release { request }).await
    }

    /// Ends the session, and returns when everything that it held is free.
    pub async fn close(mut self) -> Result<(), ClientError> {
        self.ask(&Ask::Close).await?;
        loop {
            if self.hear().await? == Tell::Over {
                return Ok(());
            }
        }
    }

    /// Gives a sign of life.
    pub async fn alive(&mut self) -> Result<(), ClientError> {
        self.ask(&Ask::Alive).await
    }

    /// Waits for what the node says next. Nothing is lost if the future is dropped.
    pub async fn event(&mut self) -> Result<Event, ClientError> {
        loop {
            match self.hear().await? {
                Tell::Granted { request, fences } => return Ok(Event::Granted { request, fences }),
                Tell::Denied { request, why } => return Ok(Event::Denied { request, why }),
                Tell::Released { request } => return Ok(Event::Released { request }),
                Tell::Alive => return Ok(Event::Alive),
                Tell::Over => return Err(ClientError::Over),
                Tell::Open { .. } | Tell::Locks { .. } | Tell::Status(_) | Tell::Held { .. } => {}
            }
        }
    }

    /// Who holds and who waits: at this node, or in the whole group.
    pub async fn locks(&mut self, whole_group: bool) -> Result<Listing, ClientError> {
        self.ask(&Ask::Locks { whole_group }).await?;
        let mut listing = Listing::default();
        loop {
            if let Tell::Locks { part, is_last } = self.hear().await? {
                listing.lines.extend(part.lines);
                listing.silent.extend(part.silent);
                if is_last {
                    return Ok(listing);
                }
            }
        }
    }

    /// How the node and its links are doing.
    pub async fn status(&mut self) -> Result<Status, ClientError> {
        self.ask(&Ask::Status).await?;
        loop {
            if let Tell::Status(status) = self.hear().await? {
                return Ok(*status);
            }
        }
    }

    /// Which run of the node this is.
    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    pub(crate) async fn ask(&mut self, ask: &Ask) -> Result<(), ClientError> {
        let mut bytes = Vec::new();
        frame::write(ask, &mut bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(self.stream.write_all(&bytes).await?)
    }

    pub(crate) async fn hear(&mut self) -> Result<Tell, ClientError> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        loop {
            if let Some((body, _)) = frame::split(&self.bytes).map_err(invalid)? {
                let taken = body.len() + frame::PREFIX;
                let tell = frame::read(body).map_err(invalid)?;
                self.bytes.drain(..taken);
                return Ok(tell);
            }
            if self.stream.read_buf(&mut self.bytes).await? == 0 {
                return Err(ClientError::Broken(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}

/// Says hello. Returns which run of the node answers.
async fn greet(stream: &mut TcpStream) -> Result<u64, HandshakeError> {
    let hello = Hello { version: VERSION, caller: Caller::Client };
    handshake::say(stream, true, &hello).await?;
    match handshake::hear(stream).await? {
        Answer::Welcome { incarnation, .. } => Ok(incarnation),
        Answer::Refused(why) | Answer::Restarted(why) | Answer::Forgotten(why) => {
            Err(HandshakeError::Refused(why))
        }
    }
}
