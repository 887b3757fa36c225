//! The group that is explored, as the command line describes it.

use std::str::FromStr;

use catraca_algorithms::{Spec, SpecError};
use catraca_check::Network;
use catraca_core::Claim;
use catraca_sim::{KEYS, Key, Order};
use catraca_trace::{ClaimError, parse_claim};

use crate::failure::Failure;
use crate::flags::{Choice, Said};

/// What belongs to one algorithm only.
const PARTICULAR: [&str; 7] =
    ["mutant", "tree", "quorum", "clusters", "proxies", "max-preempt", "k"];

/// The nodes of a group about which nothing is said.
const DEFAULT_NODES: &str = "3";

#[derive(clap::Args)]
pub(super) struct Group {
    #[command(flatten)]
    said: Said<Explored>,
    /// What is asked for, as in '0,1|1,2': request k of node i takes the claim at place i + k, going
    /// round [default: each resource with the next].
    #[arg(long, value_name = "CLAIMS")]
    claims: Option<ClaimList>,
}

/// A search has no clock, no workload and no seed: only the group and the order of messages can be
/// described.
struct Explored;

/// What a search can be told beyond what belongs to one algorithm.
const GENERAL: [&str; 4] = ["nodes", "resources", "start", "network.order"];

impl Choice for Explored {
    fn takes(key: &Key) -> bool {
        PARTICULAR.contains(&key.path) || GENERAL.contains(&key.path)
    }

    fn default(key: &Key) -> Option<&'static str> {
        if key.path == "nodes" { Some(DEFAULT_NODES) } else { key.default }
    }

    /// `--order` was called `--network` here once.
    fn old_flag(key: &Key) -> Option<&'static str> {
        (key.path == "network.order").then_some("network")
    }
}

/// A list of claims as it is written on the command line.
#[derive(Clone)]
struct ClaimList(Vec<Claim>);

impl FromStr for ClaimList {
    type Err = ClaimError;

    fn from_str(text: &str) -> Result<Self, ClaimError> {
        text.split('|').map(parse_claim).collect::<Result<_, _>>().map(ClaimList)
    }
}

impl Group {
    /// The flag of something that belongs to one algorithm only, if it was given.
    pub(super) fn particular(&self) -> Option<&'static str> {
        let is_given =
            |key: &&Key| PARTICULAR.contains(&key.path) && self.said.scenario().says(key.path);
        KEYS.iter().find(is_given).map(|key| key.flag)
    }

    /// The flag of something that whole members do not have, if it was given. What is broken on purpose
    /// can be said of both.
    pub(super) fn of_nodes(&self) -> Option<&'static str> {
        let is_given = |key: &&Key| {
            Explored::takes(key) && key.path != "mutant" && self.said.scenario().says(key.path)
        };
        let given = KEYS.iter().find(is_given).map(|key| key.flag);
        given.or_else(|| self.claims.is_some().then_some("claims"))
    }

    /// In which orders messages may arrive; those that the algorithm needs, if not given.
    pub(super) fn network(&self) -> Result<Option<Network>, Failure> {
        let order = self.said.scenario().order().map_err(|error| self.said.at_fault(error))?;
        Ok(order.map(|order| match order {
            Order::Fifo => Network::Fifo,
            Order::Any => Network::Any,
        }))
    }

    /// What is broken on purpose.
    pub(super) fn mutant(&self) -> Option<String> {
        self.said.scenario().value("mutant").map(str::to_string)
    }

    /// The group of `algorithm`, if there can be one.
    pub(super) fn spec(&self, algorithm: &str) -> Result<Spec, Failure> {
        let mut scenario = self.said.scenario().clone().with("algorithm", algorithm);
        if !scenario.says("nodes") && !scenario.says("clusters") {
            scenario = scenario.with("nodes", DEFAULT_NODES);
        }
        let spec = scenario.spec().map_err(|error| self.said.at_fault(error))?;
        // The simulator has clusters for its network too; here they are nothing else.
        if scenario.says("clusters") && spec.clusters.is_none() {
            let (algorithm, parameter) = (spec.algorithm, "clusters");
            return Err(SpecError::Parameter { algorithm, parameter }.into());
        }
        spec.check()?;
        Ok(spec)
    }

    /// What the applications ask for in the group `spec`.
    pub(super) fn claims(&self, spec: &Spec) -> Result<Vec<Claim>, Failure> {
        let claims = self.claims.clone().map_or(Vec::new(), |list| list.0);
        let last = spec.resource_count() - 1;
        let mut asked = claims.iter().flat_map(Claim::resources);
        if let Some(unknown) = asked.find(|resource| resource.0 > last) {
            let message =
                format!("--claims names resource {unknown}, but the resources are 0 to {last}");
            return Err(Failure::Input(message));
        }
        Ok(claims)
    }
}
