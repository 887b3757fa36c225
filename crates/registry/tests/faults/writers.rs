//! Many writers share what a flush costs.

use std::time::Instant;

use catraca_registry::embedded::Options;
use catraca_registry::{Embedded, Registry, Revision};
use tokio::task::JoinSet;

use crate::support::{insist, put};

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
