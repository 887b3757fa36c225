//! From what was said to a run of an algorithm that is in no registry.

use catraca_algorithms::{Channels, Spec};

use super::parse::DEFAULT_NODES;
use super::values::wrong;
use super::{Key, Scenario, ScenarioError};
use crate::setup::Setup;

/// What is said of a group with an algorithm of the catalogue alone.
const OF_REGISTERED: [&str; 11] = [
    "algorithm",
    "resources",
    "max-preempt",
    "proxies",
    "k",
    "test-interval",
    "test-timeout",
    "news",
    "ack-timeout",
    "tree",
    "quorum",
];

/// An algorithm that is in no registry, as far as a run has to know it. It guards one resource, and lets
/// one node in at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// What tables and traces call it.
    pub name: &'static str,
    /// What it needs of its channels.
    pub channels: Channels,
}

impl Own {
    /// Whether something can be said of its runs with this key.
    pub fn takes(key: &Key) -> bool {
        !OF_REGISTERED.contains(&key.path) && !super::members::is_of_members(key.path)
    }

    /// The group that `scenario` describes. The mutant is one of the algorithm's own, and not looked at.
    fn spec(self, scenario: &Scenario) -> Result<Spec, ScenarioError> {
        let in_clusters = scenario.cluster_shape()?.map(|(_, nodes)| nodes);
        let nodes = scenario.whole("nodes")?.or(in_clusters).unwrap_or(DEFAULT_NODES);
        let mut spec = Spec::new(self.name, nodes).starting(scenario.start()?);
        spec.mutant = scenario.text("mutant")?.map(str::to_string);
        spec.check_own()?;
        Ok(spec)
    }
}

impl Scenario {
    /// The run of `own` that was described, with defaults for all that was not said; for
    /// [`run_algorithm`](crate::run_algorithm).
    pub fn setup_own(&self, own: Own) -> Result<Setup, ScenarioError> {
        self.refuse_keys_of_members()?;
        if let Some(&key) = OF_REGISTERED.iter().find(|key| self.says(key)) {
            let what = format!("is for algorithms of the catalogue, not for '{}'", own.name);
            return Err(wrong(key, what));
        }
        self.setup_on(own.spec(self)?, own.channels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Order;

    const RING: Own = Own { name: "ring", channels: Channels::Fifo };

    fn error(scenario: &Scenario) -> String {
        scenario.setup_own(RING).unwrap_err().to_string()
    }

    #[test]
    fn a_run_of_an_own_algorithm_is_described_in_the_same_words() {
        let scenario = Scenario::new().with("nodes", 7).with("workload.rounds", 2);
        let setup = scenario.with("mutant", "greedy").setup_own(RING).unwrap();
        assert_eq!((&*setup.spec.algorithm, setup.spec.nodes), ("ring", 7));
        assert_eq!(setup.spec.mutant.as_deref(), Some("greedy"));
        assert_eq!(setup.network.order, Order::Fifo);
        assert_eq!(setup.theory(), None, "the catalogue knows nothing of it");
    }

    #[test]
    fn what_an_own_algorithm_cannot_have_is_refused() {
        let with = |key, value: &str| error(&Scenario::new().with(key, value));
        assert_eq!(with("k", "2"), "k: is for algorithms of the catalogue, not for 'ring'");
        assert!(with("algorithm", "lamport").starts_with("algorithm: is for"));
        assert!(with("nodes", "0").starts_with("'ring' runs on 1 to 1000000 nodes, not 0"));
        assert!(with("start", "token:9").contains("names node 9"));
        assert!(with("start", "inside:0|1").contains("lets one in at a time"));
        assert!(with("members", "3").contains("is for 'catraca sim'"));
    }

    #[test]
    fn every_key_is_for_own_algorithms_or_refused() {
        let taken: Vec<&str> = super::super::KEYS
            .iter()
            .filter(|key| Own::takes(key))
            .map(|key| key.path)
            .filter(|path| !path.contains('.'))
            .collect();
        assert_eq!(taken, ["nodes", "clusters", "mutant", "start"]);
    }
}
