//! One connection to one member of etcd.
//!
//! A connection that breaks stays broken. Whoever wants another one makes it, and looks first at who
//! answers: behind the same address there may be another etcd by then.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Streaming};
use tonic_prost::ProstCodec;

use super::fault::{self, Fault};
use super::wire::{AuthenticateRequest, AuthenticateResponse};

/// etcd counts more than one ping in five seconds as abuse, and any ping without a call under way.
const PING_EVERY: Duration = Duration::from_secs(6);
const PING_TIMEOUT: Duration = Duration::from_secs(4);
/// The largest answer: a page of the longest durable holds is 64 MiB.
const LARGEST_ANSWER: usize = 128 << 20;

/// What etcd can be asked.
pub(super) mod method {
    pub(in super::super) const RANGE: &str = "/etcdserverpb.KV/Range";
    pub(in super::super) const TXN: &str = "/etcdserverpb.KV/Txn";
    pub(in super::super) const WATCH: &str = "/etcdserverpb.Watch/Watch";
    pub(in super::super) const STATUS: &str = "/etcdserverpb.Maintenance/Status";
    pub(in super::super) const MEMBERS: &str = "/etcdserverpb.Cluster/MemberList";
    pub(super) const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";
}

/// A connection to a member of etcd.
pub(super) struct Link {
    /// The member's address, for people.
    pub(super) endpoint: String,
    channel: Channel,
    token: Option<MetadataValue<Ascii>>,
    given_up: watch::Sender<bool>,
}

impl Link {
    /// Connects.
    pub(super) async fn open(
        member: &(String, u16),
        tls: Option<&ClientTlsConfig>,
        until: Instant,
    ) -> Result<Link, Fault> {
        let ((host, port), endpoint) = (member, address(member));
        let scheme = if tls.is_some() { "https" } else { "http" };
        let wrong = |error| Fault::Refused(format!("'{endpoint}' is not an address: {error}"));
        let mut settings = Endpoint::from_shared(format!("{scheme}://{endpoint}"))
            .map_err(wrong)?
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT);
        if let Some(tls) = tls {
            settings = settings
                .tls_config(tls.clone().domain_name(host.clone()))
                .map_err(|error| fault::of_connect(&error))?;
        }
        let connecting = settings.connect_with_connector(once(host.clone(), *port));
        let channel = match timeout_at(until, connecting).await {
            Ok(Ok(channel)) => channel,
            Ok(Err(error)) => return Err(fault::of_connect(&error).at(&endpoint)),
            Err(_) => return Err(Fault::NotDone(format!("{endpoint}: no connection in time"))),
        };
        Ok(Link { endpoint, channel, token: None, given_up: watch::Sender::new(false) })
    }

    /// Proves who asks. Later calls carry what comes of it.
    pub(super) async fn authenticate(
        &mut self,
        name: &str,
        password: String,
        until: Instant,
    ) -> Result<(), Fault> {
        let request = AuthenticateRequest { name: name.to_string(), password };
        let answer: AuthenticateResponse =
            self.call(method::AUTHENTICATE, request, until).await.map_err(Fault::of_first_call)?;
        let token = answer.token.parse();
        self.token =
            Some(token.map_err(|_| Fault::NotDone("etcd's token is no text".to_string()))?);
        Ok(())
    }

    /// Asks and waits for the answer.
    pub(super) async fn call<Q, R>(
        &self,
        method: &'static str,
        message: Q,
        until: Instant,
    ) -> Result<R, Fault>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        let mut grpc = self.grpc();
        match timeout_at(until, grpc.ready()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(fault::of_connect(&error).at(&self.endpoint)),
            Err(_) => return Err(Fault::NotDone(format!("{}: not ready in time", self.endpoint))),
        }
        let mut request = self.request(method, message);
        // etcd stops working on what nobody waits for any more.
        request.set_timeout(until.saturating_duration_since(Instant::now()));
        let path = PathAndQuery::from_static(method);
        let codec = ProstCodec::<Q, R>::default();
        match timeout_at(until, grpc.unary(request, path, codec)).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(fault::of_status(&status).at(&self.endpoint)),
            Err(_) => Err(Fault::Unknown(format!("{}: no answer in time", self.endpoint))),
        }
    }

    /// Says something, and goes on listening. etcd hears no more than the one message.
    pub(super) async fn listen<Q, R>(
        &self,
        method: &'static str,
        message: Q,
        until: Instant,
    ) -> Result<Streaming<R>, Fault>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        use tokio_stream::StreamExt;
        let mut grpc = self.grpc();
        let opening = async {
            grpc.ready().await.map_err(|error| fault::of_connect(&error))?;
            // The end of what we say would be the end of what we hear.
            let said = tokio_stream::once(message).chain(tokio_stream::pending());
            let path = PathAndQuery::from_static(method);
            let answer =
                grpc.streaming(self.request(method, said), path, ProstCodec::<Q, R>::default());
            let stream = answer.await.map_err(|status| fault::of_status(&status))?;
            Ok(stream.into_inner())
        };
        let late = || Err(Fault::NotDone("no answer in time".to_string()));
        let opened: Result<_, Fault> = timeout_at(until, opening).await.unwrap_or_else(|_| late());
        opened.map_err(|fault| fault.at(&self.endpoint))
    }

    /// Nobody uses it for anything new. Those who listen on it should move.
    pub(super) fn give_up(&self) {
        self.given_up.send_replace(true);
    }

    /// Waits until it is given up.
    pub(super) async fn until_given_up(&self) {
        // There is a sender as long as there is a link, so the wait cannot fail.
        let _ = self.given_up.subscribe().wait_for(|given_up| *given_up).await;
    }

    /// The same proof of who asks for a call on another connection.
    pub(super) fn with_token_of(mut self, other: Option<&Link>) -> Self {
        self.token = other.and_then(|other| other.token.clone());
        self
    }

    fn grpc(&self) -> Grpc<Channel> {
        Grpc::new(self.channel.clone()).max_decoding_message_size(LARGEST_ANSWER)
    }

    fn request<T>(&self, method: &str, message: T) -> Request<T> {
        let mut request = Request::new(message);
        // A member that has no leader says so at once, rather than when its time is over. But it can
        // always say how it is and whom it knows.
        if ![method::STATUS, method::MEMBERS].contains(&method) {
            request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        }
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }
}

/// Where a member is, as it is written in a URL.
pub(super) fn address((host, port): &(String, u16)) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// Connects for the first time, and never again: the library below would do that by itself.
fn once(
    host: String,
    port: u16,
) -> impl tower::Service<
    Uri,
    Response = TokioIo<TcpStream>,
    Error = io::Error,
    Future = impl Future<Output = io::Result<TokioIo<TcpStream>>> + Send,
> + Send
+ 'static {
    let is_used = AtomicBool::new(false);
    tower::service_fn(move |_: Uri| {
        let (host, was_used) = (host.clone(), is_used.swap(true, Ordering::Relaxed));
        async move {
            if was_used {
                return Err(io::Error::new(io::ErrorKind::NotConnected, "the connection was lost"));
            }
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(stream))
        }
    })
}
