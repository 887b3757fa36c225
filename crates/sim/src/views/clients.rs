//! Clients: programs on machines of their own, which trust a session no longer than they may.

use std::time::Duration;

use catraca_group::{
    Acquire, AcquireDurable, AcquireTimed, DurableHold, HoldId, Input, Notice, Operation, Owner,
    Refusal, TimedHold, Unlock, Wait, Which, Who,
};

use super::clock::Clock;
use super::durable::Round;
use super::engine::{Event, Simulation};
use super::timed::Stay;
use crate::random::Random;
use crate::time::Time;

/// The time to live of sessions.
pub(super) const TTL: Duration = Duration::from_secs(3);
/// A client that hears nothing for so long tries another member.
const PATIENCE: Time = Time(1_500_000);
/// Whoever was refused or sent away waits about so long.
pub(super) const PAUSE: u64 = 300_000;

/// What a client does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Connect,
    Ask,
    Leave(u32),
    Renew,
    /// Its session may be over.
    Look,
}

/// What a client says to its member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Open { said: Time },
    Ask(Owner, u32, Acquire),
    Release(Owner, u32),
    Renew { owner: Owner, said: Time },
    AskDurably(Owner, u32, AcquireDurable),
    Cancel(Owner, u32),
    Unlock(Owner, u32, Unlock),
    AskTimed(u32, AcquireTimed),
    CancelTimed(HoldId),
    Operate(u32, Which, Operation),
}

/// What a member says to its client.
#[derive(Clone, Debug)]
pub(super) enum Word {
    /// The session is open, or renewed, and certain for so long from when the client asked.
    Certain {
        owner: Owner,
        said: Time,
        span: Duration,
    },
    Notice(Notice),
    /// What came of asking for a durable hold, and of releasing one.
    Durable(u32, Result<Box<DurableHold>, Refusal>),
    Unlocked(u32, Result<Box<DurableHold>, Refusal>),
    /// What came of something with a timed hold.
    Timed(u32, Result<Box<TimedHold>, Refusal>),
    /// The member knows no such session.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Connecting,
    Thinking,
    Waiting(u32),
    Inside(u32),
}

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) clock: Clock,
    pub(super) site: usize,
    pub(super) session: u32,
    owner: Option<Owner>,
    /// It trusts its session until then.
    trusted_until: Time,
    heard_at: Time,
    pub(super) state: State,
    pub(super) last_number: u32,
    /// The request whose hold it was told to give up.
    gives_up: Option<u32>,
    locks: Vec<u32>,
    /// What was said and may not have arrived: it is said again with every renewal.
    pub(super) unanswered: Vec<Command>,
    /// Its durable hold, or the request for it, and the last one's name.
    pub(super) round: Option<Round>,
    pub(super) last_request: u32,
    /// Its timed hold, or the request for it.
    pub(super) stay: Option<Stay>,
    /// When it left its member for another one.
    pub(super) moved_at: Time,
    pub(super) served: u32,
    pub(super) is_cut: bool,
    /// When the last thing that was said arrives, there and here: connections keep their order.
    last_there: Time,
    last_here: Time,
}

impl Client {
    pub(super) fn new(site: usize, random: &mut Random, drift: i64) -> Self {
        let rate = random.below(2 * drift as u64 + 1) as i64;
        Client {
            clock: Clock { offset: 0, drift: rate - drift },
            site,
            session: 0,
            owner: None,
            trusted_until: Time::ZERO,
            heard_at: Time::ZERO,
            state: State::Connecting,
            last_number: 0,
            gives_up: None,
            locks: Vec::new(),
            unanswered: Vec::new(),
            round: None,
            last_request: 0,
            stay: None,
            moved_at: Time::ZERO,
            served: 0,
            is_cut: false,
            last_there: Time::ZERO,
            last_here: Time::ZERO,
        }
    }

    /// What was said about a request has arrived.
    pub(super) fn is_answered(&mut self, request: u32) {
        self.unanswered.retain(|said| match said {
            Command::Ask(_, number, _)
            | Command::Release(_, number)
            | Command::AskDurably(_, number, _)
            | Command::Unlock(_, number, _) => *number != request,
            _ => true,
        });
    }

    pub(super) fn doing(&self) -> String {
        let (state, site) = (&self.state, self.site);
        match (&self.round, &self.stay) {
            (Some(round), _) => format!("{state:?} at m{site} with {round:?}"),
            (None, Some(stay)) => format!("{state:?} at m{site} with {stay:?}"),
            (None, None) => format!("{state:?} at m{site}"),
        }
    }
}

impl Simulation<'_> {
    pub(super) fn plan_act(&mut self, at: Time, client: usize, act: Act) {
        let session = self.clients[client].session;
        self.plan(at, Event::Act { client, session, act });
    }

    /// A client does something, if it still has the session in which it planned to.
    pub(super) fn act(&mut self, now: Time, client: usize, session: u32, act: Act) {
        let it = &self.clients[client];
        if it.session != session {
            return;
        }
        let (owner, state) = (it.owner, it.state);
        if self.is_timed(client) {
            return self.act_timed(now, client, act);
        }
        match (act, owner) {
            (Act::Connect, _) => {
                self.clients[client].heard_at = now;
                self.say(now, client, Command::Open { said: now });
                self.plan_act(now + PATIENCE, client, Act::Look);
            }
            (Act::Ask, Some(owner)) if self.is_durable(client) => {
                self.ask_durably(now, client, owner);
            }
            (Act::Ask, Some(owner)) => self.ask(now, client, owner),
            (Act::Leave(number), Some(owner))
                if state == State::Inside(number) && self.is_durable(client) =>
            {
                self.leave_durably(now, client, owner);
            }
            (Act::Leave(number), Some(owner)) if state == State::Inside(number) => {
                self.clients[client].served += 1;
                self.rest(now, client);
                let release = Command::Release(owner, number);
                self.clients[client].unanswered.push(release.clone());
                self.say(now, client, release);
            }
            (Act::Renew, Some(owner)) => {
                self.say(now, client, Command::Renew { owner, said: now });
                for again in self.clients[client].unanswered.clone() {
                    if let (Command::Unlock(..), Some(round)) =
                        (&again, &mut self.clients[client].round)
                    {
                        round.unlocks_again();
                    }
                    self.say(now, client, again);
                }
                let third = self.clients[client].clock.ticks(TTL / 6);
                self.plan_act(now + third, client, Act::Renew);
            }
            (Act::Look, _) => self.look(now, client),
            _ => {}
        }
    }

    /// A client whose session is over, or whose member is silent, goes elsewhere.
    fn look(&mut self, now: Time, client: usize) {
        let it = &self.clients[client];
        let is_over = it.owner.is_some() && now >= it.trusted_until;
        if is_over || now >= it.heard_at + PATIENCE {
            return self.go_elsewhere(now, client);
        }
        let next = (it.heard_at + PATIENCE).min(match it.owner {
            Some(_) => it.trusted_until,
            None => Time(u64::MAX),
        });
        self.plan_act(next.max(now + Time(1)), client, Act::Look);
    }

    /// The client gives its session up. It is not inside any more.
    fn go_elsewhere(&mut self, now: Time, client: usize) {
        self.note(now, format_args!("client {client} gives its session up"));
        self.not_inside(client);
        self.clients[client].moved_at = now;
        let sites = self.sites.len() as u64;
        let site = self.random.below(sites) as usize;
        let it = &mut self.clients[client];
        it.session += 1;
        (it.owner, it.state, it.site) = (None, State::Connecting, site);
        it.unanswered.clear();
        let pause = Time(self.random.below(PAUSE) + 1000);
        self.plan_act(now + pause, client, Act::Connect);
    }

    /// A client is not inside any more, unless it has a durable hold.
    fn not_inside(&mut self, client: usize) {
        if !self.clients[client].round.as_ref().is_some_and(Round::is_held) {
            self.judge.leaves(client);
        }
    }

    pub(super) fn rest(&mut self, now: Time, client: usize) {
        self.not_inside(client);
        self.clients[client].state = State::Thinking;
        let pause = Time(self.random.below(PAUSE) + 1000);
        self.plan_act(now + pause, client, Act::Ask);
    }

    /// Which locks a client asks for.
    pub(super) fn draw_locks(&mut self) -> Vec<u32> {
        let mut locks: Vec<u32> = (0..self.setup.claim)
            .map(|_| self.random.below(u64::from(self.setup.locks)) as u32)
            .collect();
        locks.sort_unstable();
        locks.dedup();
        locks
    }

    fn ask(&mut self, now: Time, client: usize, owner: Owner) {
        let locks = self.draw_locks();
        let names = locks.iter().map(|lock| format!("lock-{lock}")).collect();
        let wait = match self.random.below(6) {
            0 => Wait::AtMost(Duration::from_millis(1 + self.random.below(2000))),
            1 => Wait::No(Duration::from_millis(250)),
            _ => Wait::Forever,
        };
        let it = &mut self.clients[client];
        it.last_number += 1;
        let number = it.last_number;
        (it.state, it.locks) = (State::Waiting(number), locks);
        let acquire = Acquire { names, permits: self.setup.permits, wait };
        let ask = Command::Ask(owner, number, acquire);
        self.clients[client].unanswered.push(ask.clone());
        self.say(now, client, ask);
    }

    /// A client says something to its member, unless they are cut off from each other.
    pub(super) fn say(&mut self, now: Time, client: usize, command: Command) {
        let Client { session, site, is_cut, .. } = self.clients[client];
        self.note(now, format_args!("client {client} says {command:?} to m{site}"));
        let at = now + self.latency(now);
        if !is_cut {
            let last = &mut self.clients[client].last_there;
            *last = at.max(*last);
            let at = *last;
            self.plan(at, Event::Command { client, session, site, command });
        }
    }

    /// What a client has said reaches its member.
    pub(super) fn command(
        &mut self,
        now: Time,
        client: usize,
        session: u32,
        site: usize,
        command: Command,
    ) {
        let who = |owner: &Owner| self.sites[site].sessions.get(owner) == Some(&(client, session));
        match command {
            Command::Open { said } => {
                self.step(now, site, Input::Open(Who::default(), Some(TTL)));
                let member = self.sites[site].member.as_ref();
                let Some(opened) = member.and_then(|member| member.last_session()) else { return };
                let owner = Owner(opened.number);
                self.sites[site].sessions.insert(owner, (client, session));
                self.assure(now, client, session, site, owner, said);
            }
            Command::Ask(owner, ..)
            | Command::Release(owner, _)
            | Command::Renew { owner, .. }
            | Command::AskDurably(owner, ..)
            | Command::Cancel(owner, _)
            | Command::Unlock(owner, ..)
                if !who(&owner) =>
            {
                self.answer(now, client, session, Word::Unknown);
            }
            Command::Ask(owner, number, acquire) => {
                self.step(now, site, Input::Request(owner, number, acquire));
            }
            Command::Release(owner, number) => {
                self.step(now, site, Input::Release(owner, number));
            }
            Command::AskTimed(..) | Command::CancelTimed(_) | Command::Operate(..) => {
                self.command_timed(now, client, site, command);
            }
            Command::AskDurably(..) | Command::Cancel(..) | Command::Unlock(..) => {
                self.command_durably(now, client, session, site, command);
            }
            Command::Renew { owner, said } => {
                self.step(now, site, Input::Renew(owner));
                let member = self.sites[site].member.as_ref();
                if member.is_some_and(|member| member.service().is_open(owner)) {
                    self.assure(now, client, session, site, owner, said);
                }
            }
        }
    }

    /// Tells a client for how long it may trust its session: no longer than its member may act.
    fn assure(
        &mut self,
        now: Time,
        client: usize,
        session: u32,
        site: usize,
        owner: Owner,
        said: Time,
    ) {
        let there = &self.sites[site];
        let Some(member) = &there.member else { return };
        let ttl = self.setup.lease.seen_from_elsewhere(TTL);
        let span = member.service().certain(there.clock.at(now)).min(ttl);
        self.answer(now, client, session, Word::Certain { owner, said, span });
    }

    /// A member says something to its client, unless they are cut off from each other.
    pub(super) fn answer(&mut self, now: Time, client: usize, session: u32, word: Word) {
        if !self.clients[client].is_cut {
            let at = now + self.latency(now);
            let last = &mut self.clients[client].last_here;
            *last = at.max(*last);
            let at = *last;
            self.plan(at, Event::Word { client, session, word });
        }
    }

    /// A client hears something from its member.
    pub(super) fn hear(&mut self, now: Time, client: usize, session: u32, word: Word) {
        if self.clients[client].session != session {
            return;
        }
        self.note(now, format_args!("client {client} hears {word:?}"));
        self.clients[client].heard_at = now;
        match word {
            Word::Certain { owner, said, span } => self.trust(now, client, owner, said, span),
            Word::Unknown | Word::Notice(Notice::Over(_)) => self.go_elsewhere(now, client),
            Word::Notice(Notice::Granted { request, fences }) => {
                self.granted(now, client, request, &fences);
            }
            Word::Notice(Notice::Refused { request, .. }) => {
                let state = self.clients[client].state;
                match state {
                    State::Waiting(number) if number == request => {
                        self.clients[client].is_answered(request);
                        self.rest(now, client);
                    }
                    State::Connecting => self.go_elsewhere(now, client),
                    _ => {}
                }
            }
            Word::Durable(number, result) => self.hear_of_hold(now, client, number, result),
            Word::Timed(number, result) => self.hear_of_stay(now, client, number, result),
            Word::Unlocked(number, result) => self.hear_of_unlock(now, client, number, result),
            Word::Notice(Notice::Lost { request, .. }) => self.lose(now, client, request),
            Word::Notice(Notice::Released { request }) => {
                self.clients[client].is_answered(request);
            }
        }
    }

    /// A client has to give up what it holds. It takes all the time that it may, or none.
    fn lose(&mut self, now: Time, client: usize, request: u32) {
        let it = &mut self.clients[client];
        let (owner, state, until) = (it.owner, it.state, it.trusted_until);
        match (state, owner) {
            (State::Inside(number), _) if number == request => {
                if self.setup.deaf || it.gives_up == Some(request) {
                    return;
                }
                it.gives_up = Some(request);
                let is_slow = self.random.below(2) == 0;
                let at = if is_slow { until.max(now + Time(1)) } else { now };
                self.plan_act(at, client, Act::Leave(request));
            }
            (State::Waiting(number), Some(owner)) if number == request => {
                self.clients[client].is_answered(request);
                self.rest(now, client);
                self.say(now, client, Command::Release(owner, request));
            }
            _ => {}
        }
    }

    fn trust(&mut self, now: Time, client: usize, owner: Owner, said: Time, span: Duration) {
        let it = &mut self.clients[client];
        let until = said + it.clock.ticks(span);
        it.trusted_until = it.trusted_until.max(until);
        let trusted = it.trusted_until;
        let gives_up = matches!(it.state, State::Inside(number) if it.gives_up == Some(number));
        if it.owner.is_none() {
            it.trusted_until = until;
            (it.owner, it.state) = (Some(owner), State::Thinking);
            self.plan_act(now, client, Act::Ask);
            self.plan_act(now, client, Act::Renew);
            self.plan_act(now, client, Act::Look);
        } else if !self.is_durable(client) && !gives_up {
            self.judge.prolongs(client, trusted);
        }
    }

    fn granted(&mut self, now: Time, client: usize, request: u32, fences: &[u64]) {
        let it = &self.clients[client];
        if it.state != State::Waiting(request) || now >= it.trusted_until {
            // What was asked again after it had been refused is not wanted any more.
            if let Some(owner) = it.owner
                && it.state != State::Inside(request)
            {
                self.say(now, client, Command::Release(owner, request));
            }
            return;
        }
        let (locks, until) = (it.locks.clone(), it.trusted_until);
        self.clients[client].state = State::Inside(request);
        self.clients[client].is_answered(request);
        for (&lock, &fence) in locks.iter().zip(fences) {
            if let Err(what) = self.judge.enters(now, client, lock, fence, until) {
                return self.report(now, what);
            }
        }
        let hold = match self.random.below(4) {
            0 => Time(self.random.below(4_000_000)),
            _ => Time(self.random.below(200_000)),
        };
        self.plan_act(now + hold, client, Act::Leave(request));
    }
}
