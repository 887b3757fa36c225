//! What theory expects of a run, where it covers such runs.

use catraca_algorithms::registry::Tabled;
use catraca_algorithms::{Load, Theory};

use crate::distribution::Distribution;
use crate::setup::Setup;
use crate::workload::Arrivals;

impl Setup {
    /// The load of the literature that this run has, if it has one of the two. Both have requesters
    /// that are equally likely, and one lock for every request.
    pub fn load(&self) -> Option<Load> {
        if self.workload.locality.is_some() || self.spec.is_ordered() {
            return None;
        }
        match self.workload.arrivals {
            Arrivals::Serial { .. } => Some(Load::Low),
            Arrivals::Closed { think: Distribution::ZERO, requesters: None, .. } => {
                Some(Load::High)
            }
            _ => None,
        }
    }

    /// What theory expects, at the loads that it covers.
    pub fn theory(&self) -> Option<Theory> {
        self.spec.theory(self.load()?).ok()
    }

    /// The messages per entry that S2's table claims, at the loads that it covers.
    pub fn claimed_messages(&self) -> Option<f64> {
        let load = self.load()?;
        Some((self.tabled()?.messages)(self.spec.nodes.into(), load))
    }

    fn tabled(&self) -> Option<Tabled> {
        self.spec.entry().ok()?.claims
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    fn messages(scenario: &Scenario) -> Option<(f64, Option<f64>)> {
        let setup = scenario.setup().unwrap();
        setup.theory().map(|theory| (theory.messages.min, setup.claimed_messages()))
    }

    #[test]
    fn theory_covers_the_two_loads_of_the_literature_only() {
        let base = Scenario::new().with("algorithm", "lamport").with("nodes", 4);
        assert_eq!(messages(&base), Some((9.0, Some(9.0))));
        let serial = base.clone().with("workload.arrivals", "serial");
        assert_eq!(messages(&serial), Some((9.0, Some(6.0))));
        let open = base.clone().with("workload.arrivals", "open").with("workload.rate", 1);
        let thinking = base.clone().with("workload.think", 1);
        let few = base.with("workload.requesters", "0,1");
        for other in [open, thinking, few] {
            assert_eq!(messages(&other), None, "{}", other.command());
        }
    }

    #[test]
    fn theory_covers_neither_local_requests_nor_single_locks_in_order() {
        let serial = Scenario::new().with("workload.arrivals", "serial").with("clusters", "2x2");
        let near = serial.clone().with("algorithm", "naimi-trehel").with("workload.locality", 0.9);
        assert!(messages(&near.clone().without("workload.locality")).is_some());
        assert_eq!(messages(&near), None);
        let ordered = serial.with("algorithm", "ordered:naimi-trehel").with("resources", 3);
        assert_eq!(messages(&ordered), None);
    }
}
