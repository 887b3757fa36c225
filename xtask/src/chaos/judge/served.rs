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

/// The requests that had to be served after healing and were not granted in time.
fn unserved(number: usize, history: &History, healing: Healing) -> Vec<Violation> {
    let mut names_of = BTreeMap::<u64, &[String]>::new();
    let mut waiting = BTreeMap::<u64, Time>::new();
    for record in &history.records {
        match &record.event {
            Event::Asked { names, .. } => {
                names_of.insert(record.request, names);
            }
            Event::Insisted => {
                waiting.insert(record.request, record.at);
            }
            Event::Granted { .. } => {
                let asked = waiting.get(&record.request);
                if asked.is_some_and(|&asked| record.at <= asked + healing.limit) {
                    waiting.remove(&record.request);
                }
            }
            _ => {}
        }
    }
    let violation = |(request, asked): (u64, Time)| Violation {
        rule: Rule::Served,
        what: format!(
            "{} was not given {} within {} s",
            history.client,
            names_of.get(&request).map(|names| names.join(" ")).unwrap_or_default(),
            healing.limit.as_secs()
        ),
        at: asked + healing.limit,
        requests: vec![(number, request)],
    };
    waiting.into_iter().map(violation).collect()
}
