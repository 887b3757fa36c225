//! Three explorers of the same models agree: the crate's own, stateright's, and a plain queue that
//! compares whole states instead of fingerprints.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::{HashSet, VecDeque};

use catraca_algorithms::mutants::{Caught, Listed};
use catraca_algorithms::{Channels, Spec, Visitor, registry};
use catraca_check::{Claims, GroupModel, Network, Options, Verdict, check};
use catraca_core::{Algorithm, NodeId, Start};
use stateright::{Checker, Model};

const REQUESTS: u32 = 2;

/// The plain search keeps whole worlds: of larger groups there is no room for all.
const MOST_KEPT: u64 = 100_000;

fn model<A: Algorithm>(config: A::Config, spec: &Spec, network: Network) -> GroupModel<A> {
    let crashes = crashes(spec);
    let (nodes, start) = (spec.nodes, spec.start.clone());
    let claims = Claims::new(&[], spec, REQUESTS);
    GroupModel { config, nodes, start, requests: REQUESTS, crashes, claims, network, begin: None }
}

/// As many as it takes to catch the mutant, if it is one.
fn crashes(spec: &Spec) -> u32 {
    spec.mutant.as_ref().map_or(0, |mutant| registry::setting(&spec.algorithm, mutant).crashes)
}

/// Counts states, different and generated, with stateright.
struct Stateright<'a>(&'a Spec, Network);

impl Visitor for Stateright<'_> {
    type Output = (u64, u64);

    fn visit<A: Algorithm>(self, config: A::Config) -> (u64, u64) {
        let checker = model::<A>(config, self.0, self.1).checker().threads(2).spawn_bfs().join();
        assert!(checker.discoveries().is_empty());
        (checker.unique_state_count() as u64, checker.state_count() as u64)
    }
}

/// The least number of steps to a violation and the first property broken there, or else the number
/// of different states.
struct Plain<'a>(&'a Spec, Network);

impl Visitor for Plain<'_> {
    type Output = Result<usize, (usize, &'static str)>;

    fn visit<A: Algorithm>(self, config: A::Config) -> Self::Output {
        let model = model::<A>(config, self.0, self.1);
        let properties = model.properties();
        let mut known = HashSet::new();
        let mut queue: VecDeque<_> = model.init_states().into_iter().map(|it| (0, it)).collect();
        let mut worst = None;
        while let Some((depth, world)) = queue.pop_front() {
            if worst.is_some_and(|(least, _)| least < depth) {
                break;
            }
            if !known.insert(world.clone()) {
                continue;
            }
            if let Some(broken) = properties.iter().position(|it| !(it.condition)(&model, &world)) {
                worst = worst.into_iter().chain([(depth, broken)]).min();
            }
            queue.extend(model.next_states(&world).into_iter().map(|next| (depth + 1, next)));
        }
        match worst {
            None => Ok(known.len()),
            Some((depth, broken)) => Err((depth, properties[broken].name)),
        }
    }
}

fn options(spec: &Spec, network: Network) -> Options {
    let (requests, crashes) = (REQUESTS, crashes(spec));
    Options { requests, crashes, network, threads: 2, ..Options::of(spec).unwrap() }
}

fn assert_agreement(spec: &Spec, network: Network) {
    let report = check(spec, &options(spec, network), &mut |_| {}).unwrap();
    assert_eq!(report.verdict, Verdict::Holds, "{spec:?} {network}");
    let ours = (report.states, report.generated);
    assert_eq!(spec.visit(Stateright(spec, network)).unwrap(), ours, "{spec:?} {network}");
    let plain = spec.visit(Plain(spec, network)).unwrap();
    assert_eq!(plain, Ok(report.states as usize), "{spec:?} {network}");
}

#[test]
fn three_explorers_count_the_same_states() {
    for entry in registry::ENTRIES {
        for start in [Start::idle(), Start::inside(NodeId(1))] {
            for network in [Network::Fifo, Network::Any] {
                let spec = Spec::new(entry.name, 2).starting(start.clone());
                if entry.channels == Channels::Fifo && network == Network::Any {
                    continue;
                }
                assert_agreement(&spec, network);
            }
        }
    }
}

#[test]
fn they_still_agree_where_levels_are_wide_enough_for_several_threads() {
    for start in [Start::idle(), Start::inside(NodeId(1))] {
        for network in [Network::Fifo, Network::Any] {
            assert_agreement(&Spec::new("ricart-agrawala", 3).starting(start.clone()), network);
        }
    }
}

#[test]
fn no_counterexample_is_longer_than_that_of_a_plain_search() {
    for entry in registry::ENTRIES {
        let three_are_enough =
            |mutant: &Listed| matches!(mutant.caught, Caught::Checked { nodes, .. } if nodes <= 3);
        for mutant in registry::mutants(entry.name).into_iter().filter(three_are_enough) {
            let setting = registry::setting(entry.name, mutant.name);
            let spec = setting.of(Spec::new(entry.name, 3).broken(mutant.name));
            let network = Network::of(&spec).unwrap();
            let report = check(&spec, &options(&spec, network), &mut |_| {}).unwrap();
            let Verdict::Violated(found) = report.verdict else { panic!("{spec:?} holds") };
            if report.states > MOST_KEPT {
                continue;
            }
            let plain = spec.visit(Plain(&spec, network)).unwrap();
            assert_eq!(plain, Err((report.depth, found.property)), "{spec:?}");
            let last = found.trace.events.last().unwrap().at();
            assert_eq!(last, report.depth as u64, "{spec:?}");
        }
    }
}
