//! A connection whose client has to read.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::gateway::Gateway;
use crate::metrics::Interface;
use crate::native::quota::Share;

/// A connection that ends when nothing could be written for so long although there is something.
pub(super) struct ReadBy<I> {
    io: I,
    patience: Duration,
    /// Runs while the client does not read.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Where its bytes are counted.
    counter: Option<Gateway>,
    /// The answers that were not written.
    unread: Option<Arc<Share>>,
}

impl<I> ReadBy<I> {
    pub(super) fn new(io: I, patience: Duration, counter: Option<Gateway>) -> Self {
        ReadBy { io, patience, stalled: None, counter, unread: None }
    }

    /// The same, where answers count until they are written.
    pub(super) fn clearing(self, unread: Arc<Share>) -> Self {
        ReadBy { unread: Some(unread), ..self }
    }

    fn sent(&self, tried: &Poll<io::Result<usize>>) {
        if let (Some(counter), Poll::Ready(Ok(bytes))) = (&self.counter, tried) {
            counter.metrics().send(Interface::Http, *bytes);
        }
    }

    /// What has come of an attempt to write.
    fn judge<T>(
        &mut self,
        tried: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if tried.is_ready() {
            self.stalled = None;
            return tried;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for ReadBy<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let tried = Pin::new(&mut self.io).poll_read(cx, buffer);
        if let Some(counter) = &self.counter {
            counter.metrics().receive(Interface::Http, buffer.filled().len() - before);
        }
        tried
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for ReadBy<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.sent(&tried);
        self.judge(tried, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.sent(&tried);
        self.judge(tried, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Whoever flushes has written everything before.
        let tried = Pin::new(&mut self.io).poll_flush(cx);
        if let (Some(unread), Poll::Ready(Ok(()))) = (&self.unread, &tried) {
            unread.clear();
        }
        self.judge(tried, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = Pin::new(&mut self.io).poll_shutdown(cx);
        self.judge(tried, cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_cut_and_one_that_reads_slowly_is_not() {
        let (server, mut client) = tokio::io::duplex(10);
        let mut server = ReadBy::new(server, PATIENCE, None);
        let writing = tokio::spawn(async move { server.write_all(&[7; 40]).await });
        for _ in 0..3 {
            sleep(PATIENCE - Duration::from_secs(1)).await;
            client.read_exact(&mut [0; 10]).await.unwrap();
        }
        // The last ten bytes fit into the pipe.
        writing.await.unwrap().unwrap();

        let (server, _client) = tokio::io::duplex(10);
        let mut server = ReadBy::new(server, PATIENCE, None);
        let error = server.write_all(&[7; 40]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
