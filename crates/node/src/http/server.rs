//! Takes connections and serves HTTP over them.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::header::LONGEST_HEADER;
use super::presence::{Presence, watched};
use super::problem::{Kind, PROBLEM_JSON, Problem};
use super::stream::ReadBy;
use super::{Api, router};
use crate::acceptor::{AcceptError, Acceptor};
use crate::access::Origin;
use crate::metrics::Interface;
use crate::native::quota::Place;
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
/// A node that stops waits no longer for answers to be read.
const FAREWELL: Duration = Duration::from_secs(1);

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
            // Whoever finds no place is hung up on: there may be very many of them.
            let place = server.api.quota.enter(from.ip())?;
            let (server, stop) = (Arc::clone(&server), told.clone());
            Some(async move { server.receive(stream, from, place, stop).await })
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
            Err(AcceptError::Plain(mut stream)) => {
                // Whoever is gone will not be told.
                let _ = timeout(READ_TIME, stream.write_all(plain().as_bytes())).await;
            }
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
        let (io, client) = watched(ReadBy::new(io, READ_TIME, Some(self.api.gateway.clone())));
        let _connected = self.api.gateway.metrics().connect(Interface::Http);
        let service = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(origin.clone());
            router.call(request.map(Body::new))
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
