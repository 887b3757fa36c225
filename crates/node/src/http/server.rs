//! Takes connections and serves HTTP over them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::header::LONGEST_HEADER;
use super::presence::{Presence, watched};
use super::problem::{Kind, NO_ROOM, PROBLEM_JSON, Problem, no_room};
use super::stream::ReadBy;
use super::{Api, router};
use crate::acceptor::{AcceptError, Acceptor};
use crate::access::Origin;
use crate::metrics::Interface;
use crate::native::quota::{MOST_FAREWELLS, Place, Share};
use crate::patience::farewell;
use crate::port::take_calls;
use crate::transport::prepare;

/// The header of a request has come to its end after this time. A connection without a request is given up
/// after the same time.
pub(super) const HEADER_TIME: Duration = Duration::from_secs(20);
/// A client that reads nothing for so long, although there is something, is gone.
pub(super) const READ_TIME: Duration = Duration::from_secs(20);
/// What is read ahead of a request, and kept of it until it is understood. A header that is longer is no HTTP to
/// this node; one that is longer than others may be is answered as every request is.
const BUFFER: usize = 2 * LONGEST_HEADER;
/// A client that has hung up is still answered what can be answered at once.
const GRACE: Duration = Duration::from_secs(1);
/// Answers that are not longer do not count among those that have not been read: whoever has no room for a
/// list still wants to know whether the node is well.
const SHORT_ANSWER: u64 = 4 << 10;
/// A node that stops waits no longer for answers to be read.
const FAREWELL: Duration = Duration::from_secs(1);

/// Of a long answer: that there are only so many at a time, which is seen to where they are made.
#[derive(Clone, Copy)]
pub(super) struct HasTurn;

/// Where HTTP is served.
pub(super) struct Server {
    router: Router,
    api: Api,
    acceptor: Acceptor,
    builder: http1::Builder,
}

impl Server {
    pub(super) fn new(api: Api, acceptor: Acceptor) -> Self {
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).max_buf_size(BUFFER);
        Server { router: router(api.clone()), api, acceptor, builder }
    }

    /// Serves every connection until it is told to stop, and then what has been asked for already.
    pub(super) async fn run(self, listener: TcpListener, mut stop: watch::Receiver<bool>) {
        let server = Arc::new(self);
        let mut connections = JoinSet::new();
        let told = stop.clone();
        let receive = |(stream, from): (TcpStream, SocketAddr)| {
            let (server, stop) = (Arc::clone(&server), told.clone());
            let place = server.api.quota.enter(from.ip());
            Some(async move {
                match place {
                    Some(place) => server.receive(stream, from, place, stop).await,
                    None => server.turn_away(stream).await,
                }
            })
        };
        tokio::select! {
            never = take_calls(&listener, &mut connections, receive) => match never {},
            _ = stop.wait_for(|&is_over| is_over) => {}
        }
        drop(listener);
        let all_served = async { while connections.join_next().await.is_some() {} };
        // Whoever does not read its answer will find out.
        let _ = timeout(FAREWELL, all_served).await;
    }

    /// Tells a caller that there is no room. There may be very many of them, so not everybody is told; and over
    /// TLS nobody is, as that would cost more than serving them.
    async fn turn_away(&self, stream: TcpStream) {
        self.api.gateway.metrics().reject(NO_ROOM);
        let mut turn = self.api.quota.farewells();
        if self.acceptor.tls.is_some() || !turn.set(1, MOST_FAREWELLS) {
            return;
        }
        // An answer that is there before the request is none.
        if let Ok(Ok(1..)) = timeout(GRACE, stream.peek(&mut [0])).await {
            farewell(stream, &no_room()).await;
        }
    }

    async fn receive(
        &self,
        stream: TcpStream,
        from: SocketAddr,
        place: Place,
        stop: watch::Receiver<bool>,
    ) {
        if let Err(error) = prepare(&stream) {
            return tracing::debug!(%error, "a connection is gone already");
        }
        match self.acceptor.accept(stream, from).await {
            Ok((stream, origin)) => self.serve(stream, origin, place, stop).await,
            Err(AcceptError::Plain(stream)) => farewell(stream, plain().as_bytes()).await,
            Err(error) => tracing::debug!(%error, "a connection cannot be used"),
        }
    }

    /// Serves one connection until either side ends it.
    async fn serve(
        &self,
        io: impl AsyncRead + AsyncWrite + Unpin,
        origin: Origin,
        place: Place,
        mut stop: watch::Receiver<bool>,
    ) {
        let router = TowerToHyperService::new(self.router.clone());
        let unread = Arc::new(self.api.quota.unread());
        let io = ReadBy::new(io, READ_TIME, Some(self.api.gateway.clone()));
        let io = io.clearing(Arc::clone(&unread));
        let (io, client) = watched(io, Some(self.api.quota.ahead()));
        let _connected = self.api.gateway.metrics().connect(Interface::Http);
        let service = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(origin.clone());
            let (unread, changes_nothing) = (Arc::clone(&unread), request.method().is_safe());
            let answering = router.call(request.map(Body::new));
            async move {
                let response = answering.await?;
                Ok::<_, Infallible>(count(response, &unread, changes_nothing))
            }
        });
        let mut connection = pin!(self.builder.serve_connection(TokioIo::new(io), service));
        let serving = async {
            tokio::select! {
                biased;
                ended = connection.as_mut() => ended,
                () = makes_way(&place, &mut stop) => {
                    // What has been asked for is still answered.
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        };
        tokio::select! {
            // Whoever answers reads first.
            biased;
            ended = serving => if let Err(error) = ended {
                tracing::debug!(%error, "a client went away");
            },
            () = gone(&client) => tracing::debug!("a client went away"),
        }
    }
}

/// Counts a long answer until it is written. If clients leave too much unread, there is none; but where
/// something was done, it is told.
fn count(response: Response, unread: &Share, changes_nothing: bool) -> Response {
    // A stream has limits of its own.
    let bytes = response.body().size_hint().exact().filter(|&bytes| bytes > SHORT_ANSWER);
    let Some(bytes) = bytes else { return response };
    let has_turn = response.extensions().get::<HasTurn>().is_some();
    if has_turn || unread.add(bytes as usize) || !changes_nothing {
        return response;
    }
    unread.clear();
    let detail = "clients have left too many answers unread; try again later";
    Problem::new(Kind::Unavailable, "busy", detail).into_response()
}

/// What whoever does not speak TLS is told where everybody has to.
fn plain() -> String {
    let detail = "this port speaks TLS only: use https://";
    let body = Problem::new(Kind::BadRequest, "no-tls", detail).body().to_string();
    format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: {PROBLEM_JSON}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Waits until a client has gone for good: what it has asked for may be answered already.
async fn gone(client: &Presence<impl AsyncRead + Unpin>) {
    client.end().await;
    sleep(GRACE).await;
}

/// Waits until a connection is to end when it can: for others, or because the node stops.
async fn makes_way(place: &Place, stop: &mut watch::Receiver<bool>) {
    tokio::select! {
        () = place.makes_way() => {}
        // If nobody is there to stop it, the node is gone.
        _ = stop.wait_for(|&is_over| is_over) => {}
    }
}
