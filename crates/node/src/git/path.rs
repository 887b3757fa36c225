//! Paths of files in a repository, and the names of their locks.
//!
//! A lock is for a path as it is folded: paths that are the same file somewhere have one lock. Names of
//! locks have no white space in them and no characters that cannot be seen, so those are written as `%20` is
//! in a URL. A path that is too long for a name is named by its digest.

use std::fmt::Write as _;

use catraca_group::{LONGEST_NAME, LockName};
use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization;

use super::repository::{PREFIX, Repository};
use crate::config::{Fold, GIT_TURNS};

/// The longest path, in bytes: it has to fit into the note of a durable hold, beside what people say.
pub(crate) const LONGEST_PATH: usize = 768;
/// What the rest of a name begins with that is a digest. No path is written so.
const DIGEST: &str = "%sha256/";

/// Why a text is no path of a file in a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    #[error("a lock needs a path")]
    Empty,
    #[error("the path is too long: at most {LONGEST_PATH} bytes")]
    Long,
    #[error(
        "the path is absolute; say it as it is from the root of the repository, as in art/a.psd"
    )]
    Absolute,
    #[error("the path has a part '.', '..' or nothing between two '/'; say it without")]
    Part,
    #[error("the path has a zero byte in it")]
    Zero,
}

/// A path that a lock is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockPath {
    /// As it was given.
    pub(crate) given: String,
    /// The same for all paths that mean the same file.
    pub(crate) folded: String,
    /// The name of its lock.
    pub(crate) name: String,
}

impl LockPath {
    pub(crate) fn new(repository: &Repository, given: &str, fold: Fold) -> Result<Self, PathError> {
        let folded = folded(given, fold)?;
        let name = lock_name(repository, &folded);
        Ok(LockPath { given: given.to_string(), folded, name })
    }
}

/// Checks a path, and makes it the same as all others that mean the same file.
pub(crate) fn folded(path: &str, fold: Fold) -> Result<String, PathError> {
    let path = match fold.backslash {
        true => path.replace('\\', "/"),
        false => path.to_string(),
    };
    check(&path)?;
    let path = if fold.unicode { path.nfc().collect() } else { path };
    if !fold.case {
        return Ok(path);
    }
    let lower = path.chars().flat_map(char::to_lowercase);
    // The small sigma at the end of a word is the same letter.
    let lower = lower.map(|letter| if letter == 'ς' { 'σ' } else { letter });
    // Small letters may be written in two parts where capital ones are not.
    Ok(if fold.unicode { lower.nfc().collect() } else { lower.collect() })
}

fn check(path: &str) -> Result<(), PathError> {
    let is_drive = |path: &str| {
        let mut start = path.bytes();
        start.next().is_some_and(|letter| letter.is_ascii_alphabetic())
            && start.next() == Some(b':')
            && start.next().is_some_and(|slash| matches!(slash, b'/' | b'\\'))
    };
    match path {
        "" => Err(PathError::Empty),
        _ if path.len() > LONGEST_PATH => Err(PathError::Long),
        _ if path.contains('\0') => Err(PathError::Zero),
        _ if path.starts_with('/') || is_drive(path) => Err(PathError::Absolute),
        _ if path.split('/').any(|part| matches!(part, "" | "." | "..")) => Err(PathError::Part),
        _ => Ok(()),
    }
}

/// The name by which those take turns who want the lock of this name with others.
pub(crate) fn turn_name(lock: &str) -> String {
    let prefix = GIT_TURNS.trim_end_matches('*');
    let name = format!("{prefix}{}", lock.strip_prefix(PREFIX).unwrap_or(lock));
    match name.len() > LONGEST_NAME {
        true => {
            let digest: [u8; 32] = Sha256::digest(lock.as_bytes()).into();
            format!("{prefix}{DIGEST}{}", hex(&digest))
        }
        false => name,
    }
}

/// The name of the lock of a folded path.
pub(crate) fn lock_name(repository: &Repository, folded: &str) -> String {
    let mut name = repository.prefix();
    let start = name.len();
    for letter in folded.chars() {
        let mut bytes = [0; 4];
        let text = letter.encode_utf8(&mut bytes);
        if letter != '%' && LockName::new(text).is_ok() {
            name.push(letter);
        } else {
            text.bytes().for_each(|byte| push_byte(&mut name, byte));
        }
    }
    if name.len() > LONGEST_NAME {
        name.truncate(start);
        name.push_str(DIGEST);
        let digest: [u8; 32] = Sha256::digest(folded.as_bytes()).into();
        name.push_str(&hex(&digest));
    }
    name
}

fn push_byte(text: &mut String, byte: u8) {
    // Writing to memory does not fail.
    let _ = write!(text, "%{byte:02X}");
}

/// Bytes as two small hexadecimal digits each.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The folded path behind the prefix of a name, as far as it can be read.
pub(crate) fn of_name(rest: &str) -> String {
    let mut bytes = Vec::with_capacity(rest.len());
    let mut rest = rest.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: Fold = Fold { case: true, backslash: true, unicode: true };
    const NONE: Fold = Fold { case: false, backslash: false, unicode: false };

    fn repository() -> Repository {
        Repository::new("art", "game").unwrap()
    }

    #[test]
    fn paths_that_are_one_file_somewhere_are_folded_where_that_is_wanted() {
        let same = [
            ("Art/A.psd", "art/a.PSD"),
            ("art\\a.psd", "art/a.psd"),
            // é as one character, and as e with an accent.
            ("caf\u{e9}", "cafe\u{301}"),
            ("ΟΔΟΣ", "οδος"),
            ("İ", "i\u{307}"),
        ];
        for (one, other) in same {
            assert_eq!(folded(one, ALL), folded(other, ALL), "{one} {other}");
            assert_ne!(folded(one, NONE), folded(other, NONE), "{one} {other}");
        }
        assert_ne!(folded("a", ALL), folded("b", ALL));
        assert_eq!(folded("a\\b", NONE).unwrap(), "a\\b");
    }

    #[test]
    fn what_leads_elsewhere_is_no_path() {
        let cases = [
            ("", PathError::Empty),
            ("/etc/passwd", PathError::Absolute),
            ("C:/Windows", PathError::Absolute),
            ("c:\\Windows", PathError::Absolute),
            ("..", PathError::Part),
            ("a/../b", PathError::Part),
            ("./a", PathError::Part),
            ("a//b", PathError::Part),
            ("a/", PathError::Part),
            ("a\0b", PathError::Zero),
        ];
        for (path, error) in cases {
            assert_eq!(folded(path, NONE), Err(error), "{path:?}");
            assert_eq!(folded(path, ALL), Err(error), "{path:?}");
        }
        assert_eq!(folded("a\\..\\b", ALL), Err(PathError::Part));
        assert_eq!(folded("\\a", ALL), Err(PathError::Absolute));
        assert!(folded("a\\..\\b", NONE).is_ok(), "a strange name, but no other file");
        assert_eq!(folded(&"x".repeat(LONGEST_PATH + 1), NONE), Err(PathError::Long));
        for good in ["-x", "a b", "'\"", "a\nb", "...", "a/.b", "日本/é.psd", "C:x"] {
            assert!(folded(good, NONE).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn every_path_has_a_name_of_its_own_that_a_lock_can_have() {
        let paths = [
            "a b",
            "a%20b",
            "a\nb",
            "a\u{200b}b",
            "a\u{3000}b",
            "é",
            "%",
            "%41",
            "A",
            "日本",
            "a/b",
            "-",
            "'\"",
        ];
        let long = "ü ".repeat(200);
        let mut names = Vec::new();
        for path in paths.into_iter().chain([&*long, &"x".repeat(250), &"y".repeat(768)]) {
            let name = lock_name(&repository(), path);
            assert!(LockName::new(&name).is_ok(), "{name}");
            if !name.contains(DIGEST) {
                assert_eq!(of_name(&name[repository().prefix().len()..]), path);
            }
            names.push(name);
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(lock_name(&repository(), "a b"), "git/art/game/a%20b");
    }

    proptest! {
        #[test]
        fn whatever_is_a_path_has_a_name_and_is_folded_once_and_for_all(path in "\\PC{0,40}|[a/.\\\\%é\u{301} ]{0,12}") {
            for fold in [NONE, ALL] {
                let Ok(once) = folded(&path, fold) else { continue };
                prop_assert_eq!(folded(&once, fold), Ok(once.clone()));
                let name = lock_name(&repository(), &once);
                prop_assert!(LockName::new(&name).is_ok(), "{}", name);
                if !name.contains(DIGEST) {
                    prop_assert_eq!(of_name(&name[repository().prefix().len()..]), once);
                }
            }
        }
    }
}
