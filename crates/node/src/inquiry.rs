//! Whether somebody elsewhere is inside: a question to the other members.
//!
//! An algorithm has no word for "no"; it grants, sooner or later. So whoever does not want to wait
//! for others asks the algorithm and, beside it, the other members, as a client of theirs. Only
//! somebody who is inside counts: a member may have the token of a lock that is free.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use catraca_core::Claim;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::client::{Client, ClientError};
use crate::host::Host;
use crate::protocol::{Ask, Tell};
use crate::request::steps;
use crate::shard::Key;

/// So many questions can wait for one member, and are put to it in one go.
const MOST_QUESTIONS: usize = 256;
/// A member that does not answer in this time does not answer. It is more than most askers have, so
/// that a connection to a distant member can be made for those who ask next.
const PATIENCE: Duration = Duration::from_secs(2);
/// A connection over which nothing has been asked for so long is closed.
const IDLE: Duration = Duration::from_secs(10);

/// Whether a client of this node is inside one of `names`, each a lock with one permit.
pub(crate) fn is_held_here(host: &Host, names: &[&str]) -> bool {
    let plan = &host.plan;
    steps(plan, names).into_iter().any(|((name, namespace), names)| {
        let resource = |name: &str| plan.resource(namespace, name);
        let asked =
            plan.knows_sets(namespace, 1).then(|| Claim::of(names.into_iter().map(resource)));
        let is_held = host.look_at(Key { name, permits: 1 }, |lock| {
            lock.holds().any(|hold| match (&asked, &hold.set) {
                // Names that share a resource exclude each other.
                (Some(asked), Some(held)) => asked.overlaps(&held.claim),
                _ => true,
            })
        });
        is_held.unwrap_or(false)
    })
}

/// A question for one member, and where to say yes. Whoever says nothing drops it.
struct Question {
    ask: Arc<Ask>,
    yes: mpsc::Sender<()>,
}

/// The way to the other members.
pub(crate) struct Inquiries(Vec<mpsc::Sender<Question>>);

impl Inquiries {
    /// One task for each other member. It calls the member when there is something to ask.
    pub(crate) fn start(host: &Arc<Host>) -> (Self, Vec<JoinHandle<()>>) {
        let others = (0..host.plan.members.len()).filter(|&member| member != host.plan.me);
        let (ways, tasks) = others
            .map(|member| {
                let (way, questions) = mpsc::channel(MOST_QUESTIONS);
                (way, tokio::spawn(inquire(Arc::clone(host), member, questions)))
            })
            .unzip();
        (Inquiries(ways), tasks)
    }

    /// Returns when a member has said that somebody there is inside one of `names`; otherwise never.
    pub(crate) async fn held_elsewhere(&self, names: &[&str]) {
        let names = names.iter().map(|name| name.to_string()).collect();
        let ask = Arc::new(Ask::Held { names });
        let (yes, mut answers) = mpsc::channel(1);
        for way in &self.0 {
            // A member with so many questions before this one does not answer in time.
            let _ = way.try_send(Question { ask: Arc::clone(&ask), yes: yes.clone() });
        }
        drop(yes);
        if answers.recv().await.is_none() {
            pending::<()>().await;
        }
    }
}

/// Puts questions to `member`, for as long as the node lives.
async fn inquire(host: Arc<Host>, member: usize, mut questions: mpsc::Receiver<Question>) {
    let mut client = None;
    let mut batch = Vec::new();
    loop {
        let limit = if client.is_some() { IDLE } else { Duration::MAX };
        match timeout(limit, questions.recv_many(&mut batch, MOST_QUESTIONS)).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(_) => client = None,
        }
        // Most askers have been told by another member, or granted, before a late answer comes.
        batch.retain(|question| !question.yes.is_closed());
        if batch.is_empty() {
            continue;
        }
        let put = put(&host, member, client.take(), &batch);
        client = timeout(PATIENCE, put).await.unwrap_or(None);
        batch.clear();
    }
}

/// Puts `questions` to `member` over the connection that was `kept`, or over a new one. Returns the
/// connection if it can be used again.
async fn put(
    host: &Host,
    member: usize,
    kept: Option<Client>,
    questions: &[Question],
) -> Option<Client> {
    if let Some(mut kept) = kept
        && put_over(&mut kept, questions).await.is_ok()
    {
        return Some(kept);
    }
    let mut client = Client::connect(&host.plan.members[member].address).await.ok()?;
    // An address may lead elsewhere from here, even back to this node. Only the process at the other
    // side of the link is the member.
    if host.links.to(member)?.incarnation() != Some(client.incarnation()) {
        return None;
    }
    put_over(&mut client, questions).await.ok()?;
    Some(client)
}

async fn put_over(client: &mut Client, questions: &[Question]) -> Result<(), ClientError> {
    for Question { ask, .. } in questions {
        client.ask(ask).await?;
    }
    for Question { yes, .. } in questions {
        match client.hear().await? {
            // Another member may have said it before.
            Tell::Held { is_held: true } => drop(yes.try_send(())),
            Tell::Held { is_held: false } => {}
            _ => return Err(ClientError::Over),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::MOST_NAMES;
    use crate::{Config, Node};

    #[tokio::test]
    async fn whoever_is_inside_is_told_of_and_too_many_names_are_not_listened_to() {
        let config = Config { listen: Some("127.0.0.1:0".to_string()), ..Config::alone() };
        let node = Node::start(config).await.unwrap();
        drop(node.lock("free").await.unwrap());
        let _held = node.lock("held").await.unwrap();
        let mut client = Client::connect(&node.address().to_string()).await.unwrap();
        let mut names = vec!["free".to_string(); MOST_NAMES];
        for (last, is_held) in [("free", false), ("held", true), ("unknown", false)] {
            names[MOST_NAMES - 1] = last.to_string();
            client.ask(&Ask::Held { names: names.clone() }).await.unwrap();
            assert_eq!(client.hear().await.unwrap(), Tell::Held { is_held }, "{last}");
        }
        names.push("held".to_string());
        client.ask(&Ask::Held { names }).await.unwrap();
        assert_eq!(client.hear().await.unwrap(), Tell::Over);
    }
}
