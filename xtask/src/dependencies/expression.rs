//! Licences as crates say them: `MIT OR Apache-2.0`, `(A OR B) AND C`, and older ones with a slash.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Result, bail};

/// A licence, or several of which one or all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    /// One licence, with its exception if it has one.
    One(String),
    /// One of them may be chosen.
    Any(Vec<Expression>),
    /// All of them hold.
    All(Vec<Expression>),
}

impl Expression {
    /// Reads what a crate says. A slash, of older crates, stands for OR.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let spaced = text.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        let mut words = spaced.split_whitespace().peekable();
        let whole = any(&mut words);
        match (whole, words.next()) {
            (Some(whole), None) => Ok(whole),
            _ => bail!("'{text}' is no expression of licences"),
        }
    }

    /// Whether somebody may who allows only these.
    pub(crate) fn is_met_by(&self, allowed: &BTreeSet<String>) -> bool {
        match self {
            Expression::One(licence) => allowed.contains(licence),
            Expression::Any(parts) => parts.iter().any(|part| part.is_met_by(allowed)),
            Expression::All(parts) => parts.iter().all(|part| part.is_met_by(allowed)),
        }
    }
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>) -> Option<Expression> {
    joined(words, "OR", all, Expression::Any)
}

fn all(words: &mut Words<'_>) -> Option<Expression> {
    joined(words, "AND", one, Expression::All)
}

fn joined(
    words: &mut Words<'_>,
    word: &str,
    part: fn(&mut Words<'_>) -> Option<Expression>,
    whole: fn(Vec<Expression>) -> Expression,
) -> Option<Expression> {
    let mut parts = vec![part(words)?];
    while words.next_if_eq(&word).is_some() {
        parts.push(part(words)?);
    }
    if parts.len() == 1 { parts.pop() } else { Some(whole(parts)) }
}

fn one(words: &mut Words<'_>) -> Option<Expression> {
    match words.next()? {
        "(" => {
            let inner = any(words)?;
            words.next_if_eq(&")").map(|_| inner)
        }
        ")" | "OR" | "AND" | "WITH" => None,
        licence if words.next_if_eq(&"WITH").is_some() => {
            Some(Expression::One(format!("{licence} WITH {}", words.next()?)))
        }
        licence => Some(Expression::One(licence.to_string())),
    }
}

impl fmt::Display for Expression {
    /// As the standard for it (SPDX) has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, word) = match self {
            Expression::One(licence) => return f.write_str(licence),
            Expression::Any(parts) => (parts, " OR "),
            Expression::All(parts) => (parts, " AND "),
        };
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                f.write_str(word)?;
            }
            match part {
                Expression::One(licence) => f.write_str(licence)?,
                part => write!(f, "({part})")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_and_written_as_the_standard_has_them() {
        let cases = [
            ("MIT", "MIT"),
            ("MIT/Apache-2.0", "MIT OR Apache-2.0"),
            ("Apache-2.0 / MIT", "Apache-2.0 OR MIT"),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", "(MIT OR Apache-2.0) AND Unicode-3.0"),
            ("MIT OR Zlib AND ISC", "MIT OR (Zlib AND ISC)"),
            ("Apache-2.0 WITH LLVM-exception OR MIT", "Apache-2.0 WITH LLVM-exception OR MIT"),
        ];
        for (text, written) in cases {
            assert_eq!(Expression::parse(text).unwrap().to_string(), written);
        }
        for text in ["", "MIT OR", "(MIT", "MIT)", "AND", "MIT Apache-2.0", "MIT WITH"] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn of_several_licences_one_is_enough_or_all_are_needed() {
        let allowed = BTreeSet::from(["MIT".to_string(), "ISC".to_string()]);
        let is_met = |text: &str| Expression::parse(text).unwrap().is_met_by(&allowed);
        assert!(
            is_met("GPL-3.0-only OR MIT") && is_met("MIT AND ISC") && is_met("(X OR MIT) AND ISC")
        );
        assert!(!is_met("GPL-3.0-only") && !is_met("MIT AND X") && !is_met("MIT WITH X"));
    }
}
