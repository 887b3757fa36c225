//! What transactions do when there are many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use catraca_registry::{Answer, Guard, Registry, Revision, Trouble, Txn};
use tokio::task::JoinSet;

use super::{LIMIT, Subject, read, settle, write};

const RACERS: usize = 16;

async fn ways(subject: &dyn Subject, number: usize) -> Vec<Arc<dyn Registry>> {
    let mut all = Vec::new();
    for _ in 0..number {
        all.push(subject.open("group").await);
    }
    all
}

pub async fn one_of_many_racers_wins(subject: &dyn Subject) {
    let ways = ways(subject, 4).await;
    for round in 0..10 {
        let key = format!("prize{round}");
        let mut racers = JoinSet::new();
        for number in 0..RACERS {
            let way = ways[number % ways.len()].clone();
            let txn = Txn::default().put(&key, vec![number as u8]);
            let txn = txn.given(Guard::Absent(key.clone()));
            racers.spawn(async move { (number, settle(&*way, txn).await) });
        }
        let answers = racers.join_all().await;
        let won = answers.iter().filter(|(_, answer)| answer.applied);
        let winners: Vec<usize> = won.map(|(number, _)| *number).collect();
        assert_eq!(winners.len(), 1, "{winners:?}");
        for (_, answer) in &answers {
            assert_eq!(answer.state[&key].value, [winners[0] as u8], "losers see who won");
        }
    }
}

pub async fn a_read_sees_what_was_written_elsewhere(subject: &dyn Subject) {
    let ways = ways(subject, 3).await;
    for round in 0..60_usize {
        let value = round.to_string().into_bytes();
        let writer = &*ways[round % 3];
        let written = write(writer, Txn::default().put("a", value.clone())).await;
        for reader in [&*ways[(round + 1) % 3], &*ways[(round + 2) % 3], writer] {
            let seen = read(reader).await;
            assert_eq!((&seen.state["a"].value, seen.revision), (&value, written.revision));
        }
    }
}

/// One attempt of a client, with when it began and ended on a clock that only counts.
#[derive(Debug)]
pub struct Attempt {
    began: u64,
    ended: u64,
    wrote: Option<Vec<u8>>,
    pub outcome: Result<Answer, Trouble>,
}

pub async fn client(way: Arc<dyn Registry>, name: u8, clock: Arc<AtomicU64>) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for step in 0..40_u8 {
        let seen = attempts.iter().rev().find_map(|attempt| attempt.outcome.as_ref().ok());
        let guard = match seen.and_then(|answer| answer.state.get("register")) {
            Some(item) => Guard::At("register".into(), item.at),
            None => Guard::Absent("register".into()),
        };
        let value = (step % 3 != 0).then(|| vec![name, step]);
        let txn = match value.clone() {
            Some(value) => Txn::default().given(guard).put("register", value),
            None => Txn::read(),
        };
        let began = clock.fetch_add(1, Ordering::SeqCst);
        let outcome = tokio::time::timeout(LIMIT, way.txn(txn)).await.expect("it ends");
        let ended = clock.fetch_add(1, Ordering::SeqCst);
        attempts.push(Attempt { began, ended, wrote: value, outcome });
    }
    attempts
}

/// Checks a history of one register. Revisions say in which order everything happened: it is left to
/// show that each answer fits that order, and that the order fits what was before what.
pub fn check(mut history: Vec<Attempt>) {
    history.sort_by_key(|attempt| attempt.began);
    let writes = || {
        let with = |attempt: &'_ Attempt| attempt.wrote.is_some();
        history.iter().filter(move |attempt| with(attempt))
    };
    let mut order: Vec<(Revision, &[u8])> = Vec::new();
    for attempt in writes() {
        if let (Ok(answer), Some(value)) = (&attempt.outcome, &attempt.wrote)
            && answer.applied
        {
            order.push((answer.revision, value));
        }
    }
    order.sort();
    assert!(order.windows(2).all(|pair| pair[0].0 < pair[1].0), "each change has its revision");
    for attempt in &history {
        let Ok(answer) = &attempt.outcome else { continue };
        let last = order.iter().rev().find(|(at, _)| *at <= answer.revision);
        let shown = answer.state.get("register").map(|item| (item.at, item.value.as_slice()));
        let is_unknown = |value: &[u8]| {
            let same = |attempt: &&Attempt| attempt.wrote.as_deref() == Some(value);
            writes().any(|attempt| same(&attempt) && attempt.outcome.is_err())
        };
        let fits = shown == last.copied() || shown.is_some_and(|(_, value)| is_unknown(value));
        assert!(fits, "{shown:?} is not what was written last, {last:?}");
    }
    let (mut finished, mut latest): (Vec<(u64, Revision)>, Revision) = (Vec::new(), Revision(0));
    for attempt in &history {
        let Ok(answer) = &attempt.outcome else { continue };
        finished.sort();
        while let Some(first) = finished.first().filter(|first| first.0 < attempt.began) {
            latest = latest.max(first.1);
            finished.remove(0);
        }
        assert!(answer.revision >= latest, "{attempt:?} saw the past: {latest} was over");
        finished.push((attempt.ended, answer.revision));
    }
}

pub async fn histories_are_linearizable(subject: &dyn Subject) {
    let clock = Arc::new(AtomicU64::new(0));
    let mut clients = JoinSet::new();
    for (name, way) in ways(subject, 6).await.into_iter().enumerate() {
        clients.spawn(client(way, name as u8, clock.clone()));
    }
    let history: Vec<Attempt> = clients.join_all().await.into_iter().flatten().collect();
    let applied = |attempt: &&Attempt| {
        attempt.wrote.is_some() && attempt.outcome.as_ref().is_ok_and(|answer| answer.applied)
    };
    assert!(history.iter().filter(applied).count() > 10, "clients get on");
    check(history);
}

/// Whoever does not know what came of a transaction says it again with the same guards. However late
/// the first is carried out, together they count once.
pub async fn what_was_given_up_and_repeated_is_done_once(subject: &dyn Subject) {
    let ways = ways(subject, 2).await;
    let (one, other) = (&*ways[0], &*ways[1]);
    let mut at = write(one, Txn::default().put("count", vec![0])).await.revision;
    for round in 1..=60_u8 {
        let guard = Guard::At("count".into(), at);
        let txn = Txn::default().given(guard).put("count", vec![round]);
        // From not sent at all to answered.
        let patience = Duration::from_micros(u64::from(round % 20) * 100);
        let given_up = tokio::time::timeout(patience, one.txn(txn.clone())).await.is_err();
        let answer = settle(other, txn).await;
        assert!(given_up || !answer.applied, "the first was carried out");
        assert_eq!(answer.state["count"].value, [round]);
        at = answer.state["count"].at;
    }
    let end = read(one).await;
    assert_eq!((end.state["count"].at, &end.state["count"].value), (at, &vec![60]));
}

pub async fn nobody_sees_half_of_a_transaction(subject: &dyn Subject) {
    let ways = ways(subject, 2).await;
    write(&*ways[0], Txn::default().put("left", vec![])).await;
    let mover = ways[0].clone();
    let moving = tokio::spawn(async move {
        for _ in 0..50 {
            write(&*mover, Txn::default().delete("left").put("right", vec![])).await;
            write(&*mover, Txn::default().delete("right").put("left", vec![])).await;
        }
    });
    while !moving.is_finished() {
        let state = read(&*ways[1]).await.state;
        assert_eq!(state.len(), 1, "{:?}", state.keys());
    }
    moving.await.unwrap();
}
