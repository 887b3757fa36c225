//! The group that is explored, as the command line describes it.

use std::str::FromStr;

use catraca_algorithms::Spec;
use catraca_core::{Claim, NodeId, ResourceId, Start};
use catraca_topology::{ClusterShape, QuorumKind, TreeShape};

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
    start: StartName,
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

/// A start as it is written on the command line.
#[derive(Clone)]
struct StartName(Start);

impl FromStr for StartName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let node = |text: &str| text.parse().map(NodeId).ok();
        let start = match text.split_once(':') {
            None if text == "idle" => Some(Start::idle()),
            Some(("inside", at)) if at.contains('=') => with_claims(at),
            Some(("inside", at)) => node(at).map(Start::inside),
            Some(("token", at)) => node(at).map(Start::token_at),
            _ => None,
        };
        start.map(StartName).ok_or_else(|| {
            format!(
                "'{text}' is no start: say idle, inside:NODE or token:NODE, as in inside:0, or name \
                 claims as in inside:0=0,1|2=2"
            )
        })
    }
}

/// Several nodes inside, each with its claim; the token is at the first.
fn with_claims(text: &str) -> Option<Start> {
    let mut start: Option<Start> = None;
    for holder in text.split('|') {
        let (node, claim) = holder.split_once('=')?;
        let node = NodeId(node.trim().parse().ok()?);
        let claim = claim_of(claim).ok()?;
        start = Some(start.unwrap_or_else(|| Start::token_at(node)).and_inside(node, claim));
    }
    start
}

fn claim_of(text: &str) -> Result<Claim, String> {
    let resource = |word: &str| {
        word.trim()
            .parse()
            .map(ResourceId)
            .map_err(|_| format!("'{text}' is no claim: list resources as in 0,1"))
    };
    let resources: Vec<ResourceId> = text.split(',').map(resource).collect::<Result<_, _>>()?;
    let claim = Claim::of(resources.iter().copied());
    if claim.resources().len() < resources.len() {
        return Err(format!("'{text}' claims a resource twice; name it once"));
    }
    Ok(claim)
}

/// A list of claims as it is written on the command line.
#[derive(Clone)]
struct ClaimList(Vec<Claim>);

impl FromStr for ClaimList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split('|').map(claim_of).collect::<Result<_, _>>().map(ClaimList)
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
            ("--max-preempt", self.max_preempt.is_some()),
            ("--k", self.k.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    pub(super) fn spec(&self, algorithm: &str) -> Spec {
        let spec = Spec::new(algorithm, self.nodes).starting(self.start.0.clone());
        Spec {
            mutant: self.mutant.clone(),
            tree: self.tree.clone(),
            quorum: self.quorum,
            clusters: self.clusters.clone(),
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
