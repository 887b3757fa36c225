//! Clients of other processes: sessions that end, go on, and are told what they missed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod support;

use std::time::Duration;

use catraca_client::protocol::{ClientMessage, Over, ServerMessage};
use catraca_client::{ClientError, Connection, Page, Query, Refusal, SessionId, Wait, Who};
use catraca_node::Node;
use support::group;
use support::valve::Valve;

const LIMIT: Duration = Duration::from_secs(60);
const TTL: Option<Duration> = Some(LIMIT);

async fn connect(node: &Node) -> Connection {
    Connection::open(&node.address().to_string()).await.unwrap()
}

async fn ask(client: &mut Connection, request: u32, names: &[&str], wait: Wait) {
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    client.acquire(request, &names, 1, wait).await.unwrap();
}

async fn event(client: &mut Connection) -> ServerMessage {
    tokio::time::timeout(LIMIT, client.receive()).await.unwrap().unwrap()
}

async fn fences(client: &mut Connection) -> Vec<u64> {
    match event(client).await {
        ServerMessage::Granted { fences, .. } => fences,
        other => panic!("{other:?}"),
    }
}

async fn listing(node: &Node) -> Page {
    let query = Query { whole_group: true, limit: 100, ..Query::default() };
    connect(node).await.page(query).await.unwrap()
}

#[tokio::test]
async fn a_closed_session_gives_everything_back_at_once() {
    let node = group(1, "naimi-trehel").await.remove(0);
    let mut client = connect(&node).await;
    client.open_session(Who::default(), TTL).await.unwrap();
    ask(&mut client, 1, &["x", "y"], Wait::Forever).await;
    assert_eq!(fences(&mut client).await.len(), 2);
    client.close().await.unwrap();
    assert_eq!(listing(&node).await, Page::default());
    assert!(node.lock("x").or_refuse().await.is_ok());
}

#[tokio::test]
async fn a_session_goes_on_over_another_connection_before_the_first_is_given_up() {
    let node = group(1, "naimi-trehel").await.remove(0);
    let held = node.lock("x").await.unwrap();
    let mut first = connect(&node).await;
    let (session, _) = first.open_session(Who::default(), TTL).await.unwrap();
    ask(&mut first, 1, &["x"], Wait::Forever).await;
    let mut second = connect(&node).await;
    assert_eq!(second.resume(session).await.unwrap().0, session);
    drop(first);
    // Asking again, as after a break, keeps the place. The answer to a renewal shows that the
    // node has noticed the end of the first connection, or will not mind.
    ask(&mut second, 1, &["x"], Wait::Forever).await;
    second.renew().await.unwrap();
    assert!(matches!(event(&mut second).await, ServerMessage::Renewed { .. }));
    while listing(&node).await.lines.len() != 2 {
        tokio::task::yield_now().await;
    }
    drop(held);
    let fence = fences(&mut second).await;
    // What was said may have been lost with a connection: it is said again.
    ask(&mut second, 1, &["x"], Wait::Forever).await;
    assert_eq!(fences(&mut second).await, fence);
}

#[tokio::test]
async fn a_session_that_has_run_out_cannot_be_renewed_or_resumed() {
    let node = group(1, "naimi-trehel").await.remove(0);
    let mut client = connect(&node).await;
    let ttl = Duration::from_millis(100);
    let (session, _) = client.open_session(Who::default(), Some(ttl)).await.unwrap();
    ask(&mut client, 1, &["x"], Wait::Forever).await;
    fences(&mut client).await;
    let over = tokio::time::timeout(LIMIT, client.receive()).await.unwrap();
    assert!(matches!(over, Ok(ServerMessage::Over(Over::Expired))), "{over:?}");
    let late = connect(&node).await.resume(session).await;
    assert!(matches!(late, Err(ClientError::Over(Over::Unknown))), "{late:?}");
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
    client.open_session(Who::default(), None).await.unwrap();
    ask(&mut client, 1, &["b", "a"], Wait::Forever).await;
    let fences = fences(&mut client).await;
    assert!(fences.len() == 2 && fences[0] > fences[1], "{fences:?}");

    let sets = group(1, "bouabdallah-laforest").await.remove(0);
    let mut client = connect(&sets).await;
    client.open_session(Who::default(), None).await.unwrap();
    ask(&mut client, 1, &["b", "a"], Wait::Forever).await;
    match event(&mut client).await {
        ServerMessage::Granted { fences, .. } => {
            assert!(fences.len() == 2 && fences[0] == fences[1]);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_node_that_stops_lets_its_clients_finish_and_the_others_go_on_at_once() {
    let (listeners, addresses) = support::listeners(2).await;
    let mut configs = support::configs(&addresses, "naimi-trehel");
    configs[0].drain = LIMIT;
    let mut nodes = support::group_of(configs, listeners).await;
    let (first, second) = (nodes.remove(0), nodes.remove(0));
    let mut client = connect(&first).await;
    client.open_session(Who::default(), TTL).await.unwrap();
    ask(&mut client, 1, &["x"], Wait::Forever).await;
    let fence = fences(&mut client).await[0];
    let stopping = tokio::spawn(first.stop());
    // Whoever comes now is sent away.
    ask(&mut client, 2, &["y"], Wait::Forever).await;
    let refused = ServerMessage::Refused { request: 2, why: Refusal::Leaving };
    assert_eq!(event(&mut client).await, refused);
    assert_eq!(second.lock("x").or_refuse().await.unwrap_err(), Refusal::Taken);
    assert!(!stopping.is_finished(), "somebody is inside");
    client.release(1).await.unwrap();
    assert_eq!(event(&mut client).await, ServerMessage::Released { request: 1 });
    let next = second.lock("x").within(LIMIT).await.unwrap();
    assert!(next.fence() > fence);
    tokio::time::timeout(LIMIT, stopping).await.unwrap().unwrap();
    let over = tokio::time::timeout(LIMIT, client.receive()).await.unwrap();
    assert!(matches!(over, Ok(ServerMessage::Over(Over::Stopping))), "{over:?}");
}

#[tokio::test]
async fn a_client_that_does_not_finish_is_told_before_anybody_gets_what_it_held() {
    let (listeners, addresses) = support::listeners(2).await;
    let mut configs = support::configs(&addresses, "naimi-trehel");
    for config in &mut configs {
        (config.drain, config.lease) = (Duration::ZERO, Duration::from_secs(4));
    }
    let mut nodes = support::group_of(configs, listeners).await;
    let (first, second) = (nodes.remove(0), nodes.remove(0));
    let mut client = connect(&first).await;
    client.open_session(Who::default(), TTL).await.unwrap();
    ask(&mut client, 1, &["x"], Wait::Forever).await;
    fences(&mut client).await;
    let stopping = tokio::spawn(first.stop());
    let over = tokio::time::timeout(LIMIT, client.receive()).await.unwrap();
    assert!(matches!(over, Ok(ServerMessage::Over(Over::Stopping))), "{over:?}");
    // It has been told, but what it was told before lasts for as long as the node was certain.
    assert_eq!(second.lock("x").or_refuse().await.unwrap_err(), Refusal::Taken);
    assert!(second.lock("x").within(LIMIT).await.is_ok());
    tokio::time::timeout(LIMIT, stopping).await.unwrap().unwrap();
}

#[tokio::test]
async fn long_lists_come_in_pages_and_whole() {
    let node = group(1, "naimi-trehel").await.remove(0);
    let mut client = connect(&node).await;
    let who = Who { label: "l".repeat(10_000), pid: 1, host: "h".repeat(10_000), ..Who::default() };
    client.open_session(who, TTL).await.unwrap();
    for request in 0..2000 {
        ask(&mut client, request, &[&format!("{request:0>250}")], Wait::Forever).await;
        fences(&mut client).await;
    }
    let mut query = Query { whole_group: true, limit: u32::MAX, ..Query::default() };
    let (mut names, mut pages) = (Vec::new(), 0);
    loop {
        let page = client.page(query.clone()).await.unwrap();
        pages += 1;
        assert!(page.lines.iter().all(|line| (line.label.len(), line.host.len()) == (255, 255)));
        names.extend(page.lines.iter().map(|line| line.key.name.clone()));
        query.after = page.lines.last().map(|line| line.key.clone());
        if !page.more {
            break;
        }
    }
    let expected: Vec<String> = (0..2000).map(|request| format!("{request:0>250}")).collect();
    assert_eq!(names, expected);
    assert!(pages > 10, "{pages} pages");
}

#[tokio::test]
async fn a_list_does_not_hold_up_the_renewals_behind_it() {
    // The other member is connected and does not answer.
    let (own, mut addresses) = support::listeners(2).await;
    let valve = Valve::to(addresses[0].clone()).await;
    addresses[0].clone_from(&valve.address);
    let nodes = support::group_of(support::configs(&addresses, "naimi-trehel"), own).await;
    valve.close();
    let mut client = connect(&nodes[0]).await;
    client.open_session(Who::default(), TTL).await.unwrap();
    let query = Query { whole_group: true, limit: 10, ..Query::default() };
    client.send(&ClientMessage::List(query)).await.unwrap();
    client.renew().await.unwrap();
    assert!(matches!(event(&mut client).await, ServerMessage::Renewed { .. }));
    match event(&mut client).await {
        ServerMessage::Page(page) => assert_eq!(page.silent, ["b"]),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn times_that_cannot_be_are_refused_and_long_waits_do_no_harm() {
    let node = group(1, "naimi-trehel").await.remove(0);
    for ttl in [Duration::MAX, Duration::from_secs(86_401), Duration::from_millis(99)] {
        let refused = connect(&node).await.open_session(Who::default(), Some(ttl)).await;
        match refused {
            Err(ClientError::Refused(why)) => assert!(matches!(why, Refusal::Ttl { .. })),
            other => panic!("{other:?}"),
        }
    }
    let mut client = connect(&node).await;
    client.open_session(Who::default(), TTL).await.unwrap();
    let held = node.lock("x").await.unwrap();
    ask(&mut client, 1, &["x"], Wait::AtMost(Duration::MAX)).await;
    ask(&mut client, 2, &["x"], Wait::no()).await;
    let taken = ServerMessage::Refused { request: 2, why: Refusal::Taken };
    assert_eq!(event(&mut client).await, taken);
    drop(held);
    assert_eq!(fences(&mut client).await.len(), 1);
}

#[tokio::test]
async fn nobody_resumes_a_session_with_another_secret_or_at_another_run_of_the_node() {
    let node = group(1, "naimi-trehel").await.remove(0);
    let mut client = connect(&node).await;
    let (session, _) = client.open_session(Who::default(), TTL).await.unwrap();
    ask(&mut client, 1, &["x"], Wait::Forever).await;
    fences(&mut client).await;
    let guess = |incarnation, number, byte| SessionId::new(incarnation, number, [byte; 16]);
    let (run, number) = (session.incarnation, session.number);
    let guesses = (0..=255).map(|byte| guess(run, number, byte)).chain([guess(run, 0, 0)]);
    for guess in guesses {
        let refused = connect(&node).await.resume(guess).await;
        assert!(matches!(refused, Err(ClientError::Over(Over::Unknown))), "{refused:?}");
    }
    assert_eq!(node.lock("x").or_refuse().await.unwrap_err(), Refusal::Taken);
    let restarted = group(1, "naimi-trehel").await.remove(0);
    let mut other = connect(&restarted).await;
    other.open_session(Who::default(), TTL).await.unwrap();
    let refused = connect(&restarted).await.resume(session).await;
    assert!(matches!(refused, Err(ClientError::Over(Over::Unknown))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_of_one_session_are_queued_in_the_order_of_asking() {
    let node = group(1, "naimi-trehel").await.remove(0);
    for _ in 0..50 {
        let held = node.lock("x").await.unwrap();
        let mut client = connect(&node).await;
        client.open_session(Who::default(), TTL).await.unwrap();
        for request in 0..20 {
            ask(&mut client, request, &["x"], Wait::Forever).await;
        }
        drop(held);
        for expected in 0..20 {
            match event(&mut client).await {
                ServerMessage::Granted { request, .. } => assert_eq!(request, expected),
                other => panic!("{other:?}"),
            }
            client.release(expected).await.unwrap();
            assert_eq!(event(&mut client).await, ServerMessage::Released { request: expected });
        }
        client.close().await.unwrap();
    }
}
