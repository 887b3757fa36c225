//! Instants as people tell them: by their numbers, in seconds, or as dates.

use std::io::{self, Write};
use std::str::FromStr;

use catraca_node::rfc3339;
use catraca_topology::evolving::{Clock, Moment, Skipped};
use serde::Serialize;

use crate::failure::Failure;
use crate::table::{counted, grouped};

/// A file whose times are between these, 1990 and 2100 in seconds since 1970, tells dates.
const OF_CALENDARS: [u64; 2] = [631_152_000, 4_102_444_800];

/// How instants are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Instants,
    Seconds,
    Dates,
}

impl FromStr for Told {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "instants" => Ok(Told::Instants),
            "seconds" => Ok(Told::Seconds),
            "dates" => Ok(Told::Dates),
            _ => Err(format!("times cannot be told as '{text}': say instants, seconds or dates")),
        }
    }
}

/// What is known of the times of a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Catraca's own format has instants alone.
    clock: Option<Clock>,
    told: Told,
}

/// When instants are, for a JSON file. Times are in the unit of the trace, which is the second.
#[derive(Serialize)]
pub(super) struct ClockRecord {
    /// When instant 0 begins.
    origin: f64,
    /// The same as a date, if times are seconds since 1970.
    origin_date: Option<String>,
    /// How long an instant is.
    instant: f64,
}

impl Times {
    /// As was asked for; otherwise as the times of the file suggest.
    pub(super) fn new(clock: Option<Clock>, asked: Option<Told>) -> Result<Self, Failure> {
        let usual = match clock {
            None => Told::Instants,
            Some(clock) if is_date(clock.origin) => Told::Dates,
            Some(clock) if clock.instant.length() != Moment::units(1) => Told::Seconds,
            Some(_) => Told::Instants,
        };
        let told = asked.unwrap_or(usual);
        match (clock, told) {
            (None, Told::Seconds | Told::Dates) => Err(Failure::input(
                "--times: Catraca's own format has instants alone; leave it out",
            )),
            _ => Ok(Times { clock, told }),
        }
    }

    /// An instant, as in `57`, `57 (1140 s)` or `57 (2010-01-02 17:59:40 UTC)`.
    pub(super) fn at(&self, instant: u64) -> String {
        let number = grouped(instant);
        match (self.clock, self.told) {
            (Some(clock), Told::Seconds) => format!("{number} ({})", seconds(clock.lasts(instant))),
            (Some(clock), Told::Dates) => format!("{number} ({})", date(clock.begins(instant))),
            _ => number,
        }
    }

    /// How long something takes, as in `3 instants` or `3 instants (60 s)`.
    pub(super) fn lasting(&self, instants: u64) -> String {
        let number = counted(instants, "instant", "instants");
        match (self.clock, self.told) {
            (None, _) | (_, Told::Instants) => number,
            (Some(clock), _) => format!("{number} ({})", seconds(clock.lasts(instants))),
        }
    }

    /// What stands below the axis of a chart.
    pub(super) fn axis(&self) -> String {
        match (self.clock, self.told) {
            (None, _) | (_, Told::Instants) => "instant".to_string(),
            (Some(clock), Told::Seconds) => {
                format!("instant, {} each", seconds(clock.instant.length()))
            }
            (Some(clock), Told::Dates) => format!(
                "instant, {} each, from {}",
                seconds(clock.instant.length()),
                date(clock.origin)
            ),
        }
    }

    /// Whether instants are told in more than their numbers.
    pub(super) fn says_more(&self) -> bool {
        self.told != Told::Instants
    }

    /// When instants are, where the file has times.
    pub(super) fn record(&self) -> Option<ClockRecord> {
        let Clock { origin, instant } = self.clock?;
        let number = |moment: Moment| {
            let (whole, part) = moment.units_and_thousandths();
            whole as f64 + part as f64 / 1000.0
        };
        Some(ClockRecord {
            origin: number(origin),
            origin_date: is_date(origin).then(|| date(origin)),
            instant: number(instant.length()),
        })
    }

    /// When time begins and how long an instant is, where the file has times.
    pub(super) fn beginning(&self) -> Option<String> {
        let clock = self.clock?;
        let (whole, part) = clock.origin.units_and_thousandths();
        let origin = match part {
            0 => whole.to_string(),
            part => format!("{whole}.{part:03}"),
        };
        let date = match self.told {
            Told::Dates => format!(", {}", date(clock.origin)),
            _ => String::new(),
        };
        let length = seconds(clock.instant.length());
        Some(format!("instant 0 begins at {origin} of the file{date}; an instant is {length}"))
    }
}

fn is_date(moment: Moment) -> bool {
    (OF_CALENDARS[0]..OF_CALENDARS[1]).contains(&moment.units_and_thousandths().0)
}

/// The unit of files is the second.
pub(super) fn seconds(moment: Moment) -> String {
    match moment.units_and_thousandths() {
        (whole, 0) => format!("{} s", grouped(whole)),
        (whole, part) => {
            format!("{}.{} s", grouped(whole), format!("{part:03}").trim_end_matches('0'))
        }
    }
}

fn date(moment: Moment) -> String {
    let (whole, part) = moment.units_and_thousandths();
    let text = rfc3339(whole.saturating_mul(1000).saturating_add(part));
    let text = text.trim_end_matches('Z').replace('T', " ");
    format!("{} UTC", text.strip_suffix(".000").unwrap_or(&text))
}

/// What was passed over, in words; nothing if there is nothing to say.
pub(super) fn skipped(skipped: Skipped) -> Option<String> {
    let Skipped { itself, heads, before } = skipped;
    let parts = [
        (itself, "contact of a node with itself", "contacts of nodes with themselves"),
        (heads, "head", "heads"),
        (before, "contact before instant 0", "contacts before instant 0"),
    ];
    let said: Vec<String> = parts
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| counted(count, one, many))
        .collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// Says on standard error what was passed over, if contacts were: whoever does not ask should know.
pub(super) fn warn(said: Skipped) {
    if let Some(what) = skipped(Skipped { heads: 0, ..said }) {
        // If standard error is closed there is nobody to be told.
        writeln!(io::stderr(), "catraca: passed over {what}").ok();
    }
}

#[cfg(test)]
mod tests {
    use catraca_topology::evolving::Reader;

    use super::*;

    fn times(text: &str, instant: &str, asked: Option<Told>) -> Result<Times, Failure> {
        let reader = Reader::new(None, instant.parse().unwrap());
        let mut reader = reader.beginning("first".parse().unwrap());
        text.lines().for_each(|line| reader.line(line).unwrap());
        Times::new(reader.import().unwrap().clock, asked)
    }

    #[test]
    fn seconds_since_1970_are_told_as_dates() {
        let times = times("1262454020 a b\n1262454040 b c\n", "20", None).unwrap();
        assert_eq!(times.at(0), "0 (2010-01-02 17:40:20 UTC)");
        assert_eq!(times.at(4_320), "4,320 (2010-01-03 17:40:20 UTC)");
        assert_eq!(times.lasting(3), "3 instants (60 s)");
        assert_eq!(times.axis(), "instant, 20 s each, from 2010-01-02 17:40:20 UTC");
    }

    #[test]
    fn other_times_are_told_in_seconds_unless_an_instant_is_one() {
        assert_eq!(times("7 a b\n", "0.5", None).unwrap().at(3), "3 (1.5 s)");
        assert_eq!(times("7 a b\n", "1", None).unwrap().at(1234), "1,234");
        assert_eq!(times("7 a b\n", "1", Some(Told::Seconds)).unwrap().at(2), "2 (2 s)");
        assert_eq!(times("1262454020 a b\n", "20", Some(Told::Instants)).unwrap().at(2), "2");
    }

    #[test]
    fn the_own_format_has_no_seconds() {
        assert_eq!(times("catraca graph\n3 a b\n", "1", None).unwrap().at(3), "3");
        assert!(times("catraca graph\n3 a b\n", "1", Some(Told::Dates)).is_err());
    }

    #[test]
    fn what_was_passed_over_is_counted() {
        assert_eq!(skipped(Skipped::default()), None);
        let some = Skipped { itself: 2, heads: 1, before: 1 };
        let text = "2 contacts of nodes with themselves, 1 head, 1 contact before instant 0";
        assert_eq!(skipped(some).as_deref(), Some(text));
    }
}
