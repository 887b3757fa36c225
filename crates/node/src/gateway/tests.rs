//! Timed and durable holds through the gateway, at one node and at two.

use std::time::Duration;

use super::*;
use crate::limits::{alone, pair};
use crate::{Node, Selection};

const TTL: Duration = Duration::from_secs(60);
const LIMIT: Duration = Duration::from_secs(60);

fn asking(name: &str, token: &[u8]) -> Asking {
    let who = Who { label: "test".to_string(), ..Who::default() };
    let (names, wait) = (vec![name.to_string()], Wait::Forever);
    Asking { names, permits: 1, wait, ttl: TTL, who, token: token.to_vec() }
}

fn named(name: &str, token: &[u8]) -> Which {
    Which::Name { name: name.to_string(), token: Some(token.to_vec()) }
}

/// Waits for what comes soon.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, what).await.expect("it comes soon")
}

async fn waiters(node: &Node, name: &str) -> usize {
    let names = Selection::Name(name.to_string());
    let query = Query { whole_group: true, names, limit: 100, ..Query::default() };
    let page = soon(node.gateway().page(query)).await.unwrap();
    page.lines.iter().filter(|line| line.fence.is_none()).count()
}

#[tokio::test]
async fn a_hold_is_renewed_and_released_at_the_other_member() {
    let nodes = pair().await;
    let [a, b] = nodes.each_ref().map(Node::gateway);
    let hold = soon(a.acquire(asking("x", b"mine"))).await.unwrap();
    assert_eq!((hold.member.as_str(), hold.left <= TTL), ("a", true));
    let found = soon(b.look(&Which::Id(hold.id))).await.unwrap();
    assert_eq!((&found.fences, &*found.member), (&hold.fences, "a"));
    let renewed = soon(b.renew(&named("x", b"mine"), Renewal::To(2 * TTL))).await.unwrap();
    assert_eq!(renewed.ttl, 2 * TTL);
    for gateway in [a, b] {
        let other = soon(gateway.release(&named("x", b"yours"))).await;
        assert_eq!(other, Err(Refusal::OtherHolder("x".to_string())));
    }
    let released = soon(b.release(&named("x", b"mine"))).await.unwrap();
    assert_eq!(released.id, hold.id);
    for gateway in [a, b] {
        let gone = soon(gateway.release(&Which::Id(hold.id))).await;
        assert_eq!(gone, Err(Refusal::NoSuchHold(hold.id.to_string())));
    }
    let next = soon(b.acquire(asking("x", b"next"))).await.unwrap();
    assert!(next.fences > hold.fences);
}

#[tokio::test]
async fn who_goes_away_while_it_waits_leaves_nothing_behind() {
    let node = alone().await;
    let gateway = node.gateway();
    let hold = soon(gateway.acquire(asking("x", b"one"))).await.unwrap();
    let waiting = tokio::spawn({
        let gateway = gateway.clone();
        async move { gateway.acquire(asking("x", b"two")).await }
    });
    while waiters(&node, "x").await == 0 {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!((waiters(&node, "x").await, node.engine.waiting_askers()), (0, 0));
    soon(gateway.release(&Which::Id(hold.id))).await.unwrap();
    let next = soon(gateway.acquire(asking("x", b"three"))).await.unwrap();
    assert!(next.fences > hold.fences);
}

#[tokio::test]
async fn a_hold_that_is_granted_to_somebody_who_is_gone_is_released_at_once() {
    let node = alone().await;
    let gateway = node.gateway();
    let hold = soon(gateway.acquire(asking("x", b"one"))).await.unwrap();
    let mut waiting = Box::pin(gateway.acquire(asking("x", b"two")));
    // It has asked, and will be granted the lock before it is polled again.
    assert!(polled_once(&mut waiting).is_none());
    soon(gateway.release(&Which::Id(hold.id))).await.unwrap();
    let holder = soon(gateway.look(&named("x", b"two"))).await.unwrap();
    drop(waiting);
    let gone = soon(gateway.look(&Which::Id(holder.id))).await;
    assert_eq!(gone, Err(Refusal::NoSuchHold(holder.id.to_string())));
    assert_eq!(node.engine.waiting_askers(), 0);
}

/// What a future has come to, if it has, after one look at it.
fn polled_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::Pin::new(future).poll(&mut context) {
        std::task::Poll::Ready(done) => Some(done),
        std::task::Poll::Pending => None,
    }
}

#[tokio::test]
async fn a_hold_that_nobody_renews_ends_by_itself() {
    let node = alone().await;
    let gateway = node.gateway();
    let ttl = Duration::from_millis(1);
    let short = Asking { ttl, ..asking("x", b"one") };
    let hold = soon(gateway.acquire(short)).await.unwrap();
    let next = soon(gateway.acquire(asking("x", b"two"))).await.unwrap();
    assert!(next.fences > hold.fences);
    let late = soon(gateway.renew(&Which::Id(hold.id), Renewal::To(TTL))).await;
    assert_eq!(late, Err(Refusal::NoSuchHold(hold.id.to_string())));
}

#[tokio::test]
async fn durable_holds_are_asked_for_looked_at_and_released() {
    let node = alone().await;
    let gateway = node.gateway();
    let asked = AcquireDurable {
        names: vec!["x".to_string()],
        permits: 1,
        wait: Wait::Forever,
        owner: "anna".to_string(),
        note: "why".to_string(),
        request: "1".to_string(),
    };
    let hold = soon(gateway.acquire_durable(asked.clone(), "")).await.unwrap();
    for target in [Target::Id(hold.id), Target::Name("x".to_string())] {
        assert_eq!(soon(gateway.durable(target)).await.as_ref(), Ok(&hold));
    }
    // Looking has not released it.
    let other = AcquireDurable { request: "2".to_string(), wait: Wait::no(), ..asked };
    assert_eq!(soon(gateway.acquire_durable(other, "")).await, Err(Refusal::Taken));
    let unlock = |owner: &str| {
        let owner = Some(owner.to_string());
        Unlock { target: Target::Name("x".to_string()), owner }
    };
    let not_mine = soon(gateway.unlock(unlock("bert"), "")).await;
    assert_eq!(not_mine, Err(Refusal::NotOwner("anna".to_string())));
    assert_eq!(soon(gateway.unlock(unlock("anna"), "")).await, Ok(hold.clone()));
    let gone = soon(gateway.durable(Target::Id(hold.id))).await;
    assert_eq!(gone, Err(Refusal::NoSuchHold(hold.id.to_string())));
}

#[tokio::test]
async fn nobody_waits_for_ever_for_a_node_that_stops() {
    let node = alone().await;
    let gateway = node.gateway().clone();
    soon(gateway.acquire(asking("x", b"one"))).await.unwrap();
    let waiting = tokio::spawn({
        let gateway = gateway.clone();
        async move { gateway.acquire(asking("x", b"two")).await }
    });
    while waiters(&node, "x").await == 0 {
        tokio::task::yield_now().await;
    }
    drop(node);
    assert_eq!(soon(waiting).await.unwrap(), Err(Refusal::Stopped));
    assert_eq!(soon(gateway.acquire(asking("y", b""))).await, Err(Refusal::Stopped));
    assert_eq!(soon(gateway.look(&named("x", b"one"))).await, Err(Refusal::Stopped));
    let target = Target::Name("x".to_string());
    assert_eq!(soon(gateway.durable(target)).await, Err(Refusal::Stopped));
    let whole = Query { whole_group: true, limit: 1, ..Query::default() };
    assert_eq!(soon(gateway.page(whole)).await, Err(Refusal::Stopped));
}

/// The hold with this id, when the node knows it as its own.
async fn moved_to(node: &Node, id: HoldId) -> TimedHold {
    let own = async {
        loop {
            match node.gateway().look(&Which::Id(id)).await {
                Ok(hold) => break hold,
                Err(Refusal::NoSuchHold(_)) => panic!("the hold is lost"),
                // The group has yet to go on without the other one.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    soon(own).await
}

#[tokio::test]
async fn a_hold_is_handed_over_by_a_member_that_stops() {
    let [a, b] = pair().await;
    let hold = soon(a.gateway().acquire(asking("x", b"mine"))).await.unwrap();
    soon(a.stop()).await;
    let found = moved_to(&b, hold.id).await;
    assert_eq!((found.member.as_str(), &found.fences), ("b", &hold.fences));
    let taken = Asking { wait: Wait::no(), ..asking("x", b"other") };
    assert_eq!(soon(b.gateway().acquire(taken)).await, Err(Refusal::Taken));
    soon(b.gateway().release(&named("x", b"mine"))).await.unwrap();
    let next = soon(b.gateway().acquire(asking("x", b"other"))).await.unwrap();
    assert!(next.fences > hold.fences);
}

#[tokio::test]
async fn a_hold_survives_the_crash_of_its_member() {
    let [a, b] = pair().await;
    let hold = soon(a.gateway().acquire(asking("x", b"mine"))).await.unwrap();
    drop(a);
    let found = moved_to(&b, hold.id).await;
    assert_eq!((found.member.as_str(), found.fences), ("b", hold.fences));
    let renewed = soon(b.gateway().renew(&named("x", b"mine"), Renewal::To(TTL))).await;
    assert_eq!(renewed.unwrap().ttl, TTL);
}

#[tokio::test]
async fn the_newest_fence_is_that_of_whoever_was_inside_last() {
    let nodes = pair().await;
    let [a, b] = nodes.each_ref().map(Node::gateway);
    assert_eq!(soon(a.newest_fence("x", 1)).await, Ok(None));
    let hold = soon(a.acquire(asking("x", b"mine"))).await.unwrap();
    assert_eq!(soon(b.newest_fence("x", 1)).await, Ok(Some(hold.fences[0])));
    soon(a.release(&Which::Id(hold.id))).await.unwrap();
    assert_eq!(soon(b.newest_fence("x", 1)).await, Ok(Some(hold.fences[0])));
}

#[test]
fn one_identity_has_so_many_requests_under_way_and_others_theirs() {
    let under_way = UnderWay::default();
    let mut turns: Vec<_> = (0..MOST_REQUESTS).map(|_| under_way.begin("job").unwrap()).collect();
    assert_eq!(under_way.begin("job").err(), Some(Refusal::TooManyRequests));
    assert!(under_way.begin("other").is_ok_and(|turn| turn.is_some()));
    assert!(under_way.begin("").is_ok_and(|turn| turn.is_none()), "nobody in particular");
    turns.pop();
    turns.push(under_way.begin("job").unwrap());
    assert!(under_way.begin("job").is_err());
    drop(turns);
    assert!(hold(&under_way.0).is_empty());
}
