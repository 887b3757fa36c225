//! Sessions: what a client of another process has asked for and holds, and when that ends.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::lock::Owner;
use crate::node::Running;
use crate::protocol::{Denial, Tell, Wait, Who};
use crate::request::{Guard, LockError, Names, Request};

/// A session has at most so many requests at a time.
pub(crate) const MOST_REQUESTS: usize = 100_000;
/// A time to live is not shorter, as it could not be kept up, and not longer, as it would be none.
const TTL_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(86_400);
/// A node that stops waits no longer for its clients to hear of it.
const FAREWELL: Duration = Duration::from_secs(1);
/// What a client says of itself is cut to so many characters.
const LONGEST_LABEL: usize = 255;

/// A node has at most so many sessions.
pub(crate) const MOST_SESSIONS: usize = 100_000;
/// So many words can wait for a client to read them: for each of its requests that it was granted,
/// once more after it came back, and that it was released; and what it asked for besides.
pub(crate) const MOST_WORDS: usize = 4 * MOST_REQUESTS;

/// Where a session's words go while its client is connected.
pub(crate) type Voice = mpsc::Sender<Tell>;

/// How many words wait to be read.
pub(crate) fn unread(voice: &Voice) -> usize {
    voice.max_capacity() - voice.capacity()
}

enum Pending {
    /// The task that waits for the locks.
    Waiting(AbortHandle),
    /// The locks, and a fence for each name.
    Held(Guard, Vec<u64>),
}

struct State {
    requests: BTreeMap<u32, Pending>,
    voice: Option<Voice>,
    deadline: Option<Instant>,
    /// Ends the session when the time comes.
    watch: Option<AbortHandle>,
    over: bool,
}

/// One client.
pub(crate) struct Session {
    pub(crate) owner: Owner,
    pub(crate) who: Who,
    pub(crate) ttl: Option<Duration>,
    running: Arc<Running>,
    state: Mutex<State>,
}

impl Session {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client is there, and is spoken to through `voice`.
    pub(crate) fn attach(&self, voice: Voice) {
        let mut state = self.state();
        state.voice = Some(voice);
        // What was granted while nobody listened is said again; the client knows what it knows.
        let State { requests, voice: Some(voice), .. } = &*state else { return };
        for (&request, pending) in requests {
            if let Pending::Held(_, fences) = pending {
                let fences = fences.clone();
                // The connection may be gone again already.
                let _ = voice.try_send(Tell::Granted { request, fences });
            }
        }
    }

    /// The connection behind `voice` is gone. Returns whether the session goes on without it.
    pub(crate) fn detach(&self, voice: &Voice) -> bool {
        // The client may have come back over another connection before this one was given up.
        self.state().voice.take_if(|present| present.same_channel(voice));
        self.ttl.is_some()
    }

    /// A sign of life. Returns false if it comes too late.
    pub(crate) fn renew(&self) -> bool {
        let mut state = self.state();
        if !state.over {
            state.deadline = self.ttl.map(|ttl| Instant::now() + ttl);
        }
        !state.over
    }

    /// When the session ends unless a sign of life comes; nothing if that time has come, or the
    /// session is over for another reason. From then on signs of life come too late.
    fn ends(&self) -> Option<Instant> {
        let mut state = self.state();
        let deadline = state.deadline.filter(|deadline| Instant::now() < *deadline && !state.over);
        state.over |= deadline.is_none();
        deadline
    }

    /// How many words wait for the client.
    #[cfg(test)]
    pub(crate) fn unread(&self) -> usize {
        self.state().voice.as_ref().map_or(0, unread)
    }

    fn say(&self, tell: Tell) {
        if let Some(voice) = &self.state().voice {
            // The connection may be gone; then nobody listens.
            let _ = voice.try_send(tell);
        }
    }

    /// Asks for locks on behalf of the client.
    pub(crate) fn lock(
        self: &Arc<Self>,
        request: u32,
        names: Vec<String>,
        permits: u32,
        wait: Wait,
    ) {
        let mut state = self.state();
        match state.requests.get(&request) {
            // Asked again after a connection broke. What was said then may not have come.
            Some(Pending::Held(_, fences)) => {
                let fences = fences.clone();
                drop(state);
                return self.say(Tell::Granted { request, fences });
            }
            Some(Pending::Waiting(_)) => return,
            None => {}
        }
        if state.over {
            // The client is being told.
            return;
        }
        if state.requests.len() >= MOST_REQUESTS {
            drop(state);
            let why = "this session has too many requests at a time; release some".to_string();
            return self.say(Tell::Denied { request, why: Denial::Input(why) });
        }
        let session = Arc::clone(self);
        let task = tokio::spawn(async move {
            let granted = session.acquire(&names, permits, wait).await;
            session.settle(tokio::task::id(), request, &names, granted);
        });
        state.requests.insert(request, Pending::Waiting(task.abort_handle()));
    }

    async fn acquire(
        &self,
        names: &[String],
        permits: u32,
        wait: Wait,
    ) -> Result<Guard, LockError> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.check_ttl(&names, permits)?;
        let names = match names.as_slice() {
            [name] => Names::One(name),
            names => Names::All(names),
        };
        let request = Request::new(&self.running, names).permits(permits).owned_by(self.owner);
        match wait {
            Wait::Endless => request.await,
            Wait::Millis(limit) => request.within(Duration::from_millis(limit)).await,
            Wait::Not => request.or_refuse().await,
        }
    }

    /// What the group gives away when it takes this node for crashed must not be used any more then,
    /// and the client finds out by its time to live.
    fn check_ttl(&self, names: &[&str], permits: u32) -> Result<(), LockError> {
        let host = &self.running.host;
        let (Some(ttl), Some(detector)) = (self.ttl, &host.detector) else { return Ok(()) };
        let timeout = detector.config.timeout;
        let listens = |name: &&str| host.plan.listens(host.plan.namespace(name), permits);
        match ttl > timeout && names.iter().any(listens) {
            true => Err(LockError::LongTtl { ttl, timeout }),
            false => Ok(()),
        }
    }

    /// What `task` has waited for is had, or not. The request may have been taken back meanwhile, and
    /// its number be another's.
    fn settle(
        &self,
        task: tokio::task::Id,
        request: u32,
        names: &[String],
        granted: Result<Guard, LockError>,
    ) {
        let mut state = self.state();
        match state.requests.get(&request) {
            Some(Pending::Waiting(waiting)) if waiting.id() == task && !state.over => {}
            // Dropping the guard gives the locks back.
            _ => return,
        }
        state.requests.remove(&request);
        let tell = match granted {
            Ok(guard) => {
                let fences = guard.fences_of(names);
                state.requests.insert(request, Pending::Held(guard, fences.clone()));
                Tell::Granted { request, fences }
            }
            Err(error) => Tell::Denied { request, why: denial(error) },
        };
        drop(state);
        self.say(tell);
    }

    /// Takes a request back, or releases what it was granted.
    pub(crate) fn release(&self, request: u32) {
        let pending = self.state().requests.remove(&request);
        match pending {
            Some(Pending::Waiting(task)) => task.abort(),
            Some(Pending::Held(guard, _)) => drop(guard),
            None => {}
        }
        self.say(Tell::Released { request });
    }

    /// Ends the session: everything is given back.
    fn end(&self) {
        let mut state = self.state();
        state.over = true;
        if let Some(watch) = state.watch.take() {
            watch.abort();
        }
        let requests = std::mem::take(&mut state.requests);
        drop(state);
        for pending in requests.into_values() {
            if let Pending::Waiting(task) = pending {
                task.abort();
            }
        }
        self.say(Tell::Over);
    }

    fn has_lost_locks(&self) -> bool {
        let is_lost = |pending: &Pending| match pending {
            Pending::Held(guard, _) => guard.is_lost(),
            Pending::Waiting(_) => false,
        };
        self.state().requests.values().any(is_lost)
    }

    /// Tells the client that the node stops. Nothing is given back: the client has yet to stop what
    /// it does under its locks. Returns where it was told, if it is there.
    fn dismiss(&self) -> Option<Voice> {
        self.state().over = true;
        self.say(Tell::Over);
        self.state().voice.clone()
    }
}

/// When the others go on without this member: ends the sessions that hold what they may give to
/// somebody else now.
pub(crate) async fn end_excluded(running: Arc<Running>) {
    loop {
        let losses = running.host.losses.notified();
        if running.host.excluded_by().is_some() {
            break;
        }
        losses.await;
    }
    let open: Vec<Arc<Session>> = running.sessions.open().values().cloned().collect();
    for session in open.iter().filter(|session| session.has_lost_locks()) {
        running.sessions.end(session);
    }
}

fn denial(error: LockError) -> Denial {
    match error {
        LockError::Taken => Denial::Taken,
        LockError::TimedOut => Denial::TimedOut,
        LockError::LongTtl { timeout, .. } => Denial::LongTtl(timeout, error.to_string()),
        LockError::Full
        | LockError::Behind(_)
        | LockError::Silent(_)
        | LockError::NotWhole(_)
        | LockError::CastOut(_)
        | LockError::Excluded(_)
        | LockError::Stopped => Denial::Node(error.to_string()),
        _ => Denial::Input(error.to_string()),
    }
}

/// All sessions of a node.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<BTreeMap<Owner, Arc<Session>>>,
    last: AtomicU64,
}

impl Sessions {
    fn open(&self) -> MutexGuard<'_, BTreeMap<Owner, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new session, unless there are too many. With a time to live, it ends by itself.
    pub(crate) fn begin(
        self: &Arc<Self>,
        running: &Arc<Running>,
        who: Who,
        ttl: Option<Duration>,
    ) -> Option<Arc<Session>> {
        let mut open = self.open();
        if open.len() >= MOST_SESSIONS {
            return None;
        }
        let owner = Owner(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let ttl = ttl.map(|ttl| ttl.clamp(*TTL_RANGE.start(), *TTL_RANGE.end()));
        let cut = |text: String| text.chars().take(LONGEST_LABEL).collect();
        let who = Who { label: cut(who.label), pid: who.pid, host: cut(who.host) };
        let deadline = ttl.map(|ttl| Instant::now() + ttl);
        let requests = BTreeMap::new();
        let state = State { requests, voice: None, deadline, watch: None, over: false };
        let running = Arc::clone(running);
        let session = Arc::new(Session { owner, who, ttl, running, state: Mutex::new(state) });
        open.insert(owner, Arc::clone(&session));
        drop(open);
        if deadline.is_some() {
            let watch = tokio::spawn(Arc::clone(self).watch(Arc::clone(&session)));
            session.state().watch = Some(watch.abort_handle());
        }
        Some(session)
    }

    /// Ends `session` when no sign of life has come for its time to live.
    async fn watch(self: Arc<Self>, session: Arc<Session>) {
        while let Some(deadline) = session.ends() {
            tokio::time::sleep_until(deadline.into()).await;
        }
        // Unless it was ended otherwise, which takes it off the list.
        if self.find(session.owner).is_some() {
            let Who { label, pid, host } = &session.who;
            tracing::info!(%label, pid, %host, "a session has run out");
            self.end(&session);
        }
    }

    /// Tells every client that the node stops, and waits until they have been told.
    pub(crate) async fn dismiss(&self) {
        let all = std::mem::take(&mut *self.open());
        let voices: Vec<Voice> = all.values().filter_map(|session| session.dismiss()).collect();
        let told = async {
            for voice in &voices {
                // The writer ends after these last words.
                voice.closed().await;
            }
        };
        // Whoever does not listen will find out.
        let _ = tokio::time::timeout(FAREWELL, told).await;
    }

    pub(crate) fn end(&self, session: &Session) {
        self.open().remove(&session.owner);
        session.end();
    }

    pub(crate) fn find(&self, owner: Owner) -> Option<Arc<Session>> {
        self.open().get(&owner).cloned()
    }

    pub(crate) fn count(&self) -> usize {
        self.open().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Node};

    #[tokio::test]
    async fn an_answer_to_a_request_that_was_taken_back_is_no_answer_to_the_next_of_its_number() {
        let config = Config { listen: Some("127.0.0.1:0".to_string()), ..Config::alone() };
        let node = Node::start(config).await.unwrap();
        let held = node.lock("b").await.unwrap();
        let sessions = Arc::clone(&node.running.sessions);
        let session = sessions.begin(&node.running, Who::default(), None).unwrap();
        let (voice, mut words) = mpsc::channel(8);
        session.attach(voice);
        session.lock(1, vec!["b".to_string()], 1, Wait::Endless);
        // The task of an earlier request with this number is late.
        let late = tokio::spawn(async { tokio::task::id() }).await.unwrap();
        session.settle(late, 1, &["a".to_string()], Ok(node.lock("a").await.unwrap()));
        session.settle(late, 1, &["a".to_string()], Err(LockError::Taken));
        assert!(words.try_recv().is_err(), "nothing was said");
        assert_eq!(node.status().held, 1, "and 'a' is free again");
        drop(held);
        assert!(matches!(words.recv().await, Some(Tell::Granted { request: 1, .. })));
    }
}
