//! Runs that go on for ever while somebody waits are found, and only those in which nothing that has
//! to happen is neglected.
#![allow(clippy::panic, reason = "a test may fail loudly")]

#[path = "toy/ring.rs"]
mod ring;

use catraca_check::{Network, Report, Verdict, Violation};
use catraca_core::{Input, NodeId, property};
use catraca_trace::{Event, Step};
use ring::{Ring, check_ring};

const BOTH: [Network; 2] = [Network::Fifo, Network::Any];

fn violation(ring: Ring, network: Network) -> Violation {
    match check_ring(ring, network, 2).verdict {
        Verdict::Violated(violation) => *violation,
        other => panic!("{ring:?} {network}: {other:?}"),
    }
}

/// The steps that repeat.
fn repeated(found: &Violation) -> Vec<&Step> {
    let Some(cycle) = &found.cycle else { panic!("{found:?}") };
    let steps = found.trace.events.iter().filter_map(|event| match event {
        Event::Step(step) => Some(step),
        _ => None,
    });
    steps.filter(|step| cycle.contains(&step.at)).collect()
}

#[test]
fn a_token_that_goes_round_for_ever_is_no_fault_while_everybody_takes_it() {
    for network in BOTH {
        for (chatters, by_timer) in [(false, false), (true, false), (false, true), (true, true)] {
            let ring = Ring { chatters, by_timer, ..Ring::default() };
            assert_eq!(check_ring(ring, network, 2).verdict, Verdict::Holds, "{ring:?}");
        }
    }
}

#[test]
fn a_node_that_never_takes_the_token_waits_while_the_token_goes_round() {
    for network in BOTH {
        let found = violation(Ring { node_1_never_takes_it: true, ..Ring::default() }, network);
        assert_eq!(found.property, property::NOBODY_WAITS_FOR_EVER);
        // Its request is the first step; then the token goes round.
        assert_eq!(found.what, "node 1 is waiting while steps 2 to 4 repeat");
        assert_eq!(found.trace.events.last().map(Event::at), Some(4));
        let mut receivers: Vec<NodeId> = repeated(&found).iter().map(|step| step.node).collect();
        receivers.sort_unstable();
        assert_eq!(receivers, [0, 1, 2].map(NodeId));
    }
}

#[test]
fn a_cycle_delivers_whatever_is_on_its_way_and_fires_the_timers() {
    let everything = Ring { node_1_never_takes_it: true, chatters: true, by_timer: true };
    for network in BOTH {
        let found = violation(everything, network);
        assert_eq!(found.property, property::NOBODY_WAITS_FOR_EVER);
        let steps = repeated(&found);
        let fires = |step: &&&Step| matches!(step.input, Input::Timer(_));
        let brings = |step: &&Step, kind: &str| match &step.input {
            Input::Message { message, .. } => message.kind == kind,
            _ => false,
        };
        assert!(steps.iter().filter(fires).count() >= 3, "{steps:?}");
        assert!(steps.iter().any(|step| brings(step, "chat")), "{steps:?}");
        assert!(steps.iter().any(|step| brings(step, "token")), "{steps:?}");
    }
}

#[test]
fn a_cycle_does_not_depend_on_the_number_of_threads() {
    let ring = Ring { node_1_never_takes_it: true, chatters: true, by_timer: true };
    let report =
        |threads| Report { elapsed: Default::default(), ..check_ring(ring, Network::Any, threads) };
    assert_eq!(report(1), report(2));
    assert_eq!(report(1), report(5));
}
