//! The sessions of clients: opened, renewed, trusted, and lost.
//!
//! A client trusts a session for as long as its time to live, counted from when it last asked for a
//! renewal that was given. Then it takes everything that it held for lost, whether its member knows or
//! not.

use std::time::Duration;

use catraca_group::{Input, Owner, Who};

use super::clients::{Act, LEAST_PAUSE, State};
use super::engine::Simulation;
use crate::time::Time;

impl Simulation<'_> {
    pub(super) fn open(&mut self, now: Time, client: usize, session: u32, said: Time) {
        let member = self.clients[client].member;
        let ttl = self.setup.ttl.map(|Time(ticks)| Duration::from_micros(ticks));
        let who = Who { label: format!("client {client}"), ..Who::default() };
        self.step(now, member, Input::Open(who, ttl));
        let Some(id) = self.sites[member].member.last_session() else { return };
        let owner = Owner(id.number);
        self.sites[member].sessions.insert(owner, (client, session));
        if self.clients[client].session != session {
            return;
        }
        self.tally.sessions += 1;
        self.clients[client].owner = Some(owner);
        self.trust(client, said);
        self.plan_renewal(now, client);
        for place in 0..self.clients[client].places.len() {
            if self.clients[client].places[place].state == State::Resting {
                let think = self.setup.think.sample(&mut self.random);
                self.rest(now, client, place, think);
            }
        }
    }

    /// The session is good for its time to live from when it was asked for.
    pub(super) fn trust(&mut self, client: usize, said: Time) {
        let Some(ttl) = self.setup.ttl else { return };
        let until = (said + ttl).max(self.clients[client].trusted_until);
        self.clients[client].trusted_until = until;
        self.plan_act(until.max(self.queue.now()), client, Act::Lapse);
    }

    pub(super) fn plan_renewal(&mut self, now: Time, client: usize) {
        if let Some(Time(ttl)) = self.setup.ttl {
            self.plan_act(now + Time(ttl / 3), client, Act::Renew);
        }
    }

    /// A client's session is over: what it held is lost, and what it waited for it asks for again in
    /// its next session.
    pub(super) fn lose_session(&mut self, now: Time, client: usize) {
        self.end_requests(client);
        self.clients[client].session += 1;
        self.clients[client].owner = None;
        if !self.clients[client].is_done() {
            let pause = self.setup.hold.sample(&mut self.random).max(LEAST_PAUSE);
            self.plan_act(now + pause, client, Act::Open);
        }
    }

    fn end_requests(&mut self, client: usize) {
        for place in &mut self.clients[client].places {
            match place.state {
                State::Waiting { number, .. } => {
                    self.judge.ends((client, number));
                    place.rounds = place.rounds.map(|rounds| rounds + 1);
                }
                State::Inside(number) => {
                    self.judge.ends((client, number));
                    self.tally.lost += 1;
                }
                State::Resting | State::Leaving(_) | State::Done => {}
            }
            place.state = if place.rounds == Some(0) { State::Done } else { State::Resting };
        }
    }

    /// A client is gone with its machine.
    pub(super) fn bury(&mut self, client: usize) {
        self.end_requests(client);
        self.clients[client].is_alive = false;
    }
}
