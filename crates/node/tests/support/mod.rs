//! Groups on the loopback interface.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod left_out;
pub(crate) mod valve;

use std::sync::Arc;
use std::time::Duration;

use catraca_node::{Config, LinkStatus, Member, Memory, Namespace, Node, Readiness};
use tokio::net::TcpListener;

/// Nothing takes so long, however busy the machine is.
const GENEROUS: Duration = Duration::from_secs(60);
/// Long enough for a busy machine: nobody loses its lease in a test that is not about that.
pub(crate) const LONG_LEASE: Duration = Duration::from_secs(15);

/// A listener of the system's choice and its address.
pub(crate) async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// The configurations of `count` members called a, b, c, at these addresses.
pub(crate) fn configs(addresses: &[String], algorithm: &str) -> Vec<Config> {
    let name = |index: usize| char::from(b'a' + index as u8).to_string();
    let member = |(index, address): (usize, &String)| Member {
        name: name(index),
        address: address.clone(),
        cluster: None,
    };
    let members: Vec<Member> = addresses.iter().enumerate().map(member).collect();
    let config = |index| {
        let mut config = Config::new(&name(index), members.clone());
        config.namespaces.push(Namespace { resources: 64, ..Namespace::new("*", algorithm) });
        config.lease = LONG_LEASE;
        config
    };
    (0..addresses.len()).map(config).collect()
}

/// So many listeners, and their addresses.
pub(crate) async fn listeners(count: usize) -> (Vec<TcpListener>, Vec<String>) {
    let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (listener, address) = listener().await;
        listeners.push(listener);
        addresses.push(address);
    }
    (listeners, addresses)
}

/// A node whose group keeps its registry there.
pub(crate) async fn start(config: Config, listener: TcpListener, registry: &Memory) -> Node {
    Node::start_with(config, listener, Arc::new(registry.clone())).await.unwrap()
}

/// A node at each listener. They join in this order, and all are in the view.
pub(crate) async fn group_of(configs: Vec<Config>, listeners: Vec<TcpListener>) -> Vec<Node> {
    group_with(configs, listeners, &Memory::default()).await
}

/// The same, with a registry that others can join.
pub(crate) async fn group_with(
    configs: Vec<Config>,
    listeners: Vec<TcpListener>,
    registry: &Memory,
) -> Vec<Node> {
    let mut nodes = Vec::new();
    for (config, listener) in configs.into_iter().zip(listeners) {
        nodes.push(start(config, listener, registry).await);
        together(&nodes).await;
    }
    nodes
}

/// Waits until these nodes and no others are in one view, and grant locks.
pub(crate) async fn together(nodes: &[Node]) {
    let are_together = || {
        let all: Vec<_> = nodes.iter().map(Node::status).collect();
        all.iter().all(|status| {
            let in_view = status.members.iter().filter(|member| member.is_in_view).count();
            status.readiness == Readiness::Ready
                && status.epoch == all[0].epoch
                && in_view == nodes.len()
        })
    };
    until("they are in one view", are_together).await;
}

/// Waits until `holds`.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(GENEROUS, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// A group of `count` nodes that guard everything with `algorithm`.
pub(crate) async fn group(count: usize, algorithm: &str) -> Vec<Node> {
    let (listeners, addresses) = listeners(count).await;
    group_of(configs(&addresses, algorithm), listeners).await
}

/// Waits until every member is linked to every other.
pub(crate) async fn linked(nodes: &[Node]) {
    let is_linked = |node: &Node| {
        let apart = |link: &LinkStatus| !matches!(link, LinkStatus::Itself | LinkStatus::Up(_));
        !node.status().members.iter().any(|member| apart(&member.link))
    };
    while !nodes.iter().all(is_linked) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
