//! What the page is told: a state, and what can follow it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use catraca_algorithms::Spec;
use catraca_check::{
    Bound, Breach, Choice, Effort, Options, Outlook, Position, Possible, What, outlook, position,
};
use catraca_player::{Window, record};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::link::{Link, Refusal};

/// The most states that one question looks at.
pub const MOST_STATES: u64 = 2_000_000;
/// The longest that it takes.
pub const MOST_SECONDS: u64 = 60;
/// What is looked at if nothing is said.
const DEFAULT_STATES: u64 = 200_000;
const DEFAULT_SECONDS: u64 = 10;
/// The memory of the process past which a question is given up.
const MOST_MEMORY: u64 = 3 << 30;

/// What the page asks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The state.
    pub link: String,
    /// How many states to look at.
    #[serde(default)]
    pub states: Option<u64>,
    /// How long.
    #[serde(default)]
    pub seconds: Option<u64>,
}

/// The state that a link leads to.
pub fn state(link: &Link) -> Result<Value, Refusal> {
    let (spec, options) = link.group()?;
    let position = position(&spec, &options, &link.steps)?;
    let mut run = record(&position.trace, Window::default())?;
    let broken = position.broken.as_ref();
    run.mark(broken.map(|it| (it.step as u64, format!("{}: {}", it.property, it.what))));
    Ok(json!({
        "link": link.after(position.taken).to_string(),
        "steps": names(&link.steps[..position.taken]),
        "problem": problem(&position, &link.steps),
        "run": run,
        "possible": position.possible.iter().map(possible).collect::<Vec<Value>>(),
        "onTheWay": position.on_the_way.iter().map(|it| json!({
            "id": it.id.0, "from": it.from.0, "to": it.to.0, "text": it.text,
        })).collect::<Vec<Value>>(),
        "broken": broken.map(|it| json!({
            "step": it.step, "property": it.property, "what": it.what,
        })),
        "sameAs": position.same_as,
        "kinds": position.kinds,
        "group": group(&spec, &options),
    }))
}

fn names(steps: &[Choice]) -> Vec<String> {
    steps.iter().map(Choice::to_string).collect()
}

/// Which step of the link could not be taken.
fn problem(position: &Position, steps: &[Choice]) -> Option<String> {
    let refused = steps.get(position.taken)?;
    let most = 12;
    let possible = position.possible.iter().take(most).map(|it| it.choice.to_string());
    let mut possible = possible.collect::<Vec<String>>().join(", ");
    if position.possible.len() > most {
        possible += ", ...";
    } else if possible.is_empty() {
        possible = "nothing".to_string();
    }
    let number = position.taken + 1;
    Some(format!(
        "Step {number} of the link, '{refused}', cannot happen here; possible are {possible}. \
         This is the state before it."
    ))
}

fn possible(it: &Possible) -> Value {
    let kind = match (it.choice.sent, it.choice.what) {
        (Some(_), _) => "cut",
        (None, What::Ask(_)) => "ask",
        (None, What::Leave(_)) => "leave",
        (None, What::Message { .. }) => "message",
        (None, What::Timer(..)) => "timer",
        (None, What::Crash(_)) => "crash",
        (None, What::Suspect { .. }) => "suspect",
    };
    json!({
        "step": it.choice.to_string(),
        "words": it.words,
        "kind": kind,
        "node": it.choice.what.node().0,
        "message": it.message.map(|id| id.0),
    })
}

fn group(spec: &Spec, options: &Options) -> Value {
    json!({
        "algorithm": spec.algorithm,
        "mutant": spec.mutant,
        "nodes": spec.nodes,
        "requests": options.requests,
        "crashes": options.crashes,
        "start": spec.start.to_string(),
        "order": options.network.to_string(),
    })
}

/// What can still happen after the steps of a link; `stop` ends it early.
pub fn explore(link: &Link, question: &Question, stop: Arc<AtomicBool>) -> Result<Value, Refusal> {
    let (spec, options) = link.group()?;
    let seconds = question.seconds.unwrap_or(DEFAULT_SECONDS).clamp(1, MOST_SECONDS);
    let effort = Effort {
        states: question.states.unwrap_or(DEFAULT_STATES).clamp(1, MOST_STATES),
        time: Duration::from_secs(seconds),
        memory: Some(MOST_MEMORY),
        stop,
        threads: options.threads,
    };
    let seen = outlook(&spec, &options, &link.steps, &effort)?;
    Ok(report(&seen))
}

fn report(seen: &Outlook) -> Value {
    json!({
        "states": seen.states,
        "steps": seen.steps,
        "depth": seen.depth,
        "ends": seen.ends,
        "stuck": seen.stuck,
        "broken": seen.broken,
        "breach": seen.breach.as_ref().map(breach),
        "entries": seen.entries.iter().map(|way| way.as_deref().map(names)).collect::<Vec<_>>(),
        "bound": seen.bound.map(bound),
        "lookedForCycles": seen.looked_for_cycles,
    })
}

fn breach(it: &Breach) -> Value {
    json!({
        "property": it.property, "what": it.what, "steps": names(&it.steps), "repeats": it.repeats,
    })
}

/// Why not everything was seen, in words.
fn bound(bound: Bound) -> String {
    match bound {
        Bound::States(most) => format!("more than {most} states can follow"),
        Bound::Time(most) => format!("{} seconds were not enough", most.as_secs()),
        Bound::Memory(most) => format!("more than {} MB of memory are in use", most >> 20),
        Bound::Stopped => "it was stopped".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(text: &str) -> Link {
        text.parse().unwrap()
    }

    fn explored(text: &str, states: u64) -> Value {
        let question = Question { link: text.into(), states: Some(states), seconds: Some(60) };
        explore(&link(text), &question, Arc::default()).unwrap()
    }

    #[test]
    fn a_state_has_all_that_a_page_shows() {
        let state = state(&link("algorithm=naimi-trehel&nodes=2&steps=a1.m1-0")).unwrap();
        assert_eq!(state["steps"], json!(["a1", "m1-0"]));
        assert_eq!(state["possible"].as_array().unwrap().len(), 2);
        assert_eq!(
            state["possible"][1],
            json!({ "step": "m0-1", "words": "token 0 from 0 arrives at 1", "kind": "message",
                    "node": 1, "message": 1 })
        );
        assert_eq!(state["onTheWay"], json!([{ "id": 1, "from": 0, "to": 1, "text": "token 0" }]));
        assert_eq!(state["run"]["events"].as_array().unwrap().len(), 2);
        assert_eq!(state["kinds"], json!(["request", "token"]));
        assert_eq!((&state["problem"], &state["broken"]), (&json!(null), &json!(null)));
    }

    #[test]
    fn nothing_has_happened_in_a_link_without_steps() {
        let state = state(&link("algorithm=maekawa")).unwrap();
        assert_eq!(state["run"]["events"], json!([]));
        assert_eq!(state["link"], "algorithm=maekawa");
    }

    #[test]
    fn a_step_that_cannot_happen_is_named_and_the_state_before_it_is_shown() {
        let state = state(&link("algorithm=naimi-trehel&nodes=2&steps=a1.l0.m1-0")).unwrap();
        assert_eq!(state["link"], "algorithm=naimi-trehel&nodes=2&steps=a1");
        let problem = state["problem"].as_str().unwrap();
        assert!(problem.starts_with("Step 2 of the link, 'l0', cannot happen here"), "{problem}");
        assert!(problem.contains("possible are a0, m1-0"), "{problem}");
    }

    #[test]
    fn a_state_that_was_there_before_is_recognised() {
        let text = "algorithm=naimi-trehel&nodes=2&requests=3&steps=a0.l0";
        assert_eq!(state(&link(text)).unwrap()["sameAs"], json!(null), "fences differ");
    }

    #[test]
    fn what_can_follow_is_counted_from_here() {
        let whole = explored("algorithm=ricart-agrawala&nodes=2", 10_000);
        // The same number that the checker pins.
        assert_eq!((&whole["states"], &whole["depth"]), (&json!(179), &json!(16)));
        assert_eq!((&whole["broken"], &whole["stuck"]), (&json!(0), &json!(0)));
        assert_eq!((&whole["bound"], &whole["lookedForCycles"]), (&json!(null), &json!(true)));
        assert_eq!(whole["entries"][0], json!(["a0", "m0-1", "m1-0"]));
        let later = explored("algorithm=ricart-agrawala&nodes=2&steps=a0.m0-1", 10_000);
        assert!(later["states"].as_u64() < whole["states"].as_u64());
        assert_eq!(later["entries"][0], json!(["m1-0"]));
        assert_eq!(
            explored("algorithm=ricart-agrawala&nodes=2", 100)["bound"],
            "more than 100 states can follow"
        );
    }

    #[test]
    fn the_shortest_way_to_break_a_mutant_can_be_played() {
        let text = "algorithm=lamport&nodes=2&requests=1&mutant=no-tie-break";
        let report = explored(text, 100_000);
        let steps: Vec<&str> = report["breach"]["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|step| step.as_str().unwrap())
            .collect();
        let played = state(&link(&format!("{text}&steps={}", steps.join(".")))).unwrap();
        assert_eq!(played["broken"]["property"], report["breach"]["property"]);
        assert_eq!(played["broken"]["step"], json!(steps.len()));
        assert_eq!(played["run"]["violation"]["event"], json!(steps.len() - 1));
    }
}
