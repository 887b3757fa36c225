//! Clusters: sets of nodes, each with a proxy that represents it to the others.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use catraca_core::NodeId;
use serde::{Deserialize, Serialize};

/// A description of clusters: the members of each, its proxy first.
///
/// Written as `4x8` (four clusters of eight), `3,3,2` (sizes, nodes in order) or `0,1,2|5,3,4` (the
/// members, the proxy first).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ClusterShape {
    /// The size of each cluster; nodes are taken in order and the first of each is its proxy.
    Sizes(Vec<u32>),
    /// The members of each cluster, the proxy first.
    Members(Vec<Vec<u32>>),
}

/// Why a description gives no clusters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// Not one of the forms.
    #[error(
        "'{0}' describes no clusters: say 4x8, or sizes as in 3,3,2, or members with the proxy first as in 0,1,2|5,3,4"
    )]
    Unreadable(String),
    /// A cluster without members.
    #[error("cluster {0} has no members; give it at least one")]
    Empty(usize),
    /// The sizes do not add up.
    #[error("the clusters have {given} members, but there are {nodes} nodes")]
    Count {
        /// How many members they have.
        given: u64,
        /// How many there are.
        nodes: u32,
    },
    /// A node in two clusters, or twice in one.
    #[error("node {0} is in two clusters; put it in one")]
    Twice(u32),
    /// A member that is not a node.
    #[error("the clusters name node {node}, but the nodes are 0 to {last}")]
    UnknownNode {
        /// The member.
        node: u32,
        /// The last node.
        last: u32,
    },
    /// No list of proxies.
    #[error("'{0}' names no proxies: list one node for each cluster, as in 1,5")]
    UnreadableProxies(String),
    /// A proxy that is not a member.
    #[error(
        "node {node} cannot be the proxy of cluster {cluster}: it is not a member; name one that is"
    )]
    ForeignProxy {
        /// The node.
        node: u32,
        /// The cluster.
        cluster: usize,
    },
    /// Not one proxy for each cluster.
    #[error("there are {given} proxies for {clusters} clusters; name one for each")]
    Proxies {
        /// How many are named.
        given: usize,
        /// How many are needed.
        clusters: usize,
    },
}

impl FromStr for ClusterShape {
    type Err = ClusterError;

    fn from_str(text: &str) -> Result<Self, ClusterError> {
        let unreadable = || ClusterError::Unreadable(text.to_string());
        let number = |word: &str| word.trim().parse::<u32>().map_err(|_| unreadable());
        if let Some((clusters, size)) = text.split_once('x') {
            let (clusters, size) = (number(clusters)?, number(size)?);
            if clusters == 0 || clusters > 1_000_000 {
                return Err(unreadable());
            }
            return Ok(ClusterShape::Sizes(vec![size; clusters as usize]));
        }
        let list = |part: &str| match part.trim() {
            "" => Ok(Vec::new()),
            part => part.split(',').map(number).collect(),
        };
        if text.contains('|') {
            return Ok(ClusterShape::Members(text.split('|').map(list).collect::<Result<_, _>>()?));
        }
        match list(text)? {
            sizes if sizes.is_empty() => Err(unreadable()),
            sizes => Ok(ClusterShape::Sizes(sizes)),
        }
    }
}

fn list(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

impl fmt::Display for ClusterShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterShape::Sizes(sizes) => f.write_str(&list(sizes)),
            ClusterShape::Members(clusters) => {
                let clusters: Vec<String> = clusters.iter().map(|members| list(members)).collect();
                f.write_str(&clusters.join("|"))
            }
        }
    }
}

/// The proxies of clusters, one for each in their order. Written as `1,5`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Proxies(pub Vec<u32>);

impl FromStr for Proxies {
    type Err = ClusterError;

    fn from_str(text: &str) -> Result<Self, ClusterError> {
        let nodes: Result<_, _> = text.split(',').map(|word| word.trim().parse()).collect();
        nodes.map(Proxies).map_err(|_| ClusterError::UnreadableProxies(text.to_string()))
    }
}

impl fmt::Display for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&list(&self.0))
    }
}

impl TryFrom<String> for ClusterShape {
    type Error = ClusterError;

    fn try_from(text: String) -> Result<Self, ClusterError> {
        text.parse()
    }
}

impl From<ClusterShape> for String {
    fn from(shape: ClusterShape) -> Self {
        format!("{shape}")
    }
}

/// The clusters of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clusters {
    /// The cluster of each node.
    of: Vec<u32>,
    /// The proxy of each cluster.
    proxies: Vec<NodeId>,
}

impl Clusters {
    /// Builds the clusters of `nodes` nodes that `shape` describes.
    pub fn build(shape: &ClusterShape, nodes: u32) -> Result<Self, ClusterError> {
        let members: Vec<Vec<u32>> = match shape {
            ClusterShape::Members(members) => members.clone(),
            ClusterShape::Sizes(sizes) => {
                let given = sizes.iter().map(|&size| u64::from(size)).sum();
                if given != u64::from(nodes) {
                    return Err(ClusterError::Count { given, nodes });
                }
                let mut next = 0;
                let take = |&size: &u32| {
                    next += size;
                    (next - size..next).collect()
                };
                sizes.iter().map(take).collect()
            }
        };
        Self::from_members(&members, nodes)
    }

    fn from_members(members: &[Vec<u32>], nodes: u32) -> Result<Self, ClusterError> {
        let mut of = vec![None; nodes as usize];
        let mut proxies = Vec::new();
        for (cluster, nodes_of) in members.iter().enumerate() {
            let proxy = *nodes_of.first().ok_or(ClusterError::Empty(cluster))?;
            proxies.push(NodeId(proxy));
            for &node in nodes_of {
                let unknown = ClusterError::UnknownNode { node, last: nodes.saturating_sub(1) };
                let place = of.get_mut(node as usize).ok_or(unknown)?;
                if place.replace(cluster as u32).is_some() {
                    return Err(ClusterError::Twice(node));
                }
            }
        }
        let given = of.iter().flatten().count() as u64;
        let of: Option<Vec<u32>> = of.into_iter().collect();
        of.map(|of| Clusters { of, proxies }).ok_or(ClusterError::Count { given, nodes })
    }

    /// The same with other proxies, one for each cluster.
    pub fn with_proxies(mut self, Proxies(proxies): &Proxies) -> Result<Self, ClusterError> {
        if proxies.len() != self.proxies.len() {
            let (given, clusters) = (proxies.len(), self.proxies.len());
            return Err(ClusterError::Proxies { given, clusters });
        }
        for (cluster, &node) in proxies.iter().enumerate() {
            if self.of.get(node as usize) != Some(&(cluster as u32)) {
                return Err(ClusterError::ForeignProxy { node, cluster });
            }
            self.proxies[cluster] = NodeId(node);
        }
        Ok(self)
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u32 {
        self.of.len() as u32
    }

    /// How many clusters there are.
    pub fn count(&self) -> u32 {
        self.proxies.len() as u32
    }

    /// The cluster of `node`.
    pub fn of(&self, node: NodeId) -> u32 {
        self.of[node.index()]
    }

    /// The proxy of the cluster of `node`.
    pub fn proxy(&self, node: NodeId) -> NodeId {
        self.proxies[self.of(node) as usize]
    }

    /// Whether two nodes are in one cluster.
    pub fn are_together(&self, a: NodeId, b: NodeId) -> bool {
        self.of(a) == self.of(b)
    }

    /// The cluster of each node, by id.
    pub fn by_node(&self) -> &[u32] {
        &self.of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clusters(text: &str, nodes: u32) -> Result<Clusters, ClusterError> {
        Clusters::build(&text.parse()?, nodes)
    }

    #[test]
    fn the_three_forms() {
        assert_eq!(clusters("2x2", 4).unwrap().by_node(), [0, 0, 1, 1]);
        assert_eq!(clusters("1,3", 4).unwrap().by_node(), [0, 1, 1, 1]);
        let named = clusters("0,1|3,2", 4).unwrap();
        assert_eq!((named.by_node(), named.proxy(NodeId(2))), (&[0, 0, 1, 1][..], NodeId(3)));
    }

    #[test]
    fn a_description_reads_back_as_it_is_written() {
        for text in ["3,3,2", "0,1|3,2"] {
            assert_eq!(text.parse::<ClusterShape>().unwrap().to_string(), text);
        }
        assert_eq!("1,5".parse::<Proxies>().unwrap().to_string(), "1,5");
    }

    #[test]
    fn what_is_no_clustering_is_refused() {
        assert!(matches!(clusters("teams", 4), Err(ClusterError::Unreadable(_))));
        assert!(matches!(clusters("", 4), Err(ClusterError::Unreadable(_))));
        assert_eq!(clusters("4,0", 4), Err(ClusterError::Empty(1)));
        assert_eq!(clusters("5x1", 4), Err(ClusterError::Count { given: 5, nodes: 4 }));
        assert_eq!(clusters("0,1|2", 4), Err(ClusterError::Count { given: 3, nodes: 4 }));
        assert_eq!(clusters("0,1|1,2,3", 4), Err(ClusterError::Twice(1)));
        assert_eq!(clusters("0,1|2,9", 4), Err(ClusterError::UnknownNode { node: 9, last: 3 }));
        let two = clusters("2x2", 4).unwrap();
        let led = |proxies: &str| two.clone().with_proxies(&proxies.parse()?);
        assert_eq!(led("1,2").unwrap().proxy(NodeId(0)), NodeId(1));
        assert_eq!(led("3,2"), Err(ClusterError::ForeignProxy { node: 3, cluster: 0 }));
        assert_eq!(led("1"), Err(ClusterError::Proxies { given: 1, clusters: 2 }));
        assert_eq!(led("1,"), Err(ClusterError::UnreadableProxies("1,".into())));
    }
}
