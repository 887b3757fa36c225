//! Exact effects, and what is refused.

use catraca_core::{Effect, Envelope, Input};

use super::*;
use crate::testing::{from, send, step};

pub(super) const GROUP: Sharing = Sharing { nodes: 4, resources: 6 };

pub(super) fn node(id: u32, start: &Start) -> BouabdallahLaforest {
    BouabdallahLaforest::new(NodeId(id), &GROUP, start)
}

pub(super) fn claim(resources: &[u32]) -> Claim {
    Claim::of(resources.iter().copied().map(ResourceId))
}

pub(super) fn want(resources: &[u32]) -> Input<Msg> {
    Input::Request(claim(resources))
}

pub(super) fn ask(requester: u32) -> Msg {
    Msg::Request(NodeId(requester))
}

/// The control token after `fence` requests; each pair is a resource and who has it last.
pub(super) fn control(last: &[(u32, u32)], fence: u64) -> Msg {
    let last = last.iter().map(|&(resource, node)| (ResourceId(resource), NodeId(node)));
    Msg::Control(Box::new(Control { last: last.collect(), fence: Fence(fence) }))
}

pub(super) fn inquire(resources: &[u32]) -> Msg {
    Msg::Inquire(claim(resources))
}

pub(super) fn ack1(resources: &[u32]) -> Msg {
    Msg::InqAck1(claim(resources))
}

pub(super) fn ack2(resources: &[u32]) -> Msg {
    Msg::InqAck2(claim(resources))
}

/// Node 1 has asked for resources 0 to 3, and 0 was free, 1 and 2 with node 0, 3 with node 2.
pub(super) fn asking() -> BouabdallahLaforest {
    let mut n1 = node(1, &Start::idle());
    assert_eq!(step(&mut n1, &GROUP, want(&[0, 1, 2, 3])), [send(0, ask(1))]);
    let table = [(1, 0), (2, 0), (3, 2), (5, 3)];
    let asked = step(&mut n1, &GROUP, from(0, control(&table, 6)));
    assert_eq!(asked, [send(0, inquire(&[1, 2])), send(2, inquire(&[3]))]);
    n1
}

#[test]
fn a_token_that_is_still_to_come_is_promised_to_whoever_asks() {
    let mut n1 = asking();
    step(&mut n1, &GROUP, from(2, ack1(&[])));
    step(&mut n1, &GROUP, from(0, ack1(&[1, 2])));
    assert_eq!(step(&mut n1, &GROUP, from(3, inquire(&[3]))), [send(3, ack1(&[]))]);
    let entered = step(&mut n1, &GROUP, from(2, ack2(&[3])));
    assert_eq!(entered, [Effect::Granted(Fence(7))]);
    assert_eq!(step(&mut n1, &GROUP, Input::Release), [send(3, ack2(&[3]))]);
}

#[test]
fn before_its_turn_a_waiting_node_gives_the_very_token_that_it_wants() {
    let start = Start::token_at(NodeId(0)).and_inside(NodeId(1), claim(&[2]));
    let mut n1 = node(1, &start);
    step(&mut n1, &GROUP, Input::Release);
    step(&mut n1, &GROUP, want(&[2]));
    assert_eq!(step(&mut n1, &GROUP, from(0, inquire(&[2]))), [send(0, ack1(&[2]))]);
    let asked = step(&mut n1, &GROUP, from(0, control(&[(2, 0)], 1)));
    assert_eq!(asked, [send(0, inquire(&[2]))]);
}

#[test]
fn an_ack2_that_overtakes_the_ack1_does_not_let_the_node_in_yet() {
    let mut n1 = asking();
    assert_eq!(step(&mut n1, &GROUP, from(0, ack1(&[1, 2]))), []);
    assert_eq!(step(&mut n1, &GROUP, from(2, ack2(&[3]))), []);
    let entered = step(&mut n1, &GROUP, from(2, ack1(&[])));
    assert_eq!(entered, [Effect::Granted(Fence(7))]);
    assert!(n1.holds_token(), "nobody has asked for the control token");
}

#[test]
fn a_node_inside_sends_the_control_token_at_once_to_whoever_asks() {
    let mut n0 = node(0, &Start::idle());
    assert_eq!(step(&mut n0, &GROUP, want(&[1])), [Effect::Granted(Fence(1))]);
    let sent = step(&mut n0, &GROUP, from(2, ask(2)));
    assert_eq!(sent, [send(2, control(&[(1, 0)], 1))]);
    assert_eq!((n0.last, n0.next), (NodeId(2), None));
}

#[test]
fn the_last_user_enters_again_without_a_message() {
    let mut n0 = node(0, &Start::idle());
    assert_eq!(step(&mut n0, &GROUP, want(&[1, 3])), [Effect::Granted(Fence(1))]);
    assert_eq!(step(&mut n0, &GROUP, Input::Release), []);
    assert_eq!(step(&mut n0, &GROUP, want(&[0, 3])), [Effect::Granted(Fence(2))]);
}

#[test]
fn a_group_may_start_with_several_inside() {
    let start = Start::token_at(NodeId(2))
        .and_inside(NodeId(0), claim(&[0, 1]))
        .and_inside(NodeId(3), claim(&[4]));
    let mut n2 = node(2, &start);
    let asked = step(&mut n2, &GROUP, want(&[1, 2, 4]));
    assert_eq!(asked, [send(0, inquire(&[1])), send(3, inquire(&[4]))]);
    let mut n0 = node(0, &start);
    assert_eq!(step(&mut n0, &GROUP, from(2, inquire(&[1]))), [send(2, ack1(&[]))]);
    assert_eq!(step(&mut n0, &GROUP, Input::Release), [send(2, ack2(&[1]))]);
    assert!(!n0.holds_token() && n2.holds_token());
}

#[test]
fn a_group_of_one_enters_at_once() {
    let alone = Sharing { nodes: 1, resources: 2 };
    let mut node = BouabdallahLaforest::new(NodeId(0), &alone, &Start::idle());
    assert_eq!(step(&mut node, &alone, want(&[0, 1])), [Effect::Granted(Fence(1))]);
}

#[test]
fn what_cannot_come_to_an_idle_node_is_an_anomaly_and_changes_nothing() {
    let messages =
        [ask(1), ask(4), ask(u32::MAX), control(&[], 0), ack1(&[0]), ack2(&[0]), ack2(&[])];
    for message in messages {
        let mut n1 = node(1, &Start::idle());
        let effects = step(&mut n1, &GROUP, from(0, message));
        assert!(matches!(effects[..], [Effect::Anomaly(_)]));
        assert_eq!(n1, node(1, &Start::idle()));
    }
    let effects = step(&mut node(1, &Start::idle()), &GROUP, want(&[0, 6]));
    assert!(matches!(effects[..], [Effect::Anomaly(_)]));
}

#[test]
fn a_question_for_what_is_not_here_is_an_anomaly_and_still_answered() {
    let mut n1 = node(1, &Start::idle());
    let effects = step(&mut n1, &GROUP, from(0, inquire(&[0, u32::MAX])));
    assert!(matches!(effects[..2], [Effect::Anomaly(_), Effect::Anomaly(_)]));
    assert_eq!(effects[2..], [send(0, ack1(&[]))]);
}

#[test]
fn a_control_token_that_names_nobody_or_the_wrong_one_lets_nobody_in() {
    for wrong in [1, 4, u32::MAX] {
        let mut n1 = node(1, &Start::idle());
        step(&mut n1, &GROUP, want(&[0, 1]));
        let effects = step(&mut n1, &GROUP, from(0, control(&[(0, wrong)], 0)));
        assert!(matches!(effects[..], [Effect::Anomaly(_)]));
    }
}

#[test]
fn tokens_that_were_not_asked_for_are_not_taken() {
    let mut n1 = asking();
    let effects = step(&mut n1, &GROUP, from(0, ack1(&[0, 1, 5])));
    assert!(matches!(effects[..], [Effect::Anomaly(_), Effect::Anomaly(_)]));
    assert_eq!(n1.present, BTreeSet::from([ResourceId(0), ResourceId(1)]));
    assert_eq!(n1.missing, 2);
}

#[test]
fn the_invariant_wants_every_token_once() {
    let start = Start::token_at(NodeId(2)).and_inside(NodeId(0), claim(&[0, 1]));
    let mut nodes: Vec<BouabdallahLaforest> = NodeId::all(4).map(|id| node(id.0, &start)).collect();
    let check = |nodes: &[BouabdallahLaforest], in_flight: &[Envelope<Msg>]| {
        BouabdallahLaforest::invariant(&Snapshot { config: &GROUP, nodes, in_flight })
    };
    assert_eq!(check(&nodes, &[]), Ok(()));
    nodes[0].present.remove(&ResourceId(1));
    assert!(check(&nodes, &[]).is_err(), "token 1 is lost");
    let given = Envelope { from: NodeId(0), to: NodeId(3), message: ack2(&[1]) };
    assert_eq!(check(&nodes, core::slice::from_ref(&given)), Ok(()));
    nodes[3].present.insert(ResourceId(1));
    assert!(check(&nodes, &[given]).is_err(), "token 1 is there twice");
    nodes[2].control = None;
    assert!(check(&nodes, &[]).is_err(), "the control token is lost");
}
