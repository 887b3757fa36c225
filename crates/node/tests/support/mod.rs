//! Groups on the loopback interface.
#![allow(dead_code, reason = "each test file uses a part")]

use std::time::Duration;

use catraca_client::handshake::{self, Hello};
use catraca_node::{Config, LinkStatus, Member, Namespace, Node};
use tokio::net::{TcpListener, TcpStream};

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

/// A node at each listener.
pub(crate) async fn group_of(configs: Vec<Config>, listeners: Vec<TcpListener>) -> Vec<Node> {
    let mut nodes = Vec::new();
    for (config, listener) in configs.into_iter().zip(listeners) {
        nodes.push(Node::start_at(config, listener).await.unwrap());
    }
    nodes
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

/// The configurations of members 'a' and 'b', and where they listen.
pub(crate) async fn pair() -> ([Config; 2], [TcpListener; 2]) {
    let (own, addresses) = listeners(2).await;
    let configs = configs(&addresses, "naimi-trehel");
    (configs.try_into().unwrap(), own.try_into().unwrap())
}

/// What member 'a' of a pair takes for 'b': it is connected, and says nothing.
pub(crate) async fn mute_member(listener: &TcpListener) -> TcpStream {
    /// As the node's own answer to another member.
    #[derive(serde::Serialize)]
    enum MemberAnswer {
        Welcome { incarnation: u64, received: u64 },
    }
    let (mut stream, _) = listener.accept().await.unwrap();
    handshake::hear_magic(&mut stream).await.unwrap();
    let _: Hello = handshake::hear(&mut stream).await.unwrap();
    let welcome = MemberAnswer::Welcome { incarnation: 1, received: 0 };
    handshake::say(&mut stream, &welcome).await.unwrap();
    stream
}
