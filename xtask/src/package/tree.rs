//! Files that are going to be packed, in the order of their paths.

use std::collections::BTreeMap;

/// Folders and files by their paths, which do not begin with '/'. The folders above a file are there too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree(BTreeMap<String, Entry>);

/// A file or a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) mode: u32,
    /// Whose it is: a number, of the user and of the group.
    pub(super) owner: u32,
    /// What is in it; nothing for a folder.
    pub(super) content: Option<Vec<u8>>,
}

impl Tree {
    /// Puts a file there.
    pub(super) fn file(&mut self, path: &str, mode: u32, content: Vec<u8>) {
        self.put(path, Entry { mode, owner: 0, content: Some(content) });
    }

    /// Puts a folder there that belongs to somebody.
    pub(super) fn folder(&mut self, path: &str, mode: u32, owner: u32) {
        self.put(path, Entry { mode, owner, content: None });
    }

    /// Puts everything of another tree below `place`.
    pub(super) fn merge(&mut self, place: &str, other: &Tree) {
        for (path, entry) in &other.0 {
            let path = if place.is_empty() { path.clone() } else { format!("{place}/{path}") };
            self.put(&path, entry.clone());
        }
    }

    fn put(&mut self, path: &str, entry: Entry) {
        for (end, _) in path.match_indices('/') {
            let folder = Entry { mode: 0o755, owner: 0, content: None };
            self.0.entry(path[..end].to_string()).or_insert(folder);
        }
        self.0.insert(path.to_string(), entry);
    }

    /// Everything, folders before what is in them.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// The files.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries().filter_map(|(path, entry)| Some((path, entry.content.as_deref()?)))
    }
}
