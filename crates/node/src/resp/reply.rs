//! What a client of the Redis protocol is told, in version 2 or 3 of it.

/// Answers that have yet to be written, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    bytes: Vec<u8>,
    /// Whether the client has asked for version 3.
    pub(crate) is_resp3: bool,
}

impl Replies {
    /// What is to be written.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// It has been written.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A word that is known to be plain.
    pub(crate) fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// `+OK`.
    pub(crate) fn ok(&mut self) {
        self.simple("OK");
    }

    /// An error. Its first word is its code.
    pub(crate) fn error(&mut self, text: &str) {
        self.line(b'-', text);
    }

    /// A whole number.
    pub(crate) fn integer(&mut self, number: i64) {
        self.bytes.push(b':');
        self.number(number);
    }

    /// Bytes of any kind.
    pub(crate) fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.head(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Nothing.
    pub(crate) fn nil(&mut self) {
        self.bytes.extend_from_slice(if self.is_resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// So many answers follow that belong together.
    pub(crate) fn array(&mut self, count: usize) {
        self.head(b'*', count);
    }

    /// So many pairs of answers follow.
    pub(crate) fn map(&mut self, count: usize) {
        match self.is_resp3 {
            true => self.head(b'%', count),
            false => self.head(b'*', 2 * count),
        }
    }

    /// So many parts follow of something that nobody has just asked for.
    pub(crate) fn push(&mut self, count: usize) {
        self.head(if self.is_resp3 { b'>' } else { b'*' }, count);
    }

    fn head(&mut self, kind: u8, count: usize) {
        self.bytes.push(kind);
        // No answer has so many parts, or is so long, that this would not fit.
        self.number(i64::try_from(count).unwrap_or(i64::MAX));
    }

    fn number(&mut self, number: i64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number.unsigned_abs();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            self.bytes.push(b'-');
        }
        self.bytes.extend_from_slice(&digits[at..]);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A line of its own: what would end it is left out.
    fn line(&mut self, kind: u8, text: &str) {
        self.bytes.push(kind);
        let plain = |byte: u8| if byte.is_ascii_control() { b' ' } else { byte };
        self.bytes.extend(text.bytes().map(plain));
        self.bytes.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(is_resp3: bool, write: impl FnOnce(&mut Replies)) -> String {
        let mut replies = Replies { is_resp3, ..Replies::default() };
        write(&mut replies);
        String::from_utf8(replies.bytes().to_vec()).unwrap()
    }

    #[test]
    fn both_versions_are_written_as_they_are_specified() {
        let all = |replies: &mut Replies| {
            replies.ok();
            replies.integer(-12);
            replies.integer(i64::MIN);
            replies.bulk("a\r\n");
            replies.nil();
            replies.map(1);
            replies.push(0);
            replies.array(2);
        };
        let two =
            "+OK\r\n:-12\r\n:-9223372036854775808\r\n$3\r\na\r\n\r\n$-1\r\n*2\r\n*0\r\n*2\r\n";
        assert_eq!(written(false, all), two);
        let three =
            "+OK\r\n:-12\r\n:-9223372036854775808\r\n$3\r\na\r\n\r\n_\r\n%1\r\n>0\r\n*2\r\n";
        assert_eq!(written(true, all), three);
    }

    #[test]
    fn an_error_is_one_line_whatever_is_in_it() {
        assert_eq!(written(false, |replies| replies.error("ERR a\r\n+OK")), "-ERR a  +OK\r\n");
    }
}
