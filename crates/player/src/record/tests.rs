use catraca_core::{Claim, Fence, NodeId};
use catraca_trace::{Header, Payload, SendId};
use serde_json::json;

use super::*;

fn step(at: u64, node: u32, input: Input<Payload>, outcomes: Vec<Outcome>) -> Event {
    let delivers = matches!(input, Input::Message { .. }).then_some(SendId(0));
    Event::Step(Step { at, node: NodeId(node), input, delivers, outcomes })
}

fn payload(kind: &str, content: u64) -> Payload {
    Payload { kind: kind.to_string(), body: json!({ kind: content }) }
}

/// Naimi-Trehel, the token at 0: node 1 asks and gets it.
fn trace() -> Trace {
    let send = |id, to, message| Outcome::Send { id: SendId(id), to: NodeId(to), message };
    let mut token = step(
        3,
        1,
        Input::Message { from: NodeId(0), message: payload("token", 0) },
        vec![Outcome::Granted(Fence(1))],
    );
    if let Event::Step(step) = &mut token {
        step.delivers = Some(SendId(1));
    }
    let events = vec![
        step(1, 1, Input::Request(Claim::single()), vec![send(0, 0, payload("request", 1))]),
        step(
            2,
            0,
            Input::Message { from: NodeId(1), message: payload("request", 1) },
            vec![send(1, 1, payload("token", 0))],
        ),
        token,
    ];
    Trace { header: Header::new(Origin::Check, Spec::new("naimi-trehel", 2), 1), events }
}

fn as_json(recording: &Recording) -> serde_json::Value {
    serde_json::to_value(recording).unwrap()
}

#[test]
fn only_what_changes_is_recorded() {
    let run = as_json(&record(&trace(), Window::default()).unwrap());
    let names: Vec<&str> =
        run["start"][0].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["phase", "last", "next", "token", "fence"]);
    assert_eq!(
        run["events"][0]["changes"],
        json!([[0, { "text": "waiting" }], [1, { "node": 1 }]])
    );
    assert_eq!(run["events"][1]["changes"], json!([[1, { "node": 1 }], [3, { "flag": false }]]));
    assert_eq!(run["events"][2]["granted"], 1);
    assert_eq!(run["events"][1]["sends"][0]["kind"], "token");
    assert_eq!((&run["violation"], &run["expected"]), (&json!(null), &json!(null)));
}

#[test]
fn a_window_begins_with_what_the_nodes_know_then() {
    let run = as_json(&record(&trace(), Window { from: 2, to: 2 }).unwrap());
    assert_eq!(run["events"].as_array().unwrap().len(), 1);
    assert_eq!(run["before"], json!({ "events": 1, "messages": 1, "entries": 0 }));
    assert_eq!(run["start"][1][0]["value"], json!({ "text": "waiting" }));
}

#[test]
fn an_empty_part_is_empty_and_a_large_group_is_refused() {
    assert!(record(&trace(), Window { from: 9, to: 10 }).unwrap().is_empty());
    let mut large = trace();
    large.header.spec.nodes = MOST_NODES + 1;
    let error = record(&large, Window::default()).unwrap_err().to_string();
    assert!(error.contains("101 nodes"), "{error}");
}

#[test]
fn a_run_with_too_many_steps_is_cut_and_says_what_follows() {
    let most = MOST_STEPS as u64;
    // What comes at one time stays together.
    let cut = |until: u64, last: u64| {
        let mut long = trace();
        let first = long.events.len() as u64 + 1;
        long.events.extend((first..=until).map(|at| Event::Lost { at, id: SendId(9) }));
        long.events.push(Event::Lost { at: last, id: SendId(9) });
        long.header.violation = Some("no progress".to_string());
        record(&long, Window::default()).unwrap()
    };
    let whole = cut(most - 1, most);
    assert_eq!((whole.rest(), whole.events.len()), (None, MOST_STEPS));
    assert_eq!(whole.violation.unwrap().event, MOST_STEPS - 1);

    let first = cut(most + 5, most + 5);
    let next = Window { from: most + 1, to: most + 5 };
    assert_eq!(first.rest(), Some(Rest { next, is_wrong: true }));
    assert_eq!((first.events.len(), first.violation), (MOST_STEPS, None));

    let longer = cut(3 * most, 3 * most + 1);
    assert_eq!(longer.rest().unwrap().next, Window { from: most + 1, to: 2 * most });
}

#[test]
fn a_run_that_is_not_what_its_trace_says_ends_where_it_differs() {
    let mut changed = trace();
    let Event::Step(step) = &mut changed.events[1] else { unreachable!() };
    step.outcomes.clear();
    let run = as_json(&record(&changed, Window::default()).unwrap());
    assert_eq!(run["events"].as_array().unwrap().len(), 2);
    assert_eq!(run["violation"]["event"], 1);
}

#[test]
fn what_no_single_step_shows_is_marked_at_the_end() {
    let mut waits = trace();
    waits.events.truncate(1);
    waits.header.violation = Some("nobody waits for ever".to_string());
    let run = as_json(&record(&waits, Window::default()).unwrap());
    assert_eq!(run["violation"], json!({ "event": 0, "what": "nobody waits for ever" }));
}

#[test]
fn what_is_wrong_is_marked_after_the_step_that_somebody_names() {
    let mut run = record(&trace(), Window::default()).unwrap();
    run.mark(Some((2, "one token: there are two".to_string())));
    let said = as_json(&run)["violation"].clone();
    assert_eq!(said, json!({ "event": 1, "what": "one token: there are two" }));
    run.mark(None);
    assert_eq!(as_json(&run)["violation"], json!(null));
}

#[test]
fn the_handlers_of_the_algorithm_and_what_a_mutant_breaks_are_told() {
    let run = as_json(&record(&trace(), Window::default()).unwrap());
    let rules = run["rules"].as_object().unwrap();
    assert_eq!(
        rules.keys().collect::<Vec<_>>(),
        ["message request", "message token", "release", "request"]
    );
    let mut broken = trace();
    broken.header.spec.mutant = Some("token-cloned".to_string());
    let run = as_json(&record(&broken, Window::default()).unwrap());
    assert!(run["breaks"].as_str().unwrap().contains("copy of the token"));
}
