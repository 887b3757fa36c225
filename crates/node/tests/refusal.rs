//! Whoever does not want to wait is refused by whoever has the lock, wherever that is.
//!
//! The limit of most requests here is an hour, and each is awaited for a minute: a refusal that comes
//! was somebody's answer.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod support;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use catraca_algorithms::registry::ENTRIES;
use catraca_node::{Guard, Node, Query, Refusal, Request};
use support::valve::Valve;
use support::{configs, group_of, linked, listener, listeners};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;

const LIMIT: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const SETS: &str = "bouabdallah-laforest";

/// A group of three whose links are up.
async fn group(algorithm: &str) -> Vec<Node> {
    let nodes = support::group(3, algorithm).await;
    linked(&nodes).await;
    nodes
}

async fn answer(request: Request<'_>) -> Result<Guard, Refusal> {
    let answered = tokio::time::timeout(LIMIT, request.or_refuse_after(HOUR).into_future());
    answered.await.expect("an answer comes long before the limit")
}

#[track_caller]
fn is_taken(answer: Result<Guard, Refusal>) {
    assert_eq!(answer.map(|guard| guard.fence()), Err(Refusal::Taken));
}

/// The names of all locks that somebody holds or awaits.
async fn listed(node: &Node) -> Vec<String> {
    let query = Query { whole_group: true, limit: 1000, ..Query::default() };
    node.locks(query).await.lines.into_iter().map(|line| line.key.name).collect()
}

#[tokio::test]
async fn the_holder_refuses_and_hands_the_lock_on_when_it_leaves() {
    for entry in ENTRIES {
        let nodes = group(entry.name).await;
        let held = nodes[1].lock("x").await.unwrap();
        for node in &nodes {
            is_taken(answer(node.lock("x")).await);
        }
        assert_eq!(listed(&nodes[0]).await, ["x"], "{}: only the holder is left", entry.name);
        let mut last = held.fence();
        held.release().await;
        for node in &nodes {
            let next = node.lock("x").within(LIMIT).await.unwrap();
            assert!(next.fence() > last, "{}", entry.name);
            last = next.fence();
        }
        assert!(nodes.iter().all(|node| node.status().anomalies == 0), "{}", entry.name);
    }
}

#[tokio::test]
async fn a_free_lock_is_granted_wherever_its_token_is() {
    for entry in ENTRIES {
        let nodes = group(entry.name).await;
        for round in 0..12 {
            // Every member is before and after every other one.
            let node = &nodes[[0, 1, 2, 1, 0, 2][round % 6]];
            assert!(answer(node.lock("x")).await.is_ok(), "{} {round}", entry.name);
            assert!(answer(node.lock_all(&["x", "y"])).await.is_ok(), "{} {round}", entry.name);
        }
    }
}

#[tokio::test]
async fn a_set_is_refused_if_one_of_its_names_is_held_and_nothing_of_it_is_kept() {
    for algorithm in ["naimi-trehel", SETS] {
        let nodes = group(algorithm).await;
        let names = ["x", "y", "z"];
        for taken in names {
            let held = nodes[1].lock(taken).await.unwrap();
            for node in &nodes {
                is_taken(answer(node.lock_all(&names)).await);
            }
            assert_eq!(listed(&nodes[0]).await, [taken], "{algorithm}");
            held.release().await;
            let all = nodes[2].lock_all(&names).within(LIMIT).await;
            assert!(all.is_ok(), "{algorithm}: everything is free again");
        }
    }
}

#[tokio::test]
async fn names_that_share_a_resource_refuse_each_other() {
    let (listeners, addresses) = listeners(2).await;
    let mut configs = configs(&addresses, SETS);
    for config in &mut configs {
        config.namespaces[0].resources = 1;
    }
    let nodes = group_of(configs, listeners).await;
    linked(&nodes).await;
    let _held = nodes[1].lock("x").await.unwrap();
    is_taken(answer(nodes[0].lock("y")).await);
}

#[tokio::test]
async fn a_set_with_a_name_that_is_held_here_is_refused_without_waiting() {
    for algorithm in ["naimi-trehel", SETS] {
        let nodes = group(algorithm).await;
        let _held = nodes[0].lock("y").await.unwrap();
        let names = ["x", "y"];
        let mut request = pin!(nodes[0].lock_all(&names).or_refuse().into_future());
        match request.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(refused) => is_taken(refused),
            Poll::Pending => panic!("{algorithm}: it waits"),
        }
    }
}

#[tokio::test]
async fn a_semaphore_is_not_refused_because_of_some_who_are_inside() {
    let nodes = group("naimi-trehel").await;
    let one = nodes[1].semaphore("x", 2).await.unwrap();
    let _two = nodes[2].semaphore("x", 2).await.unwrap();
    is_taken(nodes[0].semaphore("x", 2).or_refuse_after(Duration::from_millis(50)).await);
    // Time for an answer to come, if there were one.
    let leave = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(one);
    };
    let (granted, ()) = tokio::join!(answer(nodes[0].semaphore("x", 2)), leave);
    assert!(granted.is_ok(), "{granted:?}");
    let _semaphore = nodes[1].semaphore("y", 2).await.unwrap();
    assert!(answer(nodes[0].lock("y")).await.is_ok(), "a lock is not the semaphore of its name");
}

#[tokio::test]
async fn a_member_that_does_not_answer_neither_refuses_nor_delays() {
    let (own, mut addresses) = listeners(3).await;
    // Whoever joins later calls: everybody is linked to the first over this way.
    let valve = Valve::to(addresses[0].clone()).await;
    addresses[0].clone_from(&valve.address);
    let configs = configs(&addresses, "naimi-trehel");
    let names: Vec<String> = (0..32).map(|number| format!("lock/{number}")).collect();
    let mut at_last = names.iter().filter(|name| configs[0].home_of(name).as_deref() == Ok("c"));
    let (free, taken) = (at_last.next().unwrap(), at_last.next().unwrap());
    let nodes = group_of(configs.clone(), own).await;
    valve.close();
    // This algorithm needs nobody but whoever has the token, and that begins at its home.
    let _held = nodes[2].lock(taken).within(LIMIT).await.unwrap();
    drop(nodes[1].lock(free).within(LIMIT).await.unwrap());
    drop(nodes[2].lock(free).within(LIMIT).await.unwrap());
    assert!(answer(nodes[1].lock(free)).await.is_ok(), "its token is at the third member");
    is_taken(answer(nodes[1].lock(taken)).await);
    let limit = Duration::from_millis(50);
    for name in &names {
        // Some of these have their token at the silent member: the limit counts.
        let answered = nodes[1].lock(name).or_refuse_after(limit).into_future();
        let _ = tokio::time::timeout(LIMIT, answered).await.expect("the limit");
    }
}

/// Passes connections on, counts them, and cuts them when told to.
struct Way {
    count: AtomicUsize,
    cut: broadcast::Sender<()>,
}

impl Way {
    fn open(listener: TcpListener, target: String) -> Arc<Self> {
        let way = Arc::new(Way { count: AtomicUsize::new(0), cut: broadcast::channel(1).0 });
        let opened = Arc::clone(&way);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                way.count.fetch_add(1, Ordering::SeqCst);
                let (target, mut cut) = (target.clone(), way.cut.subscribe());
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = cut.recv() => {}
                    }
                });
            }
        });
        opened
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn questions_go_over_the_link_and_need_no_connection_of_their_own() {
    let (own, mut addresses) = listeners(2).await;
    let (between, through) = listener().await;
    // The second joins later, and calls.
    let direct = std::mem::replace(&mut addresses[0], through);
    let way = Way::open(between, direct);
    let nodes = group_of(configs(&addresses, "naimi-trehel"), own).await;
    linked(&nodes).await;
    drop(nodes[0].lock("x").await.unwrap());
    drop(nodes[0].lock_all(&["x", "y"]).await.unwrap());
    let messages = nodes[0].status().messages;
    for _ in 0..100 {
        assert!(answer(nodes[0].lock("x")).await.is_ok());
        assert!(answer(nodes[0].lock_all(&["x", "y"])).await.is_ok());
        tokio::task::yield_now().await;
    }
    assert_eq!(nodes[0].status().messages, messages, "what is here costs no message");
    let held = nodes[1].lock("x").await.unwrap();
    for _ in 0..100 {
        is_taken(answer(nodes[0].lock("x")).await);
        assert_eq!(listed(&nodes[0]).await, ["x"]);
    }
    assert_eq!(way.count(), 1, "the link");
    // A question that was under way when the link broke is answered over the next one.
    way.cut.send(()).unwrap();
    is_taken(answer(nodes[0].lock("x")).await);
    linked(&nodes).await;
    drop(held);
    assert!(nodes[0].lock("x").within(LIMIT).await.is_ok());
}
