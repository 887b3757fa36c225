//! What S1 claims of dynamic networks, put to every small graph.

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use catraca_sim::evolving::propositions::{
    Finding as Found, Proposition, Space, exhaustive, random,
};

use super::{Finding, Verdict, settle};

/// All graphs with three nodes and four instants; and random ones beyond.
const NODES: u32 = 3;
const INSTANTS: u64 = 4;
const RANDOM: (u64, u32, u64) = (20_000, 8, 16);

struct Claim {
    section: &'static str,
    says: &'static str,
    proposition: Proposition,
    verdict: Verdict,
    sentence: &'static str,
}

const CLAIMS: [Claim; 8] = [
    Claim {
        section: "3.1, proposition 1",
        says: "C1 (journeys both ways between every pair) is necessary for Ricart-Agrawala once a node asks",
        proposition: Proposition::One,
        verdict: Verdict::Wrong,
        sentence: "The smallest counterexample: three nodes; 0 meets 2, then 1; only 0 asks, and enters without a journey from 1 to 2.",
    },
    Claim {
        section: "3.1, proposition 1",
        says: "corrected: a requester needs a round trip, a journey out to every node and one back after it",
        proposition: Proposition::RoundTrip,
        verdict: Verdict::Holds,
        sentence: "Nobody without its round trips was ever served.",
    },
    Claim {
        section: "3.1, proposition 1",
        says: "corrected: for who asks alone the round trips suffice",
        proposition: Proposition::LoneRoundTrip,
        verdict: Verdict::Holds,
        sentence: "The condition is exact for a single request.",
    },
    Claim {
        section: "3.1, proposition 2",
        says: "C2 (every pair connected over time) is sufficient for Ricart-Agrawala",
        proposition: Proposition::Two,
        verdict: Verdict::Holds,
        sentence: "Every graph as a cycle from each of its instants.",
    },
    Claim {
        section: "3.2, proposition 3",
        says: "C3 (a journey one way between any two who ask or have the token) is necessary for Hélary",
        proposition: Proposition::Three,
        verdict: Verdict::Holds,
        sentence: "It is weak: it allows graphs on which the token cannot get to who asks; see the next line.",
    },
    Claim {
        section: "3.2",
        says: "Hélary: who asks needs a journey from the token's first place",
        proposition: Proposition::TokenJourney,
        verdict: Verdict::Holds,
        sentence: "Not in S1, and not implied by C3: C3 is content with a journey to the token.",
    },
    Claim {
        section: "3.2, proposition 4",
        says: "C4 (those who ask or have the token connected over time) is sufficient for Hélary",
        proposition: Proposition::Four,
        verdict: Verdict::Holds,
        sentence: "With the token at each node in turn.",
    },
    Claim {
        section: "3.1, 3.2",
        says: "both algorithms are safe on any graph",
        proposition: Proposition::Safety,
        verdict: Verdict::Holds,
        sentence: "Provided that clocks advance on contacts: a mutant that does not is caught.",
    },
];

/// Searches once and looks every claim up.
pub(super) fn findings() -> Result<Vec<Finding>> {
    let stop = AtomicBool::new(false);
    let (count, nodes, instants) = RANDOM;
    let all = exhaustive(&Space::new(NODES, INSTANTS), &stop).context("the search was stopped")?;
    let drawn = random(count, nodes, instants, 1, &stop).context("the search was stopped")?;
    CLAIMS.iter().map(|claim| claim.finding(&all, &drawn)).collect()
}

impl Claim {
    fn finding(&self, all: &[Found], drawn: &[Found]) -> Result<Finding> {
        let of = |found: &[Found]| {
            let mut found = found.iter().filter(|one| one.proposition == self.proposition);
            found.next().map(|one| (one.refuted, one.cases)).context("a proposition is missing")
        };
        let ((refuted, cases), (also, drawn)) = (of(all)?, of(drawn)?);
        let measured =
            format!("{refuted} of {cases} runs contradict it, {also} of {drawn} on random graphs");
        let found = if refuted + also == 0 { Verdict::Holds } else { Verdict::Wrong };
        let verdict = settle(self.says, self.verdict, found, &measured)?;
        let command = format!("catraca graph propositions --nodes {NODES} --instants {INSTANTS}");
        let is_question = matches!(
            self.proposition,
            Proposition::RoundTrip | Proposition::LoneRoundTrip | Proposition::TokenJourney
        );
        Ok(Finding {
            section: self.section.to_string(),
            says: self.says.to_string(),
            is_question,
            measured,
            command,
            verdict,
            sentence: self.sentence.to_string(),
        })
    }
}
