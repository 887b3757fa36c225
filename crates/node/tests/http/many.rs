//! Very many clients at once.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use catraca_node::Node;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use crate::alone;
use crate::client::{ask, request};

/// Nothing takes so long, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(300);
const MOST_CLIENTS: usize = 10_000;
/// Files that are open beside connections.
const OTHER_FILES: u64 = 200;
/// What one of them may cost, with both ends of its connection, which are in this process.
const MOST_BYTES_EACH: usize = 48 << 10;

/// How much memory this process has, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

/// Waits until so many wait. How many there are is not asked for often: to count them takes time.
async fn waiting(node: &Node, count: usize) {
    let looking = async {
        while node.status().waiting != count as u64 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LIMIT, looking).await.expect("all wait, or all have gone");
}

/// A connection from one of several machines: one alone may not have so many.
async fn connect(number: usize, at: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let machine = IpAddr::from([127, 0, 0, 1 + (number % 4) as u8]);
    socket.bind(SocketAddr::new(machine, 0)).unwrap();
    socket.connect(at).await.unwrap()
}

/// How many clients there can be, as both ends of each connection are in this process.
fn clients() -> usize {
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).unwrap();
    let files = files.maximum.unwrap_or(u64::MAX).saturating_sub(OTHER_FILES);
    MOST_CLIENTS.min(usize::try_from(files / 2).unwrap())
}

#[tokio::test]
async fn ten_thousand_who_wait_for_one_lock_cost_little_and_leave_nothing() {
    let count = clients();
    let (node, at) = alone().await;
    let held = node.lock("x").await.unwrap();
    let wanted = json!({"names": ["x"], "wait_ms": 3_600_000}).to_string();
    let wanted = request("POST", "/v1/acquire", Some(&wanted));
    let before = resident();
    let mut clients = Vec::new();
    for number in 0..count {
        let mut client = connect(number, at).await;
        client.write_all(wanted.as_bytes()).await.unwrap();
        clients.push(client);
    }
    waiting(&node, count).await;
    let each = (resident() - before) / count;
    println!("{each} bytes for each of {count} who wait");
    assert!(each < MOST_BYTES_EACH, "{each} bytes each");
    ask(at, "GET", "/healthz", None).await.with(200);
    drop(clients);
    waiting(&node, 0).await;
    held.release().await;
    ask(at, "POST", "/v1/acquire", json!({"names": ["x"], "wait_ms": 60_000})).await.with(201);
}

#[tokio::test]
async fn ten_thousand_idle_connections_cost_little() {
    let count = clients();
    let (_node, at) = alone().await;
    let before = resident();
    let mut clients = Vec::new();
    for number in 0..count {
        clients.push(connect(number, at).await);
    }
    ask(at, "GET", "/healthz", None).await.with(200);
    let each = (resident() - before) / count;
    println!("{each} bytes for each of {count} that say nothing");
    assert!(each < MOST_BYTES_EACH, "{each} bytes each");
}
