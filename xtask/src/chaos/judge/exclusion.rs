//! No more are inside a name than may be.

use catraca_client::Time;

use super::{Hold, Rule, Violation};

/// The moments at which one more came in than may be inside.
pub(super) fn check(name: &str, holds: &[Hold]) -> Vec<Violation> {
    // Who leaves at the moment at which another comes in is gone: false comes before true.
    let mut moments: Vec<(Time, bool, usize)> = Vec::new();
    for (number, hold) in holds.iter().enumerate() {
        for inside in hold.inside.iter().filter(|inside| !inside.is_empty()) {
            moments.push((inside.start, true, number));
            moments.push((inside.end, false, number));
        }
    }
    moments.sort_unstable();

    let (mut inside, mut violations) = (Vec::<usize>::new(), Vec::new());
    for (at, comes_in, number) in moments {
        if !comes_in {
            inside.retain(|&other| other != number);
            continue;
        }
        inside.push(number);
        if inside.len() > holds[number].permits as usize {
            violations.push(too_many(name, at, inside.iter().map(|&number| &holds[number])));
        }
    }
    violations
}

fn too_many<'a>(name: &str, at: Time, inside: impl Iterator<Item = &'a Hold>) -> Violation {
    let inside: Vec<&Hold> = inside.collect();
    // A durable hold that others are inside of beside it is no durable hold.
    let has_durable = inside.iter().any(|hold| hold.is_durable);
    let rule = if has_durable { Rule::DurableStays } else { Rule::Exclusion };
    let fences: Vec<String> = inside.iter().map(|hold| hold.fence.to_string()).collect();
    let what = format!("{} are inside {name}, with fences {}", inside.len(), fences.join(" and "));
    Violation { rule, what, at, requests: inside.iter().map(|hold| hold.request).collect() }
}
