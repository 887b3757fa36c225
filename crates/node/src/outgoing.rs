//! One direction of a link: frames are numbered, and kept until the other side has them.

use std::collections::VecDeque;

use catraca_client::frame::{self, FrameError};
use catraca_group::PeerMessage;

use crate::frame::Frame;

/// Bytes that nobody needs any more are cut off when there are at least so many.
const CUT: usize = 64 << 10;

/// What is on its way to one member. Plain bookkeeping: the caller reads and writes sockets.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// The frames from number `first` on, one after the other, and before them what is done with.
    bytes: Vec<u8>,
    /// Where frame `first` begins.
    start: usize,
    /// Up to where the present connection has taken the bytes.
    written: usize,
    /// The lengths of the frames from `first` on.
    lengths: VecDeque<u32>,
    /// How many frames the other side has acknowledged.
    acknowledged: u64,
}

/// The other side speaks of frames that were never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("frame {claimed} is acknowledged, but only {sent} were sent")]
pub(crate) struct NeverSent {
    claimed: u64,
    sent: u64,
}

impl Outgoing {
    /// How many frames there have been.
    pub(crate) fn sent(&self) -> u64 {
        self.acknowledged + self.lengths.len() as u64
    }

    /// How many bytes the other side is not known to have.
    pub(crate) fn pending(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Puts a message behind all others.
    pub(crate) fn push_message(&mut self, message: PeerMessage<'_>) -> Result<(), FrameError> {
        self.push(Frame::Message { number: self.sent() + 1, message })
    }

    /// Tells the other side what has come from it.
    pub(crate) fn push_received(&mut self, received: u64) {
        let pushed = self.push(Frame::Received { number: self.sent() + 1, received });
        debug_assert!(pushed.is_ok(), "a frame of two numbers is short");
    }

    fn push(&mut self, frame: Frame<'_>) -> Result<(), FrameError> {
        let before = self.bytes.len();
        frame::write(&frame, &mut self.bytes)?;
        self.lengths.push_back((self.bytes.len() - before) as u32);
        Ok(())
    }

    /// What the present connection has not taken yet.
    pub(crate) fn unwritten(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// The present connection has taken so many more bytes.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
    }

    /// The other side has all frames up to `received`.
    pub(crate) fn acknowledge(&mut self, received: u64) -> Result<(), NeverSent> {
        if received > self.sent() {
            return Err(NeverSent { claimed: received, sent: self.sent() });
        }
        while self.acknowledged < received {
            let length = self.lengths.pop_front().unwrap_or(0);
            self.start += length as usize;
            self.acknowledged += 1;
        }
        // A frame can be known to have come before its bytes are known to be written: it came over
        // an earlier connection.
        self.written = self.written.max(self.start);
        if self.start >= CUT && self.start * 2 >= self.bytes.len() {
            self.bytes.drain(..self.start);
            self.written -= self.start;
            self.start = 0;
        }
        Ok(())
    }

    /// A new connection begins with everything after `received`.
    pub(crate) fn begin_again(&mut self, received: u64) -> Result<(), NeverSent> {
        self.acknowledge(received)?;
        self.written = self.start;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use catraca_client::frame::LONGEST_FRAME;
    use catraca_group::Epoch;
    use proptest::prelude::*;

    use super::*;

    fn message(body: &[u8]) -> PeerMessage<'_> {
        PeerMessage::Detector { epoch: Epoch::FIRST, body }
    }

    #[test]
    fn what_was_never_sent_cannot_be_acknowledged() {
        let mut outgoing = Outgoing::default();
        outgoing.push_message(message(b"x")).unwrap();
        assert_eq!(outgoing.acknowledge(2), Err(NeverSent { claimed: 2, sent: 1 }));
        assert_eq!(outgoing.acknowledge(1), Ok(()));
        assert_eq!((outgoing.pending(), outgoing.sent()), (0, 1));
    }

    #[test]
    fn acknowledged_bytes_do_not_pile_up() {
        let mut outgoing = Outgoing::default();
        let body = vec![7; 1000];
        for number in 1..=10_000 {
            outgoing.push_message(message(&body)).unwrap();
            let bytes = outgoing.unwritten().len();
            outgoing.wrote(bytes);
            outgoing.acknowledge(number).unwrap();
        }
        assert!(outgoing.bytes.capacity() < 4 * CUT, "{}", outgoing.bytes.capacity());
    }

    proptest! {
        /// A connection that takes any number of bytes and breaks at any of them: the other side
        /// still gets every frame, once, in order.
        #[test]
        fn cuts_at_any_byte_lose_and_repeat_nothing(
            steps in prop::collection::vec((0u8..4, 0usize..40), 1..200),
        ) {
            let mut outgoing = Outgoing::default();
            let (mut received, mut wire) = (0, Vec::new());
            let mut got = Vec::new();
            let mut pushed = 0u8;
            let take_in = |wire: &mut Vec<u8>, received: &mut u64, got: &mut Vec<u8>| {
                let mut rest = &wire[..];
                while let Some((body, after)) = frame::split(rest, LONGEST_FRAME).unwrap() {
                    let frame: Frame<'_> = frame::read(body).unwrap();
                    assert!(frame.number() <= *received + 1, "a gap");
                    if frame.number() == *received + 1 {
                        *received += 1;
                        let Frame::Message { message: PeerMessage::Detector { body, .. }, .. } = frame else { panic!() };
                        got.push(body[0]);
                    }
                    rest = after;
                }
                *wire = rest.to_vec();
            };
            for (what, amount) in steps {
                match what {
                    0 => {
                        outgoing.push_message(message(&[pushed])).unwrap();
                        pushed = pushed.wrapping_add(1);
                    }
                    1 => {
                        let taken = amount.min(outgoing.unwritten().len());
                        wire.extend_from_slice(&outgoing.unwritten()[..taken]);
                        outgoing.wrote(taken);
                        take_in(&mut wire, &mut received, &mut got);
                    }
                    2 => outgoing.acknowledge(received).unwrap(),
                    _ => {
                        wire.clear();
                        outgoing.begin_again(received).unwrap();
                    }
                }
            }
            wire.clear();
            outgoing.begin_again(received).unwrap();
            wire.extend_from_slice(outgoing.unwritten());
            take_in(&mut wire, &mut received, &mut got);
            let expected: Vec<u8> = (0..pushed).collect();
            prop_assert_eq!(got, expected);
        }
    }
}
