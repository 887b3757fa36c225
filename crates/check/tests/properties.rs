//! Every property can be broken, and is reported when it is.
#![allow(clippy::panic, reason = "a test may fail loudly")]

mod toy;

use catraca_check::{Network, Verdict, Violation};
use catraca_core::{Input, property};
use catraca_trace::{Event, Outcome};
use toy::{Quirk, check_toys};

/// The violation that `quirk` causes on an orderly network.
fn violation(quirk: Quirk) -> Violation {
    match check_toys(quirk, Network::Fifo).verdict {
        Verdict::Violated(violation) => *violation,
        other => panic!("{quirk:?}: {other:?}"),
    }
}

fn assert_broken(quirk: Quirk, property: &str, what: &str, steps: usize) {
    let found = violation(quirk);
    assert_eq!((found.property, found.what.as_str()), (property, what), "{quirk:?}");
    assert_eq!(found.trace.events.len(), steps, "{quirk:?}: {:#?}", found.trace.events);
    assert_eq!(found.trace.header.violation, Some(format!("{property}: {what}")));
}

#[test]
fn the_toy_itself_holds_on_both_networks() {
    for network in [Network::Fifo, Network::Any] {
        assert_eq!(check_toys(Quirk::None, network).verdict, Verdict::Holds);
    }
}

#[test]
fn a_forgotten_request_is_a_deadlock_once_everything_has_come_to_rest() {
    // Node 0 enters twice, and node 1 asks during one of the two.
    let what = "node 1 is waiting and nothing can happen any more";
    assert_broken(Quirk::Forgets, property::NOBODY_WAITS_FOR_EVER, what, 6);
}

#[test]
fn a_fence_that_does_not_increase_is_found() {
    let what = "fence 1 comes after fence 1";
    assert_broken(Quirk::RepeatsFences, property::FENCES_INCREASE, what, 5);
}

#[test]
fn a_second_token_is_found_while_it_is_still_on_its_way() {
    let what = "there are 2 tokens: 1 at nodes, 1 in messages";
    assert_broken(Quirk::CopiesToken, property::ONE_TOKEN, what, 2);
}

#[test]
fn everything_that_cannot_happen_is_an_anomaly() {
    let anomaly = property::NO_ANOMALY;
    assert_broken(Quirk::Complains, anomaly, "node 0: somebody asks", 2);
    assert_broken(Quirk::AsksItself, anomaly, "node 1 sends a message to itself", 1);
    let what = "node 1 sends a message to node 2, which does not exist";
    assert_broken(Quirk::AsksNobody, anomaly, what, 1);
    assert_broken(Quirk::EntersUnasked, anomaly, "node 0 is let in without waiting", 1);
}

#[test]
fn the_invariant_of_the_algorithm_is_evaluated() {
    assert_broken(Quirk::FalseInvariant, property::INVARIANT, "something is on its way", 1);
}

#[test]
fn what_happens_at_the_start_is_step_zero_of_the_trace() {
    let events = violation(Quirk::EntersUnasked).trace.events;
    let [Event::Step(step)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((step.at, &step.input), (0, &Input::Start));
    assert!(matches!(step.outcomes[..], [Outcome::Granted(_)]));
}

#[test]
fn messages_overtake_each_other_only_where_they_may() {
    assert_eq!(check_toys(Quirk::NeedsOrder, Network::Fifo).verdict, Verdict::Holds);
    let Verdict::Violated(found) = check_toys(Quirk::NeedsOrder, Network::Any).verdict else {
        panic!("the token never came first");
    };
    assert_eq!(found.what, "node 1: the token came unannounced");
}

#[test]
fn a_timer_fires_once_for_all_its_settings_and_not_after_it_was_cancelled() {
    let report = check_toys(Quirk::AsksByTimer, Network::Any);
    // A timer that fired too often would ask twice, and bring the token to a node that did not.
    assert_eq!(report.verdict, Verdict::Holds);
    assert!(report.states > check_toys(Quirk::None, Network::Any).states);
}
