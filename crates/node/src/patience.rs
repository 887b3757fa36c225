//! How much a connection of a client may take of a node: how long it is waited for, and how much is read
//! at once. The same for every interface that reads and writes its connections itself.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use crate::native::quota::{self, Quota};

/// A client that reads nothing for so long, although there is something, is gone.
pub(crate) const READ_TIME: Duration = Duration::from_secs(20);
/// After an error that ends a connection, so long is waited for the client to read it.
const FAREWELL: Duration = Duration::from_secs(1);
/// So many bytes of a client that is told to go are read and forgotten.
const MOST_IGNORED: u64 = 256 << 10;
/// A buffer that has grown beyond this is given back when it is empty.
pub(crate) const USUAL_BUFFER: usize = 8 << 10;
/// How much is read at once of a message that has begun.
const CHUNK: usize = 4 << 10;
/// How much room an idle connection has for what comes next: there may be very many of them.
pub(crate) const IDLE_CHUNK: usize = 512;

/// Reads what there is, but not so much that an unfinished message costs more than it has to.
pub(crate) async fn read_some(
    reader: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
) -> io::Result<usize> {
    bytes.reserve(if bytes.is_empty() { IDLE_CHUNK } else { CHUNK });
    let read = reader.read_buf(bytes).await?;
    Ok(read)
}

/// Writes all of `bytes`, for as long as the client reads. What is not written counts meanwhile.
pub(crate) async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    quota: &Quota,
) -> io::Result<()> {
    let mut unread = quota.pages();
    if !unread.set(bytes.len(), quota::MOST_PAGES) {
        return Err(io::Error::other("too many clients do not read"));
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = timeout(READ_TIME, writer.write(rest)).await;
        match written.unwrap_or_else(|_| Err(too_slow()))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => rest = &rest[written..],
        }
    }
    // Over TLS it leaves only then.
    timeout(READ_TIME, writer.flush()).await.unwrap_or_else(|_| Err(too_slow()))
}

/// Says a last word, and lets it arrive. A connection that is closed while something of the client is unread is
/// reset, and the client may never read why. So whatever it says is read and forgotten, up to a limit.
pub(crate) async fn farewell(mut stream: impl AsyncRead + AsyncWrite + Unpin, word: &[u8]) {
    let telling = async {
        stream.write_all(word).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(MOST_IGNORED), &mut tokio::io::sink()).await
    };
    // Whoever is gone will not be told.
    timeout(FAREWELL, telling).await.ok();
}

/// Waits until this time; for ever if there is none.
pub(crate) async fn at(limit: Option<Instant>) {
    match limit {
        Some(limit) => tokio::time::sleep_until(limit).await,
        None => std::future::pending().await,
    }
}

/// That somebody has taken too long.
pub(crate) fn too_slow() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it took too long")
}
