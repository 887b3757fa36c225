//! Exact effects, and what is refused.

use alloc::vec::Vec;

use catraca_core::{Effect, Input};
use catraca_topology::Clusters;

use super::*;
use crate::testing::{from, request, send, step};

pub(super) fn config(shape: &str, nodes: u32) -> Config {
    let clusters = Clusters::build(&shape.parse().unwrap(), nodes).unwrap();
    Config { clusters, max_preempt: 1, max_hops: MAX_HOPS }
}

pub(super) fn token(fence: u64, nb_preempt: u32, remote: Option<u32>) -> Msg {
    let token = Token { fence: Fence(fence), nb_preempt };
    Msg::Token { token, remote: remote.map(NodeId) }
}

/// The clusters {A, B, C} and {D, E, F} of S0's Figure 1, with the proxies A and F.
pub(super) const FIGURE: &str = "0,1,2|5,3,4";
pub(super) const A: u32 = 0;
pub(super) const B: u32 = 1;
pub(super) const C: u32 = 2;
pub(super) const D: u32 = 3;
pub(super) const E: u32 = 4;
pub(super) const F: u32 = 5;

pub(super) fn node(id: u32, start: &Start) -> Bertier {
    Bertier::new(NodeId(id), &config(FIGURE, 6), start)
}

#[test]
fn a_proxy_that_leaves_a_queue_behind_asks_outside_for_it_in_the_same_step() {
    let mut group = config(FIGURE, 6);
    group.max_preempt = 0;
    let mut a = node(A, &Start::inside(NodeId(A)));
    step(&mut a, &group, from(F, Msg::Remote(NodeId(D))));
    step(&mut a, &group, from(B, Msg::Request(NodeId(B))));
    let left = step(&mut a, &group, Input::Release);
    assert_eq!(left, [send(D, token(0, 0, None)), send(F, Msg::Remote(NodeId(B)))]);
}

#[test]
fn an_idle_holder_sends_the_token_to_whoever_asks() {
    let (group, start) = (config(FIGURE, 6), Start::token_at(NodeId(B)));
    let mut a = node(A, &start);
    let let_in = step(&mut a, &group, from(F, Msg::Remote(NodeId(D))));
    assert_eq!(let_in, [send(B, Msg::Behind { node: NodeId(D), hops: 1 })]);
    assert_eq!(a.owner, NodeId(B), "a remote request turns no local pointer");

    let mut b = node(B, &start);
    let local = step(&mut b.clone(), &group, from(C, Msg::Request(NodeId(C))));
    assert_eq!(local, [send(C, token(0, 0, None))]);
    let remote = step(&mut b, &group, from(A, Msg::Behind { node: NodeId(D), hops: 1 }));
    assert_eq!(remote, [send(D, token(0, 0, None))]);
    assert!(b.gone);

    let asked = step(&mut b, &group, from(C, Msg::Request(NodeId(C))));
    assert_eq!(asked, [send(A, Msg::Outside(NodeId(C)))]);
    assert_eq!((b.owner, b.gone), (NodeId(C), false));
    assert_eq!(step(&mut b, &group, request()), [send(C, Msg::Request(NodeId(B)))]);
}

#[test]
fn the_last_of_a_cluster_that_sent_the_token_away_asks_outside_for_itself() {
    let (group, start) = (config(FIGURE, 6), Start::inside(NodeId(B)));
    let mut b = node(B, &start);
    step(&mut b, &group, from(A, Msg::Behind { node: NodeId(D), hops: 1 }));
    assert_eq!(step(&mut b, &group, Input::Release), [send(D, token(0, 0, None))]);
    assert_eq!(step(&mut b, &group, request()), [send(A, Msg::Outside(NodeId(B)))]);
    assert_eq!((b.owner, b.gone), (NodeId(B), false));
}

#[test]
fn a_proxy_whose_cluster_is_not_the_last_passes_a_remote_request_on() {
    let group = config("1,1,1", 3);
    let mut n1 = Bertier::new(NodeId(1), &group, &Start::idle());
    let passed = step(&mut n1, &group, from(2, Msg::Remote(NodeId(2))));
    assert_eq!(passed, [send(0, Msg::Remote(NodeId(2)))]);
    let proxy = n1.proxy.as_deref().unwrap();
    assert_eq!((proxy.last, proxy.remote_owner), (NodeId(2), None));
    assert_eq!(step(&mut n1, &group, request()), [send(2, Msg::Remote(NodeId(1)))]);
}

#[test]
fn a_remote_request_that_runs_out_of_patience_turns_the_pointers_to_the_proxy() {
    let mut group = config(FIGURE, 6);
    group.max_hops = 1;
    let start = Start::inside(NodeId(B));
    let [mut a, mut b, mut c] = [A, B, C].map(|id| node(id, &start));
    step(&mut a, &group, from(F, Msg::Remote(NodeId(D))));
    step(&mut c, &group, request());
    step(&mut b, &group, from(C, Msg::Request(NodeId(C))));
    let behind = Msg::Behind { node: NodeId(D), hops: 1 };
    let back = step(&mut b, &group, from(A, behind));
    assert_eq!(back, [send(A, Msg::Overtaken(NodeId(D)))]);

    let turned = step(&mut a, &group, from(B, Msg::Overtaken(NodeId(D))));
    assert_eq!(turned, [send(B, Msg::Turn(NodeId(D)))]);
    let turned = step(&mut b, &group, from(A, Msg::Turn(NodeId(D))));
    assert_eq!(turned, [send(C, Msg::Turn(NodeId(D)))]);
    assert_eq!(step(&mut c, &group, from(B, Msg::Turn(NodeId(D)))), []);
    assert_eq!([a.owner, b.owner, c.owner], [NodeId(A); 3]);
    assert_eq!((c.remote, c.gone, a.gone), (Some(NodeId(D)), false, true));

    // A node that asks now is behind D.
    assert_eq!(step(&mut a, &group, request()), [send(F, Msg::Remote(NodeId(A)))]);
    step(&mut c, &group, from(B, token(0, 0, None)));
    assert_eq!(step(&mut c, &group, Input::Release), [send(D, token(1, 0, None))]);
    assert!(!c.gone, "the proxy is the root, not this node");
}

#[test]
fn a_group_of_one_enters_at_once() {
    let alone = Bertier::config(&Spec::new("bertier", 1)).unwrap();
    let mut node = Bertier::new(NodeId(0), &alone, &Start::idle());
    assert_eq!(step(&mut node, &alone, request()), [Effect::Granted(Fence(1))]);
}

#[test]
fn without_clusters_there_are_two_halves() {
    let halves = |nodes| Bertier::config(&Spec::new("bertier", nodes)).unwrap().clusters;
    assert_eq!(halves(2).by_node(), [0, 1]);
    assert_eq!(halves(5).by_node(), [0, 0, 0, 1, 1]);
    let mut spec = Spec::new("bertier", 3);
    spec.clusters = Some("3".parse().unwrap());
    spec.max_preempt = Some(4);
    let given = Bertier::config(&spec).unwrap();
    assert_eq!((given.clusters.count(), given.max_preempt), (1, 4));
    spec.proxies = Some("2".parse().unwrap());
    assert_eq!(Bertier::config(&spec).unwrap().clusters.proxy(NodeId(0)), NodeId(2));
}

#[test]
fn what_cannot_be_meant_for_a_node_is_an_anomaly_and_changes_nothing() {
    let group = config(FIGURE, 6);
    let behind = |id| Msg::Behind { node: NodeId(id), hops: u32::MAX };
    let unsound = [
        (A, Msg::Request(NodeId(A))),
        (A, Msg::Request(NodeId(D))),
        (B, Msg::Request(NodeId(6))),
        (F, Msg::Outside(NodeId(A))),
        (A, Msg::Outside(NodeId(B))),
        (B, Msg::Outside(NodeId(C))),
        (A, Msg::Remote(NodeId(B))),
        (A, Msg::Remote(NodeId(6))),
        (B, Msg::Remote(NodeId(D))),
        (B, behind(C)),
        (B, behind(6)),
        (F, behind(A)),
        (A, Msg::Overtaken(NodeId(D))),
        (B, Msg::Overtaken(NodeId(D))),
        (A, Msg::Turn(NodeId(D))),
        (B, Msg::Turn(NodeId(u32::MAX))),
        (A, token(0, 0, None)),
        (D, token(0, 0, None)),
        (D, token(0, u32::MAX, Some(6))),
        (D, token(0, 0, Some(E))),
    ];
    for (me, message) in unsound {
        let mut n = node(me, &Start::inside(NodeId(A)));
        let before = n.clone();
        let effects = step(&mut n, &group, from(B, message.clone()));
        assert!(matches!(effects[..], [Effect::Anomaly(_)]), "{message:?} at {me}");
        assert_eq!(n, before, "{message:?} at {me}");
    }
}

#[test]
fn a_node_is_small() {
    assert!(size_of::<Bertier>() <= 64);
}

#[test]
fn the_invariant_sees_circles_and_owners_outside() {
    let group = config(FIGURE, 6);
    let nodes: Vec<Bertier> = (A..=F).map(|id| node(id, &Start::idle())).collect();
    let check = |change: &dyn Fn(&mut [Bertier])| {
        let mut nodes = nodes.clone();
        change(&mut nodes);
        Bertier::invariant(&Snapshot { config: &group, nodes: &nodes, in_flight: &[] })
    };
    assert_eq!(check(&|_| ()), Ok(()));
    assert!(check(&|nodes| nodes[0].owner = NodeId(B)).is_err(), "A and B face each other");
    assert!(check(&|nodes| nodes[1].owner = NodeId(F)).is_err(), "F is not a colleague of B");
    let circle = |nodes: &mut [Bertier]| {
        if let Some(proxy) = nodes[0].proxy.as_deref_mut() {
            proxy.last = NodeId(F);
        }
    };
    assert!(check(&circle).is_err(), "A and F face each other");
}
