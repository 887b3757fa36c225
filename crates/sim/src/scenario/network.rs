//! From what was said to clusters and a network.

use catraca_algorithms::Channels;
use catraca_topology::{ClusterError, ClusterShape, Clusters};

use super::values::{parse_all, wrong};
use super::{Scenario, ScenarioError};
use crate::distribution::Distribution;
use crate::network::{Latency, Network, Order};
use crate::time::Time;

const CLUSTERS: &str = "clusters";

impl Scenario {
    /// The shape of the clusters and how many nodes are in them.
    pub(crate) fn cluster_shape(&self) -> Result<Option<(ClusterShape, u32)>, ScenarioError> {
        let Some(shape) = self.one::<ClusterShape>(CLUSTERS)? else { return Ok(None) };
        let sizes: Vec<u64> = match &shape {
            ClusterShape::Sizes(sizes) => sizes.iter().map(|&size| size.into()).collect(),
            ClusterShape::Members(members) => members.iter().map(|of| of.len() as u64).collect(),
        };
        if let Some(empty) = sizes.iter().position(|&size| size == 0) {
            return Err(wrong(CLUSTERS, ClusterError::Empty(empty)));
        }
        let nodes = u32::try_from(sizes.iter().sum::<u64>())
            .map_err(|_| wrong(CLUSTERS, format!("'{shape}' has too many nodes")))?;
        Ok(Some((shape, nodes)))
    }

    pub(super) fn clusters(&self, nodes: u32) -> Result<Option<Clusters>, ScenarioError> {
        let Some((shape, _)) = self.cluster_shape()? else { return Ok(None) };
        let refused = |error: ClusterError| match error {
            ClusterError::Count { .. } => {
                wrong(CLUSTERS, format!("{error}; leave out how many there are"))
            }
            error => wrong(CLUSTERS, error),
        };
        Clusters::build(&shape, nodes).map(Some).map_err(refused)
    }

    /// The order of messages, if it is said.
    pub fn order(&self) -> Result<Option<Order>, ScenarioError> {
        self.one("network.order")
    }

    pub(super) fn network(
        &self,
        channels: Channels,
        clusters: Option<&Clusters>,
    ) -> Result<Network, ScenarioError> {
        let order = match self.order()? {
            Some(order) => order,
            None => Order::from(channels),
        };
        Ok(Network { latency: self.latency(clusters)?, order })
    }

    pub(super) fn latency(&self, clusters: Option<&Clusters>) -> Result<Latency, ScenarioError> {
        let one = || Distribution::Constant(Time::units(1));
        let by_cluster = ["network.matrix", "network.lan", "network.wan"];
        let Some(&key) = by_cluster.iter().find(|key| self.says(key)) else {
            return Ok(Latency::Uniform(self.one("network.delay")?.unwrap_or_else(one)));
        };
        if self.says("network.delay") {
            let what = format!("is said by '{key}' already; leave one of them out");
            return Err(wrong("network.delay", what));
        }
        let Some(clusters) = clusters else {
            let what = "needs clusters; describe them with 'clusters' as in 4x8";
            return Err(wrong(key, what));
        };
        let of = clusters.by_node().to_vec();
        if key == "network.matrix" {
            return Ok(Latency::Clusters { of, matrix: self.matrix(clusters.count() as usize)? });
        }
        let lan = self.one("network.lan")?.unwrap_or_else(one);
        let wan = self.one("network.wan")?.unwrap_or_else(one);
        Ok(Latency::NearFar { of, lan, wan })
    }

    fn matrix(&self, clusters: usize) -> Result<Vec<Vec<Distribution>>, ScenarioError> {
        for key in ["network.lan", "network.wan"] {
            if self.says(key) {
                return Err(wrong(
                    key,
                    "is said by 'network.matrix' already; leave one of them out",
                ));
            }
        }
        let row = |row: &String| {
            let cells: Vec<String> = row.split_whitespace().map(str::to_string).collect();
            parse_all("network.matrix", &cells)
        };
        let rows = self.texts("network.matrix").iter();
        let matrix: Vec<Vec<Distribution>> = rows.map(row).collect::<Result<_, _>>()?;
        if matrix.len() != clusters || matrix.iter().any(|row| row.len() != clusters) {
            let what = format!("must have {clusters} rows of {clusters} distributions");
            return Err(wrong("network.matrix", what));
        }
        Ok(matrix)
    }
}
