//! What happens to locks, told to whoever watches.
//!
//! A step of a lock notes what happened, under the mutex of its shard, and no more than that; where
//! nobody watches it costs one load. A task takes the notes, finds out who the clients are, numbers
//! what happened and puts it into the queues of the subscribers. All of them are bounded: whoever
//! misses something is told so by a gap, and has to look at the locks anew.
//!
//! Changes at one member are told in the order in which they happened. Those of different members are
//! told as they arrive: the fences say in which order a lock was granted.

mod group;
pub(crate) mod merged;
mod queue;
mod recent;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catraca_client::frame;
use catraca_group::{Change as Happened, Client, Event, PeerMessage, RequestId, Run};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;

use self::group::{BEAT, Message, Messages, PeerChanges};
use self::queue::Queue;
use self::recent::Recent;
use crate::engine::Engine;
use crate::mutex::hold;

/// So many notes wait for the task that passes them on.
pub(crate) const MOST_NOTES: usize = 16 << 10;
/// After the last subscriber has gone, everything is kept for so long for one that comes back.
const LINGER: Duration = Duration::from_secs(30);
/// So many messages of other members wait for the task that looks at them.
const MOST_HEARD: usize = 4096;
/// What the program that runs the node is called.
const PROGRAM: &str = "(node)";

/// Something that happened to a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Larger than that of every change that this run of the node has told of before.
    pub(crate) number: u64,
    /// When, by the clock on the wall of the member, in milliseconds since 1970.
    pub(crate) unix_millis: u64,
    /// At which member.
    pub(crate) member: String,
    pub(crate) what: What,
    /// The lock.
    pub(crate) name: String,
    /// How many may be inside.
    pub(crate) permits: u32,
    /// That of whoever is inside, or was.
    pub(crate) fence: Option<u64>,
    /// What the client calls itself; the owner of a durable hold.
    pub(crate) label: String,
    /// Who it has shown to be, at this member; empty if nobody knows. For the audit log alone.
    pub(crate) identity: String,
}

/// Who has made a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct By {
    pub(crate) label: String,
    pub(crate) identity: String,
}

impl From<Client<'_>> for By {
    fn from(client: Client<'_>) -> Self {
        By { label: client.label.to_string(), identity: client.identity.to_string() }
    }
}

/// What can happen to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum What {
    /// A client begins to wait.
    Waits,
    /// A client waits no more, and has not got it.
    GivesUp,
    Granted,
    Released,
    /// It is not held any more, although it was not released: its session is over, or the lease of its
    /// member.
    Lost,
    /// Somebody has released it by force.
    Forced,
    /// Something that the interface for Git says of a lock, as JSON in the place of the label. Only those
    /// are told who ask for that.
    Git,
}

impl What {
    /// How interfaces call it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            What::Waits => "waits",
            What::GivesUp => "gives-up",
            What::Granted => "granted",
            What::Released => "released",
            What::Lost => "lost",
            What::Forced => "forced",
            What::Git => "git",
        }
    }
}

/// What a subscriber is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Change(Arc<Change>),
    /// Something may have happened of which nobody tells: look at the locks anew. Whoever comes back
    /// after this number has missed nothing since.
    Gap(u64),
}

/// What a step of a lock notes.
#[derive(Debug)]
enum Note {
    Change {
        what: What,
        fence: Option<u64>,
        noted: Noted,
    },
    /// A request is about to end, and this is who made it.
    By(RequestId, Box<By>),
    /// Something that the interface for Git says of a lock.
    Said {
        unix_millis: u64,
        name: Box<str>,
        text: Box<str>,
    },
}

#[derive(Debug)]
struct Noted {
    unix_millis: u64,
    name: Box<str>,
    permits: u32,
    request: Option<RequestId>,
}

#[derive(Default)]
struct Notes {
    notes: Vec<Note>,
    /// How many there was no room for.
    dropped: u64,
}

/// Somebody who is told.
struct Subscriber {
    prefix: String,
    /// Whether it wants to know what the interface for Git says, and nothing else; or everything else.
    is_for_git: bool,
    queue: Arc<Queue>,
}

impl Subscriber {
    fn wants(&self, change: &Change) -> bool {
        change.name.starts_with(&self.prefix) && self.is_for_git == (change.what == What::Git)
    }
}

/// Who is told, and what was told last.
struct Audience {
    recent: Recent,
    subscribers: BTreeMap<u64, Subscriber>,
    last_subscriber: u64,
    /// Since when there is no subscriber.
    idle_since: Option<Instant>,
    is_closed: bool,
}

/// What happens to locks, and who wants to know.
pub(crate) struct Changes {
    member: String,
    /// Looked at in every step of a lock.
    is_watched: AtomicBool,
    /// Whether there is an audit log, which wants to know everything.
    is_audited: bool,
    notes: Mutex<Notes>,
    /// There are notes, or the audience has changed.
    noted: Notify,
    audience: Mutex<Audience>,
    /// What other members have said and nobody has looked at.
    heard: Mutex<VecDeque<(Run, Message)>>,
    peers: Mutex<PeerChanges>,
}

impl Changes {
    /// Of a member, in this run of it.
    pub(crate) fn new(member: &str, incarnation: u64, is_audited: bool) -> Self {
        Changes {
            member: member.to_string(),
            is_watched: AtomicBool::new(is_audited),
            is_audited,
            notes: Mutex::default(),
            noted: Notify::new(),
            audience: Mutex::new(Audience {
                recent: Recent::new(unix_micros(), incarnation),
                subscribers: BTreeMap::new(),
                last_subscriber: 0,
                idle_since: None,
                is_closed: false,
            }),
            heard: Mutex::default(),
            peers: Mutex::default(),
        }
    }

    /// Whether somebody wants to know what happens.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// Something happened to a lock. This is called under the mutex of its shard.
    #[cold]
    pub(crate) fn note(&self, event: Event<'_>) {
        let Event { key, names, request, change, .. } = event;
        let (what, fence) = match change {
            Happened::Waits => (What::Waits, None),
            Happened::GivesUp => (What::GivesUp, None),
            Happened::Granted(fence) => (What::Granted, Some(fence.0)),
            Happened::Released(fence) => (What::Released, Some(fence.0)),
            Happened::Lost(fence) => (What::Lost, Some(fence.0)),
            Happened::Forced(fence) => (What::Forced, Some(fence.0)),
        };
        let unix_millis = unix_millis();
        let note = |name: &str| {
            let noted = Noted { unix_millis, name: name.into(), permits: key.permits, request };
            self.push(Note::Change { what, fence, noted });
        };
        match names {
            [] => note(key.name),
            names => names.iter().for_each(|name| note(name)),
        }
    }

    /// A request is about to end, and this is who made it.
    #[cold]
    pub(crate) fn identify(&self, request: RequestId, client: Client<'_>) {
        self.push(Note::By(request, Box::new(client.into())));
    }

    /// The interface for Git says something of a lock.
    pub(crate) fn say(&self, name: &str, text: String) {
        if self.is_watched() {
            let (unix_millis, name) = (unix_millis(), name.into());
            self.push(Note::Said { unix_millis, name, text: text.into() });
        }
    }

    fn push(&self, note: Note) {
        let mut notes = hold(&self.notes);
        if notes.notes.len() >= MOST_NOTES {
            notes.dropped += 1;
            return;
        }
        let is_first = notes.notes.is_empty();
        notes.notes.push(note);
        drop(notes);
        if is_first {
            self.noted.notify_one();
        }
    }

    /// Whoever reads this is told what happens from now on to the locks whose names begin with
    /// `prefix`; and what has happened after the change with this number, if it is still known.
    pub(crate) fn subscribe(self: &Arc<Self>, prefix: String, after: Option<u64>) -> Subscription {
        self.subscribe_to(false, prefix, after)
    }

    /// The same of what the interface for Git says.
    pub(crate) fn subscribe_to_git(
        self: &Arc<Self>,
        prefix: String,
        after: Option<u64>,
    ) -> Subscription {
        self.subscribe_to(true, prefix, after)
    }

    fn subscribe_to(
        self: &Arc<Self>,
        is_for_git: bool,
        prefix: String,
        after: Option<u64>,
    ) -> Subscription {
        let mut audience = hold(&self.audience);
        if !self.is_watched.swap(true, Ordering::Relaxed) {
            // Nobody has noted what happened before.
            audience.recent.skip();
        }
        audience.idle_since = None;
        // The others have to be asked.
        self.noted.notify_one();
        let queue = Arc::new(Queue::default());
        let subscriber = Subscriber { prefix, is_for_git, queue: Arc::clone(&queue) };
        match after.map(|after| audience.recent.after(after)) {
            None => {}
            Some(Ok(missed)) => {
                let wanted = missed.filter(|change| subscriber.wants(change));
                wanted.for_each(|change| queue.push(change));
            }
            Some(Err(last)) => queue.gap(last),
        }
        if audience.is_closed {
            queue.close();
        }
        audience.last_subscriber += 1;
        let id = audience.last_subscriber;
        audience.subscribers.insert(id, subscriber);
        Subscription { changes: Arc::clone(self), id, queue }
    }

    fn unsubscribe(&self, id: u64) {
        let mut audience = hold(&self.audience);
        audience.subscribers.remove(&id);
        if audience.subscribers.is_empty() {
            audience.idle_since = Some(Instant::now());
            self.noted.notify_one();
        }
    }

    /// The node stops: subscribers are told what is known, and nothing after that.
    pub(crate) fn close(&self) {
        let mut audience = hold(&self.audience);
        audience.is_closed = true;
        audience.subscribers.values().for_each(|it| it.queue.close());
    }

    /// Takes the notes, and how many there was no room for.
    fn take(&self) -> (Vec<Note>, u64) {
        let mut notes = hold(&self.notes);
        (std::mem::take(&mut notes.notes), std::mem::take(&mut notes.dropped))
    }

    /// Numbers a change and tells it.
    fn tell(&self, change: Change) {
        let mut audience = hold(&self.audience);
        let change = audience.recent.push(change);
        for subscriber in audience.subscribers.values().filter(|it| it.wants(&change)) {
            subscriber.queue.push(&change);
        }
    }

    /// Something may have happened of which nobody tells.
    fn tell_gap(&self) {
        let mut audience = hold(&self.audience);
        let number = audience.recent.skip();
        audience.subscribers.values().for_each(|it| it.queue.gap(number));
    }

    /// Another member says something. What there is no room for shows as a gap.
    pub(crate) fn hear(&self, from: &Run, body: &[u8]) {
        let Ok(message) = frame::read::<Message>(body) else { return };
        let mut heard = hold(&self.heard);
        if heard.len() < MOST_HEARD {
            heard.push_back((from.clone(), message));
            self.noted.notify_one();
        }
    }

    /// Whether there is somebody here who wants to know, or may come back.
    fn is_wanted(&self) -> bool {
        let audience = hold(&self.audience);
        !audience.is_closed && (!audience.subscribers.is_empty() || audience.idle_since.is_some())
    }

    /// Looks at the other members, and at what they have said.
    fn look_at_peers(&self, peers: &[Run], out: &mut Messages) {
        let (now, is_wanted) = (Instant::now(), self.is_wanted());
        let heard = std::mem::take(&mut *hold(&self.heard));
        for (from, message) in heard {
            if message == Message::Watch && !self.is_watched.swap(true, Ordering::Relaxed) {
                hold(&self.audience).recent.skip();
            }
            let heard = hold(&self.peers).hear(&from, message, now, out);
            if heard.has_gap {
                self.tell_gap();
            }
            heard.changes.into_iter().for_each(|told| self.tell(told.at(&from.name)));
        }
        if hold(&self.peers).look(peers, is_wanted, now, out) {
            self.tell_gap();
        }
    }

    /// When the other members are to be looked at again, if ever.
    fn next_look(&self) -> Option<Instant> {
        let is_needed = self.is_wanted() || hold(&self.peers).has_watchers();
        is_needed.then(|| Instant::now() + BEAT)
    }

    /// When nobody need be waited for any more who may come back.
    fn linger(&self) -> Option<Instant> {
        hold(&self.audience).idle_since.map(|since| since + LINGER)
    }

    /// Nothing is noted any more, if there is no subscriber.
    fn rest(&self) {
        let mut audience = hold(&self.audience);
        audience.idle_since = None;
        let is_wanted = !audience.subscribers.is_empty() || self.is_audited;
        if !is_wanted && !hold(&self.peers).has_watchers() {
            self.is_watched.store(false, Ordering::Relaxed);
        }
    }
}

/// Tells a subscriber what happens.
pub(crate) struct Subscription {
    changes: Arc<Changes>,
    id: u64,
    queue: Arc<Queue>,
}

impl Subscription {
    /// What happens next; nothing once the node has stopped. Nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<Item> {
        self.queue.next().await
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.changes.unsubscribe(self.id);
    }
}

/// Passes on what is noted, for as long as the node runs.
pub(crate) async fn pass_on(engine: Arc<Engine>) {
    let changes = engine.watching();
    loop {
        let linger = changes.linger();
        tokio::select! {
            () = changes.noted.notified() => {}
            () = at(linger) => changes.rest(),
            () = at(changes.next_look()) => {}
        }
        pass_on_now(&engine);
    }
}

/// Passes on what is noted.
pub(crate) fn pass_on_now(engine: &Engine) {
    let changes = engine.watching();
    let mut out = Messages::new();
    changes.look_at_peers(&engine.peers_in_view(), &mut out);
    let (notes, dropped) = changes.take();
    let happened = resolve(engine, notes);
    hold(&changes.peers).share(&happened, Instant::now(), &mut out);
    for change in happened {
        if let Some(audit) = engine.audit() {
            audit.write_change(&change);
        }
        changes.tell(change);
    }
    if dropped > 0 {
        if let Some(audit) = engine.audit() {
            audit.miss(dropped);
        }
        hold(&changes.peers).miss();
        changes.tell_gap();
    }
    send(engine, out);
    if changes.linger().is_none() {
        // Other members may have lost interest.
        changes.rest();
    }
}

/// Sends messages to other members. One that takes nothing any more misses them, and notices.
fn send(engine: &Engine, messages: Messages) {
    for (run, message) in messages {
        let Some(link) = engine.links.known(&run).filter(|link| !link.is_full()) else { continue };
        let pushed = frame::encode(&message).and_then(|body| link.push(PeerMessage::Aside(&body)));
        match pushed {
            Ok(()) => link.flush(),
            Err(error) => tracing::error!(%error, "a message is too long to be sent"),
        }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The changes that were noted, with their clients. Numbers are given later.
fn resolve(engine: &Engine, notes: Vec<Note>) -> Vec<Change> {
    let mut known: HashMap<RequestId, By> = HashMap::new();
    let mut unknown: Vec<RequestId> = Vec::new();
    for note in &notes {
        match note {
            Note::By(request, by) => {
                known.insert(*request, (**by).clone());
            }
            Note::Change { noted, .. } => unknown.extend(noted.request),
            Note::Said { .. } => {}
        }
    }
    unknown.retain(|request| !known.contains_key(request));
    engine.identify(&unknown, &mut known);
    let change = |note| match note {
        Note::By(..) => None,
        Note::Said { unix_millis, name, text } => Some(Change {
            number: 0,
            unix_millis,
            member: engine.watching().member.clone(),
            what: What::Git,
            name: name.into_string(),
            permits: 1,
            fence: None,
            label: text.into_string(),
            identity: String::new(),
        }),
        Note::Change { what, fence, noted } => {
            let Noted { unix_millis, name, permits, request } = noted;
            let By { label, identity } = match request {
                Some(request) => known.get(&request).cloned().unwrap_or_default(),
                None => By { label: PROGRAM.to_string(), identity: String::new() },
            };
            let (member, name) = (engine.watching().member.clone(), name.into_string());
            let number = 0;
            Some(Change {
                number,
                unix_millis,
                member,
                what,
                name,
                permits,
                fence,
                label,
                identity,
            })
        }
    };
    notes.into_iter().filter_map(change).collect()
}

/// The time by the clock on the wall, in milliseconds since 1970.
pub(crate) fn unix_millis() -> u64 {
    unix_micros() / 1000
}

/// The time by the clock on the wall, in microseconds since 1970.
fn unix_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    since.as_micros() as u64
}

#[cfg(test)]
mod tests;
