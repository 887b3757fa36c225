//! What two members say to each other over a link.

use catraca_group::PeerMessage;
use serde::{Deserialize, Serialize};

/// One frame between members. Frames are numbered from 1 in each direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Frame<'a> {
    /// A message.
    Message {
        number: u64,
        #[serde(borrow)]
        message: PeerMessage<'a>,
    },
    /// All frames up to `received` have come.
    Received { number: u64, received: u64 },
}

impl Frame<'_> {
    pub(crate) fn number(&self) -> u64 {
        match *self {
            Frame::Message { number, .. } | Frame::Received { number, .. } => number,
        }
    }
}

#[cfg(test)]
mod tests {
    use catraca_client::frame;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Bodies of every length reach the decoder: the length before them is right.
        #[test]
        fn garbage_is_an_error_or_a_frame_and_never_a_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _: Result<Frame<'_>, _> = frame::read(&body);
        }
    }
}
