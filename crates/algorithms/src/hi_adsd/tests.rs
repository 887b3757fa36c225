use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use catraca_core::Effect;
use proptest::prelude::*;

use super::*;

const MILLI: Duration = Duration::from_millis(1);

fn config(news: News) -> Config {
    // Long enough for the tests of a whole cluster one after the other.
    Config { interval: Duration::from_secs(1000), timeout: Duration::from_secs(1), news }
}

/// Detectors alone: every message takes a millisecond.
struct Group {
    cube: Hypercube,
    config: Config,
    nodes: Vec<HiAdsd>,
    crashed: NodeSet,
    now: Duration,
    /// What is going to happen, by time and number.
    events: BTreeMap<(Duration, u64), (NodeId, Happens)>,
    /// Which of the timers that were set counts.
    timers: BTreeMap<(NodeId, TimerTag), u64>,
    next: u64,
    tests: u64,
    answers: u64,
}

enum Happens {
    Message(NodeId, Msg),
    Timer(TimerTag),
}

impl Group {
    fn new(nodes: u32, news: News) -> Self {
        let mut group = Group {
            cube: Hypercube::new(nodes),
            config: config(news),
            nodes: NodeId::all(nodes).map(HiAdsd::new).collect(),
            crashed: NodeSet::new(),
            now: Duration::ZERO,
            events: BTreeMap::new(),
            timers: BTreeMap::new(),
            next: 0,
            tests: 0,
            answers: 0,
        };
        for node in NodeId::all(nodes) {
            let mut out = Effects::new();
            group.nodes[node.index()].start(&group.cube, &group.config, &mut out);
            group.carry_out(node, out);
        }
        group
    }

    fn carry_out(&mut self, node: NodeId, mut out: Effects<Msg>) {
        for effect in out.drain() {
            self.next += 1;
            match effect {
                Effect::Send { to, message } => {
                    self.tests += u64::from(message == Msg::AreYouAlive);
                    self.answers += u64::from(matches!(message, Msg::IAmAlive(_)));
                    let place = (self.now + MILLI, self.next);
                    self.events.insert(place, (to, Happens::Message(node, message)));
                }
                Effect::SetTimer { tag, after } => {
                    self.timers.insert((node, tag), self.next);
                    self.events.insert((self.now + after, self.next), (node, Happens::Timer(tag)));
                }
                Effect::CancelTimer(tag) => {
                    self.timers.remove(&(node, tag));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Lets everything happen up to just before the `count`-th interval from now ends.
    fn run(&mut self, intervals: u32) {
        let until = self.now + self.config.interval * intervals;
        while let Some(entry) = self.events.first_entry() {
            let (at, number) = *entry.key();
            if at >= until {
                break;
            }
            let (node, happens) = entry.remove();
            self.now = at;
            if self.crashed.contains(node) {
                continue;
            }
            let mut out = Effects::new();
            let state = &mut self.nodes[node.index()];
            match happens {
                Happens::Message(from, message) => {
                    state.on_message(&self.cube, from, message, &mut out);
                }
                Happens::Timer(tag) if self.timers.get(&(node, tag)) == Some(&number) => {
                    self.timers.remove(&(node, tag));
                    state.on_timer(&self.cube, &self.config, tag, &mut out);
                }
                Happens::Timer(_) => {}
            }
            self.carry_out(node, out);
        }
        self.now = until;
    }

    fn everybody_knows(&self) -> bool {
        let mut living = NodeId::all(self.cube.nodes()).filter(|&id| !self.crashed.contains(id));
        living.all(|id| *self.nodes[id.index()].suspects() == self.crashed)
    }
}

/// 'If all nodes are fault-free each executes log n tests.' Reference: S4 3.1.
#[test]
fn paper_without_crashes_every_node_makes_log_n_tests_an_interval() {
    for (nodes, dimension) in [(1, 0), (2, 1), (8, 3), (16, 4), (64, 6)] {
        let mut group = Group::new(nodes, News::Rounds);
        group.run(3);
        let expected = 3 * u64::from(nodes) * dimension;
        assert_eq!((group.tests, group.answers), (expected, expected), "{nodes}");
        assert!(group.everybody_knows());
    }
}

/// With absent corners some clusters are empty, and nobody is missed.
#[test]
fn between_powers_of_two_every_cluster_with_somebody_in_it_is_tested() {
    for nodes in [3, 5, 6, 7, 12, 33] {
        let cube = Hypercube::new(nodes);
        let inhabited: usize = NodeId::all(nodes)
            .map(|id| (1..=cube.dimension()).filter(|&s| cube.cluster(id, s).count() > 0).count())
            .sum();
        let mut group = Group::new(nodes, News::Rounds);
        group.run(1);
        assert_eq!(group.tests, inhabited as u64, "{nodes}");
    }
}

/// 'It tests the next node of the cluster until it finds a fault-free one.' Reference: S4 3.1.
#[test]
fn paper_a_silent_node_is_suspected_and_the_next_of_its_cluster_tested() {
    let cube = Hypercube::new(8);
    let mut n0 = HiAdsd::new(NodeId(0));
    let mut out = Effects::new();
    n0.start(&cube, &config(News::Rounds), &mut out);
    let tested: Vec<u32> = out
        .drain()
        .filter_map(|effect| match effect {
            Effect::Send { to, message: Msg::AreYouAlive } => Some(to.0),
            _ => None,
        })
        .collect();
    assert_eq!(tested, [1, 2, 4]);
    let found = n0.on_timer(&cube, &config(News::Rounds), TimerTag(3), &mut out);
    assert_eq!(found, NodeSet::from_iter([NodeId(4)]));
    let next = [
        Effect::Send { to: NodeId(6), message: Msg::AreYouAlive },
        Effect::SetTimer { tag: TimerTag(3), after: Duration::from_secs(1) },
    ];
    assert_eq!(out.drain().collect::<Vec<_>>(), next);
}

/// 'And obtains information about the other nodes of that cluster.' Reference: S4 3.1.
#[test]
fn paper_news_is_taken_over_for_the_cluster_of_the_tested_node_only() {
    let cube = Hypercube::new(8);
    let mut n0 = HiAdsd::new(NodeId(0));
    let mut out: Effects<Msg> = Effects::new();
    n0.start(&cube, &config(News::Rounds), &mut out);
    out.drain();
    let known = NodeSet::from_iter([0, 1, 5, 7].map(NodeId));
    let found = n0.on_message(&cube, NodeId(4), Msg::IAmAlive(known.clone()), &mut out);
    assert_eq!(found, NodeSet::from_iter([5, 7].map(NodeId)), "not itself, and not node 1");
    assert_eq!(out.drain().collect::<Vec<_>>(), [Effect::CancelTimer(TimerTag(3))]);
    let again = n0.on_message(&cube, NodeId(4), Msg::IAmAlive(known), &mut out);
    assert!(again.is_empty() && out.as_slice().is_empty(), "nobody asked");
}

#[test]
fn the_answer_of_a_suspect_comes_too_late() {
    let cube = Hypercube::new(2);
    let mut n0 = HiAdsd::new(NodeId(0));
    let mut out: Effects<Msg> = Effects::new();
    n0.start(&cube, &config(News::Rounds), &mut out);
    n0.on_timer(&cube, &config(News::Rounds), TimerTag(1), &mut out);
    n0.on_timer(&cube, &config(News::Rounds), TimerTag(0), &mut out);
    out.drain();
    let found = n0.on_message(&cube, NodeId(1), Msg::IAmAlive(NodeSet::new()), &mut out);
    assert!(found.is_empty() && out.as_slice().is_empty());
    assert!(n0.suspects().contains(NodeId(1)), "for ever");
}

#[test]
fn immediate_news_reaches_everybody_without_another_test() {
    let mut group = Group::new(32, News::Immediate);
    group.run(1);
    group.crashed.insert(NodeId(19));
    // The next tests begin with the next interval and take a second.
    group.run(1);
    assert!(group.everybody_knows());
    let mut slow = Group::new(32, News::Rounds);
    slow.run(1);
    slow.crashed.insert(NodeId(19));
    slow.run(1);
    assert!(!slow.everybody_knows());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// 'The latency is between log n and log² n rounds.' A round is the test of one cluster, and an
    /// interval has log n of them; the first is the one in which the crash happens.
    /// Reference: S4 3.1.
    #[test]
    fn paper_every_live_node_knows_every_crash_within_log_n_intervals(
        nodes in 1u32..80,
        crashes in prop::collection::vec((0u32..80, 0u32..4), 0..80),
    ) {
        let mut group = Group::new(nodes, News::Rounds);
        let mut waves = vec![BTreeSet::new(); 4];
        for (node, wave) in crashes {
            waves[wave as usize].insert(NodeId(node % nodes));
        }
        for wave in waves {
            let survivors = nodes as usize - group.crashed.len();
            for node in wave.into_iter().take(survivors - 1) {
                group.crashed.insert(node);
            }
            group.run(1);
        }
        group.run(group.cube.dimension());
        prop_assert!(group.everybody_knows());
    }
}

#[test]
fn nobody_suspects_a_node_that_does_not_exist() {
    let cube = Hypercube::new(3);
    let mut node = HiAdsd::new(NodeId(0));
    let mut out = Effects::<Msg>::new();
    node.start(&cube, &config(News::Rounds), &mut out);
    out.drain();
    let found = node.on_message(&cube, NodeId(2), Msg::News(NodeId(3)), &mut out);
    assert!(found.is_empty() && matches!(out.as_slice(), [Effect::Anomaly(_)]));
    // Node 3 would be in the cluster of node 2, if it existed.
    let answer = Msg::IAmAlive(NodeSet::from_iter([NodeId(3), NodeId(9)]));
    assert!(node.on_message(&cube, NodeId(2), answer, &mut out).is_empty());
    assert!(node.suspects().is_empty());
}
