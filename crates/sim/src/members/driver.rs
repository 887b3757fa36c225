//! The driver of a simulated member: what it asks for while it steps, and what follows.

use std::time::Duration;

use catraca_core::property;
use catraca_group::{Driver, Input, Notice, Output, Owner, PeerMessage, StepMessage, Timer};

use super::engine::{Event, Simulation, node};
use super::flaw::Flaw;
use crate::monitor::Broken;
use crate::time::Time;

/// A tick is a microsecond to a member: a unit is its second.
pub(super) fn group_time(Time(ticks): Time) -> catraca_group::Time {
    catraca_group::Time(ticks * 1000)
}

/// So long a time to a member is so many ticks, rounded up: no timer runs out too early.
fn ticks(duration: Duration) -> Time {
    Time(u64::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX))
}

/// Collects what a member asks for while it steps.
struct Collector {
    now: catraca_group::Time,
    /// Messages to other members, as bytes.
    sent: Vec<(usize, Vec<u8>)>,
    timers: Vec<(Timer, Option<Duration>)>,
}

impl Driver for Collector {
    fn now(&mut self) -> catraca_group::Time {
        self.now
    }

    fn send(&mut self, member: usize, message: StepMessage<'_>) {
        self.sent.push((member, written(&PeerMessage::Step(message))));
    }

    fn set_timer(&mut self, timer: Timer, after: Option<Duration>) {
        self.timers.push((timer, after));
    }
}

fn written(message: &PeerMessage<'_>) -> Vec<u8> {
    // Plain data into memory. If it could fail, the receiver would report that it cannot be read.
    postcard::to_allocvec(message).unwrap_or_default()
}

impl Simulation<'_> {
    /// A member takes one step, and everything that follows from it is done.
    pub(super) fn step(&mut self, now: Time, member: usize, input: Input<'_>) {
        self.digest.add_bytes(&now.0.to_le_bytes());
        self.digest.add_bytes(&[member as u8]);
        let mut collector =
            Collector { now: group_time(now), sent: Vec::new(), timers: Vec::new() };
        let mut outputs = Vec::new();
        self.sites[member].member.step(input, &mut collector, &mut outputs);
        for (to, bytes) in collector.sent {
            self.tally.steps += 1;
            self.send(now, member, to, bytes, false);
        }
        for (timer, after) in collector.timers {
            self.set_timer(now, member, timer, after);
        }
        for output in outputs {
            self.carry_out(now, member, output);
        }
    }

    fn carry_out(&mut self, now: Time, member: usize, output: Output) {
        let epoch = self.sites[member].member.service().view().epoch;
        match output {
            Output::Ask(to, number, question) => {
                self.tally.questions += 1;
                let bytes = written(&PeerMessage::Ask { epoch, number, question });
                self.send(now, member, to, bytes, false);
            }
            Output::Answer(to, number, answer) => {
                self.tally.answers += 1;
                let bytes = written(&PeerMessage::Answer { epoch, number, answer });
                self.send(now, member, to, bytes, false);
            }
            Output::Detect(to, body) => {
                self.tally.tests += 1;
                let bytes = written(&PeerMessage::Detector { epoch, body: &body });
                self.send(now, member, to, bytes, true);
            }
            Output::Notice(owner, notice) => self.notify(now, member, owner, notice),
            Output::Suspected(suspect) => self.suspected(now, member, suspect),
            Output::Anomaly(what) => {
                let what = format!("member {member}: {what}");
                self.report(now, Broken { invariant: property::NO_ANOMALY, what });
            }
            Output::Ready | Output::Excluded(_) | Output::Expelled(_) => {
                self.note(now, format_args!("m{member}: {output:?}"));
            }
            // Of the program that runs a member, which asks for nothing here.
            Output::Settled(..)
            | Output::Lost(_)
            | Output::LostAt(_)
            | Output::Page(..)
            | Output::Picture(..)
            | Output::Links(..)
            | Output::LostDirectly => {}
            // Of groups that change, which are simulated elsewhere.
            Output::Durable(..)
            | Output::Unlocked(..)
            | Output::Timed(..)
            | Output::Obeyed(..)
            | Output::Kicked(_)
            | Output::Fence(..)
            | Output::Transaction(..)
            | Output::Peers(_)
            | Output::View(..)
            | Output::Began(_)
            | Output::Out(_)
            | Output::Left => {}
        }
    }

    /// The client of a session is told something, if it still is that session's.
    fn notify(&mut self, now: Time, member: usize, owner: Owner, notice: Notice) {
        let Some(&(client, session)) = self.sites[member].sessions.get(&owner) else { return };
        self.note(now, format_args!("client {client} is told {notice:?}"));
        if self.clients[client].session == session {
            self.tell(now, client, notice);
        }
    }

    fn send(&mut self, now: Time, from: usize, to: usize, bytes: Vec<u8>, is_upkeep: bool) {
        if self.errs(Flaw::LosesMessages) {
            return;
        }
        let departure = self.setup.faults.kept_departure(now, node(from), node(to));
        let at = self.links.arrival(departure, node(from), node(to), &mut self.random);
        if self.errs(Flaw::RepeatsMessages) {
            let again = self.links.arrival(at, node(from), node(to), &mut self.random);
            self.plan(again, Event::Message { from, to, bytes: bytes.clone(), is_upkeep });
        }
        self.plan(at, Event::Message { from, to, bytes, is_upkeep });
    }

    fn set_timer(&mut self, now: Time, member: usize, timer: Timer, after: Option<Duration>) {
        let Some(after) = after else {
            self.timers.remove(&(member, timer));
            return;
        };
        self.settings += 1;
        let setting = self.settings;
        self.timers.insert((member, timer), setting);
        self.plan(now + ticks(after), Event::Timer { member, timer, setting });
    }
}
