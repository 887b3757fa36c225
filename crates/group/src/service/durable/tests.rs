//! Small groups with a registry that answers at once, late, or not at all.

mod holds;

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use core::time::Duration;

use super::*;
use crate::driver::{Driver, StepMessage, Timer};
use crate::durable::{Target, Transfer, Unlock};
use crate::member::{Input, WholeMember};
use crate::membership::{Entry as MemberEntry, Lease, Leaving, Run, Settings};
use crate::question::PeerMessage;
use crate::registry::{Store, Word};
use crate::session::Who;
use crate::timed::TimedHold;
use crate::turns::Turns;
use crate::view::{Member, Namespace, View};
use crate::wait::Wait;
use crate::{Notice, Query};

const STEP: Duration = Duration::from_millis(20);
/// How many names that nobody uses a member keeps.
const MOST_IDLE: usize = 500;

/// One machine: its member, and what its driver keeps.
#[derive(Clone, Default)]
pub(in crate::service) struct Site {
    pub(in crate::service) member: Option<WholeMember>,
    now: Time,
    valid_until: Time,
    timers: BTreeMap<Timer, Time>,
    view: Option<Arc<View>>,
    sent: Vec<(String, Vec<u8>)>,
    wanted: Vec<Run>,
    up: Vec<Run>,
}

impl Driver for Site {
    fn now(&mut self) -> Time {
        self.now
    }

    fn send(&mut self, member: usize, message: StepMessage<'_>) {
        let Some(view) = &self.view else { return };
        let bytes = postcard::to_allocvec(&PeerMessage::Step(message)).unwrap();
        self.sent.push((view.members[member].name.clone(), bytes));
    }

    fn set_timer(&mut self, timer: Timer, after: Option<Duration>) {
        match after {
            Some(after) => self.timers.insert(timer, self.now + after),
            None => self.timers.remove(&timer),
        };
    }

    fn is_valid_at(&mut self, now: Time) -> bool {
        now < self.valid_until
    }

    fn set_validity(&mut self, until: Time) {
        self.valid_until = until;
    }

    fn begin_view(&mut self, view: &Arc<View>, _: &[crate::Run]) {
        self.view = Some(Arc::clone(view));
    }
}

/// What becomes of writes of durable holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Answered,
    /// Carried out, but nobody hears of it.
    AnswerLost,
    /// Not carried out before somebody says so, and nobody hears of it.
    Late,
    Unreachable,
    /// Nobody can look at holds.
    Unseen,
    /// Nothing comes back before somebody says so.
    Held,
}

enum Event {
    Input(usize, u64, Input<'static>),
    Hear(usize, Run, Vec<u8>),
}

pub(in crate::service) struct Group {
    algorithm: &'static str,
    store: Store,
    pub(in crate::service) sites: Vec<Site>,
    pub(in crate::service) now: Time,
    fate: Outcome,
    late: Vec<Txn>,
    held: Vec<(usize, u64, Txn)>,
    queue: VecDeque<Event>,
    durable: BTreeMap<u64, Result<Box<DurableHold>, Refusal>>,
    unlocked: BTreeMap<u64, Result<Box<DurableHold>, Refusal>>,
    notices: Vec<(usize, Owner, Notice)>,
    pub(in crate::service) anomalies: Vec<&'static str>,
    /// What has come of timed holds.
    pub(in crate::service) timed: BTreeMap<u64, Result<Box<TimedHold>, Refusal>>,
    /// The newest fences, as they were told.
    pub(in crate::service) fences: BTreeMap<u64, Result<Option<u64>, Refusal>>,
    /// A rule that is broken.
    mutant: Option<&'static str>,
    lost: usize,
    last_incarnation: u64,
    pages: Vec<crate::Page>,
    transactions: usize,
    /// Every message, and the member that hears it as it was before, if somebody wants to know.
    pub(in crate::service) heard: Option<Vec<(Site, Run, Vec<u8>)>>,
}

fn name(site: usize) -> String {
    format!("m{site}")
}

impl Group {
    pub(in crate::service) fn of(count: usize, algorithm: &'static str) -> Self {
        Self::with(count, algorithm, None)
    }

    /// The same, whose members break a rule.
    pub(in crate::service) fn with(
        count: usize,
        algorithm: &'static str,
        mutant: Option<&'static str>,
    ) -> Self {
        let mut group = Group {
            algorithm,
            store: Store::default(),
            sites: (0..count).map(|_| Site::default()).collect(),
            now: Time(1_000_000_000),
            fate: Outcome::Answered,
            late: Vec::new(),
            held: Vec::new(),
            queue: VecDeque::new(),
            durable: BTreeMap::new(),
            unlocked: BTreeMap::new(),
            notices: Vec::new(),
            anomalies: Vec::new(),
            timed: BTreeMap::new(),
            fences: BTreeMap::new(),
            mutant,
            lost: 0,
            last_incarnation: 0,
            pages: Vec::new(),
            transactions: 0,
            heard: None,
        };
        (0..count).for_each(|site| group.start(site));
        group.pass(Duration::from_secs(1));
        group
    }

    pub(in crate::service) fn start(&mut self, site: usize) {
        self.last_incarnation += 1000;
        let settings = Settings {
            member: Member { name: name(site), address: "h:1".into(), cluster: None },
            lease: Lease::USUAL,
            namespaces: vec![Namespace::new("*", self.algorithm)],
            detector: None,
            roster: Vec::new(),
            may_register: true,
        };
        let member = WholeMember::joining(settings, self.last_incarnation, Turns::USUAL, self.now);
        let member = member.with_rules(self.mutant.unwrap_or_default());
        let member = Some(member.forgetting_beyond(MOST_IDLE));
        self.sites[site] = Site { member, ..Site::default() };
        self.input(site, Input::Begin);
    }

    /// One more member joins.
    pub(in crate::service) fn add(&mut self) {
        self.sites.push(Site::default());
        self.start(self.sites.len() - 1);
    }

    pub(in crate::service) fn crash(&mut self, site: usize) {
        self.sites[site] = Site::default();
        self.connect();
    }

    fn run_of(&self, site: usize) -> Option<Run> {
        let member = self.sites[site].member.as_ref()?;
        member.service().membership().map(|membership| membership.run())
    }

    /// Gives a member an input, and lets everything happen that follows.
    pub(in crate::service) fn input(&mut self, site: usize, input: Input<'static>) {
        let Some(run) = self.run_of(site) else { return };
        self.queue.push_back(Event::Input(site, run.incarnation, input));
        while let Some(event) = self.queue.pop_front() {
            match event {
                Event::Input(site, incarnation, input) => {
                    if self.run_of(site).is_some_and(|run| run.incarnation == incarnation) {
                        self.step(site, input);
                    }
                }
                Event::Hear(site, run, bytes) => {
                    if let Some(heard) = &mut self.heard {
                        heard.push((self.sites[site].clone(), run.clone(), bytes.clone()));
                    }
                    let message = postcard::from_bytes(&bytes).unwrap();
                    self.step(site, Input::Hear(run, message));
                }
            }
        }
    }

    fn step(&mut self, site: usize, input: Input<'_>) {
        let Some(mut member) = self.sites[site].member.take() else { return };
        self.sites[site].now = self.now;
        let mut out = Vec::new();
        member.step(input, &mut self.sites[site], &mut out);
        self.sites[site].member = Some(member);
        let from = self.run_of(site).unwrap();
        for (to, bytes) in core::mem::take(&mut self.sites[site].sent) {
            self.send(&from, &to, bytes);
        }
        for output in out {
            self.carry_out(site, &from, output);
        }
    }

    fn send(&mut self, from: &Run, to: &str, bytes: Vec<u8>) {
        let to = (0..self.sites.len()).find(|&site| name(site) == to).unwrap();
        self.queue.push_back(Event::Hear(to, from.clone(), bytes));
    }

    fn carry_out(&mut self, site: usize, from: &Run, output: Output) {
        match output {
            Output::Transaction(number, txn) => self.submit(site, number, txn),
            Output::View(run, message) => {
                let bytes = postcard::to_allocvec(&PeerMessage::View(message)).unwrap();
                self.send(from, &run.name, bytes);
            }
            Output::Peers(entries) => {
                self.sites[site].wanted = entries.iter().map(MemberEntry::run).collect();
                self.connect();
            }
            Output::Durable(asker, result) => {
                assert!(self.durable.insert(asker, result).is_none());
            }
            Output::Unlocked(asker, result) => {
                assert!(self.unlocked.insert(asker, result).is_none());
            }
            Output::Timed(asker, result) => {
                assert!(self.timed.insert(asker, result).is_none());
            }
            Output::Fence(asker, result) => drop(self.fences.insert(asker, result)),
            Output::Ask(to, number, question) => {
                self.say(site, from, to, |epoch| PeerMessage::Ask { epoch, number, question });
            }
            Output::Answer(to, number, answer) => {
                self.say(site, from, to, |epoch| PeerMessage::Answer { epoch, number, answer });
            }
            Output::Notice(owner, notice) => self.notices.push((site, owner, notice)),
            Output::Lost(_) => self.lost += 1,
            Output::Page(_, page) => self.pages.push(page),
            Output::Anomaly(what) => self.anomalies.push(what),
            Output::Out(_) => {
                self.sites[site].up.clear();
                self.connect();
            }
            Output::Left => self.crash(site),
            _ => {}
        }
    }

    /// Sends a message of the present view.
    fn say(
        &mut self,
        site: usize,
        from: &Run,
        to: usize,
        message: impl FnOnce(crate::Epoch) -> PeerMessage<'static>,
    ) {
        let Some(view) = self.sites[site].view.clone() else { return };
        let bytes = postcard::to_allocvec(&message(view.epoch)).unwrap();
        self.send(from, &view.members[to].name, bytes);
    }

    fn submit(&mut self, site: usize, number: u64, txn: Txn) {
        self.transactions += 1;
        let is_write = txn.ops.iter().any(|op| op.key().starts_with(crate::registry::HOLDS));
        let is_look = txn.ops.is_empty() && txn.page.is_some();
        let fate = match self.fate {
            Outcome::Unseen if is_look => Outcome::Unreachable,
            Outcome::Unseen => Outcome::Answered,
            fate if is_write => fate,
            _ => Outcome::Answered,
        };
        let result = match fate {
            Outcome::Answered => Ok(self.apply(&txn)),
            Outcome::AnswerLost => {
                self.apply(&txn);
                Err(Trouble::Unknown("lost".into()))
            }
            Outcome::Late => {
                self.late.push(txn);
                Err(Trouble::Unknown("late".into()))
            }
            Outcome::Unreachable | Outcome::Unseen => Err(Trouble::Unreachable("cut".into())),
            Outcome::Held => return self.held.push((site, number, txn)),
        };
        self.answer(site, number, result);
    }

    fn answer(&mut self, site: usize, number: u64, result: Result<Answer, Trouble>) {
        let Some(run) = self.run_of(site) else { return };
        self.queue.push_back(Event::Input(site, run.incarnation, Input::Answered(number, result)));
    }

    fn apply(&mut self, txn: &Txn) -> Answer {
        let before = self.store.revision();
        let answer = self.store.apply(txn);
        if self.store.revision() > before {
            let at = self.store.revision();
            for op in &txn.ops {
                for site in 0..self.sites.len() {
                    let word = Word::Changed { key: op.key().into(), at };
                    if let Some(run) = self.run_of(site) {
                        let input = Input::Word(word);
                        self.queue.push_back(Event::Input(site, run.incarnation, input));
                    }
                }
            }
        }
        answer
    }

    /// What was held back is carried out.
    fn go_on(&mut self) {
        self.fate = Outcome::Answered;
        for (site, number, txn) in core::mem::take(&mut self.held) {
            let answer = self.apply(&txn);
            self.input(site, Input::Answered(number, Ok(answer)));
        }
    }

    fn connect(&mut self) {
        for one in 0..self.sites.len() {
            for other in 0..self.sites.len() {
                let (Some(own), Some(run)) = (self.run_of(one), self.run_of(other)) else {
                    continue;
                };
                let site = &mut self.sites[one];
                if one != other && site.wanted.contains(&run) && !site.up.contains(&run) {
                    site.up.push(run.clone());
                    let link = Input::Link(run, true);
                    self.queue.push_back(Event::Input(one, own.incarnation, link));
                }
            }
        }
    }

    pub(in crate::service) fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.now < end {
            self.now = self.now + STEP;
            for site in 0..self.sites.len() {
                let due = self.sites[site].timers.iter().filter(|(_, at)| **at <= self.now);
                let due: Vec<Timer> = due.map(|(&timer, _)| timer).collect();
                for timer in due {
                    self.sites[site].timers.remove(&timer);
                    self.input(site, Input::Timer(timer));
                }
            }
        }
    }

    // What clients do.

    fn ask(&mut self, site: usize, asker: u64, names: &[&str], request: &str) {
        self.input(site, Input::AcquireDurable(asker, None, acquire(names, 1, request), 7));
    }

    fn unlock(&mut self, site: usize, asker: u64, target: Target, owner: Option<&str>) {
        let unlock = Unlock { target, owner: owner.map(str::to_string) };
        self.input(site, Input::Unlock(asker, unlock));
    }

    fn hold(&self, asker: u64) -> DurableHold {
        (**self.durable[&asker].as_ref().unwrap()).clone()
    }

    fn refusal(&self, asker: u64) -> &'static str {
        self.durable[&asker].as_ref().unwrap_err().code()
    }

    /// Whether somebody else can have the lock now.
    pub(in crate::service) fn is_free(&mut self, site: usize, lock: &str) -> bool {
        self.input(site, Input::Open(Who::default(), Some(Duration::from_secs(60))));
        let member = self.sites[site].member.as_ref().unwrap();
        let owner = Owner(member.last_session().unwrap().number);
        let wait = Wait::AtMost(Duration::from_secs(2));
        let asked = Acquire { names: vec![lock.to_string()], permits: 1, wait };
        self.input(site, Input::Request(owner, 1, asked));
        self.pass(Duration::from_secs(3));
        let granted = |notice: &Notice| matches!(notice, Notice::Granted { .. });
        let is_free =
            self.notices.iter().any(|(at, to, it)| (*at, *to) == (site, owner) && granted(it));
        self.input(site, Input::Close(owner));
        is_free
    }

    fn records(&mut self) -> usize {
        self.store.apply(&Txn::read().with_page("", 1000)).holds.len()
    }
}

fn acquire(names: &[&str], permits: u32, request: &str) -> AcquireDurable {
    AcquireDurable {
        names: names.iter().map(|name| name.to_string()).collect(),
        permits,
        wait: Wait::AtMost(Duration::from_secs(5)),
        owner: "ann".into(),
        note: "why".into(),
        request: request.into(),
    }
}
