//! What goes wrong, and what one sees of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod watch;

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, Fence, Input, Message, NodeId, Start, property,
};
use catraca_sim::{End, Report, Scenario};
use serde::{Deserialize, Serialize};

use watch::{Watched, at, correct, figures, scheduled, units, watch, watch_algorithm, with_all};

fn with_fault(scenario: Scenario, fault: &str) -> Scenario {
    scenario.with("faults.events", fault)
}

/// Who waits for ever, as the report says it.
fn waits_for_ever(report: &Report) -> &str {
    let violation = report.violation.as_ref().expect("somebody waits for ever");
    assert_eq!(violation.invariant, property::NOBODY_WAITS_FOR_EVER);
    violation.what.rsplit_once(": ").unwrap().1
}

#[test]
fn a_waiting_node_that_crashes_is_granted_in_vain_and_those_behind_it_wait() {
    let queue = scheduled("coordinator", 4, &["1 at 0", "2 at 1", "3 at 2"]);
    let queue = with_fault(queue.with("workload.hold", 10), "crash 2 at 5");
    let watched = watch(&queue);
    assert_eq!(watched.entries(), [at("2", 1)]);
    assert_eq!(waits_for_ever(&watched.report), "3");
    assert_eq!(watched.lost(), 1, "the grant to node 2");
    assert_eq!(watched.report.waiting, 1, "a crashed node does not wait");
}

#[test]
fn a_crashed_requester_that_nobody_is_behind_harms_nobody() {
    let queue = scheduled("coordinator", 4, &["1 at 0", "2 at 1"]);
    let report = correct(&with_fault(queue.with("workload.hold", 10), "crash 2 at 5"));
    assert_eq!((report.end, report.entries, report.waiting), (End::Quiet, 1, 0));
}

#[test]
fn an_idle_node_that_crashes_is_missed_only_where_everybody_has_to_agree() {
    let requests = ["1 at 1", "2 at 1", "1 at 20"];
    let crash = |algorithm| with_fault(scheduled(algorithm, 4, &requests), "crash 3 at 0.5");
    assert_eq!(correct(&crash("coordinator")).entries, 3);
    assert_eq!(correct(&crash("raymond")).entries, 3);
    let report = figures(&crash("ricart-agrawala"));
    assert_eq!((report.entries, waits_for_ever(&report)), (0, "1, 2"));
}

#[test]
fn a_holder_that_crashes_lets_nobody_in_after_it() {
    let queue = scheduled("coordinator", 3, &["1 at 0", "2 at 1"]);
    let report = figures(&with_fault(queue.with("workload.hold", 10), "crash 1 at 5"));
    assert_eq!((report.entries, waits_for_ever(&report)), (1, "2"));
}

#[test]
fn without_the_coordinator_everybody_waits_for_ever() {
    let queue = Scenario::new().with("algorithm", "coordinator").with("nodes", 5);
    let queue = queue.with("workload.think", 10).with("run.entries", 100);
    let report = figures(&with_fault(queue, "crash 0 at 35"));
    assert_eq!(report.end, End::Violation);
    assert_eq!(waits_for_ever(&report), "1, 2, 3, 4");
    assert!(report.entries > 4);
}

#[test]
fn a_crash_takes_the_token_away_and_no_second_one_appears() {
    let requests = ["1 at 2", "2 at 3"];
    for algorithm in ["suzuki-kasami", "singhal", "raymond"] {
        let report = figures(&with_fault(scheduled(algorithm, 3, &requests), "crash 0 at 1"));
        assert_eq!((report.entries, waits_for_ever(&report)), (0, "1, 2"), "{algorithm}");
    }
}

#[test]
fn a_token_on_its_way_to_a_crashed_node_is_lost() {
    // The request arrives at 1, the token would arrive at 2.
    let crash = with_fault(scheduled("suzuki-kasami", 2, &["1 at 0", "0 at 3"]), "crash 1 at 1.5");
    let watched = watch(&crash);
    assert_eq!(watched.lost(), 2, "the token, and the request that asks for it back");
    assert_eq!(waits_for_ever(&watched.report), "0");
}

#[test]
fn a_partition_loses_what_is_sent_across_it_and_nothing_else() {
    // Node 1 is answered before the partition; the token for node 3 is sent into it.
    let chain = scheduled("raymond", 4, &["1 at 0", "3 at 5", "0 at 20"]).with("tree", "chain");
    let parted = with_fault(chain.with("workload.hold", 3), "partition 0,1|2,3 from 6.5 to 9");
    let watched = watch(&parted);
    assert_eq!(watched.entries(), [at("2", 1)]);
    assert_eq!(watched.lost(), 1, "the token");
    // There is no token any more, which a partition excuses; what remains is that they wait.
    assert_eq!(waits_for_ever(&watched.report), "0, 3");
}

#[test]
fn after_a_partition_messages_cross_again() {
    let late = scheduled("coordinator", 4, &["3 at 10"]);
    let watched = watch(&with_fault(late, "partition 0,1|2,3 from 5 to 10"));
    assert_eq!((watched.entries(), watched.lost()), (vec![at("12", 3)], 0));
}

#[test]
fn a_hold_delays_and_loses_nothing() {
    let held = scheduled("coordinator", 3, &["1 at 0", "2 at 3"]);
    let watched = watch(&with_fault(held, "hold 1->0 from 0 to 10"));
    assert_eq!(watched.entries(), [at("5", 2), at("12", 1)]);
    assert_eq!((watched.lost(), watched.report.violation), (0, None));
}

#[test]
fn held_messages_keep_their_order_where_channels_are_fifo() {
    for delay in ["1", "uniform:0.1..2"] {
        let rounds = Scenario::new().with("algorithm", "lamport").with("nodes", 4);
        let rounds = rounds.with("workload.rounds", 5).with("network.delay", delay);
        let holds = ["hold 0->1 from 1 to 9", "hold 2->3 from 0 to 30", "hold 0->1 from 8 to 15"];
        let report = correct(&with_all(rounds, "faults.events", &holds));
        assert_eq!((report.entries, report.waiting), (20, 0));
    }
}

#[test]
fn the_serial_workload_goes_on_without_those_who_crash() {
    let serial = Scenario::new().with("algorithm", "coordinator").with("nodes", 3);
    let serial = serial.with("workload.arrivals", "serial").with("run.entries", 50);
    // Node 1 is in the middle of something when it crashes, whatever is drawn: it starts inside.
    let crash =
        with_fault(serial.with("start", "inside:1").with("workload.hold", 9), "crash 1 at 3");
    let watched = watch(&crash);
    assert_eq!(watched.requests()[0].0, units("8"), "a pause after the crash");
    assert!(watched.requests().iter().all(|(_, node)| *node != NodeId(1)));
}

/// Enters once node 0 is suspected, not before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Successor {
    waits: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Never {}

impl Message for Never {
    const KINDS: &'static [&'static str] = &[];
    fn kind(&self) -> usize {
        match *self {}
    }
    fn is_possible(&self, _bounds: Bounds) -> bool {
        match *self {}
    }
}

impl Algorithm for Successor {
    type Message = Never;
    type Config = ();

    fn new(_me: NodeId, _config: &(), _start: &Start) -> Self {
        Successor { waits: false }
    }

    fn on_request(&mut self, _config: &(), _claim: Claim, _out: &mut Effects<Never>) {
        self.waits = true;
    }

    fn on_release(&mut self, _config: &(), _out: &mut Effects<Never>) {}

    fn on_message(&mut self, _: &(), _from: NodeId, message: Never, _: &mut Effects<Never>) {
        match message {}
    }

    fn on_suspect(&mut self, _config: &(), node: NodeId, out: &mut Effects<Never>) {
        if node == NodeId(0) && self.waits {
            out.granted(Fence(1));
        }
    }
}

fn suspicions(watched: &Watched) -> Vec<(catraca_sim::Time, NodeId)> {
    watched.inputs(|input| matches!(input, Input::Suspect(NodeId(0))))
}

#[test]
fn the_detector_tells_everybody_who_is_alive_after_its_delay() {
    let waits = scheduled("coordinator", 4, &["2 at 1"]).with("faults.detector", 2.5);
    let crashes = with_all(waits, "faults.events", &["crash 0 at 5", "crash 3 at 6"]);
    let watched = watch_algorithm::<Successor>(&crashes, ());
    assert_eq!(suspicions(&watched), [at("7.5", 1), at("7.5", 2)]);
    assert_eq!(watched.entries(), [at("7.5", 2)]);
    assert_eq!(watched.report.response_mean, Some(6.5));
    let of_3 = watched.inputs(|input| matches!(input, Input::Suspect(NodeId(3))));
    assert_eq!(of_3, [at("8.5", 1), at("8.5", 2)]);
}

#[test]
fn without_a_detector_nobody_suspects_anybody() {
    let waits = with_fault(scheduled("coordinator", 3, &["2 at 1"]), "crash 0 at 5");
    let watched = watch_algorithm::<Successor>(&waits, ());
    assert_eq!(suspicions(&watched), []);
    assert_eq!(waits_for_ever(&watched.report), "2");
}
