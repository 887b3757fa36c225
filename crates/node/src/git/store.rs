//! Where the objects of Git LFS are kept: one file each, named by its SHA-256.
//!
//! `DIR/TEAM/REPO/ab/cd/abcd...` is an object, and is there as a whole or not at all: what comes is written to
//! `DIR/TEAM/REPO/incoming/` and renamed when it is complete, on the disk, and has the digest that it should
//! have. Repositories share nothing: whoever knows the name of an object of another one cannot get it here.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use super::path::hex;
use super::repository::Repository;
use crate::mutex::hold;
use crate::secret::secret;

/// What has come of an object and was not continued for so long is given up.
const GIVEN_UP: Duration = Duration::from_secs(7 * 86_400);
/// So much is read at once.
const CHUNK: usize = 256 << 10;
const INCOMING: &str = "incoming";
const PART: &str = "part";

/// The name of an object: 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Oid(String);

impl Oid {
    pub(crate) fn new(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(is_digit)).then(|| Oid(text.to_string()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why an object was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("{0}")]
    Disk(#[from] io::Error),
    /// What came is something else.
    #[error("what came has the SHA-256 {0}: it was changed on its way, or is another object")]
    Digest(String),
    #[error("more came than the object has")]
    Size,
    /// So much has come before.
    #[error("{0} bytes have come of the object: go on there")]
    Offset(u64),
    #[error("somebody else is sending the object; try again later")]
    Busy,
}

/// The directory where objects are kept.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    /// What is being continued: by one client at a time.
    busy: Mutex<BTreeSet<PathBuf>>,
}

impl Store {
    /// Opens the directory, and makes it if it is not there.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        make(folder)?;
        let store = Store { folder: folder.to_path_buf(), busy: Mutex::default() };
        store.tidy(Duration::ZERO);
        Ok(store)
    }

    fn home(&self, repository: &Repository) -> PathBuf {
        self.folder.join(repository.team()).join(repository.repo())
    }

    fn path(&self, repository: &Repository, oid: &Oid) -> PathBuf {
        let oid = oid.as_str();
        self.home(repository).join(&oid[..2]).join(&oid[2..4]).join(oid)
    }

    fn part(&self, repository: &Repository, oid: &Oid) -> PathBuf {
        self.home(repository).join(INCOMING).join(format!("{}.{PART}", oid.as_str()))
    }

    /// The object, if it is here, and its size.
    pub(crate) fn find(
        &self,
        repository: &Repository,
        oid: &Oid,
    ) -> io::Result<Option<(File, u64)>> {
        match File::open(self.path(repository, oid)) {
            Ok(file) => {
                let size = file.metadata()?.len();
                Ok(Some((file, size)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The size of the object, if it is here.
    pub(crate) fn size(&self, repository: &Repository, oid: &Oid) -> io::Result<Option<u64>> {
        match fs::metadata(self.path(repository, oid)) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How much has come of an object that is not complete.
    pub(crate) fn offset(&self, repository: &Repository, oid: &Oid) -> io::Result<u64> {
        match fs::metadata(self.part(repository, oid)) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// How much is here of an object of so many bytes. If all of it has come in parts, but the node was killed
    /// before it was an object, it becomes one here: whoever is told that all has come sends nothing more.
    pub(crate) fn progress(
        self: &Arc<Self>,
        repository: &Repository,
        oid: &Oid,
        size: u64,
    ) -> Result<u64, StoreError> {
        if let Some(known) = self.size(repository, oid)? {
            return Ok(known);
        }
        let offset = self.offset(repository, oid)?;
        if offset != size {
            return Ok(offset);
        }
        match self.resume(repository, oid, offset, size).and_then(Incoming::finish) {
            Ok(()) => Ok(size),
            // What has come is something else, and is gone now; or somebody has just finished it.
            Err(StoreError::Digest(_) | StoreError::Offset(_)) => {
                Ok(self.size(repository, oid)?.unwrap_or_default())
            }
            Err(error) => Err(error),
        }
    }

    /// Begins to take an object as a whole, of at most so many bytes. What was not finished leaves nothing
    /// behind.
    pub(crate) fn begin(
        self: &Arc<Self>,
        repository: &Repository,
        oid: &Oid,
        most: u64,
    ) -> Result<Incoming, StoreError> {
        let folder = self.home(repository).join(INCOMING);
        make(&folder)?;
        let path = folder.join(format!("{:032x}", u128::from_be_bytes(secret())));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Incoming {
            store: Arc::clone(self),
            place: self.path(repository, oid),
            oid: oid.clone(),
            path,
            file,
            digest: Sha256::new(),
            length: 0,
            most,
            is_part: false,
            is_over: false,
        })
    }

    /// Goes on with an object of so many bytes, of which `offset` bytes have come.
    pub(crate) fn resume(
        self: &Arc<Self>,
        repository: &Repository,
        oid: &Oid,
        offset: u64,
        size: u64,
    ) -> Result<Incoming, StoreError> {
        make(&self.home(repository).join(INCOMING))?;
        let path = self.part(repository, oid);
        if !hold(&self.busy).insert(path.clone()) {
            return Err(StoreError::Busy);
        }
        let opened = (|| {
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let mut file = file.open(&path)?;
            let (digest, length) = digest_of(&mut file)?;
            if length != offset {
                return Err(StoreError::Offset(length));
            }
            if length > size {
                return Err(StoreError::Size);
            }
            file.seek(SeekFrom::End(0))?;
            Ok((file, digest, length))
        })();
        let (file, digest, length) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                hold(&self.busy).remove(&path);
                return Err(error);
            }
        };
        Ok(Incoming {
            store: Arc::clone(self),
            place: self.path(repository, oid),
            oid: oid.clone(),
            path,
            file,
            digest,
            length,
            most: size,
            is_part: true,
            is_over: false,
        })
    }

    /// Removes what was left of objects that never came as a whole: of those that are sent in parts, what is
    /// old; of others, what nobody can be writing any more.
    pub(crate) fn tidy(&self, idle: Duration) {
        let folders = |folder: PathBuf| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path())
        };
        let incoming = folders(self.folder.clone()).flat_map(folders);
        for path in incoming.flat_map(|home| folders(home.join(INCOMING))) {
            let most = if path.extension().is_some_and(|it| it == PART) { GIVEN_UP } else { idle };
            let written = fs::metadata(&path).and_then(|metadata| metadata.modified());
            let age = written.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            if age.is_some_and(|age| age >= most) {
                // If it cannot be removed now, it is tried again.
                fs::remove_file(path).ok();
            }
        }
    }
}

/// An object that is on its way. What is dropped before it is complete is removed, unless it comes in parts.
pub(crate) struct Incoming {
    store: Arc<Store>,
    oid: Oid,
    place: PathBuf,
    path: PathBuf,
    file: File,
    digest: Sha256,
    length: u64,
    most: u64,
    is_part: bool,
    is_over: bool,
}

impl Incoming {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        if bytes.len() as u64 > self.most.saturating_sub(self.length) {
            return Err(StoreError::Size);
        }
        self.file.write_all(bytes)?;
        self.digest.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// How much has come.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Whether nothing is missing of an object that comes in parts.
    pub(crate) fn is_complete(&self) -> bool {
        self.length == self.most
    }

    /// Everything has come: it is an object from now on, if it is the right one.
    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        let digest: [u8; 32] = std::mem::take(&mut self.digest).finalize().into();
        let digest = hex(&digest);
        if digest != self.oid.as_str() {
            // There is no use in going on with it.
            self.is_part = false;
            return Err(StoreError::Digest(digest));
        }
        self.file.sync_all()?;
        let folder =
            self.place.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        make(folder)?;
        fs::rename(&self.path, &self.place)?;
        self.is_over = true;
        File::open(folder)?.sync_all()?;
        Ok(())
    }

    /// What has come is kept, for whoever goes on.
    pub(crate) fn pause(self) -> Result<u64, StoreError> {
        self.file.sync_all()?;
        Ok(self.length)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.is_over && !self.is_part {
            // What is left of it is removed later, if not now.
            fs::remove_file(&self.path).ok();
        }
        hold(&self.store.busy).remove(&self.path);
    }
}

/// Makes a directory, and those above it, if they are not there. What is made is on the disk then: an object in it is
/// not lost with its directory.
fn make(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = match folder.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        // It is relative: above it is the directory where the node runs.
        _ => Path::new("."),
    };
    make(above)?;
    match DirBuilder::new().mode(0o700).create(folder) {
        // Somebody else has made it at this moment.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        made => made,
    }?;
    File::open(above)?.sync_all()
}

/// The digest of what is in a file, and how much it is.
fn digest_of(file: &mut File) -> io::Result<(Sha256, u64)> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    let mut length = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((digest, length)),
            count => {
                digest.update(&buffer[..count]);
                length += count as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn store(folder: &Path) -> (Arc<Store>, Repository) {
        let store = Arc::new(Store::open(&folder.join("objects")).unwrap());
        (store, Repository::new("art", "game").unwrap())
    }

    fn oid(content: &[u8]) -> Oid {
        Oid::new(&hex(&<[u8; 32]>::from(Sha256::digest(content)))).unwrap()
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => all.extend(files(&path)),
                false => all.push(path),
            }
        }
        all
    }

    #[test]
    fn an_object_is_there_when_it_is_complete_and_only_its_user_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let (store, game) = store(folder.path());
        let name = oid(b"content");
        let mut incoming = store.begin(&game, &name, 99).unwrap();
        incoming.write(b"con").unwrap();
        assert!(store.find(&game, &name).unwrap().is_none());
        incoming.write(b"tent").unwrap();
        incoming.finish().unwrap();
        let (mut file, size) = store.find(&game, &name).unwrap().unwrap();
        let mut content = String::new();
        file.read_to_string(&mut content).unwrap();
        assert_eq!((content.as_str(), size), ("content", 7));
        let all = files(folder.path());
        assert_eq!(all.len(), 1);
        assert_eq!(fs::metadata(&all[0]).unwrap().permissions().mode() & 0o777, 0o600);
        let other = Repository::new("art", "other").unwrap();
        assert!(store.find(&other, &name).unwrap().is_none(), "repositories share nothing");
    }

    #[test]
    fn what_is_something_else_or_cut_off_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (store, game) = store(folder.path());
        let mut incoming = store.begin(&game, &oid(b"content"), 99).unwrap();
        incoming.write(b"other").unwrap();
        assert!(matches!(incoming.finish(), Err(StoreError::Digest(_))));
        let mut incoming = store.begin(&game, &oid(b"content"), 99).unwrap();
        incoming.write(b"cont").unwrap();
        drop(incoming);
        assert!(files(folder.path()).is_empty());
    }

    #[test]
    fn an_object_is_continued_where_it_was_cut_off_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let (first, game) = store(folder.path());
        let name = oid(b"content");
        let mut incoming = first.resume(&game, &name, 0, 7).unwrap();
        incoming.write(b"con").unwrap();
        assert!(matches!(first.resume(&game, &name, 3, 7), Err(StoreError::Busy)));
        drop(incoming);
        let (second, _) = store(folder.path());
        assert_eq!(second.offset(&game, &name).unwrap(), 3);
        assert!(matches!(second.resume(&game, &name, 2, 7), Err(StoreError::Offset(3))));
        let mut incoming = second.resume(&game, &name, 3, 7).unwrap();
        assert!(matches!(incoming.write(b"tents"), Err(StoreError::Size)));
        incoming.write(b"tent").unwrap();
        assert!(incoming.is_complete());
        incoming.finish().unwrap();
        assert_eq!(second.size(&game, &name).unwrap(), Some(7));
        assert_eq!(second.offset(&game, &name).unwrap(), 0);
        // A wrong one begins anew.
        let mut incoming = second.resume(&game, &oid(b"x"), 0, 1).unwrap();
        incoming.write(b"y").unwrap();
        assert!(matches!(incoming.finish(), Err(StoreError::Digest(_))));
        assert_eq!(second.offset(&game, &oid(b"x")).unwrap(), 0);
    }

    #[test]
    fn what_has_come_as_a_whole_becomes_an_object_when_somebody_asks_how_much_has_come() {
        let folder = tempfile::tempdir().unwrap();
        let (store, game) = store(folder.path());
        let sent = |name: &Oid, bytes: &[u8], size| {
            let mut incoming = store.resume(&game, name, 0, size).unwrap();
            incoming.write(bytes).unwrap();
            incoming.pause().unwrap();
        };
        // The node was killed between the last byte and the end.
        let name = oid(b"content");
        sent(&name, b"content", 7);
        assert_eq!(store.size(&game, &name).unwrap(), None);
        assert_eq!(store.progress(&game, &name, 8).unwrap(), 7, "one byte is missing");
        assert_eq!(store.progress(&game, &name, 7).unwrap(), 7);
        assert_eq!(store.size(&game, &name).unwrap(), Some(7));
        assert_eq!(store.progress(&game, &name, 7).unwrap(), 7);
        // What is something else is sent anew.
        let name = oid(b"x");
        sent(&name, b"y", 1);
        assert_eq!(store.progress(&game, &name, 1).unwrap(), 0);
        assert_eq!(store.progress(&game, &oid(b""), 0).unwrap(), 0);
        assert_eq!(store.size(&game, &oid(b"")).unwrap(), Some(0));
    }

    #[test]
    fn more_than_the_object_has_is_refused_also_when_it_has_come_before() {
        let folder = tempfile::tempdir().unwrap();
        let (store, game) = store(folder.path());
        let name = oid(b"content");
        let mut incoming = store.resume(&game, &name, 0, 7).unwrap();
        incoming.write(b"cont").unwrap();
        incoming.pause().unwrap();
        assert!(matches!(store.resume(&game, &name, 4, 3), Err(StoreError::Size)));
        // Nobody is kept out by that.
        let mut incoming = store.resume(&game, &name, 4, 7).unwrap();
        incoming.write(b"ent").unwrap();
        incoming.finish().unwrap();
    }

    #[test]
    fn what_nobody_has_continued_for_a_week_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let (store, game) = store(folder.path());
        let ages = [(oid(b"old"), GIVEN_UP), (oid(b"new"), GIVEN_UP - Duration::from_secs(3600))];
        for (name, age) in &ages {
            let mut incoming = store.resume(&game, name, 0, 3).unwrap();
            incoming.write(b"x").unwrap();
            incoming.pause().unwrap();
            let part = OpenOptions::new().write(true).open(store.part(&game, name)).unwrap();
            part.set_modified(SystemTime::now() - *age).unwrap();
        }
        store.tidy(Duration::from_secs(3600));
        assert_eq!(store.offset(&game, &ages[0].0).unwrap(), 0);
        assert_eq!(store.offset(&game, &ages[1].0).unwrap(), 1);
    }

    #[test]
    fn what_was_being_written_when_the_node_was_killed_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (first, game) = store(folder.path());
        let incoming = first.begin(&game, &oid(b"content"), 99).unwrap();
        let part = first.resume(&game, &oid(b"part"), 0, 4).unwrap();
        std::mem::forget((incoming, part));
        assert_eq!(files(folder.path()).len(), 2);
        store(folder.path());
        let left = files(folder.path());
        assert_eq!(left.len(), 1, "what comes in parts may be continued");
        assert!(left[0].ends_with(format!("{}.part", oid(b"part").as_str())));
    }

    #[test]
    fn only_a_digest_names_an_object() {
        for bad in
            ["", "abc", &"g".repeat(64), &"A".repeat(64), "../../../etc/passwd", &"é".repeat(32)]
        {
            assert_eq!(Oid::new(bad), None, "{bad}");
        }
    }
}
