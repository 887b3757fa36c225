//! What S2 claims and an exhaustive search settles, section by section.

use catraca_check::Network;
use catraca_core::property;

use super::Verdict::{Holds, Wrong};
use super::exhausted::{self, Group};

const fn broken(algorithm: &'static str, mutant: &'static str, nodes: u32, requests: u32) -> Group {
    Group { mutant: Some(mutant), ..Group::new(algorithm, nodes, requests) }
}

/// Claims that an exhaustive search settles.
pub(super) const EXHAUSTED: &[exhausted::Claim] = &[
    exhausted::Claim {
        section: "8.3.1",
        says: "theorem 8.1: Lamport guarantees mutual exclusion",
        is_question: false,
        group: Group::new("lamport", 3, 1),
        finds: None,
        verdict: Holds,
        sentence: "And nobody waits for ever, and fences increase; larger groups below.",
    },
    exhausted::Claim {
        section: "8.3.1",
        says: "Lamport needs channels that keep the order",
        is_question: false,
        group: Group { network: Some(Network::Any), ..Group::new("lamport", 2, 1) },
        finds: Some(property::MUTUAL_EXCLUSION),
        verdict: Holds,
        sentence: "A REPLY that overtakes a REQUEST lets two nodes in.",
    },
    exhausted::Claim {
        section: "8.3.1",
        says: "rule L1: enter after a REQUEST with a larger time from all others",
        is_question: false,
        group: broken("lamport", "only-requests-count", 2, 1),
        finds: Some(property::NOBODY_WAITS_FOR_EVER),
        verdict: Wrong,
        sentence: "Who wants nothing sends no REQUEST: any message with a larger time must count.",
    },
    exhausted::Claim {
        section: "8.3.1",
        says: "Lamport assumes clocks that differ by a bounded amount",
        is_question: false,
        group: Group::new("lamport", 2, 3),
        finds: None,
        verdict: Wrong,
        sentence: "Not needed: clocks are logical and may lie arbitrarily far apart.",
    },
    exhausted::Claim {
        section: "8.3.3",
        says: "Maekawa is prone to deadlock without FAILED, INQUIRE and YIELD",
        is_question: false,
        group: broken("maekawa", "deaf-to-failed", 2, 1),
        finds: Some(property::NOBODY_WAITS_FOR_EVER),
        verdict: Holds,
        sentence: "Two nodes that hold one arbiter each and never yield wait for ever.",
    },
    exhausted::Claim {
        section: "8.3.3",
        says: "FAILED, INQUIRE and YIELD resolve Maekawa's deadlocks",
        is_question: false,
        group: Group::new("maekawa", 3, 2),
        finds: None,
        verdict: Holds,
        sentence: "Provided that a displaced request is sent FAILED too: see the next line.",
    },
    exhausted::Claim {
        section: "8.3.3",
        says: "a site that is not available just waits for the release",
        is_question: false,
        group: broken("maekawa", "no-displaced-failed", 4, 1),
        finds: Some(property::NOBODY_WAITS_FOR_EVER),
        verdict: Wrong,
        sentence: "A waiting request that a better one displaces must be sent FAILED, or four nodes block.",
    },
    exhausted::Claim {
        section: "8.4.2",
        says: "Singhal serves every request, by the rules as usually given",
        is_question: false,
        group: broken("singhal", "drops-outdated", 3, 2),
        finds: Some(property::NOBODY_WAITS_FOR_EVER),
        verdict: Wrong,
        sentence: "The token can bring the news of a request before the request itself comes; a node \
                   that drops it as outdated is no longer asked by its sender.",
    },
    exhausted::Claim {
        section: "8.4.2",
        says: "Singhal serves every request, by the rules of this project",
        is_question: true,
        group: Group::new("singhal", 3, 2),
        finds: None,
        verdict: Holds,
        sentence: "Outdated requests are noted, and a node learns from the token when it arrives.",
    },
    exhausted::Claim {
        section: "8.5",
        says: "a unique token gives exclusive access",
        is_question: false,
        group: Group::new("raymond", 3, 2),
        finds: None,
        verdict: Holds,
        sentence: "Counted over nodes and channels in every state; a cloned token is caught at once.",
    },
];
