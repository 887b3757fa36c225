//! Relabelling systems on evolving graphs: the figures of S1, and runs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use catraca_core::{NodeId, Phase};
use catraca_sim::Random;
use catraca_sim::evolving::{End, Hooks, Report, Setup, Snapshot, Workload, run, run_observed};
use catraca_topology::evolving::generate::{
    self, EdgeMarkovian, Shape, Timetable, Waypoints, edge_markovian, periodic, random_waypoint,
};
use catraca_topology::evolving::{Contact, EvolvingGraph};

const PERMISSION: &str = "evolving-ricart-agrawala";
const TOKEN: &str = "evolving-helary";

fn observed(algorithm: &str, setup: &Setup<'_>) -> (Report, Vec<Snapshot>) {
    let mut snapshots = Vec::new();
    let mut observer = |snapshot| snapshots.push(snapshot);
    let hooks = Hooks { observer: Some(&mut observer), stop: None };
    let report = run_observed(algorithm, setup, hooks).unwrap();
    (report, snapshots)
}

/// The text of S1 has lost its pictures; the contacts follow from its words: v1 meets v2 in (b), v2
/// meets v3 in (c), v1 meets v2 in (d), and in (e) v1 meets v3. Nodes v1, v2 and v3 are 0, 1 and 2.
fn figure() -> EvolvingGraph {
    let contacts = vec![
        Contact::at(1, 0, 1),
        Contact::at(2, 1, 2),
        Contact::at(3, 0, 1),
        Contact::at(4, 0, 2),
    ];
    EvolvingGraph::numbered(3, contacts, 5, None).unwrap()
}

/// By node: its state, and the requests that it takes for unserved with how many answers.
fn seen(snapshot: &Snapshot) -> Vec<String> {
    let node = |node: &catraca_sim::evolving::NodeView| {
        let state = match node.phase {
            Phase::Idle => "I",
            Phase::Waiting => "R",
            Phase::Inside => "U",
        };
        let token = if node.has_token { "T" } else { "" };
        let pending = node.pending.iter();
        let pending = pending.map(|one| format!(" v{}:{}", one.requester.0 + 1, one.answers));
        format!("{state}{token}{}", pending.collect::<String>())
    };
    snapshot.nodes.iter().map(node).collect()
}

/// A repeated graph of three nodes: 0 meets 1, then 1 meets 2 for two instants, then nobody.
fn lap() -> EvolvingGraph {
    let contacts = vec![Contact::at(0, 0, 1), Contact::between(1, 2, 1, 2)];
    EvolvingGraph::numbered(3, contacts, 4, Some(0)).unwrap()
}

#[test]
fn laps_in_which_nothing_changes_are_counted_without_going_through_them() {
    for (hold, pause) in [(1, 0), (37, 0), (5, 61), (40, 40)] {
        let until = 1_000;
        let written_out = lap().until(until).unwrap();
        let all = NodeId::all(3).map(|node| (u64::from(node.0) * 100, node)).collect();
        let workload = Workload { requests: all, rounds: Some(4), hold, pause };
        for algorithm in [PERMISSION, TOKEN] {
            let report = |graph: &EvolvingGraph| {
                let setup = Setup::new(graph, workload.clone());
                run(algorithm, &Setup { until: Some(until), ..setup }).unwrap()
            };
            assert_eq!(report(&lap()), report(&written_out), "hold {hold}, pause {pause}");
        }
    }
}

#[test]
fn the_longest_hold_on_a_cycle_ends() {
    let graph = lap();
    let hold = catraca_sim::evolving::MAX_STAY;
    let workload = Workload { hold, ..Workload::once(NodeId::all(3).collect(), 0) };
    let report = run(TOKEN, &Setup::new(&graph, workload)).unwrap();
    assert_eq!((report.end, report.served.len()), (End::Served, 3));
    assert!(report.last > 3 * hold);
}

#[test]
fn a_run_that_would_not_fit_into_memory_or_numbers_is_refused() {
    use catraca_sim::evolving::{MAX_ENTRIES, MAX_STAY, SetupError};
    let graph = lap();
    let once = || Workload::once(vec![NodeId(0)], 0);
    let refused = |setup: Setup<'_>| run(TOKEN, &setup).unwrap_err();
    let rounds = Some(u32::MAX);
    let often = Setup::new(&graph, Workload { rounds, ..once() });
    assert_eq!(refused(often.clone()), SetupError::TooManyEntries);
    let entries = Some(MAX_ENTRIES + 1);
    assert_eq!(refused(Setup { entries, ..often.clone() }), SetupError::TooManyEntries);
    assert!(run(TOKEN, &Setup { entries: Some(10), ..often.clone() }).is_ok());
    assert!(run(TOKEN, &Setup { until: Some(10), ..often }).is_ok());
    let long = Workload { hold: MAX_STAY + 1, ..once() };
    assert_eq!(refused(Setup::new(&graph, long)), SetupError::TooLong);
    let late = Workload::once(vec![NodeId(0)], u64::MAX);
    assert_eq!(refused(Setup::new(&graph, late)), SetupError::TooLate);
}

/// Reference: S1, Figure 2 and the text to it.
#[test]
fn paper_figure_2_of_s1_instant_by_instant() {
    let graph = figure();
    let setup = Setup::new(&graph, Workload::once(vec![NodeId(0), NodeId(2)], 0));
    let (report, snapshots) = observed(PERMISSION, &setup);
    let expected = [
        // (a) v1 and v3 ask.
        ["R v1:0", "I", "R v3:0"],
        // (b) v2 learns of v1's request and answers.
        ["R v1:1", "I v1:1", "R v3:0"],
        // (c) v2 answers v3; v3 learns of v1's request, which goes before its own, and answers.
        ["R v1:1", "I v1:2 v3:1", "R v1:2 v3:1"],
        // (d) v1 has all answers and enters; it learns of v3's request and does not answer.
        ["U v1:2 v3:1", "I v1:2 v3:1", "R v1:2 v3:1"],
        // (e) v1 leaves and answers; v3 has the answer in the same instant and enters.
        ["I v3:2", "I v1:2 v3:1", "U v3:2"],
        // (f) v3 leaves; everybody is idle.
        ["I v3:2", "I v1:2 v3:1", "I"],
    ];
    let found: Vec<Vec<String>> = snapshots.iter().map(seen).collect();
    assert_eq!(found, expected);
    assert_eq!(report.served.iter().map(|one| one.entered).collect::<Vec<_>>(), [3, 4]);
    assert_eq!((report.end, report.contacts, report.contacts_used), (End::Served, 4, 4));
}

/// Reference: S1, Figure 3 and the text to it.
#[test]
fn paper_figure_3_of_s1_instant_by_instant() {
    let graph = figure();
    let workload = Workload::once(vec![NodeId(0), NodeId(2)], 0);
    let setup = Setup { token: NodeId(1), ..Setup::new(&graph, workload) };
    let (report, snapshots) = observed(TOKEN, &setup);
    let expected = [
        // (a) v1 and v3 ask, v2 has the token.
        ["R v1:0", "IT", "R v3:0"],
        // (b) v2 learns of v1's request and sends the token; v1 enters in the same instant.
        ["UT v1:1", "I v1:1", "R v3:0"],
        // (c) v1 leaves; v2 learns of v3's request, and v3 of v1's and of the token.
        ["IT", "I v1:1 v3:0", "R v1:1 v3:0"],
        // (d) v1 learns of v3's request from v2 and sends the token.
        ["I v3:1", "I v3:1", "R v1:1 v3:0"],
        // (e) v3 has the token and enters.
        ["I v3:1", "I v3:1", "UT v3:1"],
        // (f) v3 leaves.
        ["I v3:1", "I v3:1", "IT"],
    ];
    let found: Vec<Vec<String>> = snapshots.iter().map(seen).collect();
    assert_eq!(found, expected);
    assert_eq!(report.served.iter().map(|one| one.entered).collect::<Vec<_>>(), [1, 4]);
}

fn all(nodes: u32) -> Vec<NodeId> {
    NodeId::all(nodes).collect()
}

#[test]
fn on_graphs_that_stay_connected_everybody_is_served_again_and_again() {
    let mut random = Random::new(5);
    let timetable = Timetable { stops: 5, buses: 3, route: 5 };
    let graphs = [
        generate::unchanging(8, Shape::Complete).unwrap(),
        generate::unchanging(9, Shape::Star).unwrap(),
        generate::broken_ring(7).unwrap(),
        periodic(timetable, &mut random).unwrap(),
    ];
    for graph in &graphs {
        for algorithm in [PERMISSION, TOKEN] {
            let requests = all(graph.nodes()).into_iter().map(|node| (0, node)).collect();
            let workload = Workload { requests, rounds: Some(4), hold: 2, pause: 1 };
            let report = run(algorithm, &Setup::new(graph, workload)).unwrap();
            assert_eq!((report.violation, report.end), (None, End::Served));
            assert_eq!(report.served.len(), 4 * graph.nodes() as usize, "{algorithm}");
        }
    }
}

#[test]
fn on_random_graphs_no_run_breaks_mutual_exclusion_or_the_order_of_fences() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let chances = EdgeMarkovian { nodes: 9, instants: 120, birth: 0.03, death: 0.5 };
        let walk = Waypoints { nodes: 9, instants: 120, side: 10.0, range: 2.5, speed: 1.0 };
        let graphs = [
            edge_markovian(chances, &mut random).unwrap(),
            random_waypoint(walk, &mut random).unwrap(),
        ];
        for (graph, algorithm) in
            graphs.iter().flat_map(|graph| [(graph, PERMISSION), (graph, TOKEN)])
        {
            let requests = (0..6).map(|_| (random.below(60), NodeId(random.below(9) as u32)));
            let workload = Workload {
                requests: requests.collect(),
                rounds: None,
                hold: 1 + random.below(3),
                pause: random.below(4),
            };
            let report = run(algorithm, &Setup::new(graph, workload)).unwrap();
            assert_eq!(report.violation, None, "seed {seed}, {algorithm}");
        }
    }
}

#[test]
fn who_cannot_be_served_waits_for_ever_and_the_run_says_so() {
    let contacts = vec![Contact::at(0, 0, 1), Contact::at(3, 1, 2)];
    let graph = EvolvingGraph::numbered(3, contacts, 3, Some(2)).unwrap();
    let setup = Setup::new(&graph, Workload::once(vec![NodeId(2)], 1));
    let report = run(PERMISSION, &setup).unwrap();
    assert_eq!(report.end, End::Quiet);
    assert_eq!(
        report.waiting.iter().map(|one| (one.node.0, one.since)).collect::<Vec<_>>(),
        [(2, 1)]
    );
    let finite = EvolvingGraph::numbered(3, graph.contacts().to_vec(), 3, None).unwrap();
    let report = run(PERMISSION, &Setup { graph: &finite, ..setup }).unwrap();
    assert_eq!((report.end, report.waiting.len()), (End::Graph, 1), "perhaps later");
}

/// 'The size of labels can be bounded.' Reference: S1, section 3.1.
#[test]
fn labels_stay_bounded_in_a_long_run() {
    let chances = EdgeMarkovian { nodes: 12, instants: 200, birth: 0.02, death: 0.5 };
    let graph = edge_markovian(chances, &mut Random::new(1)).unwrap().repeated(0).unwrap();
    // P: 13 bytes of each node; Q: 4 bytes for each of 11 answers to each of 12 requests.
    for (algorithm, bound) in [(PERMISSION, 8 + 12 * 13 + 12 * 11 * 4), (TOKEN, 8 + 20 + 12 * 20)] {
        let requests = all(12).into_iter().map(|node| (0, node)).collect();
        let workload = Workload { requests, rounds: None, hold: 1, pause: 3 };
        let setup = Setup { entries: Some(4_000), ..Setup::new(&graph, workload) };
        let report = run(algorithm, &setup).unwrap();
        assert_eq!((report.end, &report.violation), (End::Entries, &None));
        assert!(report.largest_label <= bound, "{algorithm}: {}", report.largest_label);
        let half = report.labels.len() / 2;
        let peak = |points: &[(u64, u64, u64)]| points.iter().map(|point| point.1).max();
        let (early, late) = (peak(&report.labels[..half]), peak(&report.labels[half..]));
        assert!(late <= early.map(|early| early + early / 10), "{early:?} then {late:?}");
        let uncollected = report.labels.last().unwrap().2;
        assert!(uncollected > 40 * bound, "it would have grown to {uncollected}");
    }
}

#[test]
fn a_run_is_determined_by_its_setup() {
    let walk = Waypoints { nodes: 20, instants: 300, side: 10.0, range: 2.0, speed: 0.5 };
    let graph = random_waypoint(walk, &mut Random::new(9)).unwrap();
    let requests = all(20).into_iter().map(|node| (0, node)).collect();
    let workload = Workload { requests, rounds: None, hold: 2, pause: 5 };
    let setup = Setup::new(&graph, workload);
    for algorithm in [PERMISSION, TOKEN] {
        let first = run(algorithm, &setup).unwrap();
        assert_eq!(first, run(algorithm, &setup).unwrap());
        assert!(!first.served.is_empty());
    }
}

/// Instants at which nothing begins are passed over; stopping at each must give the same.
#[test]
fn an_instant_at_which_nothing_happens_changes_nothing() {
    for seed in 0..20 {
        let chances = EdgeMarkovian { nodes: 6, instants: 60, birth: 0.02, death: 0.15 };
        let long = edge_markovian(chances, &mut Random::new(seed)).unwrap();
        // The same graph with every contact cut into instants.
        let pieces = long.contacts().iter().flat_map(|contact| {
            (contact.from..=contact.to).map(|at| Contact::at(at, contact.a.0, contact.b.0))
        });
        let cut = EvolvingGraph::numbered(6, pieces.collect(), 59, None).unwrap();
        let requests = all(6).into_iter().map(|node| (u64::from(node.0), node)).collect();
        let workload = Workload { requests, rounds: None, hold: 3, pause: 4 };
        for algorithm in [PERMISSION, TOKEN] {
            let served =
                |graph| run(algorithm, &Setup::new(graph, workload.clone())).unwrap().served;
            assert_eq!(served(&long), served(&cut), "seed {seed}");
        }
    }
}
