//! The task behind a client: it owns the connection, and steps the session by what comes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use catraca_group::{Refusal, SessionId, Time};
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock;
use crate::error::ClientError;
use crate::guard::{Loss, Own, Validity};
use crate::link::{Arrival, Link};
use crate::opening::{Opened, PAUSE, Settings};
use crate::protocol::{Over, ServerMessage};
use crate::request::{Ask, Ticket};
use crate::session::{Outcome, Session, Verdict};

/// How long the node is given to confirm that everything is free.
const FAREWELL: Duration = Duration::from_secs(2);

/// What the task is told.
pub(crate) enum Command {
    Ask { ticket: Ticket, ask: Ask, reply: oneshot::Sender<Result<Grant, ClientError>> },
    Release { ticket: Ticket, reply: Option<oneshot::Sender<Result<(), ClientError>>> },
    Close { reply: oneshot::Sender<Result<(), ClientError>> },
}

/// What was granted.
pub(crate) struct Grant {
    pub(crate) fences: Vec<u64>,
    /// Where the node is that has granted it.
    pub(crate) address: Arc<str>,
    pub(crate) validity: watch::Receiver<Validity>,
    /// Says so if it is lost although the session goes on.
    pub(crate) own: Arc<Own>,
}

/// Where clients and guards reach their task. It ends when all of them are gone.
pub(crate) struct Handle {
    pub(crate) settings: Arc<Settings>,
    commands: mpsc::UnboundedSender<Command>,
    last_ticket: AtomicU64,
    /// At which of the addresses the session is.
    place: Arc<AtomicUsize>,
}

impl Handle {
    /// A session has been opened; from now on a task of its own keeps it.
    pub(crate) fn start(settings: Settings, opened: Opened) -> Self {
        let settings = Arc::new(settings);
        let (commands, told) = mpsc::unbounded_channel();
        let place = Arc::new(AtomicUsize::new(opened.place));
        let driver = Driver::new(Arc::clone(&settings), opened, told, Arc::clone(&place));
        tokio::spawn(driver.run());
        Handle { settings, commands, last_ticket: AtomicU64::new(0), place }
    }

    /// Without the task nothing is held and nothing can be asked for; whoever waits for an answer
    /// notices.
    pub(crate) fn tell(&self, command: Command) {
        let _ = self.commands.send(command);
    }

    pub(crate) fn ticket(&self) -> Ticket {
        self.last_ticket.fetch_add(1, Ordering::Relaxed)
    }

    /// At which of the addresses the session is.
    pub(crate) fn place(&self) -> usize {
        self.place.load(Ordering::Relaxed)
    }
}

enum Reply {
    Ask(oneshot::Sender<Result<Grant, ClientError>>),
    Release(oneshot::Sender<Result<(), ClientError>>),
}

struct Driver {
    settings: Arc<Settings>,
    ttl: Duration,
    /// Which session at which of the addresses; it may be over.
    id: SessionId,
    place: usize,
    /// The address itself, for those who get something there.
    address: Arc<str>,
    shown_place: Arc<AtomicUsize>,
    session: Session,
    validity: watch::Sender<Validity>,
    link: Link,
    replies: BTreeMap<Ticket, Reply>,
    /// Where those are told who hold something.
    holders: BTreeMap<Ticket, Arc<Own>>,
    commands: mpsc::UnboundedReceiver<Command>,
}

impl Driver {
    fn new(
        settings: Arc<Settings>,
        opened: Opened,
        commands: mpsc::UnboundedReceiver<Command>,
        shown_place: Arc<AtomicUsize>,
    ) -> Self {
        let nothing = Validity { lost_at: Time(0), until: Time(0), lost: None };
        let mut driver = Driver {
            address: settings.nodes.addresses[opened.place].as_str().into(),
            settings,
            ttl: opened.ttl,
            id: opened.session,
            place: opened.place,
            shown_place,
            session: Session::default(),
            validity: watch::Sender::new(nothing),
            link: Link::None,
            replies: BTreeMap::new(),
            holders: BTreeMap::new(),
            commands,
        };
        driver.opened(opened);
        driver
    }

    async fn run(mut self) {
        loop {
            self.tend();
            let next = self.session.next_time();
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(Command::Close { reply }) => {
                        let closed = self.close().await;
                        // Whoever asked may not wait for it.
                        let _ = reply.send(closed);
                        return;
                    }
                    Some(command) => self.obey(command),
                    None => return drop(self.close().await),
                },
                arrival = self.link.next() => self.take(arrival),
                () = at(next) => {}
            }
        }
    }

    /// Does what is due, sends what is to be sent, and tells whoever waits.
    fn tend(&mut self) {
        let now = clock::now();
        match self.session.tend(now) {
            Verdict::Keep => {}
            Verdict::Close => {
                if let Link::Up(connection) = std::mem::replace(&mut self.link, Link::None) {
                    // If the node does not hear it, the session runs out.
                    tokio::spawn(tokio::time::timeout(FAREWELL, connection.close()));
                }
                self.give_up_session();
            }
            Verdict::Abandon => self.give_up_session(),
        }
        if self.session.wants() && matches!(self.link, Link::None) {
            self.open_from(self.settings.places_from(self.place), Duration::ZERO);
        }
        self.send();
        self.publish();
        self.answer();
    }

    /// The lease has run out: the session is over as far as this side is concerned.
    fn give_up_session(&mut self) {
        let why = self.session.loss().cloned().unwrap_or(Loss::Unrenewed);
        self.end(why);
    }

    fn send(&mut self) {
        let messages = self.session.take_messages();
        if let Link::Up(connection) = &mut self.link {
            for message in messages {
                // It was measured when it was asked for, so it fits.
                connection.queue(&message).ok();
            }
        }
    }

    fn publish(&mut self) {
        if let Some(validity) = self.session.validity() {
            self.validity.send_if_modified(|known| {
                let is_new = *known != validity;
                *known = validity;
                is_new
            });
        }
    }

    /// Tells those who have to give up what they hold, as certain of it as they are now and no more.
    fn tell_losses(&mut self) {
        for (ticket, why) in self.session.take_losses() {
            let validity = self.session.validity();
            if let (Some(holder), Some(validity)) = (self.holders.get(&ticket), validity) {
                holder.lose(Validity { lost: Some(Loss::Forced(why)), ..validity });
            }
        }
    }

    fn answer(&mut self) {
        self.tell_losses();
        for (ticket, outcome) in self.session.take_outcomes() {
            match (self.replies.remove(&ticket), outcome) {
                (Some(Reply::Ask(reply)), Outcome::Granted(fences)) => {
                    let (address, validity) =
                        (Arc::clone(&self.address), self.validity.subscribe());
                    let own = Arc::new(Own::default());
                    self.holders.insert(ticket, Arc::clone(&own));
                    let grant = Grant { fences, address, validity, own };
                    // Whoever has waited takes the request back when it does not wait any more.
                    let _ = reply.send(Ok(grant));
                }
                (Some(Reply::Ask(reply)), Outcome::Refused(why)) => {
                    let _ = reply.send(Err(why.into()));
                }
                (Some(Reply::Ask(reply)), _) => {
                    let _ =
                        reply.send(Err(ClientError::Silent { address: self.address.to_string() }));
                }
                (Some(Reply::Release(reply)), Outcome::Unconfirmed(why)) => {
                    let _ = reply.send(Err(ClientError::Lost(why)));
                }
                (Some(Reply::Release(reply)), _) => {
                    let _ = reply.send(Ok(()));
                }
                (None, _) => {}
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Ask { ticket, ask, reply } => {
                self.replies.insert(ticket, Reply::Ask(reply));
                self.session.ask(ticket, ask, clock::now());
            }
            Command::Release { ticket, reply } => {
                self.holders.remove(&ticket);
                if let Some(reply) = reply {
                    self.replies.insert(ticket, Reply::Release(reply));
                } else if let Some(Reply::Ask(_)) = self.replies.get(&ticket) {
                    self.replies.remove(&ticket);
                }
                self.session.release(ticket);
            }
            // It ends the loop that this is called from.
            Command::Close { .. } => {}
        }
    }

    fn take(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Message(Ok(ServerMessage::Over(why))) => self.over(why),
            Arrival::Message(Ok(message)) => self.hear(message),
            Arrival::Message(Err(error)) if error.is_broken() => {
                self.session.disconnected();
                self.resume_after(Duration::ZERO);
            }
            Arrival::Message(Err(_)) => self.over(Over::Protocol),
            Arrival::Opened(Ok(opened)) => self.opened(opened),
            Arrival::Opened(Err(error)) => {
                self.link = Link::None;
                self.fail(&error);
            }
            Arrival::Resumed(Ok(connection)) => {
                self.link = Link::Up(connection);
                self.session.resumed(clock::now());
            }
            Arrival::Resumed(Err(ClientError::Over(why))) => self.over(why),
            Arrival::Resumed(Err(ClientError::Unreachable { .. })) if self.may_leave() => {
                self.over(Over::Unknown);
            }
            Arrival::Resumed(Err(_)) => self.resume_after(PAUSE),
        }
    }

    /// Whether a node that nobody listens at is left for another one. Whoever holds something stays:
    /// it is held until the lease has run out.
    fn may_leave(&self) -> bool {
        !self.session.holds() && self.settings.nodes.addresses.len() > 1
    }

    fn hear(&mut self, message: ServerMessage) {
        if let ServerMessage::Refused { why, .. } = &message
            && !self.session.holds()
            && let Some(shorter) = self.settings.shorter_ttl(why, self.ttl)
        {
            self.ttl = shorter;
            return self.begin_anew();
        }
        if matches!(&message, ServerMessage::Refused { why: Refusal::Leaving, .. })
            && self.may_leave()
        {
            // Whoever waits asks again elsewhere.
            return self.over(Over::Stopping);
        }
        if let Err(why) = self.session.hear(message, clock::now()) {
            self.over(why);
        }
    }

    /// Closes the session, by which nothing is held, and asks in another one.
    fn begin_anew(&mut self) {
        if let Link::Up(connection) = std::mem::replace(&mut self.link, Link::None) {
            tokio::spawn(tokio::time::timeout(FAREWELL, connection.close()));
        }
        self.end(Loss::Over(Over::Closed));
    }

    fn opened(&mut self, opened: Opened) {
        let Opened { connection, session, ttl, certain, sent, place } = opened;
        (self.ttl, self.id, self.place) = (ttl, session, place);
        self.address = self.settings.nodes.addresses[place].as_str().into();
        self.shown_place.store(place, Ordering::Relaxed);
        self.link = Link::Up(connection);
        self.session.opened(ttl, certain, sent, clock::now());
        let validity = self.session.validity();
        // Guards of the session before this one keep what they were told last.
        self.validity =
            watch::Sender::new(validity.unwrap_or_else(|| self.validity.borrow().clone()));
    }

    /// The session is over, and it was not this side that ended it.
    fn over(&mut self, why: Over) {
        // Whoever was stopped for too long is told so, and not what the node made of it.
        self.session.tend(clock::now());
        self.publish();
        self.end(Loss::Over(why.clone()));
        if !self.session.wants() {
            return;
        }
        match why {
            // This node may serve again.
            Over::Expired | Over::Unknown | Over::Closed => {
                self.open_from(self.settings.places_from(self.place), PAUSE);
            }
            // This one does not.
            Over::Stopping | Over::Excluded(_) => {
                let mut others = self.settings.places_from(self.place);
                others.remove(0);
                if others.is_empty() {
                    return self.fail(&ClientError::Over(why));
                }
                self.open_from(others, Duration::ZERO);
            }
            Over::Protocol => self.fail(&ClientError::Over(why)),
        }
    }

    /// What the session held is lost; what waits in it goes on waiting.
    fn end(&mut self, why: Loss) {
        self.link = Link::None;
        if !self.session.is_open() {
            return;
        }
        self.session.ended(&why);
        self.validity.send_modify(|validity| validity.end(why, clock::now()));
    }

    fn open_from(&mut self, places: Vec<usize>, pause: Duration) {
        self.link = Link::open(&self.settings, places, self.ttl, pause);
    }

    fn resume_after(&mut self, pause: Duration) {
        self.link = Link::resume(&self.settings, self.place, self.id, pause);
    }

    /// Whoever waits does so no longer.
    fn fail(&mut self, why: &ClientError) {
        for ticket in self.session.dismiss() {
            if let Some(Reply::Ask(reply)) = self.replies.remove(&ticket) {
                let _ = reply.send(Err(why.clone()));
            }
        }
    }

    /// Ends the session. An error if the node has not confirmed in time that everything is free.
    async fn close(&mut self) -> Result<(), ClientError> {
        self.fail(&ClientError::Closed);
        self.validity.send_modify(|validity| {
            validity.end(Loss::Over(Over::Closed), clock::now());
        });
        let link = std::mem::replace(&mut self.link, Link::None);
        let address = self.address.to_string();
        let silent = |_| Err(ClientError::Silent { address });
        let closing = link.close(&self.settings, self.place, self.id);
        tokio::time::timeout(FAREWELL, closing).await.unwrap_or_else(silent)
    }
}

/// Waits until then, if that is ever.
async fn at(time: Option<Time>) {
    match time {
        Some(time) => clock::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
