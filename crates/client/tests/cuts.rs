//! Connections that are cut after every number of bytes, in both directions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catraca_client::frame;
use catraca_client::handshake::{Greeting, Hello, MAGIC, Proof};
use catraca_client::protocol::{ClientMessage, Over, ServerMessage};
use catraca_client::{Client, SessionId};
use serde::Serialize;
use support::{LONG, soon};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A node that grants everything at once.
#[derive(Default)]
struct Node {
    sessions: BTreeMap<u64, BTreeSet<u32>>,
    /// How often something was granted that was not held.
    grants: u64,
}

/// How many bytes may pass before the connection is cut: from the client, to the client.
#[derive(Clone, Copy)]
struct Budget {
    from: usize,
    to: usize,
}

/// One connection at its node.
struct Desk {
    node: Arc<Mutex<Node>>,
    stream: TcpStream,
    budget: Budget,
    session: Option<u64>,
}

impl Desk {
    /// Serves until the connection is cut. Nothing if it was.
    async fn serve(mut self) -> Option<()> {
        let mut bytes = Vec::new();
        while bytes.len() < MAGIC.len() {
            self.read(&mut bytes).await?;
        }
        bytes.drain(..MAGIC.len());
        let _: Hello = self.next(&mut bytes).await?;
        let _: Proof = self.next(&mut bytes).await?;
        self.write(&Greeting::Welcome { incarnation: 1 }).await?;
        loop {
            let message = self.next(&mut bytes).await?;
            for answer in self.answers(message) {
                self.write(&answer).await?;
            }
        }
    }

    async fn next<T: for<'a> serde::Deserialize<'a>>(&mut self, bytes: &mut Vec<u8>) -> Option<T> {
        loop {
            if let Some((body, _)) = frame::split(bytes, frame::LONGEST_CLIENT_FRAME).unwrap() {
                let taken = body.len() + frame::PREFIX;
                let value = frame::read(body).unwrap();
                bytes.drain(..taken);
                return Some(value);
            }
            self.read(bytes).await?;
        }
    }

    /// Reads as much as there is, up to the cut.
    async fn read(&mut self, bytes: &mut Vec<u8>) -> Option<()> {
        let mut buffer = [0; 512];
        let room = self.budget.from.min(buffer.len());
        let read = soon(self.stream.read(&mut buffer[..room])).await.ok()?;
        self.budget.from -= read;
        bytes.extend_from_slice(&buffer[..read]);
        (read > 0).then_some(())
    }

    /// Writes up to the cut.
    async fn write(&mut self, value: &impl Serialize) -> Option<()> {
        let mut bytes = Vec::new();
        frame::write(value, &mut bytes).unwrap();
        let sent = self.budget.to.min(bytes.len());
        self.budget.to -= sent;
        self.stream.write_all(&bytes[..sent]).await.ok()?;
        (sent == bytes.len()).then_some(())
    }

    fn answers(&mut self, message: ClientMessage) -> Vec<ServerMessage> {
        let mut node = self.node.lock().unwrap();
        let opened = |number| ServerMessage::Opened {
            session: SessionId::new(1, number, [0; 16]),
            certain: Duration::MAX,
        };
        let granted = |request| ServerMessage::Granted { request, fences: vec![request.into()] };
        let open = self.session.unwrap_or(0);
        match message {
            ClientMessage::Open { .. } => {
                let number = node.sessions.len() as u64 + 1;
                node.sessions.insert(number, BTreeSet::new());
                self.session = Some(number);
                vec![opened(number)]
            }
            ClientMessage::Resume { session } => match node.sessions.get(&session.number) {
                Some(held) => {
                    self.session = Some(session.number);
                    let held = held.iter().map(|&request| granted(request));
                    [opened(session.number)].into_iter().chain(held).collect()
                }
                None => vec![ServerMessage::Over(Over::Unknown)],
            },
            ClientMessage::Renew => vec![ServerMessage::Renewed { certain: Duration::MAX }],
            ClientMessage::Acquire { request, .. } => {
                let is_new = node.sessions.get_mut(&open).unwrap().insert(request);
                node.grants += u64::from(is_new);
                vec![granted(request)]
            }
            ClientMessage::Release { request } => {
                node.sessions.get_mut(&open).unwrap().remove(&request);
                vec![ServerMessage::Released { request }]
            }
            ClientMessage::Close => {
                node.sessions.remove(&open);
                vec![ServerMessage::Over(Over::Closed)]
            }
            // A session asks for nothing else.
            _ => panic!("nobody asks for this"),
        }
    }
}

/// Takes a lock, gives it back, and closes the client, over a first connection that is cut. Later
/// ones are not.
async fn use_a_lock(budget: Budget) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let node = Arc::new(Mutex::new(Node::default()));
    let serving = Arc::clone(&node);
    let accepting = tokio::spawn(async move {
        let mut budget = budget;
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let desk = Desk { node: Arc::clone(&serving), stream, budget, session: None };
            tokio::spawn(desk.serve());
            budget = Budget { from: usize::MAX, to: usize::MAX };
        }
    });
    let what = format!("cut after {} from it and {} to it", budget.from, budget.to);
    let client = soon(Client::builder().addresses([address]).ttl(LONG).connect()).await.unwrap();
    let guard = soon(client.lock("x")).await.unwrap();
    assert!(guard.is_valid(), "{what}");
    soon(guard.release()).await.unwrap();
    let held: usize = node.lock().unwrap().sessions.values().map(BTreeSet::len).sum();
    assert_eq!((held, node.lock().unwrap().grants), (0, 1), "{what}");
    let open = node.lock().unwrap().sessions.len();
    soon(client.close()).await.unwrap();
    assert_eq!(node.lock().unwrap().sessions.len(), open - 1, "{what}");
    accepting.abort();
}

#[tokio::test]
async fn a_lock_is_had_once_and_given_back_wherever_the_connection_is_cut() {
    // More than pass in either direction, so that the last ones are not cut at all.
    let all = 0..160;
    let cuts = all.clone().map(|from| Budget { from, to: usize::MAX });
    let cuts = cuts.chain(all.map(|to| Budget { from: usize::MAX, to }));
    let runs: Vec<_> = cuts.map(|budget| tokio::spawn(use_a_lock(budget))).collect();
    for run in runs {
        run.await.unwrap();
    }
}
