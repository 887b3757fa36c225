//! The name of a lock.

use std::fmt;

/// The longest name, in bytes.
pub const LONGEST_NAME: usize = 255;

/// Why a text names no lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing at all.
    #[error("a lock needs a name")]
    Empty,
    /// Too long.
    #[error(
        "a name of {0} bytes is too long; a lock's name has at most {LONGEST_NAME}, so shorten it or name its digest"
    )]
    Long(usize),
    /// A character that would make lists of locks unreadable.
    #[error(
        "{name:?} has {character:?} in it; a lock's name has no spaces and no control characters"
    )]
    Character {
        /// The name.
        name: String,
        /// The first character that cannot be.
        character: char,
    },
}

/// A text that names a lock: 1 to 255 bytes, no white space, no control characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockName<'a>(&'a str);

impl<'a> LockName<'a> {
    /// Checks `text`.
    pub fn new(text: &'a str) -> Result<Self, NameError> {
        // The fast path looks at bytes only: most names are plain.
        if text.bytes().all(|byte| byte.is_ascii_graphic())
            && (1..=LONGEST_NAME).contains(&text.len())
        {
            return Ok(LockName(text));
        }
        Self::look_closely(text)
    }

    #[cold]
    fn look_closely(text: &'a str) -> Result<Self, NameError> {
        let unfit = |character: &char| character.is_whitespace() || character.is_control();
        match text.len() {
            0 => Err(NameError::Empty),
            length if length > LONGEST_NAME => Err(NameError::Long(length)),
            _ => match text.chars().find(unfit) {
                Some(character) => Err(NameError::Character { name: text.to_string(), character }),
                None => Ok(LockName(text)),
            },
        }
    }

    /// The text.
    pub fn as_str(self) -> &'a str {
        self.0
    }
}

impl fmt::Display for LockName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_have_no_spaces() {
        for good in ["a", "orders/42", "ação", "日本", &"x".repeat(255)] {
            assert_eq!(LockName::new(good).map(LockName::as_str), Ok(good));
        }
        assert_eq!(LockName::new(""), Err(NameError::Empty));
        assert_eq!(LockName::new(&"x".repeat(4096)), Err(NameError::Long(4096)));
        for (bad, which) in
            [("a b", ' '), ("tab\tbed", '\t'), ("a\u{7}", '\u{7}'), ("é\u{2003}", '\u{2003}')]
        {
            let error = NameError::Character { name: bad.to_string(), character: which };
            assert_eq!(LockName::new(bad), Err(error));
        }
    }
}
