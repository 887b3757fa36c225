//! The simulation itself: takes the next event, lets a node step, carries out its effects.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use catraca_algorithms::{SpecError, Visitor};
use catraca_core::{
    Algorithm, Claim, Effect, Effects, Fence, Input, Message, NodeId, Phase, TimerTag, property,
};
use catraca_trace as trace;

use crate::metrics::{Metrics, jain};
use crate::monitor::{Broken, Bypass, Capacity, FenceOrder, OneToken, Violation, nobody_waits};
use crate::network::Links;
use crate::queue::EventQueue;
use crate::random::Random;
use crate::recording::Recording;
use crate::report::{End, Frame, Report};
use crate::setup::Setup;
use crate::time::Time;
use crate::workload::Arrivals;

/// How many events pass between two looks at the stop flag.
const EVENTS_PER_LOOK: u64 = 4096;

/// What may listen to a run or end it early.
#[derive(Default)]
pub struct Hooks<'a> {
    /// Called with everything that happens.
    pub observer: Option<&'a mut dyn FnMut(&trace::Event)>,
    /// Ends the run when it becomes true.
    pub stop: Option<&'a AtomicBool>,
}

/// Runs `setup` with the registered algorithm that it names.
pub fn run<'a>(setup: &'a Setup, hooks: Hooks<'a>) -> Result<Report, SpecError> {
    setup.spec.visit(Runner { setup, hooks })
}

/// Runs `setup` with an algorithm of one's own; the name in the setup does not matter.
pub fn run_algorithm<'a, A: Algorithm>(
    setup: &'a Setup,
    config: A::Config,
    hooks: Hooks<'a>,
) -> Report {
    Simulation::<A>::new(setup, config, hooks).run()
}

struct Runner<'a> {
    setup: &'a Setup,
    hooks: Hooks<'a>,
}

impl Visitor for Runner<'_> {
    type Output = Report;

    fn visit<A: Algorithm>(self, config: A::Config) -> Report {
        run_algorithm::<A>(self.setup, config, self.hooks)
    }
}

/// Something that is going to happen.
enum Event<M> {
    Deliver {
        from: NodeId,
        to: NodeId,
        message: M,
    },
    /// The application at this node wants to enter.
    Arrive(NodeId),
    Release(NodeId),
    /// The workload has something to do: the next serial request, arrival or burst.
    Workload,
    Timer {
        node: NodeId,
        tag: TimerTag,
        setting: u64,
    },
    Crash(NodeId),
    Suspect {
        observer: NodeId,
        suspect: NodeId,
    },
}

/// What the simulator knows of a node.
#[derive(Clone, Copy, Debug)]
struct Site {
    asked_at: Time,
    entries: u32,
    phase: Phase,
    alive: bool,
}

struct Simulation<'a, A: Algorithm> {
    setup: &'a Setup,
    config: A::Config,
    nodes: Vec<A>,
    sites: Vec<Site>,
    effects: Effects<A::Message>,
    queue: EventQueue<Event<A::Message>>,
    links: Links,
    random: Random,
    /// Requests that came to a busy node, by the time of coming.
    backlog: BTreeMap<NodeId, VecDeque<Time>>,
    /// Rounds left per node, where the workload limits them.
    rounds: Vec<u32>,
    /// The timers that are set, with the number of the setting that counts.
    timers: BTreeMap<(NodeId, TimerTag), u64>,
    timer_settings: u64,
    capacity: Capacity,
    fences: FenceOrder,
    token: OneToken,
    bypass: Bypass,
    metrics: Metrics,
    events: u64,
    entered: u64,
    violation: Option<Violation>,
    recording: Option<Recording<'a>>,
    stop: Option<&'a AtomicBool>,
}

impl<'a, A: Algorithm> Simulation<'a, A> {
    fn new(setup: &'a Setup, config: A::Config, hooks: Hooks<'a>) -> Self {
        let spec = &setup.spec;
        let site = |node| Site {
            asked_at: Time::ZERO,
            entries: 0,
            phase: spec.start.phase_of(node),
            alive: true,
        };
        let rounds = match setup.workload.arrivals {
            Arrivals::Closed { rounds: Some(rounds), .. } => vec![rounds; spec.nodes as usize],
            _ => Vec::new(),
        };
        let nodes: Vec<A> =
            NodeId::all(spec.nodes).map(|me| A::new(me, &config, &spec.start)).collect();
        Simulation {
            setup,
            config,
            nodes,
            sites: NodeId::all(spec.nodes).map(site).collect(),
            effects: Effects::new(),
            queue: EventQueue::default(),
            links: Links::new(setup.network.clone()),
            random: Random::new(setup.seed),
            backlog: BTreeMap::new(),
            rounds,
            timers: BTreeMap::new(),
            timer_settings: 0,
            capacity: Capacity::new(vec![1]),
            fences: FenceOrder::new(),
            token: OneToken::new(),
            bypass: Bypass::new(spec.nodes, setup.max_bypass),
            metrics: Metrics::new(A::Message::KINDS.len()),
            events: 0,
            entered: 0,
            violation: None,
            recording: hooks.observer.map(Recording::new),
            stop: hooks.stop,
        }
    }

    fn run(mut self) -> Report {
        self.start();
        let end = loop {
            if self.violation.is_some() {
                break End::Violation;
            }
            let entries_wanted = self.setup.limits.entries.map(|count| count + self.setup.warmup);
            if entries_wanted.is_some_and(|wanted| self.entered >= wanted) {
                break End::Entries;
            }
            let Some((now, event)) = self.queue.pop() else { break End::Quiet };
            if self.setup.limits.time.is_some_and(|limit| now > limit) {
                break End::Time;
            }
            self.events += 1;
            if self.events.is_multiple_of(EVENTS_PER_LOOK)
                && self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
            {
                break End::Interrupted;
            }
            self.handle(now, event);
        };
        self.finish(end)
    }

    fn start(&mut self) {
        if A::TOKEN {
            let tokens = self.nodes.iter().filter(|node| node.holds_token()).count();
            self.token.change(tokens as i64);
        }
        for node in NodeId::all(self.setup.spec.nodes) {
            self.step(Time::ZERO, node, Input::Start, None);
        }
        for (node, claim) in self.setup.spec.start.holders() {
            self.expect(Time::ZERO, |sim| sim.capacity.enter(node, claim));
            let hold = self.setup.workload.hold.sample(&mut self.random);
            self.queue.push(hold, Event::Release(node));
        }
        for (at, node) in self.setup.faults.crashes() {
            self.queue.push(at, Event::Crash(node));
        }
        self.start_workload();
    }

    fn start_workload(&mut self) {
        let setup = self.setup;
        match &setup.workload.arrivals {
            Arrivals::Serial { .. } | Arrivals::Open { .. } => {
                let pause = self.until_next_arrival();
                self.queue.push(pause, Event::Workload);
            }
            Arrivals::Bursts { .. } => self.queue.push(Time::ZERO, Event::Workload),
            Arrivals::Closed { think, .. } => {
                for node in NodeId::all(setup.spec.nodes) {
                    // Whoever starts inside asks again after leaving.
                    if self.sites[node.index()].phase == Phase::Idle && self.has_rounds(node) {
                        let at = think.sample(&mut self.random);
                        self.queue.push(at, Event::Arrive(node));
                    }
                }
            }
            Arrivals::Schedule(requests) => {
                for &(at, node) in requests {
                    self.queue.push(at, Event::Arrive(node));
                }
            }
        }
    }

    #[inline]
    fn handle(&mut self, now: Time, event: Event<A::Message>) {
        match event {
            Event::Deliver { from, to, message } => self.deliver(now, from, to, message),
            Event::Arrive(node) => self.arrive(now, node),
            Event::Release(node) => self.release(now, node),
            Event::Workload => self.next_arrival(now),
            Event::Timer { node, tag, setting } => self.run_out(now, node, tag, setting),
            Event::Crash(node) => self.crash(now, node),
            Event::Suspect { observer, suspect } => {
                if self.sites[observer.index()].alive {
                    self.step(now, observer, Input::Suspect(suspect), None);
                }
            }
        }
    }

    #[inline]
    fn deliver(&mut self, now: Time, from: NodeId, to: NodeId, message: A::Message) {
        let id = self.recording.as_mut().and_then(|recording| recording.arrives(now, from, to));
        if !self.sites[to.index()].alive {
            return self.lose(now, &message, id);
        }
        if A::TOKEN && message.carries_token() {
            self.token.change(-1);
        }
        self.step(now, to, Input::Message { from, message }, id);
    }

    fn lose(&mut self, now: Time, message: &A::Message, id: Option<trace::SendId>) {
        if A::TOKEN && message.carries_token() {
            self.token.lose();
        }
        if let (Some(recording), Some(id)) = (&mut self.recording, id) {
            recording.event(&trace::Event::Lost { at: now.0, id });
        }
    }

    /// Somebody at `node` wants to enter; if the node is busy with an earlier wish, it waits there.
    fn arrive(&mut self, now: Time, node: NodeId) {
        if !self.sites[node.index()].alive {
            return;
        }
        if self.sites[node.index()].phase == Phase::Idle {
            self.ask(now, node, now);
        } else {
            self.backlog.entry(node).or_default().push_back(now);
        }
    }

    fn ask(&mut self, now: Time, node: NodeId, since: Time) {
        let site = &mut self.sites[node.index()];
        site.phase = Phase::Waiting;
        site.asked_at = since;
        if let Some(rounds) = self.rounds.get_mut(node.index()) {
            *rounds -= 1;
        }
        self.bypass.ask(node);
        self.step(now, node, Input::Request(Claim::single()), None);
    }

    fn release(&mut self, now: Time, node: NodeId) {
        let site = &mut self.sites[node.index()];
        if !site.alive {
            return;
        }
        site.phase = Phase::Idle;
        self.capacity.leave(node, &Claim::single());
        self.metrics.leave(now, self.bypass.waiting() > 0);
        self.step(now, node, Input::Release, None);
        if let Some(since) = self.backlog.get_mut(&node).and_then(VecDeque::pop_front) {
            self.ask(now, node, since);
        }
        match self.setup.workload.arrivals {
            Arrivals::Closed { think, .. } if self.has_rounds(node) => {
                let at = now + think.sample(&mut self.random);
                self.queue.push(at, Event::Arrive(node));
            }
            Arrivals::Serial { .. } => self.plan_next_arrival(now),
            _ => {}
        }
    }

    fn has_rounds(&self, node: NodeId) -> bool {
        self.rounds.get(node.index()).is_none_or(|&rounds| rounds > 0)
    }

    fn plan_next_arrival(&mut self, now: Time) {
        let at = now + self.until_next_arrival();
        self.queue.push(at, Event::Workload);
    }

    fn until_next_arrival(&mut self) -> Time {
        match &self.setup.workload.arrivals {
            Arrivals::Serial { pause } => pause.sample(&mut self.random),
            Arrivals::Open { interval } => Time(self.random.exponential(interval.0 as f64)),
            Arrivals::Bursts { every, .. } => *every,
            Arrivals::Closed { .. } | Arrivals::Schedule(_) => Time::ZERO,
        }
    }

    /// The workload draws who asks next.
    fn next_arrival(&mut self, now: Time) {
        match self.setup.workload.arrivals {
            Arrivals::Serial { .. } => {
                let node = self.draw_alive();
                self.arrive(now, node);
            }
            Arrivals::Open { .. } => {
                let node = self.draw_alive();
                self.plan_next_arrival(now);
                self.arrive(now, node);
            }
            Arrivals::Bursts { size, .. } => {
                self.plan_next_arrival(now);
                for node in self.draw_distinct(size) {
                    self.arrive(now, node);
                }
            }
            Arrivals::Closed { .. } | Arrivals::Schedule(_) => {}
        }
    }

    /// A node that is alive. Setups in which everybody crashes are refused, so there is one.
    fn draw_alive(&mut self) -> NodeId {
        loop {
            let node = NodeId(self.random.below(u64::from(self.setup.spec.nodes)) as u32);
            if self.sites[node.index()].alive {
                return node;
            }
        }
    }

    /// So many different nodes, by Floyd's method.
    fn draw_distinct(&mut self, count: u32) -> Vec<NodeId> {
        let nodes = self.setup.spec.nodes;
        let mut drawn: Vec<NodeId> = Vec::new();
        for last in nodes - count.min(nodes)..nodes {
            let node = NodeId(self.random.below(u64::from(last) + 1) as u32);
            drawn.push(if drawn.contains(&node) { NodeId(last) } else { node });
        }
        drawn
    }

    fn run_out(&mut self, now: Time, node: NodeId, tag: TimerTag, setting: u64) {
        let is_current = self.timers.get(&(node, tag)) == Some(&setting);
        if is_current && self.sites[node.index()].alive {
            self.timers.remove(&(node, tag));
            self.step(now, node, Input::Timer(tag), None);
        }
    }

    fn crash(&mut self, now: Time, node: NodeId) {
        let phase = self.sites[node.index()].phase;
        self.sites[node.index()] =
            Site { phase: Phase::Idle, alive: false, ..self.sites[node.index()] };
        if let Some(recording) = &mut self.recording {
            recording.event(&trace::Event::Crash { at: now.0, node });
        }
        if A::TOKEN && self.nodes[node.index()].holds_token() {
            self.token.lose();
        }
        match phase {
            Phase::Idle => {}
            Phase::Waiting => self.bypass.forget(node),
            Phase::Inside => {
                self.capacity.leave(node, &Claim::single());
                self.metrics.leave(now, self.bypass.waiting() > 0);
            }
        }
        if phase != Phase::Idle && matches!(self.setup.workload.arrivals, Arrivals::Serial { .. }) {
            self.plan_next_arrival(now);
        }
        if let Some(delay) = self.setup.detector {
            for observer in node.others_after(self.setup.spec.nodes) {
                self.queue.push(now + delay, Event::Suspect { observer, suspect: node });
            }
        }
    }

    /// One atomic step of one node, and everything that it asks for.
    #[inline]
    fn step(
        &mut self,
        now: Time,
        node: NodeId,
        input: Input<A::Message>,
        delivers: Option<trace::SendId>,
    ) {
        let state = &mut self.nodes[node.index()];
        let held_token = A::TOKEN && state.holds_token();
        let recorded = self.recording.is_some().then(|| input.clone());
        state.step(&self.config, input, &mut self.effects);
        let mut effects = std::mem::take(&mut self.effects);
        if A::TOKEN {
            let holds_token = state.holds_token();
            self.token.change(i64::from(holds_token) - i64::from(held_token));
            let carries = |effect: &Effect<A::Message>| matches!(effect, Effect::Send { message, .. } if message.carries_token());
            let sent = effects.as_slice().iter().filter(|effect| carries(effect)).count();
            self.token.change(sent as i64);
            self.expect(now, |sim| sim.token.check());
        }
        if let (Some(recording), Some(input)) = (&mut self.recording, recorded) {
            recording.step(now, node, &input, delivers, effects.as_slice());
        }
        for effect in effects.drain() {
            self.carry_out(now, node, effect);
        }
        self.effects = effects;
    }

    #[inline]
    fn carry_out(&mut self, now: Time, node: NodeId, effect: Effect<A::Message>) {
        match effect {
            Effect::Send { to, message } => self.send(now, node, to, message),
            Effect::Granted(fence) => self.grant(now, node, fence),
            Effect::SetTimer { tag, after } => {
                self.timer_settings += 1;
                let setting = self.timer_settings;
                self.timers.insert((node, tag), setting);
                let at = now + Time(after.as_micros() as u64);
                self.queue.push(at, Event::Timer { node, tag, setting });
            }
            Effect::CancelTimer(tag) => {
                self.timers.remove(&(node, tag));
            }
            Effect::Anomaly(what) => {
                let what = format!("node {node}: {what}");
                self.report(now, Broken { invariant: property::NO_ANOMALY, what });
            }
        }
    }

    #[inline]
    fn send(&mut self, now: Time, from: NodeId, to: NodeId, message: A::Message) {
        self.metrics.sent[message.kind()] += 1;
        let departure = self.setup.faults.departure(now, from, to);
        let arrival = departure.map(|at| self.links.arrival(at, from, to, &mut self.random));
        let id = self.recording.as_mut().map(|recording| recording.sends(arrival, from, to));
        match arrival {
            Some(at) => self.queue.push(at, Event::Deliver { from, to, message }),
            None => self.lose(now, &message, id),
        }
    }

    fn grant(&mut self, now: Time, node: NodeId, fence: Fence) {
        let site = &mut self.sites[node.index()];
        if site.phase != Phase::Waiting {
            let what = format!("node {node} is let in without having asked");
            return self.report(now, Broken { invariant: property::NO_ANOMALY, what });
        }
        site.phase = Phase::Inside;
        site.entries += 1;
        let asked_at = site.asked_at;
        self.expect(now, |sim| sim.capacity.enter(node, &Claim::single()));
        self.expect(now, |sim| sim.fences.grant(fence));
        self.expect(now, |sim| sim.bypass.enter(node));
        self.metrics.enter(now, asked_at);
        self.entered += 1;
        if self.entered == self.setup.warmup {
            self.metrics.reset(now);
            self.bypass.reset();
            self.sites.iter_mut().for_each(|site| site.entries = 0);
        }
        let hold = self.setup.workload.hold.sample(&mut self.random);
        self.queue.push(now + hold, Event::Release(node));
    }

    fn expect(&mut self, now: Time, check: impl FnOnce(&mut Self) -> Result<(), Broken>) {
        if let Err(broken) = check(self) {
            self.report(now, broken);
        }
    }

    /// Keeps the first violation: later ones may be its consequences.
    #[cold]
    fn report(&mut self, at: Time, Broken { invariant, what }: Broken) {
        self.violation.get_or_insert(Violation { invariant, what, at });
    }

    fn finish(mut self, end: End) -> Report {
        let now = match (end, self.setup.limits.time) {
            (End::Time, Some(limit)) => limit,
            _ => self.queue.now(),
        };
        let is_waiting = |site: &Site| site.phase == Phase::Waiting;
        let waiting: Vec<NodeId> = NodeId::all(self.setup.spec.nodes)
            .filter(|node| is_waiting(&self.sites[node.index()]))
            .collect();
        for &node in &waiting {
            let wait = now - self.sites[node.index()].asked_at;
            self.metrics.wait(wait);
            self.expect(now, |sim| sim.bypass.still_waits(node));
        }
        if end == End::Quiet {
            self.expect(now, |_| nobody_waits(waiting.iter().copied()));
        }
        self.measure(end, now, waiting.len() as u64)
    }

    fn measure(self, end: End, now: Time, waiting: u64) -> Report {
        let metrics = &self.metrics;
        let frame = Frame {
            window: metrics.window(now),
            latency: self.setup.network.latency.mean(),
            hold: self.setup.workload.hold.mean(),
        };
        let messages: u64 = metrics.sent.iter().sum();
        let throughput = frame.throughput(metrics.entries);
        let shares = self.sites.iter().filter(|site| site.alive).map(|site| site.entries.into());
        Report {
            end: if self.violation.is_some() { End::Violation } else { end },
            time: now.as_units(),
            events: self.events,
            entries: metrics.entries,
            messages,
            by_kind: A::Message::KINDS.iter().copied().zip(metrics.sent.iter().copied()).collect(),
            messages_per_entry: (metrics.entries > 0)
                .then(|| messages as f64 / metrics.entries as f64),
            delay: metrics.mean_delay().and_then(|delay| frame.in_latencies(delay)),
            response_mean: metrics.mean_response(),
            response_p99: metrics.response_p99(),
            longest_wait: metrics.longest_wait().as_units(),
            throughput,
            throughput_of_bound: throughput.map(|throughput| frame.of_bound(throughput)),
            fairness: jain(shares),
            most_bypasses: self.bypass.most(),
            waiting,
            violation: self.violation,
        }
    }
}
