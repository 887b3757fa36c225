//! What S2 claims, section by section.

use catraca_algorithms::Load::{High, Low};
use catraca_check::Network;
use catraca_core::property;

use super::Verdict::{Holds, Wrong};
use super::exhausted::{self, Group};
use super::figures::Figure::{Delay, Kind, Messages, Throughput};
use super::figures::Says::{About, AtMost, Between, Equals};
use super::figures::{Claim, Figure, Says};

#[expect(clippy::too_many_arguments, reason = "one argument a column of the table below")]
const fn claim(
    section: &'static str,
    says: &'static str,
    algorithm: &'static str,
    load: catraca_algorithms::Load,
    figure: Figure,
    formula: Says,
    verdict: super::Verdict,
    sentence: &'static str,
) -> Claim {
    Claim { section, says, algorithm, load, figure, formula, verdict, sentence }
}

/// Claims about figures.
#[rustfmt::skip]
pub(super) const FIGURES: &[Claim] = &[
    claim("8.2", "coordinator: three messages per entry", "coordinator", High, Messages, About(|_| 3.0), Holds,
        "Exactly 3(N-1)/N where the coordinator takes part: its own entries cost nothing."),
    claim("8.2", "coordinator: throughput at most 1/(2T+E)", "coordinator", High, Throughput, AtMost(|_| 1.0 / 3.0), Wrong,
        "Exceeded in small groups: to or from the coordinator itself the lock changes hands in T."),
    claim("8.3.1", "Lamport: N-1 REQUESTs", "lamport", High, Kind("request"), Equals(|n| n - 1.0), Holds,
        "One to every other node."),
    claim("8.3.1", "Lamport: N-1 REPLYs", "lamport", High, Kind("reply"), Equals(|n| n - 1.0), Holds,
        "One from every other node."),
    claim("8.3.1", "Lamport: N-1 RELEASEs", "lamport", High, Kind("release"), Equals(|n| n - 1.0), Holds,
        "One to every other node."),
    claim("8.3.1, 8.5", "Lamport: 3(N-1) at high load", "lamport", High, Messages, Equals(|n| 3.0 * (n - 1.0)), Holds,
        "The sum of the three."),
    claim("8.5", "Lamport: 2(N-1) at low load", "lamport", Low, Messages, Equals(|n| 2.0 * (n - 1.0)), Wrong,
        "The algorithm as described sends the same 3(N-1) at any load."),
    claim("8.3.1, 8.5", "Lamport: delay T", "lamport", High, Delay, Equals(|_| 1.0), Holds,
        "The RELEASE is all that the next node waits for."),
    claim("8.3.2, 8.5", "Ricart-Agrawala: 2(N-1) at high load", "ricart-agrawala", High, Messages, Equals(|n| 2.0 * (n - 1.0)), Holds,
        "A REQUEST to and a REPLY from every other node."),
    claim("8.5", "Ricart-Agrawala: N-1 at low load", "ricart-agrawala", Low, Messages, Equals(|n| n - 1.0), Wrong,
        "2(N-1) at any load; what reaches N-1 is the next line."),
    claim("8.5", "N-1 at low load, read as Carvalho-Roucairol", "carvalho-roucairol", Low, Messages, About(|n| n - 1.0), Holds,
        "On average: of each pair, whoever entered last still has the other's permission."),
    claim("8.3.2", "Ricart-Agrawala: only competing sites exchange messages", "ricart-agrawala", Low, Messages, Equals(|_| 0.0), Wrong,
        "With one competitor and nobody else, all the others are asked and answer."),
    claim("8.3.2, 8.5", "Ricart-Agrawala: delay T", "ricart-agrawala", High, Delay, Equals(|_| 1.0), Holds,
        "The deferred REPLY is all that the next node waits for."),
    claim("8.3.3", "Maekawa: O(sqrt N), here 3(K-1) to 6(K-1)", "maekawa", High, Messages,
        Between(|n| 6.0 * (n.sqrt() - 1.0), |n| 12.0 * (n.sqrt() - 1.0)), Holds,
        "4(K-1) with constant delay; K-1 = 2(sqrt N - 1) in the grid."),
    claim("8.5", "Maekawa: 3 sqrt N at high load", "maekawa", High, Messages, Equals(|n| 3.0 * n.sqrt()), Wrong,
        "The columns are swapped, and K is nearer to 2 sqrt N in the grid; conflicts add FAILEDs."),
    claim("8.5", "Maekawa: 5 sqrt N at low load", "maekawa", Low, Messages, Equals(|n| 5.0 * n.sqrt()), Wrong,
        "3(K-1): without conflict only REQUEST, GRANT and RELEASE are sent."),
    claim("8.3.3, 8.5", "Maekawa: delay 2T", "maekawa", High, Delay, Equals(|_| 2.0), Holds,
        "RELEASE to an arbiter, GRANT from it; less in groups of up to five."),
    claim("8.4.1, 8.5", "Suzuki-Kasami: N-1 at high load", "suzuki-kasami", High, Messages, Equals(|n| n - 1.0), Wrong,
        "N: the token is a message too."),
    claim("8.5", "Suzuki-Kasami: 0 at low load", "suzuki-kasami", Low, Messages, Equals(|_| 0.0), Wrong,
        "0 only where the token already is, N elsewhere: N-1 on average over all nodes."),
    claim("8.4.1, 8.5", "Suzuki-Kasami: delay 0 or T", "suzuki-kasami", High, Delay, Between(|_| 0.0, |_| 1.0), Holds,
        "T, since another node waits."),
    claim("8.4.2, 8.5", "Singhal: N/2 on average at low load", "singhal", Low, Messages, About(|n| n / 2.0), Holds,
        "Exactly (N-1)(N+2)/2N."),
    claim("8.5", "Singhal: N/2 at high load", "singhal", High, Messages, Equals(|n| n / 2.0), Wrong,
        "N: at high load everybody is taken for requesting, and is asked."),
    claim("8.4.2, 8.5", "Singhal: delay 2T", "singhal", High, Delay, Equals(|_| 2.0), Wrong,
        "T: the token goes straight to the next node."),
    claim("8.4.3, 8.5", "Raymond: about 4 log N at low load", "raymond", Low, Messages, About(|n| 4.0 * n.log2()), Wrong,
        "Twice the mean distance in the tree, well below; 4 log N is the worst case, leaf to leaf."),
    claim("8.5", "Raymond: 4 log N at high load", "raymond", High, Messages, Equals(|n| 4.0 * n.log2()), Wrong,
        "4(N-1)/N: the token walks round the tree, and serves everybody on the way."),
    claim("8.4.3, 8.5", "Raymond: delay (T log N)/2", "raymond", High, Delay, Equals(|n| n.log2() / 2.0), Wrong,
        "2T(N-1)/N: at high load the next node is about two edges away, whatever N is."),
];

const fn broken(algorithm: &'static str, mutant: &'static str, nodes: u32, requests: u32) -> Group {
    Group { mutant: Some(mutant), ..Group::new(algorithm, nodes, requests) }
}

/// Claims that an exhaustive search settles.
pub(super) const EXHAUSTED: &[exhausted::Claim] = &[
    exhausted::Claim {
        section: "8.3.1",
        says: "theorem 8.1: Lamport guarantees mutual exclusion",
        group: Group::new("lamport", 3, 1),
        finds: None,
        verdict: Holds,
        sentence: "And nobody waits for ever, and fences increase; larger groups below.",
    },
    exhausted::Claim {
        section: "8.3.1",
        says: "Lamport needs channels that keep the order",
        group: Group { network: Some(Network::Any), ..Group::new("lamport", 2, 1) },
        finds: Some(property::MUTUAL_EXCLUSION),
        verdict: Holds,
        sentence: "A REPLY that overtakes a REQUEST lets two nodes in.",
    },
    exhausted::Claim {
        section: "8.3.1",
        says: "rule L1: enter after a REQUEST with a larger time from all others",
        group: broken("lamport", "only-requests-count", 2, 1),
        finds: Some(property::NOBODY_WAITS_FOR_EVER),
        verdict: Wrong,
        sentence: "Who wants nothing sends no REQUEST: any message with a larger time must count.",
    },
    exhausted::Claim {
        section: "8.3.1",
        says: "Lamport assumes clocks that differ by a bounded amount",
        group: Group::new("lamport", 2, 3),
        finds: None,
        verdict: Wrong,
        sentence: "Not needed: clocks are logical and may lie arbitrarily far apart.",
    },
    exhausted::Claim {
        section: "8.3.3",
        says: "Maekawa is prone to deadlock without FAILED, INQUIRE and YIELD",
        group: broken("maekawa", "deaf-to-failed", 2, 1),
        finds: Some(property::NOBODY_WAITS_FOR_EVER),
        verdict: Holds,
        sentence: "Two nodes that hold one arbiter each and never yield wait for ever.",
    },
    exhausted::Claim {
        section: "8.3.3",
        says: "FAILED, INQUIRE and YIELD resolve Maekawa's deadlocks",
        group: Group::new("maekawa", 3, 2),
        finds: None,
        verdict: Holds,
        sentence: "Provided that a displaced request is told FAILED too: see the next line.",
    },
    exhausted::Claim {
        section: "8.3.3",
        says: "a site that is not available just waits for the release",
        group: broken("maekawa", "no-displaced-failed", 4, 1),
        finds: Some(property::NOBODY_WAITS_FOR_EVER),
        verdict: Wrong,
        sentence: "A waiting request that a better one displaces must hear FAILED, or four nodes block.",
    },
    exhausted::Claim {
        section: "8.4.2",
        says: "Singhal serves every request, by the rules as usually given",
        group: broken("singhal", "drops-outdated", 3, 2),
        finds: Some(property::NOBODY_WAITS_FOR_EVER),
        verdict: Wrong,
        sentence: "The token can bring the news of a request before the request itself comes; a node \
                   that drops it as outdated is no longer asked by its sender.",
    },
    exhausted::Claim {
        section: "8.4.2",
        says: "Singhal serves every request, by the rules of this project",
        group: Group::new("singhal", 3, 2),
        finds: None,
        verdict: Holds,
        sentence: "Outdated requests are noted, and a node learns from the token when it arrives.",
    },
    exhausted::Claim {
        section: "8.5",
        says: "a unique token gives exclusive access",
        group: Group::new("raymond", 3, 2),
        finds: None,
        verdict: Holds,
        sentence: "Counted over nodes and channels in every state; a cloned token is caught at once.",
    },
];
