//! From what was said to a run.

use std::time::Duration;

use catraca_algorithms::{Channels, Spec, hi_adsd};
use catraca_core::Start;
use catraca_trace::parse_start;

use super::values::{parse_all, wrong};
use super::{Scenario, ScenarioError};
use crate::faults::Faults;
use crate::setup::{Limits, MOST_EVENTS, Setup};
use crate::time::Time;
use crate::workload::Workload;

/// The nodes of a group about which nothing is said.
pub(super) const DEFAULT_NODES: u32 = 5;

/// How often a message may be repeated while the first takes its way.
const MOST_REPEATS: f64 = 1000.0;

/// The entries of a run that nothing else ends.
pub(super) const DEFAULT_ENTRIES: u64 = 1000;

impl Scenario {
    /// The run that was described, with defaults for all that was not said.
    pub fn setup(&self) -> Result<Setup, ScenarioError> {
        self.refuse_keys_of_members()?;
        let spec = self.spec()?;
        spec.check()?;
        let channels = spec.entry()?.channels;
        self.setup_on(spec, channels)
    }

    /// The run of a group that has been looked at, whose algorithm needs such `channels`.
    pub(super) fn setup_on(&self, spec: Spec, channels: Channels) -> Result<Setup, ScenarioError> {
        let clusters = self.clusters(spec.nodes)?;
        let workload = self.workload(&spec, clusters.as_ref())?;
        let network = self.network(channels, clusters.as_ref())?;
        let limits = self.limits(&workload)?;
        self.refuse_hasty_timers(network.latency.mean())?;
        Ok(Setup {
            faults: self.faults(spec.nodes)?,
            detector: self.one("faults.detector")?,
            seed: self.whole("run.seed")?.unwrap_or(1),
            limits,
            warmup: self.count("run.warmup")?.unwrap_or(0),
            max_bypass: self.whole("run.max-bypass")?,
            most_events: self.positive("run.events")?.unwrap_or(MOST_EVENTS),
            spec,
            clusters,
            workload,
            network,
        })
    }

    /// How many resources are guarded.
    pub fn resource_count(&self) -> Result<u32, ScenarioError> {
        Ok(self.whole("resources")?.unwrap_or(1))
    }

    /// The group that was described. Whether there can be such a group is not looked at.
    pub fn spec(&self) -> Result<Spec, ScenarioError> {
        let algorithm = self
            .text("algorithm")?
            .ok_or_else(|| wrong("algorithm", "is missing; 'catraca algorithms' lists them"))?;
        let clusters = self.cluster_shape()?;
        let in_clusters = clusters.as_ref().map(|(_, nodes)| *nodes);
        let nodes = self.whole("nodes")?.or(in_clusters).unwrap_or(DEFAULT_NODES);
        let mut spec = Spec::new(algorithm, nodes);
        // The clusters of the network are not the business of every algorithm.
        if spec.entry()?.parameters.contains(&"clusters") {
            spec.clusters = clusters.map(|(shape, _)| shape);
        }
        spec.proxies = self.one("proxies")?;
        spec.max_preempt = self.whole("max-preempt")?;
        spec.k = self.k(nodes)?;
        spec.hi_adsd = self.hi_adsd()?;
        spec.ack_timeout = self.duration("ack-timeout")?;
        spec.resources = self.whole("resources")?;
        spec.tree = self.one("tree")?;
        spec.quorum = self.one("quorum")?;
        spec.mutant = self.text("mutant")?.map(str::to_string);
        spec.start = self.start()?;
        Ok(spec)
    }

    pub(super) fn start(&self) -> Result<Start, ScenarioError> {
        let Some(text) = self.text("start")? else { return Ok(Start::idle()) };
        parse_start(text).map_err(|error| wrong("start", error))
    }

    /// A number, or a part of the nodes: `N/2` is half of them, and never less than one.
    pub(super) fn k(&self, nodes: u32) -> Result<Option<u32>, ScenarioError> {
        let part = self.text("k")?.and_then(|text| text.strip_prefix("N/"));
        let Some(part) = part else { return self.whole("k") };
        match part.parse::<u32>() {
            Ok(part) if part > 0 => Ok(Some((nodes / part).max(1))),
            _ => Err(wrong("k", format!("'N/{part}' is no part of the nodes; say N/2 or N/4"))),
        }
    }

    pub(super) fn hi_adsd(&self) -> Result<Option<hi_adsd::Config>, ScenarioError> {
        let needed = |key, because| Err(wrong(key, format!("is missing; '{because}' needs it")));
        let (interval, timeout) = (self.duration("test-interval")?, self.duration("test-timeout")?);
        match (interval, timeout) {
            (None, None) if self.says("news") => needed("test-interval", "news"),
            (None, None) => Ok(None),
            (None, Some(_)) => needed("test-interval", "test-timeout"),
            (Some(_), None) => needed("test-timeout", "test-interval"),
            (Some(interval), Some(timeout)) => {
                let news = self.one("news")?.unwrap_or_default();
                Ok(Some(hi_adsd::Config { interval, timeout, news }))
            }
        }
    }

    /// Who sends again long before an answer can come fills the network with nothing else.
    fn refuse_hasty_timers(&self, latency: f64) -> Result<(), ScenarioError> {
        for key in ["ack-timeout", "test-interval"] {
            let Some(time) = self.one::<Time>(key)? else { continue };
            if time.as_units() * MOST_REPEATS < latency {
                let what = format!(
                    "'{time}' is less than a thousandth of what a message takes ({latency}), so \
                     thousands would be on their way before the first arrives; make it longer"
                );
                return Err(wrong(key, what));
            }
        }
        Ok(())
    }

    /// A time as an algorithm takes it: a unit is its second.
    fn duration(&self, key: &'static str) -> Result<Option<Duration>, ScenarioError> {
        let time: Option<Time> = self.one(key)?;
        Ok(time.map(|Time(ticks)| Duration::from_micros(ticks)))
    }

    pub(super) fn faults(&self, nodes: u32) -> Result<Faults, ScenarioError> {
        const KEY: &str = "faults.events";
        let faults = parse_all(KEY, self.texts(KEY))?;
        Faults::new(faults, nodes).map_err(|error| wrong(KEY, error))
    }

    fn limits(&self, workload: &Workload) -> Result<Limits, ScenarioError> {
        let (entries, time) = (self.positive("run.entries")?, self.one("run.time")?);
        let nothing_ends_it = entries.is_none() && time.is_none() && workload.arrivals.is_endless();
        Ok(Limits { entries: entries.or(nothing_ends_it.then_some(DEFAULT_ENTRIES)), time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Order;

    fn base() -> Scenario {
        Scenario::new().with("algorithm", "ricart-agrawala")
    }

    fn error(scenario: Scenario) -> String {
        scenario.setup().unwrap_err().to_string()
    }

    #[test]
    fn k_may_be_a_part_of_the_nodes() {
        let k = |nodes: u32, k: &str| {
            let scenario = Scenario::new().with("algorithm", "raymond-k").with("nodes", nodes);
            scenario.with("k", k).setup().map(|setup| setup.spec.k)
        };
        assert_eq!(k(16, "5"), Ok(Some(5)));
        assert_eq!(k(17, "N/2"), Ok(Some(8)));
        assert_eq!(k(3, "N/8"), Ok(Some(1)));
        assert!(k(16, "N/0").unwrap_err().to_string().contains("'N/0' is no part of the nodes"));
        assert!(k(16, "N/x").is_err() && k(16, "n/2").is_err());
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let setup = base().setup().unwrap();
        assert_eq!(setup.spec.nodes, 5);
        assert_eq!(setup.network.order, Order::Any);
        assert_eq!(setup.limits, Limits { entries: Some(1000), time: None });
    }

    #[test]
    fn a_finite_workload_needs_no_limit() {
        let setup = base().with("workload.rounds", 2).setup().unwrap();
        assert_eq!(setup.limits, Limits::default());
    }

    #[test]
    fn impossible_values_name_their_key_and_the_remedy() {
        assert!(error(Scenario::new()).starts_with("algorithm: is missing"));
        assert_eq!(
            error(base().with("nodes", 0)),
            "'ricart-agrawala' runs on 1 to 16384 nodes, not 0"
        );
        assert!(error(base().with("nodes", "-3")).starts_with("nodes: '-3' is no whole number"));
        assert!(error(base().with("nodes", "99999999999")).ends_with("'99999999999' is too large"));
        assert!(error(base().with("workload.hold", "-1")).contains("constant:1, uniform:0.5..1.5"));
        assert!(error(base().with("workload.rate", 3)).contains("belongs to 'open' arrivals"));
        assert!(error(base().with("workload.arrivals", "open")).contains("'open' needs it"));
        assert!(error(base().with("workload.arrivals", "often")).contains("say closed, serial"));
        let open = base().with("workload.arrivals", "open");
        assert!(error(open.clone().with("workload.rate", "-2")).contains("is not between"));
        assert!(error(open.with("workload.rate", "NaN")).contains("is not between"));
        assert!(error(base().with("run.entries", 0)).contains("at least 1"));
        assert!(error(base().with("faults.events", "crash 9 at 1")).contains("nodes are 0 to 4"));
        assert!(error(base().with("start", "inside:7")).contains("names node 7"));
        let elsewhere = base().with("start", "inside:1 token:2");
        assert!(error(elsewhere).contains("put both at one node"));
        let schedule = base().with("workload.arrivals", "schedule");
        assert!(error(schedule.clone()).contains("list requests"));
        assert!(error(schedule.with("workload.schedule", "9 at 1")).contains("nodes are 0 to 4"));
    }
}
