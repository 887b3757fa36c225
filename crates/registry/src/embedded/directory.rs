//! The directory of a voter: made in one go, used by one process, and looked at before it is trusted.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use redb::{Database, Durability};
use tokio::sync::mpsc;

use super::disk::{Disk, DiskError, MARK, Mark};
use super::wire::Id;

/// How things are written down here.
const VERSION: u32 = 1;
const FILE: &str = "registry.redb";
const UNFINISHED: &str = "registry.redb.new";
const LOCK: &str = "lock";

/// Why a directory cannot be used, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Somebody else has it open.
    #[error(
        "another node uses the directory {0}: stop it, or give this node a directory of its own"
    )]
    Locked(PathBuf),
    /// It has files in it that are not ours.
    #[error(
        "the directory {0} has something else in it ({1}): give the registry an empty directory"
    )]
    Foreign(PathBuf, String),
    /// Nothing of a registry is in it.
    #[error("there is no registry in the directory {0}: say which directory its node was given")]
    Empty(PathBuf),
    /// There is a registry in it, which has nothing in it.
    #[error(
        "the registry in the directory {0} has nothing in it: its node does not vote, or has not heard of the others yet; take the directory of a node that voted"
    )]
    Unused(PathBuf),
    /// It cannot go on alone.
    #[error(
        "the registry in the directory {0} cannot go on alone: its view was written by another release, or there are no more numbers for views"
    )]
    Unreadable(PathBuf),
    /// It belongs to another group.
    #[error("the directory {0} belongs to {1}: give this node a directory of its own")]
    OtherOwner(PathBuf, String),
    /// A later version has written it.
    #[error("the directory {0} was written by a later version ({1}): use that version")]
    TooNew(PathBuf, u32),
    /// What is in it is not what was written.
    #[error(
        "the registry in the directory {0} is damaged ({1}): if the others have a majority, \
         delete the directory and let this node join again"
    )]
    Corrupt(PathBuf, String),
    /// No space is left.
    #[error("there is no space left for the directory {0}")]
    Full(PathBuf),
    /// It cannot be written to.
    #[error("the directory {0} cannot be written to: check its owner and how it is mounted")]
    ReadOnly(PathBuf),
    /// Something else.
    #[error("the directory {0} cannot be used: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// It is of a member that others have taken in, and there are no others now.
    #[error(
        "the directory {0} is of a member that has joined its group and cannot begin another one: say where the others are (--join or --members), or give this node an empty directory"
    )]
    NotFounder(PathBuf),
    /// The options make no sense.
    #[error("{0}")]
    Options(String),
    /// The registry did not start.
    #[error("the registry did not start: {0}")]
    Start(String),
}

impl OpenError {
    pub(super) fn of_io(directory: &Path, error: io::Error) -> Self {
        let directory = directory.to_path_buf();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenError::Full(directory),
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                OpenError::ReadOnly(directory)
            }
            _ => OpenError::Io(directory, error),
        }
    }

    pub(super) fn of_disk(directory: &Path, error: DiskError) -> Self {
        match error {
            DiskError::Full => OpenError::Full(directory.to_path_buf()),
            DiskError::Corrupt(why) => OpenError::Corrupt(directory.to_path_buf(), why),
            DiskError::Away => OpenError::Start(error.to_string()),
            DiskError::Broken(error) => match *error {
                redb::Error::DatabaseAlreadyOpen => OpenError::Locked(directory.to_path_buf()),
                redb::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                    OpenError::Corrupt(directory.to_path_buf(), error.to_string())
                }
                redb::Error::Io(error) => OpenError::of_io(directory, error),
                error => OpenError::Corrupt(directory.to_path_buf(), error.to_string()),
            },
        }
    }
}

/// A voter's number: from its name and a random number.
fn new_id(name: &str) -> Result<Id, OpenError> {
    let random = getrandom::u64().map_err(|error| OpenError::Start(error.to_string()))?;
    // FNV-1a: the same on every machine and in every version.
    let bytes = name.bytes().chain(random.to_le_bytes());
    Ok(bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    }))
}

/// What a directory says from now on.
pub(super) fn new_mark(group: &str, me: &str, may_form: bool) -> Result<Mark, OpenError> {
    let (group, name) = (group.to_string(), me.to_string());
    Ok(Mark { version: VERSION, group, me: name, id: new_id(me)?, may_form })
}

/// A directory that is in use.
pub(super) struct Opened {
    pub(super) disk: Disk,
    pub(super) mark: Mark,
    pub(super) given_back: mpsc::Receiver<()>,
}

/// Opens a directory, and makes it first if there is none. A member that may not begin a group never
/// may again with this directory.
pub(super) fn open(
    directory: &Path,
    group: &str,
    me: &str,
    may_form: bool,
) -> Result<Opened, OpenError> {
    let io = |error| OpenError::of_io(directory, error);
    fs::create_dir_all(directory).map_err(io)?;
    refuse_foreign(directory)?;
    let lock = lock(directory)?;
    if !directory.join(FILE).try_exists().map_err(io)? {
        create(directory, &new_mark(group, me, may_form)?)?;
    }
    let mut opened = open_existing(directory, lock)?;
    let Mark { group: theirs, me: name, .. } = &opened.mark;
    if theirs != group || name != me {
        let owner = format!("'{name}' of the group '{theirs}'");
        return Err(OpenError::OtherOwner(directory.to_path_buf(), owner));
    }
    if opened.mark.may_form && !may_form {
        opened.mark.may_form = false;
        let forbidden = opened.disk.forbid_forming();
        forbidden.map_err(|error| OpenError::of_disk(directory, error))?;
    }
    Ok(opened)
}

/// Opens a directory that is there, whoever it belongs to.
pub(super) fn open_any(directory: &Path) -> Result<Opened, OpenError> {
    // Nothing is written to a directory that is none of ours.
    if !directory.join(FILE).try_exists().map_err(|error| OpenError::of_io(directory, error))? {
        return Err(OpenError::Empty(directory.to_path_buf()));
    }
    let lock = lock(directory)?;
    open_existing(directory, lock)
}

fn refuse_foreign(directory: &Path) -> Result<(), OpenError> {
    let io = |error| OpenError::of_io(directory, error);
    for entry in fs::read_dir(directory).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        // A file system of its own has a lost+found.
        if ![FILE, UNFINISHED, LOCK, "lost+found"].iter().any(|ours| name == **ours) {
            let name = name.to_string_lossy().into_owned();
            return Err(OpenError::Foreign(directory.to_path_buf(), name));
        }
    }
    Ok(())
}

/// The system gives the lock back when its process ends, however it ends. So whoever gets it knows that
/// the one before is dead.
fn lock(directory: &Path) -> Result<File, OpenError> {
    let io = |error| OpenError::of_io(directory, error);
    let file = File::options().create(true).truncate(false).write(true).open(directory.join(LOCK));
    let file = file.map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked(directory.to_path_buf())),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}

/// A redb file is not made in one go: 74 of 200 kills left one that never opens. So it is made under
/// another name, and gets its own when it is whole.
fn create(directory: &Path, mark: &Mark) -> Result<(), OpenError> {
    let io = |error| OpenError::of_io(directory, error);
    let of_disk = |error| OpenError::of_disk(directory, error);
    let unfinished = directory.join(UNFINISHED);
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    let file = unfinished.clone();
    let open = Box::new(move || Ok(Database::create(&file)?));
    let (disk, _) = Disk::new(open, None).map_err(of_disk)?;
    let fill = |writing: &super::disk::Writing| {
        writing.prepare()?;
        writing.put_meta(MARK, mark)
    };
    disk.write(Durability::Immediate, fill).map_err(of_disk)?;
    drop(disk);
    File::open(&unfinished).and_then(|file| file.sync_all()).map_err(io)?;
    fs::rename(&unfinished, directory.join(FILE)).map_err(io)?;
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(io)
}

fn open_existing(directory: &Path, lock: File) -> Result<Opened, OpenError> {
    let of_disk = |error| OpenError::of_disk(directory, error);
    let corrupt = |why: &str| OpenError::Corrupt(directory.to_path_buf(), why.to_string());
    let place = directory.to_path_buf();
    let open = Box::new(move || open_unharmed(&place));
    let (disk, given_back) = Disk::new(open, Some(lock)).map_err(of_disk)?;
    disk.check().map_err(of_disk)?;
    let mark: Mark = disk.meta(MARK).map_err(of_disk)?.ok_or_else(|| corrupt("it has no mark"))?;
    if mark.version > VERSION {
        return Err(OpenError::TooNew(directory.to_path_buf(), mark.version));
    }
    Ok(Opened { disk, mark, given_back })
}

/// redb panics on some damaged files.
fn open_unharmed(directory: &Path) -> Result<Database, DiskError> {
    std::panic::catch_unwind(|| open_whole(directory)).unwrap_or_else(|panic| {
        let why = panic.downcast_ref::<String>().map_or("it cannot be read", String::as_str);
        Err(DiskError::Corrupt(why.to_string()))
    })
}

fn open_whole(directory: &Path) -> Result<Database, DiskError> {
    let mut db = Database::open(directory.join(FILE))?;
    // What redb repairs here was not damaged by a crash: that is repaired in opening. It might be a
    // promise that was kept on this disk and is gone.
    if !db.check_integrity()? {
        return Err(DiskError::Corrupt("its checksums are wrong".to_string()));
    }
    Ok(db)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_s_errors_become_words_that_help() {
        let said = |kind: io::ErrorKind| OpenError::of_io(Path::new("/d"), kind.into()).to_string();
        assert_eq!(said(io::ErrorKind::StorageFull), "there is no space left for the directory /d");
        for kind in [io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::PermissionDenied] {
            assert!(said(kind).contains("cannot be written to"));
        }
        assert!(said(io::ErrorKind::TimedOut).contains("cannot be used"));
    }

    #[test]
    fn what_a_kill_left_unfinished_is_made_again() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join(UNFINISHED), "half of a file").unwrap();
        let first = open(place.path(), "g", "a", true).unwrap().mark;
        assert_eq!(open(place.path(), "g", "a", true).unwrap().mark, first, "and then it stays");
    }

    #[test]
    fn a_directory_of_a_later_version_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let Opened { disk, mark, .. } = open(place.path(), "g", "a", true).unwrap();
        let newer = Mark { version: VERSION + 1, ..mark };
        disk.write(Durability::Immediate, |writing| writing.put_meta(MARK, &newer)).unwrap();
        drop(disk);
        assert!(matches!(open(place.path(), "g", "a", true), Err(OpenError::TooNew(_, 2))));
    }

    #[test]
    fn whoever_joined_once_may_never_begin_a_group_with_its_directory() {
        let place = tempfile::tempdir().unwrap();
        let may_form = |told| open(place.path(), "g", "a", told).unwrap().mark.may_form;
        assert!(may_form(true));
        assert!(!may_form(false));
        assert!(!may_form(true), "it stays so");
    }
}
