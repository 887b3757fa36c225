//! The name of a lock.

use alloc::string::{String, ToString};
use core::fmt;
use core::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// The longest name, in bytes.
pub const LONGEST_NAME: usize = 255;

/// Why a text names no lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum NameError {
    /// Nothing at all.
    #[error("a lock needs a name")]
    Empty,
    /// Too long.
    #[error(
        "a name of {0} bytes is too long; a lock's name has at most {LONGEST_NAME}, so shorten it or name its digest"
    )]
    Long(usize),
    /// A character that would make lists of locks unreadable, or two names look the same.
    #[error(
        "{name:?} has {character:?} in it; a lock's name has no spaces, no control characters and no invisible ones"
    )]
    Character {
        /// The name.
        name: String,
        /// The first character that cannot be.
        character: char,
    },
}

/// A text that names a lock: 1 to 255 bytes, no white space, no control characters, and nothing that
/// cannot be seen.
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
        let unfit = |&character: &char| {
            character.is_whitespace() || character.is_control() || is_invisible(character)
        };
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

/// Characters of Unicode that show nothing by themselves, or change the direction or the form of what
/// is around them: with them two names could look the same, or a list of locks like another.
const INVISIBLE: &[RangeInclusive<char>] = &[
    '\u{ad}'..='\u{ad}',       // soft hyphen
    '\u{34f}'..='\u{34f}',     // combining grapheme joiner
    '\u{61c}'..='\u{61c}',     // Arabic letter mark
    '\u{115f}'..='\u{1160}',   // Hangul fillers
    '\u{17b4}'..='\u{17b5}',   // Khmer inherent vowels
    '\u{180b}'..='\u{180f}',   // Mongolian variation selectors and vowel separator
    '\u{200b}'..='\u{200f}',   // zero-width space and joiners, direction marks
    '\u{202a}'..='\u{202e}',   // direction embeddings and overrides
    '\u{2060}'..='\u{206f}',   // word joiner, invisible operators, direction isolates
    '\u{2800}'..='\u{2800}',   // blank Braille pattern
    '\u{3164}'..='\u{3164}',   // Hangul filler
    '\u{fe00}'..='\u{fe0f}',   // variation selectors
    '\u{feff}'..='\u{feff}',   // zero-width no-break space
    '\u{ffa0}'..='\u{ffa0}',   // halfwidth Hangul filler
    '\u{fff0}'..='\u{fffb}',   // specials, interlinear annotations
    '\u{1bca0}'..='\u{1bca3}', // shorthand format controls
    '\u{1d173}'..='\u{1d17a}', // musical format controls
    '\u{e0000}'..='\u{e0fff}', // tags and further variation selectors
];

fn is_invisible(character: char) -> bool {
    INVISIBLE.iter().any(|range| range.contains(&character))
}

impl fmt::Display for LockName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn what_cannot_be_seen_names_no_lock() {
        let invisible = ['\u{202e}', '\u{200b}', '\u{ad}', '\u{feff}', '\u{2066}', '\u{e0041}'];
        for character in invisible {
            let name = format!("a{character}b");
            let error = NameError::Character { name: name.clone(), character };
            assert_eq!(LockName::new(&name), Err(error));
        }
        for name in ["naïve", "e\u{301}", "मराठी", "🔒"] {
            assert!(LockName::new(name).is_ok(), "{name}");
        }
    }

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
