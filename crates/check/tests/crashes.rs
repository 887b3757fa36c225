//! A node may crash in the middle of a step, when only a part of its messages has left. How such a
//! step is recorded, `traces.rs` shows.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use catraca_algorithms::{Spec, Visitor};
use catraca_check::{Action, Claims, GroupModel, Move, Network};
use catraca_core::{Algorithm, NodeId};
use stateright::Model;

/// Who is sent a message when node 0 asks and crashes meanwhile, for each way to do so.
struct Interrupted<'a>(&'a Spec, Network);

impl Visitor for Interrupted<'_> {
    type Output = Vec<Vec<NodeId>>;

    fn visit<A: Algorithm>(self, config: A::Config) -> Self::Output {
        let Interrupted(spec, network) = self;
        let (nodes, start) = (spec.nodes, spec.start.clone());
        let claims = Claims::new(&[], spec, 1);
        let model = GroupModel::<A> {
            config,
            nodes,
            start,
            requests: 1,
            crashes: 1,
            claims,
            network,
            begin: None,
        };
        let world = model.first_world();
        let mut moves = Vec::new();
        model.actions(&world, &mut moves);
        let asks =
            |it: &Move| matches!(it, Move::CutShort { action: Action::Request(NodeId(0)), .. });
        let worlds = moves.into_iter().filter(asks).filter_map(|it| model.next_state(&world, it));
        worlds
            .map(|world| {
                assert!(
                    !world.is_alive(NodeId(0))
                        && world.suspicions().len() + 1 == world.nodes().len()
                );
                world.in_flight().iter().map(|envelope| envelope.to).collect()
            })
            .collect()
    }
}

#[test]
fn every_part_of_a_broadcast_may_have_left() {
    let spec = Spec::new("raymond-k", 4);
    let parts = spec.visit(Interrupted(&spec, Network::Any)).unwrap();
    let expected: [&[u32]; 6] = [&[1], &[2], &[1, 2], &[3], &[1, 3], &[2, 3]];
    assert_eq!(parts, expected.map(|part| part.iter().copied().map(NodeId).collect::<Vec<_>>()));
}

#[test]
fn of_many_messages_it_is_every_part_from_the_first_on() {
    let spec = Spec::new("raymond-k", 8);
    let parts = spec.visit(Interrupted(&spec, Network::Any)).unwrap();
    let expected: Vec<Vec<NodeId>> = (1..7).map(|last| (1..=last).map(NodeId).collect()).collect();
    assert_eq!(parts, expected);
}
