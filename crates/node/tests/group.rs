//! Groups of nodes in one process, over real sockets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod support;

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use catraca_node::{Memory, Node, Readiness, Refusal, Time};
use support::{group, start, until};

const LIMIT: Duration = Duration::from_secs(60);

/// What the lock protects: at most one is inside, and every fence is larger than the last.
#[derive(Default)]
struct Witness {
    inside: AtomicBool,
    fence: AtomicU64,
    entries: AtomicU64,
}

impl Witness {
    async fn enter(&self, fence: u64) {
        assert!(!self.inside.swap(true, Ordering::SeqCst), "two are inside");
        let last = self.fence.swap(fence, Ordering::SeqCst);
        assert!(last < fence, "fence {fence} after {last}");
        tokio::task::yield_now().await;
        self.entries.fetch_add(1, Ordering::SeqCst);
        self.inside.store(false, Ordering::SeqCst);
    }
}

async fn contend(nodes: Vec<Node>, clients: usize, rounds: usize) -> Arc<Witness> {
    let nodes: Arc<Vec<Node>> = Arc::new(nodes);
    let witness = Arc::new(Witness::default());
    let client = |client: usize| {
        let (nodes, witness) = (Arc::clone(&nodes), Arc::clone(&witness));
        tokio::spawn(async move {
            let node = &nodes[client % nodes.len()];
            for _ in 0..rounds {
                let guard = node.lock("shared").await.unwrap();
                witness.enter(guard.fence()).await;
                guard.release().await;
            }
        })
    };
    let clients: Vec<_> = (0..clients).map(client).collect();
    for client in clients {
        tokio::time::timeout(LIMIT, client).await.expect("nobody starves").unwrap();
    }
    witness
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_single_lock_algorithm_excludes_over_tcp() {
    for entry in catraca_algorithms::registry::ENTRIES {
        for members in [1, 3, 5] {
            let witness = contend(group(members, entry.name).await, 10, 50).await;
            assert_eq!(witness.entries.load(Ordering::SeqCst), 500, "{} {members}", entry.name);
        }
    }
}

#[tokio::test]
async fn a_waiter_that_gives_up_leaves_no_trace() {
    let nodes = group(2, "naimi-trehel").await;
    let guard = nodes[0].lock("x").await.unwrap();
    let late = nodes[1].lock("x").within(Duration::from_millis(50)).await;
    assert_eq!(late.unwrap_err(), Refusal::TimedOut);
    assert_eq!(nodes[0].lock("x").or_refuse().await.unwrap_err(), Refusal::Taken);
    assert_eq!(nodes[1].lock("x").or_refuse().await.unwrap_err(), Refusal::Taken);
    let first = guard.fence();
    guard.release().await;
    let guard =
        tokio::time::timeout(LIMIT, nodes[0].lock("x").into_future()).await.unwrap().unwrap();
    assert!(guard.fence() > first);
}

#[tokio::test]
async fn sets_are_all_or_none_and_do_not_deadlock() {
    for algorithm in ["naimi-trehel", "bouabdallah-laforest"] {
        let nodes = Arc::new(group(3, algorithm).await);
        let sets = [["a", "b"], ["b", "c"], ["c", "a"]];
        let client = |client: usize| {
            let nodes = Arc::clone(&nodes);
            tokio::spawn(async move {
                for _ in 0..50 {
                    let guard = nodes[client % 3].lock_all(&sets[client / 3 % 3]).await.unwrap();
                    tokio::task::yield_now().await;
                    guard.release().await;
                }
            })
        };
        let clients: Vec<_> = (0..9).map(client).collect();
        for client in clients {
            tokio::time::timeout(LIMIT, client).await.expect("no deadlock").unwrap();
        }
        let held = nodes[0].lock("b").await.unwrap();
        let refused = nodes[1].lock_all(&["a", "b"]).or_refuse().await;
        assert_eq!(refused.unwrap_err(), Refusal::Taken, "{algorithm}");
        // A set that the group was asked for as a whole is given back when it comes.
        if algorithm == "bouabdallah-laforest" {
            drop(held);
        }
        let other = nodes[2].lock("a").within(LIMIT).await;
        assert!(other.is_ok(), "nothing of a set that was not had is kept");
    }
}

#[tokio::test]
async fn a_stopped_node_tells_its_guards() {
    let (listeners, addresses) = support::listeners(1).await;
    let mut configs = support::configs(&addresses, "naimi-trehel");
    configs[0].drain = Duration::ZERO;
    let node = support::group_of(configs, listeners).await.remove(0);
    let guard = node.lock("x").await.unwrap();
    let lost = tokio::time::timeout(Duration::from_millis(20), guard.lost()).await;
    assert!(lost.is_err(), "it is not lost");
    node.stop().await;
    tokio::time::timeout(LIMIT, guard.lost()).await.unwrap();
}

#[tokio::test]
async fn guards_of_a_node_that_stops_are_lost_before_anybody_else_is_let_in() {
    let (listeners, addresses) = support::listeners(2).await;
    let mut configs = support::configs(&addresses, "naimi-trehel");
    configs[1].drain = Duration::ZERO;
    let mut nodes = support::group_of(configs, listeners).await;
    let stopped = nodes.remove(1);
    let guard = stopped.lock("x").await.unwrap();
    assert!(guard.valid_until() > Time(0) && guard.is_valid());
    assert_eq!(guard.fences(), [guard.fence()]);
    let mut next = Box::pin(nodes[0].lock("x").into_future());
    let stopping = stopped.stop();
    tokio::pin!(stopping);
    let granted = async {
        tokio::select! {
            biased;
            granted = &mut next => granted.unwrap(),
            () = &mut stopping => next.await.unwrap(),
        }
    };
    let granted = tokio::time::timeout(LIMIT, granted).await.expect("the other one is let in");
    assert!(granted.fence() > guard.fence());
    assert_eq!(guard.valid_until(), Time(0), "it knows already");
    assert!(!guard.is_valid());
    guard.lost().await;
}

#[tokio::test]
async fn what_cannot_be_locked_is_refused() {
    let nodes = group(1, "naimi-trehel").await;
    let error = |result: Result<_, Refusal>| match result {
        Ok(_) => panic!("it was granted"),
        Err(error) => error.to_string(),
    };
    assert!(error(nodes[0].lock("a b").await.map(drop)).contains("no spaces"));
    assert!(error(nodes[0].lock_all(&[]).await.map(drop)).contains("at least one"));
    assert!(error(nodes[0].semaphore("a", 0).await.map(drop)).contains("1 to 64 permits"));
}

#[tokio::test]
async fn the_limit_of_locks_is_exact_and_loses_no_message_of_others() {
    let (listeners, addresses) = support::listeners(2).await;
    let mut configs = support::configs(&addresses, "naimi-trehel");
    configs[0].most_locks = 10;
    let nodes = support::group_of(configs, listeners).await;
    // Locks of others, half of which have their home at the first node.
    for number in 0..20 {
        nodes[1].lock(&format!("theirs/{number}")).within(LIMIT).await.unwrap().release().await;
    }
    for number in 0..10 {
        nodes[0].lock(&format!("own/{number}")).within(LIMIT).await.unwrap().release().await;
    }
    assert_eq!(nodes[0].lock("own/10").await.unwrap_err(), Refusal::Full);
    nodes[0].lock("own/3").within(LIMIT).await.unwrap().release().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_that_many_wait_for_do_not_bar_others() {
    let nodes = Arc::new(group(2, "bouabdallah-laforest").await);
    let held = nodes[0].lock("one").within(LIMIT).await.unwrap();
    let waiter = |_| {
        let nodes = Arc::clone(&nodes);
        tokio::spawn(async move { nodes[0].lock("one").await.map(drop) })
    };
    let waiters: Vec<_> = (0..100).map(waiter).collect();
    while nodes[0].status().waiting < 100 {
        tokio::task::yield_now().await;
    }
    nodes[0].lock("two").within(LIMIT).await.unwrap().release().await;
    // Requests that were taken back leave no seat taken.
    for _ in 0..100 {
        assert_eq!(nodes[1].lock("one").or_refuse().await.unwrap_err(), Refusal::Taken);
    }
    nodes[1].lock("three").within(LIMIT).await.unwrap().release().await;
    held.release().await;
    for waiter in waiters {
        tokio::time::timeout(LIMIT, waiter).await.unwrap().unwrap().unwrap();
    }
    nodes[1].lock("one").within(LIMIT).await.unwrap().release().await;
    assert!(nodes.iter().all(|node| node.status().anomalies == 0));
}

#[tokio::test]
async fn all_who_use_a_semaphore_at_a_node_say_the_same_number() {
    let node = &group(1, "naimi-trehel").await[0];
    let other = |permits, other| Refusal::OtherPermits { name: "x".to_string(), permits, other };
    let lock = node.lock("x").await.unwrap();
    assert_eq!(node.semaphore("x", 2).await.unwrap_err(), other(2, 1));
    drop(lock);
    let both = [node.semaphore("x", 2).await.unwrap(), node.semaphore("x", 2).await.unwrap()];
    assert_eq!(node.lock("x").await.unwrap_err(), other(1, 2));
    assert_eq!(node.lock_all(&["w", "x"]).await.unwrap_err(), other(1, 2));
    assert_eq!(node.semaphore("x", 3).or_refuse().await.unwrap_err(), other(3, 2));
    drop(both);
    drop(node.lock_all(&["w", "x"]).await.unwrap());
}

#[tokio::test]
async fn a_semaphore_can_be_in_a_namespace_of_sets() {
    let nodes = group(2, "bouabdallah-laforest").await;
    let (one, two) = (nodes[0].semaphore("pool", 2), nodes[1].semaphore("pool", 2));
    let both = [one.within(LIMIT).await.unwrap(), two.within(LIMIT).await.unwrap()];
    let third = nodes[0].semaphore("pool", 2).or_refuse().await;
    assert_eq!(third.unwrap_err(), Refusal::Taken);
    drop(both);
    nodes[0].semaphore("pool", 2).within(LIMIT).await.unwrap().release().await;
}

/// The waker of somebody's own executor, which asks the node about everything when it goes.
struct Nosy {
    node: Arc<Node>,
    gone: Arc<AtomicUsize>,
}

impl Wake for Nosy {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Nosy {
    fn drop(&mut self) {
        self.node.status();
        let mut asked = pin!(self.node.lock("x").into_future());
        let _ = asked.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.gone.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waker_that_asks_the_node_when_it_is_dropped_finds_nothing_locked() {
    let node = Arc::new(group(1, "naimi-trehel").await.remove(0));
    let held = node.lock_all(&["x", "y"]).await.unwrap();
    let (tell, told) = mpsc::channel();
    // A thread of its own: whatever is wrong, the test ends.
    std::thread::spawn(move || {
        let gone = Arc::new(AtomicUsize::new(0));
        let waker = || {
            let (node, gone) = (Arc::clone(&node), Arc::clone(&gone));
            Waker::from(Arc::new(Nosy { node, gone }))
        };
        let names = ["x", "y"];
        for request in [node.lock("x"), node.lock_all(&names)] {
            let mut waits = Box::pin(request.into_future());
            // The second waker takes the place of the first.
            for _ in 0..2 {
                assert!(waits.as_mut().poll(&mut Context::from_waker(&waker())).is_pending());
            }
            drop(waits);
            tell.send(gone.swap(0, Ordering::SeqCst)).unwrap();
        }
        let mut waits = Box::pin(node.lock("x").into_future());
        assert!(waits.as_mut().poll(&mut Context::from_waker(&waker())).is_pending());
        drop(held);
        tell.send(gone.load(Ordering::SeqCst)).unwrap();
    });
    for gone in [2, 2, 1] {
        assert_eq!(told.recv_timeout(LIMIT), Ok(gone), "a waker is dropped under a mutex");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_processes_of_one_name_that_start_at_once_exactly_one_gets_in() {
    for round in 0..32 {
        let (listeners, addresses) = support::listeners(1).await;
        let mut configs = support::configs(&[addresses[0].clone(), String::new()], "naimi-trehel");
        let registry = Memory::default();
        let twin = async || {
            let (own, address) = support::listener().await;
            let mut config = configs[1].clone();
            config.members[1].address = address;
            start(config, own, &registry).await
        };
        let (one, other) = tokio::join!(twin(), twin());
        configs[0].members[1].address = one.address().to_string();
        let listener = listeners.into_iter().next().unwrap();
        let first = start(configs[0].clone(), listener, &registry).await;
        let twins = [one, other];
        let is_ready = |node: &Node| node.status().readiness == Readiness::Ready;
        let is_told = |node: &Node| {
            format!("{:?}", node.status().readiness).contains("'b' is in the group already")
        };
        until("one is in, and the other knows why it is not", || {
            assert!(!twins.iter().all(is_ready), "both are in, in round {round}");
            twins.iter().any(is_ready) && twins.iter().any(is_told) && is_ready(&first)
        })
        .await;
        let inside = usize::from(is_ready(&twins[1]));
        for node in [&first, &twins[inside]] {
            node.lock("x").within(LIMIT).await.unwrap().release().await;
        }
        let briefly = Duration::from_millis(10);
        let refused = twins[1 - inside].lock("x").within(briefly).await.unwrap_err();
        assert!(matches!(refused, Refusal::NotInGroup(_)), "{refused:?}");
        // The place is the other one's when it is free.
        let mut twins = Vec::from(twins);
        twins.remove(inside).stop().await;
        until("the other one is in", || is_ready(&twins[0])).await;
    }
}
