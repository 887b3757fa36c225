//! Whatever comes from the network, no node panics, and no message costs much.
//!
//! Forged messages are real ones, written as bytes, with some of the numbers in them replaced. Those
//! that can be read and are possible are given to nodes in the middle of a run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use catraca_algorithms::hi_adsd::{self, News};
use catraca_algorithms::{Spec, Visitor, registry};
use catraca_core::{
    Algorithm, Bounds, Claim, Effect, Effects, Envelope, Input, Message, NodeId, Phase, ResourceId,
    TimerTag,
};
use proptest::prelude::*;

/// A generator of numbers for tests: Steele, Lea and Flood's SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Every algorithm, alone, in pairs and in larger groups, and its variants.
fn specs() -> Vec<Spec> {
    let mut specs = Vec::new();
    for entry in registry::ENTRIES {
        specs.extend([2, 5].map(|nodes| Spec::new(entry.name, nodes)));
        if entry.parameters.contains(&"k") {
            specs.push(Spec { k: Some(2), ..Spec::new(entry.name, 5) });
        }
        let ordered = format!("ordered:{}", entry.name);
        specs.push(Spec { resources: Some(3), ..Spec::new(&ordered, 4) });
    }
    specs.push(Spec { resources: Some(4), ..Spec::new("bouabdallah-laforest", 4) });
    let (interval, timeout) = (Duration::from_secs(2), Duration::from_secs(1));
    for news in [News::Rounds, News::Immediate] {
        let hi_adsd = Some(hi_adsd::Config { interval, timeout, news });
        let ack_timeout = Some(timeout);
        specs.push(Spec { hi_adsd, ack_timeout, k: Some(2), ..Spec::new("robust-k", 9) });
    }
    specs
}

/// What became of forged messages.
#[derive(Debug, Default)]
struct Forged {
    tried: usize,
    decoded: usize,
    possible: usize,
    kinds: BTreeSet<usize>,
}

/// A group whose messages arrive in any order, among forged ones.
struct Group<A: Algorithm> {
    config: A::Config,
    bounds: Bounds,
    resources: u32,
    nodes: Vec<A>,
    phases: Vec<Phase>,
    timers: BTreeSet<(NodeId, TimerTag)>,
    in_flight: Vec<Envelope<A::Message>>,
    /// A message of each kind that somebody has sent, as bytes.
    samples: BTreeMap<usize, Vec<u8>>,
    effects: Effects<A::Message>,
    random: Random,
    forged: Forged,
    /// Whether every message that is sent has to be possible: where nobody forges any.
    is_honest: bool,
}

/// Messages on their way beyond so many are lost: forged ones may make nodes send without end.
const MOST_IN_FLIGHT: usize = 500;

impl<A: Algorithm> Group<A> {
    fn new(config: A::Config, spec: &Spec, seed: u64, is_honest: bool) -> Self {
        let nodes: Vec<A> =
            NodeId::all(spec.nodes).map(|me| A::new(me, &config, &spec.start)).collect();
        let mut group = Group {
            config,
            bounds: spec.bounds(),
            resources: spec.resource_count(),
            phases: vec![Phase::Idle; nodes.len()],
            nodes,
            timers: BTreeSet::new(),
            in_flight: Vec::new(),
            samples: BTreeMap::new(),
            effects: Effects::new(),
            random: Random(seed),
            forged: Forged::default(),
            is_honest,
        };
        for node in NodeId::all(spec.nodes) {
            group.step(node, Input::Start);
        }
        group
    }

    fn size(&self) -> usize {
        self.nodes.len()
    }

    fn any_node(&mut self) -> NodeId {
        NodeId(self.random.below(self.nodes.len()) as u32)
    }

    fn any_other(&mut self, than: NodeId) -> NodeId {
        let nodes = self.size();
        NodeId(((than.index() + 1 + self.random.below(nodes - 1)) % nodes) as u32)
    }

    fn any_claim(&mut self) -> Claim {
        let resources = self.resources as usize;
        let any = |random: &mut Random| ResourceId(random.below(resources) as u32);
        Claim::of([any(&mut self.random), any(&mut self.random)])
    }

    fn step(&mut self, node: NodeId, input: Input<A::Message>) {
        self.nodes[node.index()].step(&self.config, input.clone(), &mut self.effects);
        let (nodes, resources) = (self.size(), self.resources as usize);
        let effects = self.effects.as_slice().len();
        assert!(effects <= nodes * nodes + 4 * (nodes + resources), "{effects} after {input:?}");
        for effect in self.effects.drain() {
            match effect {
                Effect::Send { to, message } => {
                    assert!(to != node && to.index() < nodes, "{node} sends to {to}: {input:?}");
                    assert!(!self.is_honest || message.is_possible(self.bounds), "{message:?}");
                    let bytes = postcard::to_stdvec(&message).unwrap();
                    self.samples.entry(message.kind()).or_insert(bytes);
                    self.in_flight.push(Envelope { from: node, to, message });
                }
                Effect::Granted(_) => {
                    assert_eq!(self.phases[node.index()], Phase::Waiting, "{input:?}");
                    self.phases[node.index()] = Phase::Inside;
                }
                Effect::SetTimer { tag, .. } => drop(self.timers.insert((node, tag))),
                Effect::CancelTimer(tag) => drop(self.timers.remove(&(node, tag))),
                Effect::Anomaly(what) => assert!(!self.is_honest, "{what} after {input:?}"),
            }
        }
        while self.in_flight.len() > MOST_IN_FLIGHT {
            let lost = self.random.below(self.in_flight.len());
            self.in_flight.swap_remove(lost);
        }
    }

    /// One event of a run in which nobody forges messages.
    fn honest_turn(&mut self) {
        let choice = self.random.below(20);
        if choice < 14 && !self.in_flight.is_empty() {
            let place = self.random.below(self.in_flight.len());
            // Where channels have to be FIFO, the oldest of the channel arrives.
            let Envelope { from, to, .. } = self.in_flight[place];
            let first = |it: &Envelope<A::Message>| (it.from, it.to) == (from, to);
            let place = self.in_flight.iter().position(first).unwrap();
            let Envelope { from, to, message } = self.in_flight.remove(place);
            return self.step(to, Input::Message { from, message });
        }
        let node = self.any_node();
        if choice == 19
            && let Some(&(of, tag)) = self.timers.iter().nth(self.random.below(self.timers.len()))
        {
            self.timers.remove(&(of, tag));
            return self.step(of, Input::Timer(tag));
        }
        match self.phases[node.index()] {
            Phase::Idle => {
                self.phases[node.index()] = Phase::Waiting;
                let claim = self.any_claim();
                self.step(node, Input::Request(claim));
            }
            Phase::Waiting => {}
            Phase::Inside => {
                self.phases[node.index()] = Phase::Idle;
                self.step(node, Input::Release);
            }
        }
    }

    /// A message that somebody made up.
    fn forge(&mut self) {
        let Some((_, bytes)) = self.samples.iter().nth(self.random.below(self.samples.len()))
        else {
            return;
        };
        let kinds = A::Message::KINDS.len();
        let bytes = mutated(bytes, self.bounds, kinds, &mut self.random);
        self.forged.tried += 1;
        let Ok(message) = postcard::from_bytes::<A::Message>(&bytes) else { return };
        self.forged.decoded += 1;
        if !message.is_possible(self.bounds) {
            return;
        }
        self.forged.possible += 1;
        self.forged.kinds.insert(message.kind());
        let to = self.any_node();
        let from = self.any_other(to);
        self.step(to, Input::Message { from, message });
    }

    fn run(&mut self, turns: usize) {
        for _ in 0..turns {
            if self.random.below(3) == 0 && !self.is_honest {
                self.forge();
            } else {
                self.honest_turn();
            }
        }
    }
}

/// The numbers that `bytes` are made of: postcard writes seven bits a byte, and more as long as the
/// eighth is set.
fn numbers(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut numbers = vec![Vec::new()];
    for &byte in bytes {
        numbers.last_mut().unwrap().push(byte);
        if byte < 0x80 {
            numbers.push(Vec::new());
        }
    }
    numbers.pop();
    numbers
}

/// `bytes` with a number replaced, doubled or taken out, once or twice. The first number, which is
/// the kind of message or the resource, becomes one of the first `kinds`.
fn mutated(bytes: &[u8], bounds: Bounds, kinds: usize, random: &mut Random) -> Vec<u8> {
    let mut numbers = numbers(bytes);
    for _ in 0..=random.below(2) {
        let place = match numbers.len() {
            0 => break,
            1 => 0,
            len if random.below(4) == 0 => random.below(len),
            len => 1 + random.below(len - 1),
        };
        match random.below(8) {
            _ if place == 0 => numbers[0] = vec![random.below(kinds) as u8],
            0 => drop(numbers.remove(place)),
            1 => numbers.insert(place, numbers[place].clone()),
            _ => numbers[place] = postcard::to_stdvec(&telling(bounds, random)).unwrap(),
        }
    }
    numbers.concat()
}

/// A number at which something might go wrong.
fn telling(bounds: Bounds, random: &mut Random) -> u64 {
    let nodes = u64::from(bounds.nodes());
    let largest = [u64::MAX, 1 << 63, (1 << 62) - 1, (1 << 62) / nodes - 1, 1 << 31];
    let edges = [nodes - 1, nodes, 3, 4, 31, 32, 33, 1 << 16];
    match random.below(6) {
        0 => largest[random.below(largest.len())],
        1 => edges[random.below(edges.len())],
        _ => random.below(nodes as usize + 2) as u64,
    }
}

/// A run of `turns` events, and what became of what was forged in it.
struct Run<'a> {
    spec: &'a Spec,
    seed: u64,
    turns: usize,
    is_honest: bool,
}

impl Visitor for Run<'_> {
    /// What was forged, and how many kinds of message there are.
    type Output = (Forged, usize);

    fn visit<A: Algorithm>(self, config: A::Config) -> (Forged, usize) {
        let mut group = Group::<A>::new(config, self.spec, self.seed, self.is_honest);
        group.run(self.turns);
        (group.forged, A::Message::KINDS.len())
    }
}

#[test]
fn no_possible_message_makes_a_node_panic_or_work_without_end_in_any_state() {
    for spec in specs() {
        let (mut sum, mut kinds) = (Forged::default(), 0);
        for seed in 0..60 {
            let run = Run { spec: &spec, seed, turns: 600, is_honest: false };
            let (forged, all) = spec.visit(run).unwrap();
            sum.tried += forged.tried;
            sum.decoded += forged.decoded;
            sum.possible += forged.possible;
            sum.kinds.extend(forged.kinds);
            kinds = all;
        }
        // Otherwise the test would be one of the decoder.
        assert!(sum.tried > 8_000 && sum.decoded * 2 > sum.tried, "{spec:?}: {sum:?}");
        assert!(sum.possible * 4 > sum.tried, "{spec:?}: {sum:?}");
        // Some kinds need a detector, or more than one node in a cluster.
        let is_rare = ["bertier", "robust-k"].iter().any(|name| spec.algorithm.ends_with(name));
        assert!(sum.kinds.len() == kinds || is_rare, "{spec:?}: {sum:?}");
    }
}

#[test]
fn every_message_of_a_run_without_forged_ones_is_possible() {
    for spec in specs() {
        // A detector whose timers run out at any moment suspects nodes that live.
        if spec.hi_adsd.is_some() {
            continue;
        }
        for seed in 0..10 {
            spec.visit(Run { spec: &spec, seed, turns: 600, is_honest: true }).unwrap();
        }
    }
}

/// The same message, many times.
struct Flood<'a>(&'a Spec);

impl Visitor for Flood<'_> {
    /// The most memory, in bytes, that all the messages took.
    type Output = u64;

    fn visit<A: Algorithm>(self, config: A::Config) -> u64 {
        let mut group = Group::<A>::new(config, self.0, 7, false);
        group.run(300);
        let mut most = 0;
        for bytes in group.samples.clone().into_values() {
            let message: A::Message = postcard::from_bytes(&bytes).unwrap();
            let node = group.any_node();
            let from = group.any_other(node);
            let state = &mut group.nodes[node.index()];
            let mut effects = Effects::new();
            let used = allocation_counter::measure(|| {
                for _ in 0..20_000 {
                    let message = message.clone();
                    state.step(&group.config, Input::Message { from, message }, &mut effects);
                    effects.drain();
                }
            });
            most = most.max(used.bytes_max);
        }
        most
    }
}

#[test]
fn a_node_that_repeats_itself_fills_nobodys_memory() {
    for spec in specs() {
        let most = spec.visit(Flood(&spec)).unwrap();
        assert!(most < 16 << 10, "{spec:?}: {most} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nor_does_it_in_any_run_that_a_property_test_makes_up(
        seed in any::<u64>(),
        turns in 1..400usize,
        which in 0..specs().len(),
    ) {
        let spec = &specs()[which];
        spec.visit(Run { spec, seed, turns, is_honest: false }).unwrap();
    }

    /// Bytes that nobody has ever written: they are read or refused, and take little memory.
    #[test]
    fn any_bytes_are_read_or_refused_at_little_cost(
        bytes in proptest::collection::vec(any::<u8>(), 0..64),
        which in 0..specs().len(),
    ) {
        struct Read<'a>(&'a [u8], Bounds);
        impl Visitor for Read<'_> {
            type Output = u64;
            fn visit<A: Algorithm>(self, _config: A::Config) -> u64 {
                let read = || match postcard::from_bytes::<A::Message>(self.0) {
                    Ok(message) => message.is_possible(self.1),
                    Err(_) => false,
                };
                let mut is_possible = false;
                let used = allocation_counter::measure(|| is_possible = read());
                std::hint::black_box(is_possible);
                used.bytes_max
            }
        }
        let spec = &specs()[which];
        let most = spec.visit(Read(&bytes, spec.bounds())).unwrap();
        // serde reserves up to a megabyte for a list of the length that the bytes claim.
        prop_assert!(most <= (1 << 20) + (16 << 10), "{most} bytes for {bytes:?}");
    }
}
