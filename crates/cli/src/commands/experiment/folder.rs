//! The folder that the files of an experiment go into.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::failure::Failure;
use crate::output::{PendingFile, Unfinished, reason};

/// The page of all experiments.
pub(super) const PAGE: &str = "report.html";

/// A folder with files that are there whole or not at all.
pub(super) struct Folder {
    /// In the order in which they were asked for.
    names: Vec<String>,
    pending: BTreeMap<String, PendingFile>,
    place: Place,
}

/// Made last and dropped last, after the files that are still pending.
struct Place {
    path: PathBuf,
    /// Said of a folder that was not there before.
    is_new: Option<Unfinished>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_new.is_some() {
            // A folder that nothing was written to is not left behind; one with files is not empty,
            // and stays.
            std::fs::remove_dir(&self.path).ok();
        }
    }
}

impl Folder {
    /// Makes the folder if it is not there, and fails at once if a file cannot be written to it.
    pub(super) fn create(
        path: &Path,
        files: impl Iterator<Item = String>,
    ) -> Result<Self, Failure> {
        let refused = |why: &str| {
            let place = path.display();
            Failure::input(format!("cannot write to '{place}': {why}; choose another folder"))
        };
        let is_new = match path.metadata() {
            Ok(there) if there.is_dir() => None,
            Ok(_) => return Err(refused("it is a file")),
            Err(_) => {
                let ((), unfinished) =
                    Unfinished::make(|| std::fs::create_dir_all(path), |()| path.to_path_buf())
                        .map_err(|error| refused(&reason(&error)))?;
                Some(unfinished)
            }
        };
        let place = Place { path: path.to_path_buf(), is_new };
        let names: Vec<String> = files.collect();
        let mut pending = BTreeMap::new();
        for name in &names {
            pending.insert(name.clone(), PendingFile::create(&path.join(name))?);
        }
        Ok(Folder { names, pending, place })
    }

    pub(super) fn path(&self) -> &Path {
        &self.place.path
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Writes one of the files and puts it in its place.
    pub(super) fn finish(&mut self, name: &str, content: &[u8]) -> Outcome {
        match self.pending.remove(name) {
            Some(file) => file.finish_with(content),
            None => Ok(()),
        }
    }
}
