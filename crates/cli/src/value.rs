//! Values of flags, with errors that say what is valid.

use std::fmt::Display;
use std::num::{IntErrorKind, ParseIntError};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use catraca_algorithms::Load;
use catraca_client::socket;
use catraca_sim::LoadKind;
use catraca_topology::evolving::MAX_INSTANT;

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

/// A whole number from `least` to `most`, for `value_parser`.
pub(crate) fn within<T>(
    least: T,
    most: T,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr<Err = ParseIntError> + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    let parse = at_least(least);
    move |text| match parse(text)? {
        number if number > most => Err(format!("'{text}' is too large: give at most {most}")),
        number => Ok(number),
    }
}

/// An instant of an evolving graph.
pub(crate) fn instant(text: &str) -> Result<u64, String> {
    within(0, MAX_INSTANT)(text)
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

/// A time such as 2s, 1.5s or 500ms, in whole microseconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no time from 0s to 1h: give one such as 2s, 1.5s or 500ms");
    // The longer units first: 's' ends all of them.
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (number, unit) = units
        .iter()
        .find_map(|(name, unit)| text.strip_suffix(name).map(|number| (number, unit)))
        .ok_or_else(wrong)?;
    // A number as people write it: 'inf', '1e3' and '+1' are none.
    if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(wrong());
    }
    let seconds = number.parse::<f64>().map_err(|_| wrong())? * unit;
    if seconds > 3600.0 {
        return Err(wrong());
    }
    Ok(Duration::from_micros((seconds * 1e6).round() as u64))
}

/// A time that people wait or keep something: 90s, 5m, 2h, 3d or 2w.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("w", 604_800)];
    let split = units
        .iter()
        .find_map(|(name, seconds)| text.strip_suffix(name).map(|number| (number, seconds)))
        .filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
    let seconds = split.and_then(|(number, unit)| number.parse::<u64>().ok()?.checked_mul(*unit));
    // Ten years are forever.
    seconds
        .filter(|&seconds| seconds <= 3_653 * 86_400)
        .map(Duration::from_secs)
        .ok_or_else(|| format!("'{text}' is no time: give one such as 90s, 5m, 2h, 3d or 2w"))
}

/// A time in seconds, with fractions, for `value_parser`.
pub(crate) fn seconds(
    range: RangeInclusive<f64>,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse::<f64>() {
        Ok(seconds) if range.contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => {
            let (least, most) = (range.start(), range.end());
            Err(format!("'{text}' is no time: give {least} to {most} seconds, such as 2.5"))
        }
    }
}

/// The address of a node, or the path of its socket. A port alone is one of this machine.
pub(crate) fn at_node(text: &str) -> Result<String, String> {
    let wrong = || format!("'{text}' is no address: say HOST:PORT, as in 127.0.0.1:7800");
    if socket(text).is_some() {
        return Ok(text.to_string());
    }
    if text.parse::<u16>().is_ok() {
        return Ok(format!("127.0.0.1:{text}"));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
            Ok(text.to_string())
        }
        _ => Err(wrong()),
    }
}

/// One of the loads that have a name.
pub(crate) fn load(text: &str) -> Result<LoadKind, String> {
    match text {
        "low" => Ok(LoadKind::Closed(Load::Low)),
        "medium" => Ok(LoadKind::Medium),
        "high" => Ok(LoadKind::Closed(Load::High)),
        _ => Err(unknown("load", text, &["low", "medium", "high"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_with_a_unit() {
        let micros = |text| duration(text).map(|time| time.as_micros());
        let right = ["2s", "1.5s", "500ms", "20us", "0s", ".5ms", "3600s"].map(micros);
        let expected = [2_000_000, 1_500_000, 500_000, 20, 0, 500, 3_600_000_000].map(Ok);
        assert_eq!(right, expected);
        for text in
            ["", "2", "s", "ms", "-1s", "+1s", "1e3s", "infs", "NaNs", "2 s", "1.2.3s", "2h"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(duration("3600.1s").is_err());
    }

    #[test]
    fn spans_are_whole_numbers_with_a_unit_of_everyday() {
        let seconds = |text| span(text).map(|time| time.as_secs());
        let right = ["0s", "90s", "5m", "2h", "3d", "2w"].map(seconds);
        assert_eq!(right, [0, 90, 300, 7200, 259_200, 1_209_600].map(Ok));
        for text in ["", "5", "m", "-1s", "1.5h", "2 h", "9999w", "99999999999999999999s", "1y"] {
            assert!(span(text).unwrap_err().contains("such as 90s, 5m"), "{text}");
        }
    }

    #[test]
    fn times_are_seconds_with_fractions() {
        let parse = seconds(0.0..=100.0);
        assert_eq!(parse("2.5"), Ok(Duration::from_millis(2500)));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
        for text in ["-1", "101", "NaN", "inf", "soon", ""] {
            assert!(parse(text).unwrap_err().contains("give 0 to 100 seconds"), "{text}");
        }
    }

    #[test]
    fn numbers_have_a_largest() {
        assert_eq!(within(1, 5)("5"), Ok(5));
        assert_eq!(within(1, 5)("6"), Err("'6' is too large: give at most 5".to_string()));
        assert!(within(1, 5)("0").is_err());
        assert_eq!(instant("0"), Ok(0));
        assert!(instant(&u64::MAX.to_string()).unwrap_err().contains("give at most"));
    }

    #[test]
    fn a_node_is_found_by_host_and_port() {
        assert_eq!(at_node("10.0.0.1:7800").as_deref(), Ok("10.0.0.1:7800"));
        assert_eq!(at_node("[::1]:7800").as_deref(), Ok("[::1]:7800"));
        assert_eq!(at_node("/run/x.sock").as_deref(), Ok("/run/x.sock"));
        assert_eq!(at_node("unix:x.sock").as_deref(), Ok("unix:x.sock"));
        assert_eq!(at_node("7801").as_deref(), Ok("127.0.0.1:7801"));
        for text in ["", "host", ":7800", "host:", "host:99999"] {
            assert!(at_node(text).unwrap_err().contains("say HOST:PORT"), "{text}");
        }
    }

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
