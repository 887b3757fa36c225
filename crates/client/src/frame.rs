//! A message as bytes on a connection.
//!
//! A frame is its length, four bytes, little end first, and a body in postcard's format. The reader
//! looks at the length before it waits for the rest, so a frame that is too long is refused before
//! it costs memory.

use serde::{Deserialize, Serialize};

/// The longest body of a frame, in bytes.
pub const LONGEST_FRAME: usize = 1 << 20;
/// The longest body of a frame from a client: as many names as a request may have, each as long as a
/// name may be, and some more.
pub const LONGEST_CLIENT_FRAME: usize = 96 << 10;
/// How many bytes stand before the body.
pub const PREFIX: usize = 4;

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Longer than a frame can be.
    #[error("a frame of {0} bytes is too long")]
    Long(usize),
    /// Not what was expected.
    #[error("a frame came that cannot be read")]
    Unreadable,
}

/// Appends `value` as one frame.
pub fn write<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), FrameError> {
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

/// The body of a frame that says `value`.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, FrameError> {
    postcard::to_stdvec(value).map_err(|_| FrameError::Unreadable)
}

/// A body, and the bytes after it.
type Split<'a> = (&'a [u8], &'a [u8]);

/// The body of the first frame in `bytes` and what comes after it, or nothing if it has not all come.
/// A frame with a body longer than `longest` is refused.
pub fn split(bytes: &[u8], longest: usize) -> Result<Option<Split<'_>>, FrameError> {
    let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX>() else { return Ok(None) };
    let length = u32::from_le_bytes(*prefix) as usize;
    if length > longest {
        return Err(FrameError::Long(length));
    }
    Ok(rest.split_at_checked(length))
}

/// What a body says.
pub fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, FrameError> {
    postcard::from_bytes(body).map_err(|_| FrameError::Unreadable)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::{ClientMessage, ServerMessage};

    #[test]
    fn two_gigabytes_are_refused_from_their_length_alone() {
        assert_eq!(split(&[0, 0, 0, 128], LONGEST_FRAME), Err(FrameError::Long(1 << 31)));
        let long = vec![0u8; LONGEST_FRAME + 1];
        let mut bytes = vec![1, 2, 3];
        assert!(matches!(write(&long, &mut bytes), Err(FrameError::Long(_))));
        assert_eq!(bytes, [1, 2, 3], "nothing half-written is left");
    }

    proptest! {
        #[test]
        fn frames_read_back_from_any_split(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..5),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = Vec::new();
            for body in &bodies {
                write(body, &mut bytes).unwrap();
            }
            let cut = cut.index(bytes.len());
            let mut read_back: Vec<Vec<u8>> = Vec::new();
            let mut pending = bytes[..cut].to_vec();
            for more in [&[][..], &bytes[cut..]] {
                pending.extend_from_slice(more);
                let mut rest = &pending[..];
                while let Some((body, after)) = split(rest, LONGEST_FRAME).unwrap() {
                    read_back.push(read(body).unwrap());
                    rest = after;
                }
                pending = rest.to_vec();
            }
            prop_assert_eq!(read_back, bodies);
            prop_assert!(pending.is_empty());
        }

        /// Bodies of every length reach the decoder: the length before them is right.
        #[test]
        fn garbage_is_an_error_or_a_message_and_never_a_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _: Result<ClientMessage, _> = read(&body);
            let _: Result<ServerMessage, _> = read(&body);
        }
    }
}
