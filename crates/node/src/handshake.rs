//! The first words over a connection: who calls whom, and do the two belong together?

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::plain;
use crate::frame;

/// What every connection begins with, so that strangers are known at once.
pub(crate) const MAGIC: [u8; 8] = *b"catraca\n";
/// The version of everything that is said after the magic.
pub(crate) const VERSION: u16 = 1;

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: u16,
    pub(crate) caller: Caller,
}

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Caller {
    /// Another member of the group.
    Member(Introduction),
    /// Somebody who wants to use locks.
    Client,
}

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
    pub(crate) plan: u64,
    /// Which run of the called member the caller knows, and the last frame that it has from it.
    pub(crate) known: Option<u64>,
    pub(crate) received: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// Come in.
    Welcome { incarnation: u64, received: u64 },
    /// Go away, and why.
    Refused(String),
    /// Go away: you have been restarted, and the group goes on without you.
    Restarted(String),
    /// Go away: I have been restarted, and do not know what you know.
    Forgotten(String),
}

/// Why there was no handshake.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("{}", plain(.0))]
    Io(#[from] std::io::Error),
    #[error("whoever is there does not speak catraca's language")]
    Stranger,
    #[error(transparent)]
    Frame(#[from] frame::FrameError),
    #[error("nothing was said for too long")]
    Silence,
    #[error("{0}")]
    Refused(String),
    /// This node has been restarted, and the others know it.
    #[error("{0}")]
    Restarted(String),
    /// The other side has been restarted, and this node knows it.
    #[error("{0}")]
    Forgotten(String),
}

/// Sends the magic and `hello`, or an answer without the magic.
pub(crate) async fn say<T: Serialize>(
    stream: &mut TcpStream,
    magic: bool,
    value: &T,
) -> Result<(), HandshakeError> {
    let mut bytes = if magic { MAGIC.to_vec() } else { Vec::new() };
    frame::write(value, &mut bytes)?;
    Ok(stream.write_all(&bytes).await?)
}

/// Waits for the magic.
pub(crate) async fn hear_magic(stream: &mut TcpStream) -> Result<(), HandshakeError> {
    let mut magic = [0; MAGIC.len()];
    // Byte by byte: a stranger that says little should be recognised by the little it says.
    for (place, expected) in MAGIC.iter().enumerate() {
        stream.read_exact(&mut magic[place..=place]).await?;
        if magic[place] != *expected {
            return Err(HandshakeError::Stranger);
        }
    }
    Ok(())
}

/// Waits for one frame and reads it. Takes no byte more from the stream.
pub(crate) async fn hear<T: for<'a> Deserialize<'a>>(
    stream: &mut TcpStream,
) -> Result<T, HandshakeError> {
    /// Nothing that is said in a handshake is longer.
    const LONGEST: usize = 4096;
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).await?;
    let length = u32::from_le_bytes(prefix) as usize;
    if length > LONGEST {
        return Err(HandshakeError::Stranger);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(frame::read(&body)?)
}
