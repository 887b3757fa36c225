//! How a group begins, and how a voter leaves it.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use openraft::BasicNode;
use openraft::error::{InitializeError, RaftError};
use redb::Durability;
use tokio::time::Instant;

use super::Inner;
use super::core::Core;
use super::directory::{self, OpenError};
use super::disk::{COMMITTED, MARK, PURGED, SNAPSHOT, VOTE};
use super::voters::voters;
use super::wire::{Id, Reply, Request};

/// After so long, whoever could not be asked is asked again.
const AGAIN: Duration = Duration::from_millis(100);

impl Inner {
    /// What has to be done once, and what goes on in the background.
    pub(super) async fn begin(self: Arc<Self>) -> Result<(), OpenError> {
        let start = |error: &dyn std::error::Error| OpenError::Start(error.to_string());
        let core = self.core();
        tokio::spawn(watch_membership(Arc::downgrade(&self), self.peers.gone.subscribe()));
        let is_formed = core.raft.is_initialized().await.map_err(|error| start(&error))?;
        let may_form = self.may_form.load(Ordering::SeqCst);
        let is_first = self.members.first() == Some(&self.me);
        let is_alone = self.members.iter().all(|name| *name == self.me);
        if is_formed {
            // Whoever votes alone need not wait for a leader that might still be there.
            if core.voters().into_values().eq([core.id]) {
                core.raft.trigger().elect().await.map_err(|error| start(&error))?;
            }
        } else if is_alone && !may_form {
            return Err(OpenError::NotFounder(self.directory.clone()));
        } else if is_alone {
            let members = BTreeMap::from([(core.id, BasicNode::new(&self.me))]);
            initialize(&core, members).await.map_err(|error| start(&error))?;
        } else if may_form && is_first {
            let inner = Arc::downgrade(&self);
            tokio::spawn(async move {
                while let Some(inner) = inner.upgrade().filter(|inner| inner.disk().is_ok()) {
                    if inner.try_to_form().await {
                        return;
                    }
                    drop(inner);
                    tokio::time::sleep(AGAIN).await;
                }
            });
        }
        Ok(())
    }

    /// Begins the group if every voter is there and no member belongs to it already. Else this is one
    /// that lost its disk: the group has begun, once and for all, and others let it in again. Says whether
    /// there is nothing left to do.
    async fn try_to_form(&self) -> bool {
        let core = self.core();
        let will_vote = voters(&self.members);
        let mut members = BTreeMap::from([(core.id, BasicNode::new(&self.me))]);
        for name in self.members.iter().filter(|name| **name != self.me) {
            let votes = will_vote.contains(name);
            match self.peers.ask(name, &Request::Who, self.patience).await {
                Ok(Reply::Me { is_formed: true, .. }) => {
                    tracing::warn!(
                        me = self.me,
                        "'{name}' belongs to the group '{}' already: this member does not begin it anew, and waits to be let in",
                        self.group
                    );
                    self.belong().await;
                    return true;
                }
                Ok(Reply::Me { id, is_formed: false }) if votes => {
                    members.insert(id, BasicNode::new(name));
                }
                _ if votes => return false,
                // Who does not vote need not be there.
                _ => {}
            }
        }
        match initialize(&core, members).await {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(%error, "the registry could not be formed");
                false
            }
        }
    }

    /// The voter here has left the group. It keeps none of its promises, so it never comes back: another
    /// one takes its place in the directory, which waits to be let in.
    async fn begin_anew(&self, old: Id) {
        let _one = self.changing.lock().await;
        let core = self.core();
        let Ok(disk) = self.disk() else { return };
        if core.id != old {
            return;
        }
        let _ = core.raft.shutdown().await;
        let begun = async {
            let mark = directory::new_mark(&self.group, &self.me, false)?;
            self.may_form.store(false, Ordering::SeqCst);
            let wipe = |writing: &super::disk::Writing| {
                for key in [VOTE, COMMITTED, PURGED, SNAPSHOT] {
                    writing.delete_meta(key)?;
                }
                writing.delete_entries(..)?;
                writing.put_meta(MARK, &mark)
            };
            let wiped = disk.write(Durability::Immediate, wipe);
            wiped.map_err(|error| OpenError::Start(error.to_string()))?;
            Core::start(disk.clone(), mark.id, self.config.clone(), self.peers.clone()).await
        };
        match begun.await {
            Ok(core) => {
                *self.core.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(core);
                tracing::info!(me = self.me, "no longer a voter");
            }
            Err(error) => tracing::error!(%error, "a voter that left could not begin anew"),
        }
    }

    /// The disk did not keep something, or there was a panic, so the voter here has stopped. When the disk
    /// works again, the same voter goes on with what was kept, as after a crash.
    pub(super) async fn go_on(&self) -> Result<(), OpenError> {
        let start = |error: &dyn std::error::Error| OpenError::Start(error.to_string());
        let _one = self.changing.lock().await;
        let (core, Ok(disk)) = (self.core(), self.disk()) else { return Ok(()) };
        if !core.has_failed() {
            return Ok(());
        }
        let why = core.stopped().map(|error| error.to_string()).unwrap_or_default();
        let _ = core.raft.shutdown().await;
        let opening = Arc::clone(&disk);
        let opened = tokio::task::spawn_blocking(move || opening.reopen()).await;
        opened.map_err(|error| start(&error))?.map_err(|error| start(&error))?;
        let core = Core::start(disk, core.id, self.config.clone(), self.peers.clone()).await?;
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), why));
        *self.core.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(core);
        tracing::debug!(me = self.me, "the disk was opened again");
        Ok(())
    }

    /// The voter here, if the group has agreed on members without it. While it catches up it may see a
    /// time before it was let in again, so the last that is in its log counts.
    fn left(&self) -> Option<Id> {
        let core = self.core();
        let last = *core.raft.metrics().borrow().membership_config.log_id();
        let is_out = core.shared.look(|state| {
            let members = state.members.membership();
            let is_last = *state.members.log_id() == last;
            state.was_inside && is_last && members.get_node(&core.id).is_none()
        });
        is_out.then_some(core.id)
    }
}

async fn initialize(
    core: &Core,
    members: BTreeMap<Id, BasicNode>,
) -> Result<(), RaftError<Id, InitializeError<Id, BasicNode>>> {
    match core.raft.initialize(members).await {
        // Somebody was faster.
        Err(RaftError::APIError(InitializeError::NotAllowed(_))) => Ok(()),
        outcome => outcome,
    }
}

/// A removed voter would remain a candidate for ever, and disturb the others: it is stopped. One whose
/// disk did not work is begun again.
async fn watch_membership(
    inner: std::sync::Weak<Inner>,
    mut gone: tokio::sync::watch::Receiver<Option<Id>>,
) {
    while let Some(inner) = inner.upgrade().filter(|inner| inner.disk().is_ok()) {
        let mut metrics = inner.core().raft.metrics();
        // Seen before looking: a change from now on is not missed, and one before does not wake.
        metrics.mark_unchanged();
        let told = (*gone.borrow_and_update()).filter(|id| *id == inner.core().id);
        if let Some(old) = told.or_else(|| inner.left()) {
            inner.begin_anew(old).await;
            // If that failed, not again at once.
            tokio::time::sleep(AGAIN).await;
            continue;
        }
        if inner.core().has_failed() {
            // Not at once: it takes a moment until somebody has made room.
            tokio::time::sleep(10 * AGAIN).await;
            if let Err(error) = inner.go_on().await {
                tracing::debug!(%error, "the disk does not work yet");
            }
            continue;
        }
        drop(inner);
        tokio::select! {
            told = gone.changed() => if told.is_err() { return },
            // These end when another voter has begun, or the registry was closed.
            ended = metrics.changed() => if ended.is_err() { tokio::time::sleep(AGAIN).await },
            () = tokio::time::sleep(10 * AGAIN) => {}
        }
    }
}
