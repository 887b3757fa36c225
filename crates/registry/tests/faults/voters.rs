//! Who votes changes while the registry is in use.

use catraca_registry::embedded::{OpenError, Options};
use catraca_registry::{Embedded, Registry, Revision, Trouble, Txn};

use crate::support::{Group, eventually, insist, put, value};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

async fn votes(node: &Embedded, voters: &[&str]) {
    eventually("the voters are these", || async { (node.health().voters == voters).then_some(()) })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn voters_come_and_go_and_the_rest_uses_the_registry_through_them() {
    let group = Group::started(&["a", "b"]).await;
    let (a, b) = (group.node("a"), group.node("b"));
    insist(&b, put("k", "1")).await;
    assert_eq!(a.health().voters, ["a"], "of two, one votes");
    let refused = a.change_voters(&names(&["a", "b"])).await;
    assert!(matches!(refused, Err(Trouble::Refused(_))));
    let c = group.start_as("c", &["a", "b", "c"]).await;
    assert_eq!(value(&c, "k").await.unwrap(), "1");
    a.change_voters(&names(&["a", "b", "c"])).await.unwrap();
    for node in [&a, &b, &c] {
        votes(node, &["a", "b", "c"]).await;
    }
    // Three stand the loss of one, even of the first.
    group.stop("a").await;
    insist(&b, put("k", "2")).await;
    let a = group.start("a").await;
    b.change_voters(&names(&["b"])).await.unwrap();
    // Whoever votes no more is another from now on, and goes on through those who do.
    for node in [&a, &c] {
        votes(node, &[]).await;
        insist(node, put("k", "3")).await;
    }
    assert_eq!(b.health().voters, ["b"]);
    b.change_voters(&names(&["a", "b", "c"])).await.unwrap();
    votes(&c, &["a", "b", "c"]).await;
    group.stop("b").await;
    insist(&c, put("k", "4")).await;
    assert_eq!(value(&a, "k").await.unwrap(), "4");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_lost_its_disk_votes_only_after_it_was_let_in_again() {
    let group = Group::started(&["a", "b", "c"]).await;
    insist(&group.node("b"), put("k", "1")).await;
    // The first, which would begin the group if there were none.
    group.lose_disk("a").await;
    let (b, c) = (group.node("b"), group.node("c"));
    insist(&b, put("k", "2")).await;
    let a = group.start("a").await;
    assert_eq!(value(&a, "k").await.unwrap(), "2", "through the others");
    // It is not taken for the one that has promised something: a second must not go now.
    group.stop("c").await;
    let trouble = b.txn(put("k", "3")).await.unwrap_err();
    assert!(matches!(trouble, Trouble::Unknown(_) | Trouble::Unreachable(_)), "{trouble}");
    drop(c);
    let c = group.start("c").await;
    insist(&b, put("k", "4")).await;
    b.change_voters(&names(&["a", "b", "c"])).await.unwrap();
    group.stop("c").await;
    drop(c);
    insist(&a, put("k", "5")).await;
    assert_eq!(value(&b, "k").await.unwrap(), "5");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_was_taken_in_never_begins_a_group_of_its_own() {
    let group = Group::started(&["a", "b"]).await;
    let c = group.start_as("c", &["a", "b", "c"]).await;
    // It does not vote, but it belongs to the group from now on.
    insist(&c, put("k", "1")).await;
    assert_eq!(c.health().voters, [""; 0]);
    group.stop("c").await;
    drop(c);
    let alone = Options::alone(group.directory("c"), "group", "c");
    let refused = Embedded::open(alone).await.err().unwrap();
    assert!(matches!(refused, OpenError::NotFounder(_)), "{refused}");
    assert!(refused.to_string().contains("cannot begin another one: say where the others are"));
    // Nor with others, whether it is the first of them or not, and would vote or not.
    for members in [&["c", "d", "e"][..], &["d", "c"][..]] {
        for name in members.iter().rev() {
            group.start_as(name, members).await;
        }
        let trouble = group.node(members[0]).txn(put("k", "2")).await.unwrap_err();
        assert!(matches!(trouble, Trouble::Unreachable(_)), "{members:?}: {trouble}");
        for name in members {
            group.lose_disk_but(name, "c").await;
        }
    }
    // In its own group it is at home.
    let c = group.start_as("c", &["a", "b", "c"]).await;
    assert_eq!(value(&c, "k").await.unwrap(), "1");
    assert_eq!(value(&group.node("a"), "k").await.unwrap(), "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_of_two_that_lost_its_disk_begins_no_second_group_while_the_other_votes() {
    let group = Group::started(&["a", "b"]).await;
    let (a, b) = (group.node("a"), group.node("b"));
    insist(&a, put("k", "1")).await;
    a.change_voters(&names(&["b"])).await.unwrap();
    votes(&b, &["b"]).await;
    drop(a);
    group.lose_disk("a").await;
    let a = group.start("a").await;
    assert_eq!(value(&a, "k").await.unwrap(), "1", "through the other");
    assert_eq!(b.health().voters, ["b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_about_to_leave_is_not_made_a_voter() {
    let group = Group::started(&["a", "b", "c"]).await;
    let (a, b) = (group.node("a"), group.node("b"));
    insist(&b, put("k", "1")).await;
    a.refuse_votes(true);
    a.change_voters(&names(&["b"])).await.unwrap();
    votes(&a, &[]).await;
    let trouble = b.change_voters(&names(&["a", "b", "c"])).await.unwrap_err();
    assert!(trouble.to_string().contains("about to leave"), "{trouble}");
    assert_eq!(b.health().voters, ["b"]);
    a.refuse_votes(false);
    b.change_voters(&names(&["a", "b", "c"])).await.unwrap();
    votes(&a, &["a", "b", "c"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_never_voted_does_not_go_on_alone_and_is_left_as_it_is() {
    let group = Group::started(&["a", "b"]).await;
    let b = group.node("b");
    insist(&b, put("k", "1")).await;
    group.stop("b").await;
    drop(b);
    let refused = Embedded::recover_alone(&group.directory("b")).unwrap_err();
    assert!(matches!(refused, OpenError::Unused(_)), "{refused}");
    assert!(refused.to_string().contains("take the directory of a node that voted"), "{refused}");
    let b = group.start("b").await;
    assert_eq!(value(&b, "k").await.unwrap(), "1", "through the other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_was_removed_while_it_was_away_does_not_disturb() {
    let group = Group::started(&["a", "b", "c", "d"]).await;
    insist(&group.node("b"), put("k", "1")).await;
    group.stop("c").await;
    let a = group.node("a");
    a.change_voters(&names(&["a", "b", "d"])).await.unwrap();
    insist(&a, put("k", "2")).await;
    let c = group.start("c").await;
    votes(&c, &[]).await;
    assert_eq!(value(&c, "k").await.unwrap(), "2");
    a.change_voters(&names(&["a", "b", "c"])).await.unwrap();
    votes(&c, &["a", "b", "c"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_voter_can_be_made_to_go_on_alone() {
    let group = Group::started(&["a", "b", "c"]).await;
    insist(&group.node("b"), put("k", "1")).await;
    // A voter that does not lead may not have heard of the last when it is stopped.
    group.node("a").watch(Revision(0)).recv().await.unwrap();
    let directory = group.directory("c");
    let open = Embedded::recover_alone(&directory).unwrap_err().to_string();
    assert!(open.contains("another node uses"), "{open}");
    for name in ["a", "b", "c"] {
        group.stop(name).await;
    }
    Embedded::recover_alone(&group.directory("a")).unwrap();
    let a = group.start("a").await;
    assert_eq!(value(&a, "k").await.unwrap(), "1");
    insist(&a, put("k", "2")).await;
    assert_eq!(a.health().voters, ["a"]);
    // The others may have gone on for a while: no revision is one that they can have given.
    let revision = a.txn(Txn::read()).await.unwrap().revision;
    assert!(revision.0 > 1 << 40, "{revision}");
    for name in ["b", "c"] {
        std::fs::remove_dir_all(group.directory(name)).unwrap();
        group.start(name).await;
    }
    a.change_voters(&names(&["a", "b", "c"])).await.unwrap();
    group.stop("a").await;
    drop(a);
    assert_eq!(value(&group.node("c"), "k").await.unwrap(), "2");
}
