//! From a path through the state space to a trace for people.

use std::ops::RangeInclusive;

use catraca_algorithms::Spec;
use catraca_core::Algorithm;
use catraca_core::property::NOBODY_WAITS_FOR_EVER;

use crate::explore::Violation;
use crate::model::GroupModel;
use crate::property;
use crate::walk::Walk;

/// Walks `path` (which action to take in each world) and records it.
pub(crate) fn violation<A: Algorithm>(
    model: &GroupModel<A>,
    spec: &Spec,
    property: &'static str,
    path: &[usize],
) -> Violation {
    let walk = Walk::along(model, path.iter().copied());
    let what = match property::explain(property, model, &walk.world) {
        Err(what) => what,
        Ok(()) => unreachable!("the search found '{property}' broken in this very world"),
    };
    into_violation(walk, spec, property, what, None)
}

/// Walks `path`, and then `cycle` once, which leads back to where it begins.
pub(crate) fn lasso<A: Algorithm>(
    model: &GroupModel<A>,
    spec: &Spec,
    path: &[usize],
    cycle: &[usize],
) -> Violation {
    let walk = Walk::along(model, path.iter().chain(cycle).copied());
    let (first, last) = (path.len() as u64 + 1, (path.len() + cycle.len()) as u64);
    let what = property::explain_cycle(&walk.world, first..=last);
    into_violation(walk, spec, NOBODY_WAITS_FOR_EVER, what, Some(first..=last))
}

fn into_violation<A: Algorithm>(
    walk: Walk<'_, A>,
    spec: &Spec,
    property: &'static str,
    what: String,
    cycle: Option<RangeInclusive<u64>>,
) -> Violation {
    let mut trace = walk.into_trace(spec);
    trace.header.violation = Some(format!("{property}: {what}"));
    Violation { property, what, trace, cycle }
}
