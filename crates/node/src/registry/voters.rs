//! Who of the members votes on the registry, as the group grows and shrinks.
//!
//! The member that leads looks at the roster now and then. Whoever votes and belongs to the group goes on
//! to vote: a member that is away for a while is not replaced, or two of three that are away one after
//! the other would leave a group that cannot tell what it had agreed on.

use std::sync::Arc;
use std::time::Duration;

use catraca_registry::embedded::voters;
use catraca_registry::{Embedded, Registry};

use crate::engine::Engine;

/// How often the leader looks.
const LOOK: Duration = Duration::from_secs(1);

/// Lets the right members vote, for as long as this one leads.
pub(crate) async fn keep(engine: Arc<Engine>, embedded: Embedded) {
    let mut told = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let health = embedded.health();
        if health.leader.as_deref() != Some(&engine.shape.own().name) {
            continue;
        }
        let known = engine.with_membership(|membership| {
            let roster: Vec<String> =
                membership.roster().iter().map(|it| it.name.clone()).collect();
            let view = membership.record().map(|record| record.members.clone()).unwrap_or_default();
            (roster, view.into_iter().map(|entry| entry.member.name).collect::<Vec<_>>())
        });
        let Some((roster, view)) = known else { continue };
        let lost = embedded.replaced_voters().await;
        let wanted = choose(&health.voters, &roster, &view);
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

/// Who should vote: those who do and belong to the group; and members of the view, until there are as many
/// as the group should have.
fn choose(present: &[String], roster: &[String], view: &[String]) -> Vec<String> {
    let number = voters(roster).len();
    let staying = roster.iter().filter(|name| present.contains(name));
    let coming = roster.iter().filter(|name| !present.contains(name) && view.contains(name));
    let mut chosen: Vec<String> = staying.chain(coming).take(number).cloned().collect();
    chosen.truncate(voters(&chosen).len());
    chosen
}

fn same(one: &[String], other: &[String]) -> bool {
    one.len() == other.len() && one.iter().all(|name| other.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn those_who_vote_go_on_to_vote_and_others_come_in_odd_numbers() {
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
            ("a b c", "b", "b", "b"),
            ("a b c", "", "b", ""),
        ] {
            let chosen = choose(&names(present), &names(roster), &names(view));
            assert_eq!(chosen, names(expected), "{present} | {roster} | {view}");
        }
    }
}
