//! Locks whose token is here: no message, no other process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use catraca_node::{Config, Node};

use super::{Row, median, nanos};

/// Acquire and release are timed in batches: the clock costs as much as a lock.
const BATCH: u32 = 64;

/// Acquire and release of one lock that nobody else wants, beside a mutex of the runtime.
pub(super) fn one_lock(time: Duration) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let node = Node::start(alone()).await?;
        let mutex = tokio::sync::Mutex::new(());
        let (mut locks, mut mutexes) = (Vec::new(), Vec::new());
        let begin = Instant::now();
        while begin.elapsed() < time {
            let start = Instant::now();
            for _ in 0..BATCH {
                drop(node.lock("bench/one").await?);
            }
            locks.push(start.elapsed().as_nanos() as u64 / u64::from(BATCH));
            let start = Instant::now();
            for _ in 0..BATCH {
                drop(mutex.lock().await);
            }
            mutexes.push(start.elapsed().as_nanos() as u64 / u64::from(BATCH));
        }
        let (lock, mutex) = (median(&mut locks), median(&mut mutexes));
        let what = format!("acquire + release, token here (a tokio mutex: {mutex} ns)");
        Ok(vec![Row::new(what, nanos(lock as f64), "at most 1 us".to_string(), lock <= 1000)])
    })
}

/// Many clients, each with a lock of its own.
pub(super) fn many_locks(time: Duration) -> Result<Vec<Row>> {
    const CLIENTS: usize = 64;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let node = Arc::new(Node::start(alone()).await?);
        let begin = Instant::now();
        let client = |number: usize| {
            let node = Arc::clone(&node);
            tokio::spawn(async move {
                let name = format!("bench/{number}");
                let mut entries = 0_u64;
                while begin.elapsed() < time {
                    for _ in 0..BATCH {
                        drop(node.lock(&name).await?);
                    }
                    entries += u64::from(BATCH);
                    tokio::task::yield_now().await;
                }
                Ok::<u64, catraca_node::Refusal>(entries)
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        let mut entries = 0;
        for client in clients {
            entries += client.await??;
        }
        let rate = entries as f64 / begin.elapsed().as_secs_f64();
        let what = format!("{CLIENTS} clients on {CLIENTS} locks, acquire + release per second");
        let figure = format!("{:.2} M/s", rate / 1e6);
        Ok(vec![Row::new(what, figure, "at least 1 M/s".to_string(), rate >= 1e6)])
    })
}

/// A group of one, wherever the system has room for it.
fn alone() -> Config {
    let mut config = Config::alone();
    config.listen = Some("127.0.0.1:0".to_string());
    config
}
