//! What two members say to each other over a link, as bytes.
//!
//! A frame is its length, four bytes, little end first, and a body in postcard's format. The reader
//! looks at the length before it waits for the rest, so a frame that is too long is refused before
//! it costs memory.

use catraca_core::NodeId;
use serde::{Deserialize, Serialize};

use crate::shard::{Key, Letter};

/// The longest body of a frame, in bytes.
pub(crate) const LONGEST_FRAME: usize = 1 << 20;
/// How many bytes stand before the body.
pub(crate) const PREFIX: usize = 4;

/// One frame between members. Frames are numbered from 1 in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Frame<'a> {
    /// A message from one seat to another.
    Letter { number: u64, name: &'a str, permits: u32, from: NodeId, to: NodeId, body: &'a [u8] },
    /// A message from one member's detector to the other's.
    Signal { number: u64, body: &'a [u8] },
    /// All frames up to `received` have come.
    Received { number: u64, received: u64 },
}

impl<'a> Frame<'a> {
    pub(crate) fn letter(number: u64, letter: Letter<'a>) -> Self {
        let Letter { key: Key { name, permits }, from, to, body } = letter;
        Frame::Letter { number, name, permits, from, to, body }
    }

    pub(crate) fn number(&self) -> u64 {
        match *self {
            Frame::Letter { number, .. }
            | Frame::Signal { number, .. }
            | Frame::Received { number, .. } => number,
        }
    }
}

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame of {0} bytes was announced; {LONGEST_FRAME} are the most")]
    Long(usize),
    #[error("a frame came that cannot be read")]
    Unreadable,
}

/// Appends `value` as one frame.
pub(crate) fn write<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), FrameError> {
    let start = bytes.len();
    let mut longer = std::mem::take(bytes);
    longer.extend_from_slice(&[0; PREFIX]);
    // Writing to a vector cannot fail, and our own types have no lengths that are not known.
    *bytes = postcard::to_extend(value, longer).map_err(|_| FrameError::Unreadable)?;
    let length = bytes.len() - start - PREFIX;
    if length > LONGEST_FRAME {
        bytes.truncate(start);
        return Err(FrameError::Long(length));
    }
    bytes[start..start + PREFIX].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(())
}

/// A body, and the bytes after it.
type Split<'a> = (&'a [u8], &'a [u8]);

/// The body of the first frame in `bytes` and what comes after it, or nothing if it has not all come.
pub(crate) fn split(bytes: &[u8]) -> Result<Option<Split<'_>>, FrameError> {
    let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX>() else { return Ok(None) };
    let length = u32::from_le_bytes(*prefix) as usize;
    if length > LONGEST_FRAME {
        return Err(FrameError::Long(length));
    }
    Ok(rest.split_at_checked(length))
}

/// What a body says.
pub(crate) fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, FrameError> {
    postcard::from_bytes(body).map_err(|_| FrameError::Unreadable)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_gigabytes_are_refused_from_their_length_alone() {
        assert_eq!(split(&[0, 0, 0, 128]), Err(FrameError::Long(1 << 31)));
        let long = vec![0u8; LONGEST_FRAME + 1];
        let mut bytes = vec![1, 2, 3];
        assert!(matches!(write(&long, &mut bytes), Err(FrameError::Long(_))));
        assert_eq!(bytes, [1, 2, 3], "nothing half-written is left");
    }

    proptest! {
        #[test]
        fn frames_read_back_from_any_split(
            name in "[a-z/]{1,20}",
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..5),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = Vec::new();
            for (number, body) in (1..).zip(&bodies) {
                let (from, to) = (NodeId(0), NodeId(1));
                let frame = Frame::Letter { number, name: &name, permits: 1, from, to, body };
                write(&frame, &mut bytes).unwrap();
            }
            let cut = cut.index(bytes.len());
            let mut read_back = Vec::new();
            let mut pending = bytes[..cut].to_vec();
            for more in [&[][..], &bytes[cut..]] {
                pending.extend_from_slice(more);
                let mut rest = &pending[..];
                while let Some((body, after)) = split(rest).unwrap() {
                    let Frame::Letter { body, .. } = read(body).unwrap() else { panic!() };
                    read_back.push(body.to_vec());
                    rest = after;
                }
                pending = rest.to_vec();
            }
            prop_assert_eq!(read_back, bodies);
            prop_assert!(pending.is_empty());
        }

        #[test]
        fn garbage_is_an_error_or_a_frame_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(Some((body, _))) = split(&bytes) {
                let _: Result<Frame<'_>, _> = read(body);
            }
        }
    }
}
