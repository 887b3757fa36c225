//! The propositions of S1 on every small graph, and on random larger ones.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::sync::atomic::AtomicBool;

use catraca_algorithms::relabelling::{ENTRIES, mutants_of};
use catraca_core::property;
use catraca_sim::evolving::propositions::{Finding, Proposition, Space, exhaustive, random};
use catraca_topology::evolving::Contact;

fn search(space: &Space) -> Vec<Finding> {
    exhaustive(space, &AtomicBool::new(false)).unwrap()
}

fn refuted(findings: &[Finding]) -> Vec<Proposition> {
    let refuted = findings.iter().filter(|finding| finding.refuted > 0);
    refuted.map(|finding| finding.proposition).collect()
}

#[test]
fn of_all_graphs_with_three_nodes_and_three_instants_only_proposition_1_is_refuted() {
    let findings = search(&Space::new(3, 3));
    assert_eq!(refuted(&findings), [Proposition::One]);
    assert!(findings.iter().all(|finding| finding.cases > 1_000), "{findings:#?}");
}

/// Erratum 5: w meets v, then u; only w asks, and is served without a journey from u to v.
#[test]
fn the_smallest_counterexample_to_proposition_1_has_two_contacts_and_one_request() {
    let findings = search(&Space::new(3, 2));
    let smallest = findings[Proposition::One as usize].smallest.as_ref().unwrap();
    let [first, second] = smallest.graph.contacts() else { panic!("{smallest:?}") };
    assert_eq!((first.from, second.from), (0, 1));
    let &[(0, requester)] = &smallest.requests[..] else { panic!("{smallest:?}") };
    let has_requester = |contact: &Contact| [contact.a, contact.b].contains(&requester);
    assert!(has_requester(first) && has_requester(second));
    assert_eq!(smallest.report.served.len(), 1);
    let two = search(&Space::new(2, 3));
    assert_eq!(refuted(&two), [], "with two nodes it holds");
}

#[test]
fn of_all_graphs_with_four_nodes_and_one_instant_nothing_else_is_refuted() {
    assert_eq!(refuted(&search(&Space::new(4, 1))), []);
}

#[test]
fn random_larger_graphs_agree() {
    let findings = random(3_000, 7, 14, 1, &AtomicBool::new(false)).unwrap();
    assert_eq!(refuted(&findings), [Proposition::One]);
    assert!(findings.iter().all(|finding| finding.cases > 100), "{findings:#?}");
}

#[test]
fn every_mutant_is_caught_as_what_the_catalogue_says() {
    for entry in ENTRIES {
        for mutant in mutants_of(entry.name) {
            let broken = Some((entry.name.to_string(), mutant.name.to_string()));
            let findings = search(&Space { mutant: broken, ..Space::new(3, 2) });
            let expected = match mutant.property {
                property::MUTUAL_EXCLUSION => Proposition::Safety,
                _ if entry.name == "evolving-helary" => Proposition::Four,
                _ => Proposition::Two,
            };
            let found = refuted(&findings);
            assert!(found.contains(&expected), "{} {}: {found:?}", entry.name, mutant.name);
        }
    }
}
