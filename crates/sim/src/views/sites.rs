//! Members and the links between them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use catraca_group::{
    Driver, Entry, Input, Notice, Output, Owner, PeerMessage, Run, StepMessage, Timer, Turns, View,
    WholeMember,
};

use super::clients::Word;
use super::clock::Clock;
use super::engine::{Event, Simulation};
use crate::random::Random;
use crate::time::Time;

/// It takes so long until a broken connection is noticed, and until it is made anew.
const NOTICED: Time = Time(300_000);
/// How long the turns of members are: short, so that there are many.
const TURNS: Turns = Turns { rounds: 2, handovers: 4 };

/// A machine, and the member that runs there.
pub(super) struct Site {
    pub(super) clock: Clock,
    /// Which process it is, and which run of the member: a process that was excluded goes on as another
    /// run.
    pub(super) life: u64,
    pub(super) incarnation: u64,
    pub(super) member: Option<WholeMember>,
    pub(super) is_paused: bool,
    pub(super) backlog: VecDeque<Event>,
    pub(super) timers: BTreeMap<Timer, u64>,
    pub(super) valid_until: catraca_group::Time,
    view: Option<Arc<View>>,
    /// With whom it wants links, and with whom it has them.
    wanted: Vec<Run>,
    pub(super) up: Vec<Run>,
    /// Whose sessions it has.
    pub(super) sessions: BTreeMap<Owner, (usize, u32)>,
    /// Whether it does not reach the registry.
    pub(super) is_deaf: bool,
}

impl Site {
    pub(super) fn new(random: &mut Random, drift: i64) -> Self {
        let (offset, rate) = (random.below(1 << 40), random.below(2 * drift as u64 + 1) as i64);
        Site {
            clock: Clock { offset, drift: rate - drift },
            life: 0,
            incarnation: 0,
            member: None,
            is_paused: false,
            backlog: VecDeque::new(),
            timers: BTreeMap::new(),
            valid_until: catraca_group::Time(0),
            view: None,
            wanted: Vec::new(),
            up: Vec::new(),
            sessions: BTreeMap::new(),
            is_deaf: false,
        }
    }
}

/// A message that waits for a cut to end: who sent it, to which run, and what it says.
type Held = (Run, u64, Vec<u8>);

/// The network between members.
pub(super) struct Links {
    /// From whom to whom nothing passes.
    pub(super) cut: Vec<Vec<bool>>,
    /// What waits for a cut to end.
    held: BTreeMap<(usize, usize), VecDeque<Held>>,
    /// When the last message of a link arrives: they keep their order.
    last: BTreeMap<(usize, usize), Time>,
}

impl Links {
    pub(super) fn new(members: usize) -> Self {
        let cut = vec![vec![false; members]; members];
        Links { cut, held: BTreeMap::new(), last: BTreeMap::new() }
    }

    fn is_broken(&self, one: usize, other: usize) -> bool {
        self.cut[one][other] || self.cut[other][one]
    }
}

/// Collects what a member asks for while it steps.
struct Collector {
    now: catraca_group::Time,
    valid_until: catraca_group::Time,
    view: Option<Arc<View>>,
    sent: Vec<(String, Vec<u8>)>,
    timers: Vec<(Timer, Option<Duration>)>,
}

impl Driver for Collector {
    fn now(&mut self) -> catraca_group::Time {
        self.now
    }

    fn send(&mut self, member: usize, message: StepMessage<'_>) {
        let Some(view) = &self.view else { return };
        let name = view.members[member].name.clone();
        self.sent.push((name, written(&PeerMessage::Step(message))));
    }

    fn set_timer(&mut self, timer: Timer, after: Option<Duration>) {
        self.timers.push((timer, after));
    }

    fn is_valid_at(&mut self, now: catraca_group::Time) -> bool {
        now < self.valid_until
    }

    fn set_validity(&mut self, until: catraca_group::Time) {
        self.valid_until = until;
    }

    fn begin_view(&mut self, view: &Arc<View>, _: &[Run]) {
        self.view = Some(Arc::clone(view));
    }
}

fn written(message: &PeerMessage<'_>) -> Vec<u8> {
    // Plain data into memory. If it could fail, the receiver would report that it cannot be read.
    postcard::to_allocvec(message).unwrap_or_default()
}

impl Simulation<'_> {
    /// A member is started, as a new run of it.
    pub(super) fn start(&mut self, now: Time, site: usize) {
        if self.sites[site].member.is_some() {
            return;
        }
        // Runs that come back by themselves count up from here.
        self.last_incarnation += 1000;
        let incarnation = self.last_incarnation;
        let settings = self.setup.settings(site);
        let local = self.sites[site].clock.at(now);
        let member = WholeMember::joining(settings, incarnation, TURNS, local);
        let member = member.counting_from(self.setup.first_number);
        let member = match self.setup.mutant {
            Some(mutant) => member.with_rules(mutant),
            None => member,
        };
        let there = &mut self.sites[site];
        (there.member, there.incarnation, there.life) = (Some(member), incarnation, incarnation);
        there.valid_until = catraca_group::Time(0);
        self.note(now, format_args!("m{site} starts as run {incarnation}"));
        self.step(now, site, Input::Begin);
    }

    /// A member is gone, at once.
    pub(super) fn crash(&mut self, now: Time, site: usize) {
        self.note(now, format_args!("m{site} crashes"));
        let there = &mut self.sites[site];
        there.member = None;
        there.is_paused = false;
        there.backlog.clear();
        there.timers.clear();
        there.sessions.clear();
        there.view = None;
        there.wanted.clear();
        there.up.clear();
        self.connect(now);
    }

    /// A member takes one step, and everything that follows from it is done.
    pub(super) fn step(&mut self, now: Time, site: usize, input: Input<'_>) {
        let there = &mut self.sites[site];
        let Some(member) = &mut there.member else { return };
        let mut collector = Collector {
            now: there.clock.at(now),
            valid_until: there.valid_until,
            view: there.view.clone(),
            sent: Vec::new(),
            timers: Vec::new(),
        };
        let mut outputs = Vec::new();
        member.step(input, &mut collector, &mut outputs);
        (there.view, there.valid_until) = (collector.view, collector.valid_until);
        for (timer, after) in collector.timers {
            self.set_timer(now, site, timer, after);
        }
        for (name, bytes) in collector.sent {
            self.send(now, site, &name, bytes);
        }
        for output in outputs {
            self.carry_out(now, site, output);
        }
        self.strike(now, site);
    }

    fn carry_out(&mut self, now: Time, site: usize, output: Output) {
        let Some(member) = &self.sites[site].member else { return };
        let view = Arc::clone(member.service().view());
        let epoch = view.epoch;
        let name = |place: usize| view.members[place].name.clone();
        match output {
            Output::Ask(to, number, question) => {
                let bytes = written(&PeerMessage::Ask { epoch, number, question });
                self.send(now, site, &name(to), bytes);
            }
            Output::Answer(to, number, answer) => {
                let bytes = written(&PeerMessage::Answer { epoch, number, answer });
                self.send(now, site, &name(to), bytes);
            }
            Output::View(run, message) => {
                let bytes = written(&PeerMessage::View(message));
                self.send(now, site, &run.name, bytes);
            }
            Output::Transaction(number, txn) => self.submit(now, site, number, txn),
            Output::Peers(entries) => {
                self.sites[site].wanted = entries.iter().map(Entry::run).collect();
                self.connect(now);
            }
            Output::Notice(owner, notice) => self.notify(now, site, owner, notice),
            Output::Durable(asker, result) => {
                self.answer_durably(now, asker, |number| Word::Durable(number, result));
            }
            Output::Unlocked(asker, result) => {
                self.answer_durably(now, asker, |number| Word::Unlocked(number, result));
            }
            Output::Timed(asker, result) => {
                self.answer_durably(now, asker, |number| Word::Timed(number, result));
            }
            Output::Anomaly(what) => self.report(now, format!("m{site}: {what}")),
            Output::Out(why) => {
                self.note(now, format_args!("m{site} is out: {why}"));
                self.renumber(now, site);
            }
            Output::Left => {
                self.note(now, format_args!("m{site} has left"));
                self.crash(now, site);
                if self.healed_at.is_some() {
                    self.start(now, site);
                }
            }
            Output::Began(view) => {
                let members: Vec<&str> =
                    view.members.iter().map(|member| member.name.as_str()).collect();
                self.note(now, format_args!("m{site} begins view {epoch}: {members:?}"));
            }
            Output::Detect(..)
            | Output::Settled(..)
            | Output::Lost(_)
            | Output::LostDirectly
            | Output::LostAt(_)
            | Output::Obeyed(..)
            | Output::Kicked(_)
            | Output::Fence(..)
            | Output::Page(..)
            | Output::Picture(..)
            | Output::Links(..)
            | Output::Ready
            | Output::Expelled(_)
            | Output::Suspected(_)
            | Output::Excluded(_) => {}
        }
    }

    /// A member comes back as another run: links belong to runs.
    fn renumber(&mut self, now: Time, site: usize) {
        let there = &mut self.sites[site];
        let membership = there.member.as_ref().and_then(|member| member.service().membership());
        let Some(run) = membership.map(|membership| membership.run().incarnation) else { return };
        let before = std::mem::replace(&mut there.incarnation, run);
        there.valid_until = catraca_group::Time(0);
        there.up.clear();
        self.note(now, format_args!("m{site} goes on as run {run} after {before}"));
        self.connect(now);
    }

    fn set_timer(&mut self, now: Time, site: usize, timer: Timer, after: Option<Duration>) {
        let Some(after) = after else {
            self.sites[site].timers.remove(&timer);
            return;
        };
        self.settings += 1;
        let setting = self.settings;
        let there = &mut self.sites[site];
        there.timers.insert(timer, setting);
        let (at, life) = (now + there.clock.ticks(after), there.life);
        self.plan(at, Event::Timer { site, life, timer, setting });
    }

    /// The client of a session is told something, over its own connection.
    fn notify(&mut self, now: Time, site: usize, owner: Owner, notice: Notice) {
        let Some(&(client, session)) = self.sites[site].sessions.get(&owner) else { return };
        self.answer(now, client, session, Word::Notice(notice));
    }

    // Links.

    fn run_of(&self, site: usize) -> Run {
        Run { name: format!("m{site}"), incarnation: self.sites[site].incarnation }
    }

    /// Makes and breaks connections, as members want them and the network allows.
    pub(super) fn connect(&mut self, now: Time) {
        for one in 0..self.sites.len() {
            for other in 0..self.sites.len() {
                if one == other || self.sites[one].member.is_none() {
                    continue;
                }
                let run = self.run_of(other);
                let is_there = self.sites[other].member.is_some();
                let can_be = is_there
                    && !self.links.is_broken(one, other)
                    && self.sites[one].wanted.contains(&run);
                let is_up = self.sites[one].up.contains(&run);
                if can_be != is_up {
                    self.set_link(now, one, run, can_be);
                }
                // Links to earlier runs are gone.
                let name = format!("m{other}");
                let incarnation = self.sites[other].incarnation;
                self.sites[one].up.retain(|run| run.name != name || run.incarnation == incarnation);
            }
        }
    }

    fn set_link(&mut self, now: Time, site: usize, peer: Run, is_up: bool) {
        let there = &mut self.sites[site];
        match is_up {
            true => there.up.push(peer.clone()),
            false => there.up.retain(|run| *run != peer),
        }
        let incarnation = there.incarnation;
        let at = now + Time(self.random.below(NOTICED.0));
        self.plan(at, Event::Link { site, incarnation, peer, is_up });
    }

    /// Sends a message to whichever run of a member is there. A link keeps what it cannot deliver.
    fn send(&mut self, now: Time, from: usize, name: &str, bytes: Vec<u8>) {
        let sender = self.run_of(from);
        let Some(to) = (0..self.sites.len()).find(|site| format!("m{site}") == name) else {
            return;
        };
        let receiver = self.sites[to].incarnation;
        if self.links.cut[from][to] {
            let held = self.links.held.entry((from, to)).or_default();
            return held.push_back((sender, receiver, bytes));
        }
        self.pass_on(now, from, to, sender, receiver, bytes);
    }

    fn pass_on(
        &mut self,
        now: Time,
        from: usize,
        to: usize,
        sender: Run,
        receiver: u64,
        bytes: Vec<u8>,
    ) {
        let at = now + self.latency(now);
        let last = self.links.last.entry((from, to)).or_default();
        *last = at.max(*last);
        let at = *last;
        self.plan(at, Event::Message { from: sender, to, receiver, bytes });
    }

    /// What was held back sets off.
    pub(super) fn release_held(&mut self, now: Time) {
        let pairs: Vec<(usize, usize)> = self.links.held.keys().copied().collect();
        for (from, to) in pairs {
            if self.links.cut[from][to] {
                continue;
            }
            for (sender, receiver, bytes) in self.links.held.remove(&(from, to)).unwrap_or_default()
            {
                self.pass_on(now, from, to, sender, receiver, bytes);
            }
        }
        self.connect(now);
    }
}
