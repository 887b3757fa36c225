//! The client library against real nodes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::time::Duration;

use catraca_client::protocol::Over;
use catraca_client::{Client, ClientError, Loss, Query, Refusal};
use support::GENEROUS;
use support::service::{Service, wait_until};

/// Waits for an event, but not for ever.
async fn soon<T>(event: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(GENEROUS, event.into_future()).await.unwrap()
}

async fn connect(addresses: &[String]) -> Client {
    Client::builder().addresses(addresses).connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_holds_a_lock_and_the_next_has_a_larger_fence() {
    let service = Service::start(2, &[]);
    let one = connect(&service.addresses[..1]).await;
    let two = connect(&service.addresses[1..]).await;
    let first = soon(one.lock("x")).await.unwrap();
    let refused = soon(two.try_lock("x")).await.unwrap_err();
    assert!(matches!(refused, ClientError::Refused(Refusal::Taken)), "{refused}");
    let late = soon(two.lock("x").within(Duration::from_millis(20))).await.unwrap_err();
    assert!(matches!(late, ClientError::Refused(Refusal::TimedOut)), "{late}");
    let waiting = tokio::spawn(two.lock("x").into_future());
    wait_until("it waits", || service.locks(0).contains("1 waiter"));
    let before = first.fence();
    soon(first.release()).await.unwrap();
    let second = soon(waiting).await.unwrap().unwrap();
    assert!(before < second.fence() && second.is_valid());
    soon(two.close()).await.unwrap();
    assert_eq!(soon(second.lost()).await, Loss::Over(Over::Closed));
    assert!(service.locks(0).contains("Nobody"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_semaphores_and_lists_work_over_one_session() {
    let service = Service::start(1, &[]);
    let client = connect(&service.addresses).await;
    let set = soon(client.lock_all(["b", "a"])).await.unwrap();
    assert_eq!((set.names(), set.fences().len()), (&["b".to_string(), "a".into()][..], 2));
    let places = [
        soon(client.semaphore("s", 2)).await.unwrap(),
        soon(client.semaphore("s", 2)).await.unwrap(),
    ];
    assert_ne!(places[0].fence(), places[1].fence());
    assert_eq!(client.status().await.unwrap().sessions, 1);
    let mut pages = client.locks(Query { limit: 3, ..Query::default() }).await.unwrap();
    let mut names = Vec::new();
    while let Some(page) = soon(pages.next_page()).await.unwrap() {
        names.extend(page.lines.into_iter().map(|line| line.key.name));
    }
    assert_eq!(names, ["a", "b", "s", "s"]);
    drop((set, places));
    drop(client);
    wait_until("all is free", || service.locks(0).contains("Nobody"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_costs_what_was_held_and_the_next_one_serves() {
    // The registry of a group of two is at the first: it is the second that goes.
    let mut service = Service::start(2, &["--lease", "2s", "--drain", "0s"]);
    service.addresses.reverse();
    let client = connect(&service.addresses).await;
    let guard = soon(client.lock("x")).await.unwrap();
    let node = service.nodes.remove(1);
    node.signal("TERM");
    assert_eq!(soon(guard.lost()).await, Loss::Over(Over::Stopping));
    node.ends();
    let next = soon(client.lock("x")).await.unwrap();
    assert_eq!(client.address(), service.addresses[1]);
    assert!(next.fence() > guard.fence());
}
