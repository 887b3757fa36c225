//! Fences of a lock grow in the order of its grants; those of a semaphore differ.

use std::collections::BTreeMap;

use super::{Hold, Rule, Violation};

pub(super) fn check(name: &str, holds: &[Hold]) -> Vec<Violation> {
    let mut violations = given_twice(name, holds);
    violations.extend(fallen(name, holds));
    violations
}

fn given_twice(name: &str, holds: &[Hold]) -> Vec<Violation> {
    let (mut seen, mut violations) = (BTreeMap::<u64, &Hold>::new(), Vec::new());
    for hold in holds {
        if let Some(first) = seen.insert(hold.fence, hold) {
            let what = format!("fence {} of {name} was given twice", hold.fence);
            let requests = vec![first.request, hold.request];
            let at = first.granted.max(hold.granted);
            violations.push(Violation { rule: Rule::FencesDiffer, what, at, requests });
        }
    }
    violations
}

/// Only those count who were certain of the lock when they looked at the clock: then nobody else had
/// come in and gone, between the grant and the look.
fn fallen(name: &str, holds: &[Hold]) -> Vec<Violation> {
    let counts = |hold: &&Hold| hold.permits == 1 && hold.was_certain();
    let mut ordered: Vec<&Hold> = holds.iter().filter(counts).collect();
    ordered.sort_by_key(|hold| hold.granted);
    let mut violations = Vec::new();
    let mut largest: Option<&Hold> = None;
    for hold in ordered {
        if let Some(before) = largest.filter(|before| before.fence > hold.fence) {
            let what = format!("fence {} of {name} comes after fence {}", hold.fence, before.fence);
            let requests = vec![before.request, hold.request];
            violations.push(Violation { rule: Rule::FencesGrow, what, at: hold.granted, requests });
        } else {
            largest = Some(hold);
        }
    }
    violations
}
