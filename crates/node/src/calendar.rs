//! Times as people and other programs read them.

/// A time in milliseconds since 1970, as `2026-11-17T20:56:03.120Z`.
pub fn rfc3339(unix_millis: u64) -> String {
    format!("{}.{:03}Z", date_and_time(unix_millis / 1000), unix_millis % 1000)
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
