//! The simulation itself: takes the next event, lets a node step, carries out its effects.

pub(crate) mod bounds;
mod crash;
mod figures;
mod messages;
mod sets;
mod suspicion;
mod timers;
mod unrest;
mod upkeep;
mod workload;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use catraca_algorithms::{SpecError, Visitor};
use catraca_core::{
    Algorithm, Effect, Effects, Fence, Input, Message, NodeId, Phase, TimerTag, property,
};
use catraca_trace as trace;

use crate::locality::Locality;
use crate::metrics::Metrics;
use crate::monitor::{Broken, Bypass, Capacity, Fences, OneToken, Violation, deadlock};
use crate::network::Links;
use crate::queue::EventQueue;
use crate::random::Random;
use crate::recording::Recording;
use crate::report::{End, Report};
use crate::setup::Setup;
use crate::time::Time;
use crate::workload::Arrivals;
use bounds::Bounds;
use sets::Sets;
use suspicion::Suspicions;
use unrest::Unrest;
use upkeep::Upkeep;

/// How many events pass between two looks at the stop flag.
const EVENTS_PER_LOOK: u64 = 4096;

/// What observes a run or ends it early.
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

/// Runs `setup` with an algorithm that is not registered; the name in the setup does not matter.
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
    /// The request with this number in the schedule comes.
    Scheduled(u32),
    /// The applications at this node and at all after it want to enter, one after the other. One
    /// event represents all of them, because there may be millions.
    FirstRound(NodeId),
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

/// A request that waits at its own node for an earlier one, or is about to be made.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    /// When it came.
    since: Time,
    /// Its number in the schedule, if it comes from one.
    scheduled: Option<u32>,
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
    /// Requests that came to a busy node, in the order of coming.
    backlog: BTreeMap<NodeId, VecDeque<PendingRequest>>,
    /// How many they are.
    queued: usize,
    /// Rounds left per node, where the workload limits them.
    rounds: Vec<u32>,
    /// The timers that are set, with the number of the setting that counts.
    timers: BTreeMap<(NodeId, TimerTag), u64>,
    timer_settings: u64,
    /// What nodes ask for, where there is more than one resource.
    sets: Option<Sets>,
    /// Who asks next, where that depends on the cluster.
    locality: Option<Locality>,
    capacity: Capacity,
    fences: Fences,
    token: OneToken,
    bypass: Bypass,
    suspicions: Suspicions,
    upkeep: Upkeep,
    unrest: Unrest,
    metrics: Metrics,
    bounds: Bounds,
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
            queued: 0,
            rounds,
            timers: BTreeMap::new(),
            timer_settings: 0,
            sets: Sets::new(setup),
            locality: locality(setup),
            capacity: Capacity::new(vec![spec.capacity(); spec.resource_count() as usize]),
            fences: Fences::new(spec.resource_count(), spec.capacity()),
            token: OneToken::new(),
            bypass: Bypass::new(spec.nodes, setup.max_bypass),
            suspicions: Suspicions::default(),
            upkeep: Upkeep::new(setup),
            unrest: Unrest::default(),
            metrics: Metrics::new(A::Message::KINDS.len()),
            bounds: Bounds::of::<Event<A::Message>>().on(spec.nodes),
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
            if let Some(end) = self.ends_in_unrest() {
                break end;
            }
            let Some((now, event)) = self.queue.pop() else { break End::Quiet };
            if self.setup.limits.time.is_some_and(|limit| now > limit) {
                break End::Time;
            }
            if let Some(end) = self.beyond_bounds(now) {
                break end;
            }
            self.events += 1;
            self.upkeep.pending -= usize::from(Self::is_upkeep(&event));
            self.note_unrest(&event);
            if self.events.is_multiple_of(EVENTS_PER_LOOK)
                && self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
            {
                break End::Interrupted;
            }
            self.handle(now, event);
            self.look_for_deadlock(now);
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
            if let Some(sets) = &mut self.sets {
                sets.enter(Time::ZERO, node, claim);
            }
            let hold = self.setup.workload.hold.sample(&mut self.random);
            self.queue.push(hold, Event::Release(node));
        }
        for (at, node) in self.setup.faults.crashes() {
            self.queue.push(at, Event::Crash(node));
        }
        self.start_workload();
    }

    #[inline]
    fn handle(&mut self, now: Time, event: Event<A::Message>) {
        match event {
            Event::Deliver { from, to, message } => self.deliver(now, from, to, message),
            Event::Arrive(node) => self.arrive(now, node, None),
            Event::Scheduled(number) => self.arrive_as_scheduled(now, number),
            Event::FirstRound(node) => self.first_round(now, node),
            Event::Release(node) => self.release(now, node),
            Event::Workload => self.next_arrival(now),
            Event::Timer { node, tag, setting } => self.run_out(now, node, tag, setting),
            Event::Crash(node) => self.crash(now, node),
            Event::Suspect { observer, suspect } => self.suspect(now, observer, suspect),
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
        if !Self::is_upkeep_input(&input) {
            self.upkeep.note_change(now);
        }
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
        self.note_suspicions(now, node);
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
            Effect::SetTimer { tag, after } => self.set_timer(now, node, tag, after),
            Effect::CancelTimer(tag) => self.cancel_timer(node, tag),
            Effect::Anomaly(what) => {
                let what = format!("node {node}: {what}");
                self.report(now, Broken { invariant: property::NO_ANOMALY, what });
            }
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
        let claim = self.claim_of(node);
        self.expect(now, |sim| sim.capacity.enter(node, &claim));
        self.expect(now, |sim| sim.fences.grant(&claim, fence));
        self.expect(now, |sim| sim.bypass.enter(node));
        let cluster = self.setup.clusters.as_ref().map(|clusters| clusters.of(node));
        self.metrics.enter(now, asked_at, cluster);
        if let Some(sets) = &mut self.sets {
            sets.enter(now, node, &claim);
        }
        self.unrest.note_entry();
        self.entered += 1;
        if self.entered == self.setup.warmup {
            self.metrics.reset(now);
            self.bypass.reset();
            if let Some(sets) = &mut self.sets {
                sets.reset(now);
            }
            self.sites.iter_mut().for_each(|site| site.entries = 0);
        }
        let hold = self.setup.workload.hold.sample(&mut self.random);
        self.queue.push(now + hold, Event::Release(node));
    }

    /// Between two events: a node that waits must have something to wait for. Everything that can let
    /// a node in is an event in the queue. Two kinds of events do not count: the next request from
    /// outside, if there is always one, and tests of a failure detector that cannot bring a suspicion
    /// any more.
    #[inline]
    fn look_for_deadlock(&mut self, now: Time) {
        let from_outside = usize::from(self.setup.workload.arrivals.keep_coming());
        let pending = self.queue.len() - self.upkeep.pending;
        if self.bypass.waiting() > 0 && pending <= from_outside && self.upkeep.is_settled(now) {
            let waiting: Vec<NodeId> = self.waiting().collect();
            self.report(now, deadlock(waiting.into_iter()));
        }
    }

    fn waiting(&self) -> impl Iterator<Item = NodeId> {
        let is_waiting = |node: &NodeId| self.sites[node.index()].phase == Phase::Waiting;
        NodeId::all(self.setup.spec.nodes).filter(is_waiting)
    }

    fn expect(&mut self, now: Time, check: impl FnOnce(&mut Self) -> Result<(), Broken>) {
        if let Err(broken) = check(self) {
            self.report(now, broken);
        }
    }

    /// Keeps the first violation: later ones may be its consequences. If live nodes were taken for
    /// crashed before, it says so.
    #[cold]
    fn report(&mut self, at: Time, Broken { invariant, mut what }: Broken) {
        what.push_str(&self.suspicions.cause());
        self.violation.get_or_insert(Violation { invariant, what, at });
    }
}

fn locality(setup: &Setup) -> Option<Locality> {
    let (share, clusters) = (setup.workload.locality?, setup.clusters.as_ref()?);
    Some(Locality::new(share, clusters))
}
