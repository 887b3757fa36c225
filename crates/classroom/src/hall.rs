//! What goes on behind the socket: desk, log and connections, and a task for each connection that
//! brings its messages to the desk.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catraca_core::{NodeId, Phase};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use crate::{
    Desk, Event, Frame, Grant, Kind, LENGTH, Limits, Line, Log, Malformed, Message, ProcessId,
    Refusal, Served, Stamp,
};

/// A host that is gone without a word is found out after a minute or so.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(5));

/// Who leaves more bytes of grants than about this unread is not listening.
const UNREAD: usize = 4096;

/// Desk, log and connections of a server, shared with whoever looks in.
pub struct Hall {
    room: Mutex<Room>,
    quit: Notify,
}

struct Room {
    desk: Desk,
    log: Log,
    /// Without those that could not be sent a message.
    streams: BTreeMap<NodeId, Arc<TcpStream>>,
    /// Why the log cannot be written.
    fault: Option<io::Error>,
}

/// Who is inside and who waits, at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The one that was granted last, if it has not left.
    pub inside: Option<ProcessId>,
    /// The others that have asked, in the order of arrival.
    pub waiting: Vec<ProcessId>,
}

impl Hall {
    /// Ends the server.
    pub fn quit(&self) {
        self.quit.notify_one();
    }

    /// Who is inside and who waits.
    pub fn standing(&self) -> Standing {
        let room = self.lock();
        Standing { inside: room.desk.inside(), waiting: room.desk.waiting().flatten().collect() }
    }

    /// How often each process has been served.
    pub fn served(&self) -> Served {
        self.lock().desk.served().clone()
    }

    pub(crate) fn new(clients: u32, log: Log) -> Self {
        let desk = Desk::new(clients);
        let room = Room { desk, log, streams: BTreeMap::new(), fault: None };
        Hall { room: Mutex::new(room), quit: Notify::new() }
    }

    /// Waits until somebody quits, or the log cannot be written.
    pub(crate) async fn closing_time(&self) -> io::Result<()> {
        self.quit.notified().await;
        self.lock().fault.take().map_or(Ok(()), Err)
    }

    /// Lets go of every connection; it is closed when its task has ended too.
    pub(crate) fn close(&self) {
        self.lock().streams.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Room> {
        // Whoever panicked elsewhere, the room is whole between any two statements that matter.
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self, event: Event) {
        self.lock().write(event, &self.quit);
    }

    /// Gives a newcomer a seat and a task of its own.
    pub(crate) fn welcome(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr, limits: Limits) {
        // A socket that takes no options still takes messages.
        stream.set_nodelay(true).ok();
        let (time, interval) = KEEPALIVE;
        let keepalive = TcpKeepalive::new().with_time(time).with_interval(interval);
        SockRef::from(&stream).set_tcp_keepalive(&keepalive).ok();
        SockRef::from(&stream).set_send_buffer_size(UNREAD).ok();
        let mut room = self.lock();
        let Some(seat) = room.desk.seat() else {
            let why = format!("{peer}: {} clients are connected already", limits.clients);
            return room.write(Event::Closed(None, why), &self.quit);
        };
        let stream = Arc::new(stream);
        room.streams.insert(seat, Arc::clone(&stream));
        drop(room);
        let hall = Arc::clone(self);
        tokio::spawn(async move {
            let closing = hall.listen(seat, &stream, limits.patience).await;
            hall.part(seat, peer, &closing);
        });
    }

    /// Takes messages until one is wrong or no more come.
    async fn listen(&self, seat: NodeId, stream: &TcpStream, patience: Duration) -> Closing {
        loop {
            let heard = match next_frame(stream, patience).await {
                Ok(frame) => {
                    Message::parse(&frame).map_err(|why| Closing::Malformed { frame, why })
                }
                Err(closing) => Err(closing),
            };
            match heard.and_then(|message| self.receive(seat, &message)) {
                // Who sends without a pause lets the others speak in between.
                Ok(()) => yield_now().await,
                Err(closing) => return closing,
            }
        }
    }

    fn receive(&self, seat: NodeId, message: &Message) -> Result<(), Closing> {
        let mut room = self.lock();
        if !room.streams.contains_key(&seat) {
            return Err(Closing::Deaf);
        }
        room.write(Event::Received(*message), &self.quit);
        let next = room
            .desk
            .receive(seat, message)
            .map_err(|why| Closing::Refused { id: message.id, why })?;
        room.deliver(next, &self.quit);
        Ok(())
    }

    fn part(&self, seat: NodeId, peer: SocketAddr, closing: &Closing) {
        let mut room = self.lock();
        room.streams.remove(&seat);
        let departure = room.desk.leave(seat);
        let what = match departure.phase {
            Phase::Idle => "",
            Phase::Waiting => "; it leaves the queue",
            Phase::Inside => "; this releases",
        };
        if departure.phase != Phase::Idle || !matches!(closing, Closing::HungUp) {
            let id = departure.id.or(match closing {
                Closing::Refused { id, .. } => Some(*id),
                _ => None,
            });
            room.write(Event::Closed(id, format!("{peer}: {closing}{what}")), &self.quit);
        }
        room.deliver(departure.next, &self.quit);
    }
}

impl Room {
    fn write(&mut self, event: Event, quit: &Notify) {
        if let Err(error) = self.log.write(&Line { at: Stamp::now(), event }) {
            self.fault.get_or_insert(error);
            quit.notify_one();
        }
    }

    /// The log has the line before the client has the message, so an entry is never earlier than
    /// its grant.
    fn deliver(&mut self, grant: Option<Grant>, quit: &Notify) {
        let Some(Grant { seat, id }) = grant else {
            return;
        };
        let message = Message::with_random_digits(Kind::Grant, id);
        self.write(Event::Sent(message), quit);
        let Some(stream) = self.streams.get(&seat) else {
            return;
        };
        // Past tokio, which would first have to hear from the system that the socket takes bytes.
        // It does, unless its client has not read a great many grants.
        let socket = SockRef::from(stream.as_ref());
        if !matches!(socket.send(message.frame()), Ok(LENGTH)) {
            // Its task finds the connection ended, and leaves the seat to whoever is next.
            socket.shutdown(Shutdown::Both).ok();
            self.streams.remove(&seat);
        }
    }
}

/// Puts a message together, wherever the network has cut it.
async fn next_frame(stream: &TcpStream, patience: Duration) -> Result<Frame, Closing> {
    let mut frame = [0; LENGTH];
    let mut filled = 0;
    let mut limit = None;
    while filled < LENGTH {
        let readable = match limit {
            None => stream.readable().await,
            Some(limit) => timeout_at(limit, stream.readable())
                .await
                .map_err(|_| Closing::TooSlow { filled, patience })?,
        };
        match readable.and_then(|()| stream.try_read(&mut frame[filled..])) {
            Ok(0) if filled == 0 => return Err(Closing::HungUp),
            Ok(0) => return Err(Closing::HalfSaid(filled)),
            Ok(count) => {
                filled += count;
                limit.get_or_insert_with(|| Instant::now() + patience);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(Closing::Broken(error.kind())),
        }
    }
    Ok(frame)
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
enum Closing {
    #[error("hung up")]
    HungUp,
    #[error("hung up after {0} of 10 bytes of a message")]
    HalfSaid(usize),
    #[error("sent {filled} of 10 bytes of a message and then nothing for {patience:?}")]
    TooSlow { filled: usize, patience: Duration },
    #[error("no message '{}': {why}", frame.escape_ascii())]
    Malformed { frame: Frame, why: Malformed },
    #[error("{why}")]
    Refused { id: ProcessId, why: Refusal },
    #[error("could not be sent its GRANT; it does not read or is gone")]
    Deaf,
    #[error("{0}")]
    Broken(ErrorKind),
}
