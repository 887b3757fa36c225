//! The first messages over a connection: who calls, and whether it is welcome.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::frame;
use crate::system::plain;

/// What every connection begins with, so that strangers are known at once.
pub const MAGIC: [u8; 8] = *b"catraca\n";
/// The version of everything that is said after the magic.
pub const VERSION: u16 = 5;
/// Nothing that is said in a handshake is longer.
const LONGEST: usize = 4096;
/// So many bytes of a caller that is refused are read and forgotten.
const MOST_IGNORED: u64 = 1 << 20;

/// Who calls. It has the same form in every version: whoever speaks another one can be told so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version that the caller speaks.
    pub version: u16,
    /// What it is.
    pub caller: Caller,
}

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Caller {
    /// Somebody who wants to use locks.
    Client,
    /// Another member of the group. What it says of itself only members understand.
    Member(Vec<u8>),
    /// Another member that asks the registry here. What follows is understood by registries alone.
    Registry,
}

/// What a caller shows of itself, right after its hello.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// A token, if it has one.
    pub token: Option<String>,
}

/// The answer to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Greeting {
    /// The client may go on.
    Welcome {
        /// Which run of the node answers.
        incarnation: u64,
    },
    /// It may not, and why.
    Refused(String),
    /// It has not shown that it may, and what is missing.
    Denied(String),
}

/// Why there was no handshake.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The connection broke.
    #[error("{}", plain(.0))]
    Io(#[from] std::io::Error),
    /// Something else answers.
    #[error("whoever is there does not speak catraca's protocol")]
    Stranger,
    /// What came cannot be read.
    #[error(transparent)]
    Frame(#[from] frame::FrameError),
    /// Nothing came.
    #[error("nothing was said for too long")]
    Silence,
    /// The other side refuses, and why.
    #[error("{0}")]
    Refused(String),
    /// The other side does not let this caller in, and why.
    #[error("{0}")]
    Denied(String),
}

/// Says hello, the magic first, and who calls.
pub async fn greet(
    stream: &mut (impl AsyncWrite + Unpin),
    caller: Caller,
    proof: &Proof,
) -> Result<(), HandshakeError> {
    let mut bytes = MAGIC.to_vec();
    frame::write(&Hello { version: VERSION, caller }, &mut bytes)?;
    frame::write(proof, &mut bytes)?;
    stream.write_all(&bytes).await?;
    Ok(stream.flush().await?)
}

/// Sends one message.
pub async fn say<T: Serialize>(
    stream: &mut (impl AsyncWrite + Unpin),
    value: &T,
) -> Result<(), HandshakeError> {
    let mut bytes = Vec::new();
    frame::write(value, &mut bytes)?;
    stream.write_all(&bytes).await?;
    Ok(stream.flush().await?)
}

/// Sends a caller its refusal, and lets it arrive. A connection that is closed while something of the caller
/// is unread is reset, and a caller that is still writing would never read why. So whatever it says is
/// read and forgotten, up to a limit and for so long.
pub async fn refuse<T: Serialize>(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    why: &T,
    patience: Duration,
) -> Result<(), HandshakeError> {
    say(stream, why).await?;
    stream.shutdown().await?;
    let (mut rest, mut nowhere) = (stream.take(MOST_IGNORED), tokio::io::sink());
    let ignored = tokio::io::copy(&mut rest, &mut nowhere);
    // It was told: how it goes away does not matter.
    tokio::time::timeout(patience, ignored).await.ok();
    Ok(())
}

/// Waits for the magic.
pub async fn hear_magic(stream: &mut (impl AsyncRead + Unpin)) -> Result<(), HandshakeError> {
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

/// Waits for one message. Takes no byte more from the stream.
pub async fn hear<T: for<'a> Deserialize<'a>>(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<T, HandshakeError> {
    let mut prefix = [0; frame::PREFIX];
    stream.read_exact(&mut prefix).await?;
    let length = u32::from_le_bytes(prefix) as usize;
    if length > LONGEST {
        return Err(HandshakeError::Stranger);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(frame::read(&body)?)
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn a_caller_that_is_still_writing_reads_why_it_is_refused() {
        const MINUTE: Duration = Duration::from_secs(60);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            hear_magic(&mut stream).await.unwrap();
            let hello: Hello = hear(&mut stream).await.unwrap();
            let why = Greeting::Refused(format!("version {}", hello.version));
            refuse(&mut stream, &why, MINUTE).await.unwrap();
        });
        let mut caller = TcpStream::connect(address).await.unwrap();
        let mut bytes = MAGIC.to_vec();
        frame::write(&Hello { version: 4, caller: Caller::Client }, &mut bytes).unwrap();
        bytes.push(0);
        caller.write_all(&bytes).await.unwrap();
        // The refusal is there, and the caller goes on writing before it reads.
        caller.readable().await.unwrap();
        caller.write_all(&[0; 256 << 10]).await.unwrap();
        let greeting: Greeting = hear(&mut caller).await.unwrap();
        assert!(matches!(greeting, Greeting::Refused(why) if why == "version 4"));
        assert_eq!(caller.read(&mut [0; 1]).await.unwrap(), 0);
        drop(caller);
        server.await.unwrap();
    }
}
