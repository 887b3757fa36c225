//! Which algorithm to run, on how many nodes, with which parameters, from which start.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use core::time::Duration;

use catraca_core::{Bounds, ResourceId, Start};
use catraca_topology::{
    ClusterError, ClusterShape, Clusters, Proxies, QuorumError, QuorumKind, Quorums, Tree,
    TreeError, TreeShape,
};
use serde::{Deserialize, Serialize};

use crate::hi_adsd;
use crate::mutants::{Mutant, MutantConfig};
use crate::ordered::{self, Ordered};
use crate::registry::{self, Entry, Load, Registered, RegisteredVisitor, Theory, Visitor};
use crate::robust_k;

/// The most resources that one group guards.
pub const MAX_RESOURCES: u32 = 1_000_000;

/// The most nodes of an algorithm that is in no registry.
const MAX_OWN_NODES: u32 = 1_000_000;

/// Before the name of an algorithm: single locks of it, taken in ascending order.
const ORDERED: &str = "ordered:";

/// A complete description of a group before its first step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The algorithm's name in the catalogue.
    pub algorithm: String,
    /// How many nodes.
    pub nodes: u32,
    /// The shape of the tree, for algorithms that run on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeShape>,
    /// How quorums are built, for algorithms that use them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<QuorumKind>,
    /// The clusters, for algorithms that know of clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClusterShape>,
    /// The proxy of each cluster; the first node of each, if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxies: Option<Proxies>,
    /// How often in a row a request of the token's own cluster may overtake one from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_preempt: Option<u32>,
    /// How many may be inside at once, for algorithms that let several in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// The failure detector, for algorithms that bring their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hi_adsd: Option<hi_adsd::Config>,
    /// How long acknowledgements of a broadcast may take before it is sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_timeout: Option<Duration>,
    /// How many resources there are. Algorithms that know no sets guard them all with one lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<u32>,
    /// A deliberately broken variant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutant: Option<String>,
    /// Who is inside already, and where the token is.
    #[serde(default)]
    pub start: Start,
}

/// Why a [`Spec`] describes no group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No algorithm has this name.
    #[error("there is no algorithm '{0}'")]
    UnknownAlgorithm(String),
    /// The algorithm has no such mutant.
    #[error("'{algorithm}' has no mutant '{mutant}'")]
    UnknownMutant {
        /// The algorithm's name.
        algorithm: String,
        /// What was asked for.
        mutant: String,
    },
    /// Too few or too many nodes.
    #[error("'{algorithm}' runs on 1 to {max} nodes, not {nodes}")]
    Nodes {
        /// The algorithm's name.
        algorithm: String,
        /// What was asked for.
        nodes: u32,
        /// The most that is possible.
        max: u32,
    },
    /// A parameter that this algorithm does not take.
    #[error("'{algorithm}' takes no {parameter}; leave it out")]
    Parameter {
        /// The algorithm's name.
        algorithm: String,
        /// The parameter's name.
        parameter: &'static str,
    },
    /// The start names a node that does not exist.
    #[error("the start names node {node}, but the nodes are 0 to {last}")]
    StartNode {
        /// What was asked for.
        node: u32,
        /// The last node.
        last: u32,
    },
    /// More than one node inside, where one resource is guarded.
    #[error("the start has {0} nodes inside, but '{1}' lets one in at a time")]
    StartInside(usize, String),
    /// The start has a node inside, and the token somewhere else.
    #[error(
        "the start has node {inside} inside but the token at node {token}; put both at one node"
    )]
    StartToken {
        /// The node inside.
        inside: u32,
        /// The node with the token.
        token: u32,
    },
    /// More nodes inside than may be.
    #[error("the start has {inside} nodes inside, but k is {k}; raise k or let fewer in")]
    StartHolders {
        /// How many are inside.
        inside: usize,
        /// How many may be.
        k: u32,
    },
    /// Too few or too many holders.
    #[error("k is how many may be inside at once: among {nodes} nodes 1 to {nodes}, not {k}")]
    Holders {
        /// What was asked for.
        k: u32,
        /// How many nodes there are.
        nodes: u32,
    },
    /// A time-out that has run out before it is set.
    #[error("{0} must be more than 0")]
    NoTime(&'static str),
    /// Tests that would begin before the last ones can have ended.
    #[error(
        "the detector tests every {interval:?} but waits {timeout:?} for an answer; make test-interval at least as long as test-timeout"
    )]
    TestInterval {
        /// From one test to the next.
        interval: Duration,
        /// How long it waits.
        timeout: Duration,
    },
    /// Several holders of several resources.
    #[error("several may be inside at once (k is {0}) only where one resource is guarded")]
    HoldersOfSets(u32),
    /// The tree cannot be built.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The clusters cannot be built.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// No resources, or too many.
    #[error("there are 1 to {MAX_RESOURCES} resources, not {0}")]
    Resources(u32),
    /// The start has a claim on a resource that does not exist, or on none.
    #[error(
        "node {node} starts inside with a claim on resource {resource}, but the resources are 0 to {last}"
    )]
    StartResource {
        /// The node.
        node: u32,
        /// The resource.
        resource: u32,
        /// The last resource.
        last: u32,
    },
    /// Two nodes start inside with one resource.
    #[error("nodes {0} and {1} start inside with resource {2}; give it to one of them")]
    StartOverlap(u32, u32, u32),
    /// The quorums cannot be built.
    #[error(transparent)]
    Quorum(#[from] QuorumError),
}

impl Spec {
    /// `algorithm` on `nodes` nodes, with its default parameters, nobody inside.
    pub fn new(algorithm: &str, nodes: u32) -> Self {
        Spec {
            algorithm: algorithm.to_string(),
            nodes,
            tree: None,
            quorum: None,
            clusters: None,
            proxies: None,
            max_preempt: None,
            k: None,
            hi_adsd: None,
            ack_timeout: None,
            resources: None,
            mutant: None,
            start: Start::idle(),
        }
    }

    /// The same from another start.
    pub fn starting(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// The same, broken in the way called `mutant`.
    pub fn broken(mut self, mutant: &str) -> Self {
        self.mutant = Some(mutant.to_string());
        self
    }

    /// Whether single locks are taken in ascending order.
    pub fn is_ordered(&self) -> bool {
        self.algorithm.starts_with(ORDERED)
    }

    /// The name of the algorithm, of the instances if it is taken in order.
    fn single(&self) -> &str {
        self.algorithm.strip_prefix(ORDERED).unwrap_or(&self.algorithm)
    }

    /// The catalogue's line for the algorithm.
    pub fn entry(&self) -> Result<&'static Entry, SpecError> {
        registry::entry(self.single())
            .ok_or_else(|| SpecError::UnknownAlgorithm(self.algorithm.clone()))
    }

    /// Checks everything and calls `visitor` with the algorithm's type and configuration.
    pub fn visit<V: Visitor>(&self, visitor: V) -> Result<V::Output, SpecError> {
        self.validate()?;
        self.dispatch(Run { spec: self, visitor })
    }

    /// Checks everything without running anything.
    pub fn check(&self) -> Result<(), SpecError> {
        struct Nothing;
        impl Visitor for Nothing {
            type Output = ();
            fn visit<A: catraca_core::Algorithm>(self, _config: A::Config) {}
        }
        self.visit(Nothing)
    }

    /// The same of an algorithm that is in no registry: it guards one resource, and lets one node in at a
    /// time. What it knows of parameters and mutants is its own business.
    pub fn check_own(&self) -> Result<(), SpecError> {
        if !(1..=MAX_OWN_NODES).contains(&self.nodes) {
            let (algorithm, nodes) = (self.algorithm.clone(), self.nodes);
            return Err(SpecError::Nodes { algorithm, nodes, max: MAX_OWN_NODES });
        }
        self.validate_start_nodes()?;
        self.validate_holder()
    }

    /// What theory expects under `load`.
    pub fn theory(&self, load: Load) -> Result<Theory, SpecError> {
        self.validate()?;
        self.dispatch(Expect { spec: self, load })
    }

    /// The tree that the spec describes, rooted where the token starts. Balanced binary by default.
    pub(crate) fn build_tree(&self) -> Result<Tree, SpecError> {
        let shape = self.tree.clone().unwrap_or(TreeShape::Binary);
        Ok(Tree::build(&shape, self.nodes)?.rooted_at(self.start.token()))
    }

    /// The quorums that the spec describes. A grid by default.
    pub(crate) fn build_quorums(&self) -> Result<Quorums, SpecError> {
        Ok(match self.quorum.unwrap_or(QuorumKind::Grid) {
            QuorumKind::Grid => Quorums::grid(self.nodes),
            QuorumKind::Plane => Quorums::plane(self.nodes)?,
        })
    }

    /// The quorum of each node, for algorithms that use quorums; nothing of others.
    pub fn quorums(&self) -> Option<Quorums> {
        let uses_quorums = self.entry().ok()?.parameters.contains(&"quorum");
        uses_quorums.then(|| self.build_quorums().ok()).flatten()
    }

    /// The clusters that the spec describes, for algorithms that know of clusters. Two halves by
    /// default, the first no smaller, so that there is an outside.
    pub fn build_clusters(&self) -> Result<Clusters, SpecError> {
        let halves = || match self.nodes / 2 {
            0 => ClusterShape::Sizes(vec![self.nodes]),
            second => ClusterShape::Sizes(vec![self.nodes - second, second]),
        };
        let shape = self.clusters.clone().unwrap_or_else(halves);
        let clusters = Clusters::build(&shape, self.nodes)?;
        Ok(match &self.proxies {
            Some(proxies) => clusters.with_proxies(proxies)?,
            None => clusters,
        })
    }

    /// How many resources are guarded.
    pub fn resource_count(&self) -> u32 {
        self.resources.unwrap_or(1)
    }

    /// By what messages of the group are judged.
    pub fn bounds(&self) -> Bounds {
        Bounds::new(self.nodes, self.resource_count())
    }

    /// How many may be inside at once with one resource.
    pub fn capacity(&self) -> u32 {
        self.k.unwrap_or(1)
    }

    fn dispatch<V, T>(&self, visitor: V) -> Result<T, SpecError>
    where
        V: RegisteredVisitor<Output = Result<T, SpecError>>,
    {
        registry::visit(self.single(), visitor)
            .ok_or_else(|| SpecError::UnknownAlgorithm(self.algorithm.clone()))?
    }

    fn validate(&self) -> Result<(), SpecError> {
        let entry = self.entry()?;
        if self.nodes == 0 || self.nodes > entry.max_nodes {
            return Err(SpecError::Nodes {
                algorithm: self.algorithm.clone(),
                nodes: self.nodes,
                max: entry.max_nodes,
            });
        }
        if self.is_ordered() && self.mutant.is_some() {
            return Err(SpecError::Parameter {
                algorithm: self.algorithm.clone(),
                parameter: "mutant",
            });
        }
        let given = [
            ("tree", self.tree.is_some()),
            ("quorum", self.quorum.is_some()),
            ("clusters", self.clusters.is_some()),
            ("proxies", self.proxies.is_some()),
            ("max-preempt", self.max_preempt.is_some()),
            ("k", self.k.is_some()),
            ("test-interval", self.hi_adsd.is_some()),
            ("ack-timeout", self.ack_timeout.is_some()),
        ];
        for (parameter, is_given) in given {
            // Single locks taken in order share the timers of a node, so they can have none.
            let needs_timers = ["test-interval", "ack-timeout"].contains(&parameter);
            let takes = entry.parameters.contains(&parameter);
            if is_given && (!takes || (self.is_ordered() && needs_timers)) {
                return Err(SpecError::Parameter { algorithm: self.algorithm.clone(), parameter });
            }
        }
        if !(1..=MAX_RESOURCES).contains(&self.resource_count()) {
            return Err(SpecError::Resources(self.resource_count()));
        }
        if !(1..=self.nodes).contains(&self.capacity()) {
            return Err(SpecError::Holders { k: self.capacity(), nodes: self.nodes });
        }
        if self.capacity() > 1 && (self.resource_count() > 1 || self.is_ordered()) {
            return Err(SpecError::HoldersOfSets(self.capacity()));
        }
        robust_k::validate(self)?;
        self.validate_start()
    }

    fn validate_start(&self) -> Result<(), SpecError> {
        self.validate_start_nodes()?;
        if self.takes_sets()? {
            return self.validate_claims();
        }
        if let Some(k) = self.k.filter(|&k| k > 1) {
            return match self.start.holders().count() {
                many if many > k as usize => Err(SpecError::StartHolders { inside: many, k }),
                _ => Ok(()),
            };
        }
        self.validate_holder()
    }

    /// Everybody whom the start names exists.
    fn validate_start_nodes(&self) -> Result<(), SpecError> {
        let inside = self.start.holders().map(|(node, _)| node);
        match inside.chain([self.start.token()]).find(|node| node.0 >= self.nodes) {
            Some(node) => Err(SpecError::StartNode { node: node.0, last: self.nodes - 1 }),
            None => Ok(()),
        }
    }

    /// One node is inside at most, with the token.
    fn validate_holder(&self) -> Result<(), SpecError> {
        let inside = || self.start.holders().map(|(node, _)| node);
        match inside().count() {
            0 => Ok(()),
            1 => match inside().find(|&node| node != self.start.token()) {
                Some(node) => {
                    Err(SpecError::StartToken { inside: node.0, token: self.start.token().0 })
                }
                None => Ok(()),
            },
            many => Err(SpecError::StartInside(many, self.algorithm.clone())),
        }
    }

    /// Whether nodes with different resources can be inside at once. Instances that share a tree
    /// cannot start so: its root is where the token is.
    fn takes_sets(&self) -> Result<bool, SpecError> {
        let parameters = self.entry()?.parameters;
        Ok(parameters.contains(&"resources")
            || (self.is_ordered() && !parameters.contains(&"tree")))
    }

    /// Several nodes may be inside, with claims that do not overlap.
    fn validate_claims(&self) -> Result<(), SpecError> {
        let last = self.resource_count() - 1;
        let mut holders: BTreeMap<u32, u32> = BTreeMap::new();
        for (node, claim) in self.start.holders() {
            for &ResourceId(resource) in claim.resources() {
                if resource > last {
                    return Err(SpecError::StartResource { node: node.0, resource, last });
                }
                if let Some(other) = holders.insert(resource, node.0) {
                    return Err(SpecError::StartOverlap(other, node.0, resource));
                }
            }
        }
        Ok(())
    }
}

/// Builds the configuration and runs the visitor on the algorithm or on its mutant.
struct Run<'a, V> {
    spec: &'a Spec,
    visitor: V,
}

impl<V: Visitor> RegisteredVisitor for Run<'_, V> {
    type Output = Result<V::Output, SpecError>;

    fn visit<A: Registered>(self) -> Self::Output {
        let config = A::config(self.spec)?;
        if self.spec.is_ordered() {
            let config =
                ordered::Config { instance: config, resources: self.spec.resource_count() };
            return Ok(self.visitor.visit::<Ordered<A>>(config));
        }
        let Some(name) = &self.spec.mutant else {
            return Ok(self.visitor.visit::<A>(config));
        };
        let mutation = A::mutations().iter().find(|mutation| mutation.listed().name == name);
        match mutation {
            Some(&mutation) => {
                Ok(self.visitor.visit::<Mutant<A>>(MutantConfig { config, mutation }))
            }
            None => Err(SpecError::UnknownMutant {
                algorithm: self.spec.algorithm.clone(),
                mutant: name.clone(),
            }),
        }
    }
}

/// Asks the algorithm what theory expects.
struct Expect<'a> {
    spec: &'a Spec,
    load: Load,
}

impl RegisteredVisitor for Expect<'_> {
    type Output = Result<Theory, SpecError>;

    fn visit<A: Registered>(self) -> Self::Output {
        Ok(A::theory(&A::config(self.spec)?, self.load))
    }
}
