//! What S4 claims that an exhaustive search settles, and its errata.

use catraca_algorithms::mutants::Setting;
use catraca_core::property;

use super::Verdict::{Holds, Wrong};
use super::exhausted::{Claim, Group};

const fn group(algorithm: &'static str, k: u32, crashes: u32) -> Group {
    let setting = Setting { k: Some(k), crashes };
    Group { setting, ..Group::new(algorithm, 3, 1) }
}

const fn broken(mutant: &'static str, nodes: u32, requests: u32, crashes: u32) -> Group {
    let setting = Setting { k: None, crashes };
    Group { mutant: Some(mutant), setting, ..Group::new("robust-k", nodes, requests) }
}

/// Claims that an exhaustive search settles.
pub(super) const EXHAUSTED: &[Claim] = &[
    Claim {
        section: "2",
        says: "Raymond's k-algorithm tolerates k-1 crashes",
        is_question: false,
        group: group("raymond-k", 2, 1),
        finds: None,
        verdict: Holds,
        sentence: "Whichever nodes crash, and whenever.",
    },
    Claim {
        section: "2",
        says: "after k crashes nobody enters any more",
        is_question: false,
        group: group("raymond-k", 1, 1),
        finds: Some(property::NOBODY_WAITS_FOR_EVER),
        verdict: Holds,
        sentence: "It stays safe, but a node that misses an answer waits for ever.",
    },
    Claim {
        section: "4",
        says: "the robust algorithm works with N-1 crashes",
        is_question: false,
        group: group("robust-k", 1, 2),
        finds: None,
        verdict: Holds,
        sentence: "With a detector that suspects every crashed node in the end and no other.",
    },
    Claim {
        section: "4, algorithm 2, line 8",
        says: "'last := clock + 1' stamps a request",
        is_question: false,
        group: broken("clock-not-stored", 2, 2, 0),
        finds: Some(property::NOBODY_WAITS_FOR_EVER),
        verdict: Wrong,
        sentence: "Erratum 1: the clock must be stored, or the next request is taken for a duplicate. \
                   [The trace](traces/robust-k-clock-not-stored.txt).",
    },
    Claim {
        section: "4, algorithm 1, line 12",
        says: "the last message is remembered per sender",
        is_question: false,
        group: broken("last-by-sender", 3, 2, 1),
        finds: Some(property::MUTUAL_EXCLUSION),
        verdict: Wrong,
        sentence: "Erratum 2: it must be per origin, or a request that is sent again is answered twice. \
                   [The trace](traces/robust-k-last-by-sender.txt).",
    },
    Claim {
        section: "4, algorithm 2, lines 10 and 11",
        says: "the answers are expected after the broadcast",
        is_question: false,
        group: broken("late-expectation", 2, 1, 0),
        finds: Some(property::NOBODY_WAITS_FOR_EVER),
        verdict: Wrong,
        sentence: "Erratum 3: both must be one step, or an early answer is forgotten. \
                   [The trace](traces/robust-k-late-expectation.txt).",
    },
    Claim {
        section: "4, algorithm 1, line 12",
        says: "a message that differs from the last one is new",
        is_question: false,
        group: broken("different-is-new", 3, 2, 1),
        finds: Some(property::MUTUAL_EXCLUSION),
        verdict: Wrong,
        sentence: "Erratum 4: it must be larger, or a late message of an earlier request is answered again. \
                   [The trace](traces/robust-k-different-is-new.txt).",
    },
];
