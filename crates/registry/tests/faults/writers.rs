//! Many writers share what a flush costs.

use std::time::{Duration, Instant};

use catraca_registry::embedded::Options;
use catraca_registry::{Embedded, Registry, Revision};
use tokio::task::JoinSet;

use crate::support::{Group, insist, put};

const WRITERS: u64 = 64;
const EACH: u64 = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_cost_far_fewer_flushes() {
    let place = tempfile::tempdir().unwrap();
    let registry = Embedded::open(Options::alone(place.path(), "g", "a")).await.unwrap();
    insist(&registry, put("k", "")).await;
    let (before, begun) = (registry.flushes(), Instant::now());
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let registry = registry.clone();
        writers.spawn(async move {
            for _ in 0..EACH {
                assert!(registry.txn(put(&writer.to_string(), "")).await.unwrap().applied);
            }
        });
    }
    writers.join_all().await;
    let (writes, flushes) = (WRITERS * EACH, registry.flushes() - before);
    let rate = writes as f64 / begun.elapsed().as_secs_f64();
    println!("{writes} writes, {flushes} flushes, {rate:.0}/s");
    assert!(flushes * 4 < writes, "{flushes} flushes for {writes} writes");
    let mut singles = Vec::new();
    for _ in 0..100 {
        let begun = Instant::now();
        registry.txn(put("k", "")).await.unwrap();
        singles.push(begun.elapsed());
    }
    singles.sort();
    println!("one writer: p50 {:?}, p90 {:?}", singles[50], singles[90]);
    let end = registry.txn(put("end", "")).await.unwrap().revision;
    assert_eq!(end, Revision(1 + writes + 100 + 1), "each counted once");
}

/// The three flush on disks of their own; what one of them writes for several writers, all of them do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_cost_far_fewer_flushes_at_each_of_three_voters_too() {
    let mut group = Group::new(&["a", "b", "c"]);
    // On a busy machine nobody is to take another one for lost, or to give up.
    group.elections = Duration::from_secs(3)..Duration::from_secs(6);
    group.patience = Duration::from_secs(60);
    let nodes = [group.start("a").await, group.start("b").await, group.start("c").await];
    insist(&nodes[0], put("k", "")).await;
    let before = nodes.each_ref().map(Embedded::flushes);
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        // Two thirds of them reach the one that leads through another member.
        let registry = nodes[writer as usize % 3].clone();
        writers.spawn(async move {
            for _ in 0..EACH {
                insist(&registry, put(&writer.to_string(), "")).await;
            }
        });
    }
    writers.join_all().await;
    let (writes, after) = (WRITERS * EACH, nodes.each_ref().map(Embedded::flushes));
    let flushes: Vec<u64> =
        before.iter().zip(after).map(|(before, after)| after - before).collect();
    println!("{writes} writes, {flushes:?} flushes");
    assert!(flushes.iter().all(|flushes| flushes * 4 < writes), "{flushes:?} for {writes} writes");
}
