//! Where results go: files that are there whole or not at all, and standard output.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use catraca_draw::{Format, Picture};
use tempfile::NamedTempFile;

use crate::Outcome;
use crate::failure::Failure;

/// A file that is being written beside its place, and moved there when it is complete. Dropped
/// before that, it leaves nothing behind.
pub(crate) struct PendingFile {
    sink: Sink,
    /// As the user wrote it.
    path: PathBuf,
}

enum Sink {
    /// A file beside the place that it is moved to.
    Beside(BufWriter<NamedTempFile>, PathBuf, Unfinished),
    /// A device or a pipe. Moving a file there would put the file in place of the device.
    Straight(BufWriter<File>),
}

impl PendingFile {
    /// Fails at once if the place cannot be written to, before any work is done for it.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let sink = Sink::open(path).map_err(|why| {
            Failure::input(format!(
                "cannot write '{}': {why}; choose a file in a folder that you can write to",
                path.display()
            ))
        })?;
        Ok(PendingFile { sink, path: path.to_path_buf() })
    }

    /// Writes `content` and moves the file to its place.
    pub(crate) fn finish_with(mut self, content: &[u8]) -> Outcome {
        self.write_all(content).map_err(|error| Failure::System(error.into()))?;
        self.finish()
    }

    /// Moves the complete file to its place.
    pub(crate) fn finish(mut self) -> Outcome {
        self.flush().map_err(|error| Failure::System(error.into()))?;
        if let Sink::Beside(file, place, _unfinished) = self.sink {
            let moved = match file.into_inner() {
                Ok(file) => file.persist(place).map(drop).map_err(|error| error.error),
                Err(error) => Err(error.into_error()),
            };
            moved.map_err(|error| Failure::System(unwritten(&self.path, &error).into()))?;
        }
        Ok(())
    }
}

impl Sink {
    fn open(path: &Path) -> Result<Self, String> {
        if path.as_os_str().is_empty() {
            return Err("the name is empty".to_string());
        }
        if path.as_os_str() == "-" {
            return Err("it is no name of a file, and /dev/stdout is standard output".to_string());
        }
        // A link stays, and what it points to is written.
        let place = match path.metadata() {
            Ok(there) if there.is_dir() => return Err("it is a folder".to_string()),
            Ok(there) if !there.is_file() => {
                let device = File::options().write(true).open(path);
                return device.map(BufWriter::new).map(Sink::Straight).map_err(|e| reason(&e));
            }
            Ok(_) => path.canonicalize().map_err(|error| reason(&error))?,
            Err(_) => path.to_path_buf(),
        };
        let folder = match place.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let make = || {
            let mut builder = tempfile::Builder::new();
            builder.prefix(".catraca-").permissions(readable_by_all()).tempfile_in(folder)
        };
        let (file, unfinished) = Unfinished::make(make, |file| file.path().to_path_buf()).map_err(
            |error| match error.kind() {
                ErrorKind::NotFound if folder.is_dir() => "no file can be made there".to_string(),
                ErrorKind::NotFound => "the folder does not exist".to_string(),
                ErrorKind::NotADirectory => "its parent is not a folder".to_string(),
                _ => reason(&error),
            },
        )?;
        Ok(Sink::Beside(BufWriter::new(file), place, unfinished))
    }
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.sink {
            Sink::Beside(file, ..) => file.write(bytes),
            Sink::Straight(file) => file.write(bytes),
        };
        written.map_err(|error| unwritten(&self.path, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.sink {
            Sink::Beside(file, ..) => file.flush(),
            Sink::Straight(file) => file.flush(),
        };
        flushed.map_err(|error| unwritten(&self.path, &error))
    }
}

/// Files and folders that are to go if the process ends before they are complete, in the order in
/// which they were made.
static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn pending() -> MutexGuard<'static, Vec<PathBuf>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says that a file, or a folder for files, is not complete, until it is dropped.
pub(crate) struct Unfinished(PathBuf);

impl Unfinished {
    /// Makes something, of which `path` tells where it is. It cannot be missed by whoever removes
    /// what is not complete meanwhile.
    pub(crate) fn make<T>(
        make: impl FnOnce() -> io::Result<T>,
        path: impl FnOnce(&T) -> PathBuf,
    ) -> io::Result<(T, Self)> {
        let mut pending = pending();
        let made = make()?;
        let path = path(&made);
        pending.push(path.clone());
        Ok((made, Unfinished(path)))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        pending().retain(|path| *path != self.0);
    }
}

/// Removes whatever is not complete, then calls `end`; nothing new is made in between.
pub(crate) fn remove_pending(end: impl FnOnce() -> std::convert::Infallible) -> ! {
    let pending = pending();
    // A folder was made before the files in it. One that is not empty stays.
    for path in pending.iter().rev() {
        std::fs::remove_file(path).or_else(|_| std::fs::remove_dir(path)).ok();
    }
    match end() {}
}

/// A file that lines are added to, at once and whole, also by several programs.
pub(crate) fn append(path: &Path) -> Result<File, Failure> {
    File::options().append(true).create(true).open(path).map_err(|error| {
        let why = match error.kind() {
            ErrorKind::NotFound => "the folder does not exist".to_string(),
            ErrorKind::NotADirectory => "its parent is not a folder".to_string(),
            _ => reason(&error),
        };
        Failure::input(format!(
            "cannot write '{}': {why}; choose a file in a folder that you can write to",
            path.display()
        ))
    })
}

/// The same error with the place.
fn unwritten(path: &Path, error: &io::Error) -> io::Error {
    let what = format!("cannot write '{}': {}", path.display(), reason(error));
    io::Error::new(error.kind(), what)
}

/// A temporary file is private by default; the file that a user asked for is not. The process's
/// mask still applies.
fn readable_by_all() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}

/// What the system says, in words for people: no numbers, no name of a temporary file.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_string(),
        ErrorKind::IsADirectory => "it is a folder".to_string(),
        ErrorKind::InvalidData => "it is not text".to_string(),
        kind => kind.to_string(),
    }
}

/// Whether this command is over when nobody reads standard output any more.
static ENDS_UNREAD: AtomicBool = AtomicBool::new(false);

/// For a command that only tells: it has no file and no verdict that would be worth going on for.
pub(crate) fn end_when_unread() {
    ENDS_UNREAD.store(true, Ordering::Relaxed);
}

/// Whether `error` is the reason for such a command to end.
pub(crate) fn is_unread(error: &io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe && ENDS_UNREAD.load(Ordering::Relaxed)
}

/// Standard output. When nobody reads it any more, the rest is said to nobody: the files that
/// were asked for are still written, and the exit code still tells the verdict.
pub(crate) struct Stdout {
    out: StdoutLock<'static>,
    is_closed: bool,
}

impl Stdout {
    pub(crate) fn lock() -> Self {
        Stdout { out: io::stdout().lock(), is_closed: false }
    }

    /// What was `done`, or `instead` if nobody reads any more.
    fn heard<T>(&mut self, done: io::Result<T>, instead: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == ErrorKind::BrokenPipe && !is_unread(&error) => {
                self.is_closed = true;
                Ok(instead)
            }
            done => done,
        }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_closed {
            return Ok(bytes.len());
        }
        let written = self.out.write(bytes);
        self.heard(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let flushed = self.out.flush();
        self.heard(flushed, ())
    }
}

/// How many characters a line of the terminal has that standard output goes to; nothing if it goes
/// elsewhere.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|&width| width > 0)
}

/// A file that is going to be a picture.
pub(crate) struct PendingPicture {
    file: PendingFile,
    format: Format,
}

impl PendingPicture {
    /// Fails at once if the name does not say which format, or the place cannot be written to.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let format = Format::of(path)
            .map_err(|error| Failure::input(format!("'{}' {error}", path.display())))?;
        Ok(PendingPicture { file: PendingFile::create(path)?, format })
    }

    pub(crate) fn finish(self, picture: &Picture) -> Outcome {
        let path = self.file.path.display();
        let content = picture
            .encode(self.format)
            .map_err(|error| Failure::input(format!("'{path}' {error}")))?;
        self.file.finish_with(&content)
    }
}
