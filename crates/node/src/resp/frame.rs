//! What a client of the Redis protocol sends: commands, each an array of texts, or a line.
//!
//! First it is checked whether a whole command has come, which goes on where it stopped; then its
//! arguments are read, without copying them. RESP2 and RESP3 do not differ in this direction.

use std::ops::Range;

use smallvec::SmallVec;

/// The most arguments of a command, its name among them.
pub(crate) const MOST_ARGUMENTS: usize = 1024;
/// The longest argument, in bytes.
pub(crate) const LONGEST_ARGUMENT: usize = 64 << 10;
/// The longest command, in bytes.
pub(crate) const LONGEST_COMMAND: usize = 256 << 10;
/// The longest command on a line of its own, in bytes.
pub(crate) const LONGEST_INLINE: usize = 4 << 10;
/// The longest line that announces a length, in bytes.
const LONGEST_LENGTH: usize = 32;

/// Why what has come is no command. The texts begin as those of Redis do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// An array of too many, or with a length that is none.
    #[error("Protocol error: invalid multibulk length; at most {MOST_ARGUMENTS} arguments")]
    Count,
    /// An argument that is too long, or with a length that is none.
    #[error(
        "Protocol error: invalid bulk length; an argument has at most {LONGEST_ARGUMENT} bytes"
    )]
    Length,
    /// Something else than a text in an array.
    #[error("Protocol error: expected '$', got {0:?}")]
    Kind(char),
    /// A text that goes on after its end.
    #[error("Protocol error: a text of {0} bytes does not end after them")]
    End(usize),
    /// A line that is too long.
    #[error("Protocol error: too big inline request; it has at most {LONGEST_INLINE} bytes")]
    Inline,
    /// A quotation without its end.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
    /// A command that is too long.
    #[error("Protocol error: a command has at most {LONGEST_COMMAND} bytes")]
    Long,
}

/// Where the arguments of a command are.
type Places = SmallVec<[Range<u32>; 8]>;

/// Reads one command after the other.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// Up to where the command has been looked at.
    at: usize,
    /// How many arguments an array has, once that is known.
    expected: Option<usize>,
    places: Places,
    /// The arguments of a line, without quotation marks.
    line: Vec<u8>,
    is_inline: bool,
}

impl Decoder {
    /// Looks on at `bytes`, which begin with a command. Returns how long it is once all of it is there.
    pub(crate) fn check(&mut self, bytes: &[u8]) -> Result<Option<usize>, FrameError> {
        let checked = match bytes.first() {
            None => return Ok(None),
            Some(b'*') => self.check_array(bytes)?,
            Some(_) => self.check_line(bytes)?,
        };
        match checked {
            None if bytes.len() > LONGEST_COMMAND => Err(FrameError::Long),
            None => Ok(None),
            Some(length) if length > LONGEST_COMMAND => Err(FrameError::Long),
            Some(length) => Ok(Some(length)),
        }
    }

    /// The command that [`check`](Self::check) has found to be whole at the beginning of `bytes`.
    pub(crate) fn command<'a>(&'a self, bytes: &'a [u8]) -> Command<'a> {
        let bytes = if self.is_inline { &self.line } else { bytes };
        Command { bytes, places: &self.places }
    }

    /// The next command begins.
    pub(crate) fn reset(&mut self) {
        self.at = 0;
        self.expected = None;
        self.places.clear();
        self.line.clear();
        self.is_inline = false;
    }

    fn check_array(&mut self, bytes: &[u8]) -> Result<Option<usize>, FrameError> {
        let expected = match self.expected {
            Some(expected) => expected,
            None => {
                let Some((count, after)) = length(bytes, 1, FrameError::Count)? else {
                    return Ok(None);
                };
                // Nothing at all is no command and no mistake.
                let count = usize::try_from(count).unwrap_or(0);
                if count > MOST_ARGUMENTS {
                    return Err(FrameError::Count);
                }
                (self.at, self.expected) = (after, Some(count));
                count
            }
        };
        while self.places.len() < expected {
            match bytes.get(self.at) {
                None => return Ok(None),
                Some(b'$') => {}
                Some(&other) => return Err(FrameError::Kind(char::from(other))),
            }
            let Some((count, begin)) = length(bytes, self.at + 1, FrameError::Length)? else {
                return Ok(None);
            };
            let count = usize::try_from(count).map_err(|_| FrameError::Length)?;
            if count > LONGEST_ARGUMENT {
                return Err(FrameError::Length);
            }
            let end = begin + count;
            match bytes.get(end..end + 2) {
                None => return Ok(None),
                Some(b"\r\n") => {}
                Some(_) => return Err(FrameError::End(count)),
            }
            self.places.push(begin as u32..end as u32);
            self.at = end + 2;
            if self.at > LONGEST_COMMAND {
                return Err(FrameError::Long);
            }
        }
        Ok(Some(self.at))
    }

    fn check_line(&mut self, bytes: &[u8]) -> Result<Option<usize>, FrameError> {
        let unseen = bytes.get(self.at..).unwrap_or_default();
        let Some(found) = unseen.iter().position(|&byte| byte == b'\n') else {
            self.at = bytes.len();
            return if bytes.len() > LONGEST_INLINE { Err(FrameError::Inline) } else { Ok(None) };
        };
        let end = self.at + found;
        if end > LONGEST_INLINE {
            return Err(FrameError::Inline);
        }
        self.is_inline = true;
        let line = &bytes[..end];
        self.split(line.strip_suffix(b"\r").unwrap_or(line))?;
        Ok(Some(end + 1))
    }

    /// Splits a line at its spaces. Quotation marks keep words together.
    fn split(&mut self, line: &[u8]) -> Result<(), FrameError> {
        let mut rest = line.trim_ascii_start();
        while !rest.is_empty() {
            if self.places.len() == MOST_ARGUMENTS {
                return Err(FrameError::Count);
            }
            let begin = self.line.len() as u32;
            rest = match rest[0] {
                quote @ (b'"' | b'\'') => self.take_quoted(&rest[1..], quote)?,
                _ => {
                    let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                    if rest[..end].contains(&b'"') {
                        return Err(FrameError::Quotes);
                    }
                    self.line.extend_from_slice(&rest[..end]);
                    &rest[end..]
                }
            };
            self.places.push(begin..self.line.len() as u32);
            rest = rest.trim_ascii_start();
        }
        Ok(())
    }

    /// Takes a quotation up to its end. Returns what comes after it.
    fn take_quoted<'a>(&mut self, text: &'a [u8], quote: u8) -> Result<&'a [u8], FrameError> {
        let mut rest = text;
        loop {
            let (byte, after) = match rest {
                [end, after @ ..] if *end == quote => {
                    let is_end = after.first().is_none_or(u8::is_ascii_whitespace);
                    return if is_end { Ok(after) } else { Err(FrameError::Quotes) };
                }
                [b'\\', b'\'', after @ ..] if quote == b'\'' => (b'\'', after),
                [b'\\', b'x', high, low, after @ ..]
                    if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
                {
                    (digit(*high) << 4 | digit(*low), after)
                }
                [b'\\', escaped, after @ ..] if quote == b'"' => (unescaped(*escaped), after),
                [byte, after @ ..] => (*byte, after),
                [] => return Err(FrameError::Quotes),
            };
            self.line.push(byte);
            rest = after;
        }
    }
}

/// The number that a line from `at` on announces, and where the next one begins.
fn length(bytes: &[u8], at: usize, wrong: FrameError) -> Result<Option<(i64, usize)>, FrameError> {
    let line = bytes.get(at..).unwrap_or_default();
    let Some(end) = line.iter().take(LONGEST_LENGTH).position(|&byte| byte == b'\r') else {
        return if line.len() < LONGEST_LENGTH { Ok(None) } else { Err(wrong) };
    };
    match line.get(end + 1) {
        None => return Ok(None),
        Some(b'\n') => {}
        Some(_) => return Err(wrong),
    }
    match integer(&line[..end]) {
        Some(number) => Ok(Some((number, at + end + 2))),
        None => Err(wrong),
    }
}

/// A whole number in decimal digits.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn digit(hex: u8) -> u8 {
    char::from(hex).to_digit(16).map_or(0, |digit| digit as u8)
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

/// A command: its name and its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command<'a> {
    bytes: &'a [u8],
    places: &'a [Range<u32>],
}

impl<'a> Command<'a> {
    /// How many words it has, its name among them.
    pub(crate) fn len(self) -> usize {
        self.places.len()
    }

    /// The word at this place; nothing behind the last one.
    pub(crate) fn word(self, place: usize) -> &'a [u8] {
        let range = self.places.get(place).cloned().unwrap_or_default();
        self.bytes.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// The words from this place on.
    pub(crate) fn from(self, place: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        let first = place.min(self.len());
        (first..self.len()).map(move |place| self.word(place))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every command of `bytes`, which come in pieces of this size.
    fn read(bytes: &[u8], piece: usize) -> Result<Vec<Vec<Vec<u8>>>, FrameError> {
        let (mut decoder, mut all, mut begin) = (Decoder::default(), Vec::new(), 0);
        for end in (0..bytes.len()).step_by(piece).map(|end| (end + piece).min(bytes.len())) {
            while let Some(length) = decoder.check(&bytes[begin..end])? {
                let command = decoder.command(&bytes[begin..end]);
                all.push(command.from(0).map(<[u8]>::to_vec).collect());
                decoder.reset();
                begin += length;
            }
        }
        Ok(all)
    }

    fn words(bytes: &[u8]) -> Vec<Vec<String>> {
        let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
        let all = read(bytes, 1).unwrap();
        assert_eq!(read(bytes, bytes.len()).unwrap(), all);
        all.iter().map(|command| command.iter().map(text).collect()).collect()
    }

    fn error(bytes: &[u8]) -> FrameError {
        let error = read(bytes, 1).unwrap_err();
        assert_eq!(read(bytes, bytes.len()).unwrap_err(), error);
        error
    }

    #[test]
    fn arrays_and_lines_are_commands_however_they_come() {
        let bytes = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n*1\r\n$0\r\n\r\n  SET  k v NX \n";
        let expected = [vec!["GET", "k"], vec!["PING"], vec![""], vec!["SET", "k", "v", "NX"]];
        assert_eq!(words(bytes), expected);
        assert_eq!(words(b"\r\n*0\r\n*-1\r\n"), [Vec::<String>::new(), vec![], vec![]]);
        assert_eq!(words(b"*1\r\n$4\r\nPI"), Vec::<Vec<String>>::new());
    }

    #[test]
    fn quotation_marks_keep_words_together() {
        let line = b"SET \"a b\\x41\\n\" 'it\\'s' \"\"\r\n";
        assert_eq!(words(line), [["SET", "a bA\n", "it's", ""]]);
        for bad in [&b"GET \"a\r\n"[..], b"GET \"a\"b\r\n", b"GET a\"b\r\n", b"GET 'a\r\n"] {
            assert_eq!(error(bad), FrameError::Quotes);
        }
    }

    #[test]
    fn what_is_too_long_or_no_length_is_an_error() {
        assert_eq!(error(b"*1025\r\n"), FrameError::Count);
        assert_eq!(error(b"*x\r\n"), FrameError::Count);
        assert_eq!(error(b"*1\rx"), FrameError::Count);
        assert_eq!(error(&[&b"*"[..], &[b'1'; 40]].concat()), FrameError::Count);
        assert_eq!(error(b"*1\r\n$65537\r\n"), FrameError::Length);
        assert_eq!(error(b"*1\r\n$-1\r\n"), FrameError::Length);
        assert_eq!(error(b"*1\r\n:1\r\n"), FrameError::Kind(':'));
        assert_eq!(error(b"*1\r\n*1\r\n"), FrameError::Kind('*'));
        assert_eq!(error(b"*1\r\n$1\r\nab\r\n"), FrameError::End(1));
        assert_eq!(error(&[b'x'; LONGEST_INLINE + 2]), FrameError::Inline);
        let mut long = b"*5\r\n".to_vec();
        for _ in 0..5 {
            long.extend(format!("${LONGEST_ARGUMENT}\r\n").bytes());
            long.extend([b'x'; LONGEST_ARGUMENT]);
            long.extend(b"\r\n");
        }
        assert_eq!(read(&long, 4096).unwrap_err(), FrameError::Long);
    }

    proptest! {
        #[test]
        fn any_bytes_are_commands_or_an_error_and_pieces_do_not_matter(
            bytes in proptest::collection::vec(
                prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'1'), any::<u8>()],
                0..200,
            ),
            piece in 1_usize..50,
        ) {
            prop_assert_eq!(read(&bytes, piece), read(&bytes, bytes.len().max(1)));
        }

        #[test]
        fn what_is_written_is_read(
            all in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 1..9),
                0..5,
            ),
            piece in 1_usize..50,
        ) {
            let mut bytes = Vec::new();
            for command in &all {
                bytes.extend(format!("*{}\r\n", command.len()).bytes());
                for word in command {
                    bytes.extend(format!("${}\r\n", word.len()).bytes());
                    bytes.extend(word);
                    bytes.extend(b"\r\n");
                }
            }
            prop_assert_eq!(read(&bytes, piece), Ok(all));
        }
    }
}
