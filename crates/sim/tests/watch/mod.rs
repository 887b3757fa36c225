//! Runs scenarios and keeps what happened.
#![allow(dead_code, reason = "every test takes what it needs")]

use catraca_core::{Algorithm, Input, NodeId};
use catraca_sim::{Hooks, Report, Scenario, Setup, Time, run, run_algorithm};
use catraca_trace::{Event, Outcome, Payload, Step};

/// The setup that a scenario describes.
pub(crate) fn setup(scenario: &Scenario) -> Setup {
    scenario.setup().unwrap_or_else(|error| panic!("{error}: {}", scenario.command()))
}

/// The figures of a run.
pub(crate) fn figures(scenario: &Scenario) -> Report {
    run(&setup(scenario), Hooks::default()).unwrap()
}

/// The figures of a run in which nothing may break.
pub(crate) fn correct(scenario: &Scenario) -> Report {
    let report = figures(scenario);
    assert_eq!(report.violation, None, "{}", scenario.command());
    report
}

/// A run with all its events.
pub(crate) struct Watched {
    pub(crate) report: Report,
    pub(crate) events: Vec<Event>,
}

/// Runs a scenario.
pub(crate) fn watch(scenario: &Scenario) -> Watched {
    let mut events = Vec::new();
    let mut observer = |event: &Event| events.push(event.clone());
    let hooks = Hooks { observer: Some(&mut observer), stop: None };
    let report = run(&setup(scenario), hooks).unwrap();
    Watched { report, events }
}

/// Runs an algorithm of one's own; the one in the scenario does not matter.
pub(crate) fn watch_algorithm<A: Algorithm>(scenario: &Scenario, config: A::Config) -> Watched {
    let mut events = Vec::new();
    let mut observer = |event: &Event| events.push(event.clone());
    let hooks = Hooks { observer: Some(&mut observer), stop: None };
    let report = run_algorithm::<A>(&setup(scenario), config, hooks);
    Watched { report, events }
}

impl Watched {
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.events.iter().filter_map(|event| match event {
            Event::Step(step) => Some(step),
            _ => None,
        })
    }

    /// When and where steps with such an input were taken.
    pub(crate) fn inputs(&self, wanted: impl Fn(&Input<Payload>) -> bool) -> Vec<(Time, NodeId)> {
        let steps = self.steps().filter(|step| wanted(&step.input));
        steps.map(|step| (Time(step.at), step.node)).collect()
    }

    pub(crate) fn requests(&self) -> Vec<(Time, NodeId)> {
        self.inputs(|input| matches!(input, Input::Request(_)))
    }

    pub(crate) fn releases(&self) -> Vec<(Time, NodeId)> {
        self.inputs(|input| matches!(input, Input::Release))
    }

    pub(crate) fn entries(&self) -> Vec<(Time, NodeId)> {
        let grants =
            |step: &&Step| step.outcomes.iter().any(|what| matches!(what, Outcome::Granted(_)));
        self.steps().filter(grants).map(|step| (Time(step.at), step.node)).collect()
    }

    pub(crate) fn lost(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Lost { .. })).count()
    }
}

/// So many units.
pub(crate) fn units(units: &str) -> Time {
    units.parse().unwrap()
}

/// A time and a node, as a test writes them.
pub(crate) fn at(time: &str, node: u32) -> (Time, NodeId) {
    (units(time), NodeId(node))
}

/// The same with several values said for one key.
pub(crate) fn with_all(mut scenario: Scenario, path: &str, values: &[&str]) -> Scenario {
    scenario.set(path, values.iter().map(|value| value.to_string()).collect()).unwrap();
    scenario
}

/// These requests, and nothing else.
pub(crate) fn scheduled(algorithm: &str, nodes: u32, requests: &[&str]) -> Scenario {
    let scenario = Scenario::new().with("algorithm", algorithm).with("nodes", nodes);
    with_all(scenario.with("workload.arrivals", "schedule"), "workload.schedule", requests)
}
