//! What whoever watches is told.

use std::sync::Arc;

use catraca_registry::{Registry, Revision, Txn, Word};
use tokio::sync::mpsc::Receiver;

use super::{LIMIT, Subject, settle, write};

async fn next(words: &mut Receiver<Word>) -> Word {
    let word = tokio::time::timeout(LIMIT, words.recv()).await.expect("a change is told in time");
    word.expect("the watch goes on")
}

fn changed(key: &str, at: Revision) -> Word {
    Word::Changed { key: key.into(), at }
}

async fn put(registry: &dyn Registry, key: &str) -> Revision {
    write(registry, Txn::default().put(key, vec![])).await.revision
}

pub async fn changes_are_told_in_order(subject: &dyn Subject) {
    let (writer, watcher) = (subject.open("group").await, subject.open("group").await);
    let writer = &*writer;
    let start = put(writer, "before").await;
    let mut early = watcher.watch(start);
    let first = put(writer, "a").await;
    assert_eq!(next(&mut early).await, changed("a", first), "told when it happens");
    let both = write(writer, Txn::default().put("b", vec![]).put("c", vec![])).await.revision;
    let gone = write(writer, Txn::default().delete("a")).await.revision;
    let failed = Txn::default().put("d", vec![]);
    let failed = failed.given(catraca_registry::Guard::At("b".into(), gone));
    assert!(!settle(writer, failed).await.applied);
    let hold = put(writer, "hold/a").await;
    // One who comes later hears the same, and one who begins later the rest.
    for (mut words, skipped) in
        [(early, 1), (watcher.watch(start), 0), (watcher.watch(both), 3), (watcher.watch(gone), 4)]
    {
        let mut all = vec![changed("a", first), changed("b", both), changed("c", both)];
        all.extend([changed("a", gone), changed("hold/a", hold)]);
        let mut told = Vec::new();
        while told.len() < all.len() - skipped {
            told.push(next(&mut words).await);
        }
        // Within one revision any order will do.
        let place = |word: &Word| match word {
            Word::Changed { key, at } => (*at, key.clone()),
            Word::Gap { .. } => panic!("nothing is forgotten yet"),
        };
        assert!(told.windows(2).all(|pair| place(&pair[0]).0 <= place(&pair[1]).0));
        told.sort_by_key(place);
        assert_eq!(told, all[skipped..]);
    }
}

pub async fn whoever_comes_back_misses_nothing(subject: &dyn Subject) {
    let (writer, watcher) = (subject.open("group").await, subject.open("group").await);
    let start = put(&*writer, "before").await;
    let write_all = tokio::spawn(async move {
        let mut written = Vec::new();
        for number in 0..200 {
            let key = format!("k{number}");
            let at = put(&*writer, &key).await;
            written.push(changed(&key, at));
        }
        written
    });
    let (mut told, mut after): (Vec<Word>, Revision) = (Vec::new(), start);
    while told.len() < 200 {
        let mut words = watcher.watch(after);
        for _ in 0..17.min(200 - told.len()) {
            let word = next(&mut words).await;
            if let Word::Changed { at, .. } = &word {
                after = *at;
            }
            told.push(word);
        }
    }
    assert_eq!(told, write_all.await.unwrap());
}

pub async fn what_is_forgotten_is_a_gap(subject: &dyn Subject) {
    let registry: Arc<dyn Registry> = subject.open("group").await;
    let start = put(&*registry, "a").await;
    put(&*registry, "b").await;
    subject.forget("group").await;
    let mut words = registry.watch(start);
    let from = match next(&mut words).await {
        Word::Gap { from } => from,
        word => panic!("{word:?} does not tell that something is missing"),
    };
    assert!(from > start);
    let last = put(&*registry, "last").await;
    assert!(from < last);
    for mut words in [words, registry.watch(from)] {
        let mut before = from;
        loop {
            let at = match next(&mut words).await {
                // What is remembered moves on with every change.
                Word::Gap { from } => from,
                Word::Changed { key, at } if key == "last" => break assert_eq!(at, last),
                Word::Changed { at, .. } => at,
            };
            assert!(at >= before, "in order");
            before = at;
        }
    }
}
