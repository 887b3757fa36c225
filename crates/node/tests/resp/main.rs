//! The Redis protocol: what a node answers, byte by byte and to the libraries that people use.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test says what it leaves out")]

mod abuse;
mod keys;
mod libraries;
mod memory;
mod own;
mod redis;
#[path = "../support/mod.rs"]
mod support;

use catraca_node::{Config, Node};

use redis::Redis;

/// A node by itself that serves the Redis protocol.
async fn alone() -> Node {
    alone_with(|_| {}).await
}

/// The same, told something else too.
async fn alone_with(tell: impl FnOnce(&mut Config)) -> Node {
    let mut config = Config::alone();
    config.listen = Some("127.0.0.1:0".to_string());
    config.resp.listen = Some("127.0.0.1:0".to_string());
    tell(&mut config);
    let node = Node::start(config).await.unwrap();
    node.ready().await.unwrap();
    node
}

/// A group whose members all serve the Redis protocol.
async fn group(count: usize) -> Vec<Node> {
    let (listeners, addresses) = support::listeners(count).await;
    let mut configs = support::configs(&addresses, "naimi-trehel");
    for config in &mut configs {
        config.resp.listen = Some("127.0.0.1:0".to_string());
    }
    let nodes = support::group_of(configs, listeners).await;
    support::linked(&nodes).await;
    nodes
}

async fn connect(node: &Node) -> Redis {
    Redis::connect(node.resp_address().unwrap()).await
}
