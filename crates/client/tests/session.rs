//! A client and a node that says what a test tells it to say.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::time::Duration;

use catraca_client::protocol::{ClientMessage, Over, ServerMessage};
use catraca_client::{
    Client, ClientError, Line, LineKey, Loss, Page, Query, Refusal, Wait, Who, clock,
};
use support::{Fake, GENEROUS, LONG, dead_address, soon};

#[tokio::test]
async fn a_lock_is_granted_with_its_fence_and_free_when_the_node_says_so() {
    let fake = Fake::listen().await;
    let (client, mut peer) = fake.connected().await;
    let (guard, request) = tokio::join!(client.lock("x").into_future(), peer.grant("x", 41));
    let guard = guard.unwrap();
    assert_eq!((guard.fence(), guard.fences(), guard.names()), (41, &[41][..], &["x".into()][..]));
    assert!(guard.is_valid() && clock::now() < guard.valid_until() && guard.loss().is_none());
    let release = tokio::spawn(guard.release());
    assert_eq!(peer.hear().await, ClientMessage::Release { request });
    assert!(!release.is_finished());
    peer.say(&[ServerMessage::Released { request }]).await;
    soon(release).await.unwrap().unwrap();
    let (closed, ()) = tokio::join!(client.close(), peer.hear_close());
    closed.unwrap();
}

#[tokio::test]
async fn a_session_says_who_the_client_is() {
    let fake = Fake::listen().await;
    let who = Who { label: "l".repeat(300), pid: 7, host: "h".to_string(), ..Who::default() };
    let opening = tokio::spawn(fake.client().who(who).connect());
    let mut peer = fake.accept(1).await;
    let ClientMessage::Open { who, ttl } = peer.hear().await else { panic!() };
    assert_eq!((who.label.len(), who.pid, who.host.as_str(), ttl), (255, 7, "h", Some(LONG)));
    peer.say(&[ServerMessage::Refused { request: 0, why: Refusal::TooManySessions }]).await;
    let refused = soon(opening).await.unwrap().err().unwrap();
    assert_eq!(refused.refusal(), Some(&Refusal::TooManySessions));
}

#[tokio::test]
async fn sets_and_semaphores_are_asked_for_as_such() {
    let fake = Fake::listen().await;
    let (client, mut peer) = fake.connected().await;
    let set = tokio::spawn(client.lock_all(["b", "a"]).into_future());
    let names = vec!["b".to_string(), "a".to_string()];
    let (permits, wait) = (1, Wait::Forever);
    assert_eq!(peer.hear().await, ClientMessage::Acquire { request: 1, names, permits, wait });
    peer.say(&[ServerMessage::Granted { request: 1, fences: vec![5, 6] }]).await;
    assert_eq!(soon(set).await.unwrap().unwrap().fences(), [5, 6]);
    assert_eq!(peer.hear().await, ClientMessage::Release { request: 1 });
    let place = tokio::spawn(client.semaphore("s", 3).within(GENEROUS).into_future());
    let ClientMessage::Acquire { names, permits: 3, wait: Wait::AtMost(left), .. } =
        peer.hear().await
    else {
        panic!()
    };
    assert!(names == ["s"] && left <= GENEROUS, "{left:?}");
    peer.say(&[ServerMessage::Refused { request: 2, why: Refusal::TimedOut }]).await;
    let refused = soon(place).await.unwrap().unwrap_err();
    assert!(matches!(refused, ClientError::Refused(Refusal::TimedOut)), "{refused}");
}

#[tokio::test]
async fn what_a_node_would_not_even_read_is_refused_here() {
    let fake = Fake::listen().await;
    let (client, _peer) = fake.connected().await;
    let refused = async |acquire: catraca_client::Acquire| {
        soon(acquire).await.unwrap_err().refusal().unwrap().code()
    };
    assert_eq!(refused(client.lock("a b")).await, "bad-name");
    assert_eq!(refused(client.lock_all([""; 0])).await, "no-names");
    let many = (0..1000).map(|number| format!("{number:0>255}"));
    assert_eq!(refused(client.lock_all(many)).await, "too-many-names");
}

#[tokio::test]
async fn whoever_does_not_want_to_wait_is_refused() {
    let fake = Fake::listen().await;
    let (client, mut peer) = fake.connected().await;
    let trying = tokio::spawn(client.try_lock("x").into_future());
    let request = peer.hear_ask("x", Wait::no()).await;
    peer.say(&[ServerMessage::Refused { request, why: Refusal::Taken }]).await;
    let refused = soon(trying).await.unwrap().unwrap_err();
    assert!(matches!(refused, ClientError::Refused(Refusal::Taken)), "{refused}");
}

#[tokio::test]
async fn a_node_that_says_nothing_does_not_prolong_a_limited_wait() {
    let fake = Fake::listen().await;
    let (client, mut peer) = fake.connected().await;
    let refused = soon(client.lock("x").within(Duration::from_millis(10))).await.unwrap_err();
    assert!(matches!(refused, ClientError::Refused(Refusal::TimedOut)), "{refused}");
    let ClientMessage::Acquire { request, .. } = peer.hear().await else { panic!() };
    assert_eq!(peer.hear().await, ClientMessage::Release { request });
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_is_taken_back() {
    let fake = Fake::listen().await;
    let (client, mut peer) = fake.connected().await;
    let waiting = tokio::spawn(client.lock("x").into_future());
    let request = peer.hear_ask("x", Wait::Forever).await;
    waiting.abort();
    assert_eq!(peer.hear().await, ClientMessage::Release { request });
}

#[tokio::test]
async fn a_session_is_closed_when_its_client_and_all_guards_are_gone() {
    let fake = Fake::listen().await;
    let (client, mut peer) = fake.connected().await;
    let (guard, request) = tokio::join!(client.lock("x").into_future(), peer.grant("x", 1));
    drop(client);
    drop(guard);
    assert_eq!(peer.hear().await, ClientMessage::Release { request });
    soon(peer.hear_close()).await;
}

#[tokio::test]
async fn closing_a_client_ends_what_is_left_of_it() {
    let fake = Fake::listen().await;
    let (client, mut peer) = fake.connected().await;
    let (guard, _) = tokio::join!(client.lock("x").into_future(), peer.grant("x", 1));
    let guard = guard.unwrap();
    let waiting = tokio::spawn(client.lock("y").into_future());
    peer.hear_ask("y", Wait::Forever).await;
    let closing = tokio::spawn(client.clone().close());
    assert_eq!(peer.hear().await, ClientMessage::Close);
    // It is not relied upon while the node frees it.
    assert!(!guard.is_valid() && guard.valid_until() <= clock::now());
    peer.say(&[ServerMessage::Over(Over::Closed)]).await;
    soon(closing).await.unwrap().unwrap();
    assert_eq!(soon(guard.lost()).await, Loss::Over(Over::Closed));
    assert!(matches!(soon(waiting).await.unwrap(), Err(ClientError::Closed)));
    assert!(matches!(soon(client.lock("z")).await, Err(ClientError::Closed)));
    soon(client.close()).await.unwrap();
}

#[tokio::test]
async fn a_lease_is_renewed_and_with_it_what_is_held() {
    let fake = Fake::listen().await;
    let connecting = fake.client().ttl(Duration::from_secs(6)).connect();
    let (client, mut peer) = tokio::join!(connecting, fake.accept_session(1, 1));
    let client = client.unwrap();
    let (guard, _) = tokio::join!(client.lock("x").into_future(), peer.grant("x", 1));
    let mut guard = guard.unwrap();
    let before = guard.validity();
    assert_eq!(peer.hear().await, ClientMessage::Renew);
    peer.say(&[ServerMessage::Renewed { certain: Duration::MAX }]).await;
    let after = soon(guard.changed()).await;
    assert!(before.until < after.until && before.lost_at < after.lost_at);
    assert_eq!(guard.valid_until(), after.until);
}

#[tokio::test]
async fn a_node_that_is_silent_for_too_long_costs_the_locks_before_they_are_given_away() {
    let fake = Fake::listen().await;
    let connecting = fake.client().ttl(Duration::from_millis(600)).connect();
    let (client, mut peer) = tokio::join!(connecting, fake.accept_session(1, 1));
    let client = client.unwrap();
    let (guard, _) = tokio::join!(client.lock("x").into_future(), peer.grant("x", 1));
    let guard = guard.unwrap();
    let why = soon(guard.lost()).await;
    // On a busy machine this process may not have run in time.
    assert!(matches!(why, Loss::Unrenewed | Loss::Paused), "{why:?}");
    assert!(!guard.is_valid());
    assert!(matches!(soon(guard.release()).await, Err(ClientError::Lost(_))));
}

/// What was granted and what ended the session came in one segment.
#[tokio::test]
async fn a_grant_that_comes_with_the_end_of_the_session_is_not_kept() {
    for why in [Over::Excluded(Refusal::Excluded("b".to_string())), Over::Stopping, Over::Expired] {
        let fake = Fake::listen().await;
        let (client, mut peer) = fake.connected().await;
        let waiting = tokio::spawn(client.lock("x").into_future());
        let request = peer.hear_ask("x", Wait::Forever).await;
        let grant = ServerMessage::Granted { request, fences: vec![1] };
        peer.say(&[grant, ServerMessage::Over(why.clone())]).await;
        let node = tokio::spawn(async move {
            let mut again = fake.accept(1).await;
            let ClientMessage::Open { .. } = again.hear().await else { panic!() };
            again.say(&[ServerMessage::Refused { request: 0, why: Refusal::Stopped }]).await;
        });
        // Either it never gets the guard, and asks again in vain; or it is told that it is lost.
        match soon(waiting).await.unwrap() {
            Ok(guard) => assert_eq!(soon(guard.lost()).await, Loss::Over(why)),
            Err(error) => assert_eq!(error.refusal(), Some(&Refusal::Stopped)),
        }
        node.abort();
    }
}

#[tokio::test]
async fn a_session_goes_on_over_another_connection_and_asks_again() {
    let fake = Fake::listen().await;
    let (client, mut peer) = fake.connected().await;
    let (held, _) = tokio::join!(client.lock("x").into_future(), peer.grant("x", 1));
    let held = held.unwrap();
    let waiting = tokio::spawn(client.lock("y").into_future());
    let request = peer.hear_ask("y", Wait::Forever).await;
    drop(peer);
    let mut peer = fake.accept(1).await;
    assert_eq!(peer.hear().await, ClientMessage::Resume { session: peer.session(1) });
    peer.say(&[
        ServerMessage::Opened { session: peer.session(1), certain: Duration::MAX },
        // Said again to whoever comes back.
        ServerMessage::Granted { request: 1, fences: vec![1] },
    ])
    .await;
    assert_eq!(peer.hear().await, ClientMessage::Renew);
    assert_eq!(peer.grant("y", 2).await, request);
    assert_eq!(soon(waiting).await.unwrap().unwrap().fence(), 2);
    assert!(held.is_valid());
}

#[tokio::test]
async fn a_node_that_was_restarted_has_lost_the_locks_and_is_asked_anew() {
    let fake = Fake::listen().await;
    let (client, mut peer) = fake.connected().await;
    let (held, _) = tokio::join!(client.lock("x").into_future(), peer.grant("x", 1));
    let held = held.unwrap();
    let waiting = tokio::spawn(client.lock("y").into_future());
    peer.hear_ask("y", Wait::Forever).await;
    drop(peer);
    // The incarnation alone tells.
    drop(fake.accept(2).await);
    assert_eq!(soon(held.lost()).await, Loss::Over(Over::Unknown));
    assert!(!held.is_valid() && held.valid_until() <= clock::now());
    let mut peer = fake.accept_session(2, 9).await;
    peer.grant("y", 2).await;
    let got = soon(waiting).await.unwrap().unwrap();
    assert!(got.is_valid());
    // What the old guard releases is not the new session's.
    drop(held);
    drop(got);
    assert_eq!(peer.hear().await, ClientMessage::Release { request: 2 });
}

#[tokio::test]
async fn a_session_that_the_node_does_not_know_is_over() {
    for answer in [
        ServerMessage::Over(Over::Unknown),
        ServerMessage::Refused { request: 0, why: Refusal::UnknownSession },
    ] {
        let fake = Fake::listen().await;
        let (client, mut peer) = fake.connected().await;
        let (held, _) = tokio::join!(client.lock("x").into_future(), peer.grant("x", 1));
        drop(peer);
        let mut peer = fake.accept(1).await;
        peer.hear().await;
        peer.say(&[answer]).await;
        assert_eq!(soon(held.unwrap().lost()).await, Loss::Over(Over::Unknown));
    }
}

#[tokio::test]
async fn addresses_are_tried_in_turn() {
    let (dead, fake) = (dead_address().await, Fake::listen().await);
    let builder = fake.client().addresses([dead.clone(), fake.address.clone()]);
    let (client, _peer) = tokio::join!(builder.connect(), fake.accept_session(1, 1));
    assert_eq!(client.unwrap().address(), fake.address);
    let other = dead_address().await;
    let nobody = fake.client().addresses([dead.clone(), other.clone()]).connect().await;
    let error = nobody.err().unwrap();
    assert!(error.refusal().is_none());
    let text = error.to_string();
    assert!(text.contains(&dead) && text.contains(&other), "{text}");
    let nothing = Client::builder().addresses([""; 0]).connect().await;
    assert!(matches!(nothing.err().unwrap(), ClientError::NoAddress));
}

#[tokio::test]
async fn a_node_that_cannot_serve_is_passed_over() {
    let (first, second) = (Fake::listen().await, Fake::listen().await);
    let builder = first.client().addresses([first.address.clone(), second.address.clone()]);
    let connecting = tokio::spawn(builder.connect());
    let mut peer = first.accept(1).await;
    peer.hear().await;
    let why = Refusal::Expelled("why".to_string());
    peer.say(&[ServerMessage::Refused { request: 0, why }]).await;
    let _peer = second.accept_session(5, 5).await;
    assert_eq!(soon(connecting).await.unwrap().unwrap().address(), second.address);
}

#[tokio::test]
async fn whoever_waits_at_a_node_that_stops_goes_to_the_next_one() {
    let (first, second) = (Fake::listen().await, Fake::listen().await);
    let builder = first.client().addresses([first.address.clone(), second.address.clone()]);
    let (client, mut peer) = tokio::join!(builder.connect(), first.accept_session(1, 1));
    let client = client.unwrap();
    let (held, _) = tokio::join!(client.lock("x").into_future(), peer.grant("x", 1));
    let held = held.unwrap();
    let waiting = tokio::spawn(client.lock("y").into_future());
    peer.hear_ask("y", Wait::Forever).await;
    peer.say(&[ServerMessage::Over(Over::Stopping)]).await;
    assert_eq!(soon(held.lost()).await, Loss::Over(Over::Stopping));
    // Nobody gets it before the node is started again: there is time to stop.
    assert!(clock::now() < held.valid_until());
    let mut peer = second.accept_session(2, 1).await;
    peer.grant("y", 2).await;
    assert!(soon(waiting).await.unwrap().unwrap().is_valid());
    assert_eq!(client.address(), second.address);
}

#[tokio::test]
async fn whoever_waits_at_a_node_that_is_gone_goes_to_the_next_one() {
    let (first, second) = (Fake::listen().await, Fake::listen().await);
    let builder = first.client().addresses([first.address.clone(), second.address.clone()]);
    let (client, mut peer) = tokio::join!(builder.connect(), first.accept_session(1, 1));
    let client = client.unwrap();
    let waiting = tokio::spawn(client.lock("y").into_future());
    peer.hear_ask("y", Wait::Forever).await;
    drop(first);
    drop(peer);
    let mut peer = second.accept_session(2, 1).await;
    peer.grant("y", 2).await;
    assert!(soon(waiting).await.unwrap().unwrap().is_valid());
}

#[tokio::test]
async fn whoever_waits_at_the_only_node_is_told_that_it_stops() {
    let fake = Fake::listen().await;
    let (client, mut peer) = fake.connected().await;
    let waiting = tokio::spawn(client.lock("x").into_future());
    peer.hear_ask("x", Wait::Forever).await;
    peer.say(&[ServerMessage::Over(Over::Stopping)]).await;
    let error = soon(waiting).await.unwrap().unwrap_err();
    assert!(matches!(error, ClientError::Over(Over::Stopping)), "{error}");
}

#[tokio::test]
async fn a_limited_wait_ends_although_the_node_cannot_be_reached() {
    let fake = Fake::listen().await;
    let (client, peer) = fake.connected().await;
    drop(fake);
    drop(peer);
    let error = soon(client.lock("x").within(Duration::from_millis(300))).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused(Refusal::TimedOut)), "{error}");
}

#[tokio::test]
async fn a_time_to_live_that_nobody_asked_for_becomes_as_short_as_the_group_wants_it() {
    let fake = Fake::listen().await;
    let most = Duration::from_secs(3);
    let long = |request| {
        let why = Refusal::LongTtl { ttl: Duration::from_secs(10), most };
        ServerMessage::Refused { request, why }
    };
    let usual = Client::builder().addresses([&fake.address]).connect();
    let (client, mut peer) = tokio::join!(usual, fake.accept_session(1, 1));
    let client = client.unwrap();
    let waiting = tokio::spawn(client.lock("x").into_future());
    let request = peer.hear_ask("x", Wait::Forever).await;
    peer.say(&[long(request)]).await;
    soon(peer.hear_close()).await;
    let mut peer = fake.accept(1).await;
    let ClientMessage::Open { ttl, .. } = peer.hear().await else { panic!() };
    assert_eq!(ttl, Some(most));
    peer.say(&[ServerMessage::Opened { session: peer.session(2), certain: Duration::MAX }]).await;
    peer.grant("x", 1).await;
    assert_eq!(soon(waiting).await.unwrap().unwrap().fence(), 1);
    // Whoever has asked for a certain time is told.
    let (client, mut peer) = fake.connected().await;
    let waiting = tokio::spawn(client.lock("x").into_future());
    let request = peer.hear_ask("x", Wait::Forever).await;
    peer.say(&[long(request)]).await;
    let refused = soon(waiting).await.unwrap().unwrap_err();
    assert_eq!(refused.refusal().unwrap().code(), "long-ttl");
}

#[tokio::test]
async fn a_listing_comes_page_by_page() {
    let fake = Fake::listen().await;
    let (client, _peer) = fake.connected().await;
    let line = |name: &str| {
        let (name, node) = (name.to_string(), "a".to_string());
        let key = LineKey { name, permits: 1, place: 0, node, ticket: 1 };
        let (label, host) = (String::new(), String::new());
        Line { key, fence: None, label, pid: 0, host, millis: 0, durable: None }
    };
    let page = |name: &str, more| Page { lines: vec![line(name)], silent: Vec::new(), more };
    let query = Query { whole_group: true, limit: 1, ..Query::default() };
    let (pages, mut peer) = tokio::join!(client.locks(query.clone()), fake.accept(1));
    let mut pages = pages.unwrap();
    let after = Query { after: Some(line("x").key), ..query.clone() };
    for (query, page) in [(query, page("x", true)), (after, page("y", false))] {
        let node = async {
            assert_eq!(peer.hear().await, ClientMessage::List(query));
            peer.say(&[ServerMessage::Page(page.clone())]).await;
        };
        let (got, ()) = tokio::join!(pages.next_page(), node);
        assert_eq!(got.unwrap(), Some(page));
    }
    assert_eq!(pages.next_page().await.unwrap(), None);
}
