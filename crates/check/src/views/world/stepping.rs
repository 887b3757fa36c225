//! One step of the world: a member is given an input, and what follows is carried out.

use std::collections::VecDeque;
use std::sync::Arc;

use catraca_core::Fence;
use catraca_group::{Entry, Epoch, Input, Output, PeerMessage, Run, Timer, ViewMessage};

use super::collector::Collector;
use super::{Action, Fault, Message, Phase, World};
use crate::group::setting::member_name;
use crate::views::model::ViewModel;

/// What follows from a step, for whoever tells of it. Clients and members by their places.
#[derive(Clone, Debug)]
pub(in crate::views) enum Effect<'a> {
    Granted(usize, &'a [Fence]),
    Refused(usize, String),
    /// A client is told that what it held is lost, and why.
    Lost(usize, String),
    /// A client does not trust any more that it is inside.
    Doubts(usize),
    Sent(usize, usize),
    Began(usize, Epoch, Vec<String>),
    Out(usize, String),
    /// A member asks the registry for a change of the view.
    Proposed(usize),
    /// The registry has carried out a proposal, or not.
    Decided(bool),
}

/// Where effects are told.
pub(in crate::views) type Tell<'a> = &'a mut dyn FnMut(Effect<'_>);

impl World {
    /// Takes `action`, which is one of those that [`actions`](Self::actions) listed.
    pub(in crate::views) fn take(&mut self, model: &ViewModel, action: Action, tell: Tell<'_>) {
        match action {
            Action::Ask(client) => self.ask(model, client, tell),
            Action::Leave(client) => self.leave(model, client, tell),
            Action::Deliver(from, to) => self.deliver(model, from, to, tell),
            Action::Commit(place) => self.commit(place, tell),
            Action::Answer(place) => {
                self.answer(place);
                self.settle(model, tell);
                self.renew_trust(model, place);
            }
            Action::Hear(place) => {
                self.sites[place].has_news = false;
                let news = self.news();
                self.step(model, place, news, tell);
            }
            Action::Wake(place) => self.wake(model, place, tell),
            Action::Pass => self.pass(model, tell),
            Action::Fail(place) => self.fail(place),
            Action::Recover(place) => self.recover(model, place, tell),
        }
        self.settle(model, tell);
        self.sites.hash_touched();
    }

    /// Does whatever follows at once: the registry answers, connections are made and broken.
    pub(super) fn settle(&mut self, model: &ViewModel, tell: Tell<'_>) {
        loop {
            if let Some((place, number, result)) = self.due.pop_front() {
                self.step(model, place, Input::Answered(number, result), tell);
            } else if let Some((place, run, is_up)) = self.next_connection() {
                self.step(model, place, Input::Link(run, is_up), tell);
            } else if let Some((from, to)) = self.next_outdated() {
                self.deliver(model, from, to, tell);
            } else if let Some(place) = self.next_hopeless() {
                self.commit(place, tell);
            } else {
                return;
            }
        }
    }

    /// Everything that a member was to do by now.
    pub(super) fn wake(&mut self, model: &ViewModel, place: usize, tell: Tell<'_>) {
        loop {
            let timers = self.sites[place].timers.iter().filter(|&(_, &at)| at <= self.now);
            let next = timers.min_by_key(|&(timer, at)| (*at, *timer)).map(|(timer, _)| *timer);
            let Some(timer) = next else { break };
            self.sites[place].timers.remove(&timer);
            self.step(model, place, Input::Timer(timer), tell);
            self.settle(model, tell);
        }
        self.renew_trust(model, place);
    }

    fn deliver(&mut self, model: &ViewModel, from: usize, to: usize, tell: Tell<'_>) {
        let Some(channel) = self.channels.get_mut(&(from, to)) else { return };
        let Some((incarnation, bytes)) = channel.pop_front() else { return };
        if channel.is_empty() {
            self.channels.remove(&(from, to));
        }
        let Ok(message) = postcard::from_bytes::<PeerMessage<'_>>(&bytes) else {
            return self.blame(Fault::Anomaly(to, "a message cannot be read from its bytes"));
        };
        let run = Run { name: member_name(from), incarnation };
        self.step(model, to, Input::Hear(run, message), tell);
    }

    /// Lets a member step and carries out what follows.
    pub(super) fn step(
        &mut self,
        model: &ViewModel,
        place: usize,
        input: Input<'_>,
        tell: Tell<'_>,
    ) {
        let site = &mut self.sites[place];
        let mut driver = Collector {
            now: self.now,
            valid_until: site.valid_until,
            view: site.view.clone(),
            sent: Vec::new(),
            timers: Vec::new(),
            unwritten: false,
        };
        let mut out = Vec::new();
        let Some(member) = site.member.as_mut().map(Arc::make_mut) else { return };
        member.step(input, &mut driver, &mut out);
        for output in out {
            self.carry_out(model, place, output, &mut driver, tell);
        }
        self.conclude(place, driver, tell);
    }

    fn carry_out(
        &mut self,
        model: &ViewModel,
        place: usize,
        output: Output,
        driver: &mut Collector,
        tell: Tell<'_>,
    ) {
        let epoch = driver.view.as_ref().map_or(Epoch(0), |view| view.epoch);
        match output {
            Output::Ask(to, number, question) => {
                driver.post(driver.name(to), &PeerMessage::Ask { epoch, number, question });
            }
            Output::Answer(to, number, answer) => {
                driver.post(driver.name(to), &PeerMessage::Answer { epoch, number, answer });
            }
            Output::View(run, message) if self.is_there(&run) => {
                driver.post(run.name, &PeerMessage::View(message));
            }
            Output::Transaction(number, txn) => self.submit(place, number, txn, tell),
            Output::Peers(entries) => {
                self.sites[place].wanted = entries.iter().map(Entry::run).collect();
                self.is_connecting = true;
            }
            Output::Notice(owner, notice) => {
                if let Some(client) = self.client_of(model, place, owner) {
                    self.notify(model, client, notice, tell);
                }
            }
            Output::Anomaly(what) => self.blame(Fault::Anomaly(place, what)),
            Output::Began(view) => {
                let names = view.members.iter().map(|member| member.name.clone()).collect();
                tell(Effect::Began(place, view.epoch, names));
            }
            Output::Out(why) => {
                tell(Effect::Out(place, why));
                driver.valid_until = catraca_group::Time(0);
                self.renumber(place);
            }
            // Nobody leaves in order here, no detector runs, the program itself asks for nothing, and
            // what is meant for a run that is gone is lost.
            _ => {}
        }
    }

    /// What a step has asked of its driver itself.
    fn conclude(&mut self, place: usize, driver: Collector, tell: Tell<'_>) {
        if driver.unwritten {
            self.blame(Fault::Anomaly(place, "a message cannot be written as bytes"));
        }
        let site = &mut self.sites[place];
        (site.valid_until, site.view) = (driver.valid_until, driver.view);
        for (timer, at) in driver.timers {
            match (timer, at) {
                (Timer::Detector(_), _) => {}
                (_, Some(at)) => drop(site.timers.insert(timer, at)),
                (_, None) => drop(site.timers.remove(&timer)),
            }
        }
        let incarnation = site.incarnation;
        for (name, bytes) in driver.sent {
            let to = (0..self.sites.len()).find(|&to| member_name(to) == name);
            let Some(to) = to.filter(|&to| self.sites[to].member.is_some()) else { continue };
            tell(Effect::Sent(place, to));
            let channel = self.channels.entry((place, to)).or_default();
            channel.push_back((incarnation, bytes.into()));
        }
    }

    /// A message that nobody listens to any more, if it is the next one of its channel: of a view that
    /// is over at its receiver, or about a view that its receiver has heard of.
    ///
    /// Whatever happens first, it is ignored, so it arrives at once: the worlds in between would differ
    /// in nothing that matters.
    fn next_outdated(&self) -> Option<(usize, usize)> {
        let is_outdated = |(channel, messages): &(&(usize, usize), &VecDeque<Message>)| {
            let site = &self.sites[channel.1];
            let Some(member) = site.member.as_ref().filter(|_| site.runs()) else { return false };
            let Some((_, bytes)) = messages.front() else { return false };
            let Some(membership) = member.service().membership() else { return false };
            let known = membership.record().map_or(Epoch(0), |record| record.epoch);
            let view = member.service().view().epoch;
            match postcard::from_bytes::<PeerMessage<'_>>(bytes) {
                Ok(PeerMessage::View(ViewMessage::Begin { epoch })) => epoch <= known,
                Ok(PeerMessage::View(
                    ViewMessage::Report { epoch, .. } | ViewMessage::Table { epoch, .. },
                )) => epoch < known,
                Ok(PeerMessage::Step(step)) => {
                    step.epoch < view || step.epoch == view && membership.active() != Some(view)
                }
                _ => false,
            }
        };
        self.channels.iter().find(is_outdated).map(|(&channel, _)| channel)
    }

    // Connections.

    pub(super) fn run_of(&self, place: usize) -> Run {
        Run { name: member_name(place), incarnation: self.sites[place].incarnation }
    }

    /// Whether this very run of a member is there, paused or not.
    fn is_there(&self, run: &Run) -> bool {
        (0..self.sites.len())
            .any(|place| self.sites[place].member.is_some() && self.run_of(place) == *run)
    }

    /// The next connection that a member has to be told of: one that it wants and has not, or one that
    /// is gone.
    fn next_connection(&mut self) -> Option<(usize, Run, bool)> {
        if !self.is_connecting {
            return None;
        }
        for place in 0..self.sites.len() {
            let site = &self.sites[place];
            if !site.runs() {
                continue;
            }
            let is_wanted = |run: &Run| site.wanted.contains(run) && self.is_there(run);
            if let Some(gone) = site.up.iter().position(|run| !is_wanted(run)) {
                let run = self.sites[place].up.remove(gone);
                return Some((place, run, false));
            }
            let is_new = |run: &&Run| !site.up.contains(run) && self.is_there(run);
            if let Some(run) = site.wanted.iter().find(is_new).cloned() {
                self.sites[place].up.push(run.clone());
                return Some((place, run, true));
            }
        }
        self.is_connecting = false;
        None
    }

    /// A member that was excluded goes on as another run: connections and messages belong to runs.
    fn renumber(&mut self, place: usize) {
        let site = &mut self.sites[place];
        let Some(member) = &site.member else { return };
        site.incarnation = member.service().membership().map_or(0, |it| it.run().incarnation);
        site.up.clear();
        site.pending.retain(|pending| matches!(pending, super::Pending::Sent(..)));
        self.channels.retain(|&(_, to), _| to != place);
        self.is_connecting = true;
    }

    /// Whether a client waits, so that it may be let in.
    pub(super) fn is_waiting(&self, client: usize) -> bool {
        self.clients[client].phase == Phase::Waiting
    }
}
