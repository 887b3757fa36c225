//! Members that crash, pause, leave and come back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod support;

use std::sync::{Arc, mpsc};
use std::time::Duration;

use catraca_algorithms::registry::ENTRIES;
use catraca_client::clock;
use catraca_node::hi_adsd::{self, News};
use catraca_node::{Config, Memory, Node, Refusal};
use support::{group_with, start, together, until};
use tokio::net::TcpListener;

const LIMIT: Duration = Duration::from_secs(60);
/// Short, so that crashes are noticed soon; long enough for a machine that does other things too.
const LEASE: Duration = Duration::from_secs(3);

async fn members(count: usize, algorithm: &str) -> (Vec<Config>, Vec<TcpListener>) {
    let (listeners, addresses) = support::listeners(count).await;
    let mut configs = support::configs(&addresses, algorithm);
    for config in &mut configs {
        config.lease = LEASE;
    }
    (configs, listeners)
}

/// Somebody enters at each of these nodes, of a lock, of a semaphore and of names that are new.
async fn all_are_served(nodes: &[Node], fresh: &str) {
    for node in nodes {
        node.lock("known").within(LIMIT).await.unwrap().release().await;
        node.semaphore("pool", 2).within(LIMIT).await.unwrap().release().await;
        for number in 0..8 {
            let name = format!("{fresh}/{number}");
            node.lock(&name).within(LIMIT).await.unwrap().release().await;
        }
    }
}

fn names_in_view(node: &Node) -> Vec<String> {
    let members = node.status().members.into_iter();
    members.filter(|member| member.is_in_view).map(|member| member.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_the_algorithm_a_group_goes_on_when_a_member_crashes_with_everything_in_its_hands()
{
    // All at once: what takes time is waiting for leases.
    let group = |algorithm: &'static str| async move {
        let (configs, listeners) = members(3, algorithm).await;
        let registry = Memory::default();
        let mut nodes = group_with(configs.clone(), listeners, &registry).await;
        all_are_served(&nodes, "before").await;
        let crashed = nodes.remove(1);
        let held = crashed.lock("known").within(LIMIT).await.unwrap();
        let _one = crashed.semaphore("pool", 2).within(LIMIT).await.unwrap();
        let _two = crashed.semaphore("pool", 2).within(LIMIT).await.unwrap();
        let fence = held.fence();
        drop(crashed);
        tokio::time::timeout(LIMIT, held.lost()).await.expect("it is told");
        let next = nodes[0].lock("known").within(LIMIT).await.unwrap();
        assert!(next.fence() > fence, "{algorithm}");
        next.release().await;
        all_are_served(&nodes, "after").await;
        assert_eq!(names_in_view(&nodes[1]), ["a", "c"], "{algorithm}");
        // It comes back by itself.
        let (own, address) = support::listener().await;
        let mut config = configs[1].clone();
        config.members[1].address = address;
        nodes.insert(1, start(config, own, &registry).await);
        together(&nodes).await;
        all_are_served(&nodes, "again").await;
        assert!(nodes.iter().all(|node| node.status().anomalies == 0), "{algorithm}");
    };
    let groups: Vec<_> = ENTRIES.iter().map(|entry| tokio::spawn(group(entry.name))).collect();
    for group in groups {
        group.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_leaves_in_order_costs_nobody_the_wait_for_a_lease() {
    let (mut configs, listeners) = members(3, "naimi-trehel").await;
    for config in &mut configs {
        // If anybody waited for it, the test would fail.
        config.lease = Duration::from_secs(60);
    }
    let mut nodes = group_with(configs, listeners, &Memory::default()).await;
    all_are_served(&nodes, "before").await;
    let started = std::time::Instant::now();
    nodes.remove(0).stop().await;
    all_are_served(&nodes, "after").await;
    together(&nodes).await;
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_was_never_there_keeps_nobody_waiting() {
    let (mut configs, mut listeners) = members(3, "ricart-agrawala").await;
    let (late, at) = (configs.pop().unwrap(), listeners.pop().unwrap());
    let registry = Memory::default();
    let mut nodes = group_with(configs, listeners, &registry).await;
    all_are_served(&nodes, "early").await;
    nodes.push(start(late, at, &registry).await);
    together(&nodes).await;
    all_are_served(&nodes, "late").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_with_the_name_of_a_member_waits_until_that_one_is_gone() {
    let (configs, listeners) = members(2, "naimi-trehel").await;
    let registry = Memory::default();
    let mut nodes = group_with(configs.clone(), listeners, &registry).await;
    let (own, address) = support::listener().await;
    let mut config = configs[1].clone();
    config.members[1].address = address;
    let second = start(config, own, &registry).await;
    until("it says what it waits for", || {
        format!("{:?}", second.status().readiness).contains("'b' is in the group already")
    })
    .await;
    let refused = second.lock("x").within(Duration::from_millis(10)).await.unwrap_err();
    assert!(matches!(refused, Refusal::NotInGroup(_)), "{refused:?}");
    all_are_served(&nodes, "meanwhile").await;
    nodes.pop().unwrap().stop().await;
    nodes.push(second);
    together(&nodes).await;
    all_are_served(&nodes, "then").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_with_other_namespaces_or_another_lease_stay_out_and_say_so() {
    let (configs, mut listeners) = members(2, "naimi-trehel").await;
    let registry = Memory::default();
    let first = start(configs[0].clone(), listeners.remove(0), &registry).await;
    together(std::slice::from_ref(&first)).await;
    let mut others = [configs[1].clone(), configs[1].clone()];
    others[0].namespaces[0].algorithm = "raymond".to_string();
    others[1].lease = LEASE * 2;
    for config in others {
        let (own, address) = support::listener().await;
        let config = Config { listen: Some(address), ..config };
        let other = start(config, own, &registry).await;
        until("it says why", || {
            format!("{:?}", other.status().readiness).contains("make the configurations equal")
        })
        .await;
        first.lock("x").within(LIMIT).await.unwrap().release().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_paused_too_long_learns_that_its_locks_are_lost_and_comes_back() {
    let (mut configs, mut listeners) = members(3, "naimi-trehel").await;
    let (config, at) = (configs.pop().unwrap(), listeners.pop().unwrap());
    let registry = Memory::default();
    let nodes = group_with(configs, listeners, &registry).await;
    let (go_on, goes_on) = mpsc::channel();
    let (inside, is_inside) = tokio::sync::oneshot::channel();
    let paused = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let node = Arc::new(start(config, at, &registry).await);
            let guard = node.lock("shared").within(LIMIT).await.unwrap();
            inside.send(guard.fence()).unwrap();
            // This blocks the thread: to the others the member looks crashed.
            goes_on.recv().unwrap();
            assert!(guard.valid_until() <= clock::now(), "its time is over, whoever says so");
            tokio::time::timeout(LIMIT, guard.lost()).await.expect("it is told");
            // It joins again, and is served as any other.
            let again = node.lock("shared").within(LIMIT).await.unwrap();
            assert!(again.fence() > guard.fence());
        });
    });
    let fence = is_inside.await.unwrap();
    for node in &nodes {
        let next = node.lock("shared").within(LIMIT).await.unwrap();
        assert!(next.fence() > fence);
        next.release().await;
    }
    go_on.send(()).unwrap();
    tokio::task::spawn_blocking(|| paused.join().unwrap()).await.unwrap();
    nodes[0].lock("shared").within(LIMIT).await.unwrap().release().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_detector_that_was_asked_for_by_name_lets_robust_k_go_on_before_the_lease_is_over() {
    let (mut configs, listeners) = members(4, "robust-k").await;
    for config in &mut configs {
        config.lease = Duration::from_secs(60);
        config.detector = Some(hi_adsd::Config {
            interval: Duration::from_secs(2),
            timeout: Duration::from_secs(2),
            news: News::Immediate,
        });
        config.namespaces[0].ack_timeout = Some(Duration::from_millis(100));
    }
    let mut nodes = group_with(configs, listeners, &Memory::default()).await;
    all_are_served(&nodes, "before").await;
    let crashed = nodes.pop().unwrap();
    let _both = [crashed.semaphore("pool", 2).await, crashed.semaphore("pool", 2).await];
    drop(crashed);
    for node in &nodes {
        node.semaphore("pool", 2).within(LIMIT / 2).await.unwrap().release().await;
        let suspected = node.status().members.into_iter().filter(|it| it.suspected.is_some());
        assert_eq!(suspected.map(|it| it.name).collect::<Vec<_>>(), ["d"]);
        assert_eq!(node.status().anomalies, 0);
    }
}
