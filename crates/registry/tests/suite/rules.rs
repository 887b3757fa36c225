//! What a transaction does when nobody else is about.

use catraca_group::registry::{HOLDS, LARGEST_PAGE, LONGEST_KEY, LONGEST_VALUE, MOST_TERMS};
use catraca_registry::{Answer, Guard, Registry, Revision, Txn};

use super::{Subject, is_refused, read, settle, write};

fn put(key: &str) -> Txn {
    Txn::default().put(key, vec![1])
}

fn ids(answer: &Answer, key: &str) -> (Revision, Revision) {
    let item = &answer.state[key];
    (item.born, item.at)
}

pub async fn each_guard_holds_when_it_is_true_and_else_nothing_is_done(subject: &dyn Subject) {
    let registry = &*subject.open("group").await;
    let born = write(registry, put("a").given(Guard::Absent("a".into()))).await.revision;
    let at = write(registry, put("a")).await.revision;
    assert!(born < at);
    for (guard, holds) in [
        (Guard::Absent("b".into()), true),
        (Guard::Absent("a".into()), false),
        (Guard::At("a".into(), at), true),
        (Guard::At("a".into(), born), false),
        (Guard::At("b".into(), at), false),
        (Guard::At("b".into(), Revision(0)), false),
        (Guard::Born("a".into(), born), true),
        (Guard::Born("a".into(), at), false),
        (Guard::Born("b".into(), born), false),
        (Guard::Born("b".into(), Revision(0)), false),
    ] {
        // Alone, and as the last of several of which the others hold.
        for others in [vec![], vec![Guard::Born("a".into(), born), Guard::At("a".into(), at)]] {
            let before = read(registry).await;
            let guards = others.into_iter().chain([guard.clone()]);
            let txn = guards.fold(put("c"), Txn::given);
            let answer = settle(registry, txn).await;
            assert_eq!(answer.applied, holds, "{guard:?}");
            assert_eq!(answer.state.contains_key("c"), holds, "{guard:?}");
            assert_eq!(answer.revision > before.revision, holds, "{guard:?}");
            let after = read(registry).await;
            assert_eq!((after.state, after.revision), (answer.state, answer.revision));
            settle(registry, Txn::default().delete("c")).await;
        }
    }
    let looked = settle(registry, Txn::read().given(Guard::Absent("a".into()))).await;
    assert!(!looked.applied, "a read has guards too");
    assert_eq!(looked.state, read(registry).await.state);
}

pub async fn several_operations_are_carried_out_as_one(subject: &dyn Subject) {
    let registry = &*subject.open("group").await;
    write(registry, put("old").put("kept", vec![1])).await;
    let answer = write(registry, put("new").put("kept", vec![2]).delete("old")).await;
    assert_eq!(answer.state.keys().collect::<Vec<_>>(), ["kept", "new"]);
    assert_eq!(ids(&answer, "new"), (answer.revision, answer.revision));
    assert_eq!(ids(&answer, "kept").1, answer.revision, "all at one revision");
    assert_eq!(answer.state["kept"].value, [2]);
    let failed = put("more").delete("kept").given(Guard::Absent("new".into()));
    assert!(!settle(registry, failed).await.applied);
    assert_eq!(read(registry).await.state, answer.state);
    // As many as are allowed.
    let keys = || (0..MOST_TERMS).map(|number| format!("k{number}"));
    let many = keys().fold(Txn::default(), |txn, key| txn.put(&key, vec![]));
    let many = keys().fold(many, |txn, key| txn.given(Guard::Absent(key)));
    assert_eq!(write(registry, many).await.state.len(), 2 + MOST_TERMS);
    let none = keys().fold(Txn::default(), |txn, key| txn.delete(key));
    assert_eq!(write(registry, none).await.state.len(), 2);
}

pub async fn a_key_that_is_created_anew_is_born_anew(subject: &dyn Subject) {
    let registry = &*subject.open("group").await;
    let first = write(registry, put("a")).await;
    assert_eq!(ids(&first, "a"), (first.revision, first.revision));
    let second = write(registry, put("a")).await;
    assert_eq!(ids(&second, "a"), (first.revision, second.revision));
    let third = write(registry, put("b")).await;
    assert_eq!(ids(&third, "a"), (first.revision, second.revision), "not touched");
    let gone = write(registry, Txn::default().delete("a")).await;
    assert!(gone.revision > third.revision && !gone.state.contains_key("a"));
    let fourth = write(registry, put("a")).await;
    assert_eq!(ids(&fourth, "a"), (fourth.revision, fourth.revision));
    let late = put("a").given(Guard::Born("a".into(), first.revision));
    assert!(!settle(registry, late).await.applied, "whoever knew it before is out");
}

pub async fn deleting_what_is_not_there_is_no_change(subject: &dyn Subject) {
    let registry = &*subject.open("group").await;
    let before = write(registry, put("a")).await;
    let mut words = registry.watch(before.revision);
    let answer = write(registry, Txn::default().delete("b").delete("c")).await;
    assert_eq!((answer.revision, &answer.state), (before.revision, &before.state));
    assert_eq!(read(registry).await.revision, before.revision);
    let next = write(registry, put("d").delete("b")).await;
    let word = words.recv().await.unwrap();
    assert_eq!(word, catraca_registry::Word::Changed { key: "d".into(), at: next.revision });
}

pub async fn keys_and_values_of_any_kind_come_back_as_they_were(subject: &dyn Subject) {
    let registry = &*subject.open("group").await;
    let long = "k".repeat(LONGEST_KEY);
    let bytes: Vec<u8> = (0..=255).collect();
    for (key, value) in [
        (long.as_str(), vec![]),
        ("\u{1}", bytes.clone()),
        ("é/ü \u{10ffff}\n\"'%\\", bytes),
        ("/", vec![0; LONGEST_VALUE]),
        ("hold", vec![0]),
        ("holds/", vec![0]),
    ] {
        let answer = write(registry, Txn::default().put(key, value.clone())).await;
        assert_eq!(answer.state[key].value, value);
        let at = Guard::At(key.into(), answer.revision);
        let gone = write(registry, Txn::default().delete(key).given(at)).await;
        assert!(gone.state.is_empty());
    }
}

/// More than one page holds.
const HELD: u32 = LARGEST_PAGE + 3;

async fn page(registry: &dyn Registry, after: &str, limit: u32) -> (Vec<String>, bool) {
    let answer = write(registry, Txn::read().with_page(after, limit)).await;
    assert_eq!(answer.state.keys().collect::<Vec<_>>(), ["holds", "view"]);
    (answer.holds.into_iter().map(|(key, _)| key).collect(), answer.more)
}

pub async fn durable_holds_come_in_pages_and_other_keys_always(subject: &dyn Subject) {
    let registry = &*subject.open("group").await;
    write(registry, put("view").put("holds", vec![])).await;
    let keys: Vec<String> = (0..HELD).map(|number| format!("{HOLDS}{number:05}")).collect();
    for some in keys.chunks(MOST_TERMS) {
        let txn = some.iter().fold(Txn::default(), |txn, key| txn.put(key, key.clone().into()));
        assert!(write(registry, txn).await.holds.is_empty(), "no page was asked for");
    }
    assert_eq!(page(registry, "", 10).await, (keys[..10].to_vec(), true));
    assert_eq!(page(registry, &keys[9], 2).await, (keys[10..12].to_vec(), true));
    assert_eq!(page(registry, "a", 2).await, (keys[..2].to_vec(), true));
    assert_eq!(page(registry, "hold/00001x", 2).await, (keys[2..4].to_vec(), true));
    assert_eq!(page(registry, "", 0).await, (vec![], true));
    assert_eq!(page(registry, "i", 10).await, (vec![], false));
    let (first, more) = page(registry, "", u32::MAX).await;
    assert_eq!((first.as_slice(), more), (&keys[..LARGEST_PAGE as usize], true));
    assert_eq!(page(registry, first.last().unwrap(), 3).await, (keys[1000..].to_vec(), false));
    // A page shows what is there after the operations, or what stands in their way.
    let swap = Txn::default().delete(&keys[0]).put("hold/0", vec![7]).with_page("", 1);
    let answer = write(registry, swap.clone()).await;
    let (key, item) = answer.holds.into_iter().next().unwrap();
    assert_eq!((key.as_str(), item.value, item.born), ("hold/0", vec![7], answer.revision));
    let answer = settle(registry, swap.given(Guard::Absent("view".into()))).await;
    assert!(!answer.applied && answer.holds.len() == 1 && answer.more);
}

pub async fn what_no_registry_can_do_is_refused(subject: &dyn Subject) {
    let registry = &*subject.open("group").await;
    let before = write(registry, put("a")).await;
    let long = "k".repeat(LONGEST_KEY + 1);
    for txn in [
        put("a").put("a", vec![]),
        put("b").delete("b"),
        put(""),
        put(&long),
        put("b\0"),
        put("b").given(Guard::Absent(String::new())),
        Txn::read().given(Guard::Absent("b\0c".into())),
        Txn::default().put("b", vec![0; LONGEST_VALUE + 1]),
        (0..=MOST_TERMS).fold(Txn::default(), |txn, number| txn.delete(number.to_string())),
        (0..=MOST_TERMS).fold(put("b"), |txn, _| txn.given(Guard::Absent("c".into()))),
    ] {
        assert!(is_refused(&registry.txn(txn.clone()).await), "{txn:?}");
    }
    let after = read(registry).await;
    assert_eq!((after.revision, after.state), (before.revision, before.state));
}

pub async fn groups_do_not_see_each_other(subject: &dyn Subject) {
    if !subject.has_groups() {
        return;
    }
    // The name of one begins like the name of the other.
    let (one, other) = (&*subject.open("green").await, &*subject.open("greenish").await);
    let mine = write(one, put("a").put("hold/a", vec![])).await;
    let theirs = write(other, put("b").given(Guard::Absent("a".into()))).await;
    assert_eq!(mine.state.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(theirs.state.keys().collect::<Vec<_>>(), ["b"]);
    assert!(write(other, Txn::read().with_page("", 10)).await.holds.is_empty());
    let mut words = other.watch(Revision(0));
    write(one, put("c")).await;
    write(other, put("d")).await;
    for expected in ["b", "d"] {
        match words.recv().await.unwrap() {
            catraca_registry::Word::Changed { key, .. } => assert_eq!(key, expected),
            gap => panic!("{gap:?}"),
        }
    }
}
