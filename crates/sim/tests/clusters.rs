//! Clusters: of the network, of the workload, in the figures.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod watch;

use catraca_core::NodeId;
use catraca_sim::Scenario;

use watch::{correct, scheduled, setup, watch, with_all};

fn clustered(algorithm: &str, shape: &str) -> Scenario {
    Scenario::new().with("algorithm", algorithm).with("clusters", shape)
}

#[test]
fn the_clusters_say_how_many_nodes_there_are() {
    assert_eq!(setup(&clustered("lamport", "4x8")).spec.nodes, 32);
    assert_eq!(setup(&clustered("lamport", "3,1")).spec.nodes, 4);
    assert_eq!(setup(&clustered("lamport", "0,2|1").with("nodes", 3)).spec.nodes, 3);
}

#[test]
fn messages_within_and_between_clusters_are_counted_apart() {
    // Each entry asks and is answered by three in the same cluster and from four in the other.
    let report = correct(&clustered("ricart-agrawala", "2x4").with("workload.rounds", 5));
    assert_eq!((report.messages_within, report.messages_between), (Some(40 * 6), Some(40 * 8)));
    assert_eq!(report.messages_within_per_entry, Some(6.0));
    assert_eq!(report.messages_between_per_entry, Some(8.0));
    let warm = clustered("ricart-agrawala", "2x4").with("run.warmup", 16).with("run.entries", 80);
    let report = correct(&warm);
    assert_eq!(report.messages_within.unwrap() + report.messages_between.unwrap(), report.messages);
    let plain = correct(&Scenario::new().with("algorithm", "lamport"));
    assert_eq!((plain.messages_within, plain.messages_between), (None, None));
    assert_eq!((plain.messages_between_per_entry, plain.cluster_fairness), (None, None));
}

#[test]
fn messages_take_long_between_clusters_and_short_within() {
    let requests = |request: &str| {
        let one = scheduled("coordinator", 4, &[request]).with("clusters", "0,2|1,3");
        let report = correct(&one.clone().with("network.lan", 2).with("network.wan", 30));
        let matrix = with_all(one, "network.matrix", &["2 30", "30 2"]);
        assert_eq!(report, correct(&matrix));
        report.response_mean
    };
    assert_eq!((requests("2 at 0"), requests("3 at 0")), (Some(4.0), Some(60.0)));
}

#[test]
fn what_is_not_said_of_near_and_far_is_one() {
    let far = scheduled("coordinator", 4, &["1 at 0", "2 at 50"]).with("clusters", "2x2");
    assert_eq!(correct(&far.clone().with("network.wan", 9)).response_mean, Some(10.0));
    assert_eq!(correct(&far.with("network.lan", 9)).response_mean, Some(10.0));
}

#[test]
fn requests_stay_in_a_cluster_as_often_as_they_should() {
    for (arrivals, more) in [("serial", ("workload.pause", 20)), ("open", ("workload.rate", 1))] {
        for share in [0.0, 0.5, 0.9, 1.0] {
            let scenario = clustered("coordinator", "3x3").with("workload.arrivals", arrivals);
            let scenario = scenario.with(more.0, more.1).with("workload.locality", share);
            // Nobody is ever busy, so requests are made in the order in which they are drawn.
            let scenario = scenario.with("workload.hold", 0).with("network.delay", 0);
            let requests = watch(&scenario.with("run.entries", 4000)).requests();
            let is_near = |a: NodeId, b: NodeId| a.0 / 3 == b.0 / 3;
            let near = requests.windows(2).filter(|pair| is_near(pair[0].1, pair[1].1)).count();
            let measured = near as f64 / (requests.len() - 1) as f64;
            assert!((measured - share).abs() < 0.03, "{arrivals}: {measured}, not {share}");
        }
    }
}

#[test]
fn requests_leave_a_cluster_that_has_crashed() {
    let scenario = clustered("coordinator", "2x2").with("workload.arrivals", "serial");
    let scenario = scenario.with("workload.locality", 1).with("run.time", 2000);
    let crashes = ["crash 2 at 9", "crash 3 at 9"];
    let report = correct(&with_all(scenario, "faults.events", &crashes));
    assert!(report.entries > 200, "{report:?}");
    assert_eq!(report.cluster_fairness, Some(1.0));
}

#[test]
fn fairness_between_clusters_counts_entries_per_member() {
    let even = clustered("ricart-agrawala", "1,5").with("workload.rounds", 3);
    assert_eq!(correct(&even).cluster_fairness, Some(1.0));
    // The first cluster has 3 entries a member, the second 1.
    let requests = ["0 at 0", "0 at 9", "0 at 18", "1 at 30", "2 at 40"];
    let uneven = scheduled("coordinator", 3, &requests).with("clusters", "1,2");
    assert_eq!(correct(&uneven).cluster_fairness, Some(16.0 / 20.0));
}

#[test]
fn clusters_that_cannot_be_are_refused_with_the_remedy() {
    let refused = |scenario: Scenario, text: &str| {
        let error = scenario.setup().unwrap_err().to_string();
        assert!(error.contains(text), "'{text}' is not in: {error}");
    };
    let of = |shape: &str| clustered("lamport", shape);
    refused(of("4,0"), "clusters: cluster 1 has no members; give it at least one");
    refused(of("2x0"), "clusters: cluster 0 has no members");
    refused(of("0,1|"), "clusters: cluster 1 has no members");
    refused(of("0,1|1,2"), "clusters: node 1 is in two clusters; put it in one");
    refused(
        of("5x1").with("nodes", 4),
        "have 5 members, but there are 4 nodes; leave out how many",
    );
    refused(of("0,1|2,9"), "the clusters name node 9, but the nodes are 0 to 3");
    refused(of("teams"), "'teams' describes no clusters: say 4x8");
    refused(of("1000000x4294967295"), "has too many nodes");
    refused(of("2x2").with("max-preempt", 3), "'lamport' takes no max-preempt; leave it out");
    let plain = || Scenario::new().with("algorithm", "lamport");
    refused(plain().with("network.wan", 5), "network.wan: needs clusters");
    refused(plain().with("network.matrix", 5), "network.matrix: needs clusters");
    let both = of("2x2").with("network.delay", 1).with("network.wan", 5);
    refused(both, "network.delay: is said by 'network.wan' already");
    let both = of("1x4").with("network.matrix", 1).with("network.lan", 5);
    refused(both, "network.lan: is said by 'network.matrix' already");
    refused(of("2x2").with("network.matrix", 1), "must have 2 rows of 2 distributions");
    let local = |scenario: Scenario| {
        scenario.with("workload.arrivals", "serial").with("workload.locality", 0.5)
    };
    refused(local(plain()), "workload.locality: needs clusters");
    refused(local(of("1x4")), "needs at least two clusters");
    for share in ["1.1", "-0.1", "NaN", "often"] {
        refused(local(of("2x2")).with("workload.locality", share), "is no number from 0 to 1");
    }
    let closed = of("2x2").with("workload.locality", 0.5);
    refused(closed, "belongs to 'serial' and 'open' arrivals, and these are 'closed'");
}
