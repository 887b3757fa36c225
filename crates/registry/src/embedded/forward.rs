//! How a transaction finds the leader, and changes find whoever watches.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Inner;
use super::core::Tried;
use super::network::CallError;
use super::serve::NEWS;
use super::wire::{Reply, Request};
use crate::{Answer, Revision, Trouble, Txn, Word};

/// So many words wait for somebody who watches.
const WORDS: usize = 64;

impl Inner {
    /// Carries out a transaction, here or wherever the leader is, before patience ends. It is handed to
    /// another only as long as it is certain that nobody has carried it out.
    pub(super) async fn carry_out(&self, txn: Txn) -> Result<Answer, Trouble> {
        let deadline = Instant::now() + self.patience;
        let mut why = "nobody leads".to_string();
        loop {
            self.disk()?;
            let core = self.core();
            let leader = match core.attempt(&txn, deadline).await {
                Tried::Settled(answer) => return answer,
                Tried::NotLeader(leader) => leader,
                Tried::NotDone(reason) => {
                    why = reason;
                    None
                }
            };
            match self.ask_others(&txn, leader, deadline).await {
                Tried::Settled(answer) => {
                    if answer.is_ok() {
                        self.belong().await;
                    }
                    return answer;
                }
                Tried::NotLeader(_) => {}
                Tried::NotDone(reason) => why = reason,
            }
            if Instant::now() >= deadline {
                return Err(Trouble::Unreachable(why));
            }
            core.pause().await;
        }
    }

    /// Asks whoever is said to lead, then whoever that one says leads, then everybody who may know.
    async fn ask_others(&self, txn: &Txn, leader: Option<String>, deadline: Instant) -> Tried {
        let voters = self.core().voters().into_keys();
        let mut others: Vec<String> = voters.chain(self.members.iter().cloned()).collect();
        others.retain(|name| *name != self.me);
        let mut asked: Vec<String> = Vec::new();
        let mut next = leader;
        let mut outcome = Tried::NotLeader(None);
        loop {
            let name = next.take().filter(|name| !asked.contains(name) && *name != self.me);
            let other = || others.iter().find(|name| !asked.contains(name)).cloned();
            let Some(name) = name.or_else(other) else { return outcome };
            match self.ask(txn, &name, deadline).await {
                Tried::Settled(answer) => return Tried::Settled(answer),
                Tried::NotLeader(leader) => next = leader,
                not_done @ Tried::NotDone(_) => outcome = not_done,
            }
            asked.push(name);
            if Instant::now() >= deadline {
                return outcome;
            }
        }
    }

    async fn ask(&self, txn: &Txn, name: &str, deadline: Instant) -> Tried {
        let left = deadline.saturating_duration_since(Instant::now());
        // A read can be asked of somebody else, so nobody is waited for to the end.
        let within = if txn.is_read() { left.min(self.patience / 3) } else { left };
        let within_ms = u32::try_from(within.as_millis()).unwrap_or(u32::MAX);
        let request = Request::Txn { txn: txn.clone(), within_ms };
        match self.peers.ask(name, &request, within).await {
            Ok(Reply::Answered(Err(Trouble::Unreachable(why)))) => Tried::NotDone(why),
            // Another's disk is not this registry.
            Ok(Reply::Answered(Err(Trouble::Lost(why)))) => Tried::NotDone(why),
            Ok(Reply::Answered(answer)) => Tried::Settled(answer),
            Ok(Reply::NotLeader(leader)) => Tried::NotLeader(leader),
            Ok(Reply::Failed(why)) if txn.is_read() => Tried::NotDone(why),
            // It may be the answer that could not be sent.
            Ok(Reply::Failed(why)) => Tried::Settled(Err(Trouble::Unknown(why))),
            Ok(_) => Tried::Settled(Err(Trouble::Unknown("an odd reply".to_string()))),
            Err(CallError::NotSent(why)) => Tried::NotDone(why),
            Err(CallError::NoReply(why)) if txn.is_read() => Tried::NotDone(why),
            Err(CallError::NoReply(why)) => Tried::Settled(Err(Trouble::Unknown(why))),
        }
    }

    /// Changes after a revision, from the state here if it follows that of the group, else from a voter.
    /// None yet is an answer too.
    async fn news(&self, after: Revision) -> Vec<Word> {
        let core = self.core();
        if core.shared.is_inside() {
            let mut changed = core.shared.watch();
            let newer = changed.wait_for(|revision| *revision > after);
            let _ = tokio::time::timeout(NEWS, newer).await;
            return core.shared.changes(after);
        }
        for name in self.members.iter().filter(|name| **name != self.me) {
            let request = Request::Changes { after };
            if let Ok(Reply::Changes(words)) = self.peers.ask(name, &request, 4 * NEWS).await {
                return words;
            }
        }
        tokio::time::sleep(NOBODY).await;
        Vec::new()
    }
}

/// After so long, whoever could not be asked for changes is asked again.
const NOBODY: Duration = Duration::from_millis(100);

pub(super) fn watch(inner: &Arc<Inner>, mut after: Revision) -> mpsc::Receiver<Word> {
    let (tell, words) = mpsc::channel(WORDS);
    let inner = Arc::downgrade(inner);
    tokio::spawn(async move {
        while let Some(inner) = inner.upgrade().filter(|inner| inner.disk().is_ok()) {
            let news = tokio::select! {
                news = inner.news(after) => news,
                () = tell.closed() => return,
            };
            drop(inner);
            for word in news {
                after = match &word {
                    Word::Changed { at, .. } => *at,
                    Word::Gap { from } => *from,
                };
                if tell.send(word).await.is_err() {
                    return;
                }
            }
        }
    });
    words
}
