//! Where Catraca's source is, which a crate of one's own is built on.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::output::reason;

/// The folder that this program was built from.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What a folder with the source has.
const SIGN: &str = "crates/own/Cargo.toml";

/// Files that pin the toolchain and the versions of dependencies. With the same the crate compiles as
/// Catraca does, also without a network where Catraca has been built.
const PINNED: [&str; 2] = ["rust-toolchain.toml", "Cargo.lock"];

/// The folder with the source, from the root on.
pub(super) struct Source(String);

impl Source {
    /// The folder that was said, or the one that this program was built from.
    pub(super) fn find(said: Option<&Path>) -> Result<Self, Failure> {
        let place = said.unwrap_or(Path::new(BUILT_FROM));
        let has_sign = |place: &PathBuf| place.join(SIGN).is_file();
        let found = place.canonicalize().ok().filter(has_sign).ok_or_else(|| match said {
            Some(said) => Failure::input(format!(
                "--catraca: '{}' is not the folder of Catraca's source, which has {SIGN}",
                said.display()
            )),
            None => Failure::input(
                "the source that this program was built from is not there any more; say where Catraca's \
                 source is with --catraca PATH, a clone of its repository",
            ),
        })?;
        match found.into_os_string().into_string() {
            Ok(path) => Ok(Source(path)),
            Err(path) => Err(Failure::input(format!(
                "--catraca: the path '{}' is not UTF-8, so Cargo cannot have it; move the source",
                path.display()
            ))),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as it stands between quotation marks in TOML.
    pub(super) fn as_toml(&self) -> String {
        let escaped = |letter: char| match letter {
            '"' | '\\' => format!("\\{letter}"),
            control if control.is_control() => format!("\\u{:04X}", u32::from(control)),
            plain => plain.to_string(),
        };
        self.0.chars().map(escaped).collect()
    }

    /// What pins versions, by the names of the files.
    pub(super) fn pinned(&self) -> Result<Vec<(&'static str, String)>, Failure> {
        let read = |name| {
            let path = Path::new(&self.0).join(name);
            let content = fs::read_to_string(&path).map_err(|error| {
                let (path, why) = (path.display(), reason(&error));
                Failure::input(format!("cannot read '{path}' of Catraca's source: {why}"))
            })?;
            Ok((name, content))
        };
        PINNED.into_iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_of_this_program_is_found_with_what_it_pins() {
        let source = Source::find(None).ok().unwrap();
        let pinned = source.pinned().ok().unwrap();
        assert!(pinned[0].1.contains("channel") && pinned[1].1.contains("catraca-core"));
    }

    #[test]
    fn a_path_with_quotation_marks_is_escaped_for_toml() {
        let source = Source("/a \"b\"\\c\n".to_string());
        assert_eq!(source.as_toml(), "/a \\\"b\\\"\\\\c\\u000A");
    }
}
