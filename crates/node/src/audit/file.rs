//! The file of an audit log: appended to, and moved away when it is long.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What is written at once is at most about so long.
const BUFFER: usize = 64 << 10;

/// An open file, and those that came before it.
pub(super) struct File {
    path: PathBuf,
    /// It is moved away before it is longer.
    max_bytes: u64,
    /// How many files are kept that were moved away.
    keep: u32,
    file: fs::File,
    length: u64,
    /// Lines that have yet to be written, and how many.
    buffer: Vec<u8>,
    lines: u64,
    /// How many could not be written.
    lost: u64,
    /// Whether the last line may have been written in part.
    is_torn: bool,
}

impl File {
    pub(super) fn open(path: PathBuf, max_bytes: u64, keep: u32) -> io::Result<Self> {
        let (file, length) = append_to(&path)?;
        // Whoever wrote it last may have been killed in the middle of a line.
        let is_torn = length > 0 && !ends_with_a_line(&path)?;
        let (buffer, lines, lost) = (Vec::new(), 0, 0);
        Ok(File { path, max_bytes, keep, file, length, buffer, lines, lost, is_torn })
    }

    /// Opens it anew, by its name.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        let flushed = self.flush();
        (self.file, self.length) = append_to(&self.path)?;
        self.is_torn = self.length > 0 && !ends_with_a_line(&self.path)?;
        flushed
    }

    /// Writes a line. It may wait in a buffer. Where the file cannot be moved away, it gets longer.
    pub(super) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let more = line.len() as u64 + 1;
        let length = self.length + self.buffer.len() as u64;
        let is_long = length > 0 && length + more > self.max_bytes;
        let moved = if is_long { self.flush().and_then(|()| self.rotate()) } else { Ok(()) };
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
        self.lines += 1;
        let flushed = if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) };
        moved.and(flushed)
    }

    /// Writes what waits. What cannot be written is lost.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let lines = std::mem::take(&mut self.lines);
        if self.is_torn {
            buffer.insert(0, b'\n');
        }
        self.is_torn = true;
        self.file.write_all(&buffer).inspect_err(|_| self.lost += lines)?;
        self.is_torn = false;
        self.length += buffer.len() as u64;
        Ok(())
    }

    /// How many lines could not be written since this was asked last.
    pub(super) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// Moves it away and begins another. The oldest one is no more.
    fn rotate(&mut self) -> io::Result<()> {
        if self.keep == 0 {
            fs::remove_file(&self.path)?;
        } else {
            for number in (1..self.keep).rev() {
                let old = numbered(&self.path, number);
                if old.exists() {
                    fs::rename(old, numbered(&self.path, number + 1))?;
                }
            }
            fs::rename(&self.path, numbered(&self.path, 1))?;
        }
        (self.file, self.length) = append_to(&self.path)?;
        Ok(())
    }
}

/// The file that was moved away so many times ago.
pub(super) fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// Nobody but its owner reads it: it says who does what.
fn append_to(path: &Path) -> io::Result<(fs::File, u64)> {
    let file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

fn ends_with_a_line(path: &Path) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = fs::File::open(path)?;
    let mut last = [0];
    // A pipe or a device has no end to look at.
    if file.seek(SeekFrom::End(-1)).is_err() {
        return Ok(true);
    }
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
