//! Nobody is overtaken for long.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use catraca_sim::{End, Hooks, Scenario, run};

/// Nodes 0 and 3 of a grid of four are in no quorum of each other, and node 0 alone enters often.
/// Its clock must take that of node 3 along, or node 3 overtakes it as often as it had entered.
#[test]
fn in_maekawa_a_node_with_a_slow_clock_does_not_overtake_one_with_a_fast_clock_for_long() {
    let alone = (0..100).map(|entry| format!("0 at {}", 20 * entry));
    let both = (0..100).flat_map(|_| ["0 at 5000".to_string(), "3 at 5000".to_string()]);
    let matrix = ["1 1 1 1", "1 1 1 1", "3 1 1 1", "1 1 1 1"].map(str::to_string).to_vec();
    let mut scenario = Scenario::new()
        .with("algorithm", "maekawa")
        .with("nodes", 4)
        .with("workload.arrivals", "schedule")
        .with("run.max-bypass", 4);
    scenario.set("workload.schedule", alone.chain(both).collect()).unwrap();
    scenario.set("clusters", vec!["4x1".to_string()]).unwrap();
    scenario.set("network.matrix", matrix).unwrap();
    let report = run(&scenario.setup().unwrap(), Hooks::default()).unwrap();
    assert_eq!((report.violation, report.end, report.entries), (None, End::Quiet, 300));
}
