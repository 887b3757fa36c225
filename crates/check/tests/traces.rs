//! The errors of S4's pseudo-code, each with the shortest run that shows it, in `docs/traces/`.
//!
//! `CATRACA_WRITE=1 cargo test -p catraca-check --test traces` writes the files anew.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fmt::Write;
use std::path::Path;

use catraca_algorithms::mutants::{Caught, Listed};
use catraca_algorithms::{Spec, registry};
use catraca_check::{Options, Verdict, check};

const ALGORITHM: &str = "robust-k";

/// The mutant, and where the paper has the error.
const ERRATA: [(&str, &str); 4] = [
    (
        "clock-not-stored",
        "Erratum 1. S4, algorithm 2, line 8: 'last := clock + 1' leaves the clock.",
    ),
    (
        "last-by-sender",
        "Erratum 2. S4, algorithm 1, line 12: the last message is remembered per sender.",
    ),
    (
        "late-expectation",
        "Erratum 3. S4, algorithm 2, lines 10 and 11: answers are expected after the broadcast.",
    ),
    (
        "different-is-new",
        "Erratum 4. S4, algorithm 1, line 12: a message is new if it differs from the last one.",
    ),
];

/// What the checker finds, in words.
fn story(mutant: &Listed, erratum: &str) -> String {
    let Caught::Checked { nodes, requests, .. } = mutant.caught else { panic!("{}", mutant.name) };
    let setting = registry::setting(ALGORITHM, mutant.name);
    let spec = setting.of(Spec::new(ALGORITHM, nodes).broken(mutant.name));
    let crashes = setting.crashes;
    let options = Options { requests, crashes, ..Options::of(&spec).unwrap() };
    let report = check(&spec, &options, &mut |_| {}).unwrap();
    let Verdict::Violated(found) = report.verdict else { panic!("{} holds", mutant.name) };
    let mut story = format!(
        "{erratum}\n\n    catraca check {ALGORITHM} --mutant {} --nodes {nodes} --requests {requests}{setting}\n\n\
         The shortest run that breaks '{}': {}.\n\n",
        mutant.name, found.property, found.what
    );
    for event in &found.trace.events {
        writeln!(story, "{:>4}  {event}", event.at()).unwrap();
    }
    story
}

#[test]
fn the_traces_of_the_errata_are_those_that_the_checker_finds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/traces");
    let mutants = registry::mutants(ALGORITHM);
    for (name, erratum) in ERRATA {
        let mutant = mutants.iter().find(|mutant| mutant.name == name).unwrap();
        let path = folder.join(format!("{ALGORITHM}-{name}.txt"));
        let story = story(mutant, erratum);
        if std::env::var_os("CATRACA_WRITE").is_some() {
            std::fs::write(&path, &story).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(kept, story, "{} is out of date", path.display());
    }
}
