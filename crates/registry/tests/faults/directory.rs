//! Directories that are not what they should be.

use std::path::Path;

use catraca_registry::embedded::OpenError;
use catraca_registry::embedded::Options;
use catraca_registry::{Embedded, Trouble};

use crate::support::{insist, put, value};

async fn open(directory: &Path) -> Result<Embedded, OpenError> {
    Embedded::open(Options::alone(directory, "green", "a")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_of_somebody_else_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("thesis.txt"), "chapter one").unwrap();
    let error = open(place.path()).await.err().unwrap();
    assert!(matches!(error, OpenError::Foreign(_, _)));
    assert!(error.to_string().contains("thesis.txt"), "{error}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "nothing was added");

    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("registry.redb"), "chapter one").unwrap();
    assert!(matches!(open(place.path()).await, Err(OpenError::Corrupt(_, _))));

    let place = tempfile::tempdir().unwrap();
    open(place.path()).await.unwrap().close().await;
    for (group, me) in [("red", "a"), ("green", "b")] {
        let options = Options::alone(place.path(), group, me);
        let error = Embedded::open(options).await.err().unwrap().to_string();
        assert!(error.contains("belongs to 'a' of the group 'green'"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_is_used_by_one_at_a_time_and_notes_last() {
    let place = tempfile::tempdir().unwrap();
    let first = open(place.path()).await.unwrap();
    insist(&first, put("k", "1")).await;
    first.put_local("incarnation", b"7".to_vec()).await.unwrap();
    let error = open(place.path()).await.err().unwrap();
    assert!(error.to_string().contains("another node uses the directory"), "{error}");
    first.close().await;
    assert!(matches!(first.local("incarnation"), Err(Trouble::Lost(_))));
    let second = open(place.path()).await.unwrap();
    assert_eq!(second.local("incarnation").unwrap().unwrap(), b"7");
    assert_eq!(second.local("other").unwrap(), None);
    assert_eq!(value(&second, "k").await.unwrap(), "1");
}

/// Whatever bit is flipped: what is read is what was written, or it is an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_is_noticed_or_does_not_matter() {
    let place = tempfile::tempdir().unwrap();
    let registry = open(place.path()).await.unwrap();
    for number in 0..50 {
        insist(&registry, put(&format!("key{number}"), &"value ".repeat(20))).await;
    }
    registry.close().await;
    let file = place.path().join("registry.redb");
    let good = std::fs::read(&file).unwrap();
    let is_used = |page: &&[u8]| page.iter().any(|byte| *byte != 0);
    let used: Vec<usize> =
        (0..good.len() / 512).filter(|page| is_used(&&good[page * 512..][..512])).collect();
    let (mut noticed, mut seed) = (0, 1_u64);
    for round in 0..40 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let page = used[(seed >> 40) as usize % used.len()];
        let mut bad = good.clone();
        bad[page * 512 + (seed >> 20) as usize % 512] ^= 1 << (seed >> 60 & 7);
        std::fs::write(&file, &bad).unwrap();
        match open(place.path()).await {
            Err(OpenError::Corrupt(_, _)) => noticed += 1,
            Err(error) => panic!("round {round}: {error}"),
            Ok(registry) => {
                let all = value(&registry, "key49").await.unwrap();
                assert_eq!(all, "value ".repeat(20), "round {round}");
                registry.close().await;
            }
        }
    }
    assert!(noticed > 0);
}
