//! Who votes, and how that changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::error::{ClientWriteError, RaftError};
use openraft::{BasicNode, ChangeMembers, ServerState};
use tokio::time::Instant;

use super::Inner;
use super::core::Core;
use super::wire::{Id, Reply, Request};
use crate::Trouble;

/// A voter that is to be added has so long to catch up.
const CATCHING_UP: Duration = Duration::from_secs(10);

/// Who of these members votes: one, three or five. Two or four voters stand the loss of no more of them
/// than one or three do, and there are more to lose.
pub fn voters(members: &[String]) -> &[String] {
    let number = match members.len() {
        0 => 0,
        1 | 2 => 1,
        3 | 4 => 3,
        _ => 5,
    };
    &members[..number]
}

/// Whether these can vote.
fn check(names: &[String]) -> Result<(), Trouble> {
    let distinct: BTreeSet<&String> = names.iter().collect();
    let is_odd = !names.is_empty() && voters(names).len() == names.len();
    if distinct.len() != names.len() || !is_odd {
        return Err(Trouble::Refused("one, three or five members vote, each once".to_string()));
    }
    Ok(())
}

type Refusal = RaftError<Id, ClientWriteError<Id, BasicNode>>;

fn trouble(error: &Refusal) -> Trouble {
    Trouble::Unknown(format!("the voters may or may not have been changed: {error}"))
}

impl Inner {
    /// Changes who votes, wherever the leader is.
    pub(super) async fn change_voters(&self, names: Vec<String>) -> Result<(), Trouble> {
        check(&names)?;
        let deadline = Instant::now() + self.patience + 2 * CATCHING_UP;
        let mut why = "nobody leads".to_string();
        while Instant::now() < deadline {
            let core = self.core();
            if core.state() == ServerState::Leader {
                return self.change_here(&core, &names).await;
            }
            if let Some(leader) = core.leader() {
                let request = Request::ChangeVoters { names: names.clone() };
                match self.peers.ask(&leader, &request, 2 * CATCHING_UP).await {
                    Ok(Reply::Changed(outcome)) => return outcome,
                    Ok(Reply::NotLeader(_)) => {}
                    Ok(Reply::Failed(error)) => why = error,
                    Ok(_) => why = format!("'{leader}' replied to something else"),
                    Err(error) => why = error.to_string(),
                }
            } else if !core.shared.is_inside() {
                return Err(Trouble::Refused("only a voter changes who votes".to_string()));
            }
            core.pause().await;
        }
        Err(Trouble::Unreachable(why))
    }

    /// Changes who votes. This is the leader.
    pub(super) async fn change_here(&self, core: &Core, names: &[String]) -> Result<(), Trouble> {
        check(names)?;
        if self.is_leaving.load(Ordering::SeqCst) && names.contains(&self.me) {
            let why = format!("'{}' is about to leave, and cannot vote", self.me);
            return Err(Trouble::Refused(why));
        }
        // One at a time: openraft panics on changes in quick succession (1544).
        let _one = self.changing.lock().await;
        let current = core.voters();
        let mut wanted = BTreeMap::new();
        for name in names {
            wanted.insert(self.id_of(core, name, &current).await?, name.clone());
        }
        for (id, name) in &wanted {
            if current.get(name) != Some(id) {
                self.add_learner(core, *id, name).await?;
            }
        }
        let ids: BTreeSet<Id> = wanted.into_keys().collect();
        let changed = core.raft.change_membership(ids.clone(), false);
        let changed = tokio::time::timeout(CATCHING_UP, changed).await;
        changed
            .map_err(|_| Trouble::Unknown("the voters did not agree in time".to_string()))?
            .map_err(|error| trouble(&error))?;
        self.remove_learners(core, &ids).await;
        Ok(())
    }

    /// The voter that is behind a name now. A name whose disk was lost has another one than before,
    /// which takes the place of the old.
    async fn id_of(
        &self,
        core: &Core,
        name: &str,
        current: &BTreeMap<String, Id>,
    ) -> Result<Id, Trouble> {
        if name == self.me {
            return Ok(core.id);
        }
        match self.peers.ask(name, &Request::Who, self.patience).await {
            Ok(Reply::Me { id, .. }) => Ok(id),
            Ok(Reply::Failed(why)) if !current.contains_key(name) => {
                Err(Trouble::Unreachable(format!("'{name}' cannot vote: {why}")))
            }
            // One that votes already may be away for a while.
            _ => current.get(name).copied().ok_or_else(|| {
                Trouble::Unreachable(format!("'{name}' cannot be reached, so it cannot vote"))
            }),
        }
    }

    /// The voters whose disks were lost: under their names there are others now, which do not vote. Of those
    /// that do not answer nothing is known.
    pub(super) async fn replaced_voters(&self) -> Vec<String> {
        let core = self.core();
        let mut replaced = Vec::new();
        for (name, id) in core.voters() {
            if name != self.me
                && let Ok(Reply::Me { id: now, .. }) =
                    self.peers.ask(&name, &Request::Who, self.patience).await
                && now != id
            {
                replaced.push(name);
            }
        }
        replaced
    }

    /// A voter that is behind would hold up every write, so it catches up before it counts.
    async fn add_learner(&self, core: &Core, id: Id, name: &str) -> Result<(), Trouble> {
        let added = core.raft.add_learner(id, BasicNode::new(name), true);
        match tokio::time::timeout(CATCHING_UP, added).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(trouble(&error)),
            Err(_) => {
                self.remove_learners(core, &BTreeSet::new()).await;
                Err(Trouble::Unreachable(format!("'{name}' did not catch up in time")))
            }
        }
    }

    /// Takes out those that neither vote nor are going to.
    async fn remove_learners(&self, core: &Core, keep: &BTreeSet<Id>) {
        let learners: BTreeSet<Id> = {
            let metrics = core.raft.metrics().borrow().clone();
            let members = metrics.membership_config.membership().clone();
            members.learner_ids().filter(|id| !keep.contains(id)).collect()
        };
        if !learners.is_empty() && core.state() == ServerState::Leader {
            let removed = core.raft.change_membership(ChangeMembers::RemoveNodes(learners), false);
            // They do no harm: the next change removes them.
            let _ = tokio::time::timeout(self.patience, removed).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_three_or_five_vote() {
        let all: Vec<String> = (0..9).map(|number| format!("m{number}")).collect();
        for (members, expected) in [(0, 0), (1, 1), (2, 1), (3, 3), (4, 3), (5, 5), (6, 5), (9, 5)]
        {
            assert_eq!(voters(&all[..members]), &all[..expected], "of {members}");
            assert_eq!(check(&all[..members]).is_ok(), members > 0 && members == expected);
        }
        assert!(check(&[all[0].clone(), all[0].clone(), all[1].clone()]).is_err());
    }
}
