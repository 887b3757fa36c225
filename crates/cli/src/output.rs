//! Files that are there whole or not at all.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use catraca_draw::{Format, Picture};
use tempfile::NamedTempFile;

use crate::Outcome;
use crate::failure::Failure;

/// A file that is being written beside its place, and moved there when it is complete. Dropped
/// before that, it leaves nothing behind.
pub(crate) struct PendingFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl PendingFile {
    /// Fails at once if the place cannot be written to, before any work is done for it.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let unwritable = |error: &dyn std::fmt::Display| {
            Failure::input(format!(
                "cannot write '{}': {error}; choose a file in a folder that you can write to",
                path.display()
            ))
        };
        if path.is_dir() {
            return Err(unwritable(&"it is a folder"));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .prefix(".catraca-")
            .permissions(readable_by_all())
            .tempfile_in(folder)
            .map_err(|error| unwritable(&plain(&error)))?;
        Ok(PendingFile { file: BufWriter::new(file), path: path.to_path_buf() })
    }

    /// Writes `content` and moves the file to its place.
    pub(crate) fn finish_with(mut self, content: &[u8]) -> Outcome {
        self.write_all(content).map_err(|error| Failure::System(error.into()))?;
        self.finish()
    }

    /// Moves the complete file to its place.
    pub(crate) fn finish(self) -> Outcome {
        let file =
            self.file.into_inner().map_err(|error| Failure::System(error.into_error().into()))?;
        file.persist(&self.path).map_err(|error| Failure::System(error.error.into()))?;
        Ok(())
    }
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// A temporary file is private by default; the file that a user asked for is not. The process's
/// mask still applies.
fn readable_by_all() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}

/// What the system says, without the name of the temporary file.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "the folder does not exist".to_string(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_string(),
        std::io::ErrorKind::NotADirectory => "its parent is not a folder".to_string(),
        kind => kind.to_string(),
    }
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
