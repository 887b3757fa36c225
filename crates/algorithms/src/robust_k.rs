//! **Idea.** Raymond's k-algorithm over a failure detector. Requests travel over a tree of the nodes
//! that are not suspected (`sta.rs`), and a node enters as soon as all of these but k-1 have
//! answered; an answer of one who is suspected meanwhile is taken back. The detector is Hi-ADSD
//! (`hi_adsd.rs`), or the driver's own.
//!
//! **Source.** S4, sections 3 and 4, algorithms 1 and 2, Figure 4.
//!
//! **Assumes.** Reliable channels in any order, and a perfect detector: sooner or later it suspects
//! every node that has crashed, and no other. Up to N-1 nodes may crash. A detector that is late
//! costs time. One that is wrong costs safety: a node that takes a holder for crashed no longer waits for
//! its answer and may enter beside it; and a node that is taken for crashed is never answered again.
//!
//! **Cost.** N-1 tree messages, N-1 acknowledgements and up to N-1 answers per entry; delay T. Hi-ADSD
//! adds 2 log N messages per node and interval. A crash makes what was lost with it be sent again.
//!
//! **Departs.** Three errors of the pseudo-code are corrected, and are mutants here: `clock-not-stored`
//! (line 8 leaves the clock, so the next request looks like the last one), `last-by-sender`
//! (algorithm 1, line 12) and `late-expectation` (lines 10 and 11 are one step). A fourth:
//! `different-is-new` (algorithm 1, line 12, takes any different message for a new one). Requests are
//! sent again on suspicion, by the node that had passed them on to the suspect, unless a time-out for
//! acknowledgements is given, which is the paper's way. Variables are the paper's: `perm_count`,
//! `reply_count`, `defer_count`; `requested` is its last.

use core::time::Duration;

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, LogicalClock, Message, NodeId, NodeSet, Phase, Stamp, Start,
    TimerTag, Variables,
};
use catraca_topology::Hypercube;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::hi_adsd::{self, HiAdsd};
use crate::mutants::{self, Mutation};
use crate::raymond_k::Counts;
use crate::registry::{Channels, Entry, Family, Load, Range, Registered, Theory};
use crate::sta::{self, Resend, Sta, View};
use crate::{ASKS_TWICE, Spec, SpecError};

/// What the nodes say to each other: the messages of the three parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// 'The origin wants to enter, and asked at this time'; on its way through the tree.
    Tree {
        /// Who asks.
        origin: NodeId,
        /// The receiver passes it on to its clusters below this one.
        hops: u32,
        /// When it asked.
        time: u64,
    },
    /// 'Your request of this time has reached me.'
    Ack(u64),
    /// 'Go ahead, as far as so many of your requests and I are concerned.'
    Reply(u32),
    /// A test of the detector.
    AreYouAlive,
    /// The answer to a test, and whom the tested node takes for crashed.
    IAmAlive(NodeSet),
    /// 'This one has crashed.'
    News(NodeId),
}

impl Message for Msg {
    const KINDS: &'static [&'static str] =
        &["tree", "ack", "reply", "are-you-alive", "i-am-alive", "news"];

    fn kind(&self) -> usize {
        match self {
            Msg::Tree { .. } => 0,
            Msg::Ack(_) => 1,
            Msg::Reply(_) => 2,
            Msg::AreYouAlive => 3,
            Msg::IAmAlive(_) => 4,
            Msg::News(_) => 5,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match self {
            Msg::Tree { origin, hops, time } => sta::is_possible(*origin, *hops, *time, bounds),
            Msg::Ack(time) => bounds.has_time(*time),
            Msg::Reply(count) => *count > 0,
            Msg::AreYouAlive => true,
            Msg::IAmAlive(suspects) => bounds.has_nodes(suspects),
            Msg::News(crashed) => bounds.has_node(*crashed),
        }
    }

    fn is_upkeep(&self) -> bool {
        matches!(self, Msg::AreYouAlive | Msg::IAmAlive(_))
    }
}

impl From<sta::Msg> for Msg {
    fn from(message: sta::Msg) -> Self {
        match message {
            sta::Msg::Tree { origin, hops, time } => Msg::Tree { origin, hops, time },
            sta::Msg::Ack(time) => Msg::Ack(time),
        }
    }
}

impl From<hi_adsd::Msg> for Msg {
    fn from(message: hi_adsd::Msg) -> Self {
        match message {
            hi_adsd::Msg::AreYouAlive => Msg::AreYouAlive,
            hi_adsd::Msg::IAmAlive(suspects) => Msg::IAmAlive(suspects),
            hi_adsd::Msg::News(crashed) => Msg::News(crashed),
        }
    }
}

/// What all nodes know.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many may be inside at once.
    pub k: u32,
    /// The clusters of the detector and the trees of the broadcast.
    pub cube: Hypercube,
    /// Hi-ADSD, or else only the driver's detector.
    pub detector: Option<hi_adsd::Config>,
    /// What makes a request be sent again.
    pub resend: Resend,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RobustK {
    pub(crate) me: NodeId,
    pub(crate) clock: LogicalClock,
    pub(crate) phase: Phase,
    /// The time of the request that is being served. Zero while there is none.
    pub(crate) requested: u64,
    /// How many that are not suspected have answered all requests of this node.
    pub(crate) perm_count: u32,
    /// How many answers of each peer this node still waits for. Signed, as a count that mutants get wrong.
    pub(crate) reply_count: SmallVec<[i32; 4]>,
    /// How many requests of each peer wait until this node leaves.
    pub(crate) defer_count: Counts,
    pub(crate) sta: Sta,
    pub(crate) detector: HiAdsd,
}

impl RobustK {
    pub(crate) fn my_request(&self) -> Stamp {
        Stamp { time: self.requested, node: self.me }
    }

    fn view<'a>(config: &'a Config, detector: &'a HiAdsd) -> View<'a> {
        View { cube: &config.cube, resend: config.resend, suspects: detector.suspects() }
    }

    /// Line 12: everybody who is not suspected has answered, but for k-1 and this node.
    pub(crate) fn enter_if_permitted(&mut self, config: &Config, out: &mut Effects<Msg>) {
        let living = config.cube.nodes().saturating_sub(self.detector.suspects().len() as u32);
        if self.phase == Phase::Waiting && self.perm_count.saturating_add(config.k) >= living {
            self.phase = Phase::Inside;
            self.perm_count = 0;
            out.granted(self.my_request().fence(config.cube.nodes()));
        }
    }

    /// Lines 19 to 24: the request of `origin` has come through the tree.
    fn on_ask(&mut self, origin: NodeId, time: u64, out: &mut Effects<Msg>) {
        self.clock.witness(time);
        if self.detector.suspects().contains(origin) {
            return;
        }
        let theirs = Stamp { time, node: origin };
        let mine_first = match self.phase {
            Phase::Idle => false,
            Phase::Waiting => self.my_request() < theirs,
            Phase::Inside => true,
        };
        if mine_first {
            let deferred = &mut self.defer_count[origin.index()];
            *deferred = deferred.saturating_add(1);
        } else {
            out.send(origin, Msg::Reply(1));
        }
    }

    /// Lines 25 to 28.
    fn on_reply(&mut self, config: &Config, from: NodeId, count: u32, out: &mut Effects<Msg>) {
        if self.detector.suspects().contains(from) {
            return;
        }
        let owed = &mut self.reply_count[from.index()];
        let left = owed.saturating_sub_unsigned(count);
        if left < 0 {
            return out.anomaly("an answer came that nobody waits for");
        }
        *owed = left;
        if self.phase == Phase::Waiting && left == 0 {
            self.perm_count += 1;
            self.enter_if_permitted(config, out);
        }
    }

    /// Lines 29 and 30: the detector has begun to suspect `node`.
    fn on_crash(&mut self, config: &Config, node: NodeId, out: &mut Effects<Msg>) {
        if self.phase == Phase::Waiting && self.reply_count[node.index()] == 0 {
            self.perm_count = self.perm_count.saturating_sub(1);
        }
        // The two exchange nothing more: both sides stop counting.
        self.reply_count[node.index()] = 0;
        self.defer_count[node.index()] = 0;
        self.sta.on_suspect(Self::view(config, &self.detector), node, out);
        self.enter_if_permitted(config, out);
    }

    fn on_crashes(&mut self, config: &Config, crashed: &NodeSet, out: &mut Effects<Msg>) {
        for node in crashed.iter() {
            self.on_crash(config, node, out);
        }
    }

    fn on_detector_message(
        &mut self,
        config: &Config,
        from: NodeId,
        message: hi_adsd::Msg,
        out: &mut Effects<Msg>,
    ) {
        let crashed = self.detector.on_message(&config.cube, from, message, out);
        self.on_crashes(config, &crashed, out);
    }
}

impl Algorithm for RobustK {
    type Message = Msg;
    type Config = Config;

    fn new(me: NodeId, config: &Config, start: &Start) -> Self {
        // Nobody else needs to know of a holder: a node that asks it is deferred.
        let nodes = config.cube.nodes();
        RobustK {
            me,
            clock: LogicalClock::default(),
            phase: start.phase_of(me),
            requested: 0,
            perm_count: 0,
            reply_count: SmallVec::from_elem(0, nodes as usize),
            defer_count: SmallVec::from_elem(0, nodes as usize),
            sta: Sta::new(me, nodes),
            detector: HiAdsd::new(me),
        }
    }

    fn on_start(&mut self, config: &Config, out: &mut Effects<Msg>) {
        if let Some(detector) = &config.detector {
            self.detector.start(&config.cube, detector, out);
        }
    }

    /// Lines 7 to 13, in one step.
    fn on_request(&mut self, config: &Config, _claim: Claim, out: &mut Effects<Msg>) {
        if self.phase != Phase::Idle {
            return out.anomaly(ASKS_TWICE);
        }
        self.phase = Phase::Waiting;
        self.requested = self.clock.tick();
        self.sta.broadcast(Self::view(config, &self.detector), self.requested, out);
        for peer in NodeId::all(config.cube.nodes()).filter(|&peer| peer != self.me) {
            if !self.detector.suspects().contains(peer) {
                let owed = &mut self.reply_count[peer.index()];
                *owed = owed.saturating_add(1);
            }
        }
        self.enter_if_permitted(config, out);
    }

    /// Lines 14 to 18.
    fn on_release(&mut self, config: &Config, out: &mut Effects<Msg>) {
        self.phase = Phase::Idle;
        self.requested = 0;
        for peer in NodeId::all(config.cube.nodes()) {
            let deferred = core::mem::take(&mut self.defer_count[peer.index()]);
            if deferred > 0 {
                out.send(peer, Msg::Reply(deferred));
            }
        }
    }

    fn on_message(&mut self, config: &Config, from: NodeId, message: Msg, out: &mut Effects<Msg>) {
        match message {
            Msg::Tree { origin, hops, time } => {
                let view = Self::view(config, &self.detector);
                if self.sta.on_tree(view, (origin, hops, time), out) {
                    self.on_ask(origin, time, out);
                }
            }
            Msg::Ack(time) => {
                self.sta.on_ack(Self::view(config, &self.detector), from, time, out);
            }
            Msg::Reply(count) => self.on_reply(config, from, count, out),
            Msg::AreYouAlive => {
                self.on_detector_message(config, from, hi_adsd::Msg::AreYouAlive, out);
            }
            Msg::IAmAlive(suspects) => {
                self.on_detector_message(config, from, hi_adsd::Msg::IAmAlive(suspects), out);
            }
            Msg::News(crashed) => {
                self.on_detector_message(config, from, hi_adsd::Msg::News(crashed), out);
            }
        }
    }

    fn on_timer(&mut self, config: &Config, tag: TimerTag, out: &mut Effects<Msg>) {
        match &config.detector {
            _ if tag == sta::ACKS => self.sta.on_timer(Self::view(config, &self.detector), out),
            Some(detector) => {
                let crashed = self.detector.on_timer(&config.cube, detector, tag, out);
                self.on_crashes(config, &crashed, out);
            }
            None => out.anomaly("a timer ran out that was never set"),
        }
    }

    fn is_upkeep(tag: TimerTag) -> bool {
        tag != sta::ACKS
    }

    fn on_suspect(&mut self, config: &Config, node: NodeId, out: &mut Effects<Msg>) {
        if self.detector.suspect(node) {
            self.on_crash(config, node, out);
        }
    }

    fn suspects(&self) -> Option<&NodeSet> {
        Some(self.detector.suspects())
    }

    fn variables(&self, out: &mut Variables) {
        out.phase(self.phase);
        out.number("clock", self.clock.now());
        out.number("last", self.requested);
        out.number("perm_count", self.perm_count);
        out.per_node("reply_count", self.reply_count.iter().copied());
        out.per_node("defer_count", self.defer_count.iter().copied());
        out.part("sta", |out| self.sta.variables(out));
        out.part("hi-adsd", |out| self.detector.variables(out));
    }
}

impl Registered for RobustK {
    const ENTRY: Entry = Entry {
        name: "robust-k",
        title: "Rodrigues, Duarte and Arantes: k holders, up to N-1 crashes",
        family: Family::Permission,
        channels: Channels::Any,
        messages: "2(N-1) to 3(N-1)",
        delay: "T",
        fence: "(time, id) of the request; unique",
        source: "S4 4",
        max_nodes: 2048,
        parameters: &["k", "test-interval", "test-timeout", "news", "ack-timeout"],
        claims: None,
        file: include_str!("robust_k.rs"),
    };

    fn config(spec: &Spec) -> Result<Config, SpecError> {
        Ok(Config {
            k: spec.capacity(),
            cube: Hypercube::new(spec.nodes),
            detector: spec.hi_adsd,
            resend: spec.ack_timeout.map_or(Resend::OnSuspicion, Resend::After),
        })
    }

    fn theory(config: &Config, load: Load) -> Theory {
        let others = f64::from(config.cube.nodes() - 1);
        let messages = match load {
            Load::High if config.k > 1 => Range::between(2.0 * others, 3.0 * others),
            _ => Range::exactly(3.0 * others),
        };
        // A request may still be on its way through the tree when a node leaves.
        let hops = f64::from(config.cube.dimension().max(1));
        let delay = match config.k {
            1 => Range::between(1.0, hops),
            _ => Range::between(0.0, hops),
        };
        Theory { messages, delay }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::robust_k::ALL
    }
}

/// Refuses a detector or a time-out that could never work.
pub(crate) fn validate(spec: &Spec) -> Result<(), SpecError> {
    if let Some(hi_adsd::Config { interval, timeout, .. }) = spec.hi_adsd {
        if timeout.is_zero() {
            return Err(SpecError::NoTime("test-timeout"));
        }
        if interval < timeout {
            return Err(SpecError::TestInterval { interval, timeout });
        }
    }
    match spec.ack_timeout {
        Some(Duration::ZERO) => Err(SpecError::NoTime("ack-timeout")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
