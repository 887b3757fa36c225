//! Requests that stay in one cluster for a while.

use catraca_core::NodeId;
use catraca_topology::Clusters;

use crate::random::Random;

/// Draws who asks next, near the node that asked last or far from it.
#[derive(Debug)]
pub(crate) struct Locality {
    /// The share of requests that come from the cluster of the request before.
    share: f64,
    clusters: Clusters,
    /// The nodes, cluster by cluster.
    nodes: Vec<NodeId>,
    /// Where each cluster begins, and where the last one ends.
    begins: Vec<usize>,
    last: Option<NodeId>,
}

impl Locality {
    pub(crate) fn new(share: f64, clusters: &Clusters) -> Self {
        let mut nodes: Vec<NodeId> = NodeId::all(clusters.nodes()).collect();
        nodes.sort_by_key(|&node| clusters.of(node));
        let begin = |cluster| nodes.partition_point(|&node| clusters.of(node) < cluster);
        let begins = (0..=clusters.count()).map(begin).collect();
        Locality { share, clusters: clusters.clone(), nodes, begins, last: None }
    }

    /// The next node that `is_alive`; at least one must be. If nobody is left where the next request
    /// should come from, it comes from anywhere.
    pub(crate) fn draw(
        &mut self,
        random: &mut Random,
        is_alive: impl Fn(NodeId) -> bool,
    ) -> NodeId {
        let (before, inside, after) = match self.last {
            None => (0, 0, self.nodes.len()),
            Some(last) => self.part(self.clusters.of(last), random.fraction() <= self.share),
        };
        let node = self.draw_from(before, inside, after, random, &is_alive);
        let node = node
            .or_else(|| self.draw_from(0, 0, self.nodes.len(), random, &is_alive))
            .unwrap_or(self.nodes[0]);
        self.last = Some(node);
        node
    }

    /// The places to draw from: so many from the start, then so many left out, then up to the end.
    fn part(&self, cluster: u32, is_near: bool) -> (usize, usize, usize) {
        let (begin, end) = (self.begins[cluster as usize], self.begins[cluster as usize + 1]);
        if is_near { (0, begin, end) } else { (begin, end - begin, self.nodes.len()) }
    }

    fn draw_from(
        &self,
        before: usize,
        left_out: usize,
        end: usize,
        random: &mut Random,
        is_alive: impl Fn(NodeId) -> bool,
    ) -> Option<NodeId> {
        let places = end - left_out;
        let node = |place: usize| self.nodes[if place < before { place } else { place + left_out }];
        let mut is_sure = false;
        if places == 0 {
            return None;
        }
        loop {
            let drawn = node(random.below(places as u64) as usize);
            if is_alive(drawn) {
                return Some(drawn);
            }
            // Looked at only once, and only where a node has crashed.
            if !is_sure && !(0..places).map(node).any(&is_alive) {
                return None;
            }
            is_sure = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locality(share: f64, shape: &str, nodes: u32) -> Locality {
        Locality::new(share, &Clusters::build(&shape.parse().unwrap(), nodes).unwrap())
    }

    #[test]
    fn the_share_of_requests_from_the_same_cluster_is_what_was_asked_for() {
        for share in [0.0, 0.25, 0.9, 1.0] {
            let mut locality = locality(share, "0,3,6|1,4|2,5,7", 8);
            let (mut random, mut last, mut near) = (Random::new(1), None, 0);
            let mut counts = [0; 8];
            for _ in 0..20_001 {
                let node = locality.draw(&mut random, |_| true);
                counts[node.index()] += 1;
                near +=
                    u32::from(last.is_some_and(|last| locality.clusters.are_together(last, node)));
                last = Some(node);
            }
            assert!((f64::from(near) / 20_000.0 - share).abs() < 0.01, "{near} of {share}");
            assert!(share == 1.0 || counts.iter().all(|&count| count > 1000), "{counts:?}");
        }
    }

    #[test]
    fn where_nobody_is_left_alive_the_request_comes_from_elsewhere() {
        let mut locality = locality(1.0, "2x2", 4);
        let mut random = Random::new(1);
        let first = locality.draw(&mut random, |_| true);
        let clusters = locality.clusters.clone();
        let next = locality.draw(&mut random, |node| !clusters.are_together(first, node));
        assert!(!clusters.are_together(first, next));
    }
}
