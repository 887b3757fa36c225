//! From what was said to a run of members.

use catraca_group::Turns;

use super::values::wrong;
use super::{Scenario, ScenarioError};
use crate::members::{Setup, Waiting};
use crate::setup::Limits;
use crate::time::Time;

/// What can be said of members alone.
const OF_MEMBERS: [&str; 13] = [
    "members",
    "clients",
    "handovers",
    "turn-rounds",
    "ttl",
    "workload.at-once",
    "workload.tries",
    "workload.limited",
    "workload.limit",
    "workload.cancels",
    "workload.patience",
    "workload.vanishes",
    "output.log",
];

/// What can be said of nodes and of members.
const OF_BOTH: [&str; 23] = [
    "algorithm",
    "resources",
    "clusters",
    "k",
    "test-interval",
    "test-timeout",
    "news",
    "mutant",
    "workload.think",
    "workload.rounds",
    "workload.hold",
    "workload.claim",
    "workload.skew",
    "network.delay",
    "network.lan",
    "network.wan",
    "network.matrix",
    "faults.events",
    "run.seed",
    "run.entries",
    "run.time",
    "run.events",
    "output.json",
];

/// Whether something can be said with this key of members alone.
pub(super) fn is_of_members(key: &str) -> bool {
    OF_MEMBERS.contains(&key)
}

impl Scenario {
    /// The run of members that was described, if it is one of members.
    pub fn members(&self) -> Result<Option<Setup>, ScenarioError> {
        let Some(members) = self.whole("members")? else { return Ok(None) };
        let is_known = |key: &str| OF_MEMBERS.contains(&key) || OF_BOTH.contains(&key);
        if let Some(key) = self.values.keys().copied().find(|key| !is_known(key)) {
            let what = "belongs to runs of nodes; leave it out, or leave out 'members'";
            return Err(wrong(key, what));
        }
        let algorithm = self
            .text("algorithm")?
            .ok_or_else(|| wrong("algorithm", "is missing; 'catraca algorithms' lists them"))?;
        let usual = Setup::new(algorithm, members);
        let clusters = self.clusters(members)?;
        let locks = self.whole("resources")?.unwrap_or(usual.locks);
        let detector = self.hi_adsd()?.unwrap_or(usual.detector);
        let longest = Time(u64::try_from(detector.timeout.as_micros()).unwrap_or(u64::MAX));
        let setup = Setup {
            clients: self.whole("clients")?.unwrap_or(members),
            at_once: self.whole("workload.at-once")?.unwrap_or(usual.at_once),
            locks,
            permits: self.k(members)?.unwrap_or(usual.permits),
            claims: self.claims(locks)?,
            turns: Turns {
                handovers: self.whole("handovers")?.unwrap_or(usual.turns.handovers),
                rounds: self.whole("turn-rounds")?.unwrap_or(usual.turns.rounds),
            },
            hold: self.one("workload.hold")?.unwrap_or(usual.hold),
            think: self.one("workload.think")?.unwrap_or(usual.think),
            rounds: self.positive("workload.rounds")?,
            waiting: self.waiting(usual.waiting)?,
            ttl: self.ttl(usual.ttl.map(|ttl| ttl.min(longest)))?,
            latency: self.latency(clusters.as_ref())?,
            clusters,
            detector,
            faults: self.faults(members)?,
            seed: self.whole("run.seed")?.unwrap_or(usual.seed),
            limits: self.limits_of_members(usual.limits)?,
            most_events: self.positive("run.events")?.unwrap_or(usual.most_events),
            flaw: self.one("mutant")?,
            ..usual
        };
        setup.check()?;
        Ok(Some(setup))
    }

    fn waiting(&self, usual: Waiting) -> Result<Waiting, ScenarioError> {
        let share = |key| self.number(key, 0.0, 1.0).map(|share| share.unwrap_or(0.0));
        Ok(Waiting {
            tries: share("workload.tries")?,
            limited: share("workload.limited")?,
            limit: self.one("workload.limit")?.unwrap_or(usual.limit),
            cancels: share("workload.cancels")?,
            patience: self.one("workload.patience")?.unwrap_or(usual.patience),
            vanishes: share("workload.vanishes")?,
        })
    }

    fn ttl(&self, usual: Option<Time>) -> Result<Option<Time>, ScenarioError> {
        match self.text("ttl")? {
            Some("none") => Ok(None),
            Some(_) => self.one("ttl"),
            None => Ok(usual),
        }
    }

    fn limits_of_members(&self, usual: Limits) -> Result<Limits, ScenarioError> {
        let said = Limits { entries: self.positive("run.entries")?, time: self.one("run.time")? };
        let something_ends_it = said != Limits::default() || self.says("workload.rounds");
        Ok(if something_ends_it { said } else { usual })
    }

    /// What is said of members means nothing to a run of nodes.
    pub(super) fn refuse_keys_of_members(&self) -> Result<(), ScenarioError> {
        if self.says("members") {
            let what = "is for 'catraca sim'; leave it out, and say how many 'nodes' there are";
            return Err(wrong("members", what));
        }
        if let Some(key) = OF_MEMBERS.into_iter().find(|key| self.says(key)) {
            return Err(wrong(key, "belongs to runs of members; say how many with 'members'"));
        }
        let pauses = self.values("faults.events").iter().any(|fault| fault.starts_with("pause"));
        if pauses {
            let what = "members pause, and nodes do not; say how many with 'members'";
            return Err(wrong("faults.events", what));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KEYS;
    use crate::members::Flaw;

    fn base() -> Scenario {
        Scenario::new().with("algorithm", "naimi-trehel").with("members", 3)
    }

    fn error(scenario: Scenario) -> String {
        scenario.members().unwrap_err().to_string()
    }

    #[test]
    fn every_key_that_is_named_here_is_in_the_table() {
        for key in OF_MEMBERS.into_iter().chain(OF_BOTH) {
            assert!(KEYS.iter().any(|known| known.path == key), "{key}");
        }
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        assert_eq!(base().members().unwrap(), Some(Setup::new("naimi-trehel", 3)));
        assert_eq!(base().without("members").members(), Ok(None));
    }

    #[test]
    fn what_is_said_is_done() {
        let setup = base()
            .with("clients", 8)
            .with("handovers", 3)
            .with("turn-rounds", 2)
            .with("k", 2)
            .with("ttl", "none")
            .with("workload.rounds", 4)
            .with("workload.tries", "0.5")
            .with("mutant", "drops-grants")
            .members();
        let setup = setup.unwrap().unwrap();
        assert_eq!((setup.clients, setup.permits, setup.ttl), (8, 2, None));
        assert_eq!(setup.turns, Turns { handovers: 3, rounds: 2 });
        assert_eq!((setup.rounds, setup.limits), (Some(4), Limits::default()));
        assert_eq!((setup.waiting.tries, setup.flaw), (0.5, Some(Flaw::DropsGrants)));
    }

    #[test]
    fn a_session_is_no_longer_than_a_crash_takes_to_be_found() {
        let robust = Scenario::new().with("algorithm", "robust-k").with("members", 3);
        let robust = robust.with("test-interval", 2).with("test-timeout", 4);
        assert_eq!(robust.members().unwrap().unwrap().ttl, Some(Time::units(4)));
        assert!(error(robust.with("ttl", 5)).contains("taken for crashed after 4"));
    }

    #[test]
    fn members_and_nodes_are_not_mixed() {
        assert!(error(base().with("nodes", 5)).starts_with("nodes: belongs to runs of nodes"));
        let nodes = |scenario: Scenario| scenario.setup().unwrap_err().to_string();
        assert!(nodes(base()).starts_with("members: is for 'catraca sim'"));
        let plain = base().without("members");
        assert!(nodes(plain.clone().with("clients", 5)).contains("say how many with 'members'"));
        let paused = plain.with("faults.events", "pause 1 from 2 to 3");
        assert!(nodes(paused).contains("members pause"));
        assert_eq!(error(base().with("members", 65)), "there are 1 to 64 members, not 65");
        assert!(error(base().with("mutant", "x")).contains("repeats-messages, loses-messages"));
    }
}
