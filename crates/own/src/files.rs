//! Files that are there whole or not at all.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use catraca_draw::{Format, Picture};

use crate::failure::Failure;

/// A picture that is going to be made. Wrong names are told before any work is done.
pub(crate) struct PictureFile {
    path: PathBuf,
    format: Format,
}

impl PictureFile {
    pub(crate) fn at(path: &str) -> Result<Self, Failure> {
        let path = PathBuf::from(path);
        let format = Format::of(&path)
            .map_err(|error| Failure::Input(format!("'{}' {error}", path.display())))?;
        check_folder(&path)?;
        Ok(PictureFile { path, format })
    }

    pub(crate) fn write(&self, picture: &Picture) -> Result<(), Failure> {
        let content = picture
            .encode(self.format)
            .map_err(|error| Failure::Input(format!("'{}' {error}", self.path.display())))?;
        write(&self.path, &content)
    }

    /// What to say when it is done.
    pub(crate) fn tell(&self, out: &mut dyn Write) -> Result<(), Failure> {
        Ok(writeln!(out, "drawn to {}", self.path.display())?)
    }
}

/// Whether there is a folder for the file.
pub(crate) fn check_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.is_none_or(Path::is_dir) && !path.is_dir() {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "cannot write '{}': choose a file in a folder that exists",
            path.display()
        ))),
    }
}

/// Writes beside the place, and moves there what is complete.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let written = fs::write(&beside, content).and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        // What is left of it is in nobody's way.
        fs::remove_file(&beside).ok();
        Failure::System(format!("cannot write '{}': {error}", path.display()))
    })
}
