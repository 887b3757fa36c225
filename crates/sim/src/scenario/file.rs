//! Scenario files: how they are read.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The largest file that is read, in MiB. Some files, such as `/dev/zero`, have no end.
const MAX_MIB: u64 = 16;

/// Why a file cannot be read, as the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is not there.
    #[error("there is no such file")]
    Missing,
    /// It is a folder.
    #[error("it is a folder")]
    Folder,
    /// It is not UTF-8.
    #[error("it is not text")]
    NotText,
    /// It is too large.
    #[error("it is larger than {MAX_MIB} MiB, and no scenario file may be")]
    TooLarge,
    /// The system has another reason.
    #[error("{0}")]
    Other(String),
}

/// The text of the scenario file at `path`.
pub fn read_text(path: &Path) -> Result<String, ReadError> {
    let mut bytes = Vec::new();
    let read = File::open(path)
        .and_then(|file| file.take((MAX_MIB << 20) + 1).read_to_end(&mut bytes))
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => ReadError::Missing,
            ErrorKind::IsADirectory => ReadError::Folder,
            kind => ReadError::Other(kind.to_string()),
        })?;
    if read as u64 > MAX_MIB << 20 {
        return Err(ReadError::TooLarge);
    }
    let text = String::from_utf8(bytes).map_err(|_| ReadError::NotText)?;
    // Spreadsheets and some editors mark a file as UTF-8 at its beginning.
    Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_end_is_refused() {
        assert_eq!(read_text(Path::new("/dev/zero")), Err(ReadError::TooLarge));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        assert_eq!(read_text(Path::new("/nowhere/run.toml")), Err(ReadError::Missing));
        assert_eq!(read_text(Path::new("/")), Err(ReadError::Folder));
    }
}
