//! Members that crash or pause, in groups whose algorithm listens to the failure detector.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod support;

use std::sync::{Arc, mpsc};
use std::time::Duration;

use catraca_node::hi_adsd::{self, News};
use catraca_node::{Config, Node, Refusal};
use tokio::net::TcpListener;

const LIMIT: Duration = Duration::from_secs(60);
/// Long enough for a busy machine: nobody who lives is taken for crashed.
const PATIENT: hi_adsd::Config = hi_adsd::Config {
    interval: Duration::from_secs(2),
    timeout: Duration::from_secs(2),
    news: News::Immediate,
};

async fn members(count: usize) -> (Vec<Config>, Vec<TcpListener>) {
    let (listeners, addresses) = support::listeners(count).await;
    let mut configs = support::configs(&addresses, "robust-k");
    for config in &mut configs {
        config.detector = PATIENT;
    }
    (configs, listeners)
}

fn suspects(node: &Node) -> Vec<String> {
    let members = node.status().members.into_iter();
    members.filter(|member| member.suspected.is_some()).map(|member| member.name).collect()
}

async fn hold_everywhere(nodes: &[Node], name: &str) {
    for node in nodes {
        node.semaphore(name, 2).within(LIMIT).await.unwrap().release().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_permits_of_a_crashed_member_come_back_and_the_group_goes_on() {
    let (configs, listeners) = members(4).await;
    let mut nodes = support::group_of(configs, listeners).await;
    hold_everywhere(&nodes, "pool").await;
    let both = [nodes[3].semaphore("pool", 2).await, nodes[3].semaphore("pool", 2).await];
    assert!(both.iter().all(Result::is_ok));
    let single = nodes[2].lock("single").within(LIMIT).await.unwrap();
    // Two of four crash, one after the other, with everything in their hands.
    drop(nodes.pop());
    for node in &nodes[..2] {
        let guards = [node.semaphore("pool", 2), node.semaphore("pool", 2)];
        for guard in guards {
            guard.within(LIMIT).await.unwrap().release().await;
        }
    }
    assert_eq!(suspects(&nodes[0]), ["d"]);
    drop(nodes.pop());
    for node in &nodes {
        node.lock("single").within(LIMIT).await.unwrap().release().await;
        node.lock("begun-after-the-crashes").within(LIMIT).await.unwrap().release().await;
        assert_eq!(suspects(node), ["c", "d"]);
        assert_eq!(node.status().anomalies, 0);
    }
    drop((single, both));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_was_never_there_has_not_crashed() {
    let (mut configs, mut listeners) = members(3).await;
    let (late, at) = (configs.pop().unwrap(), listeners.pop().unwrap());
    let mut nodes = support::group_of(configs, listeners).await;
    let waits = nodes[0].lock("early").within(PATIENT.interval * 2).await;
    assert_eq!(waits.unwrap_err(), Refusal::NotReady("'c'".to_string()), "the third may be inside");
    assert!(suspects(&nodes[0]).is_empty());
    nodes.push(Node::start_at(late, at).await.unwrap());
    for node in &nodes {
        node.lock("early").within(LIMIT).await.unwrap().release().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_paused_too_long_learns_that_its_locks_are_lost() {
    let (mut configs, mut listeners) = members(3).await;
    let (config, at) = (configs.pop().unwrap(), listeners.pop().unwrap());
    let nodes = support::group_of(configs, listeners).await;
    let (go_on, goes_on) = mpsc::channel();
    let (inside, is_inside) = tokio::sync::oneshot::channel();
    let paused = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let node = Arc::new(Node::start_at(config, at).await.unwrap());
            let guard = node.lock("shared").within(LIMIT).await.unwrap();
            let asker = Arc::clone(&node);
            let waits = tokio::spawn(async move { asker.lock("shared").await.map(drop) });
            while node.status().waiting == 0 {
                tokio::task::yield_now().await;
            }
            inside.send(()).unwrap();
            // This blocks the thread: to the others the member looks crashed.
            goes_on.recv().unwrap();
            tokio::time::timeout(LIMIT, guard.lost()).await.expect("it is told");
            let by = node.status().detector.unwrap().excluded_by.unwrap();
            let excluded = Refusal::Excluded(by);
            assert_eq!(waits.await.unwrap(), Err(excluded.clone()));
            assert_eq!(node.lock("other").await.unwrap_err(), excluded);
        });
    });
    is_inside.await.unwrap();
    for node in &nodes {
        node.lock("shared").within(LIMIT).await.unwrap().release().await;
    }
    go_on.send(()).unwrap();
    tokio::task::spawn_blocking(|| paused.join().unwrap()).await.unwrap();
    nodes[0].lock("shared").within(LIMIT).await.unwrap().release().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_nobody_acknowledges_are_sent_again_when_their_time_has_come() {
    let (mut configs, listeners) = members(4).await;
    for config in &mut configs {
        config.namespaces[0].ack_timeout = Some(Duration::from_millis(100));
    }
    let mut nodes = support::group_of(configs, listeners).await;
    hold_everywhere(&nodes, "pool").await;
    drop(nodes.remove(1));
    for _ in 0..3 {
        for node in &nodes {
            node.lock("pool").within(LIMIT).await.unwrap().release().await;
        }
    }
    for node in &nodes {
        assert_eq!(node.status().anomalies, 0);
    }
}
