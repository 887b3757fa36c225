//! What can be said behind `SET key value`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::resp::failure::Failure;
use crate::resp::frame::{Command, integer};
use crate::resp::script::Unit;

use super::duration;

/// The options of a `SET`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SetOptions {
    /// Whether it is for a key that is not there; otherwise for one that is.
    pub(crate) is_new: bool,
    /// How long it lives; nothing if it does not expire.
    pub(crate) ttl: Option<Duration>,
}

impl SetOptions {
    /// Reads the words from `place` on.
    pub(crate) fn read(command: Command<'_>, place: usize) -> Result<Self, Failure> {
        let (mut is_new, mut ttl) = (None, None);
        let mut words = command.from(place);
        while let Some(word) = words.next() {
            let word = word.to_ascii_uppercase();
            match word.as_slice() {
                b"NX" | b"XX" if is_new.is_none() => is_new = Some(word == b"NX"),
                b"EX" | b"PX" | b"EXAT" | b"PXAT" if ttl.is_none() => {
                    let unit = if word.starts_with(b"PX") { Unit::Millis } else { Unit::Seconds };
                    let given = words.next().ok_or(Failure::Syntax)?;
                    let given = duration(given, unit)?.ok_or(Failure::Expiry("set"))?;
                    let is_date = word.ends_with(b"AT");
                    ttl = Some(if is_date { from_now(given)? } else { given });
                }
                b"GET" | b"KEEPTTL" => return Err(unserved(&word)),
                b"IFEQ" | b"IFNE" | b"IFDEQ" | b"IFDNE" => return Err(unserved(&word)),
                _ => return Err(Failure::Syntax),
            }
        }
        match is_new {
            Some(is_new) => Ok(SetOptions { is_new, ttl }),
            None => Err(Failure::Said(
                "ERR SET is served with NX, or with XX and a time to live: a key is a lock, and nobody takes one that is held".into(),
            )),
        }
    }
}

fn unserved(word: &[u8]) -> Failure {
    Failure::Said(format!("ERR SET with {} is not served", String::from_utf8_lossy(word)))
}

/// How long it is until this time since 1970.
fn from_now(date: Duration) -> Result<Duration, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    date.checked_sub(now).filter(|left| !left.is_zero()).ok_or(Failure::Expiry("set"))
}

/// Whether the options of an `EXPIRE` change nothing: every key that can expire has a time to live.
pub(crate) fn check_expire(options: &[u8]) -> Result<(), Failure> {
    match options.to_ascii_uppercase().as_slice() {
        b"" | b"XX" => Ok(()),
        b"NX" | b"GT" | b"LT" => {
            Err(Failure::Said("ERR EXPIRE with NX, GT or LT is not served; XX is".into()))
        }
        _ => Err(Failure::Said(format!(
            "ERR Unsupported option {}",
            String::from_utf8_lossy(options.get(..64).unwrap_or(options))
        ))),
    }
}

/// A whole number that is not negative.
pub(crate) fn count(text: &[u8]) -> Result<usize, Failure> {
    integer(text).and_then(|number| usize::try_from(number).ok()).ok_or(Failure::Integer)
}

#[cfg(test)]
mod tests {
    use crate::resp::frame::Decoder;

    use super::*;

    fn read(line: &str) -> Result<SetOptions, String> {
        let line = format!("{line}\r\n");
        let mut decoder = Decoder::default();
        decoder.check(line.as_bytes()).unwrap().unwrap();
        let options = SetOptions::read(decoder.command(line.as_bytes()), 3);
        options.map_err(|failure| failure.to_string())
    }

    #[test]
    fn options_come_in_any_order_and_case() {
        let ttl = Some(Duration::from_secs(2));
        for line in ["SET k v NX PX 2000", "SET k v PX 2000 NX", "set k v ex 2 nx"] {
            assert_eq!(read(line), Ok(SetOptions { is_new: true, ttl }), "{line}");
        }
        assert_eq!(read("SET k v XX EX 2"), Ok(SetOptions { is_new: false, ttl }));
        assert_eq!(read("SET k v NX"), Ok(SetOptions { is_new: true, ttl: None }));
        let later = read("SET k v NX EXAT 99999999999").unwrap().ttl.unwrap();
        assert!(later > Duration::from_secs(97_000_000_000));
    }

    #[test]
    fn what_cannot_be_or_is_not_served_is_an_error() {
        for (line, expected) in [
            ("SET k v", "SET is served with NX"),
            ("SET k v PX 10", "SET is served with NX"),
            ("SET k v NX XX", "ERR syntax error"),
            ("SET k v NX PX", "ERR syntax error"),
            ("SET k v NX PX 1 EX 1", "ERR syntax error"),
            ("SET k v NX PX x", "ERR value is not an integer"),
            ("SET k v NX PX 0", "ERR invalid expire time in 'set' command"),
            ("SET k v NX EXAT 1", "ERR invalid expire time in 'set' command"),
            ("SET k v NX GET", "SET with GET is not served"),
            ("SET k v IFEQ x", "SET with IFEQ is not served"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
