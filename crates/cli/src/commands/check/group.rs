//! The group that is explored, as the command line describes it.

use std::str::FromStr;

use catraca_algorithms::Spec;
use catraca_core::{Claim, ClaimError, Start};
use catraca_topology::{ClusterShape, Proxies, QuorumKind, TreeShape};

use crate::failure::Failure;
use crate::value;

#[derive(clap::Args)]
pub(super) struct Group {
    /// How many nodes.
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true,
        value_parser = value::at_least(1u32))]
    nodes: u32,
    /// Where the group begins: idle, token:NODE, inside:NODE, or with claims inside:0=0,1|2=2.
    #[arg(long, value_name = "START", default_value = "idle")]
    start: Start,
    /// A deliberately broken variant; 'catraca algorithms NAME' lists them.
    #[arg(long, value_name = "NAME")]
    mutant: Option<String>,
    /// For raymond: binary, star, chain, or parents as in -,0,0.
    #[arg(long, value_name = "SHAPE", allow_hyphen_values = true)]
    tree: Option<TreeShape>,
    /// For maekawa: grid or plane.
    #[arg(long, value_name = "KIND")]
    quorum: Option<QuorumKind>,
    /// For bertier: 2x2, sizes as in 2,2, or members with the proxy first as in 0,1|3,2.
    #[arg(long, value_name = "CLUSTERS")]
    clusters: Option<ClusterShape>,
    /// For bertier: the proxy of each cluster, as in 1,2 [default: the first of each].
    #[arg(long, value_name = "NODES", allow_hyphen_values = true)]
    proxies: Option<Proxies>,
    /// For bertier: how often in a row a cluster's own requests may overtake one from outside.
    #[arg(long, value_name = "N")]
    max_preempt: Option<u32>,
    /// For raymond-k and robust-k: how many may be inside at once [default: 1].
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = value::at_least(0u32))]
    k: Option<u32>,
    /// How many resources there are [default: 1].
    #[arg(long, value_name = "M")]
    resources: Option<u32>,
    /// What is asked for, as in '0,1|1,2': request k of node i takes the claim at place i + k, going
    /// round [default: each resource with the next].
    #[arg(long, value_name = "CLAIMS")]
    claims: Option<ClaimList>,
}

/// A list of claims as it is written on the command line.
#[derive(Clone)]
struct ClaimList(Vec<Claim>);

impl FromStr for ClaimList {
    type Err = ClaimError;

    fn from_str(text: &str) -> Result<Self, ClaimError> {
        text.split('|').map(str::parse).collect::<Result<_, _>>().map(ClaimList)
    }
}

impl Group {
    /// The name of an option that belongs to one algorithm only, if one was given.
    pub(super) fn particular(&self) -> Option<&'static str> {
        let given = [
            ("--mutant", self.mutant.is_some()),
            ("--tree", self.tree.is_some()),
            ("--quorum", self.quorum.is_some()),
            ("--clusters", self.clusters.is_some()),
            ("--proxies", self.proxies.is_some()),
            ("--max-preempt", self.max_preempt.is_some()),
            ("--k", self.k.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    pub(super) fn spec(&self, algorithm: &str) -> Spec {
        let spec = Spec::new(algorithm, self.nodes).starting(self.start.clone());
        Spec {
            mutant: self.mutant.clone(),
            tree: self.tree.clone(),
            quorum: self.quorum,
            clusters: self.clusters.clone(),
            proxies: self.proxies.clone(),
            max_preempt: self.max_preempt,
            k: self.k,
            resources: self.resources,
            ..spec
        }
    }

    /// What the applications ask for.
    pub(super) fn claims(&self) -> Result<Vec<Claim>, Failure> {
        let claims = self.claims.clone().map_or(Vec::new(), |list| list.0);
        let last = self.resources.unwrap_or(1).saturating_sub(1);
        let mut asked = claims.iter().flat_map(Claim::resources);
        if let Some(unknown) = asked.find(|resource| resource.0 > last) {
            let message =
                format!("--claims names resource {unknown}, but the resources are 0 to {last}");
            return Err(Failure::Input(message));
        }
        Ok(claims)
    }
}
