//! Clients with timed holds: each asks, renews and releases at whichever member it likes, and believes that
//! it is inside for its time to live, whatever happens to members.
//!
//! A client counts from before it asked, by its own clock, less what that clock may be slower. Whoever
//! waited for so long that this is over renews the hold before it goes inside.

use std::time::Duration;

use catraca_group::{
    AcquireTimed, HoldId, Input, Operation, Refusal, Renewal, TimedHold, Wait, Which, Who,
};

use super::clients::{Act, Command, PAUSE, State};
use super::engine::Simulation;
use crate::time::Time;

/// A client that is not answered for so long asks again, or somewhere else.
const PATIENCE: Time = Time(2_500_000);

/// A timed hold, from asking until it is released.
#[derive(Clone, Debug)]
pub(super) struct Stay {
    id: HoldId,
    locks: Vec<u32>,
    ttl: Duration,
    fences: Vec<u64>,
    /// When what was asked last was said.
    said: Time,
    /// The client believes that it is inside until then.
    until: Time,
    /// How often it was asked to be released.
    releases: u32,
}

impl Simulation<'_> {
    /// Whether a client uses timed holds.
    pub(super) fn is_timed(&self, client: usize) -> bool {
        (self.setup.durable..self.setup.durable + self.setup.timed).contains(&client)
    }

    /// A client does something.
    pub(super) fn act_timed(&mut self, now: Time, client: usize, act: Act) {
        let state = self.clients[client].state;
        match (act, state) {
            (Act::Connect | Act::Ask, State::Connecting | State::Thinking) => {
                self.ask_timed(now, client);
            }
            (Act::Leave(number), State::Inside(inside)) if number == inside => {
                self.judge.leaves(client);
                self.release_timed(now, client);
            }
            (Act::Renew, State::Inside(_)) => self.renew_timed(now, client),
            (Act::Look, _) => self.look_timed(now, client),
            _ => {}
        }
    }

    fn ask_timed(&mut self, now: Time, client: usize) {
        let locks = self.draw_locks();
        let ttl = Duration::from_millis(1500 + self.random.below(3000));
        let wait = match self.random.below(3) {
            0 => Wait::AtMost(Duration::from_millis(1 + self.random.below(2000))),
            1 => Wait::No(Duration::from_millis(250)),
            _ => Wait::Forever,
        };
        let number = self.next_number(client);
        let id = HoldId((client as u128 + 1) << 64 | u128::from(number));
        let asked = AcquireTimed {
            id,
            names: locks.iter().map(|lock| format!("lock-{lock}")).collect(),
            permits: self.setup.permits,
            wait,
            ttl,
            who: Who::default(),
            token: id.0.to_be_bytes().to_vec(),
        };
        let (fences, until) = (Vec::new(), Time::ZERO);
        let it = &mut self.clients[client];
        it.stay = Some(Stay { id, locks, ttl, fences, said: now, until, releases: 0 });
        it.state = State::Waiting(number);
        self.visit(now, client, Command::AskTimed(number, asked));
    }

    fn next_number(&mut self, client: usize) -> u32 {
        let it = &mut self.clients[client];
        it.last_number += 1;
        it.last_number
    }

    /// A client says something to any member, and looks after a while whether it was answered.
    fn visit(&mut self, now: Time, client: usize, command: Command) {
        let site = self.random.below(self.sites.len() as u64) as usize;
        self.clients[client].site = site;
        self.say(now, client, command);
        self.plan_act(now + PATIENCE, client, Act::Look);
    }

    /// What is said about the hold of a client: by its id, or by its lock and its token.
    fn operate(&mut self, now: Time, client: usize, operation: Operation) {
        let number = self.next_number(client);
        let by_name = self.random.below(2) == 0 && self.setup.permits == 1;
        let it = &mut self.clients[client];
        let Some(stay) = &mut it.stay else { return };
        let name = |lock: &u32| format!("lock-{lock}");
        let token = Some(stay.id.0.to_be_bytes().to_vec());
        let which = match &stay.locks[..] {
            [lock] if by_name => Which::Alone { name: name(lock), token },
            [lock, ..] if by_name => Which::Name { name: name(lock), token },
            _ => Which::Id(stay.id),
        };
        stay.said = now;
        it.state = match it.state {
            State::Inside(_) => State::Inside(number),
            _ => State::Waiting(number),
        };
        self.visit(now, client, Command::Operate(number, which, operation));
    }

    fn renew_timed(&mut self, now: Time, client: usize) {
        let Some(stay) = &self.clients[client].stay else { return };
        let operation = Operation::Renew(Renewal::To(stay.ttl));
        self.operate(now, client, operation);
    }

    /// A client releases its hold: from now on it does not count on it.
    fn release_timed(&mut self, now: Time, client: usize) {
        self.clients[client].state = State::Thinking;
        if let Some(stay) = &mut self.clients[client].stay {
            stay.releases += 1;
        }
        self.operate(now, client, Operation::Release);
    }

    /// A client looks whether its time is over, or whether it waits for an answer in vain.
    fn look_timed(&mut self, now: Time, client: usize) {
        let it = &self.clients[client];
        let Some(stay) = &it.stay else { return };
        let is_late = now >= stay.said + PATIENCE;
        match it.state {
            State::Inside(_) if now >= stay.until => {
                self.judge.leaves(client);
                self.release_timed(now, client);
            }
            State::Inside(_) => {
                let until = stay.until;
                self.plan_act(until, client, Act::Look);
            }
            State::Waiting(_) if is_late && stay.releases > 0 => {
                // Its time ends by itself.
                match now < stay.until {
                    true => self.release_timed(now, client),
                    false => self.be_done(now, client),
                }
            }
            State::Waiting(_) if is_late => {
                let id = stay.id;
                self.say(now, client, Command::CancelTimed(id));
                self.clients[client].stay = None;
                self.rest_timed(now, client);
            }
            _ => {}
        }
    }

    fn be_done(&mut self, now: Time, client: usize) {
        let it = &mut self.clients[client];
        it.stay = None;
        it.served += 1;
        self.rest_timed(now, client);
    }

    fn rest_timed(&mut self, now: Time, client: usize) {
        self.judge.leaves(client);
        self.clients[client].state = State::Thinking;
        let pause = Time(self.random.below(PAUSE) + 1000);
        self.plan_act(now + pause, client, Act::Ask);
    }

    /// A client hears what has come of what it said last.
    pub(super) fn hear_of_stay(
        &mut self,
        now: Time,
        client: usize,
        number: u32,
        result: Result<Box<TimedHold>, Refusal>,
    ) {
        let lease = self.setup.lease;
        let it = &mut self.clients[client];
        let Some(stay) = &mut it.stay else { return };
        let state = it.state;
        if state != State::Waiting(number) && state != State::Inside(number) {
            return;
        }
        match (result, state) {
            (Err(why), _) if stay.until > now && is_loss(&why) && stay.releases <= 1 => {
                self.report(now, format!("the hold of client {client} is lost: {why}"));
            }
            (result, _) if stay.releases > 0 => match result {
                Err(Refusal::NoSuchHold(_) | Refusal::OtherHolder(_)) | Ok(_) => {
                    self.be_done(now, client);
                }
                Err(_) => {
                    let at = stay.said + PATIENCE;
                    self.plan_act(at, client, Act::Look);
                }
            },
            (Ok(hold), _) => {
                let trusted = stay.said + it.clock.ticks(lease.seen_from_elsewhere(stay.ttl));
                stay.until = stay.until.max(trusted);
                stay.fences = hold.fences;
                self.be_inside(now, client, number);
            }
            (Err(_), State::Waiting(_)) => {
                it.stay = None;
                self.rest_timed(now, client);
            }
            (Err(_), _) => {}
        }
    }

    /// The hold of a client is granted or renewed.
    fn be_inside(&mut self, now: Time, client: usize, number: u32) {
        let it = &mut self.clients[client];
        let Some(stay) = it.stay.clone() else { return };
        if let State::Inside(_) = it.state {
            self.judge.prolongs(client, stay.until);
            self.plan_act(stay.until, client, Act::Look);
            let at = now + Time(self.random.below(1_000_000));
            return self.plan_act(at, client, Act::Leave(number));
        }
        if now >= stay.until {
            return self.renew_timed(now, client);
        }
        it.state = State::Inside(number);
        for (&lock, &fence) in stay.locks.iter().zip(&stay.fences) {
            if let Err(what) = self.judge.enters(now, client, lock, fence, stay.until) {
                return self.report(now, what);
            }
        }
        self.plan_act(stay.until, client, Act::Look);
        match self.random.below(3) {
            0 => {
                let at = now + Time(self.random.below(2_000_000));
                self.plan_act(at, client, Act::Renew);
            }
            _ => {
                let at = now + Time(self.random.below(400_000));
                self.plan_act(at, client, Act::Leave(number));
            }
        }
    }

    /// What a client has said about timed holds reaches a member.
    pub(super) fn command_timed(
        &mut self,
        now: Time,
        client: usize,
        site: usize,
        command: Command,
    ) {
        let asker = |number: u32| ((client as u64) << 48) | u64::from(number);
        let input = match command {
            Command::AskTimed(number, asked) => Input::AcquireTimed(asker(number), asked),
            Command::CancelTimed(id) => Input::CancelTimed(id),
            Command::Operate(number, which, operation) => {
                Input::Timed(asker(number), which, operation)
            }
            _ => return,
        };
        self.step(now, site, input);
    }
}

/// Whether a refusal says that a hold is not there.
fn is_loss(why: &Refusal) -> bool {
    matches!(why, Refusal::NoSuchHold(_) | Refusal::OtherHolder(_))
}
