//! Raft's log and vote, on the disk.

use std::fmt::Debug;
use std::ops::RangeBounds;
use std::sync::{Arc, Mutex, PoisonError};

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{
    AnyError, Entry, LogId, LogState, OptionalSend, RaftLogReader, StorageError, StorageIOError,
    Vote,
};
use redb::Durability;

use super::disk::{COMMITTED, Disk, DiskError, PURGED, VOTE};
use super::wire::{Id, Types};

/// About so many bytes of the log are sent at once.
const SENT_AT_ONCE: usize = 1 << 20;

/// The log of one voter. Clones are the same log.
#[derive(Clone)]
pub(super) struct Log {
    disk: Arc<Disk>,
    /// What is known to be committed but not written down yet.
    committed: Arc<Mutex<Option<LogId<Id>>>>,
}

pub(super) fn unwritten(error: &DiskError) -> StorageError<Id> {
    StorageIOError::write(AnyError::new(error)).into()
}

pub(super) fn unread(error: &DiskError) -> StorageError<Id> {
    StorageIOError::read(AnyError::new(error)).into()
}

/// Does what waits for the disk where waiting does no harm.
pub(super) async fn on_disk<T: Send + 'static>(
    disk: &Arc<Disk>,
    work: impl FnOnce(&Disk) -> Result<T, DiskError> + Send + 'static,
) -> Result<T, StorageError<Id>> {
    let disk = disk.clone();
    let done = tokio::task::spawn_blocking(move || work(&disk)).await;
    let done = done.map_err(|error| StorageIOError::write(AnyError::new(&error)))?;
    done.map_err(|error| unwritten(&error))
}

impl Log {
    pub(super) fn new(disk: Arc<Disk>) -> Self {
        Log { disk, committed: Arc::default() }
    }

    fn take_committed(&self) -> Option<LogId<Id>> {
        *self.committed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry<Types>>, StorageError<Id>> {
        self.disk.entries(range, usize::MAX).map_err(|error| unread(&error))
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry<Types>>, StorageError<Id>> {
        self.disk.entries(start..end, SENT_AT_ONCE).map_err(|error| unread(&error))
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError<Id>> {
        let state = || {
            let purged: Option<LogId<Id>> = self.disk.meta(PURGED)?;
            let last = self.disk.last_entry()?.map(|entry| entry.log_id);
            Ok(LogState { last_purged_log_id: purged, last_log_id: last.or(purged) })
        };
        state().map_err(|error: DiskError| unread(&error))
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<Id>) -> Result<(), StorageError<Id>> {
        let vote = *vote;
        on_disk(&self.disk, move |disk| {
            disk.write(Durability::Immediate, |writing| writing.put_meta(VOTE, &vote))
        })
        .await
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<Id>>, StorageError<Id>> {
        self.disk.meta(VOTE).map_err(|error| unread(&error))
    }

    /// Written down with the next entries: a flush of its own would double the cost of a write. What is
    /// lost with it is found out again from the others.
    async fn save_committed(
        &mut self,
        committed: Option<LogId<Id>>,
    ) -> Result<(), StorageError<Id>> {
        *self.committed.lock().unwrap_or_else(PoisonError::into_inner) = committed;
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId<Id>>, StorageError<Id>> {
        match self.take_committed() {
            Some(committed) => Ok(Some(committed)),
            None => self.disk.meta(COMMITTED).map_err(|error| unread(&error)),
        }
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<Types>,
    ) -> Result<(), StorageError<Id>>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry<Types>> = entries.into_iter().collect();
        let committed = self.take_committed();
        on_disk(&self.disk, move |disk| {
            disk.write(Durability::Immediate, |writing| {
                if let Some(committed) = committed {
                    writing.put_meta(COMMITTED, &committed)?;
                }
                writing.append(&entries)
            })
        })
        .await?;
        callback.log_io_completed(Ok(()));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId<Id>) -> Result<(), StorageError<Id>> {
        on_disk(&self.disk, move |disk| {
            disk.write(Durability::Immediate, |writing| writing.delete_entries(log_id.index..))
        })
        .await
    }

    /// Need not last: what is purged after all is in a snapshot that does.
    async fn purge(&mut self, log_id: LogId<Id>) -> Result<(), StorageError<Id>> {
        on_disk(&self.disk, move |disk| {
            disk.write(Durability::None, |writing| {
                writing.put_meta(PURGED, &log_id)?;
                writing.delete_entries(..=log_id.index)
            })
        })
        .await
    }
}
