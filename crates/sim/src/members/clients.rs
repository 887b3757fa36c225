//! The clients of members: they open sessions, ask, hold, release, and come back.
//!
//! A client is another process on its member's machine: what it says arrives at once, unless the
//! member pauses.

use std::time::Duration;

use catraca_group::{Acquire, Class, Input, Notice, Owner, Wait};

use super::engine::{Event, Simulation};
use super::flaw::Flaw;
use super::setup::{Setup, Waiting};
use crate::distribution::Distribution;
use crate::time::Time;

/// Whoever was refused waits at least so long before it asks again, or a run would stand still.
pub(super) const LEAST_PAUSE: Time = Time(1000);

/// What a client does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It opens a session.
    Open,
    /// It asks for locks, in one of the places that it has for requests.
    Ask(usize),
    /// It leaves.
    Leave(usize, u32),
    /// It waits no more.
    Cancel(usize, u32),
    /// It renews its session.
    Renew,
    /// Its session may be over.
    Lapse,
}

/// What a client says to its member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Open { said: Time },
    Ask(u32, Acquire),
    Release(u32),
    Renew { said: Time },
    Close(Owner),
}

/// Where a request of a client stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Resting,
    Waiting { number: u32, since: Time },
    Inside(u32),
    Leaving(u32),
    Done,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) state: State,
    /// How many requests are left to make, where they are counted.
    pub(super) rounds: Option<u32>,
}

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) member: usize,
    /// Which of its sessions this is.
    pub(super) session: u32,
    pub(super) owner: Option<Owner>,
    /// It trusts its session until then.
    pub(super) trusted_until: Time,
    last_number: u32,
    pub(super) places: Vec<Place>,
    pub(super) entries: u64,
    pub(super) is_alive: bool,
}

impl Client {
    pub(super) fn new(member: usize, setup: &Setup) -> Self {
        let place = Place { state: State::Resting, rounds: setup.rounds };
        Client {
            member,
            session: 0,
            owner: None,
            trusted_until: Time::ZERO,
            last_number: 0,
            places: vec![place; setup.at_once as usize],
            entries: 0,
            is_alive: true,
        }
    }

    /// Whether it has nothing left to do.
    pub(super) fn is_done(&self) -> bool {
        !self.is_alive || self.places.iter().all(|place| place.state == State::Done)
    }

    /// Since when it has been waiting, for each request that waits.
    pub(super) fn waits(&self) -> impl Iterator<Item = Time> {
        self.places.iter().filter_map(|place| match place.state {
            State::Waiting { since, .. } => Some(since),
            _ => None,
        })
    }

    /// The place of a request that waits, and since when it does.
    fn waiting(&self, number: u32) -> Option<(usize, Time)> {
        self.places.iter().enumerate().find_map(|(index, place)| match place.state {
            State::Waiting { number: own, since } if own == number => Some((index, since)),
            _ => None,
        })
    }
}

impl Simulation<'_> {
    /// A client does something, if it still has the session in which it planned to.
    pub(super) fn act(&mut self, now: Time, client: usize, session: u32, act: Act) {
        if !self.clients[client].is_alive || self.clients[client].session != session {
            return;
        }
        match act {
            Act::Open => self.say(now, client, Command::Open { said: now }),
            Act::Ask(place) => self.ask(now, client, place),
            Act::Leave(place, number) => self.leave(now, client, place, number),
            Act::Cancel(place, number) => {
                if self.clients[client].waiting(number).is_some() {
                    self.tally.cancelled += 1;
                    self.let_go(now, client, place, number);
                }
            }
            Act::Renew => {
                self.say(now, client, Command::Renew { said: now });
                self.plan_renewal(now, client);
            }
            Act::Lapse => {
                if self.clients[client].trusted_until <= now {
                    self.note(now, format_args!("client {client} takes its session for lost"));
                    self.lose_session(now, client);
                }
            }
        }
    }

    fn say(&mut self, now: Time, client: usize, command: Command) {
        self.note(now, format_args!("client {client} says {command:?}"));
        let session = self.clients[client].session;
        self.handle(now, Event::Command { client, session, command });
    }

    pub(super) fn plan_act(&mut self, at: Time, client: usize, act: Act) {
        let session = self.clients[client].session;
        self.plan(at, Event::Act { client, session, act });
    }

    /// What a client has said reaches its member, possibly after a pause of that one.
    pub(super) fn command(&mut self, now: Time, client: usize, session: u32, command: Command) {
        let Client { member, owner, session: current, .. } = self.clients[client];
        self.digest.add_bytes(&(client as u32).to_le_bytes());
        match command {
            Command::Open { said } => return self.open(now, client, session, said),
            Command::Close(owner) => return self.step(now, member, Input::Close(owner)),
            _ => {}
        }
        // Nobody speaks for a session that its client has given up.
        let Some(owner) = owner.filter(|_| session == current) else { return };
        match command {
            Command::Open { .. } | Command::Close(_) => {}
            Command::Ask(number, acquire) => {
                self.step(now, member, Input::Request(owner, number, acquire));
            }
            Command::Release(number) => self.step(now, member, Input::Release(owner, number)),
            Command::Renew { said } => {
                if self.errs(Flaw::EndsSessions) {
                    self.sites[member].sessions.remove(&owner);
                    self.step(now, member, Input::Close(owner));
                } else {
                    self.step(now, member, Input::Renew(owner));
                }
                if self.clients[client].session == session {
                    self.trust(client, said);
                }
            }
        }
    }

    /// A place for requests has nothing to do for a while, or for ever.
    pub(super) fn rest(&mut self, now: Time, client: usize, place: usize, pause: Time) {
        let slot = &mut self.clients[client].places[place];
        if slot.rounds == Some(0) {
            slot.state = State::Done;
        } else {
            slot.state = State::Resting;
            self.plan_act(now + pause, client, Act::Ask(place));
        }
    }

    fn ask(&mut self, now: Time, client: usize, place: usize) {
        let claim = self.claims.draw(&mut self.random);
        let locks: Vec<u32> = claim.resources().iter().map(|resource| resource.0).collect();
        let names = locks.iter().map(|lock| format!("lock-{lock}")).collect();
        let asker = &mut self.clients[client];
        asker.last_number += 1;
        let (number, member) = (asker.last_number, asker.member);
        let slot = &mut asker.places[place];
        let is_last = slot.rounds == Some(1);
        slot.rounds = slot.rounds.map(|rounds| rounds - 1);
        slot.state = State::Waiting { number, since: now };
        self.judge.asks((client, number), member, locks);
        let wait = if is_last { Wait::Forever } else { self.choose_wait() };
        if wait == Wait::Forever && !is_last && self.draws(self.setup.waiting.cancels) {
            let patience = self.setup.waiting.patience.sample(&mut self.random);
            self.plan_act(now + patience, client, Act::Cancel(place, number));
        }
        let command = Command::Ask(number, Acquire { names, permits: self.setup.permits, wait });
        if self.errs(Flaw::DelaysRequests) {
            let session = self.clients[client].session;
            return self.plan(now + Time::units(1), Event::Command { client, session, command });
        }
        self.say(now, client, command);
    }

    fn choose_wait(&mut self) -> Wait {
        let Waiting { tries, limited, limit, .. } = self.setup.waiting;
        if tries + limited == 0.0 {
            return Wait::Forever;
        }
        let drawn = self.random.fraction();
        let limit = |random| Duration::from_micros(limit.sample(random).0);
        match drawn {
            drawn if drawn <= tries => Wait::No(limit(&mut self.random)),
            drawn if drawn <= tries + limited => Wait::AtMost(limit(&mut self.random)),
            _ => Wait::Forever,
        }
    }

    /// Draws nothing from the generator where the answer is clear.
    fn draws(&mut self, share: f64) -> bool {
        share > 0.0 && self.random.fraction() <= share
    }

    /// A client has held for long enough.
    fn leave(&mut self, now: Time, client: usize, place: usize, number: u32) {
        let slot = self.clients[client].places[place];
        if slot.state != State::Inside(number) {
            return;
        }
        if slot.rounds != Some(0) && self.draws(self.setup.waiting.vanishes) {
            self.tally.vanished += 1;
            self.judge.ends((client, number));
            self.clients[client].places[place].state = State::Leaving(number);
            let owner = self.clients[client].owner.filter(|_| self.setup.ttl.is_none());
            self.lose_session(now, client);
            if let Some(owner) = owner {
                // The connection closes with its process, and the session with the connection.
                self.say(now, client, Command::Close(owner));
            }
            return;
        }
        self.let_go(now, client, place, number);
    }

    /// A client releases what it holds, or waits no more.
    fn let_go(&mut self, now: Time, client: usize, place: usize, number: u32) {
        self.judge.ends((client, number));
        self.clients[client].places[place].state = State::Leaving(number);
        if self.errs(Flaw::ForgetsReleases) {
            return self.tell(now, client, Notice::Released { request: number });
        }
        self.say(now, client, Command::Release(number));
    }

    /// A client is told something in its present session.
    pub(super) fn tell(&mut self, now: Time, client: usize, notice: Notice) {
        self.digest.add_bytes(&(client as u32).to_le_bytes());
        match notice {
            Notice::Granted { request, fences } => self.granted(now, client, request, &fences),
            Notice::Refused { request, why } => {
                let Some((place, since)) = self.clients[client].waiting(request) else { return };
                self.judge.ends((client, request));
                self.metrics.wait(now - since);
                match why.class() {
                    Class::TimedOut => self.tally.timed_out += 1,
                    _ => *self.tally.refused.entry(why.code()).or_default() += 1,
                }
                self.pause(now, client, place);
            }
            // Nobody administers these groups.
            Notice::Lost { .. } => {}
            Notice::Released { request } => {
                let is_it = |place: &Place| place.state == State::Leaving(request);
                let Some(place) = self.clients[client].places.iter().position(is_it) else {
                    return;
                };
                let think = self.setup.think.sample(&mut self.random);
                self.rest(now, client, place, think);
            }
            Notice::Over(_) => self.lose_session(now, client),
        }
    }

    fn granted(&mut self, now: Time, client: usize, request: u32, fences: &[u64]) {
        fences.iter().for_each(|fence| self.digest.add_bytes(&fence.to_le_bytes()));
        let Some((place, since)) = self.clients[client].waiting(request) else {
            // It came when the client had given up already, and is released at once.
            return;
        };
        if self.errs(Flaw::DropsGrants) {
            return;
        }
        let checked = self.judge.grants((client, request), fences);
        self.expect(now, checked);
        self.clients[client].places[place].state = State::Inside(request);
        self.clients[client].entries += 1;
        self.metrics.enter(now, since, Some(self.clients[client].member as u32));
        let hold = self.setup.hold.sample(&mut self.random);
        self.plan_act(now + hold, client, Act::Leave(place, request));
    }

    /// Whoever was refused comes back after about the time that others hold.
    fn pause(&mut self, now: Time, client: usize, place: usize) {
        let Distribution::Constant(_) = self.setup.hold else {
            let pause = self.setup.hold.sample(&mut self.random).max(LEAST_PAUSE);
            return self.rest(now, client, place, pause);
        };
        // Those who hold for the same time would come back at the same time, for ever.
        let most = self.setup.hold.sample(&mut self.random).0.max(LEAST_PAUSE.0);
        let pause = Time(most / 2 + self.random.below(most) + 1);
        self.rest(now, client, place, pause);
    }
}
