//! Answers that come in pieces.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;

/// The next piece and who makes the one after it; nothing at the end.
type Next<S, T> = Pin<Box<dyn Future<Output = Option<(S, T)>> + Send>>;

/// An answer whose pieces are made one after the other, when they are wanted.
pub(crate) struct Pieces<S, T, F> {
    next: Next<S, T>,
    make: F,
}

impl<S, T, F, M> Pieces<S, T, F>
where
    F: Fn(S) -> M,
    M: Future<Output = Option<(S, T)>> + Send + 'static,
{
    pub(crate) fn new(first: S, make: F) -> Self {
        Pieces { next: Box::pin(make(first)), make }
    }
}

impl<S, T, F, M> HttpBody for Pieces<S, T, F>
where
    S: Unpin,
    T: Into<Bytes>,
    F: Fn(S) -> M + Unpin,
    M: Future<Output = Option<(S, T)>> + Send + 'static,
{
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = ready!(self.next.as_mut().poll(cx));
        Poll::Ready(piece.map(|(state, piece)| {
            self.next = Box::pin((self.make)(state));
            Ok(Frame::data(piece.into()))
        }))
    }
}
