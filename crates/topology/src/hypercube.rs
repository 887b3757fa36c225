//! The hypercube that Hi-ADSD and STA run on.

use alloc::vec::Vec;

use catraca_core::NodeId;

/// Nodes on the corners of a hypercube, corner i being node i. Where there are fewer nodes than
/// corners, the last corners are absent.
///
/// Seen from node i the others form clusters, C(i,s) for s from 1 to the dimension, of up to 1, 2, 4
/// and so on nodes: those whose number differs from i in bit s-1 and in no higher one. Each is a
/// smaller hypercube. Reference: S4, section 3.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hypercube {
    nodes: u32,
    /// C(0,s), absent corners included, at place s-1. C(i,s) is the same with i added bit by bit.
    from_zero: Vec<Vec<u32>>,
}

impl Hypercube {
    /// The smallest hypercube that has a corner for each of `nodes`.
    pub fn new(nodes: u32) -> Self {
        let mut from_zero: Vec<Vec<u32>> = Vec::new();
        let mut nearest = 1;
        while nearest < nodes {
            // C(i,s) = <i ^ 2^(s-1), C(i ^ 2^(s-1), s-1), ..., C(i ^ 2^(s-1), 1)>
            let inner = from_zero.iter().rev().flatten().map(|corner| corner ^ nearest);
            let cluster = core::iter::once(nearest).chain(inner).collect();
            from_zero.push(cluster);
            nearest *= 2;
        }
        Hypercube { nodes, from_zero }
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The least d such that 2^d corners are enough: log N, rounded up.
    pub fn dimension(&self) -> u32 {
        self.from_zero.len() as u32
    }

    /// The nodes of C(`of`, `s`), in the order of the paper; none if `s` is larger than the
    /// dimension.
    pub fn cluster(&self, of: NodeId, s: u32) -> impl Iterator<Item = NodeId> + Clone + '_ {
        let corners = self.from_zero.get(s as usize - 1).map_or(&[][..], Vec::as_slice);
        let nodes = self.nodes;
        corners.iter().map(move |corner| NodeId(corner ^ of.0)).filter(move |node| node.0 < nodes)
    }

    /// The s for which `other` is in C(`of`, s).
    pub fn cluster_with(&self, of: NodeId, other: NodeId) -> u32 {
        u32::BITS - (of.0 ^ other.0).leading_zeros()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn cluster(nodes: u32, of: u32, s: u32) -> Vec<u32> {
        Hypercube::new(nodes).cluster(NodeId(of), s).map(|node| node.0).collect()
    }

    /// 'C(0,3) = <4, C(4,2), C(4,1)> = <4, 6, C(6,1), 5> = <4, 6, 7, 5>.' Reference: S4 3.1.
    #[test]
    fn paper_the_clusters_of_eight_nodes() {
        assert_eq!(cluster(8, 0, 1), [1]);
        assert_eq!(cluster(8, 0, 2), [2, 3]);
        assert_eq!(cluster(8, 0, 3), [4, 6, 7, 5]);
        assert_eq!(cluster(8, 4, 2), [6, 7]);
        assert_eq!(cluster(8, 6, 2), [4, 5]);
    }

    #[test]
    fn absent_corners_are_left_out() {
        assert_eq!(Hypercube::new(1).dimension(), 0);
        assert_eq!(cluster(1, 0, 1), vec![0; 0]);
        assert_eq!(Hypercube::new(5).dimension(), 3);
        assert_eq!(cluster(5, 0, 3), [4]);
        assert_eq!(cluster(5, 4, 1), vec![0; 0]);
        assert_eq!(cluster(5, 4, 3), [0, 2, 3, 1]);
    }

    #[test]
    fn every_other_node_is_in_exactly_one_cluster_and_the_cube_knows_which() {
        for nodes in 1..=70 {
            let cube = Hypercube::new(nodes);
            for of in NodeId::all(nodes) {
                let mut seen = vec![of.0];
                for s in 1..=cube.dimension() {
                    for node in cube.cluster(of, s) {
                        assert_eq!(cube.cluster_with(of, node), s);
                        seen.push(node.0);
                    }
                }
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..nodes), "{of} of {nodes}");
            }
        }
    }
}
