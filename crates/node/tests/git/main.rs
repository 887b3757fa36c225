//! The interface for Git of real nodes: byte by byte, and with the real `git lfs`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../http/client.rs"]
mod client;
mod hostile;
mod locks;
mod objects;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../support/pki.rs"]
mod pki;
mod races;
mod repositories;
mod sets;
mod stock;
#[path = "../support/mod.rs"]
mod support;
mod told;

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use catraca_node::{Config, Memory, Node};
use serde_json::{Value, json};

use client::{Answer, Client};

/// The lease of nodes in tests in which one of them is lost.
const SHORT_LEASE: Duration = Duration::from_secs(4);
/// Where all tests are, unless they say otherwise.
const BASE: &str = "/git/art/game";

/// A node alone that serves HTTP, and where.
async fn alone() -> (Node, SocketAddr) {
    start(|_| {}).await
}

/// The same, with another configuration.
async fn start(change: impl FnOnce(&mut Config)) -> (Node, SocketAddr) {
    start_with(&Memory::default(), change).await
}

/// The same, with a registry that is there already.
async fn start_with(registry: &Memory, change: impl FnOnce(&mut Config)) -> (Node, SocketAddr) {
    let mut config = Config::alone();
    config.http.listen = Some("127.0.0.1:0".to_string());
    config.lease = support::LONG_LEASE;
    change(&mut config);
    let (listener, _) = support::listener().await;
    let node = support::start(config, listener, registry).await;
    node.ready().await.unwrap();
    let address = node.http_address().unwrap();
    (node, address)
}

/// Three nodes that serve HTTP, and where.
async fn three() -> (Vec<Node>, Vec<SocketAddr>) {
    three_with(support::LONG_LEASE).await
}

/// The same, with a lease that somebody waits for when a node is lost.
async fn three_with(lease: Duration) -> (Vec<Node>, Vec<SocketAddr>) {
    let (listeners, addresses) = support::listeners(3).await;
    let mut configs = support::configs(&addresses, "naimi-trehel");
    for config in &mut configs {
        config.http.listen = Some("127.0.0.1:0".to_string());
        config.lease = lease;
    }
    let nodes = support::group_of(configs, listeners).await;
    let addresses = nodes.iter().map(|node| node.http_address().unwrap()).collect();
    (nodes, addresses)
}

/// Somebody who asks a node.
struct User {
    at: SocketAddr,
    authorization: String,
    headers: String,
}

/// The user of this name, at a node that knows no tokens.
fn user(at: SocketAddr, name: &str) -> User {
    let authorization = format!("Basic {}", STANDARD.encode(format!("{name}:x")));
    User { at, authorization, headers: String::new() }
}

impl User {
    fn with(mut self, header: &str) -> Self {
        self.headers += &format!("{header}\r\n");
        self
    }

    /// The bytes of a request.
    fn request(&self, method: &str, path: &str, body: Option<&[u8]>) -> Vec<u8> {
        let length = body.map_or(String::new(), |body| {
            let kind = match path.starts_with("/git/") {
                true => "application/vnd.git-lfs+json; charset=utf-8",
                false => "application/json",
            };
            format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len())
        });
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\n{}{length}\r\n",
            self.authorization, self.headers
        );
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        bytes
    }

    async fn ask(&self, method: &str, path: &str, body: impl Into<Option<Value>>) -> Answer {
        let body = body.into().map(|body| body.to_string());
        let mut client = Client::open(self.at).await;
        client.send(self.request(method, path, body.as_deref().map(str::as_bytes))).await;
        client.answer().await.expect("an answer")
    }

    async fn lock(&self, path: &str) -> Answer {
        self.ask(
            "POST",
            &format!("{BASE}/locks"),
            json!({"path": path, "ref": {"name": "refs/heads/main"}}),
        )
        .await
    }

    /// A lock that it gets.
    async fn locks(&self, path: &str) -> Value {
        self.lock(path).await.with(201).json()["lock"].clone()
    }

    async fn list(&self, query: &str) -> Value {
        self.ask("GET", &format!("{BASE}/locks{query}"), None).await.with(200).json()
    }

    async fn unlock(&self, lock: &Value, force: bool) -> Answer {
        let path = format!("{BASE}/locks/{}/unlock", lock["id"].as_str().unwrap());
        self.ask("POST", &path, json!({"force": force})).await
    }

    async fn steal(&self, lock: &Value, note: &str) -> Answer {
        let path = format!("{BASE}/locks/{}/steal", lock["id"].as_str().unwrap());
        self.ask("POST", &path, json!({"note": note})).await
    }

    async fn batch(&self, paths: &[&str]) -> Answer {
        self.ask("POST", &format!("{BASE}/locks/batch"), json!({"paths": paths})).await
    }

    async fn verify(&self) -> Value {
        self.ask("POST", &format!("{BASE}/locks/verify"), json!({})).await.with(200).json()
    }
}

/// It is refused with this status and this code, in words that the client shows.
#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/vnd.git-lfs+json"), "{answer:?}");
    let body = answer.json();
    assert_eq!((&body["status"], &body["code"]), (&status.into(), &code.into()), "{body}");
    assert!(!body["message"].as_str().unwrap().is_empty(), "{body}");
    assert_eq!(body["message"], body["detail"]);
    body
}

/// The paths of locks.
fn paths(locks: &Value) -> Vec<&str> {
    locks.as_array().unwrap().iter().map(|lock| lock["path"].as_str().unwrap()).collect()
}
