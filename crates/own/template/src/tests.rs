//! What the algorithm promises: the exact effects of its handlers, every interleaving of small groups,
//! runs that end.

use catraca_core::{Algorithm, Claim, Effect, Effects, Fence, Input, NodeId, Start};
use catraca_own::testing::{check, simulate};
use catraca_own::{Caught, End, OwnAlgorithm, Verdict};

use crate::algorithm::{Config, Msg, Node};

const RING: Config = Config { nodes: 3 };

/// What `node` asks its driver to do.
fn step(node: &mut Node, input: Input<Msg>) -> Vec<Effect<Msg>> {
    let mut out = Effects::new();
    node.step(&RING, input, &mut out);
    out.drain().collect()
}

fn token(entries: u64) -> Msg {
    Msg::Token { entries }
}

fn from(node: u32, message: Msg) -> Input<Msg> {
    Input::Message { from: NodeId(node), message }
}

#[test]
fn who_has_not_asked_passes_the_token_on() {
    let mut node = Node::new(NodeId(2), &RING, &Start::idle());
    let passed = step(&mut node, from(1, token(7)));
    assert_eq!(passed, [Effect::Send { to: NodeId(0), message: token(7) }]);
    assert!(!node.holds_token());
}

#[test]
fn who_has_asked_enters_and_passes_the_token_on_when_leaving() {
    let mut node = Node::new(NodeId(1), &RING, &Start::idle());
    assert_eq!(step(&mut node, Input::Request(Claim::single())), []);
    assert_eq!(step(&mut node, from(0, token(7))), [Effect::Granted(Fence(8))]);
    assert!(node.holds_token());
    let left = step(&mut node, Input::Release);
    assert_eq!(left, [Effect::Send { to: NodeId(2), message: token(8) }]);
}

#[test]
fn the_token_starts_at_once_unless_its_node_is_inside() {
    let started = |start| step(&mut Node::new(NodeId(0), &RING, &start), Input::Start);
    assert_eq!(started(Start::idle()), [Effect::Send { to: NodeId(1), message: token(0) }]);
    assert_eq!(started(Start::token_at(NodeId(1))), []);
    assert_eq!(started(Start::inside(NodeId(0))), []);
}

#[test]
fn a_second_token_is_an_anomaly() {
    let mut node = Node::new(NodeId(0), &RING, &Start::inside(NodeId(0)));
    assert_eq!(step(&mut node, from(2, token(3))), [Effect::Anomaly("a second token has come")]);
}

#[test]
fn every_interleaving_of_small_rings_is_correct() {
    for (nodes, states) in [(1, 5), (2, 70), (3, 525)] {
        let report = check::<Node>(nodes, 2, Start::idle(), None);
        assert_eq!((report.verdict, report.states), (Verdict::Holds, states), "{nodes} nodes");
    }
    let inside = check::<Node>(3, 2, Start::inside(NodeId(1)), None);
    assert_eq!(inside.verdict, Verdict::Holds);
}

#[test]
fn every_mutant_is_caught_in_the_group_that_it_names() {
    for mutant in Node::mutations().iter().map(|mutation| mutation.listed()) {
        let Caught::Checked { nodes, requests, property } = mutant.caught else { continue };
        let report = check::<Node>(nodes, requests, Start::idle(), Some(mutant.name));
        match report.verdict {
            Verdict::Violated(found) => assert_eq!(found.property, property, "{}", mutant.name),
            other => unreachable!("{} is not caught: {other:?}", mutant.name),
        }
    }
}

/// Reference: Le Lann 1977: the token comes to everybody in turn. If all ask all the time, each message
/// brings an entry.
#[test]
fn under_high_load_an_entry_costs_one_message() {
    let report = simulate::<Node>(&[("nodes", "8"), ("run.entries", "800")]);
    assert_eq!((report.end, report.violation), (End::Entries, None));
    assert_eq!(report.messages_per_entry, Some(1.0));
    assert_eq!(report.delay, Some(1.0));
}

/// The token goes on for ever, and the run ends all the same.
#[test]
fn a_run_ends_when_everybody_has_been_served() {
    let report = simulate::<Node>(&[("nodes", "5"), ("workload.rounds", "2")]);
    assert_eq!((report.end, report.entries, report.waiting), (End::Served, 10, 0));
}
