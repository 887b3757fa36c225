use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use catraca_core::{Effect, Envelope};
use proptest::prelude::*;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(1);

/// Broadcasts alone, with a perfect detector that informs each node when the test says so.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Group {
    nodes: Vec<Sta>,
    suspects: Vec<NodeSet>,
    crashed: NodeSet,
    in_flight: Vec<Envelope<Msg>>,
    /// How often each node has delivered the message.
    delivered: Vec<u32>,
    /// Whether the origin's timer is set.
    timer: bool,
    tree_messages: u32,
}

impl Group {
    fn new(nodes: u32) -> Self {
        Group {
            nodes: NodeId::all(nodes).map(|me| Sta::new(me, nodes)).collect(),
            suspects: vec![NodeSet::new(); nodes as usize],
            crashed: NodeSet::new(),
            in_flight: Vec::new(),
            delivered: vec![0; nodes as usize],
            timer: false,
            tree_messages: 0,
        }
    }

    /// One node does something, and what it asks for is carried out.
    fn step(
        &mut self,
        (cube, resend): (&Hypercube, Resend),
        node: NodeId,
        act: impl FnOnce(&mut Sta, View<'_>, &mut Effects<Msg>),
    ) {
        let view = View { cube, resend, suspects: &self.suspects[node.index()] };
        let mut out = Effects::new();
        act(&mut self.nodes[node.index()], view, &mut out);
        for effect in out.drain() {
            match effect {
                Effect::Send { to, message } => {
                    self.tree_messages += u32::from(matches!(message, Msg::Tree { .. }));
                    if !self.crashed.contains(to) {
                        self.in_flight.push(Envelope { from: node, to, message });
                    }
                }
                Effect::SetTimer { .. } => self.timer = true,
                Effect::CancelTimer(_) => self.timer = false,
                other => panic!("{other:?}"),
            }
        }
    }

    fn broadcast(&mut self, tree: (&Hypercube, Resend), origin: NodeId) {
        self.step(tree, origin, |sta, view, out| sta.broadcast(view, 1, out));
    }

    fn deliver(&mut self, tree: (&Hypercube, Resend), place: usize) {
        let Envelope { from, to, message } = self.in_flight.remove(place);
        let mut delivered = false;
        self.step(tree, to, |sta, view, out| match message {
            Msg::Tree { origin, hops, time } => {
                delivered = sta.on_tree(view, (origin, hops, time), out);
            }
            Msg::Ack(time) => sta.on_ack(view, from, time, out),
        });
        self.delivered[to.index()] += u32::from(delivered);
    }

    fn crash(&mut self, node: NodeId) {
        self.crashed.insert(node);
        self.in_flight.retain(|envelope| envelope.to != node);
    }

    fn suspect(&mut self, tree: (&Hypercube, Resend), observer: NodeId, suspect: NodeId) {
        self.suspects[observer.index()].insert(suspect);
        self.step(tree, observer, |sta, view, out| sta.on_suspect(view, suspect, out));
    }

    /// Which nodes the detector still has to inform, and of which crash.
    fn untold(&self) -> Vec<(NodeId, NodeId)> {
        let living = NodeId::all(self.nodes.len() as u32).filter(|id| !self.crashed.contains(*id));
        let unknown = |observer: NodeId| {
            let known = &self.suspects[observer.index()];
            self.crashed.iter().filter(|&node| !known.contains(node)).map(move |it| (observer, it))
        };
        living.flat_map(unknown).collect()
    }

    /// Every live node but the origin has it exactly once, and the origin knows.
    fn is_done(&self, origin: NodeId) -> bool {
        let once = |id: NodeId| self.delivered[id.index()] == 1;
        let living = NodeId::all(self.nodes.len() as u32).filter(|id| !self.crashed.contains(*id));
        living.filter(|&id| id != origin).all(once) && !self.nodes[origin.index()].is_busy()
    }
}

/// 'n0 begins by sending to each of its clusters; n4 passes on with hops 2 and 1.' Reference: S4
/// 3.2, Figure 3(a).
#[test]
fn paper_the_tree_of_eight_nodes() {
    let cube = Hypercube::new(8);
    let nobody = NodeSet::new();
    let view = View { cube: &cube, resend: Resend::After(TIMEOUT), suspects: &nobody };
    let mut out: Effects<Msg> = Effects::new();
    Sta::new(NodeId(0), 8).broadcast(view, 7, &mut out);
    let tree = |to, hops| {
        let message = Msg::Tree { origin: NodeId(0), hops, time: 7 };
        Effect::Send { to: NodeId(to), message }
    };
    let timer = Effect::SetTimer { tag: ACKS, after: TIMEOUT };
    assert_eq!(out.drain().collect::<Vec<_>>(), [tree(1, 1), tree(2, 2), tree(4, 3), timer]);
    let mut n4 = Sta::new(NodeId(4), 8);
    assert!(n4.on_tree(view, (NodeId(0), 3, 7), &mut out));
    let ack = Effect::Send { to: NodeId(0), message: Msg::Ack(7) };
    assert_eq!(out.drain().collect::<Vec<_>>(), [ack, tree(6, 2), tree(5, 1)]);
    // 'Repeated ones are only passed on.'
    assert!(!n4.on_tree(view, (NodeId(0), 3, 7), &mut out));
    assert_eq!(out.drain().collect::<Vec<_>>(), [tree(6, 2), tree(5, 1)]);
}

/// 'Since n4 has failed the message is sent to n6 with hops = 3; n6 sends (3, 2) to n5 and (3, 1) to
/// n7.' Reference: S4 3.2, Figure 3(b).
#[test]
fn paper_the_tree_without_node_four() {
    let cube = Hypercube::new(8);
    let four = NodeSet::from_iter([NodeId(4)]);
    let view = View { cube: &cube, resend: Resend::OnSuspicion, suspects: &four };
    let mut out: Effects<Msg> = Effects::new();
    Sta::new(NodeId(0), 8).broadcast(view, 7, &mut out);
    let tree = |to, hops| {
        let message = Msg::Tree { origin: NodeId(0), hops, time: 7 };
        Effect::Send { to: NodeId(to), message }
    };
    assert_eq!(out.drain().collect::<Vec<_>>(), [tree(1, 1), tree(2, 2), tree(6, 3)]);
    Sta::new(NodeId(6), 8).on_tree(view, (NodeId(0), 3, 7), &mut out);
    assert_eq!(out.drain().skip(1).collect::<Vec<_>>(), [tree(5, 2), tree(7, 1)]);
    Sta::new(NodeId(5), 8).on_tree(view, (NodeId(0), 2, 7), &mut out);
    assert_eq!(out.drain().skip(1).collect::<Vec<_>>(), []);
}

/// 'All nodes receive a single copy.' Reference: S4 3.2.
#[test]
fn paper_without_crashes_n_minus_one_messages_reach_everybody_over_log_n_hops() {
    for nodes in (1..=33).chain([64, 100, 1000, 1024]) {
        let cube = Hypercube::new(nodes);
        let tree = (&cube, Resend::OnSuspicion);
        for origin in [0, nodes / 2, nodes - 1].map(NodeId) {
            let mut group = Group::new(nodes);
            group.broadcast(tree, origin);
            // Everything that is on its way arrives at once: a turn is a hop.
            let mut hops = 0;
            loop {
                let is_tree = |it: &Envelope<Msg>| matches!(it.message, Msg::Tree { .. });
                let trees = group.in_flight.iter().filter(|it| is_tree(it)).count();
                if trees == 0 {
                    break;
                }
                hops += 1;
                group.in_flight.sort_by_key(|it| !is_tree(it));
                for _ in 0..trees {
                    group.deliver(tree, 0);
                }
            }
            while !group.in_flight.is_empty() {
                group.deliver(tree, 0);
            }
            assert!(group.is_done(origin), "{origin} of {nodes}");
            assert_eq!(group.tree_messages, nodes - 1, "{origin} of {nodes}");
            assert!(hops <= cube.dimension(), "{hops} hops from {origin} of {nodes}");
        }
    }
}

/// 'Task 1 takes the next message from the queue.' Reference: S4, algorithm 1, line 4.
#[test]
fn paper_the_next_broadcast_waits_for_the_acknowledgements_of_the_last() {
    let cube = Hypercube::new(2);
    let nobody = NodeSet::new();
    let view = View { cube: &cube, resend: Resend::After(TIMEOUT), suspects: &nobody };
    let mut n0 = Sta::new(NodeId(0), 2);
    let mut out: Effects<Msg> = Effects::new();
    n0.broadcast(view, 1, &mut out);
    n0.broadcast(view, 2, &mut out);
    let tree = |time| {
        let message = Msg::Tree { origin: NodeId(0), hops: 1, time };
        Effect::Send { to: NodeId(1), message }
    };
    let timer = Effect::SetTimer { tag: ACKS, after: TIMEOUT };
    assert_eq!(out.drain().collect::<Vec<_>>(), [tree(1), timer.clone()]);
    n0.on_timer(view, &mut out);
    assert_eq!(out.drain().collect::<Vec<_>>(), [tree(1), timer.clone()], "once more");
    n0.on_ack(view, NodeId(1), 1, &mut out);
    assert_eq!(out.drain().collect::<Vec<_>>(), [Effect::CancelTimer(ACKS), tree(2), timer]);
}

#[test]
fn a_straggler_of_an_earlier_broadcast_is_dropped() {
    let cube = Hypercube::new(4);
    let nobody = NodeSet::new();
    let view = View { cube: &cube, resend: Resend::OnSuspicion, suspects: &nobody };
    let mut n2 = Sta::new(NodeId(2), 4);
    let mut out: Effects<Msg> = Effects::new();
    assert!(n2.on_tree(view, (NodeId(0), 2, 5), &mut out));
    out.drain();
    assert!(!n2.on_tree(view, (NodeId(0), 2, 4), &mut out));
    assert!(out.as_slice().is_empty());
}

/// Everything that can happen to a broadcast among eight nodes of which up to three crash, one after
/// the other, before or after any step. Messages arrive in the order of sending; where a crash comes
/// makes all the difference, and it comes everywhere. The detector informs the nodes at the end, the
/// origin first, in the middle or last.
#[test]
fn among_eight_nodes_everybody_delivers_once_whoever_crashes_whenever() {
    let cube = Hypercube::new(8);
    let origin = NodeId(0);
    for resend in [Resend::OnSuspicion, Resend::After(TIMEOUT)] {
        let tree = (&cube, resend);
        let mut runs = 0;
        for detector in [Notified::AtOnce, Notified::OriginFirst, Notified::OriginLast] {
            crash_everywhere(tree, Group::new(8), 3, false, detector, &mut |mut group| {
                runs += 1;
                settle(tree, origin, &mut group, detector);
                assert!(group.is_done(origin), "{resend:?} without {:?}", group.crashed);
            });
        }
        assert!(runs > 10_000, "{runs}");
    }
}

/// In which order the nodes learn of crashes.
#[derive(Clone, Copy, PartialEq)]
enum Notified {
    /// Right after a crash, all.
    AtOnce,
    /// When nothing else can happen, the origin first.
    OriginFirst,
    /// When nothing else can happen, the origin last.
    OriginLast,
}

/// Calls `end` for every way of crashing up to `crashes` more nodes between the steps to come.
fn crash_everywhere(
    tree: (&Hypercube, Resend),
    group: Group,
    crashes: u32,
    begun: bool,
    detector: Notified,
    end: &mut dyn FnMut(Group),
) {
    if crashes > 0 {
        for node in (1..8).map(NodeId).filter(|&node| !group.crashed.contains(node)) {
            let mut next = group.clone();
            next.crash(node);
            if detector == Notified::AtOnce {
                for (observer, suspect) in next.untold() {
                    next.suspect(tree, observer, suspect);
                }
            }
            crash_everywhere(tree, next, crashes - 1, begun, detector, end);
        }
    }
    let mut next = group;
    if !begun {
        next.broadcast(tree, NodeId(0));
    } else if next.in_flight.is_empty() {
        return end(next);
    } else {
        next.deliver(tree, 0);
    }
    crash_everywhere(tree, next, crashes, true, detector, end);
}

/// Lets the detector, the time-outs and the messages have their way until nothing is left.
fn settle(tree: (&Hypercube, Resend), origin: NodeId, group: &mut Group, detector: Notified) {
    let mut turns = 0;
    loop {
        while !group.in_flight.is_empty() {
            group.deliver(tree, 0);
        }
        let mut untold = group.untold();
        untold.sort_by_key(|&(observer, _)| {
            (observer == origin) == (detector != Notified::OriginFirst)
        });
        if let Some(&(observer, suspect)) = untold.first() {
            group.suspect(tree, observer, suspect);
        } else if group.timer {
            group.step(tree, origin, |sta, view, out| sta.on_timer(view, out));
        } else if group.in_flight.is_empty() {
            return;
        }
        turns += 1;
        assert!(turns < 1000, "it does not come to an end");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn everybody_delivers_once_in_large_groups_whatever_the_order(
        nodes in prop::sample::select(vec![2u32, 3, 13, 64, 200, 1024]),
        share in 0u32..10,
        by_timeout in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let cube = Hypercube::new(nodes);
        let resend = if by_timeout { Resend::After(TIMEOUT) } else { Resend::OnSuspicion };
        let tree = (&cube, resend);
        let mut state = seed | 1;
        let mut below = |limit: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % limit.max(1)
        };
        let origin = NodeId(below(nodes as usize) as u32);
        let mut doomed = BTreeSet::new();
        for _ in 0..nodes * share / 10 {
            doomed.insert(NodeId(below(nodes as usize) as u32));
        }
        doomed.remove(&origin);
        let mut doomed: Vec<NodeId> = doomed.into_iter().collect();
        let mut group = Group::new(nodes);
        for _ in 0..below(doomed.len() + 1) {
            group.crash(doomed.swap_remove(below(doomed.len())));
        }
        group.broadcast(tree, origin);
        // Crashes, suspicions, time-outs and messages in any order.
        let mut untold = group.untold();
        while !(doomed.is_empty() && untold.is_empty() && group.in_flight.is_empty()) {
            match below(20) {
                0 if !doomed.is_empty() => {
                    let node = doomed.swap_remove(below(doomed.len()));
                    group.crash(node);
                    untold.retain(|(observer, _)| *observer != node);
                    let living = NodeId::all(nodes).filter(|id| !group.crashed.contains(*id));
                    untold.extend(living.map(|observer| (observer, node)));
                }
                1..6 if !untold.is_empty() => {
                    let (observer, suspect) = untold.swap_remove(below(untold.len()));
                    group.suspect(tree, observer, suspect);
                }
                6 if group.timer && group.in_flight.len() < 4 => {
                    group.step(tree, origin, |sta, view, out| sta.on_timer(view, out));
                }
                _ if !group.in_flight.is_empty() => {
                    group.deliver(tree, below(group.in_flight.len()));
                }
                _ => {}
            }
        }
        settle(tree, origin, &mut group, Notified::OriginFirst);
        prop_assert!(group.is_done(origin));
    }
}

#[test]
fn a_message_from_nobody_or_from_outside_the_tree_is_an_anomaly_and_changes_nothing() {
    let cube = Hypercube::new(4);
    let view = View { cube: &cube, resend: Resend::OnSuspicion, suspects: &NodeSet::new() };
    for wrong in [(NodeId(4), 1, 1), (NodeId(1), 1, 1), (NodeId(0), 3, 1), (NodeId(0), u32::MAX, 1)]
    {
        let mut node = Sta::new(NodeId(1), 4);
        let mut out = Effects::<Msg>::new();
        assert!(!node.on_tree(view, wrong, &mut out), "{wrong:?}");
        assert!(matches!(out.as_slice(), [Effect::Anomaly(_)]), "{wrong:?}");
        assert_eq!(node, Sta::new(NodeId(1), 4));
    }
}

/// Each would be a call inside a call, if the next message were begun where the last one ends.
#[test]
fn a_long_queue_is_sent_at_once_when_the_last_other_node_has_crashed() {
    const MESSAGES: u64 = 200_000;
    let cube = Hypercube::new(2);
    let nobody = NodeSet::new();
    let mut node = Sta::new(NodeId(0), 2);
    let mut out = Effects::<Msg>::new();
    for time in 1..=MESSAGES {
        let view = View { cube: &cube, resend: Resend::OnSuspicion, suspects: &nobody };
        node.broadcast(view, time, &mut out);
    }
    assert!(node.is_busy());
    let crashed = NodeSet::from_iter([NodeId(1)]);
    let view = View { cube: &cube, resend: Resend::OnSuspicion, suspects: &crashed };
    node.on_suspect(view, NodeId(1), &mut out);
    assert!(!node.is_busy());
}
