//! Connections that are cut at any byte lose and repeat nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use catraca_node::{LinkStatus, Memory, Node};
use support::{configs, listener, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Nobody waits longer for one lock, however busy the machine is.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A member calls again after 10 ms at the earliest: this takes a quarter of a minute.
const CUTS: u64 = 1_000;

/// Passes on so many bytes of each connection, in both directions together, and cuts it.
async fn cut(listener: TcpListener, target: String, cuts: Arc<AtomicU64>) {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    loop {
        let (mut near, _) = listener.accept().await.unwrap();
        let Ok(mut far) = TcpStream::connect(&target).await else { continue };
        // Long enough to get through the handshake, most of the time.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut left = (seed >> 33) as usize % 1500;
        let (mut one, mut other) = (vec![0; 512], vec![0; 512]);
        while left > 0 {
            let passed = tokio::select! {
                read = near.read(&mut one) => pass(read, &one, &mut far, left).await,
                read = far.read(&mut other) => pass(read, &other, &mut near, left).await,
            };
            match passed {
                Some(bytes) => left -= bytes,
                None => break,
            }
        }
        cuts.fetch_add(1, Ordering::SeqCst);
    }
}

async fn pass(
    read: std::io::Result<usize>,
    bytes: &[u8],
    to: &mut TcpStream,
    left: usize,
) -> Option<usize> {
    let count = read.ok().filter(|&count| count > 0)?.min(left);
    to.write_all(&bytes[..count]).await.ok()?;
    Some(count)
}

/// One client: takes the lock until the connections have been cut often enough.
async fn client(node: Arc<Node>, name: String, fence: Arc<AtomicU64>, cuts: Arc<AtomicU64>) -> u64 {
    let mut entries = 0;
    while cuts.load(Ordering::SeqCst) < CUTS {
        let guard = timeout(LONGEST_WAIT, node.lock(&name)).await.expect("nobody starves").unwrap();
        let last = fence.swap(guard.fence(), Ordering::SeqCst);
        assert!(last < guard.fence(), "fence {} after {last}", guard.fence());
        tokio::task::yield_now().await;
        assert_eq!(fence.load(Ordering::SeqCst), guard.fence(), "two are inside {name}");
        entries += 1;
    }
    entries
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_cut_at_any_byte_lose_and_repeat_nothing() {
    let (own_a, address_a) = listener().await;
    let (own_b, address_b) = listener().await;
    let cuts = Arc::new(AtomicU64::new(0));
    // Whoever joins later calls. That is the second, or the first if it was away for longer than its lease.
    let mut through = Vec::new();
    for target in [address_a, address_b] {
        let (between, address) = listener().await;
        tokio::spawn(cut(between, target, Arc::clone(&cuts)));
        through.push(address);
    }
    // Ricart-Agrawala has the most to say, and an answer too many or too few is an anomaly.
    let registry = Memory::default();
    let mut configs = configs(&through, "ricart-agrawala").into_iter();
    let mut nodes = Vec::new();
    for (listener, mut config) in [own_a, own_b].into_iter().zip(&mut configs) {
        config.turns.handovers = 0;
        nodes.push(Arc::new(start(config, listener, &registry).await));
    }
    let mut clients = Vec::new();
    for lock in 0..4 {
        let fence = Arc::new(AtomicU64::new(0));
        for node in &nodes {
            let (node, name) = (Arc::clone(node), format!("lock/{lock}"));
            clients.push(tokio::spawn(client(node, name, Arc::clone(&fence), Arc::clone(&cuts))));
        }
    }
    let mut entries = 0;
    for client in clients {
        entries += client.await.unwrap();
    }
    assert!(entries > 1000, "{entries} entries");
    for node in &nodes {
        let status = node.status();
        assert_eq!(status.anomalies, 0);
        let refused = |link: &LinkStatus| matches!(link, LinkStatus::Refused(_));
        assert!(!status.members.iter().any(|member| refused(&member.link)), "{status:?}");
    }
}
