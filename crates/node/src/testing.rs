//! Nodes for the tests of this crate.
#![allow(clippy::unwrap_used, reason = "a test fails loudly")]

use std::sync::Arc;
use std::time::Duration;

use catraca_group::Member;
use tokio::net::TcpListener;

use crate::limits::valve::Valve;
use crate::{Config, Memory, Node};

/// Nothing takes so long, however busy the machine is.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A group of one that grants locks.
pub(crate) async fn alone() -> Node {
    alone_with(|_| {}).await
}

/// The same, told something else too.
pub(crate) async fn alone_with(tell: impl FnOnce(&mut Config)) -> Node {
    let mut config = Config::alone();
    config.listen = Some("127.0.0.1:0".to_string());
    tell(&mut config);
    let node = Node::start(config).await.unwrap();
    node.ready().await.unwrap();
    node
}

/// Members called a, b and so on, in one view, and the ways by which they reach each other.
pub(crate) async fn group(count: usize, lease: Duration) -> (Vec<Node>, Vec<Valve>) {
    let (mut listeners, mut valves, mut members) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..count {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let valve = Valve::to(listener.local_addr().unwrap().to_string()).await;
        let name = char::from(b'a' + index as u8).to_string();
        members.push(Member { name, address: valve.address.clone(), cluster: None });
        listeners.push(listener);
        valves.push(valve);
    }
    let (registry, mut nodes) = (Memory::default(), Vec::<Node>::new());
    for (member, listener) in members.iter().zip(listeners) {
        let mut config = Config::new(&member.name, members.clone());
        config.lease = lease;
        let registry = Arc::new(registry.clone());
        nodes.push(Node::start_with(config, listener, registry).await.unwrap());
        let count = nodes.len();
        let are_together = async {
            while !nodes.iter().all(|node| node.engine.is_ready() && in_view(node) == count) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(LIMIT, are_together).await.expect("they are in one view");
    }
    (nodes, valves)
}

/// How many members are in the view, as far as a node knows.
pub(crate) fn in_view(node: &Node) -> usize {
    node.status().members.iter().filter(|member| member.is_in_view).count()
}
