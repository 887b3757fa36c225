//! How long messages take, and whether they may overtake each other.

use std::collections::hash_map::Entry;
use std::fmt;
use std::str::FromStr;

use catraca_algorithms::Channels;
use catraca_core::NodeId;
use rustc_hash::FxHashMap;

use crate::distribution::Distribution;
use crate::random::Random;
use crate::time::Time;

/// Whether messages from one node to another keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// They do.
    Fifo,
    /// A message may overtake an earlier one that takes longer.
    Any,
}

/// Why a text is no order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no order of messages: say fifo or any")]
pub struct OrderError(String);

impl FromStr for Order {
    type Err = OrderError;

    fn from_str(text: &str) -> Result<Self, OrderError> {
        match text {
            "fifo" => Ok(Order::Fifo),
            "any" => Ok(Order::Any),
            _ => Err(OrderError(text.to_string())),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Order::Fifo => "fifo",
            Order::Any => "any",
        })
    }
}

impl From<Channels> for Order {
    fn from(channels: Channels) -> Self {
        match channels {
            Channels::Fifo => Order::Fifo,
            Channels::Any => Order::Any,
        }
    }
}

/// How long messages travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Latency {
    /// The same distribution between any two nodes.
    Uniform(Distribution),
    /// A distribution for each pair of clusters.
    Clusters {
        /// The cluster of each node.
        of: Vec<u32>,
        /// The distribution from the first cluster to the second.
        matrix: Vec<Vec<Distribution>>,
    },
    /// One distribution within clusters, another between them.
    NearFar {
        /// The cluster of each node.
        of: Vec<u32>,
        /// The distribution within a cluster.
        lan: Distribution,
        /// The distribution from one cluster to another.
        wan: Distribution,
    },
}

impl Latency {
    fn between(&self, from: NodeId, to: NodeId) -> Distribution {
        match self {
            Latency::Uniform(distribution) => *distribution,
            Latency::Clusters { of, matrix } => {
                matrix[of[from.index()] as usize][of[to.index()] as usize]
            }
            Latency::NearFar { of, lan, wan } => {
                if of[from.index()] == of[to.index()] {
                    *lan
                } else {
                    *wan
                }
            }
        }
    }

    /// T: the mean over all ordered pairs of different nodes, in units.
    pub fn mean(&self) -> f64 {
        let (of, matrix) = match self {
            Latency::Uniform(distribution) => return distribution.mean(),
            Latency::NearFar { of, lan, wan } => return near_far_mean(of, lan.mean(), wan.mean()),
            Latency::Clusters { of, matrix } => (of, matrix),
        };
        let sizes = sizes(of);
        let (mut total, mut pairs) = (0.0, 0.0);
        for (from, row) in matrix.iter().enumerate() {
            for (to, distribution) in row.iter().enumerate() {
                let others = sizes[to] - if from == to { 1.0 } else { 0.0 };
                total += sizes[from] * others * distribution.mean();
                pairs += sizes[from] * others;
            }
        }
        if pairs == 0.0 { 0.0 } else { total / pairs }
    }

    /// The mean of the slowest channels, in units.
    pub fn slowest_mean(&self) -> f64 {
        let slowest = |channels: &mut dyn Iterator<Item = &Distribution>| {
            channels.map(|channel| channel.mean()).fold(0.0, f64::max)
        };
        match self {
            Latency::Uniform(distribution) => distribution.mean(),
            Latency::Clusters { matrix, .. } => slowest(&mut matrix.iter().flatten()),
            Latency::NearFar { lan, wan, .. } => slowest(&mut [lan, wan].into_iter()),
        }
    }

    pub(crate) fn is_constant(&self) -> bool {
        let constant =
            |distribution: &Distribution| matches!(distribution, Distribution::Constant(_));
        self.distributions().iter().all(constant)
    }

    /// The longest time that a message can take; none if there is no such bound.
    pub(crate) fn longest(&self) -> Option<Time> {
        let longest = self.distributions().into_iter().map(Distribution::longest);
        longest.collect::<Option<Vec<Time>>>()?.into_iter().max()
    }

    fn distributions(&self) -> Vec<Distribution> {
        match self {
            Latency::Uniform(distribution) => vec![*distribution],
            Latency::Clusters { matrix, .. } => matrix.concat(),
            Latency::NearFar { lan, wan, .. } => vec![*lan, *wan],
        }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Latency::Uniform(distribution) => distribution.fmt(f),
            Latency::Clusters { .. } => f.write_str("by clusters"),
            Latency::NearFar { lan, wan, .. } => {
                write!(f, "{lan} within clusters, {wan} between")
            }
        }
    }
}

/// The size of each cluster.
fn sizes(of: &[u32]) -> Vec<f64> {
    let mut sizes = vec![0.0; of.iter().max().map_or(0, |&last| last as usize + 1)];
    for &cluster in of {
        sizes[cluster as usize] += 1.0;
    }
    sizes
}

fn near_far_mean(of: &[u32], lan: f64, wan: f64) -> f64 {
    let nodes = of.len() as f64;
    let pairs = nodes * (nodes - 1.0);
    let near: f64 = sizes(of).iter().map(|size| size * (size - 1.0)).sum();
    if pairs == 0.0 { 0.0 } else { (near * lan + (pairs - near) * wan) / pairs }
}

/// The channels between the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// How long messages travel.
    pub latency: Latency,
    /// Whether they keep their order.
    pub order: Order,
}

/// The channels while a run goes on.
#[derive(Debug)]
pub(crate) struct Links {
    network: Network,
    /// Where order has to be kept by hand: when the last message of each channel arrives. Only
    /// looked up, never iterated.
    last_arrival: Option<FxHashMap<(NodeId, NodeId), Time>>,
}

impl Links {
    pub(crate) fn new(network: Network) -> Self {
        // Constant latency keeps the order by itself, since equal times come out as they went in.
        let by_hand = network.order == Order::Fifo && !network.latency.is_constant();
        Links { network, last_arrival: by_hand.then(FxHashMap::default) }
    }

    /// When a message that departs at `departure` arrives.
    #[inline]
    pub(crate) fn arrival(
        &mut self,
        departure: Time,
        from: NodeId,
        to: NodeId,
        random: &mut Random,
    ) -> Time {
        let arrival = departure + self.network.latency.between(from, to).sample(random);
        let Some(last_arrival) = &mut self.last_arrival else { return arrival };
        match last_arrival.entry((from, to)) {
            Entry::Occupied(mut last) => {
                let arrival = arrival.max(*last.get());
                last.insert(arrival);
                arrival
            }
            Entry::Vacant(first) => *first.insert(arrival),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(delay: &str, order: Order) -> Network {
        Network { latency: Latency::Uniform(delay.parse().unwrap()), order }
    }

    fn arrivals(order: Order) -> Vec<Time> {
        let mut links = Links::new(network("uniform:1..9", order));
        let mut random = Random::new(1);
        (0..100).map(|at| links.arrival(Time(at), NodeId(0), NodeId(1), &mut random)).collect()
    }

    #[test]
    fn fifo_channels_keep_the_order_and_others_do_not() {
        assert!(arrivals(Order::Fifo).is_sorted());
        assert!(!arrivals(Order::Any).is_sorted());
    }

    #[test]
    fn the_mean_latency_of_clusters_counts_every_pair_of_nodes() {
        let constant = |units| Distribution::Constant(Time::units(units));
        let latency = Latency::Clusters {
            of: vec![0, 0, 1],
            matrix: vec![vec![constant(1), constant(10)], vec![constant(10), constant(1)]],
        };
        // Two ordered pairs within the first cluster, four between the two.
        assert_eq!(latency.mean(), (2.0 + 40.0) / 6.0);
        let (lan, wan) = (constant(1), constant(10));
        let short = Latency::NearFar { of: vec![0, 0, 1], lan, wan };
        assert_eq!(short.mean(), latency.mean());
        let pairs = [(0, 1), (0, 2), (2, 1)].map(|(from, to)| (NodeId(from), NodeId(to)));
        for (from, to) in pairs {
            assert_eq!(short.between(from, to), latency.between(from, to));
        }
    }
}
