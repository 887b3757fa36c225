//! The limits of HTTP, driven to their end: what is too much is refused, and the rest goes on.
#![allow(clippy::unwrap_used, reason = "a test fails loudly")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Serving;
use crate::acceptor::Acceptor;
use crate::access::Access;
use crate::config::SecurityConfig;
use crate::gateway::Gateway;
use crate::native::quota::{
    MOST_FAREWELLS, MOST_OF_ONE, MOST_PAGES, MOST_UNFINISHED, Place, Quota,
};
use crate::testing::{LIMIT, alone};
use crate::{Config, Node};

/// A node that serves HTTP, with what its clients take together.
struct Limited {
    _node: Node,
    serving: Serving,
    quota: Arc<Quota>,
}

impl Limited {
    async fn start() -> Self {
        let (node, quota) = (alone().await, Arc::new(Quota::default()));
        let access = Arc::new(Access::new(&SecurityConfig::default()).unwrap());
        let gateway = Gateway::new(Arc::clone(&node.engine));
        let mut config = Config::alone();
        config.http.listen = Some("127.0.0.1:0".to_string());
        let acceptor = Acceptor::new(access, None);
        let serving = Serving::start(&config, &gateway, Arc::clone(&quota), &acceptor)
            .await
            .unwrap()
            .unwrap();
        Limited { _node: node, serving, quota }
    }

    fn at(&self) -> SocketAddr {
        self.serving.address
    }

    /// Sends bytes over a connection of its own. Returns what comes before the node hangs up.
    async fn say(&self, bytes: String) -> String {
        let asking = async {
            let mut stream = TcpStream::connect(self.at()).await.unwrap();
            // The node may have hung up already, which shows.
            stream.write_all(bytes.as_bytes()).await.ok();
            let mut said = Vec::new();
            stream.read_to_end(&mut said).await.ok();
            String::from_utf8(said).unwrap()
        };
        timeout(LIMIT, asking).await.expect("it answers or hangs up")
    }

    async fn health(&self) -> String {
        self.say(request("GET", "/healthz", "")).await
    }
}

fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn one_connection_too_many_is_told_so_until_another_ends() {
    let node = Limited::start().await;
    let machine = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut places: Vec<Place> =
        (0..MOST_OF_ONE).map(|_| node.quota.enter(machine).unwrap()).collect();
    // They have something to do, and do not make way.
    places.iter().for_each(Place::stay);
    for _ in 0..3 {
        let said = node.health().await;
        let (head, body) = said.split_once("\r\n\r\n").expect("a whole answer");
        assert!(head.starts_with("HTTP/1.1 503"), "{head}");
        assert!(head.to_lowercase().contains("\r\nretry-after: "), "{head}");
        let problem: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(problem["code"], "too-many-connections");
        assert_eq!(problem["type"], "/problems/unavailable");
    }
    // Not everybody is told, if there are very many.
    let mut others = node.quota.farewells();
    // Those who were told so may still be among them.
    others.set(MOST_FAREWELLS, MOST_FAREWELLS);
    assert_eq!(node.health().await, "");
    drop(others);
    places.pop();
    let said = node.health().await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
}

#[tokio::test]
async fn a_connection_that_does_nothing_makes_way_for_another() {
    let node = Limited::start().await;
    let mut idle = TcpStream::connect(node.at()).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let machine = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let places: Vec<Place> = (1..MOST_OF_ONE).map(|_| node.quota.enter(machine).unwrap()).collect();
    places.iter().for_each(Place::stay);
    // Whoever comes now is not served yet, but the idle one is told to go.
    let said = node.health().await;
    assert!(said.starts_with("HTTP/1.1 503"), "{said}");
    let mut rest = Vec::new();
    timeout(LIMIT, idle.read_to_end(&mut rest)).await.expect("it makes way").unwrap();
    let said = node.health().await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
}

#[tokio::test]
async fn bodies_that_do_not_end_take_only_so_much_together() {
    let node = Limited::start().await;
    let mut others = node.quota.unfinished();
    assert!(others.set(MOST_UNFINISHED, MOST_UNFINISHED));
    let wanted = r#"{"names": ["x"]}"#;
    let said = node.say(request("POST", "/v1/acquire", wanted)).await;
    assert!(said.starts_with("HTTP/1.1 503"), "{said}");
    let said = said.to_lowercase();
    assert!(said.contains("retry-after: ") && said.contains(r#""code":"busy""#), "{said}");
    // What needs no body goes on.
    let said = node.health().await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    drop(others);
    let said = node.say(request("POST", "/v1/acquire", wanted)).await;
    assert!(said.starts_with("HTTP/1.1 201"), "{said}");
    assert!(node.quota.unfinished().set(MOST_UNFINISHED, MOST_UNFINISHED), "nothing has stayed");
}

#[tokio::test]
async fn no_long_answer_is_given_while_too_many_have_not_been_read_and_short_ones_are() {
    let node = Limited::start().await;
    let others = node.quota.unread();
    assert!(others.add(MOST_PAGES));
    let said = node.say(request("GET", "/openapi.json", "")).await;
    assert!(said.starts_with("HTTP/1.1 503") && said.contains(r#""code":"busy""#), "{said}");
    assert!(said.to_lowercase().contains("retry-after: "), "{said}");
    let said = node.health().await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    drop(others);
    for _ in 0..3 {
        let said = node.say(request("GET", "/openapi.json", "")).await;
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    }
    assert!(node.quota.unread().add(MOST_PAGES), "what was read counts no more");
}
