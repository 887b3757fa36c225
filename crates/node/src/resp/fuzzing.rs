//! Commands of strangers.

use super::frame::Decoder;
use super::{command, script};

/// Commands, one after the other, as they come and byte by byte.
pub(crate) fn commands(bytes: &[u8]) {
    let (mut rest, mut whole, mut slow) = (bytes, Decoder::default(), Decoder::default());
    while let Ok(Some(length)) = whole.check(rest) {
        // However the bytes come, a command is the same, and is not seen before its end.
        let early = (0..length).find_map(|end| slow.check(&rest[..end]).transpose());
        assert!(early.is_none(), "a command ends too early, or only if it comes at once");
        assert_eq!(slow.check(rest).ok().flatten(), Some(length));
        let (one, other) = (whole.command(rest), slow.command(rest));
        assert!(one.from(0).eq(other.from(0)));
        for word in one.from(0) {
            // What is not known is refused, by name or not.
            let _ = (command::find(word), script::recognise(word).is_ok());
        }
        rest = &rest[length..];
        whole.reset();
        slow.reset();
    }
}
