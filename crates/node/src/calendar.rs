//! Times as people and other programs read them.

/// A time in milliseconds since 1970, as `2026-11-17T20:56:03.120Z`.
pub fn rfc3339(unix_millis: u64) -> String {
    format!("{}.{:03}Z", date_and_time(unix_millis / 1000), unix_millis % 1000)
}

/// The milliseconds since 1970 of a time as `2026-11-17T20:56:03.120Z`, with or without parts of a second, or with
/// `+01:00` in the place of `Z`. Nothing if it is none, or before 1970.
pub(crate) fn unix_millis_of(text: &str) -> Option<u64> {
    let number = |text: &str| -> Option<u64> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
    };
    let field = |from: usize, to: usize| text.get(from..to).and_then(number);
    let marks = [(4, '-'), (7, '-'), (10, 'T'), (13, ':'), (16, ':')];
    if marks
        .iter()
        .any(|&(place, mark)| text.get(place..place + 1) != Some(mark.encode_utf8(&mut [0])))
    {
        return None;
    }
    let (year, month, day) = (field(0, 4)?, field(5, 7)?, field(8, 10)?);
    let (hour, minute, second) = (field(11, 13)?, field(14, 16)?, field(17, 19)?);
    let is_time = hour < 24 && minute < 60 && second < 61;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year < 1970 || !is_time {
        return None;
    }
    let (fraction, zone) = match text.get(19..)?.strip_prefix('.') {
        None => ("", text.get(19..)?),
        Some(rest) => rest.split_at(rest.find(|it: char| !it.is_ascii_digit())?),
    };
    let millis = format!("{fraction:0<3}").get(..3).and_then(number)?;
    let offset = match zone {
        "Z" | "z" => 0,
        zone => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let minutes = number(hours)? as i64 * 60 + number(minutes)? as i64;
            match zone.as_bytes().first()? {
                b'+' => minutes,
                b'-' => -minutes,
                _ => return None,
            }
        }
    };
    // Years begin in March here too.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let seconds = (days as i64 - 719_468) * 86_400 + (hour * 3600 + minute * 60 + second) as i64;
    u64::try_from((seconds - offset * 60) * 1000).ok().map(|start| start + millis)
}

/// The second after so many others since 1970, as `2026-11-17T20:56:03`.
fn date_and_time(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that a leap day is the last of its year; eras of 400 years have
    // the same number of days. 719,468 days lie between the first of March of year 0 and 1970.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_was_written_is_read_again() {
        for millis in [0, 951_782_400_000, 1_709_251_199_007, 1_798_761_599_999, 4_107_542_400_120]
        {
            assert_eq!(unix_millis_of(&rfc3339(millis)), Some(millis));
        }
        assert_eq!(unix_millis_of("2000-02-29T00:00:00Z"), Some(951_782_400_000));
        assert_eq!(unix_millis_of("2000-02-29T01:30:00.5+01:30"), Some(951_782_400_500));
        assert_eq!(unix_millis_of("2000-02-28T23:00:00-01:00"), Some(951_782_400_000));
        for bad in [
            "",
            "2000",
            "2000-02-29",
            "2000-02-29 00:00:00Z",
            "2000-13-01T00:00:00Z",
            "+000-01-01T00:00:00Z",
            "1969-12-31T00:00:00Z",
            "2000-02-29T25:00:00Z",
            "2000-02-29T00:00:00",
            "2000-02-29T00:00:00.Z5",
            "é000-02-29T00:00:00Z",
            "2000-02-29T00:00:00*01:00",
        ] {
            assert_eq!(unix_millis_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn seconds_become_the_date_and_time_of_the_calendar() {
        let known = [
            (0, "1970-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_709_251_199, "2024-02-29T23:59:59"),
            (1_709_251_200, "2024-03-01T00:00:00"),
            (1_798_761_599, "2026-12-31T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ];
        for (seconds, text) in known {
            assert_eq!(date_and_time(seconds), text);
            assert_eq!(rfc3339(seconds * 1000 + 7), format!("{text}.007Z"));
        }
    }
}
