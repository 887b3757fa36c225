//! Sessions: what a client of another process has asked for and holds, and when that ends.

use std::collections::BTreeMap;
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
const MOST_REQUESTS: usize = 100_000;

/// Where a session's words go while its client is connected.
pub(crate) type Voice = mpsc::UnboundedSender<Tell>;

enum Pending {
    /// The task that waits for the locks.
    Waiting(AbortHandle),
    Held(Guard),
}

struct State {
    requests: BTreeMap<u32, Pending>,
    voice: Option<Voice>,
    deadline: Option<Instant>,
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
            if let Pending::Held(guard) = pending {
                let fences = guard.fences().collect();
                // The connection may be gone again already.
                let _ = voice.send(Tell::Granted { request, fences });
            }
        }
    }

    /// The connection is gone. Returns whether the session goes on without it.
    pub(crate) fn detach(&self) -> bool {
        self.state().voice = None;
        self.ttl.is_some()
    }

    /// A sign of life.
    pub(crate) fn renew(&self) {
        self.state().deadline = self.ttl.map(|ttl| Instant::now() + ttl);
    }

    fn say(&self, tell: Tell) {
        if let Some(voice) = &self.state().voice {
            // The connection may be gone; then nobody listens.
            let _ = voice.send(tell);
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
        let why = if state.requests.contains_key(&request) {
            Some("this request has been made already")
        } else if state.requests.len() >= MOST_REQUESTS {
            Some("this session has too many requests at a time; release some")
        } else {
            None
        };
        if let Some(why) = why {
            drop(state);
            return self.say(Tell::Denied { request, why: Denial::Input(why.to_string()) });
        }
        let session = Arc::clone(self);
        let task = tokio::spawn(async move {
            let granted = session.acquire(&names, permits, wait).await;
            session.settle(request, granted);
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

    /// The locks are had, or not. The request may have been taken back meanwhile.
    fn settle(&self, request: u32, granted: Result<Guard, LockError>) {
        let mut state = self.state();
        let known = state.requests.remove(&request).is_some() && !state.over;
        let tell = match granted {
            // Dropping the guard gives the locks back.
            Ok(_) if !known => return,
            Ok(guard) => {
                let fences = guard.fences().collect();
                state.requests.insert(request, Pending::Held(guard));
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
            Some(Pending::Held(guard)) => drop(guard),
            None => {}
        }
        self.say(Tell::Released { request });
    }

    /// Ends the session: everything is given back.
    fn end(&self) {
        let mut state = self.state();
        state.over = true;
        let requests = std::mem::take(&mut state.requests);
        drop(state);
        for pending in requests.into_values() {
            if let Pending::Waiting(task) = pending {
                task.abort();
            }
        }
        self.say(Tell::Over);
    }
}

fn denial(error: LockError) -> Denial {
    match error {
        LockError::Taken => Denial::Taken,
        LockError::TimedOut => Denial::TimedOut,
        LockError::Full | LockError::Behind(_) | LockError::Stopped => {
            Denial::Node(error.to_string())
        }
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

    /// A new session. With a time to live, it ends by itself.
    pub(crate) fn begin(
        self: &Arc<Self>,
        running: &Arc<Running>,
        who: Who,
        ttl: Option<Duration>,
    ) -> Arc<Session> {
        let owner = Owner(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let deadline = ttl.map(|ttl| Instant::now() + ttl);
        let state = State { requests: BTreeMap::new(), voice: None, deadline, over: false };
        let running = Arc::clone(running);
        let session = Arc::new(Session { owner, who, ttl, running, state: Mutex::new(state) });
        self.open().insert(owner, Arc::clone(&session));
        if deadline.is_some() {
            tokio::spawn(Arc::clone(self).watch(Arc::clone(&session)));
        }
        session
    }

    /// Ends `session` when no sign of life has come for its time to live.
    async fn watch(self: Arc<Self>, session: Arc<Session>) {
        loop {
            let deadline = {
                let state = session.state();
                match state.deadline {
                    Some(deadline) if !state.over => deadline,
                    _ => return,
                }
            };
            if deadline <= Instant::now() {
                tracing::info!(label = %session.who.label, "a session has run out");
                return self.end(&session);
            }
            tokio::time::sleep_until(deadline.into()).await;
        }
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
