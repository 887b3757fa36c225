//! When messages leave, and what is left of a node that has stopped.

use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use catraca_group::LockIndex;
use tokio::task::{JoinHandle, yield_now};

use super::*;
use crate::limits::{link_to, pair};
use crate::{Guard, Node};

const LIMIT: Duration = Duration::from_secs(60);
const X: Key<'_> = Key { name: "x", permits: 1 };
/// Where it is in its shard, in which it is the only one.
const X_PLACE: LockIndex = LockIndex::FIRST;

/// Member 'a', where somebody has lock 'x' and is expected to ask for it again at once, and
/// who waits for it at 'b'.
async fn a_loop_at_a() -> (Node, Guard, JoinHandle<Result<Guard, Refusal>>) {
    let [a, b] = pair().await;
    let guard = a.lock("x").await.unwrap();
    let arrived = || a.engine.with_shard(X, |shard| shard.counts().arrived);
    let before = arrived();
    let waiting = tokio::spawn(async move { b.lock("x").await });
    let request = async {
        while arrived() == before {
            yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, request).await.expect("'b' asks");
    let now = clock::now();
    a.engine.with_shard(X, |shard| {
        shard.returning.has_left(X_PLACE, now);
        shard.returning.asks(X_PLACE, now);
    });
    (a, guard, waiting)
}

fn unwritten(a: &Node) -> usize {
    link_to(a, "b").unwritten()
}

async fn comes(waiting: JoinHandle<Result<Guard, Refusal>>) {
    let come = tokio::time::timeout(LIMIT, waiting).await.expect("the lock comes");
    assert!(come.unwrap().is_ok());
}

async fn in_a_task(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work).await.unwrap();
}

#[tokio::test]
async fn a_release_leaves_together_with_the_request_that_is_expected() {
    in_a_task(async {
        let (a, guard, waiting) = a_loop_at_a().await;
        let messages = || a.engine.with_shard(X, |shard| shard.counts().messages);
        let before = messages();
        drop(guard);
        assert!(unwritten(&a) > 0, "it waits for the request");
        let mut again = a.lock("x").into_future();
        std::future::poll_fn(|context| {
            assert!(Pin::new(&mut again).poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        assert_eq!((messages() - before, unwritten(&a)), (2, 0), "both are on their way");
        comes(waiting).await;
    })
    .await;
}

#[tokio::test]
async fn a_release_that_no_request_follows_leaves_when_the_task_makes_way() {
    in_a_task(async {
        let (a, guard, waiting) = a_loop_at_a().await;
        drop(guard);
        assert!(unwritten(&a) > 0, "it waits for the request");
        yield_now().await;
        assert_eq!(unwritten(&a), 0);
        comes(waiting).await;
        let is_expected = a.engine.with_shard(X, |shard| shard.returning.is_expected(X_PLACE));
        assert!(!is_expected, "no more");
    })
    .await;
}

#[tokio::test]
async fn a_release_leaves_before_its_node_stops() {
    in_a_task(async {
        let (a, guard, waiting) = a_loop_at_a().await;
        drop(guard);
        assert!(unwritten(&a) > 0, "it waits for the request");
        let link = link_to(&a, "b");
        drop(a);
        assert_eq!(link.unwritten(), 0);
        comes(waiting).await;
    })
    .await;
}

#[tokio::test]
async fn a_release_leaves_at_once_if_nobody_is_expected() {
    in_a_task(async {
        let (a, guard, waiting) = a_loop_at_a().await;
        a.engine.with_shard(X, |shard| shard.returning.has_left(X_PLACE, clock::now()));
        drop(guard);
        assert_eq!(unwritten(&a), 0);
        comes(waiting).await;
    })
    .await;
}

#[tokio::test]
async fn a_release_leaves_at_once_where_no_task_runs() {
    let (a, guard, waiting) = a_loop_at_a().await;
    drop(guard);
    assert_eq!(unwritten(&a), 0);
    comes(waiting).await;
}

#[tokio::test]
async fn nothing_keeps_a_stopped_node_in_memory() {
    let [a, b] = pair().await;
    let engine = Arc::downgrade(&a.engine);
    let held = b.lock("x").await.unwrap();
    let a = Arc::new(a);
    // Somebody waits for one lock, somebody for two, and a client has a session.
    let (one, two) = (Arc::clone(&a), Arc::clone(&a));
    let one = tokio::spawn(async move { one.lock("x").await.map(drop) });
    let two = tokio::spawn(async move { two.lock_all(&["x", "y"]).await.map(drop) });
    let address = a.address().to_string();
    let mut client = catraca_client::Connection::open(&address).await.unwrap();
    client.open_session(Who::default(), None).await.unwrap();
    while a.status().waiting < 2 {
        yield_now().await;
    }
    a.engine.stop();
    assert_eq!(one.await.unwrap(), Err(Refusal::Stopped));
    assert_eq!(two.await.unwrap(), Err(Refusal::Stopped));
    Arc::into_inner(a).unwrap().stop().await;
    drop((client, held));
    let gone = async {
        while engine.strong_count() > 0 {
            yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, gone).await.expect("it is gone");
}
