//! What clients of Redis write, and how it is kept: keys, values, times.

use std::time::Duration;

use catraca_group::LockName;

use crate::resp::failure::Failure;
use crate::resp::frame::integer;
use crate::resp::script::Unit;

/// The name of a lock that a key is.
pub(crate) fn name(key: &[u8]) -> Result<&str, Failure> {
    let text = std::str::from_utf8(key).map_err(|_| Failure::NoText)?;
    Ok(LockName::new(text)?.as_str())
}

/// A time that a client gives.
pub(crate) fn duration(text: &[u8], unit: Unit) -> Result<Option<Duration>, Failure> {
    let number = integer(text).ok_or(Failure::Integer)?;
    let millis = match unit {
        Unit::Millis => Some(number),
        Unit::Seconds => number.checked_mul(1000),
    };
    let millis = millis.ok_or(Failure::Integer)?;
    Ok(u64::try_from(millis).ok().filter(|&millis| millis > 0).map(Duration::from_millis))
}

/// How Redis tells a time that is left.
pub(crate) fn told(left: Duration, unit: Unit) -> i64 {
    let millis = i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
    match unit {
        Unit::Millis => millis,
        Unit::Seconds => millis.saturating_add(500) / 1000,
    }
}

/// A timed hold of another interface has no value, so here it needs one.
pub(super) fn check_value(value: &[u8]) -> Result<(), Failure> {
    match value.is_empty() {
        true => Err(Failure::NoValue),
        false => Ok(()),
    }
}

/// A value as the note of a durable hold, for people to read and for [`unescaped`].
pub(super) fn escaped(value: &[u8]) -> String {
    let one = |&byte: &u8| match byte {
        b'\\' => "\\\\".to_string(),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    value.iter().map(one).collect()
}

pub(super) fn unescaped(note: &str) -> Vec<u8> {
    let (mut value, mut rest) = (Vec::new(), note.as_bytes());
    loop {
        rest = match rest {
            [] => return value,
            [b'\\', b'x', high, low, after @ ..] => {
                let digit = |hex: u8| char::from(hex).to_digit(16).unwrap_or_default() as u8;
                value.push(digit(*high) << 4 | digit(*low));
                after
            }
            [b'\\', byte, after @ ..] | [byte, after @ ..] => {
                value.push(*byte);
                after
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_and_told_as_redis_does() {
        let read = |text: &str, unit| duration(text.as_bytes(), unit).ok();
        assert_eq!(read("1500", Unit::Millis), Some(Some(Duration::from_millis(1500))));
        assert_eq!(read("2", Unit::Seconds), Some(Some(Duration::from_secs(2))));
        assert_eq!(read("0", Unit::Millis), Some(None));
        assert_eq!(read("-1", Unit::Seconds), Some(None));
        for wrong in ["", "x", "1.5", "+1", " 1", "9223372036854775807"] {
            assert_eq!(read(wrong, Unit::Seconds), None, "{wrong}");
        }
        let millis = Duration::from_millis;
        let told = [1, 499, 500, 1499, 1500].map(|it| told(millis(it), Unit::Seconds));
        assert_eq!(told, [0, 0, 1, 1, 2]);
    }

    #[test]
    fn a_key_that_names_no_lock_is_refused() {
        assert!(name(b"orders/42").is_ok());
        for wrong in [&b""[..], b"a b", b"\xff", &[b'x'; 256]] {
            assert!(name(wrong).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_value_comes_back_from_its_note(value in proptest::collection::vec(any::<u8>(), 0..60)) {
            prop_assert_eq!(unescaped(&escaped(&value)), value);
        }
    }
}
