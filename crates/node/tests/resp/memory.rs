//! What very many clients cost that only are there.

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::net::{TcpSocket, TcpStream};

use crate::alone;
use crate::redis::Redis;

/// As many as the system lets this process have, with both of their ends in it.
const CLIENTS: u64 = 10_000;
/// What a connection costs at the most, at both of its ends and in all buffers of this process.
const MOST_EACH: usize = 8 << 10;

/// How much memory this process has, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    1024 * line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
}

#[tokio::test]
async fn ten_thousand_idle_clients_cost_little_and_the_next_is_served() {
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).unwrap();
    let most = files.maximum.map_or(CLIENTS, |most| most.saturating_sub(200) / 2);
    let clients = CLIENTS.min(most) as usize;
    let node = alone().await;
    let address = node.resp_address().unwrap();
    let before = resident();
    let mut idle: Vec<TcpStream> = Vec::new();
    for number in 0..clients {
        // One machine alone may not have so many.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("127.0.0.{}:0", 1 + number % 4).parse().unwrap()).unwrap();
        idle.push(socket.connect(address).await.unwrap());
    }
    let mut last = Redis::connect(address).await;
    assert_eq!(last.call("CATRACA.LOCK x").await.items().len(), 2);
    let each = resident().saturating_sub(before) / clients;
    println!("each of {clients} idle clients costs {each} bytes");
    assert!(each < MOST_EACH, "an idle client costs {each} bytes");
    drop(idle);
}
