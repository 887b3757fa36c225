//! The coordinator's log, in S3's format: one line for each message received (`RECEBIDO`) and sent
//! (`ENVIADO`).
//!
//! ```text
//! 2025-07-17 01:28:30.119990 | 1 | 76 | RECEBIDO: 1|76|89820
//! 2025-07-17 01:28:30.120578 | 2 | 76 | ENVIADO: 2|76|45299
//! 2025-07-17 01:28:33.000001 | - | 76 | CLOSED: a second REQUEST while it waits
//! ```
//!
//! S3 has no line such as the last one: a connection that ended otherwise than idle, and why. A run
//! in which nothing goes wrong has none, so its log is exactly S3's.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use crate::{LENGTH, Message, ProcessId, Stamp};

/// Where log lines go. A line is one write, so a program that follows the file sees it at once.
pub struct Log(Box<dyn Write + Send>);

impl Log {
    /// A log that is written to `sink`, which should not be buffered.
    pub fn new(sink: impl Write + Send + 'static) -> Self {
        Log(Box::new(sink))
    }

    /// Writes one line.
    pub fn write(&mut self, line: &Line) -> io::Result<()> {
        self.0.write_all(format!("{line}\n").as_bytes())
    }
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When it was written.
    pub at: Stamp,
    /// What happened.
    pub event: Event,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// This came in.
    Received(Message),
    /// This goes out.
    Sent(Message),
    /// A connection ended. Its process has no name if it has sent no message.
    Closed(Option<ProcessId>, String),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        let mut said = |word: &str, message: &Message| {
            let kind = char::from(message.kind.digit());
            write!(f, "{at} | {kind} | {} | {word}: {message}", message.id)
        };
        match &self.event {
            Event::Received(message) => said("RECEBIDO", message),
            Event::Sent(message) => said("ENVIADO", message),
            Event::Closed(Some(id), why) => write!(f, "{at} | - | {id} | CLOSED: {why}"),
            Event::Closed(None, why) => write!(f, "{at} | - | - | CLOSED: {why}"),
        }
    }
}

impl FromStr for Line {
    type Err = NoLine;

    fn from_str(text: &str) -> Result<Self, NoLine> {
        let mut fields = text.splitn(4, " | ");
        let mut field = || fields.next().ok_or(NoLine);
        let (at, kind, id, said) = (field()?, field()?, field()?, field()?);
        let at = at.parse().map_err(|_| NoLine)?;
        let (word, what) = said.split_once(": ").ok_or(NoLine)?;
        let event = match word {
            "RECEBIDO" => Event::Received(message(what)?),
            "ENVIADO" => Event::Sent(message(what)?),
            "CLOSED" if id == "-" => Event::Closed(None, what.to_string()),
            "CLOSED" => Event::Closed(Some(id.parse().map_err(|_| NoLine)?), what.to_string()),
            _ => return Err(NoLine),
        };
        let line = Line { at, event };
        // Kind and id are written twice; a line that contradicts itself is none.
        let head = format!("{at} | {kind} | {id} | ");
        if line.to_string().starts_with(&head) { Ok(line) } else { Err(NoLine) }
    }
}

fn message(text: &str) -> Result<Message, NoLine> {
    let frame: &[u8; LENGTH] = text.as_bytes().try_into().map_err(|_| NoLine)?;
    Message::parse(frame).map_err(|_| NoLine)
}

/// The text is no line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not written as '2025-07-17 01:28:30.119990 | 1 | 76 | RECEBIDO: 1|76|89820'")]
pub struct NoLine;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    /// Reference: S3, section 3, 'Trecho de coordenador_log.txt'.
    #[test]
    fn paper_lines_are_read_and_written_as_they_are() {
        let at = "2025-07-17 01:28:30.119990".parse().unwrap();
        let id = "76".parse().unwrap();
        let request = Event::Received(Message::new(Kind::Request, id, 89_820));
        let text = "2025-07-17 01:28:30.119990 | 1 | 76 | RECEBIDO: 1|76|89820";
        let line = Line { at, event: request };
        assert_eq!(line.to_string(), text);
        assert_eq!(text.parse(), Ok(line));

        let at = "2025-07-17 01:28:30.120578".parse().unwrap();
        let grant = Event::Sent(Message::new(Kind::Grant, id, 45_299));
        let text = "2025-07-17 01:28:30.120578 | 2 | 76 | ENVIADO: 2|76|45299";
        let line = Line { at, event: grant };
        assert_eq!(line.to_string(), text);
        assert_eq!(text.parse(), Ok(line));
    }

    #[test]
    fn the_end_of_a_connection_is_read_as_it_is_written() {
        for text in [
            "2025-07-17 01:28:30.119990 | - | 76 | CLOSED: why: 'a | b'",
            "2025-07-17 01:28:30.119990 | - | - | CLOSED: why",
        ] {
            assert_eq!(text.parse::<Line>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn lines_that_contradict_themselves_are_refused() {
        for text in [
            "",
            "2025-07-17 01:28:30.119990 | 2 | 76 | RECEBIDO: 1|76|89820",
            "2025-07-17 01:28:30.119990 | 1 | 13 | RECEBIDO: 1|76|89820",
            "2025-07-17 01:28:30.119990 | 1 | 76 | RECEBIDO: 1|76|8982",
            "2025-07-17 01:28:30.119990 | 1 | 76 | PERDIDO: 1|76|89820",
            "2025-07-17 01:28:30.119990 | 1 | 76",
            "1 | 1 | 76 | RECEBIDO: 1|76|89820",
        ] {
            assert_eq!(text.parse::<Line>(), Err(NoLine), "{text:?}");
        }
    }

    #[test]
    fn a_line_is_one_write() {
        struct Counting(std::sync::mpsc::Sender<Vec<u8>>);
        impl Write for Counting {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.send(bytes.to_vec()).unwrap();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (writes, written) = std::sync::mpsc::channel();
        let text = "2025-07-17 01:28:30.119990 | - | - | CLOSED: why";
        Log::new(Counting(writes)).write(&text.parse().unwrap()).unwrap();
        assert_eq!(written.iter().collect::<Vec<_>>(), [format!("{text}\n").into_bytes()]);
    }
}
