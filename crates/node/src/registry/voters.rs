//! Who of the members votes on the registry, as the group grows and shrinks.
//!
//! The member that leads looks at the roster now and then. Whoever votes and belongs to the group goes on
//! to vote: a member that is away for a while is not replaced, or two of three that are away one after
//! the other would leave a group that cannot tell what it had agreed on. When fewer are to vote, those
//! that are away are the first to go.
//!
//! A member that leaves for ever hands its vote over before it goes. A group must never be left to the
//! vote of somebody who is not there any more.

use std::sync::Arc;
use std::time::Duration;

use catraca_group::Leaving;
use catraca_registry::embedded::voters;
use catraca_registry::{Embedded, Health, Registry};

use crate::engine::Engine;
use crate::mutex::hold;

/// How often the leader looks.
const LOOK: Duration = Duration::from_secs(1);
/// Whoever leaves for ever has so long to hand its vote over: its client waits.
const HANDING_OVER: Duration = Duration::from_secs(12);
/// Whoever stops has so long.
const STOPPING: Duration = Duration::from_secs(3);

/// Lets the right members vote, for as long as this one leads.
pub(crate) async fn keep(engine: Arc<Engine>, embedded: Embedded) {
    let mut told = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let health = embedded.health();
        if health.leader.as_deref() != Some(&engine.shape.own().name) {
            continue;
        }
        let Some(Group { roster, living }) = group(&engine, &health) else { continue };
        let lost = embedded.replaced_voters().await;
        let wanted = choose(&health.voters, &roster, &living);
        if wanted.is_empty() || (same(&wanted, &health.voters) && lost.is_empty()) {
            continue;
        }
        match embedded.change_voters(&wanted).await {
            Ok(()) => {
                told = None;
                tracing::info!(voters = wanted.join(", "), "these members vote on the registry");
            }
            Err(why) => {
                let why = why.to_string();
                if told.as_ref() != Some(&why) {
                    tracing::warn!(%why, "who votes on the registry could not be changed");
                }
                told = Some(why);
            }
        }
    }
}

/// Who belongs to the group, and who of them is there, as far as this node knows.
struct Group {
    roster: Vec<String>,
    living: Vec<String>,
}

fn group(engine: &Engine, health: &Health) -> Option<Group> {
    engine.with_membership(|membership| {
        let roster = membership.roster().iter().map(|it| it.name.clone()).collect();
        let view = membership.record().map(|record| record.members.clone()).unwrap_or_default();
        let view = view.into_iter().map(|entry| entry.member.name);
        // Until a lease is over, somebody who is lost is in the view.
        let living = view.filter(|name| !health.missing.contains(name)).collect();
        Group { roster, living }
    })
}

/// Takes this member out of its group for ever, in order. Its vote goes to others first: without that
/// the group would be left to the vote of somebody who is gone. An error says why it stays.
pub(crate) async fn leave(engine: &Engine) -> Result<(), String> {
    let own = &engine.shape.own().name;
    let others = engine.with_membership(|membership| {
        let record = membership.record();
        record.is_some_and(|record| record.members.iter().any(|it| it.member.name != *own))
    });
    if others != Some(true) {
        return Err("no other member is in the view: this is the last one of the group, and stays; stop its node with SIGTERM instead".to_string());
    }
    let embedded = hold(&engine.embedded).clone();
    if let Some(embedded) = &embedded {
        // From now on nobody gives it a vote.
        embedded.refuse_votes(true);
        let handed = tokio::time::timeout(HANDING_OVER, hand_over(engine, embedded)).await;
        let late = || "the others did not agree in time".to_string();
        if let Err(why) = handed.unwrap_or_else(|_| Err(late())) {
            embedded.refuse_votes(false);
            return Err(format!(
                "this member votes on the registry, and its vote cannot go to another one: {why}; it stays, or the group would be without its registry"
            ));
        }
    }
    engine.depart(Leaving::ForEver, engine.drain);
    Ok(())
}

/// Lets others vote in place of this member, if it votes.
async fn hand_over(engine: &Engine, embedded: &Embedded) -> Result<(), String> {
    let own = &engine.shape.own().name;
    let health = embedded.health();
    if !health.voters.contains(own) {
        return Ok(());
    }
    let others = |names: Vec<String>| -> Vec<String> {
        names.into_iter().filter(|name| name != own).collect()
    };
    let Some(Group { roster, living }) = group(engine, &health) else { return Ok(()) };
    let (roster, living) = (others(roster), others(living));
    let wanted = choose(&others(health.voters), &roster, &living);
    if !wanted.iter().any(|name| living.contains(name)) {
        return Err("no other member can be reached".to_string());
    }
    embedded.change_voters(&wanted).await.map_err(|trouble| trouble.to_string())?;
    tracing::info!(voters = wanted.join(", "), "these members vote on the registry instead");
    Ok(())
}

/// The only voter stops for a while: if another member is there, it votes from now on, and the group goes
/// on. Of several voters the others go on anyhow.
pub(crate) async fn leave_no_voter_behind(engine: &Engine, embedded: &Embedded) {
    let own = &engine.shape.own().name;
    let health = embedded.health();
    let Some(Group { living, .. }) = group(engine, &health) else { return };
    if health.voters != [own.clone()] || !living.iter().any(|name| name != own) {
        return;
    }
    embedded.refuse_votes(true);
    let handed = tokio::time::timeout(STOPPING, hand_over(engine, embedded)).await;
    let late = || "it did not answer in time".to_string();
    if let Err(why) = handed.unwrap_or_else(|_| Err(late())) {
        tracing::warn!(
            %why,
            "no other member votes in place of this one: the group grants nothing new until it is back"
        );
    }
}

/// Who should vote: those who do and belong to the group; and members that are there, until there are as
/// many as the group should have. If there are more than that, those that are there come first.
fn choose(present: &[String], roster: &[String], living: &[String]) -> Vec<String> {
    let number = voters(roster).len();
    let (here, away): (Vec<&String>, Vec<&String>) =
        roster.iter().filter(|name| present.contains(name)).partition(|name| living.contains(name));
    let coming = roster.iter().filter(|name| !present.contains(name) && living.contains(name));
    let mut chosen: Vec<String> = here.into_iter().chain(away).take(number).cloned().collect();
    chosen.extend(coming.take(number - chosen.len()).cloned());
    chosen.truncate(voters(&chosen).len());
    chosen
}

fn same(one: &[String], other: &[String]) -> bool {
    one.len() == other.len() && one.iter().all(|name| other.contains(name))
}

#[cfg(test)]
mod tests {
    use catraca_client::clock;
    use catraca_group::{Member, unpack_fence};
    use tokio::net::TcpListener;

    use super::*;
    use crate::registry::recover_alone;
    use crate::testing::{LIMIT, in_view};
    use crate::{Config, Node, RegistryPlace};

    const LEASE: Duration = Duration::from_secs(3);

    /// Members called a, b and so on, which keep their registry themselves, in one view.
    async fn group(folder: &std::path::Path, count: usize) -> Vec<Node> {
        let (mut listeners, mut members) = (Vec::new(), Vec::new());
        for index in 0..count {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let name = char::from(b'a' + index as u8).to_string();
            let address = listener.local_addr().unwrap().to_string();
            members.push(Member { name, address, cluster: None });
            listeners.push(listener);
        }
        let mut starting = tokio::task::JoinSet::new();
        for (member, listener) in members.iter().zip(listeners) {
            let mut config = Config::new(&member.name, members.clone());
            config.lease = LEASE;
            config.registry = RegistryPlace::Directory(folder.join(&member.name));
            starting.spawn(Node::start_at(config, listener));
        }
        let mut nodes: Vec<Node> =
            starting.join_all().await.into_iter().map(Result::unwrap).collect();
        nodes.sort_by(|one, other| one.engine.shape.own().name.cmp(&other.engine.shape.own().name));
        soon("they are in one view", || nodes.iter().all(|node| in_view(node) == count)).await;
        nodes
    }

    async fn soon(what: &str, is_so: impl Fn() -> bool) {
        let looking = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LIMIT, looking)
            .await
            .unwrap_or_else(|_| panic!("not in time: {what}"));
    }

    /// The registry answers this node, from now on.
    async fn goes_on(node: &Node) {
        let begun = clock::now();
        soon("its lease is renewed", || node.engine.valid_until() > begun + LEASE).await;
        drop(node.lock("x").within(LIMIT).await.unwrap());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_only_voter_leaves_for_ever_and_another_one_votes_before_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let mut nodes = group(folder.path(), 2).await;
        let (b, a) = (nodes.pop().unwrap(), nodes.pop().unwrap());
        soon("the first votes", || voting(&a) == ["a"]).await;
        leave(&a.engine).await.unwrap();
        tokio::time::timeout(LIMIT, a.left()).await.unwrap();
        soon("it votes before the first is gone", || voting(&b) == ["b"]).await;
        tokio::time::timeout(LIMIT, a.stop()).await.unwrap();
        goes_on(&b).await;
        let last = leave(&b.engine).await.unwrap_err();
        assert!(last.contains("this is the last one of the group"), "{last}");
        goes_on(&b).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_only_voter_stays_if_nobody_can_vote_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let mut nodes = group(folder.path(), 2).await;
        // It is in the view until its lease is over.
        let b = nodes.pop().unwrap();
        let registry = hold(&b.engine.embedded).clone().unwrap();
        tokio::time::timeout(LIMIT, registry.close()).await.unwrap();
        drop(b);
        let why = leave(&nodes[0].engine).await.unwrap_err();
        let (last, vote) = ("the last one of the group", "its vote cannot go to another one");
        assert!(why.contains(vote) || why.contains(last), "{why}");
        goes_on(&nodes[0]).await;
        assert_eq!(voting(&nodes[0]), ["a"]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_only_voter_that_stops_for_a_while_lets_another_one_vote() {
        let folder = tempfile::tempdir().unwrap();
        let mut nodes = group(folder.path(), 2).await;
        let (b, a) = (nodes.pop().unwrap(), nodes.pop().unwrap());
        tokio::time::timeout(LIMIT, a.stop()).await.unwrap();
        goes_on(&b).await;
        soon("it votes", || voting(&b) == ["b"]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn of_three_voters_one_leaves_for_ever_and_one_of_the_others_votes() {
        let folder = tempfile::tempdir().unwrap();
        let mut nodes = group(folder.path(), 3).await;
        let c = nodes.pop().unwrap();
        leave(&c.engine).await.unwrap();
        tokio::time::timeout(LIMIT, c.left()).await.unwrap();
        tokio::time::timeout(LIMIT, c.stop()).await.unwrap();
        soon("one votes", || voting(&nodes[0]).len() == 1 && voting(&nodes[0]) != ["c"]).await;
        for node in &nodes {
            goes_on(node).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_goes_on_after_a_recovery_is_later_than_all_that_others_may_have_said() {
        let folder = tempfile::tempdir().unwrap();
        let mut fences = Vec::new();
        for _ in 0..3 {
            let node = group(folder.path(), 1).await.pop().unwrap();
            let guard = node.lock("x").within(LIMIT).await.unwrap();
            fences.push(guard.fence());
            drop(guard);
            tokio::time::timeout(LIMIT, node.stop()).await.unwrap();
            recover_alone(&folder.path().join("a")).unwrap();
        }
        let epoch = |fence: u64| unpack_fence(catraca_core::Fence(fence)).0.0;
        for pair in fences.windows(2) {
            assert!(epoch(pair[1]) > epoch(pair[0]) + 60_000, "{fences:?}");
        }
    }

    fn voting(node: &Node) -> Vec<String> {
        let registry = node.status().registry.unwrap();
        registry.voters
    }

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn those_who_vote_go_on_to_vote_and_others_come_in_odd_numbers_and_the_lost_go_first() {
        for (present, roster, view, expected) in [
            ("a", "a", "a", "a"),
            ("a", "a b", "a b", "a"),
            ("a", "a b c", "a b", "a"),
            ("a", "a b c", "a b c", "a b c"),
            ("a b c", "a b c", "a", "a b c"),
            ("a b c", "a b c d", "a b c d", "a b c"),
            ("a b c", "a b c d e", "a b c d e", "a b c d e"),
            ("a b c", "a b c d e", "a b d e", "a b c d e"),
            ("a b c", "a b d e", "a b d e", "a b d"),
            ("a b c d e", "a b c d", "a b c d", "a b c"),
            // Whoever is lost goes first when fewer are to vote.
            ("a b c d e", "a b c d", "b c d", "b c d"),
            ("a b c d e", "b c d e", "b d", "b d c"),
            ("a b c", "a b", "b", "b"),
            ("b c", "b c", "c", "c"),
            ("a b c", "b", "b", "b"),
            ("a b c", "", "b", ""),
        ] {
            let chosen = choose(&names(present), &names(roster), &names(view));
            assert_eq!(chosen, names(expected), "{present} | {roster} | {view}");
        }
    }
}
