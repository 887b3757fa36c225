//! Serves the clients of other processes.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use catraca_client::clock;
use catraca_client::frame::{self, LONGEST_CLIENT_FRAME};
use catraca_client::protocol::{ClientMessage, Over, RosterChange, ServerMessage};
use catraca_group::{Acquire, Owner, Page, Query, Refusal};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{oneshot, watch};
use tokio::task::coop;

use super::outbox::Outbox;
use super::permission;
use super::quota::{self, Bytes, Quota};
use crate::access::{Access, Denied, Identity};
use crate::engine::Engine;
use crate::gateway::Gateway;
use crate::metrics::Interface;
use crate::patience::{self, IDLE_CHUNK, USUAL_BUFFER, at, read_some, too_slow};

/// With so many messages unread, nothing more is heard from a client.
pub(crate) const MOST_UNREAD: usize = 1024;
/// Or with so many bytes of them.
pub(crate) const MOST_UNREAD_BYTES: usize = 256 << 10;
/// A client waits for so many answers at a time that take long: of durable holds, and of what administers a group.
pub(crate) const MOST_UNDER_WAY: usize = 1024;
/// A client waits for so many lists at a time. They are made one after the other.
pub(crate) const MOST_LISTS: usize = 16;
/// A message that has begun comes to its end in this time, or not at all.
pub(crate) const MESSAGE_TIME: Duration = Duration::from_secs(10);
/// Who has no session and says nothing for so long is not needed.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(30);

/// So much is written at once.
const CHUNK: usize = 4 << 10;

/// Where clients are served.
pub(crate) struct Server {
    engine: Arc<Engine>,
    gateway: Gateway,
    access: Arc<Access>,
    quota: Arc<Quota>,
}

impl Server {
    pub(crate) fn new(engine: Arc<Engine>, gateway: Gateway, access: Arc<Access>) -> Self {
        Server { engine, gateway, access, quota: Arc::default() }
    }

    /// What all clients take together, over whichever interface.
    pub(crate) fn quota(&self) -> Arc<Quota> {
        Arc::clone(&self.quota)
    }

    /// A place for a connection from `machine`, if there is room.
    pub(crate) fn enter(&self, machine: IpAddr) -> Option<quota::Place> {
        self.quota.enter(machine)
    }

    /// Serves one client until it hangs up, or is not known any more.
    pub(crate) async fn serve(
        &self,
        identity: Identity,
        reader: impl AsyncRead + Unpin,
        writer: impl AsyncWrite + Unpin,
        place: Option<quota::Place>,
    ) {
        let outbox = Arc::new(Outbox::default());
        let mut connection = Connection {
            engine: &self.engine,
            identity,
            readings: self.access.readings(),
            quota: &self.quota,
            gateway: &self.gateway,
            outbox: Arc::clone(&outbox),
            place,
            owner: None,
            page: None,
            lists: VecDeque::new(),
            under_way: 0,
            has_asked: false,
        };
        if let Err(error) = connection.run(reader, writer).await {
            tracing::debug!(%error, "a client went away");
        }
    }
}

/// One client.
struct Connection<'a> {
    engine: &'a Arc<Engine>,
    /// Who it is.
    identity: Identity,
    /// Tells when it may not be known any more.
    readings: watch::Receiver<u64>,
    quota: &'a Quota,
    gateway: &'a Gateway,
    outbox: Arc<Outbox>,
    place: Option<quota::Place>,
    /// Its session, if it has one.
    owner: Option<Owner>,
    /// A page that it has asked for and that has not come yet.
    page: Option<oneshot::Receiver<Page>>,
    /// Those that it wants to have after that one.
    lists: VecDeque<Query>,
    /// For how many answers it waits that take long. It is told each of them once; see [`takes_long`].
    under_way: usize,
    /// Whether it has asked anything about durable holds.
    has_asked: bool,
}

impl Drop for Connection<'_> {
    /// Also where the task is ended from outside.
    fn drop(&mut self) {
        self.outbox.close();
        if self.has_asked {
            self.engine.cancel_durables(&self.outbox);
        }
        if let Some(owner) = self.owner {
            self.engine.detach(owner, &self.outbox);
        }
    }
}

impl Connection<'_> {
    async fn run(
        &mut self,
        mut reader: impl AsyncRead + Unpin,
        mut writer: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let (outbox, quota) = (Arc::clone(&self.outbox), self.quota);
        let metrics = self.engine.metrics();
        let _connected = metrics.connect(Interface::Native);
        let mut bytes = Vec::new();
        let mut unfinished = quota.unfinished();
        let mut begun = None;
        loop {
            // When all is written, those messages have their turn that were not listened to before.
            while self.answer_all(&mut bytes)? {
                begun = None;
                if !self.write(&mut writer).await? {
                    return Ok(());
                }
                coop::consume_budget().await;
            }
            if !self.write(&mut writer).await? {
                return Ok(());
            }
            let is_unfinished = self.is_unfinished(&bytes, &mut unfinished)?;
            begun = is_unfinished.then(|| begun.unwrap_or_else(|| deadline(MESSAGE_TIME)));
            let waits = self.under_way > 0 || self.page.is_some();
            let is_idle = self.owner.is_none() && !waits;
            let limit = begun.or_else(|| is_idle.then(|| deadline(IDLE_TIME)));
            // Behind a question that waits for its turn there can be others, but not any number.
            let is_full = self.lists.len() >= MOST_LISTS;
            let most = if is_full { IDLE_CHUNK } else { LONGEST_CLIENT_FRAME };
            let has_room = bytes.len() <= most;
            tokio::select! {
                read = read_some(&mut reader, &mut bytes), if has_room => {
                    let read = read?;
                    if read == 0 {
                        return Ok(());
                    }
                    metrics.receive(Interface::Native, read);
                }
                () = outbox.filled() => {}
                page = page(&mut self.page) => self.tell_page(page),
                Ok(()) = self.readings.changed() => {
                    if !self.identity.is_known() {
                        // Its session ends as that of a client that is cut off: no lock is anybody
                        // else's before this client knows.
                        return Err(io::Error::other(Denied::UnknownToken));
                    }
                }
                () = at(limit) => return Err(too_slow()),
                () = makes_way(self.place.as_ref()) => {
                    return Err(io::Error::other("it makes way for others"));
                }
            }
        }
    }

    /// Whether a message has begun that has not come to its end. Its bytes count.
    fn is_unfinished(&self, bytes: &[u8], unfinished: &mut Bytes<'_>) -> io::Result<bool> {
        let is_whole = frame::split(bytes, LONGEST_CLIENT_FRAME).map_err(invalid)?.is_some();
        let is_unfinished = !bytes.is_empty() && !is_whole;
        let count = if is_unfinished { bytes.len() } else { 0 };
        match unfinished.set(count, quota::MOST_UNFINISHED) {
            true => Ok(is_unfinished),
            false => Err(io::Error::other("too many messages have not come to their end")),
        }
    }

    /// Answers the messages that have come, as long as the client reads. Returns whether there was
    /// one.
    fn answer_all(&mut self, bytes: &mut Vec<u8>) -> io::Result<bool> {
        let mut rest = &bytes[..];
        // A client that does not read what it is told is not listened to.
        while !self.outbox.has_more_than(MOST_UNREAD, MOST_UNREAD_BYTES) {
            let split = frame::split(rest, LONGEST_CLIENT_FRAME).map_err(invalid)?;
            let Some((body, after)) = split else { break };
            let message = frame::read(body).map_err(invalid)?;
            // A page is long: there is never more than one on its way. What is behind it is not held up by that,
            // as a client has to renew its session.
            if matches!(message, ClientMessage::List(_)) && self.lists.len() >= MOST_LISTS {
                break;
            }
            rest = after;
            self.answer(message);
        }
        let taken = bytes.len() - rest.len();
        bytes.drain(..taken);
        if bytes.is_empty() && bytes.capacity() > USUAL_BUFFER {
            *bytes = Vec::new();
        }
        Ok(taken > 0)
    }

    fn answer(&mut self, mut message: ClientMessage) {
        permission::fill_in_owner(&self.identity, &mut message);
        match permission::check(&self.identity, &message) {
            Ok(()) if self.refuse_one_more(&message) => {}
            Ok(()) => self.do_as_asked(message),
            Err(why) => self.deny(&message, why),
        }
    }

    /// Says why something is not done.
    fn deny(&mut self, message: &ClientMessage, why: Denied) {
        tracing::debug!(client = %self.identity.name, %why, "a request was denied");
        self.engine.deny(Some(&self.identity.name), &why.to_string());
        let why = Refusal::Denied(why.to_string());
        match message {
            ClientMessage::AcquireDurable { request, .. }
            | ClientMessage::Unlock { request, .. } => {
                self.answer_at_once(ServerMessage::Durable { request: *request, result: Err(why) });
            }
            ClientMessage::Acquire { request, .. } => {
                self.outbox.push(ServerMessage::Refused { request: *request, why });
            }
            _ => self.outbox.push(ServerMessage::Refused { request: 0, why }),
        }
    }

    /// Gives an answer without delay that takes long otherwise.
    fn answer_at_once(&mut self, answer: ServerMessage) {
        self.under_way += usize::from(takes_long(&answer));
        self.outbox.push(answer);
    }

    /// Refuses what takes long to a client that waits for too much of it already. Returns false where it does not.
    fn refuse_one_more(&mut self, message: &ClientMessage) -> bool {
        let why = Refusal::TooManyRequests;
        let answer = match message {
            _ if self.under_way < MOST_UNDER_WAY => return false,
            ClientMessage::AcquireDurable { request, .. }
            | ClientMessage::Unlock { request, .. } => {
                ServerMessage::Durable { request: *request, result: Err(why) }
            }
            ClientMessage::ForceRelease { .. } => ServerMessage::Forced(Err(why)),
            ClientMessage::ChangeRoster(_) | ClientMessage::Kick { .. } | ClientMessage::Leave => {
                ServerMessage::Done(Err(why.to_string()))
            }
            _ => return false,
        };
        self.answer_at_once(answer);
        true
    }

    fn do_as_asked(&mut self, message: ClientMessage) {
        let engine = self.engine;
        match (message, self.owner) {
            (ClientMessage::Open { mut who, ttl }, None) => {
                who.identity = self.identity_name();
                let machine = self.place.as_ref().map(quota::Place::machine);
                let machine = machine.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
                match engine.open_session(machine, who, ttl) {
                    Ok((session, certain)) => {
                        self.attach(Owner(session.number));
                        self.outbox.push(ServerMessage::Opened { session, certain });
                    }
                    Err(why) => self.outbox.push(ServerMessage::Refused { request: 0, why }),
                }
            }
            (ClientMessage::Resume { session }, None) => {
                let owner = Owner(session.number);
                let outbox = &self.outbox;
                let resumed = engine.serve(|service, parts, out| {
                    let resumed = service.resume(session, parts, out);
                    if resumed.is_ok() {
                        // It is told so before anything that it has missed.
                        let certain = service.certain(clock::now());
                        outbox.push(ServerMessage::Opened { session, certain });
                        engine.attach(owner, Arc::clone(outbox));
                    }
                    resumed
                });
                match resumed {
                    Ok(owner) => self.keep(owner),
                    Err(why) => self.outbox.push(ServerMessage::Over(why)),
                }
            }
            (ClientMessage::Renew, Some(owner)) => {
                let renewed = engine.serve(|service, parts, out| {
                    service.renew(owner, parts, out)?;
                    Ok(service.certain(clock::now()))
                });
                self.outbox.push(match renewed {
                    Ok(certain) => ServerMessage::Renewed { certain },
                    Err(why) => ServerMessage::Over(why),
                });
            }
            (ClientMessage::Acquire { request, names, permits, wait }, Some(owner)) => {
                let asked = Acquire { names, permits, wait };
                engine.serve(|service, parts, out| {
                    service.request(owner, request, asked, parts, out);
                });
            }
            (ClientMessage::Release { request }, Some(owner)) => {
                engine.serve(|service, parts, out| {
                    service.release_request(owner, request, parts, out);
                });
            }
            (ClientMessage::Close, Some(owner)) => {
                engine.serve(|service, parts, out| service.close(owner, parts, out));
            }
            (ClientMessage::List(query), _) if self.page.is_some() => self.lists.push_back(query),
            (ClientMessage::List(query), _) => self.page = Some(self.list(query)),
            (ClientMessage::Status, _) => {
                self.outbox.push(ServerMessage::Status(Box::new(engine.status())));
            }
            (ClientMessage::AcquireDurable { request, asked }, _) => {
                self.under_way += 1;
                self.has_asked = true;
                engine.acquire_durable(asked, self.identity_name(), &self.outbox, request);
            }
            (ClientMessage::Unlock { request, unlock }, _) => {
                self.under_way += 1;
                self.has_asked = true;
                engine.unlock(unlock, &self.identity.name, &self.outbox, request);
            }
            (ClientMessage::Describe, _) => {
                let description = Box::new(engine.describe());
                self.outbox.push(ServerMessage::Description(description));
            }
            (ClientMessage::ChangeRoster(change), _) => self.change_roster(change),
            (ClientMessage::ForceRelease { name, fences, by }, _) => {
                // It takes long, if whoever holds the lock does not answer.
                self.under_way += 1;
                let (engine, outbox) = (Arc::clone(engine), Arc::clone(&self.outbox));
                tokio::spawn(async move {
                    let forced = engine.force_release(&name, &fences, &by, "").await;
                    outbox.push(ServerMessage::Forced(forced));
                });
            }
            (ClientMessage::Kick { member, by }, _) => {
                self.under_way += 1;
                let (engine, outbox) = (Arc::clone(engine), Arc::clone(&self.outbox));
                tokio::spawn(async move {
                    outbox.push(ServerMessage::Done(engine.kick(&member, &by).await));
                });
            }
            (ClientMessage::Leave, _) => {
                tracing::info!("this node was told to leave its group");
                // Others have to vote in its place first.
                self.under_way += 1;
                let (engine, outbox) = (Arc::clone(engine), Arc::clone(&self.outbox));
                tokio::spawn(async move {
                    outbox.push(ServerMessage::Done(crate::registry::leave(&engine).await));
                });
            }
            // A session is opened once and used afterwards; anything else is not our client's.
            (ClientMessage::Open { .. } | ClientMessage::Resume { .. }, Some(_))
            | (
                ClientMessage::Renew
                | ClientMessage::Acquire { .. }
                | ClientMessage::Release { .. }
                | ClientMessage::Close,
                None,
            ) => self.outbox.push(ServerMessage::Over(Over::Protocol)),
        }
    }

    /// Who it is, for holds: whatever it says of itself does not count.
    fn identity_name(&self) -> String {
        self.identity.known_name().unwrap_or_default().to_string()
    }

    /// Changes who belongs to the group, and says when that is done.
    fn change_roster(&mut self, change: RosterChange) {
        self.under_way += 1;
        let (engine, outbox) = (Arc::clone(self.engine), Arc::clone(&self.outbox));
        let by = self.identity.name.clone();
        tokio::spawn(async move {
            outbox.push(ServerMessage::Done(engine.change_roster(change, by).await));
        });
    }

    /// The connection has a session from now on.
    fn attach(&mut self, owner: Owner) {
        self.engine.attach(owner, Arc::clone(&self.outbox));
        self.keep(owner);
    }

    fn keep(&mut self, owner: Owner) {
        self.owner = Some(owner);
        if let Some(place) = &self.place {
            place.stay();
        }
    }

    /// Asks for a page, when it is this client's turn.
    fn list(&self, query: Query) -> oneshot::Receiver<Page> {
        let (gateway, identity) = (self.gateway.clone(), self.identity.clone());
        let (mut tell, page) = oneshot::channel();
        tokio::spawn(async move {
            let make = |query| async { gateway.page(query).await.ok() };
            let made = tokio::select! {
                made = identity.visible(query, make) => made,
                // The client is gone.
                () = tell.closed() => return,
            };
            if let Some(page) = made {
                tell.send(page).ok();
            }
        });
        page
    }

    fn tell_page(&mut self, page: Option<Page>) {
        self.page = self.lists.pop_front().map(|next| self.list(next));
        self.outbox.push(match page {
            Some(page) => ServerMessage::Page(page),
            // The node stops.
            None => ServerMessage::Refused { request: 0, why: Refusal::Stopped },
        });
    }

    /// Writes everything that there is to say. Returns false after the last message.
    async fn write(&mut self, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<bool> {
        let mut bytes = Vec::new();
        while let Some(message) = self.outbox.pop() {
            self.under_way = self.under_way.saturating_sub(usize::from(takes_long(&message)));
            // A page that is too long is cut by whoever makes it.
            frame::write(&message, &mut bytes).map_err(invalid)?;
            let is_last = matches!(message, ServerMessage::Over(_));
            if is_last || bytes.len() >= CHUNK || self.outbox.len() == 0 {
                patience::write(writer, &bytes, self.quota).await?;
                self.engine.metrics().send(Interface::Native, bytes.len());
                bytes.clear();
            }
            // After the end of its session there is nothing that a client could be told.
            if is_last {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether this is the answer to something that takes long.
fn takes_long(message: &ServerMessage) -> bool {
    matches!(
        message,
        ServerMessage::Durable { .. } | ServerMessage::Forced(_) | ServerMessage::Done(_)
    )
}

/// The page that was asked for, when it comes; nothing if it never will.
async fn page(waiting: &mut Option<oneshot::Receiver<Page>>) -> Option<Page> {
    match waiting {
        Some(page) => page.await.ok(),
        None => std::future::pending().await,
    }
}

async fn makes_way(place: Option<&quota::Place>) {
    match place {
        Some(place) => place.makes_way().await,
        None => std::future::pending().await,
    }
}

fn deadline(after: Duration) -> tokio::time::Instant {
    tokio::time::Instant::now() + after
}

fn invalid(error: frame::FrameError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests;
