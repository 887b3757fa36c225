//! Clients of other processes: sessions that end, go on, and are told what they missed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod support;

use std::time::Duration;

use catraca_node::{Client, ClientError, Denial, Event, Listing, Node, Wait, Who};
use support::group;

const LIMIT: Duration = Duration::from_secs(60);
const TTL: Option<Duration> = Some(LIMIT);

async fn connect(node: &Node) -> Client {
    Client::connect(&node.address().to_string()).await.unwrap()
}

async fn ask(client: &mut Client, request: u32, names: &[&str], wait: Wait) {
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    client.lock(request, &names, 1, wait).await.unwrap();
}

async fn event(client: &mut Client) -> Event {
    tokio::time::timeout(LIMIT, client.event()).await.unwrap().unwrap()
}

async fn fences(client: &mut Client) -> Vec<u64> {
    match event(client).await {
        Event::Granted { fences, .. } => fences,
        other => panic!("{other:?}"),
    }
}

async fn listing(node: &Node) -> Listing {
    connect(node).await.locks(true).await.unwrap()
}

#[tokio::test]
async fn a_closed_session_gives_everything_back_at_once() {
    let node = group(1, "naimi-trehel").await.remove(0);
    let mut client = connect(&node).await;
    client.open(Who::default(), TTL).await.unwrap();
    ask(&mut client, 1, &["x", "y"], Wait::Endless).await;
    assert_eq!(fences(&mut client).await.len(), 2);
    client.close().await.unwrap();
    assert_eq!(listing(&node).await, Listing::default());
    assert!(node.lock("x").or_refuse().await.is_ok());
}

#[tokio::test]
async fn a_session_goes_on_over_another_connection_before_the_first_is_given_up() {
    let node = group(1, "naimi-trehel").await.remove(0);
    let held = node.lock("x").await.unwrap();
    let mut first = connect(&node).await;
    let session = first.open(Who::default(), TTL).await.unwrap();
    ask(&mut first, 1, &["x"], Wait::Endless).await;
    let mut second = connect(&node).await;
    assert_eq!(second.resume(session).await.unwrap(), session);
    drop(first);
    // Asking again, as after a break, keeps the place. The answer to a sign of life shows that the
    // node has noticed the end of the first connection, or will not mind.
    ask(&mut second, 1, &["x"], Wait::Endless).await;
    second.alive().await.unwrap();
    assert_eq!(event(&mut second).await, Event::Alive);
    while listing(&node).await.lines.len() != 2 {
        tokio::task::yield_now().await;
    }
    drop(held);
    let fence = fences(&mut second).await;
    // What was said may have been lost with a connection: it is said again.
    ask(&mut second, 1, &["x"], Wait::Endless).await;
    assert_eq!(fences(&mut second).await, fence);
}

#[tokio::test]
async fn a_session_that_has_run_out_cannot_be_renewed_or_resumed() {
    let node = group(1, "naimi-trehel").await.remove(0);
    let mut client = connect(&node).await;
    let ttl = Duration::from_millis(100);
    let session = client.open(Who::default(), Some(ttl)).await.unwrap();
    ask(&mut client, 1, &["x"], Wait::Endless).await;
    fences(&mut client).await;
    let over = tokio::time::timeout(LIMIT, client.event()).await.unwrap();
    assert!(matches!(over, Err(ClientError::Over)), "{over:?}");
    let late = connect(&node).await.resume(session).await;
    assert!(matches!(late, Err(ClientError::Over)), "{late:?}");
    assert!(node.lock("x").or_refuse().await.is_ok());
}

#[tokio::test]
async fn there_is_a_fence_for_each_name_in_the_order_of_asking() {
    let node = group(1, "naimi-trehel").await.remove(0);
    // The fence of "b" is ahead of that of "a".
    for _ in 0..3 {
        drop(node.lock("b").await.unwrap());
    }
    let mut client = connect(&node).await;
    client.open(Who::default(), None).await.unwrap();
    ask(&mut client, 1, &["b", "a"], Wait::Endless).await;
    let fences = fences(&mut client).await;
    assert!(fences.len() == 2 && fences[0] > fences[1], "{fences:?}");

    let sets = group(1, "bouabdallah-laforest").await.remove(0);
    let mut client = connect(&sets).await;
    client.open(Who::default(), None).await.unwrap();
    ask(&mut client, 1, &["b", "a"], Wait::Endless).await;
    match event(&mut client).await {
        Event::Granted { fences, .. } => assert!(fences.len() == 2 && fences[0] == fences[1]),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_node_that_stops_tells_its_clients_and_gives_nothing_away() {
    let mut nodes = group(2, "naimi-trehel").await;
    let (first, second) = (nodes.remove(0), nodes.remove(0));
    let mut client = connect(&first).await;
    client.open(Who::default(), TTL).await.unwrap();
    ask(&mut client, 1, &["x"], Wait::Endless).await;
    fences(&mut client).await;
    let waiting = second.lock("x").within(Duration::from_millis(500));
    let (waited, ()) = tokio::join!(waiting.into_future(), first.stop());
    assert!(waited.is_err(), "the client has had no time to stop its work");
    let over = tokio::time::timeout(LIMIT, client.event()).await.unwrap();
    assert!(matches!(over, Err(ClientError::Over)), "{over:?}");
    drop(client);
    let waited = second.lock("x").within(Duration::from_millis(200)).await;
    assert!(waited.is_err(), "nor does its going free what the node had");
}

#[tokio::test]
async fn long_lists_come_whole() {
    let node = group(1, "naimi-trehel").await.remove(0);
    let mut client = connect(&node).await;
    let who = Who { label: "l".repeat(100_000), pid: 1, host: "h".repeat(100_000) };
    client.open(who, TTL).await.unwrap();
    for request in 0..2000 {
        ask(&mut client, request, &[&format!("{request:0>250}")], Wait::Endless).await;
        fences(&mut client).await;
    }
    let listing = listing(&node).await;
    assert_eq!(listing.lines.len(), 2000);
    assert_eq!((listing.lines[7].label.len(), listing.lines[7].host.len()), (255, 255));
}

#[tokio::test]
async fn times_that_cannot_be_do_no_harm() {
    let node = group(1, "naimi-trehel").await.remove(0);
    let mut client = connect(&node).await;
    client.open(Who::default(), Some(Duration::MAX)).await.unwrap();
    client.alive().await.unwrap();
    assert_eq!(event(&mut client).await, Event::Alive);
    let held = node.lock("x").await.unwrap();
    ask(&mut client, 1, &["x"], Wait::Millis(u64::MAX)).await;
    ask(&mut client, 2, &["x"], Wait::Not).await;
    assert_eq!(event(&mut client).await, Event::Denied { request: 2, why: Denial::Taken });
    drop(held);
    assert_eq!(fences(&mut client).await.len(), 1);
}
