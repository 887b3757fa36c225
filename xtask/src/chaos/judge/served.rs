//! After healing, whoever asks is served, and every client comes to its end.

use std::collections::BTreeMap;

use catraca_client::Time;

use super::{Healing, Rule, Violation};
use crate::chaos::history::{Event, History};

pub(super) fn check(histories: &[History], healing: Healing) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, history) in histories.iter().enumerate().filter(|(_, history)| !history.was_killed)
    {
        let is_done = history.records.iter().any(|record| record.event == Event::Done);
        if !is_done {
            let what = format!("{} has not come to its end", history.client);
            let at = healing.at + healing.limit;
            violations.push(Violation { rule: Rule::Served, what, at, requests: Vec::new() });
        }
        violations.extend(unserved(number, history, healing));
    }
    violations
}

/// The requests after healing that were not granted in time.
fn unserved(number: usize, history: &History, healing: Healing) -> Vec<Violation> {
    let mut waiting = BTreeMap::<u64, (Time, &[String])>::new();
    for record in &history.records {
        match &record.event {
            Event::Asked { names, .. } if record.at >= healing.at => {
                waiting.insert(record.request, (record.at, names));
            }
            Event::Granted { .. } => {
                let asked = waiting.get(&record.request).map(|&(asked, _)| asked);
                if asked.is_some_and(|asked| record.at <= asked + healing.limit) {
                    waiting.remove(&record.request);
                }
            }
            _ => {}
        }
    }
    let violation = |(request, (asked, names)): (u64, (Time, &[String]))| Violation {
        rule: Rule::Served,
        what: format!(
            "{} was not given {} within {} s",
            history.client,
            names.join(" "),
            healing.limit.as_secs()
        ),
        at: asked + healing.limit,
        requests: vec![(number, request)],
    };
    waiting.into_iter().map(violation).collect()
}
