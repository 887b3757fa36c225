//! What S0 says of the algorithm.

use catraca_core::{Effect, Input};

use super::tests::{GROUP, ack1, ack2, ask, asking, control, inquire, node, want};
use super::*;
use crate::testing::{from, send, step};

/// 'Parent, the node that has (or will have) the control token and therefore the node to which
/// to send the request.' Reference: S0 2.1.
#[test]
fn paper_a_request_for_the_control_token_goes_to_the_parent_and_turns_the_pointers_round() {
    let mut n1 = node(1, &Start::idle());
    assert_eq!(step(&mut n1, &GROUP, from(3, ask(3))), [send(0, ask(3))]);
    assert_eq!(n1.last, NodeId(3));
    assert_eq!(step(&mut n1, &GROUP, want(&[4])), [send(3, ask(1))]);
    assert_eq!(n1.last, NodeId(1));
    assert_eq!(step(&mut n1, &GROUP, from(2, ask(2))), []);
    assert_eq!((n1.last, n1.next), (NodeId(2), Some(NodeId(2))));
}

/// 'In the first case the node has all the tokens that it needs. It locks them, sends the
/// control token to its next and enters the critical section.' Reference: S0 2.1.
#[test]
fn paper_with_all_tokens_the_control_token_goes_on_and_the_node_enters() {
    let mut n1 = node(1, &Start::idle());
    step(&mut n1, &GROUP, want(&[0, 2]));
    step(&mut n1, &GROUP, from(2, ask(2)));
    let entered = step(&mut n1, &GROUP, from(0, control(&[(1, 0)], 6)));
    let passed = control(&[(0, 1), (1, 0), (2, 1)], 7);
    assert_eq!(entered, [send(2, passed), Effect::Granted(Fence(7))]);
    assert_eq!(n1.present, BTreeSet::from([ResourceId(0), ResourceId(2)]));
}

/// 'Otherwise it sends INQUIRE to the nodes that have the tokens that it needs, by list B,
/// updates the list and waits for INQ_ACK1 from these nodes.' Reference: S0 2.1.
#[test]
fn paper_each_holder_of_missing_tokens_is_asked_once_and_the_control_token_waits() {
    let mut n1 = asking();
    assert_eq!(step(&mut n1, &GROUP, from(3, ask(3))), []);
    assert_eq!(step(&mut n1, &GROUP, from(2, ack1(&[3]))), []);
    let entered = step(&mut n1, &GROUP, from(0, ack1(&[1, 2])));
    let passed = control(&[(0, 1), (1, 1), (2, 1), (3, 1), (5, 3)], 7);
    assert_eq!(entered, [send(3, passed), Effect::Granted(Fence(7))]);
}

/// 'If it has all the tokens now it enters; otherwise it waits for INQ_ACK2 until it has
/// received all of them.' Reference: S0 2.1.
#[test]
fn paper_after_the_last_ack1_the_control_token_goes_and_the_node_waits_for_ack2() {
    let mut n1 = asking();
    step(&mut n1, &GROUP, from(3, ask(3)));
    step(&mut n1, &GROUP, from(2, ack1(&[])));
    let passed = step(&mut n1, &GROUP, from(0, ack1(&[2])));
    let table = [(0, 1), (1, 1), (2, 1), (3, 1), (5, 3)];
    assert_eq!(passed, [send(3, control(&table, 7))]);
    assert_eq!(step(&mut n1, &GROUP, from(2, ack2(&[3]))), []);
    let entered = step(&mut n1, &GROUP, from(0, ack2(&[1])));
    assert_eq!(entered, [Effect::Granted(Fence(7))]);
}

/// 'It answers with INQ_ACK1 and the tokens asked for that are available. The others are stored
/// in (i, Q); when s leaves they are sent in an INQ_ACK2.' Reference: S0 2.1.
#[test]
fn paper_tokens_in_use_follow_when_the_node_leaves_in_one_message_per_asking_node() {
    let mut n0 = node(0, &Start::idle());
    step(&mut n0, &GROUP, want(&[4, 5]));
    step(&mut n0, &GROUP, Input::Release);
    let entered = step(&mut n0, &GROUP, want(&[0, 1, 2]));
    assert_eq!(entered, [Effect::Granted(Fence(2))]);
    assert_eq!(step(&mut n0, &GROUP, from(1, inquire(&[0, 2, 4]))), [send(1, ack1(&[4]))]);
    assert_eq!(step(&mut n0, &GROUP, from(3, inquire(&[1]))), [send(3, ack1(&[]))]);
    let left = step(&mut n0, &GROUP, Input::Release);
    assert_eq!(left, [send(1, ack2(&[0, 2])), send(3, ack2(&[1]))]);
    assert_eq!(n0.present, BTreeSet::from([ResourceId(5)]));
}
