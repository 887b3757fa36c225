//! What a voter replies to others.

use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::ServerState;
use openraft::error::{InstallSnapshotError, RaftError};
use openraft::raft::{InstallSnapshotRequest, VoteRequest};
use tokio::time::Instant;

use super::Inner;
use super::core::{Core, Tried};
use super::wire::{Id, LARGEST_SNAPSHOT, Reply, Request, Types, decode_request, encode_reply};
use crate::{Revision, Trouble, Txn, Word};

/// Whoever asks for changes gets an answer after so long, even if there are none.
pub(super) const NEWS: Duration = Duration::from_millis(500);
/// About so many changes are told at once.
const TOLD_AT_ONCE: usize = 1000;

impl Inner {
    pub(super) async fn serve(&self, request: &[u8]) -> Vec<u8> {
        let reply = match decode_request(&self.group, request) {
            Ok(request) => self.reply(request).await,
            Err(error) => Reply::Failed(error.to_string()),
        };
        encode_reply(&reply)
    }

    async fn reply(&self, request: Request) -> Reply {
        let core = self.core();
        match request {
            Request::Append { to, .. }
            | Request::Vote { to, .. }
            | Request::Snapshot { to, .. }
                if to != core.id =>
            {
                Reply::Failed(format!("'{}' is another voter now: it lost its disk", self.me))
            }
            Request::Append { rpc, .. } => match core.raft.append_entries(rpc).await {
                Ok(response) => Reply::Append(response),
                Err(error) => Reply::Failed(error.to_string()),
            },
            Request::Vote { rpc, .. } => vote(&core, rpc).await,
            Request::Snapshot { rpc, .. } => snapshot(&core, rpc).await,
            Request::Txn { txn, within_ms } => {
                let within = Duration::from_millis(within_ms.into()).min(self.patience);
                attempt(&core, &txn, Instant::now() + within).await
            }
            Request::Changes { after } => changes(&core, after).await,
            Request::ChangeVoters { names } => {
                if core.state() == ServerState::Leader {
                    Reply::Changed(self.change_here(&core, &names).await)
                } else {
                    Reply::NotLeader(core.leader())
                }
            }
            Request::Who if self.is_leaving.load(Ordering::SeqCst) => {
                Reply::Failed("it is about to leave the group".to_string())
            }
            Request::Who => match core.raft.is_initialized().await {
                // One that does not vote may belong to a group too.
                Ok(is_formed) => Reply::Me {
                    id: core.id,
                    is_formed: is_formed || !self.may_form.load(Ordering::SeqCst),
                },
                Err(error) => Reply::Failed(error.to_string()),
            },
        }
    }
}

async fn attempt(core: &Core, txn: &Txn, deadline: Instant) -> Reply {
    if let Err(why) = txn.check() {
        return Reply::Answered(Err(Trouble::Refused(why.to_string())));
    }
    match core.attempt(txn, deadline).await {
        Tried::Settled(answer) => Reply::Answered(answer),
        Tried::NotLeader(leader) => Reply::NotLeader(leader),
        Tried::NotDone(why) => Reply::Answered(Err(Trouble::Unreachable(why))),
    }
}

/// A voter that was removed while it was away does not know, and would ask for votes for ever. If the
/// members have been agreed on without it after the last entry that it has, it is told.
async fn vote(core: &Core, rpc: VoteRequest<Id>) -> Reply {
    let candidate = rpc.vote.leader_id.voted_for();
    let is_gone = core.shared.look(|state| {
        let is_outside = |id: Id| state.members.membership().get_node(&id).is_none();
        let agreed = state.members.log_id().map(|at| at.index);
        candidate.is_some_and(is_outside) && rpc.last_log_id.map(|at| at.index) < agreed
    });
    if is_gone {
        return Reply::Gone;
    }
    match core.raft.vote(rpc).await {
        Ok(response) => Reply::Vote(response),
        Err(error) => Reply::Failed(error.to_string()),
    }
}

async fn snapshot(core: &Core, rpc: InstallSnapshotRequest<Types>) -> Reply {
    // The part says itself where it belongs: memory is taken up to there.
    if rpc.offset.saturating_add(rpc.data.len() as u64) > LARGEST_SNAPSHOT {
        return Reply::Failed("the snapshot is too large".to_string());
    }
    match core.raft.install_snapshot(rpc).await {
        Ok(response) => Reply::Snapshot(response),
        Err(RaftError::APIError(InstallSnapshotError::SnapshotMismatch(mismatch))) => {
            Reply::Restart(mismatch)
        }
        Err(error) => Reply::Failed(error.to_string()),
    }
}

async fn changes(core: &Core, after: Revision) -> Reply {
    if !core.shared.is_inside() {
        return Reply::NotLeader(core.leader());
    }
    let mut changed = core.shared.watch();
    let newer = changed.wait_for(|revision| *revision > after);
    // Nothing new is an answer too.
    let _ = tokio::time::timeout(NEWS, newer).await;
    Reply::Changes(first_of(core.shared.changes(after)))
}

/// The first changes, with all of the last revision: whoever goes on goes on after it.
fn first_of(mut words: Vec<Word>) -> Vec<Word> {
    let at = |word: &Word| match word {
        Word::Changed { at, .. } => *at,
        Word::Gap { from } => *from,
    };
    if let Some(last) = words.get(TOLD_AT_ONCE).map(at) {
        let end = words.iter().position(|word| at(word) > last).unwrap_or(words.len());
        words.truncate(end);
    }
    words
}
