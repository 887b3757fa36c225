//! What a voter keeps on its disk, and the directory in which it does.
//!
//! One redb file has everything: vote, log, the last snapshot, and a few notes of the node's own. redb
//! does not look at checksums when it reads (of 400 flipped bits 358 were read silently), so every value
//! is sealed with one of ours, and everything is looked at once when the directory is opened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::{fmt, fs, io};

use redb::{
    Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::wire::{Id, Types, decode, encode};

type Entry = openraft::Entry<Types>;

const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const NOTES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("notes");

/// Keys of what there is one of.
pub(super) const MARK: &str = "mark";
pub(super) const VOTE: &str = "vote";
pub(super) const COMMITTED: &str = "committed";
pub(super) const PURGED: &str = "purged";
pub(super) const SNAPSHOT: &str = "snapshot";

/// Why the disk does not do what it should.
#[derive(Debug, thiserror::Error)]
pub(super) enum DiskError {
    #[error("the disk is full")]
    Full,
    #[error("what is on the disk is damaged: {0}")]
    Corrupt(String),
    #[error("the disk does not work: {0}")]
    Broken(Box<redb::Error>),
    #[error("the disk could not be opened again yet")]
    Away,
}

impl From<redb::Error> for DiskError {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Corrupted(why) => DiskError::Corrupt(why),
            redb::Error::Io(error) if error.kind() == io::ErrorKind::StorageFull => DiskError::Full,
            error => DiskError::Broken(Box::new(error)),
        }
    }
}

macro_rules! from_redb {
    ($($error:ident)*) => {$(
        impl From<redb::$error> for DiskError {
            fn from(error: redb::$error) -> Self {
                redb::Error::from(error).into()
            }
        }
    )*};
}
from_redb!(StorageError TableError TransactionError CommitError SetDurabilityError DatabaseError);

/// What a directory says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub(super) struct Mark {
    pub(super) version: u32,
    pub(super) group: String,
    pub(super) me: String,
    /// The voter in this directory. It is made anew with the directory: one who lost its disk has
    /// forgotten its promises, and must not be taken for the one who made them.
    pub(super) id: Id,
    /// Whether it may begin a group. One that belongs to a group, or has left it, may only be taken in.
    pub(super) may_form: bool,
}

/// Opens the file, however often it has to be.
pub(super) type Opener = Box<dyn Fn() -> Result<Database, DiskError> + Send + Sync>;

/// The disk of one voter.
pub(super) struct Disk {
    /// None while it cannot be opened again.
    db: RwLock<Option<Database>>,
    open: Opener,
    flushes: AtomicU64,
    /// Given back when the file is closed: fields are dropped in order.
    _lock: Option<fs::File>,
    /// Closed last, when somebody else can have the directory.
    _in_use: mpsc::Sender<()>,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

/// A value with its checksum, which is also about where the value is.
fn seal(place: &[u8], value: &[u8]) -> Vec<u8> {
    let mut sealed = checksum(place, value).to_le_bytes().to_vec();
    sealed.extend_from_slice(value);
    sealed
}

fn unseal<'a>(place: &[u8], sealed: &'a [u8]) -> Result<&'a [u8], DiskError> {
    let damaged = || DiskError::Corrupt(format!("'{}'", String::from_utf8_lossy(place)));
    let (sum, value) = sealed.split_first_chunk().ok_or_else(damaged)?;
    if u32::from_le_bytes(*sum) != checksum(place, value) {
        return Err(damaged());
    }
    Ok(value)
}

fn checksum(place: &[u8], value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&(place.len() as u64).to_le_bytes());
    hasher.update(place);
    hasher.update(value);
    hasher.finalize()
}

fn log_place(index: u64) -> String {
    format!("log/{index}")
}

fn note_place(key: &str) -> String {
    format!("note/{key}")
}

fn parsed<T: DeserializeOwned>(place: &str, sealed: &[u8]) -> Result<T, DiskError> {
    let value = unseal(place.as_bytes(), sealed)?;
    decode(value).map_err(|error| DiskError::Corrupt(format!("'{place}': {error}")))
}

fn sealed<T: Serialize>(place: &str, value: &T) -> Result<Vec<u8>, DiskError> {
    let value = encode(value).map_err(|error| DiskError::Corrupt(error.to_string()))?;
    Ok(seal(place.as_bytes(), &value))
}

impl Disk {
    /// The receiver is told when the disk is given back.
    pub(super) fn new(
        open: Opener,
        lock: Option<fs::File>,
    ) -> Result<(Self, mpsc::Receiver<()>), DiskError> {
        let db = RwLock::new(Some(open()?));
        let (in_use, given_back) = mpsc::channel(1);
        let disk = Disk { db, open, flushes: AtomicU64::new(0), _lock: lock, _in_use: in_use };
        Ok((disk, given_back))
    }

    /// Opens the file again: after an error redb does nothing more with it. What was kept is there, as
    /// after a crash.
    pub(super) fn reopen(&self) -> Result<(), DiskError> {
        let mut db = self.db.write().unwrap_or_else(PoisonError::into_inner);
        // Nobody opens it twice at a time.
        *db = None;
        *db = Some((self.open)()?);
        drop(db);
        self.check()
    }

    fn with<T>(&self, act: impl FnOnce(&Database) -> Result<T, DiskError>) -> Result<T, DiskError> {
        let db = self.db.read().unwrap_or_else(PoisonError::into_inner);
        act(db.as_ref().ok_or(DiskError::Away)?)
    }

    /// How often something was written that had to last.
    pub(super) fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Relaxed)
    }

    /// Changes everything or nothing. With [`Durability::None`] a crash may undo it.
    pub(super) fn write<T>(
        &self,
        durability: Durability,
        change: impl FnOnce(&Writing) -> Result<T, DiskError>,
    ) -> Result<T, DiskError> {
        let outcome = self.with(|db| {
            let mut writing = Writing(db.begin_write()?);
            writing.0.set_durability(durability)?;
            let outcome = change(&writing)?;
            writing.0.commit()?;
            Ok(outcome)
        })?;
        if matches!(durability, Durability::Immediate) {
            self.flushes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(outcome)
    }

    pub(super) fn meta<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, DiskError> {
        self.with(|db| {
            let table = db.begin_read()?.open_table(META)?;
            table.get(key)?.map(|value| parsed(key, value.value())).transpose()
        })
    }

    pub(super) fn last_entry(&self) -> Result<Option<Entry>, DiskError> {
        self.with(|db| {
            let table = db.begin_read()?.open_table(LOG)?;
            let last = table.last()?;
            last.map(|(index, entry)| parsed(&log_place(index.value()), entry.value())).transpose()
        })
    }

    /// Entries of the log, in order, up to about so many bytes but at least one.
    pub(super) fn entries(
        &self,
        range: impl std::ops::RangeBounds<u64>,
        bytes: usize,
    ) -> Result<Vec<Entry>, DiskError> {
        self.with(|db| {
            let table = db.begin_read()?.open_table(LOG)?;
            let (mut entries, mut read) = (Vec::new(), 0);
            for entry in table.range(range)? {
                let (index, entry) = entry?;
                read += entry.value().len();
                if read > bytes && !entries.is_empty() {
                    break;
                }
                entries.push(parsed(&log_place(index.value()), entry.value())?);
            }
            Ok(entries)
        })
    }

    pub(super) fn note(&self, key: &str) -> Result<Option<Vec<u8>>, DiskError> {
        let place = note_place(key);
        let open = |value: redb::AccessGuard<'_, &[u8]>| {
            unseal(place.as_bytes(), value.value()).map(<[u8]>::to_vec)
        };
        self.with(|db| {
            let table = db.begin_read()?.open_table(NOTES)?;
            table.get(key)?.map(open).transpose()
        })
    }

    pub(super) fn put_note(&self, key: &str, value: &[u8]) -> Result<(), DiskError> {
        self.write(Durability::Immediate, |writing| {
            let sealed = seal(note_place(key).as_bytes(), value);
            writing.0.open_table(NOTES)?.insert(key, sealed.as_slice())?;
            Ok(())
        })
    }

    /// From now on the voter here may not begin a group: it belongs to one.
    pub(super) fn forbid_forming(&self) -> Result<(), DiskError> {
        self.write(Durability::Immediate, |writing| match writing.meta::<Mark>(MARK)? {
            Some(mark) => writing.put_meta(MARK, &Mark { may_form: false, ..mark }),
            None => Ok(()),
        })
    }

    /// Looks at every value once.
    pub(super) fn check(&self) -> Result<(), DiskError> {
        self.with(check)
    }
}

fn check(db: &Database) -> Result<(), DiskError> {
    let reading = db.begin_read()?;
    for item in reading.open_table(META)?.iter()? {
        let (key, value) = item?;
        unseal(key.value().as_bytes(), value.value())?;
    }
    for item in reading.open_table(NOTES)?.iter()? {
        let (key, value) = item?;
        unseal(note_place(key.value()).as_bytes(), value.value())?;
    }
    let mut next = None;
    for item in reading.open_table(LOG)?.iter()? {
        let (index, entry) = item?;
        if next.is_some_and(|next| next != index.value()) {
            return Err(DiskError::Corrupt(format!("the log has a hole at {next:?}")));
        }
        next = Some(index.value() + 1);
        parsed::<Entry>(&log_place(index.value()), entry.value())?;
    }
    Ok(())
}

/// A change of the disk that is not carried out yet.
pub(super) struct Writing(WriteTransaction);

impl Writing {
    /// Makes the tables, so that everybody finds them.
    pub(super) fn prepare(&self) -> Result<(), DiskError> {
        self.0.open_table(META)?;
        self.0.open_table(LOG)?;
        self.0.open_table(NOTES)?;
        Ok(())
    }

    pub(super) fn meta<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, DiskError> {
        let table = self.0.open_table(META)?;
        table.get(key)?.map(|value| parsed(key, value.value())).transpose()
    }

    pub(super) fn put_meta<T: Serialize>(&self, key: &str, value: &T) -> Result<(), DiskError> {
        self.0.open_table(META)?.insert(key, sealed(key, value)?.as_slice())?;
        Ok(())
    }

    pub(super) fn delete_meta(&self, key: &str) -> Result<(), DiskError> {
        self.0.open_table(META)?.remove(key)?;
        Ok(())
    }

    pub(super) fn append(&self, entries: &[Entry]) -> Result<(), DiskError> {
        let mut table = self.0.open_table(LOG)?;
        for entry in entries {
            let index = entry.log_id.index;
            table.insert(index, sealed(&log_place(index), entry)?.as_slice())?;
        }
        Ok(())
    }

    pub(super) fn delete_entries(
        &self,
        range: impl std::ops::RangeBounds<u64>,
    ) -> Result<(), DiskError> {
        self.0.open_table(LOG)?.retain_in(range, |_, _| false)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_was_changed_or_is_elsewhere_is_noticed() {
        let sealed = seal(b"here", b"value");
        assert_eq!(unseal(b"here", &sealed).unwrap(), b"value");
        assert!(unseal(b"there", &sealed).is_err());
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(unseal(b"here", &flipped).is_err(), "bit {bit}");
        }
        assert!(unseal(b"here", &sealed[..3]).is_err());
    }
}
