//! What has to hold in every world.

use std::ops::RangeInclusive;

use catraca_core::property::{
    FENCES_INCREASE, FENCES_UNIQUE, INVARIANT, MUTUAL_EXCLUSION, NO_ANOMALY, NOBODY_WAITS_FOR_EVER,
    ONE_TOKEN,
};
use catraca_core::{Algorithm, Message, NodeId, Phase, Snapshot};
use stateright::Property;

use crate::model::GroupModel;
use crate::world::{Fault, World};

/// The properties of groups of `A`, the most telling first.
pub(crate) fn all<A: Algorithm>() -> Vec<Property<GroupModel<A>>> {
    let mut all: Vec<Property<GroupModel<A>>> = vec![
        Property::always(MUTUAL_EXCLUSION, |model, world| mutual_exclusion(model, world).is_ok()),
        Property::always(NOBODY_WAITS_FOR_EVER, |_, world| nobody_waits_for_ever(world).is_ok()),
        Property::always(FENCES_INCREASE, |_, world| fences_increase(world).is_ok()),
        Property::always(FENCES_UNIQUE, |_, world| fences_are_unique(world).is_ok()),
    ];
    if A::TOKEN {
        all.push(Property::always(ONE_TOKEN, |_, world| one_token(world).is_ok()));
    }
    all.push(Property::always(NO_ANOMALY, |_, world| no_anomaly(world).is_ok()));
    all.push(Property::always(INVARIANT, |model, world| invariant(model, world).is_ok()));
    all
}

/// Says how `world` breaks the property called `name`.
pub(crate) fn explain<A: Algorithm>(
    name: &str,
    model: &GroupModel<A>,
    world: &World<A>,
) -> Result<(), String> {
    match name {
        MUTUAL_EXCLUSION => mutual_exclusion(model, world),
        NOBODY_WAITS_FOR_EVER => nobody_waits_for_ever(world),
        FENCES_INCREASE => fences_increase(world),
        FENCES_UNIQUE => fences_are_unique(world),
        ONE_TOKEN => one_token(world),
        NO_ANOMALY => no_anomaly(world),
        _ => invariant(model, world).map_err(str::to_string),
    }
}

fn mutual_exclusion<A: Algorithm>(model: &GroupModel<A>, world: &World<A>) -> Result<(), String> {
    let inside = || world.nodes_in(Phase::Inside);
    let claim = |node: NodeId| model.claims.claim(world.applications()[node.index()].claim);
    let capacity = model.claims.capacity() as usize;
    for (count, node) in inside().enumerate() {
        let shares = |&other: &NodeId| claim(other).overlaps(claim(node));
        if inside().take(count).filter(shares).count() >= capacity {
            return Err(format!("{} inside at the same time", subject(world, Phase::Inside)));
        }
    }
    Ok(())
}

fn nobody_waits_for_ever<A: Algorithm>(world: &World<A>) -> Result<(), String> {
    if !world.is_at_rest() || world.nodes_in(Phase::Waiting).next().is_none() {
        return Ok(());
    }
    Err(format!("{} waiting and nothing can happen any more", subject(world, Phase::Waiting)))
}

/// Says who waits while the steps `repeated` go on for ever.
pub(crate) fn explain_cycle<A: Algorithm>(
    world: &World<A>,
    repeated: RangeInclusive<u64>,
) -> String {
    let waiting = subject(world, Phase::Waiting);
    match (repeated.start(), repeated.end()) {
        (first, last) if first == last => format!("{waiting} waiting while step {first} repeats"),
        (first, last) => format!("{waiting} waiting while steps {first} to {last} repeat"),
    }
}

fn fences_increase<A: Algorithm>(world: &World<A>) -> Result<(), String> {
    match world.fault() {
        Some(Fault::FenceOrder { last, granted }) => {
            Err(format!("fence {granted} comes after fence {last}"))
        }
        _ => Ok(()),
    }
}

fn fences_are_unique<A: Algorithm>(world: &World<A>) -> Result<(), String> {
    match world.fault() {
        Some(Fault::FenceTwice(fence)) => Err(format!("fence {fence} comes for the second time")),
        _ => Ok(()),
    }
}

fn one_token<A: Algorithm>(world: &World<A>) -> Result<(), String> {
    let living = (0..).map(NodeId).zip(world.nodes()).filter(|(id, _)| world.is_alive(*id));
    let held = living.filter(|(_, node)| node.holds_token()).count();
    let sent = world.in_flight().iter().filter(|sent| sent.message.carries_token()).count();
    match held + sent {
        1 => Ok(()),
        0 if !world.is_whole() => Ok(()),
        0 => Err("the token is lost".to_string()),
        many => Err(format!("there are {many} tokens: {held} at nodes, {sent} in messages")),
    }
}

fn no_anomaly<A: Algorithm>(world: &World<A>) -> Result<(), String> {
    match world.fault() {
        None | Some(Fault::FenceOrder { .. } | Fault::FenceTwice(_)) => Ok(()),
        Some(Fault::Anomaly(node, what)) => Err(format!("node {node}: {what}")),
        Some(Fault::NotWaiting(node)) => Err(format!("node {node} is let in without waiting")),
        Some(Fault::ToItself(node)) => Err(format!("node {node} sends a message to itself")),
        Some(Fault::ToNobody { from, to }) => {
            Err(format!("node {from} sends a message to node {to}, which does not exist"))
        }
    }
}

fn invariant<A: Algorithm>(model: &GroupModel<A>, world: &World<A>) -> Result<(), &'static str> {
    if !world.is_whole() {
        return Ok(());
    }
    let (nodes, in_flight) = (world.nodes(), world.in_flight());
    A::invariant(&Snapshot { config: &model.config, nodes, in_flight })
}

/// 'node 2 is' or 'nodes 0 and 2 are': those in `phase`, of whom there is at least one.
fn subject<A: Algorithm>(world: &World<A>, phase: Phase) -> String {
    let names: Vec<String> = world.nodes_in(phase).map(|node| node.to_string()).collect();
    match names.as_slice() {
        [one] => format!("node {one} is"),
        several => format!("nodes {} are", several.join(" and ")),
    }
}
