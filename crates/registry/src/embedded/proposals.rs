//! Many transactions, one entry of the log.
//!
//! An entry costs a flush on every voter. While one is on its way, what comes is gathered for the next:
//! so 64 writers get about as many answers per flush as there are writers.

use openraft::Raft;
use openraft::error::{ClientWriteError, Fatal, RaftError};
use tokio::sync::{mpsc, oneshot};

use super::wire::{Batch, Types};
use crate::{Answer, Op, Trouble, Txn};

/// So many wait for the next entry.
pub(super) const WAITING: usize = 1024;
/// The most transactions of an entry.
const MOST: usize = 256;
/// No transaction is added to an entry of so many bytes.
const LONG_ENOUGH: usize = 1 << 20;

/// A transaction, and where its answer goes.
pub(super) struct Proposal {
    pub(super) txn: Txn,
    pub(super) reply: oneshot::Sender<Result<Answer, Trouble>>,
}

fn size(txn: &Txn) -> usize {
    let value = |op: &Op| match op {
        Op::Put(_, value) => value.len(),
        Op::Delete(_) => 0,
    };
    let keys: usize = txn.guards.iter().map(|guard| guard.key().len()).sum();
    keys + txn.ops.iter().map(|op| op.key().len() + value(op)).sum::<usize>()
}

/// Proposes until nobody is left who could ask.
pub(super) async fn run(raft: Raft<Types>, mut queue: mpsc::Receiver<Proposal>) {
    while let Some(first) = queue.recv().await {
        let (mut batch, mut replies) = (Batch::default(), Vec::new());
        let mut bytes = 0;
        let mut next = Some(first);
        while let Some(Proposal { txn, reply }) = next {
            // Whoever has given up need not be surprised later.
            if !reply.is_closed() {
                bytes += size(&txn);
                batch.0.push(txn);
                replies.push(reply);
            }
            let is_full = batch.0.len() >= MOST || bytes >= LONG_ENOUGH;
            next = if is_full { None } else { queue.try_recv().ok() };
        }
        if batch.0.is_empty() {
            continue;
        }
        match raft.client_write(batch).await {
            Ok(written) => {
                for (reply, answer) in replies.into_iter().zip(written.data) {
                    // Whoever has given up does not hear it.
                    let _ = reply.send(Ok(answer));
                }
            }
            Err(error) => {
                let trouble = trouble(&error);
                for reply in replies {
                    let _ = reply.send(Err(trouble.clone()));
                }
            }
        }
    }
}

/// This voter led when it proposed. If it does not lead any more the entry may have got to others, and
/// be carried out by the next leader: openraft says the same for 'not proposed' and 'taken back here'.
fn trouble<N: openraft::Node>(error: &RaftError<u64, ClientWriteError<u64, N>>) -> Trouble {
    match error {
        RaftError::APIError(_) => Trouble::Unknown("the leader changed meanwhile".to_string()),
        RaftError::Fatal(Fatal::Stopped) => Trouble::Unknown("the voter has stopped".to_string()),
        RaftError::Fatal(error) => Trouble::Unknown(error.to_string()),
    }
}
