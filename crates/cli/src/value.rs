//! Values of flags, with errors that say what is valid.

use std::fmt::Display;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use catraca_algorithms::Load;

use crate::suggest::unknown;

/// A whole number of at least `least`, for `value_parser`.
pub(crate) fn at_least<T>(
    least: T,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr<Err = ParseIntError> + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| match text.parse::<T>() {
        Ok(number) if number >= least => Ok(number),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
            Err(format!("'{text}' is too large"))
        }
        _ => Err(format!("'{text}' is no whole number of at least {least}")),
    }
}

/// A number of threads.
pub(crate) fn threads(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|number| (1..=256).contains(number));
    number.ok_or_else(|| format!("'{text}' is no number of threads: give 1 to 256"))
}

/// Any number; what it is for decides whether it is sensible.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("'{text}' is no number: give one such as 0.5"))
}

/// One of the two loads that the literature compares.
pub(crate) fn load(text: &str) -> Result<Load, String> {
    match text {
        "low" => Ok(Load::Low),
        "high" => Ok(Load::High),
        _ => Err(unknown("load", text, &["low", "high"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_number_is_refused_with_what_would_be_right() {
        let parse = at_least(1u32);
        assert_eq!(parse("1"), Ok(1));
        for text in ["0", "-1", "1.5", "", "drei"] {
            assert_eq!(parse(text), Err(format!("'{text}' is no whole number of at least 1")));
        }
        assert_eq!(parse("4294967296"), Err("'4294967296' is too large".to_string()));
    }
}
