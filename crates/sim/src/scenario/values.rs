//! The values of keys: one or many, numbers or words.

use std::fmt::Display;
use std::num::IntErrorKind;
use std::str::FromStr;

use super::keys;
use super::{Scenario, ScenarioError};

/// The most entries, rounds and the like that can be asked for.
const MAX_COUNT: u64 = 1_000_000_000_000;

pub(super) fn wrong(key: &'static str, what: impl Display) -> ScenarioError {
    ScenarioError::Value { key, what: what.to_string() }
}

impl Scenario {
    pub(super) fn texts(&self, key: &'static str) -> &[String] {
        debug_assert!(keys::find(key).is_some(), "{key} is in the table");
        self.values(key)
    }

    pub(super) fn text(&self, key: &'static str) -> Result<Option<&str>, ScenarioError> {
        match self.texts(key) {
            [] => Ok(None),
            [text] => Ok(Some(text)),
            _ => Err(wrong(key, "takes one value, not a list")),
        }
    }

    pub(super) fn one<T: FromStr<Err: Display>>(
        &self,
        key: &'static str,
    ) -> Result<Option<T>, ScenarioError> {
        self.text(key)?.map(|text| parse_one(key, text)).transpose()
    }

    pub(super) fn whole<T: TryFrom<u64>>(
        &self,
        key: &'static str,
    ) -> Result<Option<T>, ScenarioError> {
        self.text(key)?.map(|text| whole(key, text)).transpose()
    }

    pub(super) fn count(&self, key: &'static str) -> Result<Option<u64>, ScenarioError> {
        let Some(count) = self.whole(key)? else { return Ok(None) };
        if count > MAX_COUNT {
            return Err(wrong(key, format!("{count} is more than {MAX_COUNT}")));
        }
        Ok(Some(count))
    }

    pub(super) fn positive<T: TryFrom<u64>>(
        &self,
        key: &'static str,
    ) -> Result<Option<T>, ScenarioError> {
        match self.count(key)? {
            None => Ok(None),
            Some(0) => Err(wrong(key, "must be at least 1")),
            Some(count) => match T::try_from(count) {
                Ok(count) => Ok(Some(count)),
                Err(_) => Err(wrong(key, format!("{count} is too large"))),
            },
        }
    }

    /// A number from `least` to `most`.
    pub(super) fn number(
        &self,
        key: &'static str,
        least: f64,
        most: f64,
    ) -> Result<Option<f64>, ScenarioError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        match text.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(wrong(key, format!("'{text}' is no number from {least} to {most}"))),
        }
    }
}

fn whole<T: TryFrom<u64>>(key: &'static str, text: &str) -> Result<T, ScenarioError> {
    let too_large = || wrong(key, format!("'{text}' is too large"));
    match text.parse::<u64>() {
        Ok(number) => T::try_from(number).map_err(|_| too_large()),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(too_large()),
        Err(_) => Err(wrong(key, format!("'{text}' is no whole number: give one such as 3"))),
    }
}

fn parse_one<T: FromStr<Err: Display>>(key: &'static str, text: &str) -> Result<T, ScenarioError> {
    text.parse().map_err(|error| wrong(key, error))
}

pub(super) fn parse_all<T: FromStr<Err: Display>>(
    key: &'static str,
    texts: &[String],
) -> Result<Vec<T>, ScenarioError> {
    texts.iter().map(|text| parse_one(key, text)).collect()
}
