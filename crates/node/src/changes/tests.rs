//! What subscribers of one node are told, and what they are told they have missed.

use std::time::Duration;

use catraca_client::Connection;
use catraca_group::{Acquire, Key, Owner, Wait, Who};

use super::queue::MOST_UNREAD;
use super::recent::MOST_KEPT;
use super::*;
use crate::testing::{LIMIT, alone};
use crate::{Config, Node};

async fn next(subscription: &mut Subscription) -> Item {
    let next = tokio::time::timeout(LIMIT, subscription.next()).await.expect("something comes");
    next.expect("the node runs")
}

async fn change(subscription: &mut Subscription) -> Arc<Change> {
    match next(subscription).await {
        Item::Change(change) => change,
        Item::Gap(_) => panic!("a gap"),
    }
}

/// What happens next, to which lock, and because of whom.
async fn told(subscription: &mut Subscription) -> (What, String, String) {
    let change = change(subscription).await;
    (change.what, change.name.clone(), change.label.clone())
}

fn of(what: What, name: &str, label: &str) -> (What, String, String) {
    (what, name.to_string(), label.to_string())
}

/// A session with this label that has asked for a lock.
fn session(node: &Node, label: &str, ttl: Option<Duration>, name: &str) -> Owner {
    let who = Who { label: label.to_string(), ..Who::default() };
    let asked = Acquire { names: vec![name.to_string()], permits: 1, wait: Wait::Forever };
    node.engine.serve(|service, parts, out| {
        let owner = Owner(service.open(who, ttl, [1; 16], parts).unwrap().number);
        service.request(owner, 1, asked, parts, out);
        owner
    })
}

#[tokio::test]
async fn subscribers_hear_what_happens_to_the_names_that_they_asked_for() {
    let node = alone().await;
    let mut all = node.engine.changes(String::new(), None);
    let mut ci = node.engine.changes("ci/".to_string(), None);
    let first = node.lock("ci/x").await.unwrap();
    drop(node.lock("other").await.unwrap());
    let owner = session(&node, "job 7", None, "ci/x");
    let fence = first.fence();
    drop(first);
    node.engine.serve(|service, parts, out| service.close(owner, parts, out));

    let granted = change(&mut all).await;
    assert_eq!((granted.what, granted.fence, granted.permits), (What::Granted, Some(fence), 1));
    assert_eq!((&*granted.member, &*granted.label), (&*node.status().node, PROGRAM));
    let mut last = granted.number;
    let expected = [
        of(What::Granted, "other", PROGRAM),
        of(What::Released, "other", PROGRAM),
        of(What::Waits, "ci/x", "job 7"),
        of(What::Released, "ci/x", PROGRAM),
        of(What::Granted, "ci/x", "job 7"),
        of(What::Released, "ci/x", "job 7"),
    ];
    for expected in expected {
        let change = change(&mut all).await;
        assert_eq!((change.what, change.name.clone(), change.label.clone()), expected);
        assert!(change.number > last, "numbers only grow");
        last = change.number;
    }
    let whats = [What::Granted, What::Waits, What::Released, What::Granted, What::Released];
    for what in whats {
        assert_eq!(change(&mut ci).await.what, what);
    }
}

#[tokio::test]
async fn a_set_is_told_name_by_name() {
    let mut config = Config::alone();
    config.listen = Some("127.0.0.1:0".to_string());
    config.namespaces.push(crate::Namespace::new("*", "bouabdallah-laforest"));
    let node = Node::start(config).await.unwrap();
    node.ready().await.unwrap();
    let mut all = node.engine.changes(String::new(), None);
    drop(node.lock_all(&["b", "a"]).await.unwrap());
    let mut happened = Vec::new();
    while happened.len() < 4 {
        let told = told(&mut all).await;
        // Whether it has to wait for itself is its algorithm's business.
        if told.0 != What::Waits {
            happened.push(told);
        }
    }
    let expected = [What::Granted, What::Released]
        .into_iter()
        .flat_map(|what| ["a", "b"].map(|name| of(what, name, PROGRAM)));
    assert_eq!(happened, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn what_a_session_held_that_has_run_out_is_lost() {
    let node = alone().await;
    let mut all = node.engine.changes(String::new(), None);
    session(&node, "sleeper", Some(Duration::from_millis(100)), "x");
    assert_eq!(told(&mut all).await, of(What::Granted, "x", "sleeper"));
    assert_eq!(told(&mut all).await, of(What::Lost, "x", "sleeper"));
}

#[tokio::test]
async fn whoever_was_there_before_anybody_watched_has_a_name_when_it_leaves() {
    let node = alone().await;
    let owner = session(&node, "early", None, "x");
    let mut all = node.engine.changes(String::new(), None);
    node.engine.serve(|service, parts, out| service.close(owner, parts, out));
    assert_eq!(told(&mut all).await, of(What::Released, "x", "early"));
}

#[tokio::test]
async fn who_comes_back_misses_nothing() {
    let node = alone().await;
    let mut first = node.engine.changes(String::new(), None);
    drop(node.lock("x").await.unwrap());
    let seen = change(&mut first).await.number;
    change(&mut first).await;
    drop(first);
    drop(node.lock("y").await.unwrap());
    let mut second = node.engine.changes(String::new(), Some(seen));
    for expected in [(What::Released, "x"), (What::Granted, "y"), (What::Released, "y")] {
        let change = change(&mut second).await;
        assert_eq!((change.what, &*change.name), expected);
    }
}

#[tokio::test]
async fn who_comes_back_to_another_run_or_too_late_is_told_of_a_gap() {
    let node = alone().await;
    let mut first = node.engine.changes(String::new(), None);
    drop(node.lock("x").await.unwrap());
    let seen = change(&mut first).await.number;
    for wrong in [0, 1, seen ^ 1, seen + (100 << 10), u64::MAX] {
        let mut other = node.engine.changes(String::new(), Some(wrong));
        assert!(matches!(next(&mut other).await, Item::Gap(_)), "{wrong}");
    }
    for _ in 0..=MOST_KEPT / 2 {
        drop(node.lock("x").await.unwrap());
        while let Ok(Some(_)) = tokio::time::timeout(Duration::ZERO, first.next()).await {}
        tokio::task::yield_now().await;
    }
    let mut late = node.engine.changes(String::new(), Some(seen));
    let Item::Gap(number) = next(&mut late).await else { panic!("it is not complete") };
    drop(node.lock("z").await.unwrap());
    let mut again = node.engine.changes("z".to_string(), Some(number));
    assert_eq!(change(&mut again).await.what, What::Granted, "what came after the gap is there");
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_has_a_gap_and_then_what_comes_after_it() {
    let node = alone().await;
    let mut slow = node.engine.changes(String::new(), None);
    let mut other = node.engine.changes("last".to_string(), None);
    for _ in 0..=MOST_UNREAD / 2 {
        drop(node.lock("x").await.unwrap());
        tokio::task::yield_now().await;
    }
    drop(node.lock("last").await.unwrap());
    assert_eq!(change(&mut other).await.what, What::Granted, "others are not held up");
    let mut items = 0;
    while let Item::Change(_) = next(&mut slow).await {
        items += 1;
    }
    assert_eq!(items, 0, "the gap stands for all that was not read");
    loop {
        let change = change(&mut slow).await;
        if (change.what, &*change.name) == (What::Released, "last") {
            break;
        }
    }
}

#[tokio::test]
async fn more_notes_than_there_is_room_for_are_a_gap() {
    let node = alone().await;
    let mut all = node.engine.changes(String::new(), None);
    // Nobody passes anything on while this task does not wait.
    let key = Key { name: "x", permits: 1 };
    for _ in 0..=MOST_NOTES {
        let asked = node.engine.acquire(key).unwrap();
        node.engine.release(asked.place);
    }
    let gap = async { while let Item::Change(_) = next(&mut all).await {} };
    tokio::time::timeout(LIMIT, gap).await.expect("it is said that something is missing");
}

#[tokio::test]
async fn a_subscription_ends_with_the_node_and_one_made_afterwards_at_once() {
    let node = alone().await;
    let engine = Arc::clone(&node.engine);
    let mut all = engine.changes(String::new(), None);
    drop(node.lock("x").await.unwrap());
    assert_eq!(change(&mut all).await.what, What::Granted);
    node.stop().await;
    let rest = async { while all.next().await.is_some() {} };
    tokio::time::timeout(LIMIT, rest).await.expect("it ends");
    assert_eq!(engine.changes(String::new(), None).next().await, None);
}

#[tokio::test]
async fn where_nobody_watches_nothing_is_noted() {
    let node = alone().await;
    drop(node.lock("x").await.unwrap());
    assert!(!node.engine.watching().is_watched());
    assert!(node.engine.watching().take().0.is_empty());
    let all = node.engine.changes(String::new(), None);
    assert!(node.engine.watching().is_watched());
    drop(all);
    assert!(node.engine.watching().is_watched(), "somebody may come back");
    node.engine.watching().rest();
    assert!(!node.engine.watching().is_watched());
}

#[tokio::test]
async fn a_client_of_another_process_is_told_by_its_label() {
    let node = alone().await;
    let mut all = node.engine.changes(String::new(), None);
    let mut client = Connection::open(&node.address().to_string()).await.unwrap();
    let who = Who { label: "deploy".to_string(), ..Who::default() };
    client.open_session(who, None).await.unwrap();
    client.acquire(1, &["x".to_string()], 1, Wait::Forever).await.unwrap();
    assert_eq!(told(&mut all).await, of(What::Granted, "x", "deploy"));
    drop(client);
    assert_eq!(told(&mut all).await, of(What::Released, "x", "deploy"));
}

mod of_the_group {
    use super::*;
    use crate::limits::valve::Valve;
    use crate::testing::group;

    /// Waits for the gap after which everything of all members is heard.
    async fn all_heard(subscription: &mut Subscription, sources: usize) {
        assert!(matches!(next(subscription).await, Item::Gap(_)));
        // Gaps that come together are one.
        for _ in 1..sources {
            let more = tokio::time::timeout(Duration::from_secs(2), subscription.next()).await;
            assert!(matches!(more, Err(_) | Ok(Some(Item::Gap(_)))));
        }
    }

    #[tokio::test]
    async fn a_subscriber_hears_what_happens_at_the_other_members() {
        let (nodes, _valves) = group(2, Duration::from_secs(15)).await;
        let mut all = nodes[0].engine.changes("job/".to_string(), None);
        all_heard(&mut all, 1).await;
        let owner = session(&nodes[1], "far away", None, "job/1");
        nodes[1].engine.serve(|service, parts, out| service.close(owner, parts, out));
        loop {
            let change = change(&mut all).await;
            assert_eq!((&*change.member, &*change.label), ("b", "far away"));
            if change.what == What::Released {
                break;
            }
        }
        drop(all);
        nodes[0].engine.watching().rest();
        let rests = async {
            hold(&nodes[0].engine.watching().audience).idle_since = None;
            while nodes[1].engine.watching().is_watched() {
                nodes[0].engine.watching().noted.notify_one();
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LIMIT, rests).await.expect("nothing is noted where nobody watches");
    }

    #[tokio::test]
    async fn a_member_that_is_lost_is_a_gap() {
        let (mut nodes, _valves) = group(3, Duration::from_secs(2)).await;
        let mut all = nodes[0].engine.changes(String::new(), None);
        all_heard(&mut all, 2).await;
        drop(nodes.pop());
        assert!(matches!(next(&mut all).await, Item::Gap(_)));
        drop(nodes[1].lock("x").await.unwrap());
        let granted = async {
            while !matches!(next(&mut all).await, Item::Change(change) if change.what == What::Granted)
            {
            }
        };
        tokio::time::timeout(LIMIT, granted).await.expect("the others are heard");
    }

    #[tokio::test]
    async fn a_member_that_is_cut_off_is_a_gap_and_not_silence() {
        let (nodes, valves) = group(2, Duration::from_secs(60)).await;
        let mut all = nodes[0].engine.changes(String::new(), None);
        all_heard(&mut all, 1).await;
        valves.iter().for_each(Valve::close);
        assert!(matches!(next(&mut all).await, Item::Gap(_)), "it is not heard");
        valves.iter().for_each(Valve::open);
        assert!(matches!(next(&mut all).await, Item::Gap(_)), "and then it is");
    }
}
