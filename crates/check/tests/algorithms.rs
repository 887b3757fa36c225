//! The registered algorithms: pinned counts, and mutants that have to be caught.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::BTreeMap;

use catraca_algorithms::mutants::Caught;
use catraca_algorithms::{Spec, registry};
use catraca_check::{Network, Options, Report, Verdict, Violation, check};
use catraca_core::{Claim, Input, NodeId, ResourceId, Start, property};
use catraca_topology::ClusterShape;
use catraca_trace::{Event, Outcome, SendId, parse_start, replay};

fn run(spec: &Spec, network: Network, threads: usize) -> Report {
    let options = Options { network, threads, ..Options::of(spec).unwrap() };
    check(spec, &options, &mut |_| {}).unwrap()
}

/// States, states with repetitions, and depth, of a group in which every property holds.
fn counts(spec: &Spec, network: Network) -> (u64, u64, usize) {
    let report = run(spec, network, 2);
    assert_eq!(report.verdict, Verdict::Holds, "{spec:?} {network}");
    (report.states, report.generated, report.depth)
}

fn violation(spec: &Spec, requests: u32, crashes: u32) -> Violation {
    let options = Options { requests, crashes, ..Options::of(spec).unwrap() };
    let report = check(spec, &options, &mut |_| {}).unwrap();
    match report.verdict {
        Verdict::Violated(violation) => *violation,
        other => panic!("{spec:?}: {other:?} after {} states", report.states),
    }
}

#[test]
fn ricart_agrawala_holds_and_has_exactly_these_states() {
    let (fifo, any) = (Network::Fifo, Network::Any);
    let two = Spec::new("ricart-agrawala", 2);
    let three = Spec::new("ricart-agrawala", 3);
    let inside = |spec: &Spec| spec.clone().starting(Start::inside(NodeId(1)));
    assert_eq!(counts(&two, fifo), (151, 207, 16));
    assert_eq!(counts(&two, any), (179, 264, 16));
    assert_eq!(counts(&inside(&two), fifo), (154, 212, 17));
    assert_eq!(counts(&inside(&two), any), (182, 269, 17));
    assert_eq!(counts(&three, fifo), (39_180, 108_031, 36));
    assert_eq!(counts(&three, any), (58_849, 197_093, 36));
    assert_eq!(counts(&inside(&three), fifo), (39_237, 108_196, 37));
    assert_eq!(counts(&inside(&three), any), (58_918, 197_306, 37));
}

/// Algorithm, nodes, requests each, who is inside at the start; states and depth.
type Exhausted = (&'static str, u32, u32, Option<u32>, u64, usize);

/// docs/CLAIMS.md has the groups that take longer.
#[rustfmt::skip]
const EXHAUSTED: &[Exhausted] = &[
    ("coordinator",        3, 2, None,        869, 24),
    ("coordinator",        3, 2, Some(1),     904, 26),
    ("coordinator",        4, 1, None,        681, 17),
    ("lamport",            3, 1, None,     25_130, 24),
    ("lamport",            3, 1, Some(1),  41_455, 27),
    ("carvalho-roucairol", 3, 2, None,     59_050, 36),
    ("carvalho-roucairol", 3, 2, Some(1),  68_126, 37),
    ("carvalho-roucairol", 4, 1, None,    375_613, 32),
    ("maekawa",            3, 2, None,     27_379, 38),
    ("maekawa",            3, 2, Some(1),  27_737, 40),
    ("maekawa",            4, 1, None,    247_007, 35),
    ("suzuki-kasami",      3, 2, None,     58_933, 30),
    ("suzuki-kasami",      3, 2, Some(1),  62_945, 31),
    ("suzuki-kasami",      4, 1, None,    125_157, 24),
    ("singhal",            3, 2, None,     73_684, 32),
    ("singhal",            3, 2, Some(1),  74_609, 33),
    ("singhal",            4, 1, None,     85_353, 26),
    ("raymond",            3, 2, None,      1_004, 21),
    ("raymond",            3, 2, Some(1),   1_024, 22),
    ("raymond",            4, 1, None,      1_104, 20),
    ("naimi-trehel",       3, 2, None,      1_530, 22),
    ("naimi-trehel",       4, 1, None,      1_476, 18),
    ("bertier",            3, 2, None,      1_517, 26),
    ("bertier",            4, 1, None,      1_582, 21),
    ("bouabdallah-laforest", 3, 2, None,    6_170, 34),
    // With one holder it is Ricart and Agrawala's algorithm, state by state.
    ("raymond-k",          3, 2, None,     58_849, 36),
];

#[test]
fn the_algorithms_hold_and_have_exactly_these_states() {
    for &(algorithm, nodes, requests, inside, states, depth) in EXHAUSTED {
        let start = inside.map_or(Start::idle(), |node| Start::inside(NodeId(node)));
        let spec = Spec::new(algorithm, nodes).starting(start);
        let options = Options { requests, ..Options::of(&spec).unwrap() };
        let report = check(&spec, &options, &mut |_| {}).unwrap();
        assert_eq!(report.verdict, Verdict::Holds, "{algorithm}");
        assert_eq!(
            (report.states, report.depth),
            (states, depth),
            "{algorithm} {nodes} {inside:?}"
        );
    }
}

/// Three nodes and three resources; request k of node i asks for {i+k, i+k+1}.
#[test]
fn overlapping_sets_are_exhausted_too() {
    let together = Start::token_at(NodeId(0))
        .and_inside(NodeId(0), Claim::of([ResourceId(0), ResourceId(1)]))
        .and_inside(NodeId(2), Claim::of([ResourceId(2)]));
    let alone = Start::token_at(NodeId(1)).and_inside(NodeId(1), Claim::of([ResourceId(2)]));
    let all = parse_start("inside:0=0|1=1|2=2").unwrap();
    for (algorithm, start, states) in [
        ("bouabdallah-laforest", Start::idle(), 18_298),
        ("bouabdallah-laforest", alone, 19_231),
        ("bouabdallah-laforest", all, 21_435),
        ("bouabdallah-laforest", together, 21_546),
        ("ordered:naimi-trehel", Start::idle(), 5_355),
        ("ordered:coordinator", Start::idle(), 8_867),
    ] {
        let spec = Spec { resources: Some(3), ..Spec::new(algorithm, 3).starting(start) };
        let report = check(&spec, &Options::of(&spec).unwrap(), &mut |_| {}).unwrap();
        assert_eq!((report.verdict, report.states), (Verdict::Holds, states), "{algorithm}");
    }
}

/// Two clusters of two, from an idle start and with a member of the other cluster inside.
#[test]
fn bertier_holds_with_any_local_preference() {
    for (max_preempt, idle, inside) in
        [(0, 28_986, 30_024), (1, 30_778, 31_852), (2, 31_674, 32_784)]
    {
        let clusters = Some(ClusterShape::Sizes(vec![2, 2]));
        let spec = Spec { clusters, max_preempt: Some(max_preempt), ..Spec::new("bertier", 4) };
        for (start, states) in [(Start::idle(), idle), (Start::inside(NodeId(3)), inside)] {
            let spec = spec.clone().starting(start);
            let report = check(&spec, &Options::of(&spec).unwrap(), &mut |_| {}).unwrap();
            assert_eq!((report.verdict, report.states), (Verdict::Holds, states), "{max_preempt}");
        }
    }
}

/// Another proxy than the first of a cluster changes who says what to whom, not whether it holds.
#[test]
fn bertier_holds_with_proxies_that_are_named() {
    let spec = Spec { proxies: Some("1,3".parse().unwrap()), ..Spec::new("bertier", 4) };
    let options = Options { requests: 1, ..Options::of(&spec).unwrap() };
    let report = check(&spec, &options, &mut |_| {}).unwrap();
    assert_eq!((report.verdict, report.states), (Verdict::Holds, 1_858));
}

/// Algorithm, nodes, requests each, k, crashes; states and depth.
type Crashed = (&'static str, u32, u32, u32, u32, u64, usize);

#[rustfmt::skip]
const CRASHED: &[Crashed] = &[
    ("raymond-k", 3, 1, 1, 0,   2_867, 18),
    ("raymond-k", 3, 1, 2, 0,  11_614, 18),
    ("raymond-k", 3, 1, 2, 1,  99_730, 20),
    ("robust-k",  2, 2, 1, 0,     708, 20),
    ("robust-k",  2, 2, 1, 1,   2_156, 20),
    ("robust-k",  3, 1, 1, 0,  51_540, 24),
    ("robust-k",  3, 1, 1, 1, 458_575, 25),
    ("robust-k",  3, 1, 2, 0, 272_652, 24),
];

fn with_k(algorithm: &str, nodes: u32, k: u32) -> Spec {
    Spec { k: Some(k), ..Spec::new(algorithm, nodes) }
}

/// docs/CLAIMS.md has the groups that take longer.
#[test]
fn the_k_algorithms_hold_whoever_crashes_and_have_exactly_these_states() {
    for &(algorithm, nodes, requests, k, crashes, states, depth) in CRASHED {
        let spec = with_k(algorithm, nodes, k);
        let options = Options { requests, crashes, ..Options::of(&spec).unwrap() };
        let report = check(&spec, &options, &mut |_| {}).unwrap();
        assert_eq!(report.verdict, Verdict::Holds, "{algorithm} {k} {crashes}");
        assert_eq!((report.states, report.depth), (states, depth), "{algorithm} {k} {crashes}");
    }
}

/// 'Raymond's algorithm tolerates k-1 crashes.' Reference: S4, section 2. It is safe beyond that, but
/// then somebody may wait for ever.
#[test]
fn raymond_k_waits_for_ever_after_k_crashes() {
    for (k, crashes) in [(1, 1), (2, 2)] {
        let found = violation(&with_k("raymond-k", 3, k), 1, crashes);
        assert_eq!(found.property, property::NOBODY_WAITS_FOR_EVER, "{k}");
        let crashed = found.trace.events.iter().filter(|it| matches!(it, Event::Crash { .. }));
        assert_eq!(crashed.count(), crashes as usize);
    }
}

/// Two holders at the start; a third place is free only with k = 3.
#[test]
fn a_group_with_several_holders_can_begin_with_all_of_them_inside() {
    let start = Start::inside(NodeId(0)).and_inside(NodeId(2), Claim::single());
    for algorithm in ["raymond-k", "robust-k"] {
        let spec = with_k(algorithm, 3, 2).starting(start.clone());
        let options = Options { requests: 1, ..Options::of(&spec).unwrap() };
        let options = Options { state_limit: Some(SOUND), ..options };
        let report = check(&spec, &options, &mut |_| {}).unwrap();
        let holds = matches!(report.verdict, Verdict::Holds | Verdict::TooManyStates { .. });
        assert!(holds, "{algorithm}: {report:?}");
        assert!(with_k(algorithm, 3, 1).starting(start.clone()).check().is_err());
    }
}

/// The most states of a sound group that are explored for the sake of its mutants.
const SOUND: u64 = 800_000;

/// Every mutant says in which group the checker catches it, and as what; or else that the simulator
/// does, which its own tests show.
#[test]
fn every_mutant_is_caught_as_it_says_in_a_group_where_the_algorithm_holds() {
    for entry in registry::ENTRIES {
        for mutant in registry::mutants(entry.name) {
            let Caught::Checked { nodes, requests, property } = mutant.caught else { continue };
            let setting = registry::setting(entry.name, mutant.name);
            let sound = setting.of(Spec::new(entry.name, nodes));
            let spec = sound.clone().broken(mutant.name);
            let name = format!("{} {}", entry.name, mutant.name);
            let crashes = setting.crashes;
            let defaults = Options::of(&sound).unwrap();
            let options = Options { requests, crashes, state_limit: Some(SOUND), ..defaults };
            let found = violation(&spec, requests, crashes);
            let report = check(&sound, &options, &mut |_| {}).unwrap();
            // A group that is too large for a test holds at least as far as its mutant gets.
            let far_enough = match report.verdict {
                Verdict::Holds => true,
                Verdict::TooManyStates { .. } => {
                    found.trace.events.last().is_some_and(|last| last.at() <= report.depth as u64)
                }
                _ => false,
            };
            assert!(far_enough, "{} without {}: {report:?}", entry.name, mutant.name);
            assert_eq!(found.property, property, "{name}");
            let replayed = replay(&found.trace).unwrap();
            assert_eq!(replayed.difference, None, "{name}");
            let steps = found.trace.events.iter().filter(|event| matches!(event, Event::Step(_)));
            assert_eq!(replayed.steps, steps.count(), "{name}");
            // What a single step shows, the replay shows at the last one.
            if [property::MUTUAL_EXCLUSION, property::FENCES_INCREASE].contains(&property) {
                let first = replayed.violations.first().map(|(event, _)| *event);
                assert_eq!(first, Some(found.trace.events.len()), "{name}");
            }
        }
    }
}

/// Reference: S2 8.3.1, 'the channels deliver in order (FIFO)'. The assumption is needed.
#[test]
fn lamport_lets_two_nodes_in_when_messages_overtake_each_other() {
    let spec = Spec::new("lamport", 2);
    let options = Options { requests: 1, network: Network::Any, ..Options::of(&spec).unwrap() };
    let report = check(&spec, &options, &mut |_| {}).unwrap();
    let Verdict::Violated(violation) = report.verdict else { panic!("{report:?}") };
    assert_eq!(violation.property, property::MUTUAL_EXCLUSION);
}

#[test]
fn steps_are_counted_from_one_and_every_delivery_names_the_send_it_delivers() {
    let broken = Spec::new("ricart-agrawala", 3).broken("reply-while-inside");
    let trace = violation(&broken, 2, 0).trace;
    let mut on_their_way = BTreeMap::new();
    let mut deliveries = 0;
    for (index, event) in trace.events.iter().enumerate() {
        let Event::Step(step) = event else { panic!("{event:?}") };
        assert_eq!(step.at, index as u64 + 1);
        if let Input::Message { from, message } = &step.input {
            deliveries += 1;
            let sent = on_their_way.remove(&step.delivers.unwrap()).unwrap();
            assert_eq!(sent, (*from, step.node, message.clone()));
        }
        for outcome in &step.outcomes {
            if let Outcome::Send { id: SendId(id), to, message } = outcome {
                on_their_way.insert(SendId(*id), (step.node, *to, message.clone()));
            }
        }
    }
    assert!(deliveries > 0);
}

#[test]
fn the_report_does_not_depend_on_the_number_of_threads() {
    let sound = Spec::new("ricart-agrawala", 3);
    for spec in [sound.clone(), sound.broken("no-tie-break")] {
        let reports: Vec<Report> = [1, 2, 5]
            .map(|threads| Report {
                elapsed: Default::default(),
                ..run(&spec, Network::Any, threads)
            })
            .into();
        assert_eq!(reports[0], reports[1]);
        assert_eq!(reports[0], reports[2]);
    }
}
