//! `catraca graph check`: which algorithm can work on a trace, and why not where it cannot.

use std::io::Write;
use std::str::FromStr;

use catraca_core::NodeId;
use catraca_topology::evolving::{
    Conclusion, Conditions, EvolvingGraph, Question, Reason, Truth, Verdict, Witness,
};

use super::info::MOST_ALL_PAIRS;
use super::trace::{Source, Trace};
use super::words;
use crate::failure::Failure;
use crate::output::Stdout;
use crate::{Outcome, value};

/// More pairs of a requester and a node than this do not fit into memory: those have 400 MB.
const MOST_TRIPS: u64 = 100_000_000;

const EXAMPLES: &str = "\
C1          journeys both ways between every pair of nodes
C2          every pair is connected over time: there is a journey, however late it starts
C3          a journey at least one way between any two who ask or have the token
C4          any two who ask or have the token are connected over time
round trip  from everybody who asks a journey to every node, and one back after it arrives
token       a journey from the token to everybody who asks

C2 and C4 are about 'for ever': the trace needs a cycle, its own or by --repeat.";

/// Decides the conditions C1 to C4 of S1 and the round trip that corrects C1, each with a witness,
/// and says for each algorithm what follows.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    trace: Trace,
    /// Who asks, separated by commas [default: everybody].
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    requesters: Vec<String>,
    /// Who has the token at first [default: the first node].
    #[arg(long, value_name = "NODE")]
    token: Option<String>,
    /// The first instant at which anybody asks.
    #[arg(long, value_name = "T", default_value_t = 0, allow_negative_numbers = true,
        value_parser = value::instant)]
    from: u64,
    /// Only these: c1, c2, c3, c4, round-trip, token, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    conditions: Vec<Condition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    C1,
    C2,
    C3,
    C4,
    RoundTrip,
    Token,
}

impl Condition {
    const ALL: [Condition; 6] = [
        Condition::C1,
        Condition::RoundTrip,
        Condition::C2,
        Condition::C3,
        Condition::Token,
        Condition::C4,
    ];

    fn name(self) -> &'static str {
        match self {
            Condition::C1 => "C1",
            Condition::C2 => "C2",
            Condition::C3 => "C3",
            Condition::C4 => "C4",
            Condition::RoundTrip => "round trip",
            Condition::Token => "token",
        }
    }

    fn of(self, conditions: &Conditions) -> &Truth {
        match self {
            Condition::C1 => &conditions.c1,
            Condition::C2 => &conditions.c2,
            Condition::C3 => &conditions.c3,
            Condition::C4 => &conditions.c4,
            Condition::RoundTrip => &conditions.round_trip,
            Condition::Token => &conditions.token,
        }
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.to_lowercase().replace('-', " ");
        let is_it = |condition: &Condition| condition.name().to_lowercase() == name;
        Condition::ALL.into_iter().find(is_it).ok_or_else(|| {
            format!("there is no condition '{text}': say c1, c2, c3, c4, round-trip or token")
        })
    }
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let source = self.trace.read()?;
        let graph = &source.graph;
        let requesters = source.nodes("--requesters", &self.requesters)?;
        let token = match &self.token {
            Some(name) => source.node("--token", name)?,
            None => NodeId(0),
        };
        self.refuse_for_ever(&source)?;
        if graph.nodes() > MOST_ALL_PAIRS {
            return Err(Failure::input(format!(
                "the trace has {} nodes, and conditions are decided for up to {MOST_ALL_PAIRS}; \
                 take a part of it",
                graph.nodes()
            )));
        }
        if requesters.len() as u64 * u64::from(graph.nodes()) > MOST_TRIPS {
            return Err(Failure::input(
                "the trace has too many nodes for everybody to ask; name fewer with --requesters",
            ));
        }
        let question = Question { requesters, token, from: self.from };
        let conditions = Conditions::decide(graph, &question);
        let mut out = Stdout::lock();
        writeln!(out, "{}: {}", source.title(), words::size(graph))?;
        writeln!(
            out,
            "asking: {}, from instant {} on; the token is at {}\n",
            words::names(graph, &question.requesters),
            source.times.at(self.from),
            graph.name(token)
        )?;
        let wanted = |one: &Condition| self.conditions.is_empty() || self.conditions.contains(one);
        for condition in Condition::ALL.into_iter().filter(wanted) {
            let (holds, why) = truth(graph, condition.of(&conditions));
            writeln!(out, "{:<11} {holds:<6} {why}", condition.name())?;
        }
        writeln!(out)?;
        let permission =
            ("evolving-ricart-agrawala", conditions.for_permission(), "C2", "a round trip");
        let token = ("evolving-helary", conditions.for_token(), "C4", "C3");
        for (name, conclusion, sufficient, necessary) in [permission, token] {
            writeln!(out, "{name} {}", conclude(conclusion, sufficient, necessary))?;
        }
        Ok(())
    }

    /// A condition that is asked for by name must be one that can be decided.
    fn refuse_for_ever(&self, source: &Source) -> Outcome {
        let speaks_of_ever = |one: &&Condition| matches!(one, Condition::C2 | Condition::C4);
        match self.conditions.iter().find(speaks_of_ever) {
            Some(condition) if source.graph.cycle().is_none() => Err(Failure::input(format!(
                "'{}', line {}: the trace ends with instant {}, and {} is about 'for ever'; say with --repeat \
                 that it repeats, or add a line 'cycle T' in Catraca's own format",
                source.path().display(),
                source.lines,
                source.graph.last(),
                condition.name()
            ))),
            _ => Ok(()),
        }
    }
}

fn truth(graph: &EvolvingGraph, truth: &Truth) -> (&'static str, String) {
    match truth {
        Truth::Unknown => {
            ("?", "is about 'for ever', and the trace is finite; --repeat repeats it".to_string())
        }
        Truth::Holds(witness) => ("holds", shown(graph, witness)),
        Truth::Fails(witness) => ("fails", shown(graph, witness)),
    }
}

fn shown(graph: &EvolvingGraph, witness: &Witness) -> String {
    let words = |journey| words::journey(graph, journey);
    let name = |node: NodeId| graph.name(node);
    match witness {
        Witness::Nothing => String::new(),
        Witness::Journey(journey) => format!("for one: {}", words(journey)),
        Witness::RoundTrip(out, back) => format!("for one: {}, and {}", words(out), words(back)),
        Witness::NoJourney(from, to, None) => {
            format!("no journey from {} to {}, nor back", name(*from), name(*to))
        }
        Witness::NoJourney(from, to, Some(back)) => {
            format!("no journey from {} to {}; only back: {}", name(*from), name(*to), words(back))
        }
        Witness::NoRoundTrip(tour) => {
            let (requester, node) = (name(tour.requester), name(tour.node));
            match &tour.out {
                None => format!("no journey from {requester} to {node}"),
                Some(out) => format!("{}, and no way back to {requester} after that", words(out)),
            }
        }
    }
}

fn conclude(conclusion: Conclusion, sufficient: &str, necessary: &str) -> String {
    let verdict = match conclusion.verdict {
        Verdict::MustFail => "must fail",
        Verdict::WillWork => "will work",
        Verdict::Depends => "depends on the schedule",
    };
    let why = match conclusion.because {
        Reason::Sufficient => format!("{sufficient} holds, which suffices"),
        Reason::Necessary if necessary == "C3" => {
            "C3 fails: between two nodes that ask or have the token there is no journey".to_string()
        }
        Reason::Necessary => {
            "a node that asks has no round trip to every node, and waits for ever".to_string()
        }
        Reason::TokenStays => "the token cannot get to a node that asks for it".to_string(),
        Reason::Alone => {
            "one node asks; if it asks once, it has the way out and back that it needs".to_string()
        }
        Reason::Between => format!("{necessary} is there, as it must be, but {sufficient} fails"),
        Reason::Undecided => {
            format!(
                "{necessary} is there, as it must be; a finite trace cannot promise {sufficient}"
            )
        }
    };
    format!("{verdict}: {why}")
}
