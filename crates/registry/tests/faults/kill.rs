//! A process that is killed at any moment loses nothing that it has acknowledged.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use catraca_registry::embedded::Options;
use catraca_registry::{Embedded, Registry, Txn};

use crate::support::value;

const DIRECTORY: &str = "CATRACA_TEST_OF_KILLS";
const ROUNDS: u64 = 20;

async fn open(directory: &Path) -> Embedded {
    Embedded::open(Options::alone(directory, "g", "a")).await.unwrap()
}

/// The process that is killed: it counts, and says how far it got.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counting() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let registry = open(Path::new(&directory)).await;
    let mut count: u64 = value(&registry, "count").await.map_or(0, |text| text.parse().unwrap());
    loop {
        count += 1;
        let txn = Txn::default().put("count", count.to_string().into());
        assert!(registry.txn(txn).await.unwrap().applied);
        let mut out = std::io::stdout().lock();
        writeln!(out, "\ncounted {count}").unwrap();
        out.flush().unwrap();
    }
}

fn start(directory: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kill::counting", "--nocapture"]);
    command.env(DIRECTORY, directory).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_before_a_kill_is_there_after_it() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("data");
    let (mut acknowledged, mut seed) = (0, 3_u64);
    for round in 0..ROUNDS {
        let mut child = start(&directory);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let counted: tokio::task::JoinHandle<Option<u64>> =
            tokio::task::spawn_blocking(move || {
                let lines = lines.map_while(Result::ok);
                let counts = lines.filter_map(|line| line.strip_prefix("counted ")?.parse().ok());
                counts.last()
            });
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // From the first moment, in which the directory is made, to the middle of the counting.
        tokio::time::sleep(Duration::from_millis((seed >> 33) % (20 + round * 20))).await;
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged = counted.await.unwrap().unwrap_or(acknowledged);
        if !directory.join("registry.redb").exists() {
            continue;
        }
        // The lock of the dead is free.
        let registry = open(&directory).await;
        let there = value(&registry, "count").await.map_or(0, |text| text.parse::<u64>().unwrap());
        assert!(
            there == acknowledged || there == acknowledged + 1,
            "round {round}: {there} is there, and {acknowledged} was acknowledged"
        );
        acknowledged = there;
        registry.close().await;
    }
    assert!(acknowledged > 20, "it was killed too early to count: {acknowledged}");
}
