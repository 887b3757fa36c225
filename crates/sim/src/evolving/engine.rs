//! The run itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catraca_algorithms::relabelling::{self, Gathered, Group, Relabelling, Visitor};
use catraca_core::{Claim, Fence, NodeId, Phase};

use super::components::Components;
use super::labels::Labels;
use super::report::{End, Report, Served, Waiting};
use super::setup::{Setup, SetupError};
use super::snapshot::{NodeView, Snapshot};
use super::timeline::Timeline;
use crate::monitor::{Capacity, Fences};

/// No run goes beyond this instant: soon after it numbers end.
const LAST: u64 = 1 << 62;

/// What a run may take, the same on every machine: about a minute, and about a gigabyte.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Nodes that meet, requests that they read, and each 64 bytes of the labels that they share,
    /// over the whole run.
    work: u64,
    /// Requests that the nodes of one component read at one instant. They may answer all of them.
    read: u64,
}

impl Bounds {
    const DEFAULT: Bounds = Bounds { work: 20_000_000_000, read: 1 << 27 };
}

/// Why an instant is not finished.
enum Halt {
    /// An invariant broke.
    Violation(String),
    /// A bound was passed, or the run was asked to stop.
    End(End),
}

/// What observes a run or ends it early.
#[derive(Default)]
pub struct Hooks<'a> {
    /// Called with every instant, also with those at which nothing happens.
    pub observer: Option<&'a mut dyn FnMut(Snapshot)>,
    /// Ends the run when it becomes true.
    pub stop: Option<&'a AtomicBool>,
}

/// Runs the algorithm called `algorithm`.
pub fn run(algorithm: &str, setup: &Setup<'_>) -> Result<Report, SetupError> {
    run_observed(algorithm, setup, Hooks::default())
}

/// The same with hooks.
pub fn run_observed(
    algorithm: &str,
    setup: &Setup<'_>,
    hooks: Hooks<'_>,
) -> Result<Report, SetupError> {
    struct Drive<'a, 'g, 'h> {
        setup: &'a Setup<'g>,
        hooks: Hooks<'h>,
        uncollected: fn(u64, u64) -> u64,
    }
    impl Visitor for Drive<'_, '_, '_> {
        type Output = Report;
        fn visit<R: Relabelling>(self, create: impl Fn(NodeId, &Group) -> R) -> Report {
            Engine::new(self.setup, self.hooks, self.uncollected, create).run()
        }
    }
    setup.check()?;
    let unknown = || SetupError::UnknownAlgorithm(algorithm.to_string());
    let uncollected = relabelling::entry(algorithm).ok_or_else(unknown)?.uncollected;
    let drive = Drive { setup, hooks, uncollected };
    let report = relabelling::visit(algorithm, setup.mutant.as_deref(), drive);
    let mut report = report.ok_or_else(|| SetupError::UnknownMutant {
        algorithm: algorithm.to_string(),
        mutant: setup.mutant.clone().unwrap_or_default(),
    })?;
    report.algorithm = algorithm.to_string();
    Ok(report)
}

/// What an application does next. Releases go before requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Leave,
    Ask,
}

struct Node<R: Relabelling> {
    label: R,
    /// Nodes that have gathered the same share it.
    known: Arc<R::Gathered>,
    /// Requests that are still to be made after those in the queue; None is without end.
    rounds: Option<u32>,
    /// Requests that came while the node was not idle.
    backlog: u32,
    asked: u64,
    /// It has asked or left at this instant.
    is_dirty: bool,
}

struct Engine<'a, 'g, 'h, R: Relabelling> {
    setup: &'a Setup<'g>,
    hooks: Hooks<'h>,
    uncollected: fn(u64, u64) -> u64,
    group: Group,
    nodes: Vec<Node<R>>,
    timeline: Timeline<'g>,
    components: Components,
    /// What the applications will do, in order.
    acts: BinaryHeap<Reverse<(u64, Act, NodeId)>>,
    dirty: Vec<NodeId>,
    capacity: Capacity,
    fences: Fences,
    labels: Labels,
    waiting: u64,
    /// The last instant at which anything changed.
    changed: u64,
    /// The next instant that the observer has not seen.
    unobserved: u64,
    work: u64,
    bounds: Bounds,
    report: Report,
}

impl<'a, 'g, 'h, R: Relabelling> Engine<'a, 'g, 'h, R> {
    fn new(
        setup: &'a Setup<'g>,
        hooks: Hooks<'h>,
        uncollected: fn(u64, u64) -> u64,
        create: impl Fn(NodeId, &Group) -> R,
    ) -> Self {
        let group = Group { nodes: setup.graph.nodes(), token: setup.token };
        let nothing: Arc<R::Gathered> = Arc::default();
        let node = |id| Node {
            label: create(id, &group),
            known: Arc::clone(&nothing),
            rounds: setup.workload.rounds.map(|rounds| rounds.saturating_sub(1)),
            backlog: 0,
            asked: 0,
            is_dirty: false,
        };
        let first = |&(at, node): &(u64, NodeId)| Reverse((at, Act::Ask, node));
        let has_rounds = setup.workload.rounds != Some(0);
        let acts = setup.workload.requests.iter().filter(|_| has_rounds).map(first).collect();
        Engine {
            setup,
            hooks,
            uncollected,
            group,
            nodes: NodeId::all(group.nodes).map(node).collect(),
            timeline: Timeline::new(setup.graph),
            components: Components::new(group.nodes),
            acts,
            dirty: Vec::new(),
            capacity: Capacity::new(vec![1]),
            fences: Fences::new(1, 1),
            labels: Labels::new(),
            waiting: 0,
            changed: 0,
            unobserved: 0,
            work: 0,
            bounds: Bounds::DEFAULT,
            report: empty_report(),
        }
    }

    fn run(mut self) -> Report {
        let end = loop {
            // Looking at every instant would cost more than some instants do.
            if self.report.instants.is_multiple_of(1024) && self.is_stopped() {
                break End::Interrupted;
            }
            if self.acts.is_empty() && self.waiting == 0 {
                break End::Served;
            }
            let act = self.acts.peek().map(|Reverse((at, ..))| *at);
            if let Some(act) = act {
                self.pass_quiet_laps(act);
            }
            let contact = self.timeline.next();
            let Some(now) = act.into_iter().chain(contact).min() else {
                break self.end_of_contacts();
            };
            if let Some(end) = self.bound(now, act.is_some()) {
                break end;
            }
            self.observe_until(now);
            match self.instant(now) {
                Ok(()) => {}
                Err(Halt::Violation(what)) => {
                    self.report.violation = Some(what);
                    self.observe_until(now + 1);
                    break End::Violation;
                }
                Err(Halt::End(end)) => break end,
            }
            if self.setup.entries.is_some_and(|most| self.report.served.len() as u64 >= most) {
                break End::Entries;
            }
        };
        self.finish(end)
    }

    fn is_stopped(&self) -> bool {
        self.hooks.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Why the run ends where no contact follows and no application acts.
    fn end_of_contacts(&self) -> End {
        if self.setup.graph.cycle().is_some() { End::Quiet } else { End::Graph }
    }

    /// Why the run ends before `now`, if it does.
    fn bound(&self, now: u64, has_acts: bool) -> Option<End> {
        let graph = self.setup.graph;
        if now > self.setup.until.unwrap_or(LAST) {
            return Some(End::Until);
        }
        let (Some(cycle), Some(period)) = (graph.cycle(), graph.period()) else {
            return (now > graph.last()).then_some(End::Graph);
        };
        // A whole lap has changed nothing: neither will the next.
        let is_quiet = !has_acts && now > self.changed.max(cycle) + period;
        is_quiet.then_some(End::Quiet)
    }

    /// After a whole lap that has changed nothing no other will, until an application acts at
    /// `act`. The laps before that can be skipped.
    fn pass_quiet_laps(&mut self, act: u64) {
        let graph = self.setup.graph;
        let (Some(cycle), Some(period)) = (graph.cycle(), graph.period()) else { return };
        let Some(now) = self.timeline.next() else { return };
        let end = self.setup.until.map_or(act, |until| act.min(until));
        if now <= self.changed.max(cycle) + period || end <= now {
            return;
        }
        let laps = (end - now) / period;
        if laps > 0 {
            let (instants, contacts) = self.timeline.skip(laps);
            self.report.instants += instants;
            self.report.contacts += contacts;
        }
    }

    fn instant(&mut self, now: u64) -> Result<(), Halt> {
        self.report.instants += 1;
        self.report.last = now;
        self.report.contacts += self.timeline.advance(now);
        while let Some(&Reverse((at, act, node))) = self.acts.peek()
            && at <= now
        {
            self.acts.pop();
            self.act(now, act, node);
        }
        self.components.find(self.timeline.edges());
        let (mut members, mut has_learned) = (Vec::new(), false);
        for component in 0..self.components.count() {
            self.components.members(component, &mut members);
            let before = self.report.bytes;
            self.meet(now, &members)?;
            if self.report.bytes > before {
                self.components.learn(component);
                has_learned = true;
            }
        }
        if has_learned {
            let components = &self.components;
            let used = self.timeline.used(|node| components.has_learned(node));
            self.report.contacts_used += used;
        }
        for node in std::mem::take(&mut self.dirty) {
            if !self.components.is_connected(node) {
                self.meet(now, &[node])?;
            }
            self.nodes[node.index()].is_dirty = false;
        }
        Ok(())
    }

    fn act(&mut self, now: u64, act: Act, id: NodeId) {
        let node = &mut self.nodes[id.index()];
        let mut news = R::Gathered::default();
        match act {
            Act::Ask if node.label.phase() != Phase::Idle => {
                node.backlog += 1;
                return;
            }
            Act::Ask => {
                node.label.on_request(&node.known, &mut news);
                node.asked = now;
                self.waiting += 1;
                self.report.requests += 1;
            }
            Act::Leave => {
                node.label.on_release(&node.known, &mut news);
                self.capacity.leave(id, &Claim::single());
                if node.backlog > 0 {
                    node.backlog -= 1;
                    self.acts.push(Reverse((now, Act::Ask, id)));
                } else if node.rounds != Some(0) {
                    node.rounds = node.rounds.map(|rounds| rounds - 1);
                    let next = now.saturating_add(self.setup.workload.pause);
                    self.acts.push(Reverse((next, Act::Ask, id)));
                }
            }
        }
        Arc::make_mut(&mut node.known).join(&news);
        if !node.is_dirty {
            node.is_dirty = true;
            self.dirty.push(id);
        }
        self.changed = now;
    }

    /// A component joins, applies its rules, joins again and applies them once more.
    fn meet(&mut self, now: u64, members: &[NodeId]) -> Result<(), Halt> {
        let is_new = self.join(members);
        if !is_new && !members.iter().any(|node| self.nodes[node.index()].is_dirty) {
            return Ok(()); // It looks as it did when it last applied its rules.
        }
        let (news, with_news) = self.apply_rules(now, members)?;
        if with_news > 0 {
            self.spread(members, &news, with_news);
            let (_, with_news) = self.apply_rules(now, members)?;
            debug_assert!(with_news == 0 || self.setup.mutant.is_some());
        }
        self.changed = now;
        let bytes = self.nodes[members[0].index()].known.bytes();
        self.work += members.len() as u64 + bytes / 64;
        let nodes = self.group.nodes.into();
        self.labels.seen(now, bytes, (self.uncollected)(self.report.requests, nodes));
        Ok(())
    }

    /// Every node of a component applies its rules. Returns what they say, and how many of them say
    /// something.
    fn apply_rules(&mut self, now: u64, members: &[NodeId]) -> Result<(R::Gathered, u64), Halt> {
        let mut news = R::Gathered::default();
        let (mut with_news, mut read) = (0, 0);
        for (number, &id) in members.iter().enumerate() {
            let node = &mut self.nodes[id.index()];
            let applied = node.label.on_rules(&self.group, &node.known, &mut news);
            with_news += u64::from(applied.has_news);
            read += applied.read;
            self.entered(now, id, applied.entered)?;
            if read > self.bounds.read || self.work + read > self.bounds.work {
                return Err(Halt::End(End::TooMuchWork));
            }
            if number % 1024 == 1023 && self.is_stopped() {
                return Err(Halt::End(End::Interrupted));
            }
        }
        self.work += read;
        Ok((news, with_news))
    }

    /// Gives all members what all have gathered. Returns whether any of them learned something.
    fn join(&mut self, members: &[NodeId]) -> bool {
        let known = |engine: &Self, node: NodeId| Arc::clone(&engine.nodes[node.index()].known);
        let first = known(self, members[0]);
        if members.iter().all(|node| Arc::ptr_eq(&first, &self.nodes[node.index()].known)) {
            return false;
        }
        let mut all = R::Gathered::clone(&first);
        let mut last = first;
        for &node in &members[1..] {
            let theirs = known(self, node);
            if !Arc::ptr_eq(&last, &theirs) {
                all.join(&theirs);
                last = theirs;
            }
        }
        let (bytes, all) = (all.bytes(), Arc::new(all));
        let mut is_new = false;
        // Members that share a label need one comparison only.
        let mut compared: Option<(Arc<R::Gathered>, bool)> = None;
        for &node in members {
            let theirs = std::mem::replace(&mut self.nodes[node.index()].known, Arc::clone(&all));
            let learns = match &compared {
                Some((same, learns)) if Arc::ptr_eq(same, &theirs) => *learns,
                _ => *theirs != *all,
            };
            compared = Some((theirs, learns));
            is_new |= learns;
            self.report.bytes += if learns { bytes } else { 0 };
        }
        is_new
    }

    /// All members, which know the same, join what some of them have added.
    fn spread(&mut self, members: &[NodeId], news: &R::Gathered, with_news: u64) {
        let mut all = R::Gathered::clone(&self.nodes[members[0].index()].known);
        all.join(news);
        // A single one with news knows it already.
        let learners = members.len() as u64 - u64::from(with_news == 1);
        self.report.bytes += learners * all.bytes();
        let all = Arc::new(all);
        for node in members {
            self.nodes[node.index()].known = Arc::clone(&all);
        }
    }

    fn entered(&mut self, now: u64, node: NodeId, fence: Option<Fence>) -> Result<(), Halt> {
        let Some(fence) = fence else { return Ok(()) };
        let asked = self.nodes[node.index()].asked;
        self.report.served.push(Served { node, asked, entered: now, fence });
        self.waiting -= 1;
        let leaves = now.saturating_add(self.setup.workload.hold);
        self.acts.push(Reverse((leaves, Act::Leave, node)));
        let claim = Claim::single();
        let entered = self.capacity.enter(node, &claim);
        entered.and_then(|()| self.fences.grant(&claim, fence)).map_err(|broken| {
            let what = format!("{}: {} at instant {now}", broken.invariant, broken.what);
            Halt::Violation(what)
        })
    }

    /// Calls the observer with the instants before `end`, as they look now.
    fn observe_until(&mut self, end: u64) {
        let graph = self.setup.graph;
        let Some(observer) = &mut self.hooks.observer else { return };
        let view = |node: &Node<R>| NodeView {
            phase: node.label.phase(),
            has_token: node.label.has_token(),
            pending: node.known.pending(),
        };
        for at in self.unobserved..end {
            let local = graph.local(at);
            let present = graph.contacts().iter().filter(|contact| contact.is_at(local));
            observer(Snapshot {
                at,
                edges: present.map(|contact| (contact.a, contact.b)).collect(),
                nodes: self.nodes.iter().map(view).collect(),
            });
        }
        self.unobserved = self.unobserved.max(end);
    }

    fn finish(mut self, end: End) -> Report {
        let last = match end {
            End::Graph => self.setup.graph.last(),
            End::Until => self.setup.until.unwrap_or(self.report.last),
            _ => self.report.last,
        };
        self.report.last = last;
        self.observe_until(last + 1);
        let mut report = self.report;
        let waits: Vec<u64> = report.served.iter().map(|one| one.entered - one.asked).collect();
        report.wait_longest = waits.iter().copied().max().unwrap_or(0);
        let total = waits.iter().sum::<u64>() as f64;
        report.wait_mean = (!waits.is_empty()).then(|| total / waits.len() as f64);
        let waiting = self.nodes.iter().zip(NodeId::all(self.group.nodes));
        report.waiting = waiting
            .filter(|(node, _)| node.label.phase() == Phase::Waiting)
            .map(|(node, id)| Waiting { node: id, since: node.asked })
            .collect();
        report.end = end;
        report.largest_label = self.labels.largest;
        report.labels = self.labels.into_points();
        report
    }
}

fn empty_report() -> Report {
    Report {
        algorithm: String::new(),
        end: End::Served,
        last: 0,
        instants: 0,
        requests: 0,
        served: Vec::new(),
        waiting: Vec::new(),
        wait_mean: None,
        wait_longest: 0,
        contacts: 0,
        contacts_used: 0,
        bytes: 0,
        largest_label: 0,
        labels: Vec::new(),
        violation: None,
    }
}

#[cfg(test)]
mod tests {
    use catraca_algorithms::relabelling::{EvolvingRicartAgrawala, Registered};
    use catraca_topology::evolving::generate::{Shape, unchanging};

    use super::*;
    use crate::evolving::Workload;

    /// Four neighbours that all ask at once, within these bounds.
    fn run(bounds: Bounds) -> Report {
        let graph = unchanging(4, Shape::Complete).unwrap();
        let setup = Setup::new(&graph, Workload::once(NodeId::all(4).collect(), 0));
        let create = EvolvingRicartAgrawala::new;
        let mut engine = Engine::new(&setup, Hooks::default(), |_, _| 0, create);
        engine.bounds = bounds;
        engine.run()
    }

    #[test]
    fn each_bound_ends_a_run_that_passes_it() {
        let usual = run(Bounds::DEFAULT);
        assert_eq!((usual.end, usual.served.len()), (End::Served, 4));
        // Each of the four reads the four requests.
        assert_eq!(run(Bounds { read: 16, ..Bounds::DEFAULT }), usual);
        let too_many = run(Bounds { read: 15, ..Bounds::DEFAULT });
        assert_eq!((too_many.end, too_many.served.len()), (End::TooMuchWork, 0));
        let too_long = run(Bounds { work: 30, ..Bounds::DEFAULT });
        assert_eq!(too_long.end, End::TooMuchWork);
        assert!((1..4).contains(&too_long.served.len()), "{}", too_long.served.len());
    }
}
