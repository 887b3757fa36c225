//! Random small runs of members, for tests that look for what nobody has thought of.

use catraca_algorithms::registry::Entry;

use crate::random::Random;
use crate::scenario::Scenario;

/// A small run of the algorithm of `entry`, of which the seed decides everything else. Everybody is
/// served in the end, unless a member crashes.
pub fn random_scenario(entry: &Entry, seed: u64) -> Scenario {
    Draw { random: Random::new(seed), scenario: Scenario::new().with("run.seed", seed) }.all(entry)
}

struct Draw {
    random: Random,
    scenario: Scenario,
}

impl Draw {
    fn all(mut self, entry: &Entry) -> Scenario {
        let members = 1 + self.random.below(5);
        self.say("algorithm", entry.name);
        self.say("members", members);
        let clients = 1 + self.random.below(12);
        self.say("clients", clients);
        self.one_of("handovers", &["0", "1", "2", "16"]);
        self.one_of("workload.at-once", &["1", "1", "2", "3"]);
        self.one_of("workload.rounds", &["1", "2", "5", "10"]);
        self.one_of("workload.hold", &["0", "0.3", "exp:0.5", "uniform:0..3"]);
        self.one_of("workload.think", &["0", "exp:0.3", "exp:3"]);
        self.locks(entry);
        self.waiting();
        let is_robust = entry.parameters.contains(&"test-interval");
        if is_robust {
            // Nobody who answers may be taken for crashed.
            self.one_of("network.delay", &["0", "0.3", "uniform:0.1..1"]);
        } else {
            self.one_of("network.delay", &["0", "0.3", "uniform:0.1..1", "exp:1", "uniform:0..9"]);
        }
        self.faults(members, is_robust);
        self.scenario
    }

    fn say(&mut self, key: &'static str, value: impl ToString) {
        self.scenario = std::mem::take(&mut self.scenario).with(key, value);
    }

    fn one_of(&mut self, key: &'static str, choices: &[&str]) {
        let choice = choices[self.random.below(choices.len() as u64) as usize];
        self.say(key, choice);
    }

    fn locks(&mut self, entry: &Entry) {
        let locks = 1 + self.random.below(4);
        self.say("resources", locks);
        let takes_sets = entry.parameters.contains(&"resources");
        if locks > 1 && (takes_sets || self.random.below(4) == 0) {
            let most = 1 + self.random.below(locks);
            self.say("workload.claim", format!("1..{most}"));
        } else {
            self.one_of("k", &["1", "1", "2", "3"]);
        }
    }

    fn waiting(&mut self) {
        self.one_of("ttl", &["none", "3", "10"]);
        for key in ["workload.tries", "workload.limited", "workload.cancels"] {
            self.one_of(key, &["0", "0", "0.2", "0.5"]);
        }
        self.one_of("workload.vanishes", &["0", "0", "0.1"]);
        self.one_of("workload.limit", &["0", "1", "exp:2"]);
        self.one_of("workload.patience", &["0", "1", "exp:2"]);
    }

    /// Links and members that are slow for a while, and now and then a crash.
    fn faults(&mut self, members: u64, is_robust: bool) {
        let mut faults = Vec::new();
        let longest = if is_robust { 3 } else { 30 };
        for _ in 0..self.random.below(4) {
            let from = self.random.below(20);
            let to = from + self.random.below(longest);
            let [one, other] = [self.random.below(members), self.random.below(members)];
            faults.push(match self.random.below(3) {
                0 => format!("hold {one}->{other} from {from} to {to}"),
                1 => format!("partition {one} from {from} to {to}"),
                _ => format!("pause {one} from {from} to {to}"),
            });
        }
        if members > 1 && self.random.below(if is_robust { 2 } else { 8 }) == 0 {
            let (member, at) = (self.random.below(members), self.random.below(20));
            faults.push(format!("crash {member} at {at}"));
        }
        // The key is in the table, and takes a list.
        let said = self.scenario.set("faults.events", faults);
        debug_assert!(said.is_ok());
    }
}
