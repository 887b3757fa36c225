//! S3's messages: ten bytes, `T|ID|digits`.
//!
//! `T` is 1 for REQUEST, 2 for GRANT, 3 for RELEASE. The digits mean nothing; they fill the message
//! up to its length, so an id has at most [`ProcessId::LONGEST`] bytes and then no digit follows.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::str::FromStr;

/// The length of every message. S3, section 2: 'tamanho fixo de 10 bytes'.
pub const LENGTH: usize = 10;

/// A message as it travels.
pub type Frame = [u8; LENGTH];

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 'I want to enter', from a process.
    Request,
    /// 'Enter', from the coordinator.
    Grant,
    /// 'I have left', from a process.
    Release,
}

impl Kind {
    /// The first byte of the message.
    pub const fn digit(self) -> u8 {
        match self {
            Kind::Request => b'1',
            Kind::Grant => b'2',
            Kind::Release => b'3',
        }
    }

    fn of_digit(digit: u8) -> Option<Self> {
        [Kind::Request, Kind::Grant, Kind::Release].into_iter().find(|kind| kind.digit() == digit)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Request => "REQUEST",
            Kind::Grant => "GRANT",
            Kind::Release => "RELEASE",
        })
    }
}

/// The name of a process. Shorter ones come first, so numbers are in the order of numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    length: u8,
    /// Filled up with zeros.
    bytes: [u8; Self::LONGEST],
}

impl ProcessId {
    /// What is left of a message without its kind and the two bars.
    pub const LONGEST: usize = LENGTH - 3;

    fn of_bytes(text: &[u8]) -> Result<Self, IdError> {
        // A space would be lost in the result file, a bar in the message.
        let is_wrong = |byte: &u8| !byte.is_ascii_graphic() || *byte == b'|';
        match text.len() {
            0 => Err(IdError::Empty),
            1..=Self::LONGEST if text.iter().any(is_wrong) => Err(IdError::Character),
            length @ 1..=Self::LONGEST => {
                let mut bytes = [0; Self::LONGEST];
                bytes[..length].copy_from_slice(text);
                Ok(ProcessId { length: length as u8, bytes })
            }
            _ => Err(IdError::TooLong),
        }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl FromStr for ProcessId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::of_bytes(text.as_bytes())
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(str::from_utf8(self.as_bytes()).unwrap_or_default())
    }
}

impl fmt::Debug for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text names no process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing is there.
    #[error("the id is empty: give 1 to 7 characters, such as 76")]
    Empty,
    /// Ten bytes do not hold it.
    #[error("the id has more than 7 characters: a message has room for 1 to 7, such as 76")]
    TooLong,
    /// It would be torn apart where it is read.
    #[error("the id has a character other than ASCII letters, digits and signs without '|'")]
    Character,
}

/// One message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub kind: Kind,
    /// The process that says it, or that it is said to.
    pub id: ProcessId,
    frame: Frame,
}

impl Message {
    /// A message with as many of `digits` as there is room for, the last ones.
    pub fn new(kind: Kind, id: ProcessId, digits: u64) -> Self {
        let mut frame = [b'|'; LENGTH];
        frame[0] = kind.digit();
        let (name, fill) = frame[2..].split_at_mut(id.as_bytes().len());
        name.copy_from_slice(id.as_bytes());
        let mut left = digits;
        // The first byte that follows the name is the bar.
        for byte in fill[1..].iter_mut().rev() {
            *byte = b'0' + (left % 10) as u8;
            left /= 10;
        }
        Message { kind, id, frame }
    }

    /// The same with digits that nobody can foretell, as S3 has them.
    pub fn with_random_digits(kind: Kind, id: ProcessId) -> Self {
        // The standard library's only source of randomness; nothing depends on these digits.
        Message::new(kind, id, RandomState::new().build_hasher().finish())
    }

    /// Reads ten bytes.
    pub fn parse(frame: &Frame) -> Result<Self, Malformed> {
        let kind = Kind::of_digit(frame[0]).ok_or(Malformed::Kind)?;
        if frame[1] != b'|' {
            return Err(Malformed::Bar);
        }
        let rest = &frame[2..];
        let bar = rest.iter().position(|&byte| byte == b'|').ok_or(Malformed::Bar)?;
        let id = ProcessId::of_bytes(&rest[..bar]).map_err(Malformed::Id)?;
        if !rest[bar + 1..].iter().all(u8::is_ascii_digit) {
            return Err(Malformed::Digits);
        }
        Ok(Message { kind, id, frame: *frame })
    }

    /// What travels.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.frame).unwrap_or_default())
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why ten bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The first byte.
    #[error("it does not begin with 1, 2 or 3")]
    Kind,
    /// One of the two bars.
    #[error("it lacks a '|' between kind, id and digits")]
    Bar,
    /// What is between the bars.
    #[error("{0}")]
    Id(IdError),
    /// What follows the bars.
    #[error("it does not end in digits")]
    Digits,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> ProcessId {
        text.parse().unwrap()
    }

    /// '1|76|89820', '2|76|45299', '3|76|47286'. Reference: S3, section 3.
    #[test]
    fn paper_messages_are_read_and_written_as_in_the_log() {
        for (text, kind, digits) in [
            (b"1|76|89820", Kind::Request, 89_820),
            (b"2|76|45299", Kind::Grant, 45_299),
            (b"3|76|47286", Kind::Release, 47_286),
            (b"1|76|04941", Kind::Request, 4_941),
        ] {
            let message = Message::new(kind, id("76"), digits);
            assert_eq!(message.frame(), text);
            assert_eq!(Message::parse(text), Ok(message));
        }
    }

    /// 'Exemplo: 1 | 5 | 1234567' has eleven bytes without its spaces; ten hold one digit less.
    /// Reference: S3, section 2.
    #[test]
    fn paper_the_example_of_section_2_is_one_byte_too_long() {
        assert_eq!("1|5|1234567".len(), LENGTH + 1);
        assert_eq!(Message::new(Kind::Request, id("5"), 1_234_567).frame(), b"1|5|234567");
    }

    #[test]
    fn the_longest_id_leaves_no_room_for_digits() {
        let message = Message::new(Kind::Grant, id("1234567"), 89_820);
        assert_eq!(message.frame(), b"2|1234567|");
        assert_eq!(Message::parse(b"2|1234567|"), Ok(message));
    }

    #[test]
    fn malformed_messages_are_told_apart() {
        for (frame, why) in [
            (b"4|76|89820", Malformed::Kind),
            (b"\n1|76|8982", Malformed::Kind),
            (b"1 76|89820", Malformed::Bar),
            (b"1|76 89820", Malformed::Bar),
            (b"1|12345678", Malformed::Bar),
            (b"1||1234567", Malformed::Id(IdError::Empty)),
            (b"1|7 |12345", Malformed::Id(IdError::Character)),
            (b"1|\xc3\xa9|12345", Malformed::Id(IdError::Character)),
            (b"1|76|8982x", Malformed::Digits),
            (b"1|76|898|0", Malformed::Digits),
            (b"1|76|8982\n", Malformed::Digits),
        ] {
            assert_eq!(Message::parse(frame), Err(why), "{}", frame.escape_ascii());
        }
    }

    #[test]
    fn ids_that_do_not_fit_are_refused() {
        assert_eq!("".parse::<ProcessId>(), Err(IdError::Empty));
        assert_eq!("12345678".parse::<ProcessId>(), Err(IdError::TooLong));
        for text in ["a|b", " 7", "é", "\n"] {
            assert_eq!(text.parse::<ProcessId>(), Err(IdError::Character), "{text:?}");
        }
    }

    #[test]
    fn ids_that_are_numbers_are_in_the_order_of_numbers() {
        let mut ids = ["100", "9", "10", "2"].map(id);
        ids.sort();
        assert_eq!(ids.map(|id| id.to_string()), ["2", "9", "10", "100"]);
    }

    fn any_kind() -> impl Strategy<Value = Kind> {
        prop::sample::select(vec![Kind::Request, Kind::Grant, Kind::Release])
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(kind in any_kind(), name in "[!-{}~]{1,7}", digits: u64) {
            let message = Message::new(kind, id(&name), digits);
            prop_assert_eq!(Message::parse(message.frame()), Ok(message));
            prop_assert_eq!(message.id.to_string(), name);
        }

        #[test]
        fn nearly_right_bytes_are_read_as_they_are_or_refused(text in "[1-4]\\|[0-9|x]{8}") {
            let frame: Frame = text.as_bytes().try_into().unwrap();
            let fields: Vec<&str> = text.splitn(3, '|').collect();
            let is_right = !text.starts_with('4')
                && fields.len() == 3
                && !fields[1].is_empty()
                && fields[2].bytes().all(|byte| byte.is_ascii_digit());
            let read = Message::parse(&frame).ok().map(|message| message.to_string());
            prop_assert_eq!(read, is_right.then_some(text));
        }
    }
}
