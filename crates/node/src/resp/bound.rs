//! Locks that belong to a connection, and are free when it ends.
//!
//! They are requests of a session without a time to live, as those of a native client. What becomes of
//! them is told in the outbox, mostly before asking returns.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use catraca_client::protocol::ServerMessage;
use catraca_group::{Acquire, Over, Owner, Refusal, Who};

use crate::engine::Engine;
use crate::native::Outbox;

use super::failure::Failure;

/// A connection has at most so many sessions: there is one for each label that it gives.
pub(crate) const MOST_LABELS: usize = 16;
/// What the ids of such locks begin with.
const ID: &str = "#";

/// The locks of one connection.
pub(crate) struct Bound {
    engine: Arc<Engine>,
    machine: IpAddr,
    pub(crate) outbox: Arc<Outbox>,
    /// The sessions, by whose they are: a label, and who gave it.
    sessions: Vec<(Who, Owner)>,
    /// What is held, by the number of the request.
    held: BTreeMap<u32, (Owner, Vec<String>)>,
    last: u32,
}

impl Bound {
    /// Nothing is held yet, by a client of `machine`.
    pub(crate) fn new(engine: &Arc<Engine>, machine: IpAddr) -> Self {
        let (engine, outbox) = (Arc::clone(engine), Arc::default());
        Bound { engine, machine, outbox, sessions: Vec::new(), held: BTreeMap::new(), last: 0 }
    }

    /// Takes locks, for somebody who may call itself otherwise this time. Returns their id and their
    /// fences.
    ///
    /// If this is dropped, the connection has ended, and so does the request.
    pub(crate) async fn acquire(
        &mut self,
        asked: Acquire,
        label: Option<String>,
        who: &Who,
    ) -> Result<(String, Vec<u64>), Failure> {
        let owner = self.session(label.as_deref().unwrap_or(&who.label), who)?;
        self.last = self.last.wrapping_add(1);
        let (number, names) = (self.last, asked.names.clone());
        self.engine.serve(|service, parts, out| {
            service.request(owner, number, asked, parts, out);
        });
        loop {
            match self.outbox.pop() {
                Some(ServerMessage::Granted { request, fences }) if request == number => {
                    self.held.insert(number, (owner, names));
                    return Ok((format!("{ID}{number}"), fences));
                }
                Some(ServerMessage::Refused { request, why }) if request == number => {
                    return Err(why.into());
                }
                Some(message) => self.heed(&message)?,
                None => self.outbox.filled().await,
            }
        }
    }

    /// Whether locks of this connection are called so, by their id or one of their names.
    pub(crate) fn find(&self, called: &str) -> Option<u32> {
        let by_id = called.strip_prefix(ID).and_then(|number| number.parse().ok());
        let by_id = by_id.filter(|number| self.held.contains_key(number));
        let is_it = |names: &[String]| names.iter().any(|name| name == called);
        let by_name = || self.held.iter().find(|(_, (_, names))| is_it(names));
        by_id.or_else(|| by_name().map(|(&number, _)| number))
    }

    /// Releases the locks of one request.
    pub(crate) fn release(&mut self, number: u32) -> Result<(), Failure> {
        let Some((owner, _)) = self.held.remove(&number) else { return Ok(()) };
        self.engine.serve(|service, parts, out| {
            service.release_request(owner, number, parts, out);
        });
        self.check()
    }

    /// Takes in what was told. Fails if locks are lost.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        while let Some(message) = self.outbox.pop() {
            self.heed(&message)?;
        }
        Ok(())
    }

    /// Fails if a message says that locks are lost: a session is over, or somebody has ended a hold by force.
    /// The end of the connection is how the client learns that, and what it still holds is free then.
    fn heed(&self, message: &ServerMessage) -> Result<(), Failure> {
        match message {
            ServerMessage::Over(Over::Stopping) => {
                Err(Failure::Over(Failure::Refused(Refusal::Stopped).to_string()))
            }
            ServerMessage::Over(why) => Err(lost(why)),
            ServerMessage::Lost { request, why } if self.held.contains_key(request) => {
                Err(lost(why))
            }
            _ => Ok(()),
        }
    }

    /// Whether there is something that could be lost.
    pub(crate) fn is_used(&self) -> bool {
        !self.sessions.is_empty()
    }

    /// The session of whoever asks.
    fn session(&mut self, label: &str, who: &Who) -> Result<Owner, Failure> {
        let is_it = |its: &Who| its.label == label && its.identity == who.identity;
        if let Some((_, owner)) = self.sessions.iter().find(|(its, _)| is_it(its)) {
            return Ok(*owner);
        }
        if self.sessions.len() >= MOST_LABELS {
            let text = format!("ERR a connection gives at most {MOST_LABELS} labels");
            return Err(Failure::Said(text));
        }
        let its = Who { label: label.to_string(), ..who.clone() };
        let who = its.clone();
        let opened = self.engine.open_session(self.machine, who, None);
        let owner = Owner(opened.map_err(Failure::Refused)?.0.number);
        self.engine.attach(owner, Arc::clone(&self.outbox));
        self.sessions.push((its, owner));
        Ok(owner)
    }

    /// Everything is released, and what comes next begins anew.
    pub(crate) fn reset(&mut self) {
        self.end();
        self.outbox = Arc::default();
    }

    fn end(&mut self) {
        self.outbox.close();
        for (_, owner) in self.sessions.drain(..) {
            self.engine.detach(owner, &self.outbox);
        }
        self.held.clear();
    }
}

impl Drop for Bound {
    /// Also where the task is ended from outside.
    fn drop(&mut self) {
        self.end();
    }
}

fn lost(why: &impl fmt::Display) -> Failure {
    Failure::Over(format!("UNAVAILABLE the locks of this connection are lost: {why}"))
}
