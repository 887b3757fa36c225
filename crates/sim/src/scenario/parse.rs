//! From what was said to a run.

use std::fmt::Display;
use std::num::IntErrorKind;
use std::str::FromStr;

use catraca_algorithms::Spec;
use catraca_core::{NodeId, Start};

use super::keys;
use super::{Scenario, ScenarioError};
use crate::distribution::Distribution;
use crate::faults::Faults;
use crate::network::{Latency, Network, Order};
use crate::setup::{Limits, Setup};
use crate::time::{TICKS_PER_UNIT, Time};
use crate::workload::{Arrivals, Workload};

/// The most entries, rounds and the like that can be asked for.
const MAX_COUNT: u64 = 1_000_000_000_000;

/// The entries of a run that nothing else ends.
const DEFAULT_ENTRIES: u64 = 1000;

fn wrong(key: &'static str, what: impl Display) -> ScenarioError {
    ScenarioError::Value { key, what: what.to_string() }
}

impl Scenario {
    /// The run that was described, with defaults for all that was not said.
    pub fn setup(&self) -> Result<Setup, ScenarioError> {
        let spec = self.spec()?;
        spec.check()?;
        let workload = self.workload(spec.nodes)?;
        let network = self.network(&spec)?;
        let limits = self.limits(&workload)?;
        Ok(Setup {
            faults: self.faults(spec.nodes)?,
            detector: self.one("faults.detector")?,
            seed: self.whole("run.seed")?.unwrap_or(1),
            limits,
            warmup: self.count("run.warmup")?.unwrap_or(0),
            max_bypass: self.whole("run.max-bypass")?,
            spec,
            workload,
            network,
        })
    }

    fn spec(&self) -> Result<Spec, ScenarioError> {
        let algorithm = self
            .text("algorithm")?
            .ok_or_else(|| wrong("algorithm", "is missing; 'catraca algorithms' lists them"))?;
        let mut spec = Spec::new(algorithm, self.whole("nodes")?.unwrap_or(5));
        spec.tree = self.one("tree")?;
        spec.quorum = self.one("quorum")?;
        spec.mutant = self.text("mutant")?.map(str::to_string);
        let inside: Option<u32> = self.whole("start.inside")?;
        let token = self.whole("start.token")?.or(inside).unwrap_or(0);
        spec.start = Start::token_at(NodeId(token));
        if let Some(inside) = inside {
            spec.start = spec.start.and_inside(NodeId(inside), catraca_core::Claim::single());
        }
        Ok(spec)
    }

    fn workload(&self, nodes: u32) -> Result<Workload, ScenarioError> {
        let kind = self.text("workload.arrivals")?.unwrap_or("closed");
        self.refuse_what_does_not_belong(kind)?;
        let needed = |key| wrong(key, format!("is missing; '{kind}' needs it"));
        let arrivals = match kind {
            "closed" => Arrivals::Closed {
                think: self.one("workload.think")?.unwrap_or(Distribution::ZERO),
                rounds: self.positive("workload.rounds")?,
            },
            "serial" => {
                let pause = self.one("workload.pause")?;
                Arrivals::Serial { pause: pause.unwrap_or(Distribution::Constant(Time::units(5))) }
            }
            "open" => {
                let rate = self.text("workload.rate")?.ok_or_else(|| needed("workload.rate"))?;
                Arrivals::Open { interval: interval(rate)? }
            }
            "bursts" => {
                let size =
                    self.positive("workload.burst")?.ok_or_else(|| needed("workload.burst"))?;
                let every: Time =
                    self.one("workload.every")?.ok_or_else(|| needed("workload.every"))?;
                if every == Time::ZERO {
                    return Err(wrong("workload.every", "must be more than 0"));
                }
                Arrivals::Bursts { size, every }
            }
            "schedule" => Arrivals::Schedule(self.schedule(nodes)?),
            other => {
                let what = format!(
                    "'{other}' is no kind of arrivals: say closed, serial, open, bursts or schedule"
                );
                return Err(wrong("workload.arrivals", what));
            }
        };
        let hold = self.one("workload.hold")?.unwrap_or(Distribution::Constant(Time::units(1)));
        Ok(Workload { arrivals, hold })
    }

    /// A key of another kind of arrivals would be ignored in silence.
    fn refuse_what_does_not_belong(&self, kind: &str) -> Result<(), ScenarioError> {
        let belongs: [(&'static str, &str); 7] = [
            ("workload.think", "closed"),
            ("workload.rounds", "closed"),
            ("workload.pause", "serial"),
            ("workload.rate", "open"),
            ("workload.burst", "bursts"),
            ("workload.every", "bursts"),
            ("workload.schedule", "schedule"),
        ];
        for (key, owner) in belongs {
            if kind != owner && self.values.contains_key(key) {
                let what = format!(
                    "belongs to '{owner}' arrivals, and these are '{kind}'; leave it out or choose '{owner}'"
                );
                return Err(wrong(key, what));
            }
        }
        Ok(())
    }

    fn schedule(&self, nodes: u32) -> Result<Vec<(Time, NodeId)>, ScenarioError> {
        const KEY: &str = "workload.schedule";
        let request = |text: &String| {
            let form = || wrong(KEY, format!("'{text}' is no request: say '2 at 1.5'"));
            let (node, at) = text.split_once(" at ").ok_or_else(form)?;
            let node: u32 = node.trim().parse().map_err(|_| form())?;
            let at = at.trim().parse().map_err(|error| wrong(KEY, error))?;
            if node >= nodes {
                let what =
                    format!("'{text}' names node {node}, but the nodes are 0 to {}", nodes - 1);
                return Err(wrong(KEY, what));
            }
            Ok((at, NodeId(node)))
        };
        let requests: Vec<_> =
            self.texts(KEY).iter().map(request).collect::<Result<_, ScenarioError>>()?;
        if requests.is_empty() {
            return Err(wrong(KEY, "is missing; list requests as in '2 at 1.5'"));
        }
        Ok(requests)
    }

    fn network(&self, spec: &Spec) -> Result<Network, ScenarioError> {
        let order = match self.one("network.order")? {
            Some(order) => order,
            None => Order::from(spec.entry()?.channels),
        };
        Ok(Network { latency: self.latency(spec.nodes)?, order })
    }

    fn latency(&self, nodes: u32) -> Result<Latency, ScenarioError> {
        let (sizes, rows) = (self.texts("network.clusters"), self.texts("network.matrix"));
        if sizes.is_empty() && rows.is_empty() {
            let delay = self.one("network.delay")?;
            return Ok(Latency::Uniform(delay.unwrap_or(Distribution::Constant(Time::units(1)))));
        }
        if self.values.contains_key("network.delay") {
            return Err(wrong("network.delay", "is said by the matrix already; leave one out"));
        }
        let sizes: Vec<u32> =
            sizes.iter().map(|size| whole("network.clusters", size)).collect::<Result<_, _>>()?;
        if sizes.contains(&0)
            || sizes.iter().map(|&size| u64::from(size)).sum::<u64>() != u64::from(nodes)
        {
            let what = format!("the sizes must be at least 1 and add up to the {nodes} nodes");
            return Err(wrong("network.clusters", what));
        }
        let row = |row: &String| {
            let cells: Vec<String> = row.split_whitespace().map(str::to_string).collect();
            parse_all("network.matrix", &cells)
        };
        let matrix: Vec<Vec<Distribution>> = rows.iter().map(row).collect::<Result<_, _>>()?;
        if matrix.len() != sizes.len() || matrix.iter().any(|row| row.len() != sizes.len()) {
            let what = format!("must have {0} rows of {0} distributions", sizes.len());
            return Err(wrong("network.matrix", what));
        }
        let clusters = (0u32..).zip(&sizes);
        let of = clusters.flat_map(|(cluster, &size)| (0..size).map(move |_| cluster)).collect();
        Ok(Latency::Clusters { of, matrix })
    }

    fn faults(&self, nodes: u32) -> Result<Faults, ScenarioError> {
        const KEY: &str = "faults.events";
        let faults = parse_all(KEY, self.texts(KEY))?;
        Faults::new(faults, nodes).map_err(|error| wrong(KEY, error))
    }

    fn limits(&self, workload: &Workload) -> Result<Limits, ScenarioError> {
        let (entries, time) = (self.positive("run.entries")?, self.one("run.time")?);
        let nothing_ends_it = entries.is_none() && time.is_none() && workload.arrivals.is_endless();
        Ok(Limits { entries: entries.or(nothing_ends_it.then_some(DEFAULT_ENTRIES)), time })
    }

    fn texts(&self, key: &'static str) -> &[String] {
        debug_assert!(keys::find(key).is_some(), "{key} is in the table");
        self.values.get(key).map_or(&[], Vec::as_slice)
    }

    fn text(&self, key: &'static str) -> Result<Option<&str>, ScenarioError> {
        match self.texts(key) {
            [] => Ok(None),
            [text] => Ok(Some(text)),
            _ => Err(wrong(key, "takes one value, not a list")),
        }
    }

    fn one<T: FromStr<Err: Display>>(&self, key: &'static str) -> Result<Option<T>, ScenarioError> {
        self.text(key)?.map(|text| parse_one(key, text)).transpose()
    }

    fn whole<T: TryFrom<u64>>(&self, key: &'static str) -> Result<Option<T>, ScenarioError> {
        self.text(key)?.map(|text| whole(key, text)).transpose()
    }

    fn count(&self, key: &'static str) -> Result<Option<u64>, ScenarioError> {
        let Some(count) = self.whole(key)? else { return Ok(None) };
        if count > MAX_COUNT {
            return Err(wrong(key, format!("{count} is more than {MAX_COUNT}")));
        }
        Ok(Some(count))
    }

    fn positive<T: TryFrom<u64>>(&self, key: &'static str) -> Result<Option<T>, ScenarioError> {
        match self.count(key)? {
            None => Ok(None),
            Some(0) => Err(wrong(key, "must be at least 1")),
            Some(count) => match T::try_from(count) {
                Ok(count) => Ok(Some(count)),
                Err(_) => Err(wrong(key, format!("{count} is too large"))),
            },
        }
    }
}

fn whole<T: TryFrom<u64>>(key: &'static str, text: &str) -> Result<T, ScenarioError> {
    let too_large = || wrong(key, format!("'{text}' is too large"));
    match text.parse::<u64>() {
        Ok(number) => T::try_from(number).map_err(|_| too_large()),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(too_large()),
        Err(_) => Err(wrong(key, format!("'{text}' is no whole number: give one such as 3"))),
    }
}

fn parse_one<T: FromStr<Err: Display>>(key: &'static str, text: &str) -> Result<T, ScenarioError> {
    text.parse().map_err(|error| wrong(key, error))
}

fn parse_all<T: FromStr<Err: Display>>(
    key: &'static str,
    texts: &[String],
) -> Result<Vec<T>, ScenarioError> {
    texts.iter().map(|text| parse_one(key, text)).collect()
}

/// The mean time between requests that come at `rate`.
fn interval(rate: &str) -> Result<Time, ScenarioError> {
    let ticks = TICKS_PER_UNIT as f64 / rate.parse().unwrap_or(f64::NAN);
    if !(1.0..=TICKS_PER_UNIT as f64 * 1e6).contains(&ticks) {
        let what = format!("'{rate}' is not between 0.000001 and 1000000");
        return Err(wrong("workload.rate", what));
    }
    Ok(Time(libm::round(ticks) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Scenario {
        Scenario::new().with("algorithm", "ricart-agrawala")
    }

    fn error(scenario: Scenario) -> String {
        scenario.setup().unwrap_err().to_string()
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
        assert!(error(base().with("network.clusters", 4)).contains("add up to the 5 nodes"));
        assert!(error(base().with("start.inside", 7)).contains("names node 7"));
        let elsewhere = base().with("start.inside", 1).with("start.token", 2);
        assert!(error(elsewhere).contains("put both at one node"));
        let schedule = base().with("workload.arrivals", "schedule");
        assert!(error(schedule.clone()).contains("list requests"));
        assert!(error(schedule.with("workload.schedule", "9 at 1")).contains("nodes are 0 to 4"));
    }
}
