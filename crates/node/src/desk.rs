//! Serves clients of other processes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};
use tokio::task::coop;

use crate::frame;
use crate::inquiry;
use crate::listing;
use crate::lock::Owner;
use crate::node::Running;
use crate::protocol::{Ask, Denial, Listing, Tell};
use crate::request::MOST_NAMES;
use crate::session::{MOST_WORDS, Session, Voice, unread};

/// So many lines of a listing go into one frame: names and labels are at most 255 characters long.
const LINES_PER_FRAME: usize = 256;
/// With so many words unread, nothing more is heard from a client.
pub(crate) const MOST_UNREAD: usize = 1024;

/// Where clients are served.
pub(crate) struct Desk {
    running: Arc<Running>,
}

impl Desk {
    pub(crate) fn new(running: Arc<Running>) -> Self {
        Desk { running }
    }

    /// Serves one client until it hangs up.
    pub(crate) async fn serve(
        &self,
        reader: impl AsyncRead + Unpin,
        writer: impl AsyncWrite + Unpin + Send + 'static,
    ) {
        let (voice, words) = mpsc::channel(MOST_WORDS);
        let taken = Arc::new(Notify::new());
        let writing = tokio::spawn(write(writer, words, Arc::clone(&taken)));
        let mut session = None;
        if let Err(error) = self.listen(reader, &voice, &taken, &mut session).await {
            tracing::debug!(%error, "a client went away");
        }
        if let Some(session) = session
            && !session.detach(&voice)
        {
            self.running.sessions.end(&session);
        }
        drop(voice);
        // It ends when everything has been said; how does not matter.
        let _ = writing.await;
    }

    async fn listen(
        &self,
        mut reader: impl AsyncRead + Unpin,
        voice: &Voice,
        taken: &Notify,
        session: &mut Option<Arc<Session>>,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        loop {
            if reader.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
            let mut rest = &bytes[..];
            let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
            while let Some((body, after)) = frame::split(rest).map_err(invalid)? {
                let ask: Ask = frame::read(body).map_err(invalid)?;
                rest = after;
                // A client that does not read what it is told is not listened to. Lists are long:
                // there is never more than one on its way.
                let most = if matches!(ask, Ask::Locks { .. }) { 0 } else { MOST_UNREAD };
                if !catches_up(voice, taken, most).await {
                    return Ok(());
                }
                if let Some(tell) = self.answer(ask, voice, session).await {
                    // The writer may be gone; then the reader notices too.
                    let _ = voice.try_send(tell);
                }
            }
            let taken = bytes.len() - rest.len();
            bytes.drain(..taken);
        }
    }

    async fn answer(
        &self,
        ask: Ask,
        voice: &Voice,
        session: &mut Option<Arc<Session>>,
    ) -> Option<Tell> {
        match (ask, &session) {
            (Ask::Open { who, ttl_millis }, None) => {
                let ttl = ttl_millis.map(Duration::from_millis);
                let Some(new) = self.running.sessions.begin(&self.running, who, ttl) else {
                    let why = "this node has too many sessions; see 'catraca status'".to_string();
                    return Some(Tell::Denied { request: 0, why: Denial::Node(why) });
                };
                new.attach(voice.clone());
                let owner = new.owner.0;
                *session = Some(new);
                Some(Tell::Open { session: owner })
            }
            (Ask::Resume { session: owner }, None) => {
                *session =
                    self.running.sessions.find(Owner(owner)).filter(|session| session.renew());
                let Some(session) = session else { return Some(Tell::Over) };
                let _ = voice.try_send(Tell::Open { session: owner });
                session.attach(voice.clone());
                None
            }
            (Ask::Alive, Some(session)) => {
                if session.renew() {
                    Some(Tell::Alive)
                } else {
                    Some(Tell::Over)
                }
            }
            (Ask::Lock { request, names, permits, wait }, Some(session)) => {
                session.lock(request, names, permits, wait);
                None
            }
            (Ask::Release { request }, Some(session)) => {
                session.release(request);
                None
            }
            (Ask::Close, Some(open)) => {
                self.running.sessions.end(open);
                // It has been told by the session itself.
                *session = None;
                None
            }
            (Ask::Locks { whole_group: false }, _) => {
                Some(in_parts(listing::here(&self.running), voice))
            }
            (Ask::Locks { whole_group: true }, _) => {
                Some(in_parts(listing::everywhere(&self.running).await, voice))
            }
            (Ask::Status, _) => Some(Tell::Status(Box::new(listing::status(&self.running)))),
            (Ask::Held { names }, _) if names.len() <= MOST_NAMES => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let is_held = inquiry::is_held_here(&self.running.host, &names);
                Some(Tell::Held { is_held })
            }
            // A session is opened once and used afterwards; anything else is not our client's.
            (Ask::Open { .. } | Ask::Resume { .. }, Some(_))
            | (Ask::Alive | Ask::Lock { .. } | Ask::Release { .. } | Ask::Close, None)
            | (Ask::Held { .. }, _) => Some(Tell::Over),
        }
    }
}

/// Sends all of a listing but its last part, and returns that.
fn in_parts(mut listing: Listing, voice: &Voice) -> Tell {
    while listing.lines.len() > LINES_PER_FRAME {
        let lines = listing.lines.drain(..LINES_PER_FRAME).collect();
        let part = Listing { lines, silent: Vec::new() };
        // The writer may be gone; then the reader notices too.
        let _ = voice.try_send(Tell::Locks { part, is_last: false });
    }
    Tell::Locks { part: listing, is_last: true }
}

/// Waits until no more than `most` words are unread. Returns false if nobody will read them.
///
/// It does not wait for room in the channel: whoever does that is given all the room there is, and
/// what the session has to say meanwhile would be lost.
async fn catches_up(voice: &Voice, taken: &Notify, most: usize) -> bool {
    // A client with much to say leaves others their turn.
    coop::consume_budget().await;
    while unread(voice) > most {
        tokio::select! {
            () = taken.notified() => {}
            () = voice.closed() => break,
        }
    }
    !voice.is_closed()
}

/// Writes what there is to say, and lets `taken` know of every word that it begins with.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut words: mpsc::Receiver<Tell>,
    taken: Arc<Notify>,
) {
    let mut bytes = Vec::new();
    while let Some(tell) = words.recv().await {
        taken.notify_one();
        bytes.clear();
        if let Err(error) = frame::write(&tell, &mut bytes) {
            tracing::warn!(%error, "an answer is too long");
            return;
        }
        // After the end of its session there is nothing that a client could be told.
        if writer.write_all(&bytes).await.is_err() || tell == Tell::Over {
            return;
        }
    }
}
