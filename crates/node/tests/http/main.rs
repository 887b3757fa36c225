//! The HTTP interface of real nodes, byte by byte.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod access;
mod anatomy;
mod changes;
mod client;
mod dashboard;
mod document;
mod encrypted;
mod hostile;
mod locks;
mod many;
mod page;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../support/pki.rs"]
mod pki;
mod schemathesis;
#[path = "../support/mod.rs"]
mod support;
mod terraform;
mod timed;

use std::net::SocketAddr;

use catraca_node::{Config, HttpConfig, Memory, Node};

/// A node alone that serves HTTP, and where.
async fn alone() -> (Node, SocketAddr) {
    start(|_| {}).await
}

/// The same, with another configuration.
async fn start(change: impl FnOnce(&mut Config)) -> (Node, SocketAddr) {
    let mut config = Config::alone();
    config.http.listen = Some("127.0.0.1:0".to_string());
    config.lease = support::LONG_LEASE;
    change(&mut config);
    let (listener, _) = support::listener().await;
    let node = support::start(config, listener, &Memory::default()).await;
    node.ready().await.unwrap();
    let address = node.http_address().unwrap();
    (node, address)
}

/// Three nodes that serve HTTP, and where.
async fn three() -> (Vec<Node>, Vec<SocketAddr>) {
    let (listeners, addresses) = support::listeners(3).await;
    let mut configs = support::configs(&addresses, "naimi-trehel");
    for config in &mut configs {
        config.http =
            HttpConfig { listen: Some("127.0.0.1:0".to_string()), ..HttpConfig::default() };
    }
    let nodes = support::group_of(configs, listeners).await;
    let addresses = nodes.iter().map(|node| node.http_address().unwrap()).collect();
    (nodes, addresses)
}
