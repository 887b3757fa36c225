//! Names that a crate can have.

use std::str::FromStr;

use catraca_algorithms::registry::ENTRIES;

/// Longer names are no names.
const LONGEST: usize = 40;

/// Words of the language; Cargo refuses crates that are called so.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Names that Cargo, the language or Catraca have for something else.
const TAKEN: [&str; 16] = [
    "alloc",
    "build",
    "catraca",
    "core",
    "deps",
    "examples",
    "incremental",
    "proc-macro",
    "serde",
    "std",
    "target",
    "test",
    "con",
    "nul",
    "prn",
    "aux",
];

/// The name of a crate, of its program and of its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CrateName(String);

impl CrateName {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CrateName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |letter: char| matches!(letter, 'a'..='z' | '0'..='9' | '-');
        let shown = text.escape_debug();
        if !text.starts_with(|first: char| first.is_ascii_lowercase())
            || !text.chars().all(is_plain)
            || text.ends_with('-')
            || text.contains("--")
        {
            return Err(format!(
                "'{shown}' is no name for a crate: say small letters, digits and '-', beginning with a \
                 letter, such as token-ring"
            ));
        }
        if text.len() > LONGEST {
            return Err(format!(
                "'{shown}' is longer than {LONGEST} letters; choose a shorter name"
            ));
        }
        if KEYWORDS.contains(&text) || TAKEN.contains(&text) || text.starts_with("catraca-") {
            return Err(format!(
                "'{shown}' is the name of something else to Rust, Cargo or Catraca; choose another, such \
                 as my-{shown}"
            ));
        }
        if ENTRIES.iter().any(|entry| entry.name == text) {
            return Err(format!(
                "'{shown}' is in the catalogue, and tables could not tell the two apart; choose another \
                 name, such as my-{shown}"
            ));
        }
        Ok(CrateName(text.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, why: &str) {
        let error = name.parse::<CrateName>().unwrap_err();
        assert!(error.contains(why), "{name:?}: {error}");
    }

    #[test]
    fn a_name_is_small_letters_digits_and_dashes() {
        for name in ["ring", "r", "token-ring", "k3-ring"] {
            assert_eq!(name.parse::<CrateName>().unwrap().as_str(), name);
        }
        for name in [
            "",
            "-ring",
            "ring-",
            "a--b",
            "3ring",
            "Ring",
            "my_ring",
            "ríng",
            "a b",
            "..",
            ".",
            "/tmp/x",
            "../x",
            "a/b",
            "a\\b",
            "a\nb",
            "a\0b",
            "环",
            "ring\u{202e}",
            "$HOME",
            "a.b",
        ] {
            refused(name, "is no name for a crate");
        }
        refused(&"a".repeat(41), "longer than 40 letters");
    }

    #[test]
    fn names_of_something_else_are_refused() {
        for name in
            ["fn", "self", "test", "core", "target", "serde", "catraca", "catraca-own", "yield"]
        {
            refused(name, "the name of something else");
        }
        refused("maekawa", "is in the catalogue");
    }
}
