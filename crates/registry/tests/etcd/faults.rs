//! What happens when members of etcd die, stop, forget or fill up.

use std::sync::Arc;
use std::time::Duration;

use catraca_registry::{Answer, Etcd, Guard, Health, Registry, Revision, Trouble, Txn, Word};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout};

use super::server::{LIMIT, Server, connect, hasty};

/// A call of the hasty takes two seconds at most; a busy machine needs some more to notice.
const BOUND: Duration = Duration::from_secs(10);

/// What came of a transaction, in bounded time.
async fn bounded(etcd: &Etcd, txn: Txn) -> Result<Answer, Trouble> {
    timeout(LIMIT, etcd.txn(txn)).await.expect("every call ends")
}

/// Why the hasty get no answer.
async fn trouble(etcd: &Etcd, txn: Txn) -> Trouble {
    let outcome = timeout(BOUND, etcd.txn(txn)).await.expect("a call ends in bounded time");
    outcome.expect_err("nobody is there to answer")
}

/// Creates a key once, however often that takes.
async fn create(etcd: &Etcd, key: &str) -> Answer {
    let started = Instant::now();
    loop {
        let txn = Txn::default().given(Guard::Absent(key.into())).put(key, vec![]);
        match bounded(etcd, txn).await {
            Ok(answer) => return answer,
            Err(Trouble::Unreachable(_) | Trouble::Unknown(_)) if started.elapsed() < LIMIT => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(trouble) => panic!("{trouble}"),
        }
    }
}

/// Creates so many keys and expects to be told of each, once and in order.
async fn create_and_hear(etcd: &Etcd, words: &mut Receiver<Word>, from: usize, to: usize) {
    for number in from..to {
        create(etcd, &format!("k{number}")).await;
    }
    for number in from..to {
        assert_eq!(hear(words).await, format!("k{number}"));
    }
}

async fn hear(words: &mut Receiver<Word>) -> String {
    match timeout(LIMIT, words.recv()).await.expect("told in time").expect("it goes on") {
        Word::Changed { key, .. } => key,
        Word::Gap { from } => panic!("a gap up to {from}"),
    }
}

/// Waits until operators are told.
async fn health(etcd: &Etcd, is_expected: impl Fn(&Health) -> bool) {
    let started = Instant::now();
    while !is_expected(&etcd.health()) {
        assert!(started.elapsed() < LIMIT, "{:?}", etcd.health());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn mentions(health: &Health, word: &str) -> bool {
    health.trouble.as_ref().is_some_and(|trouble| trouble.contains(word))
}

#[tokio::test]
async fn a_watch_goes_on_without_a_gap_after_the_server_was_killed() {
    let mut server = Server::alone();
    let etcd = server.open("g").await;
    let mut words = etcd.watch(Revision(0));
    for round in 0..3 {
        create_and_hear(&etcd, &mut words, round * 10, round * 10 + 10).await;
        // One more that the watch may or may not hear of before the end.
        create(&etcd, &format!("last{round}")).await;
        server.kill();
        let trouble = bounded(&etcd, Txn::read()).await.unwrap_err();
        assert!(matches!(trouble, Trouble::Unreachable(_)), "{trouble}");
        server.start();
        assert_eq!(hear(&mut words).await, format!("last{round}"));
    }
}

/// Whatever was under way when the server died is carried out or not, and repeated with its guard: each
/// key is created once, and whoever watches is told once.
#[tokio::test]
async fn writes_that_race_with_the_death_of_the_server_are_carried_out_once() {
    let mut server = Server::alone();
    let etcd = Arc::new(server.open("g").await);
    let mut words = etcd.watch(Revision(0));
    let writer = Arc::clone(&etcd);
    let writing = tokio::spawn(async move {
        for number in 0..200 {
            create(&writer, &format!("k{number}")).await;
        }
    });
    for number in 0..200 {
        assert_eq!(hear(&mut words).await, format!("k{number}"));
        if number % 50 == 25 {
            server.kill();
            server.start();
        }
    }
    writing.await.unwrap();
    let state = create(&etcd, "end").await.state;
    assert_eq!(state.len(), 201);
    assert!(state.values().all(|item| item.born == item.at), "none was written twice");
}

/// etcd cuts what is larger than a request into parts, in the middle of a revision.
#[tokio::test]
async fn changes_that_come_in_parts_are_told_in_order() {
    let server = Server::alone();
    let etcd = server.open("g").await;
    let mut expected = Vec::new();
    for round in 0..5 {
        let keys: Vec<String> = (0..20).map(|n| format!("{round}.{n:02}")).collect();
        let put = |txn: Txn, key: &String| txn.put(key, vec![7; 60_000]);
        let at = bounded(&etcd, keys.iter().fold(Txn::default(), put)).await.unwrap().revision;
        expected.extend(keys.into_iter().map(|key| Word::Changed { key, at }));
    }
    let mut words = etcd.watch(Revision(0));
    for expected in expected {
        assert_eq!(timeout(LIMIT, words.recv()).await.unwrap(), Some(expected));
    }
}

#[tokio::test]
async fn a_deletion_at_the_very_revision_of_a_compaction_is_a_gap_or_told() {
    let server = Server::alone();
    let etcd = server.open("g").await;
    let put = create(&etcd, "a").await.revision;
    let deleted = bounded(&etcd, Txn::default().delete("a")).await.unwrap().revision;
    let mut going = etcd.watch(deleted);
    server.control(&["compact", &deleted.to_string(), "--physical"]);
    let mut words = etcd.watch(put);
    let word = timeout(LIMIT, words.recv()).await.unwrap().unwrap();
    assert_eq!(word, Word::Gap { from: deleted });
    create(&etcd, "b").await;
    assert_eq!(hear(&mut words).await, "b");
    assert_eq!(hear(&mut going).await, "b", "who is up to date notices nothing");
}

#[tokio::test]
async fn writes_and_watches_move_to_another_member() {
    let mut servers = Server::cluster(3);
    let endpoints: Vec<&str> = servers.iter().map(|server| server.endpoint.as_str()).collect();
    let etcd = connect(hasty(&format!("etcd://{}", endpoints.join(",")), "g")).await.unwrap();
    let mut words = etcd.watch(Revision(0));
    create_and_hear(&etcd, &mut words, 0, 10).await;
    health(&etcd, |health| health.voters.len() == 3 && health.leader.is_some()).await;
    let place = etcd.health().place;
    assert!(servers.iter().all(|server| place.contains(&server.endpoint)), "{place}");
    // The first that was written in the URL is the first that was asked.
    servers[0].kill();
    create_and_hear(&etcd, &mut words, 10, 20).await;
    servers[0].start();
    // Only in time for a quorum is the next one killed.
    servers[0].open("g").await;
    servers[1].kill();
    create_and_hear(&etcd, &mut words, 20, 30).await;
}

#[tokio::test]
async fn without_a_quorum_every_call_ends_and_then_all_is_well() {
    let mut servers = Server::cluster(3);
    let endpoints: Vec<&str> = servers.iter().map(|server| server.endpoint.as_str()).collect();
    let etcd = connect(hasty(&format!("etcd://{}", endpoints.join(",")), "g")).await.unwrap();
    let mut words = etcd.watch(Revision(0));
    create_and_hear(&etcd, &mut words, 0, 5).await;
    servers[1].kill();
    servers[2].kill();
    for number in 0..3 {
        let txn = Txn::default().put(format!("lost{number}"), vec![]);
        let why = trouble(&etcd, txn).await;
        let is_passing = matches!(why, Trouble::Unreachable(_) | Trouble::Unknown(_));
        assert!(is_passing, "{why}");
        let why = trouble(&etcd, Txn::read()).await;
        assert!(matches!(why, Trouble::Unreachable(_)), "{why}");
    }
    let is_told = |health: &Health| {
        health.missing == ["m1", "m2"] && health.voters.len() == 3 && mentions(health, "no leader")
    };
    health(&etcd, is_told).await;
    servers[1].start();
    create(&etcd, "k5").await;
    // What nobody knew may have been done after all.
    while hear(&mut words).await != "k5" {}
    health(&etcd, |health| health.trouble.is_none()).await;
}

#[tokio::test]
async fn a_server_that_is_stopped_leaves_writes_unknown_and_reads_unanswered() {
    let server = Server::alone();
    let etcd = connect(hasty(&server.url(), "g")).await.unwrap();
    let mut words = etcd.watch(Revision(0));
    create_and_hear(&etcd, &mut words, 0, 3).await;
    server.pause();
    let txn = Txn::default().given(Guard::Absent("late".into())).put("late", vec![]);
    let why = trouble(&etcd, txn.clone()).await;
    assert!(matches!(why, Trouble::Unknown(_)), "{why}");
    let why = trouble(&etcd, Txn::read()).await;
    assert!(matches!(why, Trouble::Unreachable(_)), "{why}");
    // The connection is gone, and a write that was never sent was not carried out.
    let why = trouble(&etcd, Txn::default().put("unsent", vec![])).await;
    assert!(matches!(why, Trouble::Unreachable(_)), "{why}");
    server.resume();
    let state = create(&etcd, "late").await.state;
    assert!(state.contains_key("late") && !state.contains_key("unsent"));
    assert_eq!(hear(&mut words).await, "late");
}

#[tokio::test]
async fn a_server_that_does_not_run_cannot_be_reached() {
    let server = Server::members(1, "http", &[]).remove(0);
    let connecting = timeout(BOUND, Etcd::connect(hasty(&server.url(), "g")));
    let trouble = connecting.await.unwrap().err().unwrap();
    assert!(matches!(&trouble, Trouble::Unreachable(why) if why.contains(&server.endpoint)));
}

#[tokio::test]
async fn an_emptied_etcd_is_not_taken_for_the_one_that_it_was() {
    let mut server = Server::alone();
    let etcd = server.open("g").await;
    create(&etcd, "a").await;
    server.kill();
    server.wipe();
    server.start();
    server.open("other").await;
    for _ in 0..2 {
        let trouble = bounded(&etcd, Txn::default().put("b", vec![])).await.unwrap_err();
        assert!(matches!(trouble, Trouble::Lost(_)), "{trouble}");
    }
    let state = bounded(&server.open("g").await, Txn::read()).await.unwrap().state;
    assert!(state.is_empty(), "nothing was written");
}

#[tokio::test]
async fn a_member_of_another_cluster_is_not_written_to() {
    let (mut first, second) = (Server::alone(), Server::alone());
    let other = second.open("g").await;
    first.open("g").await;
    let both = format!("etcd://{},{}", first.endpoint, second.endpoint);
    let etcd = connect(hasty(&both, "g")).await.unwrap();
    create(&etcd, "a").await;
    first.kill();
    // A write on the old connection may not notice in time that nobody is there.
    let _ = bounded(&etcd, Txn::default().put("b", vec![])).await.unwrap_err();
    for _ in 0..3 {
        let trouble = bounded(&etcd, Txn::default().put("b", vec![])).await.unwrap_err();
        assert!(trouble.to_string().contains("cluster"), "{trouble}");
    }
    assert!(bounded(&other, Txn::read()).await.unwrap().state.is_empty());
    first.start();
    assert!(create(&etcd, "c").await.state.contains_key("a"), "the right one is found again");
}

#[tokio::test]
async fn a_full_etcd_is_told_of_with_what_to_do() {
    let server = Server::with(&["--quota-backend-bytes=1000000"]);
    let etcd = server.open("g").await;
    let started = Instant::now();
    let trouble = loop {
        let written = bounded(&etcd, Txn::default().put("a", vec![7; 60_000])).await;
        match written {
            Ok(_) => assert!(started.elapsed() < LIMIT),
            Err(trouble) => break trouble,
        }
    };
    assert!(matches!(trouble, Trouble::Unreachable(_)), "{trouble}");
    assert!(trouble.to_string().contains("--auto-compaction-retention"), "{trouble}");
    health(&etcd, |health| mentions(health, "NOSPACE")).await;
}

#[tokio::test]
async fn a_transaction_that_is_too_large_is_refused_and_the_next_one_is_not() {
    let server = Server::alone();
    let etcd = server.open("g").await;
    let large = |number: usize| {
        let put = |txn: Txn, n| txn.put(format!("large{n}"), vec![7; 60_000]);
        (0..number).fold(Txn::default(), put)
    };
    // 1.5 MiB are too much for etcd itself, and 2 MiB for the layer below it.
    for number in [30, 60] {
        let trouble = bounded(&etcd, large(number)).await.unwrap_err();
        assert!(matches!(&trouble, Trouble::Refused(why) if why.contains("--max-request-bytes")));
    }
    assert!(bounded(&etcd, large(20)).await.unwrap().applied);
}
