//! How connections are taken, at every port: over TCP as they are, over TLS, and by the Unix socket.
//!
//! An interface takes a connection from its own listener, gives it to a task, and has it made ready
//! there by [`Acceptor::accept`]: so whoever takes long about it keeps nobody waiting.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catraca_client::stream::Stream;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::access::{Access, Origin};
use crate::mutex::hold;
use crate::tls::Tls;

/// A TLS handshake takes no longer.
pub(crate) const TLS_TIME: Duration = Duration::from_secs(5);
/// So many TLS handshakes are under way at a time. If there are more, the oldest one is given up.
pub(crate) const MOST_HANDSHAKES: usize = 512;
/// So many callers of the native port have yet to say who they are. If there are more, the oldest one is hung up on:
/// whoever is honest says it at once.
pub(crate) const MOST_HELLOS: usize = 4096;
/// What every connection over TLS begins with.
const TLS_RECORD: u8 = 0x16;

/// Makes connections ready that a port has taken.
#[derive(Clone)]
pub(crate) struct Acceptor {
    pub(crate) access: Arc<Access>,
    pub(crate) tls: Option<Arc<Tls>>,
    under_way: Arc<UnderWay>,
    hellos: Arc<UnderWay>,
}

/// Why a connection cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AcceptError {
    /// Whoever calls does not speak TLS, and has to. It can be told so.
    #[error("whoever calls does not speak TLS; at this port everybody has to")]
    Plain(TcpStream),
    /// The handshake failed.
    #[error("no TLS: {0}")]
    Tls(io::Error),
    /// It took too long, or others needed the place.
    #[error("the TLS handshake did not come to its end")]
    Unfinished,
}

impl Acceptor {
    pub(crate) fn new(access: Arc<Access>, tls: Option<Arc<Tls>>) -> Self {
        let under_way = Arc::new(UnderWay::of(MOST_HANDSHAKES));
        Acceptor { access, tls, under_way, hellos: Arc::new(UnderWay::of(MOST_HELLOS)) }
    }

    /// Waits until a caller has said who it is; nothing if others need its place before.
    pub(crate) async fn introduced<T>(&self, saying: impl Future<Output = T>) -> Option<T> {
        let (_place, gives_up) = self.hellos.enter();
        tokio::select! {
            said = saying => Some(said),
            _ = gives_up => None,
        }
    }

    /// Makes a connection over TCP ready, and says who has made it as far as that is known without a
    /// token. What is written to it over TLS leaves when it is flushed.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        from: SocketAddr,
    ) -> Result<(Stream, Origin), AcceptError> {
        let Some(tls) = &self.tls else {
            return Ok((Stream::Tcp(stream), Origin::of(from.ip())));
        };
        let (place, gives_up) = self.under_way.enter();
        let handshake = async {
            let mut first = [0];
            let peeked = stream.peek(&mut first).await.map_err(AcceptError::Tls)?;
            if peeked > 0 && first[0] != TLS_RECORD {
                return Err(AcceptError::Plain(stream));
            }
            tls.accept(stream).await.map_err(AcceptError::Tls)
        };
        let made = tokio::select! {
            made = timeout(TLS_TIME, handshake) => made.unwrap_or(Err(AcceptError::Unfinished)),
            _ = gives_up => Err(AcceptError::Unfinished),
        };
        drop(place);
        let (stream, certificate) = made?;
        let origin = certificate.map_or_else(|| Origin::of(from.ip()), Origin::Certificate);
        Ok((stream, origin))
    }

    /// Makes a connection by a Unix socket ready: the system says whose process has made it.
    pub(crate) fn accept_unix(&self, stream: UnixStream) -> io::Result<(Stream, Origin)> {
        let peer = stream.peer_cred()?;
        Ok((Stream::Unix(stream), Origin::Unix { uid: peer.uid(), gid: peer.gid() }))
    }
}

/// The handshakes that are under way, the oldest first.
struct UnderWay {
    most: usize,
    all: Mutex<(u64, BTreeMap<u64, oneshot::Sender<()>>)>,
}

/// One of them, for as long as it lasts.
struct Place {
    among: Arc<UnderWay>,
    number: u64,
}

impl UnderWay {
    fn of(most: usize) -> Self {
        UnderWay { most, all: Mutex::default() }
    }

    /// One more. Also returns what ends when this one is to be given up.
    fn enter(self: &Arc<Self>) -> (Place, oneshot::Receiver<()>) {
        let (keep, gives_up) = oneshot::channel();
        let (last, all) = &mut *hold(&self.all);
        if all.len() >= self.most {
            // Whoever is honest is done in a moment.
            all.pop_first();
        }
        *last += 1;
        all.insert(*last, keep);
        (Place { among: Arc::clone(self), number: *last }, gives_up)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        hold(&self.among.all).1.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn of_too_many_handshakes_the_oldest_is_given_up_and_none_is_kept() {
        let under_way = Arc::new(UnderWay::of(3));
        let mut all: Vec<_> = (0..3).map(|_| under_way.enter()).collect();
        all.push(under_way.enter());
        let (oldest, gives_up) = all.remove(0);
        assert!(gives_up.await.is_err(), "it is told");
        // Its place is somebody else's already.
        drop(oldest);
        assert_eq!(hold(&under_way.all).1.len(), 3);
        assert!(all.iter_mut().all(|(_, gives_up)| {
            gives_up.try_recv().is_err_and(|why| why == oneshot::error::TryRecvError::Empty)
        }));
        drop(all);
        assert!(hold(&under_way.all).1.is_empty());
    }
}
