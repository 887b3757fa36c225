//! What S0 says of the algorithm, with its Figure 1 message by message.

use alloc::vec::Vec;

use catraca_core::{Effect, Input};

use super::tests::{A, B, C, D, E, F, FIGURE, config, node, token};
use super::*;
use crate::testing::{from, request, send, step};

/// 'The nodes that do not belong to the cluster of Elected_node set their owner to the proxy of
/// their cluster.' Reference: S0 2.2, Figure 1a.
#[test]
fn paper_the_owners_lead_to_the_elected_node_or_to_the_proxy() {
    let start = Start::inside(NodeId(A));
    let owners: Vec<u32> = (A..=F).map(|id| node(id, &start).owner.0).collect();
    assert_eq!(owners, [A, A, A, F, F, F]);
    assert_eq!(node(F, &start).proxy.map(|proxy| proxy.last), Some(NodeId(A)));
    assert_eq!([B, C, D, E].map(|id| node(id, &start).proxy), [None, None, None, None]);
}

/// 'D asks F, the proxy of its cluster. F redirects the message to A and sets its owner to D;
/// A sets its next and its remote_owner to D.' Reference: S0 2.2, Figure 1b.
/// 'E asks F. F redirects the message to D, which sets its next and owner to E. F, too, sets
/// its owner to E. The request is not sent out of the cluster.' Reference: S0 2.2, Figure 1c.
#[test]
fn paper_d_asks_and_then_e() {
    let (group, start) = (config(FIGURE, 6), Start::inside(NodeId(A)));
    let [mut a, mut d, mut e, mut f] = [A, D, E, F].map(|id| node(id, &start));

    let asked = |id| Msg::Request(NodeId(id));
    assert_eq!(step(&mut d, &group, request()), [send(F, asked(D))]);
    let outside = step(&mut f, &group, from(D, asked(D)));
    assert_eq!(outside, [send(A, Msg::Remote(NodeId(D)))]);
    assert_eq!(f.owner, NodeId(D));
    assert_eq!(step(&mut a, &group, from(F, Msg::Remote(NodeId(D)))), []);
    let proxy = a.proxy.as_deref().unwrap();
    assert_eq!((a.remote, proxy.remote_owner), (Some(NodeId(D)), Some(NodeId(D))));
    assert_eq!((a.owner, a.next, proxy.last), (NodeId(A), None, NodeId(F)));

    assert_eq!(step(&mut e, &group, request()), [send(F, asked(E))]);
    assert_eq!(step(&mut f, &group, from(E, asked(E))), [send(D, asked(E))]);
    assert_eq!(f.owner, NodeId(E));
    assert_eq!(step(&mut d, &group, from(F, asked(E))), []);
    assert_eq!((d.next, d.owner), (Some(NodeId(E)), NodeId(E)));

    assert_eq!(step(&mut a, &group, Input::Release), [send(D, token(0, 0, None))]);
    let entered = step(&mut d, &group, from(A, token(0, 0, None)));
    assert_eq!(entered, [Effect::Granted(Fence(1))]);
    assert_eq!(step(&mut d, &group, Input::Release), [send(E, token(1, 0, None))]);
    let entered = step(&mut e, &group, from(D, token(1, 0, None)));
    assert_eq!(entered, [Effect::Granted(Fence(2))]);
    assert_eq!(step(&mut e, &group, Input::Release), []);
    assert!(e.holds_token() && !e.gone);
}

/// 'nb_preempt: the number of successive local requests (used so as not to cause starvation)'
/// Reference: S0 2.2.
#[test]
fn paper_a_local_request_overtakes_a_remote_one_max_preempt_times() {
    let (group, start) = (config(FIGURE, 6), Start::inside(NodeId(A)));
    let [mut a, mut b] = [A, B].map(|id| node(id, &start));
    step(&mut a, &group, from(F, Msg::Remote(NodeId(D))));
    step(&mut b, &group, request());
    assert_eq!(step(&mut a, &group, from(B, Msg::Request(NodeId(B)))), []);
    let left = step(&mut a, &group, Input::Release);
    assert_eq!(left, [send(B, token(0, 1, Some(D)))]);

    assert_eq!(step(&mut b, &group, from(A, Msg::Request(NodeId(C)))), []);
    step(&mut b, &group, from(A, token(0, 1, Some(D))));
    let left = step(&mut b, &group, Input::Release);
    let rest = send(A, Msg::Outside(NodeId(C)));
    assert_eq!(left, [send(D, token(1, 0, None)), rest]);
    assert_eq!((b.next, b.remote, b.gone, b.holds_token()), (None, None, false, false));

    let outside = step(&mut a, &group, from(B, Msg::Outside(NodeId(C))));
    assert_eq!(outside, [send(F, Msg::Remote(NodeId(C)))]);
    let proxy = a.proxy.as_deref().unwrap();
    assert_eq!((proxy.last, proxy.remote_owner), (NodeId(A), None));
    assert_eq!(a.owner, NodeId(B), "the local queue stays as it is");
}
