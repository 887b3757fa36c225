//! Counts what the runs say of each proposition, and keeps the smallest counterexample.

use catraca_core::NodeId;
use catraca_topology::evolving::EvolvingGraph;

use super::facts::Facts;
use super::{PERMISSION, Proposition, TOKEN};
use crate::evolving::{Report, Setup, Workload, run};

/// A run that a proposition says cannot be.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// The graph.
    pub graph: EvolvingGraph,
    /// Which algorithm ran.
    pub algorithm: &'static str,
    /// Who asked, and when.
    pub requests: Vec<(u64, NodeId)>,
    /// Who had the token at first.
    pub token: NodeId,
    /// What happened.
    pub report: Report,
}

impl Counterexample {
    /// Smaller is easier to understand: fewer nodes, contacts, requests, instants.
    fn size(&self) -> (u32, usize, usize, u64) {
        let contacts = self.graph.contacts();
        let last = contacts.iter().map(|contact| contact.to).max().unwrap_or(0);
        (self.graph.nodes(), contacts.len(), self.requests.len(), last)
    }
}

/// What the runs say of a proposition.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The proposition.
    pub proposition: Proposition,
    /// Runs of which it says something.
    pub cases: u64,
    /// Runs that contradict it.
    pub refuted: u64,
    /// The smallest of these.
    pub smallest: Option<Counterexample>,
}

pub(super) struct Tally {
    findings: Vec<Finding>,
    /// An algorithm that is replaced by one of its mutants.
    mutant: Option<(String, String)>,
}

/// One run, and what it was.
struct Run<'a> {
    graph: &'a EvolvingGraph,
    algorithm: &'static str,
    requests: &'a [(u64, NodeId)],
    token: NodeId,
    report: Report,
}

impl Run<'_> {
    fn serves(&self, node: NodeId) -> bool {
        self.report.served.iter().any(|served| served.node == node)
    }

    fn serves_all(&self) -> bool {
        self.report.served.len() == self.requests.len()
    }
}

impl Tally {
    pub(super) fn new(mutant: Option<(String, String)>) -> Self {
        let finding = |proposition| Finding { proposition, cases: 0, refuted: 0, smallest: None };
        Tally { findings: Proposition::ALL.map(finding).to_vec(), mutant }
    }

    pub(super) fn findings(self) -> Vec<Finding> {
        self.findings
    }

    /// A graph that ends: what is necessary.
    pub(super) fn finite(
        &mut self,
        graph: &EvolvingGraph,
        facts: &Facts,
        requests: &[(u64, NodeId)],
        tokens: &[NodeId],
    ) {
        let run = self.run(graph, PERMISSION, requests, tokens[0]);
        if !facts.has_journeys_both_ways() {
            self.note(Proposition::One, !run.serves_all(), &run);
        }
        for &(from, node) in requests {
            match facts.has_round_trips(node, from) {
                false => self.note(Proposition::RoundTrip, !run.serves(node), &run),
                true if requests.len() == 1 => {
                    self.note(Proposition::LoneRoundTrip, run.serves(node), &run);
                }
                true => {}
            }
        }
        for &token in tokens {
            let run = self.run(graph, TOKEN, requests, token);
            let parties: Vec<NodeId> = requests.iter().map(|ask| ask.1).chain([token]).collect();
            if !facts.has_journeys_one_way(&parties) {
                self.note(Proposition::Three, !run.serves_all(), &run);
            }
            for &(_, node) in requests {
                if !facts.reaches(token, node) {
                    self.note(Proposition::TokenJourney, !run.serves(node), &run);
                }
            }
        }
    }

    /// A graph that repeats for ever: what is sufficient.
    pub(super) fn endless(
        &mut self,
        graph: &EvolvingGraph,
        facts: &Facts,
        requests: &[(u64, NodeId)],
        tokens: &[NodeId],
    ) {
        if facts.is_connected_for_ever(facts.all()) {
            let run = self.run(graph, PERMISSION, requests, tokens[0]);
            self.note(Proposition::Two, run.serves_all(), &run);
        }
        for &token in tokens {
            let parties: Vec<NodeId> = requests.iter().map(|ask| ask.1).chain([token]).collect();
            if facts.is_connected_for_ever(parties.iter().copied()) {
                let run = self.run(graph, TOKEN, requests, token);
                self.note(Proposition::Four, run.serves_all(), &run);
            }
        }
    }

    fn run<'a>(
        &mut self,
        graph: &'a EvolvingGraph,
        algorithm: &'static str,
        requests: &'a [(u64, NodeId)],
        token: NodeId,
    ) -> Run<'a> {
        let workload = Workload { requests: requests.to_vec(), rounds: Some(1), hold: 1, pause: 0 };
        let broken = self.mutant.as_ref().filter(|(broken, _)| broken == algorithm);
        let mutant = broken.map(|(_, mutant)| mutant.clone());
        let setup = Setup { token, mutant, ..Setup::new(graph, workload) };
        let report = match run(algorithm, &setup) {
            Ok(report) => report,
            Err(error) => unreachable!("the algorithms and nodes are known: {error}"),
        };
        let run = Run { graph, algorithm, requests, token, report };
        self.note(Proposition::Safety, run.report.violation.is_none(), &run);
        run
    }

    fn note(&mut self, proposition: Proposition, agrees: bool, run: &Run<'_>) {
        let finding = &mut self.findings[proposition as usize];
        finding.cases += 1;
        if agrees {
            return;
        }
        finding.refuted += 1;
        let counterexample = Counterexample {
            graph: run.graph.clone(),
            algorithm: run.algorithm,
            requests: run.requests.to_vec(),
            token: run.token,
            report: run.report.clone(),
        };
        let is_smaller = |kept: &Counterexample| counterexample.size() < kept.size();
        if finding.smallest.as_ref().is_none_or(is_smaller) {
            finding.smallest = Some(counterexample);
        }
    }
}
