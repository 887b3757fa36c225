//! The link between this member and one other: a channel that loses, repeats and reorders nothing
//! while both processes live, whatever happens to the connections under it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use catraca_client::clock;
use catraca_client::frame::{self, FrameError, LONGEST_FRAME};
use catraca_group::{PeerMessage, Time};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Notify;

use crate::frame::Frame;
use crate::mutex::hold;
use crate::outgoing::{NeverSent, Outgoing};

/// After so many frames the other side is told what has come, without delay.
const FRAMES_PER_RECEIPT: u64 = 64;
/// Receipts are frames too. They ask for a receipt only when so many have come, or two members
/// would go on acknowledging each other's acknowledgements.
const RECEIPTS_PER_RECEIPT: u64 = 1024;
/// A member that takes nothing for long gets no new requests when so much waits for it.
pub(crate) const MOST_PENDING: usize = 64 << 20;

/// How a link is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// No connection yet.
    Never,
    /// Connected since.
    Up(Time),
    /// Not connected since, and why.
    Down(Time, String),
    /// The two members do not belong together, and why.
    Refused(String),
}

/// A connection: its number, and where it is written.
#[derive(Clone, Debug)]
struct Connection {
    number: u64,
    stream: Arc<OwnedWriteHalf>,
}

struct Sending {
    outgoing: Outgoing,
    connection: Option<Connection>,
    health: Health,
}

#[derive(Debug, Default)]
struct Receiving {
    /// The number of the connection that is read; frames of any other come too late.
    connection: u64,
    /// The last frame that has come.
    received: u64,
    /// What the other side has been told of.
    told: u64,
    /// Messages since then.
    messages: u64,
    /// The process at the other side.
    incarnation: Option<u64>,
}

/// Why a connection is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LinkError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    NeverSent(#[from] NeverSent),
    #[error("frame {came} came where {expected} was next")]
    Gap { came: u64, expected: u64 },
    #[error("another connection has taken its place")]
    Replaced,
    #[error("another process is connected under the same name")]
    OtherProcess,
}

/// The link to one member.
///
/// Whoever holds `receiving` may lock shards, and whoever holds a shard may lock `sending`: always
/// in this order.
pub(crate) struct Link {
    sending: Mutex<Sending>,
    receiving: Mutex<Receiving>,
    /// How many bytes wait for the other side: looked at before every request, so without a mutex.
    pending: AtomicUsize,
    /// There is something to write that was not written at once.
    pub(crate) unsent: Notify,
    /// Something has come that the other side has not been told of.
    pub(crate) unacknowledged: Notify,
}

impl Link {
    pub(crate) fn new() -> Self {
        let (outgoing, connection, health) = (Outgoing::default(), None, Health::Never);
        Link {
            sending: Mutex::new(Sending { outgoing, connection, health }),
            receiving: Mutex::new(Receiving::default()),
            pending: AtomicUsize::new(0),
            unsent: Notify::new(),
            unacknowledged: Notify::new(),
        }
    }

    /// Puts a message behind all others. [`flush`](Self::flush) sends it off.
    pub(crate) fn push(&self, message: PeerMessage<'_>) -> Result<(), FrameError> {
        let outgoing = &mut hold(&self.sending).outgoing;
        outgoing.push_message(message)?;
        self.pending.store(outgoing.pending(), Ordering::Relaxed);
        Ok(())
    }

    /// Writes what the connection takes without waiting, and leaves the rest to the writer.
    pub(crate) fn flush(&self) {
        if !self.write() {
            self.unsent.notify_one();
        }
    }

    /// Writes what the connection takes without waiting. Returns false if it will take the rest
    /// later.
    pub(crate) fn write(&self) -> bool {
        let sending = &mut *hold(&self.sending);
        let Some(connection) = &sending.connection else { return true };
        while !sending.outgoing.unwritten().is_empty() {
            match connection.stream.try_write(sending.outgoing.unwritten()) {
                Ok(bytes) => sending.outgoing.wrote(bytes),
                // Any other error ends the connection, which its reader will notice.
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
        true
    }

    /// How many bytes the connection has not taken.
    #[cfg(test)]
    pub(crate) fn unwritten(&self) -> usize {
        hold(&self.sending).outgoing.unwritten().len()
    }

    /// Where to write, for whoever waits until it is possible again.
    pub(crate) fn stream(&self) -> Option<Arc<OwnedWriteHalf>> {
        hold(&self.sending).connection.as_ref().map(|connection| Arc::clone(&connection.stream))
    }

    /// Whether the other side is so far behind that nothing new should be begun.
    pub(crate) fn is_full(&self) -> bool {
        self.pending.load(Ordering::Relaxed) > MOST_PENDING
    }

    pub(crate) fn is_up(&self) -> bool {
        hold(&self.sending).connection.is_some()
    }

    pub(crate) fn health(&self) -> Health {
        hold(&self.sending).health.clone()
    }

    /// The process at the other side, if it has ever been there.
    pub(crate) fn incarnation(&self) -> Option<u64> {
        hold(&self.receiving).incarnation
    }

    /// The last frame that has come.
    pub(crate) fn received(&self) -> u64 {
        hold(&self.receiving).received
    }

    /// Begins to use `stream`. The other side has said which process it is, and which frames it has.
    /// Returns the number of the connection, by which its reader is known.
    pub(crate) fn connect(
        &self,
        stream: Arc<OwnedWriteHalf>,
        incarnation: u64,
        peer_received: u64,
    ) -> Result<u64, LinkError> {
        let mut receiving = hold(&self.receiving);
        // Looked at under the mutex: two processes of one name may call at the same moment.
        if receiving.incarnation.is_some_and(|known| known != incarnation) {
            return Err(LinkError::OtherProcess);
        }
        let mut sending = hold(&self.sending);
        sending.outgoing.begin_again(peer_received)?;
        self.pending.store(sending.outgoing.pending(), Ordering::Relaxed);
        receiving.incarnation = Some(incarnation);
        receiving.connection += 1;
        let number = receiving.connection;
        sending.connection = Some(Connection { number, stream });
        sending.health = Health::Up(clock::now());
        drop((receiving, sending));
        self.flush();
        // The writer may be waiting for the connection that this one replaces.
        self.unsent.notify_one();
        Ok(number)
    }

    /// Connection `number` is no more. Returns false if another has taken its place already: then
    /// nothing changes.
    pub(crate) fn disconnect(&self, number: u64, why: String) -> bool {
        let mut sending = hold(&self.sending);
        let is_it = |connection: &Connection| connection.number == number;
        let is_present = sending.connection.as_ref().is_some_and(is_it);
        if is_present {
            sending.connection = None;
            sending.health = Health::Down(clock::now(), why);
        }
        is_present
    }

    /// There is no connection, and will be none.
    pub(crate) fn refuse(&self, why: String) {
        let mut sending = hold(&self.sending);
        if sending.connection.is_none() {
            sending.health = Health::Refused(why);
        }
    }

    /// No connection can be had at the moment.
    pub(crate) fn unreachable(&self, why: String) {
        let mut sending = hold(&self.sending);
        let since = match &sending.health {
            Health::Down(since, _) => *since,
            _ => clock::now(),
        };
        if sending.connection.is_none() {
            sending.health = Health::Down(since, why);
        }
    }

    /// Takes in what connection `number` has brought and gives each message to `deliver`, once and
    /// in order. Returns how many bytes of it were whole frames.
    pub(crate) fn take_in(
        &self,
        number: u64,
        bytes: &[u8],
        mut deliver: impl FnMut(PeerMessage<'_>),
    ) -> Result<usize, LinkError> {
        let mut receiving = hold(&self.receiving);
        if receiving.connection != number {
            return Err(LinkError::Replaced);
        }
        let mut rest = bytes;
        while let Some((body, after)) = frame::split(rest, LONGEST_FRAME)? {
            rest = after;
            let frame: Frame<'_> = frame::read(body)?;
            let expected = receiving.received + 1;
            match frame.number() {
                came if came > expected => return Err(LinkError::Gap { came, expected }),
                came if came < expected => continue,
                _ => receiving.received = expected,
            }
            match frame {
                Frame::Message { message, .. } => {
                    receiving.messages += 1;
                    deliver(message);
                }
                Frame::Received { received, .. } => {
                    let outgoing = &mut hold(&self.sending).outgoing;
                    outgoing.acknowledge(received)?;
                    self.pending.store(outgoing.pending(), Ordering::Relaxed);
                }
            }
        }
        if receiving.messages >= FRAMES_PER_RECEIPT
            || receiving.received - receiving.told >= RECEIPTS_PER_RECEIPT
        {
            self.tell(&mut receiving);
            self.unsent.notify_one();
        } else if receiving.messages > 0 {
            self.unacknowledged.notify_one();
        }
        Ok(bytes.len() - rest.len())
    }

    /// Tells the other side what has come, if it has not been told.
    pub(crate) fn acknowledge(&self) {
        let mut receiving = hold(&self.receiving);
        if receiving.messages == 0 {
            return;
        }
        self.tell(&mut receiving);
        drop(receiving);
        self.flush();
    }

    fn tell(&self, receiving: &mut Receiving) {
        hold(&self.sending).outgoing.push_received(receiving.received);
        (receiving.told, receiving.messages) = (receiving.received, 0);
    }
}
