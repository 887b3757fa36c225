//! S3's process: asks, waits, writes a line into the result file, stays inside, leaves; and again.
//!
//! ```text
//! 76 2025-07-17 01:28:30.120577
//! ```

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::server::resolve;
use crate::{Kind, LENGTH, Malformed, Message, ProcessId, Stamp};

/// How soon Ctrl-C is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// So long a coordinator may take to accept.
const CONNECT: Duration = Duration::from_secs(10);

/// One line of the result file: who entered, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Who.
    pub id: ProcessId,
    /// When.
    pub at: Stamp,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.at)
    }
}

impl FromStr for Entry {
    type Err = NoEntry;

    fn from_str(text: &str) -> Result<Self, NoEntry> {
        let (id, at) = text.split_once(' ').ok_or(NoEntry)?;
        let (Ok(id), Ok(at)) = (id.parse(), at.parse()) else {
            return Err(NoEntry);
        };
        Ok(Entry { id, at })
    }
}

/// The text is no line of the result file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not written as '76 2025-07-17 01:28:30.120577'")]
pub struct NoEntry;

/// What a process has to do.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// Its name.
    pub id: ProcessId,
    /// How often it enters.
    pub rounds: u32,
    /// How long it stays inside.
    pub hold: Duration,
}

impl Process {
    /// Connects to the coordinator at `address` and enters as often as it should. Every entry is a
    /// line that is written to `result` at once.
    pub fn run(
        &self,
        address: &str,
        result: &mut impl Write,
        interrupted: &AtomicBool,
    ) -> Result<(), ProcessError> {
        let stream = connect(address)?;
        std::thread::scope(|scope| {
            // A message can be there at any time, and its absence is waited for to the
            // microsecond: a thread reads, and the channel has the exact clock.
            let (sender, received) = sync_channel(1);
            scope.spawn(|| listen(&stream, sender));
            let link = Link { stream: &stream, received, interrupted };
            let done = (0..self.rounds).try_for_each(|_| self.enter(&link, result));
            stream.shutdown(Shutdown::Both).ok();
            done
        })
    }

    fn enter(&self, link: &Link<'_>, result: &mut impl Write) -> Result<(), ProcessError> {
        link.send(Message::with_random_digits(Kind::Request, self.id))?;
        match link.wait(None)? {
            Some(message) if (message.kind, message.id) == (Kind::Grant, self.id) => {}
            Some(message) => return Err(ProcessError::Unexpected(message)),
            None => return Err(ProcessError::Closed("while it waited")),
        }
        let line = format!("{}\n", Entry { id: self.id, at: Stamp::now() });
        result.write_all(line.as_bytes()).map_err(|error| ProcessError::Result(error.kind()))?;
        // Nobody says anything while we are inside; a lost coordinator is noticed at once.
        if let Some(message) = link.wait(Some(self.hold))? {
            return Err(ProcessError::Unexpected(message));
        }
        link.send(Message::with_random_digits(Kind::Release, self.id))
    }
}

fn connect(address: &str) -> Result<TcpStream, ProcessError> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::InvalidInput => ProcessError::NoAddress(address.to_string()),
        kind => ProcessError::Unreachable { address: address.to_string(), kind },
    };
    let stream = TcpStream::connect_timeout(&resolve(address).map_err(failed)?, CONNECT);
    let stream = stream.map_err(failed)?;
    // Ten bytes are worth a packet of their own.
    stream.set_nodelay(true).ok();
    Ok(stream)
}

/// What the reading thread has to say.
type Received = Result<Message, ProcessError>;

/// Reads until the connection ends; that nobody sends any more is how the other side learns it.
fn listen(mut stream: &TcpStream, received: SyncSender<Received>) {
    let mut frame = [0; LENGTH];
    while stream.read_exact(&mut frame).is_ok() {
        let message = Message::parse(&frame).map_err(ProcessError::Malformed);
        if received.send(message).is_err() {
            return;
        }
    }
}

/// The connection to the coordinator.
struct Link<'a> {
    stream: &'a TcpStream,
    received: Receiver<Received>,
    interrupted: &'a AtomicBool,
}

impl Link<'_> {
    fn send(&self, message: Message) -> Result<(), ProcessError> {
        let mut stream = self.stream;
        stream.write_all(message.frame()).map_err(|_| ProcessError::Closed("while it spoke"))
    }

    /// The next message, or nothing if none comes for so long.
    fn wait(&self, limit: Option<Duration>) -> Result<Option<Message>, ProcessError> {
        let begin = Instant::now();
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(ProcessError::Interrupted);
            }
            let left = limit.map(|limit| limit.saturating_sub(begin.elapsed()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            match self.received.recv_timeout(left.unwrap_or(POLL_INTERVAL).min(POLL_INTERVAL)) {
                Ok(message) => return message.map(Some),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let when =
                        if limit.is_some() { "while it was inside" } else { "while it waited" };
                    return Err(ProcessError::Closed(when));
                }
            }
        }
    }
}

/// Why a process did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The address means nothing.
    #[error("'{0}' is no address: give the coordinator's, such as 127.0.0.1:7880")]
    NoAddress(String),
    /// Nobody is there.
    #[error("no coordinator at '{address}': {kind}; start one with 'catraca coordinator'")]
    Unreachable {
        /// Where it should be.
        address: String,
        /// What the system says.
        kind: ErrorKind,
    },
    /// The coordinator has closed the connection.
    #[error(
        "the coordinator closed the connection to this process {0}: if it still runs, its log says \
         why; if not, start it again"
    )]
    Closed(&'static str),
    /// What came is no message.
    #[error("what came from the coordinator is no message: {0}")]
    Malformed(Malformed),
    /// What came is not what S3 lets come.
    #[error("the coordinator sent '{0}', which nobody waited for")]
    Unexpected(Message),
    /// The entry could not be written down.
    #[error("cannot write the result file: {0}")]
    Result(ErrorKind),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference: S3, section 3, 'Trecho do resultado.txt'.
    #[test]
    fn paper_entries_are_read_and_written_as_they_are() {
        let text = "76 2025-07-17 01:28:30.120577";
        let entry: Entry = text.parse().unwrap();
        assert_eq!((entry.id.to_string().as_str(), entry.to_string().as_str()), ("76", text));
        for text in
            ["", "76", "76 today", " 2025-07-17 01:28:30.120577", "7|6 2025-07-17 01:28:30.120577"]
        {
            assert_eq!(text.parse::<Entry>(), Err(NoEntry), "{text:?}");
        }
    }
}
