//! What was measured, and what it says about the goals.

use serde::Serialize;

use super::load::{Figures, LOADS};
use super::systems::{Measured, System};

/// Where the processes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cores {
    /// All of them on one core.
    Pinned,
    /// Wherever the system puts them.
    Free,
}

impl Cores {
    pub(super) const ALL: [Cores; 2] = [Cores::Pinned, Cores::Free];

    pub(super) fn word(self) -> &'static str {
        match self {
            Cores::Pinned => "pinned",
            Cores::Free => "free",
        }
    }
}

/// The figures of one system under one load.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    pub(super) system: &'static str,
    pub(super) cores: Cores,
    pub(super) load: &'static str,
    #[serde(flatten)]
    pub(super) figures: Figures,
}

/// Everything that was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Results {
    pub(super) lines: Vec<Line>,
    /// What could not be measured, and why.
    pub(super) missing: Vec<(String, String)>,
}

impl Results {
    /// Adds what the rounds of one system have shown: of each load the round in the middle, by its
    /// rate, and the violations of all rounds.
    pub(super) fn add(&mut self, system: &System, cores: Cores, rounds: &[Measured]) {
        for load in &LOADS {
            let mut of_load: Vec<&Figures> =
                rounds.iter().filter_map(|round| round.get(load.key)).collect();
            of_load.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
            let Some(middle) = of_load.get(of_load.len() / 2) else { continue };
            let violations = of_load.iter().map(|figures| figures.violations).sum();
            let figures = Figures { violations, ..(*middle).clone() };
            self.lines.push(Line { system: system.key, cores, load: load.key, figures });
        }
    }

    pub(super) fn figures(&self, system: &str, cores: Cores, load: &str) -> Option<&Figures> {
        let is_it =
            |line: &&Line| line.system == system && line.cores == cores && line.load == load;
        self.lines.iter().find(is_it).map(|line| &line.figures)
    }

    /// How often two were inside, in all that was measured.
    pub(super) fn violations(&self) -> u64 {
        self.lines.iter().map(|line| line.figures.violations).sum()
    }
}

/// What a ratio should be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Of {
    /// Acquired and released, per second.
    Entries,
    /// How often the lock went to another client, per second.
    HandOvers,
    /// How long that took, by the median.
    HandOverTime,
}

impl Of {
    pub(super) fn words(self) -> &'static str {
        match self {
            Of::Entries => "entries per s",
            Of::HandOvers => "hand-overs per s",
            Of::HandOverTime => "hand-over time",
        }
    }

    fn figure(self, figures: &Figures) -> Option<f64> {
        let contended = figures.contended.as_ref();
        match self {
            Of::Entries => Some(figures.per_second),
            Of::HandOvers => Some(contended?.hand_overs_per_second),
            Of::HandOverTime => Some(contended?.hand_over?[0]),
        }
    }
}

/// A ratio under one load, beside what it should be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Ratio {
    pub(super) ours: &'static str,
    pub(super) peer: &'static str,
    /// What is compared.
    pub(super) of: Of,
    pub(super) cores: Cores,
    pub(super) load: &'static str,
    pub(super) ratio: f64,
    pub(super) goal: Bound,
}

impl Ratio {
    pub(super) fn is_met(&self) -> bool {
        match self.goal {
            Bound::AtLeast(least) => self.ratio >= least,
            Bound::AtMost(most) => self.ratio <= most,
        }
    }

    /// Which of two is further from its goal.
    pub(super) fn worse(self, other: Ratio) -> Ratio {
        let is_worse = match self.goal {
            Bound::AtLeast(_) => other.ratio < self.ratio,
            Bound::AtMost(_) => other.ratio > self.ratio,
        };
        if is_worse { other } else { self }
    }
}

const ALONE: [&str; 2] = ["one", "apart"];
const CONTENDED: [&str; 2] = ["eight", "crowd"];
const EVERY: [&str; 4] = ["one", "apart", "eight", "crowd"];
/// Each of ours with the peers of its size.
const REPLICATED: [(&str, [&str; 2]); 7] = [
    ("native-1", ["etcd-1", "zookeeper-1"]),
    ("native-3", ["etcd-3", "zookeeper-3"]),
    ("resp-1", ["etcd-1", "zookeeper-1"]),
    ("resp-3", ["etcd-3", "zookeeper-3"]),
    ("resp-keys", ["etcd-1", "zookeeper-1"]),
    ("http-1", ["etcd-1", "zookeeper-1"]),
    ("http-3", ["etcd-3", "zookeeper-3"]),
];

/// The peers whose goals nothing can meet that a bare server does not, by figure and load.
const BOUNDED: [(&str, Of, &[&str]); 6] = [
    ("redis", Of::Entries, &EVERY),
    ("redis", Of::HandOvers, &CONTENDED),
    ("redis-fast", Of::Entries, &CONTENDED),
    ("redis-fast", Of::HandOvers, &CONTENDED),
    ("etcd-1", Of::Entries, &EVERY),
    ("zookeeper-1", Of::Entries, &EVERY),
];

/// All ratios that have a goal, as far as they were measured; those of one goal follow each other.
pub(super) fn ratios(results: &Results) -> Vec<Ratio> {
    use Bound::{AtLeast, AtMost};
    let mut ratios = Vec::new();
    for cores in Cores::ALL {
        let mut compare = |ours, peer, of: Of, loads: &[&'static str], goal| {
            for &load in loads {
                let figure = |system| of.figure(results.figures(system, cores, load)?);
                let (Some(one), Some(other)) = (figure(ours), figure(peer)) else { continue };
                let ratio = one / other;
                ratios.push(Ratio { ours, peer, of, cores, load, ratio, goal });
            }
        };
        for ours in ["resp-1", "resp-keys"] {
            compare(ours, "redis", Of::Entries, &ALONE, AtLeast(1.0));
            for peer in ["redis", "redis-fast"] {
                compare(ours, peer, Of::Entries, &CONTENDED, AtLeast(5.0));
                compare(ours, peer, Of::HandOvers, &CONTENDED, AtLeast(5.0));
            }
        }
        for (ours, peers) in REPLICATED {
            for peer in peers {
                compare(ours, peer, Of::Entries, &EVERY, AtLeast(10.0));
            }
        }
        for ours in ["native-1", "resp-1", "resp-keys", "http-1"] {
            compare(ours, "bare", Of::HandOverTime, &CONTENDED, AtMost(2.0));
        }
    }
    ratios
}

/// What no lock service over TCP could exceed: how much quicker than a peer a server is that does nothing else
/// but to hand a lock on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Ceiling {
    pub(super) peer: &'static str,
    /// What is compared.
    pub(super) of: Of,
    pub(super) cores: Cores,
    pub(super) load: &'static str,
    /// The bare server's figure by that of the peer.
    pub(super) ratio: f64,
}

/// The ceilings of all goals that compare entries or hand-overs with one server, as far as they were measured.
pub(super) fn ceilings(results: &Results) -> Vec<Ceiling> {
    let mut ceilings = Vec::new();
    for cores in Cores::ALL {
        for (peer, of, loads) in BOUNDED {
            for &load in loads {
                let figure = |system| of.figure(results.figures(system, cores, load)?);
                let (Some(bare), Some(other)) = (figure("bare"), figure(peer)) else { continue };
                ceilings.push(Ceiling { peer, of, cores, load, ratio: bare / other });
            }
        }
    }
    ceilings
}

/// Of each goal the load that is furthest from it.
pub(super) fn worst(ratios: &[Ratio]) -> Vec<Ratio> {
    let is_same = |one: &Ratio, other: &Ratio| {
        let same = (one.ours, one.peer, one.of) == (other.ours, other.peer, other.of);
        same && (one.cores, one.goal) == (other.cores, other.goal)
    };
    let chunks = ratios.chunk_by(is_same);
    chunks.filter_map(|chunk| chunk.iter().cloned().reduce(Ratio::worse)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::load::Contended;
    use super::super::systems::SYSTEMS;
    use super::*;

    fn figures(per_second: f64, hand_over: f64, violations: u64) -> Figures {
        let hand_over = Some([hand_over, hand_over]);
        let contended = Contended { hand_over, hand_overs_per_second: per_second, jain: 1.0 };
        let contended = Some(contended);
        Figures { per_second, contended, violations }
    }

    fn results(given: &[(&str, &'static str, f64, f64)]) -> Results {
        let mut results = Results::default();
        for &(key, load, rate, time) in given {
            let system = SYSTEMS.iter().find(|system| system.key == key).unwrap();
            let round = Measured::from([(load, figures(rate, time, 0))]);
            results.add(system, Cores::Free, &[round]);
        }
        results
    }

    #[test]
    fn of_several_rounds_the_middle_one_counts_and_no_violation_is_forgotten() {
        let rounds = [(30.0, 0), (10.0, 2), (20.0, 1)]
            .map(|(rate, violations)| Measured::from([("one", figures(rate, 1.0, violations))]));
        let mut results = Results::default();
        results.add(&SYSTEMS[0], Cores::Free, &rounds);
        let figures = results.figures(SYSTEMS[0].key, Cores::Free, "one").unwrap();
        assert_eq!((figures.per_second, figures.violations), (20.0, 3));
        assert_eq!(results.violations(), 3);
    }

    #[test]
    fn a_goal_is_judged_by_the_load_that_is_furthest_from_it() {
        let results = results(&[
            ("redis", "one", 100.0, 0.0),
            ("resp-1", "one", 150.0, 0.0),
            ("redis", "apart", 100.0, 0.0),
            ("resp-1", "apart", 90.0, 0.0),
            ("bare", "eight", 1.0, 10.0),
            ("native-1", "eight", 1.0, 15.0),
            ("bare", "crowd", 1.0, 10.0),
            ("native-1", "crowd", 1.0, 30.0),
        ]);
        let worst = worst(&ratios(&results));
        let told: Vec<_> =
            worst.iter().map(|it| (it.ours, it.load, it.ratio, it.is_met())).collect();
        assert_eq!(told, [("resp-1", "apart", 0.9, false), ("native-1", "crowd", 3.0, false)]);
    }

    #[test]
    fn a_ceiling_is_what_a_server_reaches_that_only_hands_a_lock_on() {
        let results = results(&[
            ("bare", "eight", 300.0, 10.0),
            ("redis", "eight", 200.0, 10.0),
            ("redis", "one", 200.0, 10.0),
        ]);
        let all: Vec<_> =
            ceilings(&results).iter().map(|it| (it.peer, it.of, it.load, it.ratio)).collect();
        let of = |of| ("redis", of, "eight", 1.5);
        assert_eq!(all, [of(Of::Entries), of(Of::HandOvers)]);
    }

    #[test]
    fn every_goal_names_systems_and_loads_that_there_are() {
        let mut all = Results::default();
        for system in SYSTEMS {
            let round: Measured =
                LOADS.iter().map(|load| (load.key, figures(1.0, 1.0, 0))).collect();
            for cores in Cores::ALL {
                all.add(system, cores, std::slice::from_ref(&round));
            }
        }
        // Redis: 2 of 2 + 2 times (2 + 2) loads. Replicated: 14 pairs of 4 loads. Hand-over: 4 of 2 loads.
        assert_eq!(ratios(&all).len(), 2 * (20 + 56 + 8));
        // Redis: 4 + 2 loads, 2 + 2 where it is asked more often. etcd and ZooKeeper: 4 each.
        assert_eq!(ceilings(&all).len(), 2 * 18);
    }
}
