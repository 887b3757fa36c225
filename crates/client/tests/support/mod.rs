//! A node that says what a test tells it to say.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]
#![allow(dead_code, reason = "every test file takes what it needs")]

use std::time::Duration;

use catraca_client::frame;
use catraca_client::handshake::{self, Caller, Greeting, Hello, Proof};
use catraca_client::protocol::{ClientMessage, Over, ServerMessage};
use catraca_client::{Builder, Client, SessionId, Wait};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// No event that is waited for takes nearly so long.
pub(crate) const GENEROUS: Duration = Duration::from_secs(60);
/// A time to live that does not run out while a test runs.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// Waits for an event, but not for ever.
#[track_caller]
pub(crate) fn soon<T>(event: impl IntoFuture<Output = T>) -> impl Future<Output = T> {
    let place = std::panic::Location::caller();
    let event = tokio::time::timeout(GENEROUS, event.into_future());
    async move { event.await.unwrap_or_else(|_| panic!("nothing came at {place}")) }
}

/// Where clients call.
pub(crate) struct Fake {
    listener: TcpListener,
    pub(crate) address: String,
}

impl Fake {
    pub(crate) async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        Fake { listener, address }
    }

    /// The next connection, after the handshake of this run of the node.
    pub(crate) async fn accept(&self, incarnation: u64) -> Peer {
        let (mut stream, _) = soon(self.listener.accept()).await.unwrap();
        handshake::hear_magic(&mut stream).await.unwrap();
        let hello: Hello = handshake::hear(&mut stream).await.unwrap();
        assert_eq!((hello.version, hello.caller), (handshake::VERSION, Caller::Client));
        let _: Proof = handshake::hear(&mut stream).await.unwrap();
        handshake::say(&mut stream, &Greeting::Welcome { incarnation }).await.unwrap();
        Peer { stream, bytes: Vec::new(), incarnation }
    }

    /// The next connection, over which a session is opened.
    pub(crate) async fn accept_session(&self, incarnation: u64, number: u64) -> Peer {
        let mut peer = self.accept(incarnation).await;
        let ClientMessage::Open { .. } = peer.hear().await else { panic!("no session is opened") };
        peer.say(&[ServerMessage::Opened {
            session: peer.session(number),
            certain: Duration::MAX,
        }])
        .await;
        peer
    }

    /// A client of this node.
    pub(crate) fn client(&self) -> Builder {
        Client::builder().addresses([&self.address]).ttl(LONG)
    }

    /// A client of this node that is connected, and the other end.
    pub(crate) async fn connected(&self) -> (Client, Peer) {
        let (client, peer) = tokio::join!(self.client().connect(), self.accept_session(1, 1));
        (client.unwrap(), peer)
    }
}

/// An address that nobody listens at.
pub(crate) async fn dead_address() -> String {
    Fake::listen().await.address
}

/// The node's end of a connection. Dropping it cuts the connection.
pub(crate) struct Peer {
    stream: TcpStream,
    bytes: Vec<u8>,
    incarnation: u64,
}

impl Peer {
    pub(crate) fn session(&self, number: u64) -> SessionId {
        SessionId::new(self.incarnation, number, [7; 16])
    }

    /// What the client says next; nothing if it has hung up.
    pub(crate) async fn hear_or_end(&mut self) -> Option<ClientMessage> {
        loop {
            if let Some((body, _)) = frame::split(&self.bytes, frame::LONGEST_CLIENT_FRAME).unwrap()
            {
                let taken = body.len() + frame::PREFIX;
                let message = frame::read(body).unwrap();
                self.bytes.drain(..taken);
                return Some(message);
            }
            if soon(self.stream.read_buf(&mut self.bytes)).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// What the client says next.
    #[track_caller]
    pub(crate) fn hear(&mut self) -> impl Future<Output = ClientMessage> {
        let place = std::panic::Location::caller();
        let hearing = self.hear_or_end();
        async move { hearing.await.unwrap_or_else(|| panic!("the client hung up at {place}")) }
    }

    /// Says all of `messages` in one segment.
    pub(crate) async fn say(&mut self, messages: &[ServerMessage]) {
        let mut bytes = Vec::new();
        for message in messages {
            frame::write(message, &mut bytes).unwrap();
        }
        // The client may have gone.
        self.stream.write_all(&bytes).await.ok();
    }

    /// The client asks for `name`, and waits so; the number of its request.
    pub(crate) async fn hear_ask(&mut self, name: &str, waits: Wait) -> u32 {
        match self.hear().await {
            ClientMessage::Acquire { request, names, permits: 1, wait } => {
                assert_eq!((names, wait), (vec![name.to_string()], waits));
                request
            }
            other => panic!("{other:?}"),
        }
    }

    /// The client asks for `name`, and gets it with this fence.
    pub(crate) async fn grant(&mut self, name: &str, fence: u64) -> u32 {
        let request = self.hear_ask(name, Wait::Forever).await;
        self.say(&[ServerMessage::Granted { request, fences: vec![fence] }]).await;
        request
    }

    /// The client closes its session.
    pub(crate) async fn hear_close(mut self) {
        assert_eq!(self.hear().await, ClientMessage::Close);
        self.say(&[ServerMessage::Over(Over::Closed)]).await;
    }
}
