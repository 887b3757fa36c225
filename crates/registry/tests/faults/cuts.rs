//! Links that are cut, and voters that are away.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use catraca_registry::{Registry, Revision, Trouble, Txn, Word};
use tokio::task::JoinSet;

use crate::suite::races;
use crate::support::{Group, LIMIT, PATIENCE, eventually, insist, put, value};

const ALL: [&str; 3] = ["a", "b", "c"];

fn without(name: &str) -> Vec<&'static str> {
    ALL.into_iter().filter(|other| *other != name).collect()
}

/// A transaction that cannot be carried out ends all the same.
async fn fails_in_time(registry: &dyn Registry, txn: Txn) -> Trouble {
    let begun = Instant::now();
    let trouble = registry.txn(txn).await.unwrap_err();
    // Twice: the machine may be busy.
    assert!(begun.elapsed() < 2 * PATIENCE, "{:?}", begun.elapsed());
    trouble
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_is_replaced_and_comes_back() {
    let group = Group::started(&ALL).await;
    insist(&group.node("a"), put("k", "before")).await;
    let old = group.leader(&ALL).await;
    let others = without(&old);
    group.cut_off(&old);
    // Alone it neither writes nor reads: what it knows may be old.
    let node = group.node(&old);
    let read = tokio::spawn({
        let node = node.clone();
        async move { fails_in_time(&node, Txn::read()).await }
    });
    let trouble = fails_in_time(&node, put("k", "alone")).await;
    assert!(matches!(trouble, Trouble::Unknown(_) | Trouble::Unreachable(_)), "{trouble}");
    assert!(matches!(read.await.unwrap(), Trouble::Unreachable(_)));
    insist(&group.node(others[0]), put("k", "after")).await;
    assert_eq!(value(&group.node(others[1]), "k").await.unwrap(), "after");
    assert_ne!(group.leader(&others).await, old);
    eventually("the one that is away is missed", || async {
        let leader = group.node(others[0]).health().leader?;
        let health = group.node(&leader).health();
        (health.missing == [old.clone()] && health.voters == ALL).then_some(())
    })
    .await;
    group.heal();
    assert_eq!(value(&node, "k").await.unwrap(), "after");
    eventually("nobody is missed", || async {
        let leader = group.node("a").health().leader?;
        group.node(&leader).health().missing.is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_there_are_errors_in_time_and_with_one_everything_goes_on() {
    let group = Group::started(&ALL).await;
    insist(&group.node("a"), put("k", "kept")).await;
    group.stop("b").await;
    group.stop("c").await;
    let node = group.node("a");
    fails_in_time(&node, put("k", "alone")).await;
    let trouble = fails_in_time(&node, Txn::read()).await;
    assert!(matches!(trouble, Trouble::Unreachable(_)), "{trouble}");
    group.start("c").await;
    insist(&node, put("l", "again")).await;
    let kept = value(&group.node("c"), "k").await.unwrap();
    // The outcome of a transaction that was given up is unknown: it may have waited in the log.
    assert!(["kept", "alone"].contains(&kept.as_str()), "{kept}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_was_away_catches_up_from_its_directory() {
    let mut group = Group::new(&ALL);
    group.entries_per_snapshot = 40;
    for name in ALL {
        group.start(name).await;
    }
    insist(&group.node("a"), put("k", "0")).await;
    let leader = group.leader(&ALL).await;
    let away = without(&leader)[0];
    group.stop(away).await;
    // More than the log keeps: a part comes as a snapshot. It has several parts.
    let node = group.node(&leader);
    for number in 0..200 {
        let value = number.to_string().repeat(20_000);
        insist(&node, put(&format!("w{}", number % 40), &value)).await;
    }
    let last = node.txn(put("last", "")).await.unwrap().revision;
    let back = group.start(away).await;
    let mut words = back.watch(Revision(last.0 - 1));
    let word = tokio::time::timeout(LIMIT, words.recv()).await.unwrap().unwrap();
    assert_eq!(word, Word::Changed { key: "last".into(), at: last });
    // It counts as a voter again: a third may go.
    let other = ALL.into_iter().find(|name| *name != leader && *name != away).unwrap();
    group.stop(other).await;
    insist(&back, put("k", "1")).await;
    assert_eq!(value(&back, "w39").await.unwrap(), "199".repeat(20_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_are_linearizable_whoever_is_cut_off() {
    let mut group = Group::new(&ALL);
    group.patience = Duration::from_millis(700);
    for name in ALL {
        group.start(name).await;
    }
    insist(&group.node("a"), put("k", "")).await;
    let clock = Arc::new(AtomicU64::new(0));
    let mut clients = JoinSet::new();
    for number in 0..6 {
        let way = Arc::new(group.node(ALL[number % 3]));
        clients.spawn(races::client(way, number as u8, clock.clone()));
    }
    let group = Arc::new(group);
    let cutter = tokio::spawn({
        let group = group.clone();
        async move {
            loop {
                let leader = group.leader(&ALL).await;
                group.cut_off(&leader);
                let others = without(&leader);
                group.leader(&others).await;
                insist(&group.node(others[0]), put("k", "")).await;
                group.heal();
                insist(&group.node(&leader), put("k", "")).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    });
    let history: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
    assert!(!cutter.is_finished(), "{:?}", cutter.await);
    cutter.abort();
    assert!(history.iter().filter(|attempt| attempt.outcome.is_ok()).count() > 100);
    races::check(history);
}
