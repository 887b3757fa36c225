//! Sessions of clients in other processes.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Host, Notice, Output, Service};
use crate::driver::{Ending, Timer};
use crate::lock::Owner;
use crate::refusal::Refusal;
use crate::request::{Acquire, Origin};
use crate::session::{
    MOST_REQUESTS, MOST_REQUESTS_IN_ALL, MOST_SESSIONS, Over, Session, SessionId, TTL_RANGE, Who,
};

impl Service {
    /// Opens a session. With a time to live it ends by itself unless it is renewed; without one it
    /// ends with its connection. `secret` comes from a source that nobody can guess.
    pub fn open(
        &mut self,
        who: Who,
        ttl: Option<Duration>,
        secret: [u8; 16],
        host: &mut dyn Host,
    ) -> Result<SessionId, Refusal> {
        if let Some(ttl) = ttl.filter(|ttl| !TTL_RANGE.contains(ttl)) {
            return Err(Refusal::Ttl { ttl, least: *TTL_RANGE.start() });
        }
        if self.phase == super::Phase::Stopped {
            return Err(Refusal::Stopped);
        }
        if self.sessions.len() >= MOST_SESSIONS {
            return Err(Refusal::TooManySessions);
        }
        self.last_session += 1;
        let id = SessionId::new(self.incarnation, self.last_session, secret);
        let owner = Owner(id.number);
        self.sessions.insert(owner, Session::new(id, who, ttl, host.now()));
        if ttl.is_some() {
            host.set_timer(Timer::Session(owner), ttl);
        }
        Ok(id)
    }

    /// Goes on with a session whose connection broke. What it holds is told again: the client knows
    /// what it knows.
    pub fn resume(
        &mut self,
        id: SessionId,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Result<Owner, Over> {
        let owner = Owner(id.number);
        // A timed hold has no connection.
        let is_it = |session: &Session| session.id == id && session.timed.is_none();
        if !self.sessions.get(&owner).is_some_and(is_it) {
            return Err(Over::Unknown);
        }
        self.renew(owner, host, out)?;
        let requests = &self.sessions[&owner].requests;
        for (&request, id) in requests {
            self.tell_held(owner, request, *id, out);
        }
        Ok(owner)
    }

    /// Renews a session, of a client that is told before what it has to give up: that is not renewed. It
    /// may be too late, although nobody has noticed yet.
    pub fn renew(
        &mut self,
        owner: Owner,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) -> Result<(), Over> {
        let now = host.now();
        if self.prolongs_nothing() {
            return Err(Over::Stopping);
        }
        match self.sessions.get_mut(&owner) {
            Some(session) if now < session.deadline => {
                session.renew(now);
                if session.ttl.is_some() {
                    host.set_timer(Timer::Session(owner), session.ttl);
                }
                self.tell_forced(owner, out);
                Ok(())
            }
            Some(_) => Err(Over::Expired),
            None => Err(Over::Unknown),
        }
    }

    /// A session asks for locks. It is told what comes of it.
    pub fn request(
        &mut self,
        owner: Owner,
        number: u32,
        asked: Acquire,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Some(session) = self.sessions.get(&owner) else { return };
        if let Some(&known) = session.requests.get(&number) {
            // Asked again after a connection broke. What was said then may not have come.
            return self.tell_held(owner, number, known, out);
        }
        let checked = match session.ttl {
            _ if session.requests.len() >= MOST_REQUESTS => Err(Refusal::TooManyRequests),
            _ if self.requests.len() >= MOST_REQUESTS_IN_ALL => Err(Refusal::Busy),
            Some(ttl) => self.check_ttl(ttl, &asked),
            None => Ok(()),
        };
        // The answer may be among the outputs of asking: the session must know of the request then.
        let next = self.next_request();
        if let (Ok(()), Some(session)) = (&checked, self.sessions.get_mut(&owner)) {
            session.requests.insert(number, next);
        }
        let origin = Origin::Session(owner, number);
        if let Err(why) = checked.and_then(|()| self.acquire(origin, asked, host, out).map(drop)) {
            if let Some(session) = self.sessions.get_mut(&owner) {
                session.requests.remove(&number);
            }
            out.push(Output::Notice(owner, Notice::Refused { request: number, why }));
        }
        self.absorb(host, out);
    }

    /// What the group gives away when it takes this member for crashed must not be used any more
    /// then, and the client finds out by its time to live.
    pub(super) fn check_ttl(&self, ttl: Duration, asked: &Acquire) -> Result<(), Refusal> {
        let Some(detector) = &self.detector else { return Ok(()) };
        let most = detector.config.timeout;
        let view = &self.view;
        let listens = |name: &str| view.listens(view.namespace(name), asked.permits);
        match ttl > most && asked.names.iter().any(|name| listens(name)) {
            true => Err(Refusal::LongTtl { ttl, most }),
            false => Ok(()),
        }
    }

    /// A session takes a request back, or releases what it was granted.
    pub fn release_request(
        &mut self,
        owner: Owner,
        number: u32,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Some(session) = self.sessions.get_mut(&owner) else { return };
        if let Some(id) = session.requests.remove(&number) {
            self.withdraw(id, host);
        }
        // Before whoever gets it next is told.
        out.push(Output::Notice(owner, Notice::Released { request: number }));
        if !self.forced.is_empty() {
            self.look_at_forced(host, out);
        }
        self.absorb(host, out);
    }

    /// Ends a session: everything is given back.
    pub fn close(&mut self, owner: Owner, host: &mut dyn Host, out: &mut Vec<Output>) {
        self.end(owner, Over::Closed, host, out);
        self.absorb(host, out);
    }

    /// The connection of a session is gone. It goes on without if it has a time to live.
    pub fn disconnect(&mut self, owner: Owner, host: &mut dyn Host, out: &mut Vec<Output>) {
        if self.sessions.get(&owner).is_some_and(|session| session.ttl.is_none()) {
            self.close(owner, host, out);
        }
    }

    /// The time of a session may be over: it may also have been renewed meanwhile.
    pub(super) fn expire(&mut self, owner: Owner, host: &mut dyn Host, out: &mut Vec<Output>) {
        let Some(session) = self.sessions.get(&owner) else { return };
        let now = host.now();
        if now < session.deadline {
            return host.set_timer(Timer::Session(owner), Some(session.deadline.since(now)));
        }
        self.end(owner, Over::Expired, host, out);
    }

    pub(super) fn end(
        &mut self,
        owner: Owner,
        why: Over,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let ending = match why {
            Over::Closed => Ending::Released,
            _ => Ending::Lost,
        };
        self.end_as(owner, why, ending, host, out);
    }

    /// The same, where what the session holds ends for another reason.
    pub(super) fn end_as(
        &mut self,
        owner: Owner,
        why: Over,
        ending: Ending,
        host: &mut dyn Host,
        out: &mut Vec<Output>,
    ) {
        let Some(session) = self.sessions.get_mut(&owner) else { return };
        host.set_timer(Timer::Session(owner), None);
        let timed = session.timed;
        for id in core::mem::take(&mut session.requests).into_values() {
            match timed {
                Some(hold) => self.end_timed(hold, id, ending, host, out),
                None => drop(self.take_out(id, ending, host)),
            }
        }
        self.sessions.remove(&owner);
        if timed.is_none() {
            self.forget_session(owner, host);
            out.push(Output::Notice(owner, Notice::Over(why)));
        }
    }
}
