//! The simulation of members: takes the next event, lets a member step, tells its clients.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use catraca_core::{NodeId, property};
use catraca_group::{Input, Owner, PeerMessage, Timer, Turns, WholeMember};

use super::clients::{Act, Client, Command};
use super::driver::group_time;
use super::flaw::Flaw;
use super::judge::Judge;
use super::report::{Report, Tally};
use super::setup::{Setup, SetupError};
use crate::claims::ClaimSource;
use crate::digest::Digest;
use crate::engine::bounds::Bounds;
use crate::metrics::Metrics;
use crate::monitor::{Broken, Violation};
use crate::network::{Links, Network, Order};
use crate::queue::EventQueue;
use crate::random::Random;
use crate::report::End;
use crate::time::Time;

/// How many events pass between two looks at the stop flag.
const EVENTS_PER_LOOK: u64 = 1024;
/// A flaw of the driver shows once in so many times.
const FLAW_ONCE_IN: u64 = 8;

/// Is called with a line for everything that happens.
pub type Observer<'a> = dyn FnMut(Time, fmt::Arguments<'_>) + 'a;

/// What may listen to a run or end it early.
#[derive(Default)]
pub struct Hooks<'a> {
    /// Who listens.
    pub observer: Option<&'a mut Observer<'a>>,
    /// Ends the run when it becomes true.
    pub stop: Option<&'a AtomicBool>,
}

/// Runs `setup`.
pub fn run<'a>(setup: &'a Setup, hooks: Hooks<'a>) -> Result<Report, SetupError> {
    setup.check()?;
    Ok(Simulation::new(setup, hooks).run())
}

/// Something that is going to happen.
#[derive(Debug)]
pub(super) enum Event {
    /// A message arrives.
    Message {
        from: usize,
        to: usize,
        bytes: Vec<u8>,
        is_upkeep: bool,
    },
    /// A timer of a member runs out, if it has not been set anew.
    Timer {
        member: usize,
        timer: Timer,
        setting: u64,
    },
    /// The connection to another member comes or goes.
    Link {
        member: usize,
        peer: usize,
        is_up: bool,
    },
    /// A client does something.
    Act {
        client: usize,
        session: u32,
        act: Act,
    },
    /// What a client has said reaches its member.
    Command {
        client: usize,
        session: u32,
        command: Command,
    },
    /// A partition begins or ends.
    Cut,
    Crash(usize),
    Pause(usize),
    Resume(usize),
}

impl Event {
    /// Whether it only keeps things going: such events never end, and alone they change nothing.
    fn is_upkeep(&self) -> bool {
        match self {
            Event::Message { is_upkeep, .. } => *is_upkeep,
            Event::Timer { timer, .. } => {
                matches!(timer, Timer::Session(_) | Timer::Detector(_))
            }
            Event::Act { act, .. } => matches!(act, Act::Renew | Act::Lapse),
            Event::Command { command, .. } => matches!(command, Command::Renew { .. }),
            _ => false,
        }
    }

    /// The member that has to be running for it.
    fn member(&self, clients: &[Client]) -> Option<usize> {
        match self {
            Event::Message { to: member, .. }
            | Event::Timer { member, .. }
            | Event::Link { member, .. } => Some(*member),
            Event::Command { client, .. } => Some(clients[*client].member),
            _ => None,
        }
    }
}

/// A member, and what the simulator knows of it.
pub(super) struct Site {
    pub(super) member: WholeMember,
    pub(super) is_alive: bool,
    /// In how many pauses it is.
    pub(super) pauses: u32,
    /// What has come during a pause.
    pub(super) backlog: VecDeque<Event>,
    /// Whose sessions it has: the client, and which session of it.
    pub(super) sessions: BTreeMap<Owner, (usize, u32)>,
}

pub(super) struct Simulation<'a> {
    pub(super) setup: &'a Setup,
    pub(super) sites: Vec<Site>,
    pub(super) clients: Vec<Client>,
    pub(super) queue: EventQueue<Event>,
    pub(super) links: Links,
    /// Which connections are up, from the first member's point of view.
    pub(super) connected: Vec<Vec<bool>>,
    /// The timers that are set, with the number of the setting that counts.
    pub(super) timers: BTreeMap<(usize, Timer), u64>,
    pub(super) settings: u64,
    pub(super) random: Random,
    pub(super) claims: ClaimSource,
    pub(super) judge: Judge,
    pub(super) metrics: Metrics,
    pub(super) tally: Tally,
    pub(super) digest: Digest,
    pub(super) violation: Option<Violation>,
    /// Live members that were taken for crashed, as the end of a sentence.
    pub(super) mistakes: String,
    /// How many events are planned that are more than upkeep, and when the last one was.
    pending: u64,
    last_change: Time,
    bounds: Bounds,
    hooks: Hooks<'a>,
}

impl<'a> Simulation<'a> {
    fn new(setup: &'a Setup, hooks: Hooks<'a>) -> Self {
        let members = setup.members as usize;
        let handovers = match setup.flaw {
            Some(Flaw::HandsOverTooOften) => setup.turns.handovers + 4,
            _ => setup.turns.handovers,
        };
        let turns = Turns { handovers, ..setup.turns };
        let site = |me: usize| Site {
            member: WholeMember::new(setup.view(me), me as u64 + 1, turns, group_time(Time::ZERO)),
            is_alive: true,
            pauses: 0,
            backlog: VecDeque::new(),
            sessions: BTreeMap::new(),
        };
        let order = if setup.flaw == Some(Flaw::Reorders) { Order::Any } else { Order::Fifo };
        Simulation {
            setup,
            sites: (0..members).map(site).collect(),
            clients: (0..setup.clients as usize)
                .map(|client| Client::new(client % members, setup))
                .collect(),
            queue: EventQueue::default(),
            links: Links::new(Network { latency: setup.latency.clone(), order }),
            connected: vec![vec![false; members]; members],
            timers: BTreeMap::new(),
            settings: 0,
            random: Random::new(setup.seed),
            claims: ClaimSource::new(setup.claims, setup.locks),
            judge: Judge::new(setup.locks, setup.permits, setup.turns),
            metrics: Metrics::new(0),
            tally: Tally::default(),
            digest: Digest::default(),
            violation: None,
            mistakes: String::new(),
            pending: 0,
            last_change: Time::ZERO,
            bounds: Bounds::of::<Event>(),
            hooks,
        }
    }

    fn run(mut self) -> Report {
        self.start();
        let grace = self.setup.grace();
        let end = loop {
            if self.violation.is_some() {
                break End::Violation;
            }
            if self.setup.limits.entries.is_some_and(|wanted| self.metrics.entries >= wanted) {
                break End::Entries;
            }
            let Some((now, event)) = self.queue.pop() else { break End::Quiet };
            if self.setup.limits.time.is_some_and(|limit| now > limit) {
                break End::Time;
            }
            if let Some(end) = self.bounds.passed(&self.queue, now) {
                break end;
            }
            if self.tally.events >= self.setup.most_events {
                break End::EventBound;
            }
            self.tally.events += 1;
            if self.tally.events.is_multiple_of(EVENTS_PER_LOOK)
                && self.hooks.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
            {
                break End::Interrupted;
            }
            if !event.is_upkeep() {
                self.pending -= 1;
                self.last_change = now;
            } else if self.pending == 0 && (self.is_done() || now > self.last_change + grace) {
                break End::Quiet;
            }
            self.handle(now, event);
        };
        self.finish(end)
    }

    /// Whether no client has anything left to do.
    fn is_done(&self) -> bool {
        self.clients.iter().all(Client::is_done)
    }

    fn start(&mut self) {
        self.plan_faults();
        for member in 0..self.sites.len() {
            for peer in (0..self.sites.len()).filter(|&peer| peer != member) {
                let (from, to) = (node(peer), node(member));
                let departure = self.setup.faults.kept_departure(Time::ZERO, from, to);
                let at = self.links.arrival(departure, from, to, &mut self.random);
                self.plan(at, Event::Link { member, peer, is_up: true });
            }
        }
        for client in 0..self.clients.len() {
            self.plan(Time::ZERO, Event::Act { client, session: 0, act: Act::Open });
        }
    }

    /// Something is going to happen at `at`.
    pub(super) fn plan(&mut self, at: Time, event: Event) {
        self.pending += u64::from(!event.is_upkeep());
        self.queue.push(at, event);
    }

    /// Something happens, unless it has to wait for a member that pauses, or comes to one that has
    /// crashed.
    pub(super) fn handle(&mut self, now: Time, event: Event) {
        if let Some(member) = event.member(&self.clients) {
            let site = &mut self.sites[member];
            if !site.is_alive {
                return;
            }
            if site.pauses > 0 {
                return site.backlog.push_back(event);
            }
        }
        match event {
            Event::Message { from, to, bytes, .. } => self.deliver(now, from, to, &bytes),
            Event::Timer { member, timer, setting } => {
                if self.timers.get(&(member, timer)) == Some(&setting) {
                    self.timers.remove(&(member, timer));
                    self.step(now, member, Input::Timer(timer));
                }
            }
            Event::Link { member, peer, is_up } => self.link(now, member, peer, is_up),
            Event::Act { client, session, act } => self.act(now, client, session, act),
            Event::Command { client, session, command } => {
                self.command(now, client, session, command);
            }
            Event::Cut => self.cut(now),
            Event::Crash(member) => self.crash(now, member),
            Event::Pause(member) => self.sites[member].pauses += 1,
            Event::Resume(member) => self.resume(now, member),
        }
    }

    fn deliver(&mut self, now: Time, from: usize, to: usize, bytes: &[u8]) {
        self.digest.add_bytes(&[from as u8, to as u8]);
        self.digest.add_bytes(bytes);
        match postcard::from_bytes::<PeerMessage<'_>>(bytes) {
            Ok(message) => {
                self.note(now, format_args!("m{to} hears m{from}: {message:?}"));
                self.step(now, to, Input::Message(from, message));
            }
            Err(error) => {
                let what = format!("a message from member {from} to {to} cannot be read: {error}");
                self.report(now, Broken { invariant: property::NO_ANOMALY, what });
            }
        }
    }

    /// Whether the driver does its deliberate wrong this time.
    pub(super) fn errs(&mut self, flaw: Flaw) -> bool {
        self.setup.flaw == Some(flaw) && self.random.below(FLAW_ONCE_IN) == 0
    }

    pub(super) fn note(&mut self, now: Time, what: fmt::Arguments<'_>) {
        if let Some(observer) = &mut self.hooks.observer {
            observer(now, what);
        }
    }

    pub(super) fn expect(&mut self, now: Time, checked: Result<(), Broken>) {
        if let Err(broken) = checked {
            self.report(now, broken);
        }
    }

    /// Keeps the first violation: later ones may be its consequences. If live members were taken for
    /// crashed before, it says so.
    #[cold]
    pub(super) fn report(&mut self, at: Time, Broken { invariant, mut what }: Broken) {
        what.push_str(&self.mistakes);
        self.note(at, format_args!("{invariant} is broken: {what}"));
        self.violation.get_or_insert(Violation { invariant, what, at });
    }
}

/// A member as the network knows it.
pub(super) fn node(member: usize) -> NodeId {
    NodeId(member as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Distribution;
    use crate::setup::Limits;

    #[test]
    fn clients_that_take_no_time_do_not_keep_a_run_at_one_instant_for_ever() {
        let limits = Limits { entries: None, time: Some(Time::units(1)) };
        let setup = Setup { hold: Distribution::ZERO, limits, ..Setup::new("raymond", 1) };
        let mut simulation = Simulation::new(&setup, Hooks::default());
        simulation.bounds.at_once = 1000;
        let report = simulation.run();
        assert_eq!((report.end, report.time), (End::SameInstant, 0.0));
    }
}
