//! The link between this member and one other: a channel that loses, repeats and reorders nothing
//! while both processes live, whatever happens to the connections under it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catraca_client::clock;
use catraca_client::frame::{self, FrameError, LONGEST_FRAME};
use catraca_group::{Epoch, PeerMessage, Run, Time};
use tokio::sync::Notify;

use crate::frame::Frame;
use crate::mutex::hold;
use crate::outgoing::{NeverSent, Outgoing};
use crate::wire::WireWriter;

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
    stream: Arc<WireWriter>,
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
    /// What the side that dials calls this link. A link that one side has forgotten has another.
    id: Option<u64>,
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
    #[error("the link was given up")]
    Closed,
}

/// Why a call cannot go on with what was said before: one side has forgotten it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forgotten;

/// What a call says of the link that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resumption {
    pub(crate) id: u64,
    /// Whether the link has been connected before.
    pub(crate) is_resumed: bool,
    /// The last frame that has come.
    pub(crate) received: u64,
}

/// The link to one run of another member.
///
/// Whoever holds `receiving` may lock shards, and whoever holds a shard may lock `sending`: always
/// in this order.
pub(crate) struct Link {
    pub(crate) run: Run,
    made: Time,
    sending: Mutex<Sending>,
    receiving: Mutex<Receiving>,
    /// Where the member is in the view that runs, and which view that is: looked at for every message.
    seat: AtomicU64,
    /// How many bytes were written.
    sent: AtomicU64,
    is_full: AtomicBool,
    /// How many links are full, of all.
    full: Arc<AtomicUsize>,
    /// There is something to write that was not written at once.
    pub(crate) unsent: Notify,
    /// Something has come that the other side has not been told of.
    pub(crate) unacknowledged: Notify,
    is_closed: AtomicBool,
}

impl Link {
    /// A link that has never been connected. `full` counts the links that take nothing more.
    pub(crate) fn new(run: Run, full: Arc<AtomicUsize>) -> Self {
        let (outgoing, connection, health) = (Outgoing::default(), None, Health::Never);
        Link {
            run,
            made: clock::now(),
            sending: Mutex::new(Sending { outgoing, connection, health }),
            receiving: Mutex::new(Receiving::default()),
            seat: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            full,
            unsent: Notify::new(),
            unacknowledged: Notify::new(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// From now on messages of this view go to locks directly: everything that came before is there.
    pub(crate) fn seat(&self, epoch: Epoch, place: usize) {
        self.seat.store(u64::from(epoch.0) << 32 | place as u64, Ordering::Release);
    }

    /// Where the member is in this view, if it runs.
    #[inline]
    pub(crate) fn place_in(&self, epoch: Epoch) -> Option<usize> {
        let seat = self.seat.load(Ordering::Acquire);
        (seat >> 32 == u64::from(epoch.0)).then_some(seat as u32 as usize)
    }

    /// The link is of no use any more. Its connection ends, which its reader notices.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let mut sending = hold(&self.sending);
        if let Some(Connection { stream, .. }) = sending.connection.take() {
            // It may have ended already.
            let _ = stream.shut_down();
        }
        sending.outgoing = Outgoing::default();
        self.note_pending(&sending.outgoing);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Keeps count of how much waits for the other side. Called with `sending` in hand.
    fn note_pending(&self, outgoing: &Outgoing) {
        let is_full = outgoing.pending() > MOST_PENDING;
        if self.is_full.load(Ordering::Relaxed) != is_full {
            self.is_full.store(is_full, Ordering::Relaxed);
            match is_full {
                true => self.full.fetch_add(1, Ordering::Relaxed),
                false => self.full.fetch_sub(1, Ordering::Relaxed),
            };
        }
    }

    /// Puts a message behind all others. [`flush`](Self::flush) sends it off.
    pub(crate) fn push(&self, message: PeerMessage<'_>) -> Result<(), FrameError> {
        let outgoing = &mut hold(&self.sending).outgoing;
        if self.is_closed() {
            return Ok(());
        }
        outgoing.push_message(message)?;
        self.note_pending(outgoing);
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
        let written = loop {
            match sending.outgoing.unwritten() {
                [] => break connection.stream.try_flush(),
                unwritten => match connection.stream.try_write(unwritten) {
                    Ok(bytes) => {
                        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
                        sending.outgoing.wrote(bytes);
                    }
                    Err(error) => break Err(error),
                },
            }
        };
        // Any other error ends the connection, which its reader will notice.
        !written.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// How many bytes were written.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// How many bytes the connection has not taken.
    #[cfg(test)]
    pub(crate) fn unwritten(&self) -> usize {
        hold(&self.sending).outgoing.unwritten().len()
    }

    /// Where to write, for whoever waits until it is possible again.
    pub(crate) fn stream(&self) -> Option<Arc<WireWriter>> {
        hold(&self.sending).connection.as_ref().map(|connection| Arc::clone(&connection.stream))
    }

    /// Whether the other side is so far behind that nothing new should be begun.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    pub(crate) fn is_up(&self) -> bool {
        hold(&self.sending).connection.is_some()
    }

    /// Whether it is connected, or was until so long ago.
    pub(crate) fn is_fresh(&self, kept: Duration) -> bool {
        match &hold(&self.sending).health {
            Health::Up(_) => true,
            Health::Down(since, _) => clock::now() < *since + kept,
            Health::Never => clock::now() < self.made + kept,
            Health::Refused(_) => false,
        }
    }

    pub(crate) fn health(&self) -> Health {
        hold(&self.sending).health.clone()
    }

    /// What a call to the other side says. `fresh` names the link if nobody has yet.
    pub(crate) fn call(&self, fresh: u64) -> Resumption {
        let mut receiving = hold(&self.receiving);
        let is_resumed = receiving.connection > 0;
        let id = *receiving.id.get_or_insert(fresh);
        Resumption { id, is_resumed, received: receiving.received }
    }

    /// The other side calls. Returns the last frame that has come.
    pub(crate) fn answer(&self, call: Resumption) -> Result<u64, Forgotten> {
        let mut receiving = hold(&self.receiving);
        match receiving.id {
            Some(id) if id == call.id => Ok(receiving.received),
            None if !call.is_resumed => {
                receiving.id = Some(call.id);
                Ok(receiving.received)
            }
            _ => Err(Forgotten),
        }
    }

    /// Begins to use `stream`. The other side has said which frames it has. Returns the number of the
    /// connection, by which its reader is known.
    pub(crate) fn connect(
        &self,
        stream: Arc<WireWriter>,
        peer_received: u64,
    ) -> Result<u64, LinkError> {
        let mut receiving = hold(&self.receiving);
        let mut sending = hold(&self.sending);
        if self.is_closed() {
            return Err(LinkError::Closed);
        }
        sending.outgoing.begin_again(peer_received)?;
        self.note_pending(&sending.outgoing);
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
        if receiving.connection != number || self.is_closed() {
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
                    self.note_pending(outgoing);
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

impl Drop for Link {
    fn drop(&mut self) {
        if self.is_full() {
            self.full.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
