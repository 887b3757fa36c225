//! The figures that the literature gives, where they are exact. Reference: S2, sections 8.1 to 8.4.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod watch;

use catraca_sim::Scenario;

use watch::{correct, scheduled};

fn rounds(algorithm: &str, nodes: u32) -> Scenario {
    Scenario::new().with("algorithm", algorithm).with("nodes", nodes).with("workload.rounds", 4)
}

fn high_load(algorithm: &str, nodes: u32) -> Scenario {
    let scenario = Scenario::new().with("algorithm", algorithm).with("nodes", nodes);
    scenario.with("run.warmup", 10 * nodes).with("run.entries", 20 * nodes)
}

/// 3(N-1) messages per entry, whatever the load. Reference: S2 8.3.1.
#[test]
fn paper_lamport_takes_three_messages_per_other_node_and_entry() {
    for nodes in [1, 2, 5, 20] {
        for delay in ["1", "exp:1"] {
            let report = correct(&rounds("lamport", nodes).with("network.delay", delay));
            let entries = 4 * u64::from(nodes);
            let each = entries * u64::from(nodes - 1);
            assert_eq!((report.entries, report.messages), (entries, 3 * each));
            let kinds = [("request", each), ("reply", each), ("release", each)];
            assert_eq!(report.by_kind, kinds);
        }
    }
}

/// 2(N-1) messages per entry, whatever the load. Reference: S2 8.3.2.
#[test]
fn paper_ricart_agrawala_takes_two_messages_per_other_node_and_entry() {
    for nodes in [1, 2, 5, 20, 70] {
        for delay in ["1", "exp:1"] {
            let report = correct(&rounds("ricart-agrawala", nodes).with("network.delay", delay));
            let entries = 4 * u64::from(nodes);
            let each = entries * u64::from(nodes - 1);
            assert_eq!(report.by_kind, [("request", each), ("reply", each)]);
        }
    }
}

/// Three messages per entry, and none for the coordinator's own. Reference: S2 8.2.
#[test]
fn paper_the_coordinator_takes_three_messages_for_each_entry_of_another_node() {
    let report = correct(&rounds("coordinator", 9));
    assert_eq!(report.by_kind, [("request", 32), ("grant", 32), ("release", 32)]);
}

/// 0 or N messages per entry, the token counted. Reference: S2 8.4.1.
#[test]
fn paper_suzuki_kasami_takes_n_messages_unless_the_token_is_there() {
    for nodes in [2, 5, 20] {
        let report = correct(&rounds("suzuki-kasami", nodes));
        // The very first entry is where the token starts.
        let paid = 4 * u64::from(nodes) - 1;
        assert_eq!(report.by_kind, [("request", paid * u64::from(nodes - 1)), ("token", paid)]);
        let alone = scheduled("suzuki-kasami", nodes, &["0 at 0", "0 at 9", "0 at 18"]);
        assert_eq!(correct(&alone).messages, 0);
    }
}

/// Twice the distance to the token. Reference: S2 8.4.3.
#[test]
fn paper_raymond_takes_two_messages_per_edge_between_the_token_and_the_requester() {
    for distance in 0..10 {
        let request = format!("{distance} at 0");
        let far = scheduled("raymond", 10, &[&request]).with("tree", "chain");
        let report = correct(&far);
        assert_eq!(report.by_kind, [("request", distance), ("token", distance)]);
        assert_eq!(report.response_mean, Some(2.0 * distance as f64));
    }
    // The token stays where it was last: 0 to 9, 9 to 2, 2 to 4.
    let walk = scheduled("raymond", 10, &["9 at 0", "2 at 50", "4 at 90"]).with("tree", "chain");
    assert_eq!(correct(&walk).messages, 2 * (9 + 7 + 2));
}

/// A delay of T. Reference: S2 8.3.1, 8.3.2 and 8.4.1.
#[test]
fn paper_the_delay_is_one_message_where_the_last_one_tells_the_next() {
    for algorithm in ["lamport", "ricart-agrawala", "suzuki-kasami"] {
        for delay in [1, 3] {
            let load =
                high_load(algorithm, 8).with("workload.hold", 10).with("network.delay", delay);
            assert_eq!(correct(&load).delay, Some(1.0), "{algorithm}");
        }
    }
}

/// A delay of 2T: the release to the coordinator, the grant to the next. Reference: S2 8.2.
#[test]
fn paper_the_delay_between_two_others_is_two_messages_by_way_of_the_coordinator() {
    let two = scheduled("coordinator", 3, &["1 at 0", "2 at 0"]).with("network.delay", 4);
    assert_eq!(correct(&two.with("workload.hold", 20)).delay, Some(2.0));
    let own = scheduled("coordinator", 3, &["1 at 0", "0 at 6"]).with("network.delay", 4);
    assert_eq!(correct(&own.with("workload.hold", 20)).delay, Some(1.0));
}

/// A delay of T per edge. Reference: S2 8.4.3.
#[test]
fn paper_the_delay_of_raymond_is_one_message_per_edge() {
    let ends = scheduled("raymond", 6, &["0 at 0", "5 at 1"]).with("tree", "chain");
    assert_eq!(correct(&ends.with("workload.hold", 20)).delay, Some(5.0));
}

/// The bound on the throughput, 1/(delay + E). Reference: S2 8.1.
#[test]
fn paper_at_high_load_the_throughput_is_one_over_delay_and_hold() {
    let load =
        |algorithm| high_load(algorithm, 10).with("workload.hold", 3).with("network.delay", 2);
    let best = correct(&load("ricart-agrawala"));
    assert_eq!((best.throughput, best.throughput_of_bound), (Some(0.2), Some(1.0)));
    // Nine entries in ten take 2T + E, less T for each of the two at the coordinator's own entry.
    let round = 8.0 * 7.0 + 2.0 * 5.0;
    let report = correct(&load("coordinator"));
    assert!((report.throughput.unwrap() - 10.0 / round).abs() < 0.002, "{report:?}");
    assert!((report.throughput_of_bound.unwrap() - 50.0 / round).abs() < 0.01);
}

#[test]
fn permission_algorithms_serve_everybody_equally_at_high_load() {
    for algorithm in ["lamport", "ricart-agrawala"] {
        let report = correct(&high_load(algorithm, 10));
        assert_eq!(report.fairness, Some(1.0), "{algorithm}");
    }
}
