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
use crate::native::quota::Share;

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
    /// Where that counts.
    counted: Option<Share>,
    is_over: bool,
}

/// A connection, and who looks at it. What is read ahead counts there: if that is too much in all, the client is
/// taken for gone.
pub(super) fn watched<I>(io: I, counted: Option<Share>) -> (Watched<I>, Presence<I>) {
    let socket = Socket { io, ahead: Vec::new(), counted, is_over: false };
    let socket = Arc::new(Mutex::new(socket));
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
                    let read = buffer.filled();
                    self.ahead.extend_from_slice(read);
                    let fits = self.counted.as_ref().is_none_or(|counted| counted.add(read.len()));
                    self.is_over |= !fits;
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
        if socket.ahead.is_empty() {
            socket.ahead = Vec::new();
            if let Some(counted) = &socket.counted {
                counted.clear();
            }
        }
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
    use crate::native::quota::{MOST_UNFINISHED, Quota};

    #[tokio::test]
    async fn the_end_of_a_client_is_noticed_behind_what_nobody_reads_and_nothing_is_lost() {
        let (near, mut far) = duplex(1 << 20);
        let (mut watched, presence) = watched(near, None);
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
        let (_watched, presence) = watched(near, None);
        far.write_all(&[7; 100 << 10]).await.unwrap();
        let looking = std::pin::pin!(presence.end());
        let mut looking = looking;
        assert!(
            std::future::poll_fn(|cx| Poll::Ready(looking.as_mut().poll(cx).is_pending())).await
        );
        assert!(hold(&presence.0).ahead.len() < MOST_AHEAD + CHUNK);
    }

    #[tokio::test]
    async fn what_is_read_ahead_counts_until_it_is_read_and_nobody_reads_ahead_too_much_in_all() {
        let quota = Arc::new(Quota::default());
        let (near, mut far) = duplex(1 << 20);
        let (mut socket, presence) = watched(near, Some(quota.ahead()));
        far.write_all(&[7; 5000]).await.unwrap();
        let is_over = async |presence: &Presence<_>| {
            let mut looking = std::pin::pin!(presence.end());
            poll_fn(|cx| Poll::Ready(looking.as_mut().poll(cx).is_ready())).await
        };
        assert!(!is_over(&presence).await);
        let mut others = quota.unfinished();
        assert!(!others.set(MOST_UNFINISHED - 4999, MOST_UNFINISHED));
        assert!(others.set(MOST_UNFINISHED - 5000, MOST_UNFINISHED));
        socket.read_exact(&mut [0; 5000]).await.unwrap();
        assert!(others.set(MOST_UNFINISHED, MOST_UNFINISHED), "it is read");
        far.write_all(b"more").await.unwrap();
        assert!(is_over(&presence).await);
        drop((socket, presence));
        assert!(others.set(MOST_UNFINISHED, MOST_UNFINISHED), "nothing has stayed");
    }
}
