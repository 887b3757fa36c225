//! The registry as Raft's state machine, and its snapshots.
//!
//! The state is in memory. The disk has a snapshot and the log behind it, from which the state is made
//! again.

use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};

use openraft::storage::{RaftStateMachine, Snapshot};
use openraft::{
    AnyError, BasicNode, Entry, EntryPayload, LogId, OptionalSend, RaftSnapshotBuilder,
    SnapshotMeta, StorageError, StorageIOError, StoredMembership,
};
use redb::Durability;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::disk::{Disk, DiskError, MARK, Mark, SNAPSHOT};
use super::log::{on_disk, unread};
use super::wire::{Id, Types, decode, encode};
use crate::{Answer, Revision, Store, Txn, Word};

pub(super) type Members = StoredMembership<Id, BasicNode>;

/// What has been applied so far.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) store: Store,
    pub(super) applied: Option<LogId<Id>>,
    pub(super) members: Members,
    /// Whether this voter was in an earlier membership.
    pub(super) was_inside: bool,
}

/// The state, for whoever looks at it.
pub(super) struct Shared {
    me: Id,
    state: Mutex<State>,
    changed: watch::Sender<Revision>,
}

/// A snapshot as it is on the disk.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) meta: SnapshotMeta<Id, BasicNode>,
    pub(super) store: Vec<u8>,
}

impl Kept {
    /// A snapshot of a state. Its name says what it is of.
    pub(super) fn of(state: &State) -> Result<Self, StorageIOError<Id>> {
        let store = encode(&state.store);
        let store = store.map_err(|error| StorageIOError::write(AnyError::new(&error)))?;
        let at = state.applied.map_or("none".to_string(), |at| at.to_string());
        let meta = SnapshotMeta {
            last_log_id: state.applied,
            last_membership: state.members.clone(),
            snapshot_id: format!("{at}@{}", state.store.revision()),
        };
        Ok(Kept { meta, store })
    }

    pub(super) fn state(&self, me: Id) -> Result<State, DiskError> {
        let store = decode(&self.store);
        let store = store.map_err(|error| DiskError::Corrupt(format!("snapshot: {error}")))?;
        let members = self.meta.last_membership.clone();
        let was_inside = members.membership().get_node(&me).is_some();
        Ok(State { store, applied: self.meta.last_log_id, members, was_inside })
    }

    fn into_snapshot(self) -> Snapshot<Types> {
        Snapshot { meta: self.meta, snapshot: Box::new(Cursor::new(self.store)) }
    }

    /// Writes it down, unless a newer one is there: a snapshot that was long in the making can be ready
    /// after a newer one has come from the leader. What is there afterwards is given back.
    fn keep(self, disk: &Disk, me: Id) -> Result<Kept, DiskError> {
        disk.write(Durability::Immediate, |writing| {
            // The voter that made it may have left the group meanwhile, and another begun here.
            if writing.meta::<Mark>(MARK)?.is_none_or(|mark| mark.id != me) {
                return Ok(self);
            }
            let there: Option<Kept> = writing.meta(SNAPSHOT)?;
            match there {
                Some(there) if there.meta.last_log_id > self.meta.last_log_id => Ok(there),
                _ => {
                    writing.put_meta(SNAPSHOT, &self)?;
                    Ok(self)
                }
            }
        })
    }
}

impl Shared {
    pub(super) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers a transaction that changes nothing.
    pub(super) fn read(&self, txn: &Txn) -> Answer {
        debug_assert!(txn.is_read());
        self.change(|state| state.store.apply(txn))
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn changes(&self, after: Revision) -> Vec<Word> {
        self.look(|state| state.store.changes(after).collect())
    }

    pub(super) fn watch(&self) -> watch::Receiver<Revision> {
        self.changed.subscribe()
    }

    /// Whether the state here follows that of the group.
    pub(super) fn is_inside(&self) -> bool {
        self.look(|state| state.members.membership().get_node(&self.me).is_some())
    }

    fn tell(&self) {
        let revision = self.look(|state| state.store.revision());
        self.changed.send_replace(revision);
    }
}

/// What Raft applies entries to.
pub(super) struct Machine {
    shared: Arc<Shared>,
    disk: Arc<Disk>,
}

impl Machine {
    pub(super) fn load(disk: Arc<Disk>, me: Id) -> Result<(Self, Arc<Shared>), DiskError> {
        let kept: Option<Kept> = disk.meta(SNAPSHOT)?;
        let state = kept.map(|kept| kept.state(me)).transpose()?.unwrap_or_default();
        let (changed, _) = watch::channel(state.store.revision());
        let shared = Arc::new(Shared { me, state: Mutex::new(state), changed });
        Ok((Machine { shared: shared.clone(), disk }, shared))
    }
}

/// Applies one entry to a state.
pub(super) fn apply(
    state: &mut State,
    entry: Entry<Types>,
    me: Id,
) -> Result<Vec<Answer>, StorageError<Id>> {
    let expected = state.applied.map_or(0, |applied| applied.index + 1);
    if entry.log_id.index != expected {
        // To go on would be to forget what the others know. Raft stops at this error.
        let why = AnyError::error(format!("the next entry is {expected}, not {}", entry.log_id));
        return Err(StorageIOError::apply(entry.log_id, why).into());
    }
    state.applied = Some(entry.log_id);
    Ok(match entry.payload {
        EntryPayload::Blank => Vec::new(),
        EntryPayload::Normal(batch) => batch.0.iter().map(|txn| state.store.apply(txn)).collect(),
        EntryPayload::Membership(members) => {
            state.was_inside |= members.get_node(&me).is_some();
            state.members = StoredMembership::new(Some(entry.log_id), members);
            Vec::new()
        }
    })
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId<Id>>, Members), StorageError<Id>> {
        Ok(self.shared.look(|state| (state.applied, state.members.clone())))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Vec<Answer>>, StorageError<Id>>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let me = self.shared.me;
        let entries = entries.into_iter();
        let answers = self.shared.change(|state| {
            entries.map(|entry| apply(state, entry, me)).collect::<Result<Vec<_>, _>>()
        });
        self.shared.tell();
        answers
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        let state = self.shared.look(State::clone);
        Builder { me: self.shared.me, state, disk: self.disk.clone() }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError<Id>> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta<Id, BasicNode>,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError<Id>> {
        let kept = Kept { meta: meta.clone(), store: snapshot.into_inner() };
        let mut state = kept.state(self.shared.me).map_err(|error| unread(&error))?;
        let me = self.shared.me;
        on_disk(&self.disk, move |disk| kept.keep(disk, me)).await?;
        self.shared.change(|there| {
            // The state never goes back.
            if there.applied <= state.applied {
                state.was_inside |= there.was_inside;
                *there = state;
            }
        });
        self.shared.tell();
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError<Id>> {
        let kept = on_disk(&self.disk, |disk| disk.meta::<Kept>(SNAPSHOT)).await?;
        Ok(kept.map(Kept::into_snapshot))
    }
}

/// Makes a snapshot of a state while entries go on being applied.
pub(super) struct Builder {
    me: Id,
    state: State,
    disk: Arc<Disk>,
}

impl RaftSnapshotBuilder<Types> for Builder {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError<Id>> {
        let kept = Kept::of(&self.state)?;
        let me = self.me;
        let kept = on_disk(&self.disk, move |disk| kept.keep(disk, me)).await?;
        Ok(kept.into_snapshot())
    }
}

#[cfg(test)]
mod tests {
    use openraft::testing::{StoreBuilder, Suite};
    use openraft::{CommittedLeaderId, RaftLogId};

    use super::super::directory::{self, Opened};
    use super::super::faulty;
    use super::super::log::Log;
    use super::*;

    struct InMemory;

    /// The suite leaves entries out, which the machine takes for damage: they are made up.
    struct Lenient(Machine);

    impl RaftStateMachine<Types> for Lenient {
        type SnapshotBuilder = Builder;

        async fn applied_state(
            &mut self,
        ) -> Result<(Option<LogId<Id>>, Members), StorageError<Id>> {
            self.0.applied_state().await
        }

        async fn apply<I>(&mut self, entries: I) -> Result<Vec<Vec<Answer>>, StorageError<Id>>
        where
            I: IntoIterator<Item = Entry<Types>> + OptionalSend,
            I::IntoIter: OptionalSend,
        {
            let mut answers = Vec::new();
            for entry in entries {
                let before =
                    entry.log_id.index.checked_sub(1).map(|index| LogId { index, ..entry.log_id });
                self.0.shared.change(|state| state.applied = before);
                answers.extend(self.0.apply([entry]).await?);
            }
            Ok(answers)
        }

        async fn get_snapshot_builder(&mut self) -> Builder {
            self.0.get_snapshot_builder().await
        }

        async fn begin_receiving_snapshot(
            &mut self,
        ) -> Result<Box<Cursor<Vec<u8>>>, StorageError<Id>> {
            self.0.begin_receiving_snapshot().await
        }

        async fn install_snapshot(
            &mut self,
            meta: &SnapshotMeta<Id, BasicNode>,
            snapshot: Box<Cursor<Vec<u8>>>,
        ) -> Result<(), StorageError<Id>> {
            self.0.install_snapshot(meta, snapshot).await
        }

        async fn get_current_snapshot(
            &mut self,
        ) -> Result<Option<Snapshot<Types>>, StorageError<Id>> {
            self.0.get_current_snapshot().await
        }
    }

    impl StoreBuilder<Types, Log, Lenient> for InMemory {
        async fn build(&self) -> Result<((), Log, Lenient), StorageError<Id>> {
            let (disk, mark) = faulty::disk(&faulty::DiskContent::default()).unwrap();
            let machine = Machine::load(disk.clone(), mark.id).unwrap().0;
            Ok(((), Log::new(disk), Lenient(machine)))
        }
    }

    #[test]
    fn the_disk_does_what_openraft_expects_of_it() {
        Suite::test_all(InMemory).unwrap();
    }

    fn at(index: u64) -> LogId<Id> {
        LogId::new(CommittedLeaderId::new(1, 1), index)
    }

    #[test]
    fn a_gap_in_what_is_applied_is_an_error() {
        let mut state = State::default();
        let entry = |index| Entry { log_id: at(index), payload: EntryPayload::Blank };
        assert!(apply(&mut state, entry(1), 0).is_err());
        apply(&mut state, entry(0), 0).unwrap();
        assert!(apply(&mut state, entry(2), 0).is_err());
        assert_eq!(entry(2).get_log_id(), &at(2));
    }

    #[test]
    fn an_older_snapshot_never_takes_the_place_of_a_newer_one() {
        let place = tempfile::tempdir().unwrap();
        let Opened { disk, mark, .. } = directory::open(place.path(), "g", "a", true).unwrap();
        let of = |index| Kept::of(&State { applied: Some(at(index)), ..State::default() }).unwrap();
        of(5).keep(&disk, mark.id).unwrap();
        let there = of(3).keep(&disk, mark.id).unwrap();
        assert_eq!(there.meta.last_log_id, Some(at(5)));
        let kept: Kept = disk.meta(SNAPSHOT).unwrap().unwrap();
        assert_eq!(kept.meta.last_log_id, Some(at(5)));
        of(9).keep(&disk, mark.id + 1).unwrap();
        assert_eq!(of(7).keep(&disk, mark.id).unwrap().meta.last_log_id, Some(at(7)));
    }
}
