//! Whether the client of a connection is still there.
//!
//! While a request waits, the end of its client is noticed by reading. The library does so by itself, but not
//! where the client has sent more behind the request. So what it does not read is read here, up to a limit,
//! and kept for it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::mutex::hold;

/// Whoever sends more than this behind a request that waits is not looked at any more.
const MOST_AHEAD: usize = 16 << 10;
/// How much is read at once.
const CHUNK: usize = 1 << 10;

/// A connection that somebody else looks at too.
pub(super) struct Watched<I>(Arc<Mutex<Socket<I>>>);

/// Looks at a connection.
pub(super) struct Presence<I>(Arc<Mutex<Socket<I>>>);

struct Socket<I> {
    io: I,
    /// What has been read and is not wanted yet.
    ahead: Vec<u8>,
    is_over: bool,
}

/// A connection, and who looks at it.
pub(super) fn watched<I>(io: I) -> (Watched<I>, Presence<I>) {
    let socket = Arc::new(Mutex::new(Socket { io, ahead: Vec::new(), is_over: false }));
    (Watched(Arc::clone(&socket)), Presence(socket))
}

impl<I: AsyncRead + Unpin> Presence<I> {
    /// Waits until the client has hung up.
    pub(super) async fn end(&self) {
        poll_fn(|cx| hold(&self.0).poll_end(cx)).await;
    }
}

impl<I: AsyncRead + Unpin> Socket<I> {
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.is_over && self.ahead.len() < MOST_AHEAD {
            let mut chunk = [0; CHUNK];
            let mut buffer = ReadBuf::new(&mut chunk);
            match Pin::new(&mut self.io).poll_read(cx, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    self.ahead.extend_from_slice(buffer.filled());
                }
                // Also where the connection is broken.
                Poll::Ready(_) => self.is_over = true,
            }
            // Whoever reads may wait for that.
            cx.waker().wake_by_ref();
        }
        if self.is_over { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Watched<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = &mut *hold(&self.0);
        if socket.ahead.is_empty() && !socket.is_over {
            return Pin::new(&mut socket.io).poll_read(cx, buffer);
        }
        let count = socket.ahead.len().min(buffer.remaining());
        buffer.put_slice(&socket.ahead[..count]);
        socket.ahead.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Watched<I> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut hold(&self.0).io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut hold(&self.0).io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        hold(&self.0).io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut hold(&self.0).io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut hold(&self.0).io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn the_end_of_a_client_is_noticed_behind_what_nobody_reads_and_nothing_is_lost() {
        let (near, mut far) = duplex(1 << 20);
        let (mut watched, presence) = watched(near);
        far.write_all(b"read").await.unwrap();
        watched.read_exact(&mut [0; 4]).await.unwrap();
        let sent: Vec<u8> = (0..5000).map(|n| n as u8).collect();
        far.write_all(&sent).await.unwrap();
        drop(far);
        presence.end().await;
        let mut read = Vec::new();
        watched.read_to_end(&mut read).await.unwrap();
        assert!(read == sent);
    }

    #[tokio::test]
    async fn no_more_than_so_much_is_read_ahead() {
        let (near, mut far) = duplex(1 << 20);
        let (_watched, presence) = watched(near);
        far.write_all(&[7; 100 << 10]).await.unwrap();
        let looking = std::pin::pin!(presence.end());
        let mut looking = looking;
        assert!(
            std::future::poll_fn(|cx| Poll::Ready(looking.as_mut().poll(cx).is_pending())).await
        );
        assert!(hold(&presence.0).ahead.len() < MOST_AHEAD + CHUNK);
    }
}
