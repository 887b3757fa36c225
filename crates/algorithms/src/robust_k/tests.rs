use alloc::vec::Vec;

use catraca_core::{Effect, Fence, Input};

use super::*;
use crate::testing::{from, request, send, step};

fn group(nodes: u32, k: u32) -> Config {
    Config { k, cube: Hypercube::new(nodes), detector: None, resend: Resend::OnSuspicion }
}

fn node(id: u32, config: &Config) -> RobustK {
    RobustK::new(NodeId(id), config, &Start::idle())
}

fn tree(origin: u32, hops: u32, time: u64) -> Msg {
    Msg::Tree { origin: NodeId(origin), hops, time }
}

/// 'A message marked with the local clock is sent to the others by the spanning tree'; 'with the
/// least number of permissions it gets the resource.' Reference: S4, section 4, lines 7 to 13.
#[test]
fn paper_a_requester_asks_over_the_tree_and_enters_with_enough_answers() {
    let config = group(4, 2);
    let mut n0 = node(0, &config);
    let asked = step(&mut n0, &config, request());
    assert_eq!(asked, [send(1, tree(0, 1, 1)), send(2, tree(0, 2, 1))]);
    assert_eq!(step(&mut n0, &config, from(3, Msg::Reply(1))), []);
    assert_eq!(step(&mut n0, &config, from(1, Msg::Reply(1))), [Effect::Granted(Fence(4))]);
    assert_eq!(step(&mut n0, &config, from(2, Msg::Reply(1))), []);
}

/// Reference: S4, algorithm 1, lines 13 to 19, and algorithm 2, lines 19 to 24.
#[test]
fn paper_a_request_is_acknowledged_passed_on_and_answered_in_one_step() {
    let config = group(4, 1);
    let mut n2 = node(2, &config);
    let did = step(&mut n2, &config, from(0, tree(0, 2, 5)));
    assert_eq!(did, [send(0, Msg::Ack(5)), send(3, tree(0, 1, 5)), send(0, Msg::Reply(1))]);
    // A copy is passed on and no more.
    let did = step(&mut n2, &config, from(0, tree(0, 2, 5)));
    assert_eq!(did, [send(3, tree(0, 1, 5))]);
}

/// Reference: S4, algorithm 2, lines 14 to 18.
#[test]
fn paper_a_leaving_node_answers_the_deferred_requests_of_the_living() {
    let config = group(4, 1);
    let mut n0 = RobustK::new(NodeId(0), &config, &Start::inside(NodeId(0)));
    for origin in [1, 2, 3] {
        let did = step(&mut n0, &config, from(origin, tree(origin, 1, 1)));
        assert_eq!(did, [send(origin, Msg::Ack(1))]);
    }
    step(&mut n0, &config, Input::Suspect(NodeId(2)));
    let left = step(&mut n0, &config, Input::Release);
    assert_eq!(left, [send(1, Msg::Reply(1)), send(3, Msg::Reply(1))]);
}

/// 'If it has the permission already, perm_count is decremented so as not to interfere with line
/// 12.' Reference: S4, section 4, lines 29 and 30.
#[test]
fn paper_the_answer_of_a_crashed_node_is_taken_back() {
    let config = group(4, 1);
    let mut n0 = node(0, &config);
    step(&mut n0, &config, request());
    step(&mut n0, &config, from(1, Msg::Reply(1)));
    // Node 1 crashes: of the two that are left both have to answer.
    assert_eq!(step(&mut n0, &config, Input::Suspect(NodeId(1))), []);
    assert_eq!(step(&mut n0, &config, from(2, Msg::Reply(1))), []);
    assert_eq!(step(&mut n0, &config, from(3, Msg::Reply(1))), [Effect::Granted(Fence(4))]);
}

/// 'The number of faulty processes is deducted from the answers expected.' Reference: S4, section 4,
/// line 12.
#[test]
fn paper_a_suspicion_lets_a_waiting_node_in() {
    let config = group(2, 1);
    let mut n0 = node(0, &config);
    step(&mut n0, &config, request());
    let did = step(&mut n0, &config, Input::Suspect(NodeId(1)));
    assert_eq!(did, [Effect::Granted(Fence(2))]);
    assert_eq!(step(&mut n0, &config, Input::Suspect(NodeId(1))), [], "that is no news");
    // What the suspect says or asks makes no difference any more.
    assert_eq!(step(&mut n0, &config, from(1, Msg::Reply(1))), []);
    let did = step(&mut n0, &config, from(1, tree(1, 1, 9)));
    assert_eq!(did, [send(1, Msg::Ack(9))]);
}

/// Erratum 1 of S4's algorithm 2: the clock keeps what line 8 computes.
#[test]
fn the_second_request_of_a_lone_requester_is_a_new_one() {
    let config = group(2, 2);
    let mut n0 = node(0, &config);
    for (time, fence) in [(1, 2), (2, 4)] {
        let asked = step(&mut n0, &config, request());
        assert_eq!(asked, [send(1, tree(0, 1, time)), Effect::Granted(Fence(fence))]);
        step(&mut n0, &config, from(1, Msg::Ack(time)));
        step(&mut n0, &config, Input::Release);
    }
}

#[test]
fn what_went_to_a_crashed_node_goes_to_the_next_of_its_cluster() {
    let config = group(8, 1);
    let mut n0 = node(0, &config);
    step(&mut n0, &config, request());
    assert_eq!(step(&mut n0, &config, Input::Suspect(NodeId(6))), [], "nothing went to it");
    let did = step(&mut n0, &config, Input::Suspect(NodeId(4)));
    assert_eq!(did, [send(7, tree(0, 3, 1))]);
    // The same for what is passed on.
    let mut n4 = node(4, &config);
    step(&mut n4, &config, from(0, tree(0, 3, 1)));
    let did = step(&mut n4, &config, Input::Suspect(NodeId(6)));
    assert_eq!(did, [send(7, tree(0, 2, 1))]);
}

/// Figure 4: the three parts side by side, one message type.
#[test]
fn the_detector_inside_does_what_the_drivers_does() {
    let second = Duration::from_secs(1);
    let detector =
        hi_adsd::Config { interval: second, timeout: second / 10, news: hi_adsd::News::Rounds };
    let config = Config { detector: Some(detector), ..group(2, 1) };
    let mut n0 = node(0, &config);
    let started = step(&mut n0, &config, Input::Start);
    let timer = |tag, after| Effect::SetTimer { tag: TimerTag(tag), after };
    assert_eq!(started, [send(1, Msg::AreYouAlive), timer(1, second / 10), timer(0, second)]);
    step(&mut n0, &config, request());
    let silence = step(&mut n0, &config, Input::Timer(TimerTag(1)));
    assert_eq!(silence, [Effect::Granted(Fence(2))]);
    assert_eq!(
        n0.suspects().map(|suspects| suspects.iter().collect()),
        Some(Vec::from([NodeId(1)]))
    );
}

#[test]
fn a_group_of_one_enters_at_once() {
    let config = group(1, 1);
    let mut alone = node(0, &config);
    assert_eq!(step(&mut alone, &config, request()), [Effect::Granted(Fence(1))]);
}
