//! Clients with durable holds: these belong to them until they release them, whatever happens to sessions
//! and members.

use std::time::Duration;

use catraca_group::{
    AcquireDurable, DurableHold, HoldId, Input, Owner, Refusal, Target, Unlock, Wait,
};

use super::clients::{Act, Command, State, TTL, Word};
use super::engine::Simulation;
use crate::time::Time;

/// A request for a durable hold, from asking until it is released.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// Its name; each has another one.
    request: u32,
    pub(super) locks: Vec<u32>,
    /// The fences, once it is known to be held.
    fences: Option<Vec<u64>>,
    /// How often it was asked to be released.
    unlocks: u32,
}

impl Round {
    /// It is asked to be released once more.
    pub(super) fn unlocks_again(&mut self) {
        self.unlocks += 1;
    }

    /// Whether the client may count on it.
    pub(super) fn is_held(&self) -> bool {
        self.fences.is_some() && self.unlocks == 0
    }
}

impl Simulation<'_> {
    /// Whether a client asks for durable holds.
    pub(super) fn is_durable(&self, client: usize) -> bool {
        client < self.setup.durable
    }

    /// A client asks for its hold, for the first time or again, or goes on to release it.
    pub(super) fn ask_durably(&mut self, now: Time, client: usize, owner: Owner) {
        if self.clients[client].round.is_none() {
            let locks = self.draw_locks();
            let it = &mut self.clients[client];
            it.last_request += 1;
            let round = Round { request: it.last_request, locks, fences: None, unlocks: 0 };
            it.round = Some(round);
        }
        let it = &mut self.clients[client];
        it.last_number += 1;
        let number = it.last_number;
        it.state = State::Waiting(number);
        let Some(round) = it.round.clone() else { return };
        if round.unlocks > 0 {
            return self.unlock(now, client, owner);
        }
        let wait = match self.random.below(6) {
            0 => Wait::No(Duration::from_millis(250)),
            1 => Wait::AtMost(Duration::from_millis(1 + self.random.below(3000))),
            _ => Wait::Forever,
        };
        let asked = AcquireDurable {
            names: round.locks.iter().map(|lock| format!("lock-{lock}")).collect(),
            permits: self.setup.permits,
            wait,
            owner: format!("client-{client}"),
            note: String::new(),
            request: round.request.to_string(),
        };
        let ask = Command::AskDurably(owner, number, asked);
        self.clients[client].unanswered.push(ask.clone());
        self.say(now, client, ask);
    }

    /// A client releases its hold: from now on it does not count on it.
    pub(super) fn unlock(&mut self, now: Time, client: usize, owner: Owner) {
        let it = &mut self.clients[client];
        let (name, number) = (format!("client-{client}"), it.last_number);
        let Some(round) = &mut it.round else { return };
        round.unlocks += 1;
        // By its id: what is said twice, and arrives late, must not release a later hold of the lock.
        let target = Target::Id(HoldId::of(&name, &round.request.to_string()));
        it.state = State::Waiting(number);
        self.judge.leaves(client);
        let unlock = Unlock { target, owner: Some(name) };
        let unlock = Command::Unlock(owner, number, unlock);
        self.clients[client].unanswered.push(unlock.clone());
        self.say(now, client, unlock);
    }

    /// A client has held its lock for as long as it wanted.
    pub(super) fn leave_durably(&mut self, now: Time, client: usize, owner: Owner) {
        // What it has asked for at members that it has left may still be granted there, once.
        let it = &self.clients[client];
        let safe = it.moved_at + Time(3 * TTL.as_micros() as u64);
        if it.moved_at > Time::ZERO && now < safe {
            let number = it.last_number;
            return self.plan_act(safe, client, Act::Leave(number));
        }
        let number = it.last_number;
        self.clients[client].unanswered.clear();
        self.say(now, client, Command::Cancel(owner, number));
        self.unlock(now, client, owner);
    }

    /// A client hears what has come of its request.
    pub(super) fn hear_of_hold(
        &mut self,
        now: Time,
        client: usize,
        number: u32,
        result: Result<Box<DurableHold>, Refusal>,
    ) {
        let it = &mut self.clients[client];
        let is_awaited = it.state == State::Waiting(number);
        if is_awaited {
            it.is_answered(number);
        }
        let Some(round) = &mut it.round else { return };
        if round.unlocks > 0 || !is_awaited {
            return;
        }
        let hold = match result {
            Ok(hold) => hold,
            Err(_) => return self.rest(now, client),
        };
        let locks = round.locks.clone();
        if hold.request != round.request.to_string() {
            return self.report(now, format!("client {client} was given another hold: {hold:?}"));
        }
        match &round.fences {
            Some(fences) if *fences != hold.fences => {
                return self.report(now, format!("client {client} has another hold than before"));
            }
            Some(_) => {}
            None => {
                round.fences = Some(hold.fences.clone());
                for (&lock, &fence) in locks.iter().zip(&hold.fences) {
                    let until = Time(u64::MAX);
                    if let Err(what) = self.judge.enters(now, client, lock, fence, until) {
                        return self.report(now, what);
                    }
                }
            }
        }
        self.clients[client].state = State::Inside(number);
        let hold = Time(self.random.below(2_000_000));
        self.plan_act(now + hold, client, Act::Leave(number));
    }

    /// A client hears what has come of releasing its hold.
    pub(super) fn hear_of_unlock(
        &mut self,
        now: Time,
        client: usize,
        number: u32,
        result: Result<Box<DurableHold>, Refusal>,
    ) {
        let it = &mut self.clients[client];
        if it.state != State::Waiting(number) {
            return;
        }
        let Some(round) = it.round.clone().filter(|round| round.unlocks > 0) else { return };
        it.is_answered(number);
        match result {
            // It may have been released by an earlier try whose answer was lost.
            Err(Refusal::NoSuchHold(_) | Refusal::NotOwner(_)) if round.unlocks == 1 => {
                self.report(now, format!("the durable hold of client {client} is lost: {round:?}"));
            }
            Ok(_) | Err(Refusal::NoSuchHold(_) | Refusal::NotOwner(_)) => {
                it.round = None;
                it.served += 1;
                self.rest(now, client);
            }
            Err(_) => self.rest(now, client),
        }
    }

    /// What a client has said about durable holds reaches its member.
    pub(super) fn command_durably(
        &mut self,
        now: Time,
        client: usize,
        session: u32,
        site: usize,
        command: Command,
    ) {
        let asker =
            |number: u32| ((client as u64) << 48) | (u64::from(session) << 24) | u64::from(number);
        let input = match command {
            Command::AskDurably(owner, number, asked) => {
                Input::AcquireDurable(asker(number), Some(owner), asked, now.0 / 1000)
            }
            Command::Cancel(_, number) => Input::CancelDurable(asker(number)),
            Command::Unlock(_, number, unlock) => Input::Unlock(asker(number), unlock),
            _ => return,
        };
        self.step(now, site, input);
    }

    /// A member answers somebody who asked for a durable or a timed hold.
    pub(super) fn answer_durably(&mut self, now: Time, asker: u64, word: impl FnOnce(u32) -> Word) {
        let (client, session) = ((asker >> 48) as usize, (asker >> 24) as u32 & 0xff_ffff);
        self.answer(now, client, session, word(asker as u32 & 0xff_ffff));
    }
}
