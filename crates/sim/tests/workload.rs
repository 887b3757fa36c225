//! Who asks when: exact times and exact counts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod watch;

use std::collections::{BTreeMap, BTreeSet};

use catraca_core::NodeId;
use catraca_sim::{End, Scenario, Time};
use catraca_trace::Event;

use watch::{Watched, at, correct, scheduled, units, watch};

fn group(algorithm: &str, nodes: u32) -> Scenario {
    Scenario::new().with("algorithm", algorithm).with("nodes", nodes)
}

/// The most requests that were outstanding at one time, from asking to leaving.
fn most_outstanding(watched: &Watched, at_start: i32) -> i32 {
    let asked = watched.requests().into_iter().map(|(at, _)| (at, 1));
    let left = watched.releases().into_iter().map(|(at, _)| (at, -1));
    let mut changes: Vec<(Time, i32)> = asked.chain(left).collect();
    changes.sort();
    let outstanding = changes.iter().scan(at_start, |now, (_, change)| {
        *now += change;
        Some(*now)
    });
    outstanding.max().unwrap()
}

#[test]
fn a_closed_workload_lets_every_node_in_as_often_as_it_says() {
    for inside in [None, Some(2)] {
        let mut rounds =
            group("maekawa", 7).with("workload.rounds", 5).with("workload.think", "exp:1");
        if let Some(inside) = inside {
            rounds = rounds.with("start", format!("inside:{inside}"));
        }
        let watched = watch(&rounds);
        assert_eq!((watched.report.end, watched.report.entries), (End::Quiet, 35));
        assert_eq!(watched.report.fairness, Some(1.0));
        let mut by_node = BTreeMap::new();
        for (_, node) in watched.entries() {
            *by_node.entry(node).or_insert(0) += 1;
        }
        assert!(by_node.values().all(|&count| count == 5), "{by_node:?}");
    }
}

#[test]
fn in_a_closed_workload_all_ask_at_once_and_again_after_thinking() {
    let closed = group("coordinator", 3).with("workload.think", 4).with("workload.rounds", 2);
    let watched = watch(&closed.with("network.delay", 0).with("workload.hold", 10));
    let first = [at("4", 0), at("4", 1), at("4", 2)];
    let second = [at("18", 0), at("28", 1), at("38", 2)];
    assert_eq!(watched.requests(), [first, second].concat());
}

#[test]
fn whoever_starts_inside_asks_first_after_leaving_and_thinking() {
    let closed = group("coordinator", 3).with("workload.think", 4).with("workload.rounds", 1);
    let closed = closed.with("network.delay", 0).with("start", "inside:1");
    for (hold, asks) in [("0", ["4", "4", "4"]), ("10", ["4", "4", "14"])] {
        let watched = watch(&closed.clone().with("workload.hold", hold));
        let mut requests = watched.requests();
        requests.sort_by_key(|(_, node)| (*node == NodeId(1), *node));
        assert_eq!(requests, [at(asks[0], 0), at(asks[1], 2), at(asks[2], 1)]);
    }
}

#[test]
fn a_serial_workload_never_has_two_requests_outstanding() {
    let serial = group("ricart-agrawala", 6).with("workload.arrivals", "serial");
    let serial = serial.with("workload.pause", "exp:0.5").with("run.entries", 300);
    assert_eq!(most_outstanding(&watch(&serial), 0), 1);
    let inside = watch(&serial.with("start", "inside:3").with("workload.hold", 7));
    assert_eq!(most_outstanding(&inside, 1), 1);
    assert_eq!(inside.releases()[0], at("7", 3));
}

#[test]
fn a_serial_workload_asks_a_pause_after_the_last_has_left() {
    let serial = group("coordinator", 4).with("workload.arrivals", "serial");
    let watched = watch(&serial.with("workload.pause", 3).with("run.entries", 20));
    let requests = watched.requests();
    assert_eq!(requests[0].0, units("3"));
    for (left, asked) in watched.releases().iter().zip(&requests[1..]) {
        assert_eq!(asked.0, left.0 + units("3"));
    }
    let nodes: BTreeSet<NodeId> = requests.iter().map(|(_, node)| *node).collect();
    assert_eq!(nodes.len(), 4, "everybody is drawn sometime");
}

#[test]
fn requests_that_come_to_a_busy_node_wait_there_and_their_response_counts_from_coming() {
    let twice =
        scheduled("coordinator", 2, &["0 at 1", "0 at 2", "0 at 3"]).with("workload.hold", 5);
    let watched = watch(&twice);
    assert_eq!(watched.requests(), [at("1", 0), at("6", 0), at("11", 0)]);
    assert_eq!(watched.entries(), watched.requests());
    // Responses of 0, 4 and 8.
    assert_eq!(watched.report.response_mean, Some(4.0));
    assert_eq!((watched.report.response_p99, watched.report.longest_wait), (Some(8.0), 8.0));
}

#[test]
fn open_arrivals_that_are_too_many_are_served_one_after_the_other() {
    let open = group("coordinator", 1).with("workload.arrivals", "open");
    let watched = watch(&open.with("workload.rate", 50).with("run.entries", 200));
    let entries = watched.entries();
    assert_eq!(entries.len(), 200);
    assert!(entries.windows(2).all(|pair| pair[1].0 == pair[0].0 + units("1")));
    // The last of them came at about 200/50 and entered at about 200.
    assert!(watched.report.longest_wait > 150.0, "{}", watched.report.longest_wait);
}

#[test]
fn open_arrivals_come_at_their_rate() {
    let open = group("coordinator", 50).with("workload.arrivals", "open");
    let open = open.with("workload.rate", 0.5).with("workload.hold", 0).with("run.entries", 5000);
    let throughput = correct(&open).throughput.unwrap();
    assert!((throughput - 0.5).abs() < 0.025, "{throughput}");
}

#[test]
fn bursts_draw_different_nodes_at_even_times() {
    let bursts = group("coordinator", 5).with("workload.arrivals", "bursts");
    let bursts =
        bursts.with("workload.burst", 3).with("workload.every", 20).with("run.entries", 60);
    let mut drawn: BTreeMap<Time, BTreeSet<NodeId>> = BTreeMap::new();
    for (at, node) in watch(&bursts).requests() {
        assert!(drawn.entry(at).or_default().insert(node), "node {node} asks twice at {at}");
    }
    let expected: Vec<Time> = (0..20).map(|burst| Time::units(20 * burst)).collect();
    assert_eq!(drawn.keys().copied().collect::<Vec<_>>(), expected);
    assert!(drawn.values().all(|nodes| nodes.len() == 3));
    assert_eq!(drawn.values().flatten().collect::<BTreeSet<_>>().len(), 5);
}

#[test]
fn a_burst_larger_than_the_group_is_the_whole_group() {
    let bursts = group("coordinator", 3).with("workload.arrivals", "bursts");
    let bursts = bursts.with("workload.burst", 9).with("workload.every", 50).with("run.time", 40);
    let mut nodes: Vec<NodeId> = watch(&bursts).requests().iter().map(|(_, node)| *node).collect();
    nodes.sort();
    assert_eq!(nodes, [NodeId(0), NodeId(1), NodeId(2)]);
}

#[test]
fn a_schedule_is_kept_to_the_tick() {
    let requests = ["2 at 1.5", "0 at 0.000001", "1 at 1.5"];
    let watched = watch(&scheduled("ricart-agrawala", 3, &requests).with("workload.hold", 0));
    assert_eq!(watched.requests(), [at("0.000001", 0), at("1.5", 2), at("1.5", 1)]);
    assert_eq!((watched.report.end, watched.report.entries), (End::Quiet, 3));
}

#[test]
fn a_warm_up_does_not_count() {
    let high = group("suzuki-kasami", 4).with("run.entries", 20);
    let (cold, warm) = (watch(&high), watch(&high.clone().with("run.warmup", 12)));
    assert_eq!((cold.entries().len(), warm.entries().len()), (20, 32));
    assert_eq!((cold.report.entries, warm.report.entries), (20, 20));
    assert_eq!((warm.report.messages_per_entry, warm.report.fairness), (Some(4.0), Some(1.0)));
    // One entry every T + E; the first one, at time 0, makes a cold run look faster.
    assert_eq!((cold.report.throughput, warm.report.throughput), (Some(20.0 / 38.0), Some(0.5)));
}

#[test]
fn a_run_ends_after_its_entries_or_at_its_time_whichever_comes_first() {
    let endless = group("ricart-agrawala", 3);
    let entries = correct(&endless.clone().with("run.entries", 17));
    assert_eq!((entries.end, entries.entries), (End::Entries, 17));
    let both = correct(&endless.clone().with("run.entries", 17).with("run.time", 9));
    assert_eq!((both.end, both.time), (End::Time, 9.0));

    let watched = watch(&endless.with("run.time", 25.5));
    assert_eq!((watched.report.end, watched.report.time), (End::Time, 25.5));
    assert!(watched.events.iter().map(Event::at).all(|at| Time(at) <= units("25.5")));
    // The first entry at 2, then one every 2.
    assert_eq!(watched.report.entries, 12);
}

#[test]
fn what_happens_at_the_very_end_of_the_time_still_happens() {
    let watched =
        watch(&scheduled("coordinator", 2, &["0 at 5", "0 at 5.000001"]).with("run.time", 5));
    assert_eq!(watched.requests(), [at("5", 0)]);
}

/// Node 1 asks a second and a third time while its first request is being served; the run ends
/// before the second is.
#[test]
fn a_request_that_queues_at_its_own_busy_node_counts_as_waiting_from_its_arrival() {
    let requests = ["1 at 0", "1 at 1", "1 at 3"];
    let busy = scheduled("raymond", 2, &requests).with("workload.hold", 50).with("run.time", 20);
    let report = correct(&busy);
    assert_eq!((report.entries, report.longest_wait), (1, 19.0));
    let crash = watch::with_all(busy, "faults.events", &["crash 1 at 10"]);
    let report = correct(&crash);
    assert!(report.longest_wait < 10.0, "nobody is left to wait: {}", report.longest_wait);
}
