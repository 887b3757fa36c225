//! From what was said to a workload.

use catraca_algorithms::Spec;
use catraca_core::{Claim, NodeId, NodeSet, ResourceId};
use catraca_topology::Clusters;

use super::values::wrong;
use super::{Scenario, ScenarioError};
use crate::claims::{ClaimSize, Claims, MAX_SKEW};
use crate::distribution::Distribution;
use crate::time::{TICKS_PER_UNIT, Time};
use crate::workload::{Arrivals, Scheduled, Workload};

const SCHEDULE: &str = "workload.schedule";

impl Scenario {
    pub(super) fn workload(
        &self,
        spec: &Spec,
        clusters: Option<&Clusters>,
    ) -> Result<Workload, ScenarioError> {
        let kind = self.text("workload.arrivals")?.unwrap_or("closed");
        self.refuse_what_does_not_belong(kind)?;
        let needed = |key| wrong(key, format!("is missing; '{kind}' needs it"));
        let arrivals = match kind {
            "closed" => Arrivals::Closed {
                think: self.one("workload.think")?.unwrap_or(Distribution::ZERO),
                rounds: self.positive("workload.rounds")?,
                requesters: self.requesters(spec)?,
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
            "schedule" => Arrivals::Schedule(self.schedule(spec)?),
            other => {
                let what = format!(
                    "'{other}' is no kind of arrivals: say closed, serial, open, bursts or schedule"
                );
                return Err(wrong("workload.arrivals", what));
            }
        };
        let hold = self.one("workload.hold")?.unwrap_or(Distribution::Constant(Time::units(1)));
        let claims = self.claims(spec.resource_count())?;
        Ok(Workload { arrivals, hold, claims, locality: self.locality(kind, clusters)? })
    }

    /// A key of another kind of arrivals would be ignored in silence.
    fn refuse_what_does_not_belong(&self, kind: &str) -> Result<(), ScenarioError> {
        let belongs: [(&'static str, &str); 8] = [
            ("workload.think", "closed"),
            ("workload.rounds", "closed"),
            ("workload.requesters", "closed"),
            ("workload.pause", "serial"),
            ("workload.rate", "open"),
            ("workload.burst", "bursts"),
            ("workload.every", "bursts"),
            ("workload.schedule", "schedule"),
        ];
        for (key, owner) in belongs {
            if kind != owner && self.says(key) {
                let what = format!(
                    "belongs to '{owner}' arrivals, and these are '{kind}'; leave it out or choose '{owner}'"
                );
                return Err(wrong(key, what));
            }
        }
        Ok(())
    }

    /// The nodes that a closed workload names, '0..4' or '0,2,5'.
    fn requesters(&self, spec: &Spec) -> Result<Option<NodeSet>, ScenarioError> {
        const KEY: &str = "workload.requesters";
        let Some(text) = self.text(KEY)? else { return Ok(None) };
        let form = || wrong(KEY, format!("'{text}' names no nodes: say 0..4 or 0,2,5"));
        let node = |word: &str| word.trim().parse::<u32>().map_err(|_| form());
        let named: NodeSet = match text.split_once("..") {
            // The last is looked at first: a range may be longer than there is memory for.
            Some((first, last)) => match (node(first)?, node(last)?) {
                (_, last) if last >= spec.nodes => NodeSet::from_iter([NodeId(last)]),
                (first, last) if last < first => return Err(form()),
                (first, last) => (first..=last).map(NodeId).collect(),
            },
            None => text.split(',').map(|word| node(word).map(NodeId)).collect::<Result<_, _>>()?,
        };
        let unknown = named.iter().find(|node| node.0 >= spec.nodes);
        match unknown {
            Some(node) => {
                let what = format!("names node {node}, but the nodes are 0 to {}", spec.nodes - 1);
                Err(wrong(KEY, what))
            }
            None => Ok(Some(named)),
        }
    }

    fn schedule(&self, spec: &Spec) -> Result<Vec<Scheduled>, ScenarioError> {
        let requests = self.texts(SCHEDULE).iter().map(|text| request(text, spec));
        let requests: Vec<_> = requests.collect::<Result<_, ScenarioError>>()?;
        if requests.is_empty() {
            return Err(wrong(SCHEDULE, "is missing; list requests as in '2 at 1.5'"));
        }
        Ok(requests)
    }

    pub(super) fn claims(&self, resources: u32) -> Result<Claims, ScenarioError> {
        let size = self.one("workload.claim")?.unwrap_or(ClaimSize::ONE);
        if size.most() > resources {
            let what = format!(
                "'{size}' is more than there are resources ({resources}); ask for fewer, or say \
                 how many there are with 'resources'"
            );
            return Err(wrong("workload.claim", what));
        }
        let skew = self.number("workload.skew", 0.0, MAX_SKEW)?.unwrap_or(0.0);
        if skew > 0.0 && resources == 1 {
            let what = "there is one resource only; say how many there are with 'resources'";
            return Err(wrong("workload.skew", what));
        }
        Ok(Claims { size, skew })
    }

    fn locality(
        &self,
        kind: &str,
        clusters: Option<&Clusters>,
    ) -> Result<Option<f64>, ScenarioError> {
        const KEY: &str = "workload.locality";
        let locality = self.number(KEY, 0.0, 1.0)?;
        let what = match clusters {
            _ if locality.is_none() => return Ok(None),
            _ if !["serial", "open"].contains(&kind) => format!(
                "belongs to 'serial' and 'open' arrivals, and these are '{kind}'; leave it out or \
                 choose one of them"
            ),
            None => "needs clusters; describe them with 'clusters' as in 4x8".to_string(),
            Some(clusters) if clusters.count() == 1 => {
                "needs at least two clusters, and there is one; leave it out".to_string()
            }
            Some(_) => return Ok(locality),
        };
        Err(wrong(KEY, what))
    }
}

/// A request of a schedule: '2 at 1.5', or '2 at 1.5 for 0,3'.
fn request(text: &str, spec: &Spec) -> Result<Scheduled, ScenarioError> {
    let form = || {
        let what = format!("'{text}' is no request: say '2 at 1.5', or '2 at 1.5 for 0,3'");
        wrong(SCHEDULE, what)
    };
    let (node, rest) = text.split_once(" at ").ok_or_else(form)?;
    let (at, claim) = match rest.split_once("for") {
        Some((at, claim)) => (at, Some(claim)),
        None => (rest, None),
    };
    let node: u32 = node.trim().parse().map_err(|_| form())?;
    let at = at.trim().parse().map_err(|error| wrong(SCHEDULE, error))?;
    let last = spec.nodes - 1;
    if node > last {
        let what = format!("'{text}' names node {node}, but the nodes are 0 to {last}");
        return Err(wrong(SCHEDULE, what));
    }
    let claim = claim.map(|claim| listed_claim(text, claim, spec.resource_count())).transpose()?;
    Ok(Scheduled { at, node: NodeId(node), claim })
}

/// The resources that a request lists.
fn listed_claim(request: &str, list: &str, resources: u32) -> Result<Claim, ScenarioError> {
    let refuse = |what: String| Err(wrong(SCHEDULE, format!("'{request}' {what}")));
    if list.trim().is_empty() {
        return refuse("asks for nothing: name at least one resource, as in 'for 0,3'".to_string());
    }
    let mut claim: Vec<ResourceId> = Vec::new();
    for word in list.split(',').map(str::trim) {
        match word.parse().map(ResourceId) {
            Ok(ResourceId(resource)) if resource >= resources => {
                let last = resources - 1;
                let there_are = match last {
                    0 => "the only resource is 0".to_string(),
                    _ => format!("the resources are 0 to {last}"),
                };
                return refuse(format!(
                    "names resource {resource}, but {there_are}; say how many there are with \
                     'resources'"
                ));
            }
            Ok(resource) if claim.contains(&resource) => {
                return refuse(format!("names resource {resource} twice; name it once"));
            }
            Ok(resource) => claim.push(resource),
            Err(_) => {
                return refuse(format!("names no resource with '{word}': say 'for 0,3'"));
            }
        }
    }
    Ok(Claim::of(claim))
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
