//! One voter: Raft, the state that it keeps, and the queue in front of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openraft::error::{CheckIsLeaderError, Fatal, RaftError};
use openraft::{Config, Raft, ServerState};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::directory::OpenError;
use super::disk::Disk;
use super::log::Log;
use super::machine::{Machine, Shared};
use super::network::{Links, Peers};
use super::proposals::{self, Proposal, WAITING};
use super::wire::{Id, Types};
use crate::{Answer, Trouble, Txn};

/// After so long somebody who could not be asked is asked again.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Core {
    pub(super) id: Id,
    pub(super) raft: Raft<Types>,
    pub(super) shared: Arc<Shared>,
    propose: mpsc::Sender<Proposal>,
}

/// What came of asking somebody.
pub(super) enum Tried {
    Settled(Result<Answer, Trouble>),
    /// Nothing was done: somebody else leads.
    NotLeader(Option<String>),
    /// Nothing was done, and why.
    NotDone(String),
}

impl Core {
    pub(super) async fn start(
        disk: Arc<Disk>,
        id: Id,
        config: Arc<Config>,
        peers: Arc<Peers>,
    ) -> Result<Self, OpenError> {
        let start = |error: &dyn std::error::Error| OpenError::Start(error.to_string());
        let (machine, shared) = Machine::load(disk.clone(), id).map_err(|error| start(&error))?;
        let links = Links { me: id, peers };
        let raft = Raft::new(id, config, links, Log::new(disk), machine).await;
        let raft = raft.map_err(|error| start(&error))?;
        let (propose, queue) = mpsc::channel(WAITING);
        tokio::spawn(proposals::run(raft.clone(), queue));
        Ok(Core { id, raft, shared, propose })
    }

    pub(super) fn state(&self) -> ServerState {
        self.raft.metrics().borrow().state
    }

    /// The name of whoever leads, if it is somebody else.
    pub(super) fn leader(&self) -> Option<String> {
        let metrics = self.raft.metrics().borrow().clone();
        let leader = metrics.current_leader.filter(|leader| *leader != self.id)?;
        let node = metrics.membership_config.membership().get_node(&leader).cloned();
        node.map(|node| node.addr)
    }

    /// Who votes, as far as is known here.
    pub(super) fn voters(&self) -> BTreeMap<String, Id> {
        let metrics = self.raft.metrics().borrow().clone();
        let members = metrics.membership_config.membership();
        let named = |id: Id| Some((members.get_node(&id)?.addr.clone(), id));
        members.voter_ids().filter_map(named).collect()
    }

    /// What has stopped it, if something has.
    pub(super) fn stopped(&self) -> Option<Fatal<Id>> {
        let metrics = self.raft.metrics();
        let said = metrics.borrow().running_state.clone().err();
        // Whoever panics says nothing any more.
        said.or_else(|| metrics.has_changed().is_err().then_some(Fatal::Panicked))
    }

    /// Whether it has stopped because the disk did not do what it should, or because of a defect. What is on
    /// the disk is whole in any case.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.stopped(), Some(Fatal::StorageError(_) | Fatal::Panicked))
    }

    /// Waits a little, for a leader to be found.
    pub(super) async fn pause(&self) {
        let mut metrics = self.raft.server_metrics();
        metrics.mark_unchanged();
        let _ = tokio::time::timeout(PAUSE, metrics.changed()).await;
    }

    /// Carries out a transaction, if this voter leads.
    pub(super) async fn attempt(&self, txn: &Txn, deadline: Instant) -> Tried {
        match self.stopped() {
            // It has left the group, or failed, and another is about to take its place.
            Some(Fatal::Stopped | Fatal::Panicked) => {
                return Tried::NotDone("this voter has stopped".to_string());
            }
            Some(error) => return Tried::Settled(Err(Trouble::Lost(error.to_string()))),
            None => {}
        }
        if self.state() != ServerState::Leader {
            return Tried::NotLeader(self.leader());
        }
        // What is under way to the log comes on top: the limit is far from where it would hurt.
        if let Err(why) = self.shared.look(|state| state.store.check_room(txn)) {
            return Tried::Settled(Err(Trouble::Refused(why)));
        }
        if txn.is_read() { self.read(txn, deadline).await } else { self.write(txn, deadline).await }
    }

    async fn read(&self, txn: &Txn, deadline: Instant) -> Tried {
        match timeout_at(deadline, self.raft.ensure_linearizable()).await {
            Ok(Ok(_)) => Tried::Settled(Ok(self.shared.read(txn))),
            Ok(Err(RaftError::APIError(CheckIsLeaderError::ForwardToLeader(_)))) => {
                Tried::NotLeader(self.leader())
            }
            Ok(Err(error)) => Tried::NotDone(error.to_string()),
            Err(_) => Tried::NotDone("no majority answered in time".to_string()),
        }
    }

    async fn write(&self, txn: &Txn, deadline: Instant) -> Tried {
        let Ok(Ok(place)) = timeout_at(deadline, self.propose.reserve()).await else {
            return Tried::NotDone("too much waits for the disk".to_string());
        };
        let (reply, answer) = oneshot::channel();
        place.send(Proposal { txn: txn.clone(), reply });
        Tried::Settled(match timeout_at(deadline, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Trouble::Unknown("the voter has stopped".to_string())),
            Err(_) => Err(Trouble::Unknown("no majority agreed in time".to_string())),
        })
    }
}
