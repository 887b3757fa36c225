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
/// What every connection over TLS begins with.
const TLS_RECORD: u8 = 0x16;

/// Makes connections ready that a port has taken.
#[derive(Clone)]
pub(crate) struct Acceptor {
    pub(crate) access: Arc<Access>,
    pub(crate) tls: Option<Arc<Tls>>,
    under_way: Arc<UnderWay>,
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
        Acceptor { access, tls, under_way: Arc::default() }
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
#[derive(Default)]
struct UnderWay {
    all: Mutex<(u64, BTreeMap<u64, oneshot::Sender<()>>)>,
}

/// One of them, for as long as it lasts.
struct Place {
    among: Arc<UnderWay>,
    number: u64,
}

impl UnderWay {
    /// One more. Also returns what ends when this one is to be given up.
    fn enter(self: &Arc<Self>) -> (Place, oneshot::Receiver<()>) {
        let (keep, gives_up) = oneshot::channel();
        let (last, all) = &mut *hold(&self.all);
        if all.len() >= MOST_HANDSHAKES {
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
