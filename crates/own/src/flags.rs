//! What the words after a command say: things about a run in the words of `catraca sim`, from the same
//! table, and a few that the command has for itself.

use std::collections::BTreeMap;

use catraca_sim::{KEYS, Key, Scenario};

use crate::failure::Failure;

/// A flag that a command has for itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    /// What its value looks like; nothing if it takes none.
    pub(crate) value: &'static str,
    pub(crate) help: &'static str,
}

/// A command, its flags and what it is for.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What it needs beside flags, as it is called; nothing if it needs nothing.
    pub(crate) operand: Option<&'static str>,
    /// Which keys of the table are flags of it.
    pub(crate) takes: fn(&Key) -> bool,
    pub(crate) flags: &'static [Flag],
}

/// What was said.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) scenario: Scenario,
    own: BTreeMap<&'static str, String>,
    pub(crate) operand: Option<String>,
    pub(crate) wants_help: bool,
}

impl Command {
    pub(crate) fn parse(&self, words: &[String]) -> Result<Said, Failure> {
        let mut said = Said::default();
        let mut many: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if ["--help", "-h"].contains(&word.as_str()) {
                said.wants_help = true;
                return Ok(said);
            }
            let Some(flag) = word.strip_prefix("--") else {
                self.operand(&mut said, word)?;
                continue;
            };
            let (flag, given) = match flag.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_string())),
                None => (flag, None),
            };
            let mut value = || {
                let missing = || Failure::Input(format!("--{flag}: a value is missing after it"));
                match given.clone() {
                    Some(value) => Ok(value),
                    // A flag after a flag means that a value was forgotten.
                    None => {
                        let next = words.next().filter(|next| !next.starts_with("--"));
                        next.cloned().ok_or_else(missing)
                    }
                }
            };
            if let Some(own) = self.flags.iter().find(|own| own.name == flag) {
                let value = if own.value.is_empty() { String::new() } else { value()? };
                said.own.insert(own.name, value);
            } else if let Some(key) = KEYS.iter().find(|key| key.flag == flag && (self.takes)(key))
            {
                many.entry(key.path).or_default().push(value()?);
            } else {
                return Err(Failure::Input(format!(
                    "--{flag}: {} has no such flag; '{} --help' lists those that it has",
                    self.name, self.name
                )));
            }
        }
        for (path, values) in many {
            said.scenario.set(path, values)?;
        }
        Ok(said)
    }

    fn operand(&self, said: &mut Said, word: &str) -> Result<(), Failure> {
        if self.operand.is_none() || said.operand.is_some() {
            let what = format!("'{word}' is no flag of {}; flags begin with --", self.name);
            return Err(Failure::Input(what));
        }
        said.operand = Some(word.to_string());
        Ok(())
    }
}

impl Said {
    /// The value of a flag that the command has for itself.
    pub(crate) fn own(&self, name: &str) -> Option<&str> {
        self.own.get(name).map(String::as_str)
    }

    /// The same, as a number that is not 0.
    pub(crate) fn count<T: std::str::FromStr + PartialEq + From<u8>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Failure> {
        let parse = |text: &str| match text.parse::<T>() {
            Ok(count) if count != T::from(0) => Ok(count),
            _ => Err(Failure::Input(format!(
                "--{name}: '{text}' is no number of them: give one such as 3"
            ))),
        };
        self.own(name).map(parse).transpose()
    }

    /// The same, as a list with commas.
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        let parts = self.own(name).into_iter().flat_map(|text| text.split(','));
        parts.map(str::trim).filter(|part| !part.is_empty()).collect()
    }
}
