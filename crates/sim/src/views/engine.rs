//! The simulation of groups that change: takes the next event and lets it happen.

use std::fmt;

use catraca_group::registry::{Answer, Trouble, Txn, Word as Change};
use catraca_group::{Force, Input, Order, PeerMessage, Run, Timer};

use super::clients::{Act, Client, Command, Word};
use super::faults::Fault;
use super::judge::Judge;
use super::registry::Registry;
use super::setup::Setup;
use super::sites::{Links, Site};
use crate::digest::Digest;
use crate::queue::EventQueue;
use crate::random::Random;
use crate::time::Time;

/// A run that takes more events than this does not end.
const MOST_EVENTS: u64 = 5_000_000;

/// Something that is going to happen.
#[derive(Debug)]
pub(super) enum Event {
    Timer {
        site: usize,
        life: u64,
        timer: Timer,
        setting: u64,
    },
    Message {
        from: Run,
        to: usize,
        receiver: u64,
        bytes: Vec<u8>,
    },
    Link {
        site: usize,
        incarnation: u64,
        peer: Run,
        is_up: bool,
    },
    /// A transaction arrives at the registry.
    Apply {
        site: usize,
        life: u64,
        answer: Option<u64>,
        txn: Txn,
    },
    Answered {
        site: usize,
        life: u64,
        number: u64,
        result: Result<Answer, Trouble>,
    },
    Changed {
        site: usize,
        life: u64,
        words: Vec<Change>,
    },
    /// What a client has said reaches its member.
    Command {
        client: usize,
        session: u32,
        site: usize,
        command: Command,
    },
    /// What a member has said reaches its client.
    Word {
        client: usize,
        session: u32,
        word: Word,
    },
    Act {
        client: usize,
        session: u32,
        act: Act,
    },
    Fault(Fault),
    /// Somebody ends a hold by force.
    Force,
    Heal,
}

/// What of a site has to be there for an event.
enum Stamp {
    Any,
    /// This process.
    Life(u64),
    /// This run of the member: a process may be several, one after the other.
    Incarnation(u64),
}

impl Event {
    /// The site that has to be awake for it.
    fn site(&self) -> Option<(usize, Stamp)> {
        match self {
            Event::Timer { site, life, .. }
            | Event::Answered { site, life, .. }
            | Event::Changed { site, life, .. } => Some((*site, Stamp::Life(*life))),
            Event::Link { site, incarnation, .. } => {
                Some((*site, Stamp::Incarnation(*incarnation)))
            }
            Event::Message { to, receiver, .. } => Some((*to, Stamp::Incarnation(*receiver))),
            Event::Command { site, .. } => Some((*site, Stamp::Any)),
            _ => None,
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What went wrong that must not, and when.
    pub violation: Option<(Time, String)>,
    /// How often somebody was inside.
    pub entries: u64,
    /// The number of the last view.
    pub epoch: u32,
    /// How many steps whoever makes tables took within the time in which a strike can come.
    pub steps: u64,
    /// How many events happened.
    pub events: u64,
    /// When it ended.
    pub time: Time,
    /// A number in which two runs that differ are sure to differ, practically.
    pub digest: Digest,
}

/// Is called with a line for everything that happens.
pub(super) type Observer<'a> = dyn FnMut(Time, fmt::Arguments<'_>) + 'a;

pub(super) struct Simulation<'a> {
    pub(super) setup: &'a Setup,
    pub(super) sites: Vec<Site>,
    pub(super) clients: Vec<Client>,
    pub(super) links: Links,
    pub(super) registry: Registry,
    pub(super) queue: EventQueue<Event>,
    pub(super) random: Random,
    pub(super) judge: Judge,
    pub(super) healed_at: Option<Time>,
    pub(super) settings: u64,
    pub(super) last_incarnation: u64,
    pub(super) steps: u64,
    violation: Option<(Time, String)>,
    events: u64,
    digest: Digest,
    observer: Option<&'a mut Observer<'a>>,
}

/// Runs `setup` with the faults that `seed` draws.
pub fn run(setup: &Setup, seed: u64) -> Report {
    Simulation::new(setup, seed, None).run()
}

/// The same, for somebody who wants to know what happens.
pub fn run_watched<'a>(setup: &'a Setup, seed: u64, observer: &'a mut Observer<'a>) -> Report {
    Simulation::new(setup, seed, Some(observer)).run()
}

impl<'a> Simulation<'a> {
    fn new(setup: &'a Setup, seed: u64, observer: Option<&'a mut Observer<'a>>) -> Self {
        let mut random = Random::new(seed);
        let drift = setup.drift();
        let sites = (0..setup.members).map(|_| Site::new(&mut random, drift)).collect();
        let clients = (0..setup.clients)
            .map(|client| Client::new(client % setup.members, &mut random, drift))
            .collect();
        Simulation {
            setup,
            sites,
            clients,
            links: Links::new(setup.members),
            registry: Registry::new(&mut random),
            queue: EventQueue::default(),
            random,
            judge: Judge::new(setup.permits),
            healed_at: None,
            settings: 0,
            last_incarnation: 0,
            steps: 0,
            violation: None,
            events: 0,
            digest: Digest::default(),
            observer,
        }
    }

    fn run(mut self) -> Report {
        for site in 0..self.sites.len() {
            self.start(Time::ZERO, site);
        }
        for client in 0..self.clients.len() {
            let at = Time(self.random.below(2_000_000));
            self.plan_act(at, client, Act::Connect);
        }
        self.plan_faults();
        for _ in 0..self.setup.forces {
            let at = Time(self.random.below(self.setup.faulty.0));
            self.plan(at, Event::Force);
        }
        while self.violation.is_none() {
            let Some((now, event)) = self.queue.pop() else { break };
            self.events += 1;
            if self.events > MOST_EVENTS {
                self.report(now, "the run does not end".to_string());
            }
            if let Some(healed) = self.healed_at {
                if self.clients.iter().all(|client| client.served >= self.setup.rounds) {
                    break;
                }
                if now > healed + self.setup.patience {
                    self.report_waiting(now);
                    break;
                }
            }
            self.handle(now, event);
        }
        self.finish()
    }

    fn report_waiting(&mut self, now: Time) {
        let waits = |(_, client): &(usize, &Client)| client.served < self.setup.rounds;
        let waiting = self.clients.iter().enumerate().filter(waits);
        let waiting: Vec<String> =
            waiting.map(|(number, client)| format!("{number} ({})", client.doing())).collect();
        self.report(now, format!("these clients are not served: {}", waiting.join(", ")));
    }

    fn finish(self) -> Report {
        let epochs = self.sites.iter().filter_map(|site| site.member.as_ref());
        let epoch = epochs.map(|member| member.service().view().epoch.0).max().unwrap_or(0);
        Report {
            violation: self.violation,
            entries: self.judge.entries,
            epoch,
            steps: self.steps,
            events: self.events,
            time: self.queue.now(),
            digest: self.digest,
        }
    }

    pub(super) fn plan(&mut self, at: Time, event: Event) {
        self.queue.push(at, event);
    }

    /// Something happens, unless it comes to a run that is gone, or has to wait until it wakes up.
    pub(super) fn handle(&mut self, now: Time, event: Event) {
        if let Some((site, stamp)) = event.site() {
            let there = &mut self.sites[site];
            let is_there = match stamp {
                Stamp::Any => true,
                Stamp::Life(life) => life == there.life,
                Stamp::Incarnation(incarnation) => incarnation == there.incarnation,
            };
            if there.member.is_none() || !is_there {
                return;
            }
            if there.is_paused {
                return there.backlog.push_back(event);
            }
        }
        match event {
            Event::Timer { site, timer, setting, .. } => {
                if self.sites[site].timers.get(&timer) == Some(&setting) {
                    self.sites[site].timers.remove(&timer);
                    self.step(now, site, Input::Timer(timer));
                }
            }
            Event::Message { from, to, bytes, .. } => {
                self.digest.add_bytes(&bytes);
                match postcard::from_bytes::<PeerMessage<'_>>(&bytes) {
                    Ok(message) => {
                        self.note(now, format_args!("m{to} hears {from}: {message:?}"));
                        self.step(now, to, Input::Hear(from, message));
                    }
                    Err(error) => self.report(now, format!("a message cannot be read: {error}")),
                }
            }
            Event::Link { site, peer, is_up, .. } => {
                self.step(now, site, Input::Link(peer, is_up));
            }
            Event::Apply { site, life, answer, txn } => {
                self.apply(now, site, life, answer, &txn);
            }
            Event::Answered { site, number, result, .. } => {
                self.step(now, site, Input::Answered(number, result));
            }
            Event::Changed { site, words, .. } => {
                for word in words {
                    self.step(now, site, Input::Word(word));
                }
            }
            Event::Command { client, session, site, command } => {
                self.command(now, client, session, site, command);
            }
            Event::Word { client, session, word } => self.hear(now, client, session, word),
            Event::Act { client, session, act } => self.act(now, client, session, act),
            Event::Fault(fault) => self.fail(now, fault),
            Event::Force => self.force(now),
            Event::Heal => self.heal(now),
        }
    }

    /// Somebody ends a hold of a client by force, and asks any member to see to it.
    fn force(&mut self, now: Time) {
        let mut held = Vec::new();
        for (site, there) in self.sites.iter().enumerate() {
            let holds = there.member.iter().flat_map(|member| member.service().holds());
            held.extend(holds.map(|hold| (site, hold.names[0].clone(), hold.fences[0])));
        }
        let asked = self.random.below(self.sites.len() as u64) as usize;
        let there = &self.sites[asked];
        if held.is_empty() || there.member.is_none() || there.is_paused {
            return;
        }
        let (site, name, fence) = held.swap_remove(self.random.below(held.len() as u64) as usize);
        self.note(now, format_args!("m{asked} is to end {name} at m{site} by force"));
        let order = Order::Force(Force { name, fence, by: "operator".to_string() });
        self.step(now, asked, Input::Order(0, &format!("m{site}"), order));
    }

    /// Whether things still go wrong.
    pub(super) fn is_faulty(&self, now: Time) -> bool {
        now < self.setup.faulty
    }

    /// How long something takes over a network: mostly little, sometimes long.
    pub(super) fn latency(&mut self, now: Time) -> Time {
        let usual = Time(50 + self.random.below(2_000));
        match self.random.below(50) {
            0 if self.is_faulty(now) => usual + Time(self.random.below(500_000)),
            _ => usual,
        }
    }

    pub(super) fn note(&mut self, now: Time, what: fmt::Arguments<'_>) {
        if let Some(observer) = &mut self.observer {
            observer(now, what);
        }
    }

    /// Keeps the first violation: later ones may follow from it.
    pub(super) fn report(&mut self, now: Time, what: String) {
        self.note(now, format_args!("VIOLATION: {what}"));
        self.violation.get_or_insert((now, what));
    }
}
