//! What a page shows of a run.

use std::ops::ControlFlow;

use catraca_algorithms::{Load, Range, Spec, Visitor, registry};
use catraca_core::{Algorithm, Input, Message, Value, Variables};
use catraca_trace::{Event, Observer, Origin, Outcome, Step, Trace, TraceError, follow, replay};
use serde::Serialize;

use crate::rules::{Rules, rules};

/// The most steps that one page shows: about ten megabytes.
pub const MOST_STEPS: usize = 20_000;

/// The most nodes that one page shows.
pub const MOST_NODES: u32 = 100;

/// Why there is no page of a run.
#[derive(Debug, thiserror::Error)]
pub enum PlayerError {
    /// Too many nodes.
    #[error("has {0} nodes, and a page shows up to {MOST_NODES}; take fewer")]
    TooManyNodes(u32),
    /// Nothing to show.
    #[error("has no steps to show; choose a wider part")]
    Empty,
    /// The trace cannot be run.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Refuses a group that no page can show, before anything runs.
pub fn check_nodes(nodes: u32) -> Result<(), PlayerError> {
    if nodes > MOST_NODES { Err(PlayerError::TooManyNodes(nodes)) } else { Ok(()) }
}

/// The part of a run that is shown, in ticks; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// From here on.
    pub from: u64,
    /// Up to here.
    pub to: u64,
}

impl Default for Window {
    fn default() -> Self {
        Window { from: 0, to: u64::MAX }
    }
}

impl Window {
    /// Whether an event at this time is in it.
    pub fn shows(&self, at: u64) -> bool {
        (self.from..=self.to).contains(&at)
    }
}

/// A run, as the page reads it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recording {
    algorithm: String,
    title: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mutant: Option<String>,
    /// What the mutant does wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    breaks: Option<&'static str>,
    nodes: u32,
    /// How many ticks are one unit of time, or none where `at` counts steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    ticks: Option<u64>,
    theory: Theory,
    header: Vec<String>,
    rules: Rules,
    /// How many events, messages and entries came before the first one shown.
    before: Before,
    /// By node, its variables before the first event shown.
    start: Vec<Variables>,
    events: Vec<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<Violation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<Expected>,
    /// What whoever looks at the page has to know first.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
    /// What follows, if there is more than one page shows.
    #[serde(skip)]
    rest: Option<Rest>,
}

/// What a page has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The next part, as much of it as one page shows.
    pub next: Window,
    /// Whether what is wrong with the run comes after what is shown.
    pub is_wrong: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Theory {
    messages: &'static str,
    delay: &'static str,
    /// Messages per entry in this group at low and at high load, from and to.
    low: (f64, f64),
    high: (f64, f64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Before {
    events: usize,
    messages: usize,
    entries: usize,
}

/// One event of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Shown {
    at: u64,
    /// In words.
    text: String,
    /// What kind of event: start, request, release, message, timer, suspect, trust, crash or lost.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    /// The message that arrives here, or is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<u64>,
    /// The kind of the message that arrives here, which may have been sent before what is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    brought: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sends: Vec<Sent>,
    /// The fence of an entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    granted: Option<u64>,
    /// Which variables of the node are different now, by their place, and what they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<(usize, Value)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Sent {
    id: u64,
    to: u32,
    kind: String,
    text: String,
}

/// What a run must not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Violation {
    /// The event, by its place on the page.
    event: usize,
    what: String,
}

/// What the correct algorithm does with the same inputs, up to where it does something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Expected {
    /// Where its effects differ, by the place on the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<usize>,
    /// What it does there instead, in words.
    text: String,
    /// What it does there, effect by effect, and what the mutant does.
    correct: Vec<String>,
    broken: Vec<String>,
    /// What its node knows after that step.
    variables: Variables,
    /// Where a node first knows something else, which is often earlier; the step has no other effect there.
    #[serde(skip_serializing_if = "Option::is_none")]
    knows: Option<(usize, Variables)>,
}

impl Recording {
    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// What there was no room for, if there was too little.
    pub fn rest(&self) -> Option<Rest> {
        self.rest
    }

    /// Says something above everything else.
    pub fn note(&mut self, notice: String) {
        self.notice = Some(notice);
    }

    /// Says what is wrong with the run, after the step at this time, in place of what it says itself. With
    /// nothing, nothing is wrong.
    pub fn mark(&mut self, wrong: Option<(u64, String)>) {
        self.violation = wrong.map(|(at, what)| {
            let event = self.events.iter().rposition(|event| event.at <= at);
            Violation { event: event.unwrap_or(0), what }
        });
    }
}

/// Runs the trace again and keeps what is in the window, which may be nothing; of more steps than a page shows,
/// the first.
pub fn record(trace: &Trace, window: Window) -> Result<Recording, PlayerError> {
    let spec = &trace.header.spec;
    check_nodes(spec.nodes)?;
    let next = next_part(trace, window);
    let mut keeper = Keeper::new(trace, window);
    keeper.is_cut = next.is_some();
    follow(trace, spec, &mut keeper)?;
    let (violation, is_wrong) = match violation(trace, &keeper)? {
        Some((index, _)) if keeper.is_beyond(index) => (None, true),
        found => (found.map(|(_, violation)| violation), false),
    };
    let expected = expected(trace, &keeper)?;
    let entry = spec.entry().map_err(TraceError::Spec)?;
    Ok(Recording {
        algorithm: spec.algorithm.clone(),
        title: entry.title,
        mutant: spec.mutant.clone(),
        breaks: breaks(spec),
        nodes: spec.nodes,
        ticks: (trace.header.origin == Origin::Sim).then_some(trace.header.ticks_per_unit),
        theory: theory(spec)?,
        header: paragraphs(entry.header()),
        rules: rules(entry.file, spec.visit(Kinds).map_err(TraceError::Spec)?),
        before: keeper.before,
        start: keeper.start,
        events: keeper.events,
        violation,
        expected,
        notice: None,
        rest: next.map(|next| Rest { next, is_wrong }),
    })
}

/// What follows the steps for which a page has room, as far as it fits on one page; nothing if there was room.
fn next_part(trace: &Trace, window: Window) -> Option<Window> {
    let times = trace.events.iter().map(Event::at).filter(|at| window.shows(*at));
    let times: Vec<u64> = times.collect();
    let from = *times.get(MOST_STEPS)?;
    // Events come in the order of time, and several of one time are not parted.
    let begin = times.partition_point(|at| *at < from);
    let to = match times.get(begin + MOST_STEPS) {
        Some(&beyond) if beyond > from => beyond - 1,
        Some(_) => from,
        None => *times.last()?,
    };
    Some(Window { from, to })
}

/// What every kind of message of an algorithm is called.
struct Kinds;

impl Visitor for Kinds {
    type Output = &'static [&'static str];

    fn visit<A: Algorithm>(self, _config: A::Config) -> Self::Output {
        A::Message::KINDS
    }
}

fn breaks(spec: &Spec) -> Option<&'static str> {
    let name = spec.mutant.as_deref()?;
    let mutants = registry::mutants(&spec.algorithm);
    mutants.iter().find(|mutant| mutant.name == name).map(|mutant| mutant.breaks)
}

fn theory(spec: &Spec) -> Result<Theory, PlayerError> {
    let entry = spec.entry().map_err(TraceError::Spec)?;
    let ends = |Range { min, max }| (min, max);
    let at = |load| spec.theory(load).map(|theory| ends(theory.messages)).map_err(TraceError::Spec);
    Ok(Theory {
        messages: entry.messages,
        delay: entry.delay,
        low: at(Load::Low)?,
        high: at(Load::High)?,
    })
}

/// Lines up to an empty one are one paragraph.
pub(crate) fn paragraphs(lines: impl Iterator<Item = &'static str>) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in lines {
        match paragraphs.last_mut() {
            Some(last) if last.is_empty() => last.push_str(line),
            Some(last) if !line.is_empty() => {
                last.push(' ');
                last.push_str(line);
            }
            _ => paragraphs.push(String::new()),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

/// Keeps the window, and all steps for comparison with those of the correct algorithm.
struct Keeper<'a> {
    trace: &'a Trace,
    window: Window,
    /// Whether there is more in the window than is shown.
    is_cut: bool,
    before: Before,
    start: Vec<Variables>,
    now: Vec<Variables>,
    events: Vec<Shown>,
    /// Where the run is not what the trace says: by the place in the trace.
    differs: Option<usize>,
    /// What the nodes knew after each step, where that will be compared.
    known: Vec<Option<Variables>>,
}

impl<'a> Keeper<'a> {
    fn new(trace: &'a Trace, window: Window) -> Self {
        Keeper {
            trace,
            window,
            is_cut: false,
            before: Before::default(),
            start: Vec::new(),
            now: Vec::new(),
            events: Vec::new(),
            differs: None,
            known: Vec::new(),
        }
    }

    fn show(&mut self, shown: Shown) {
        if self.events.len() == MOST_STEPS {
            return;
        }
        if self.window.shows(shown.at) {
            self.events.push(shown);
        } else if self.events.is_empty() {
            self.before.events += 1;
            self.before.messages += shown.sends.len();
            self.before.entries += usize::from(shown.granted.is_some());
            self.start.clone_from(&self.now);
        }
    }

    /// The place on the page of an event of the trace, the nearest one if it is not shown.
    fn place(&self, index: usize) -> usize {
        index.saturating_sub(self.before.events).min(self.events.len().saturating_sub(1))
    }

    /// Whether an event of the trace comes after what there was room for.
    fn is_beyond(&self, index: usize) -> bool {
        self.is_cut && index >= self.before.events + MOST_STEPS
    }

    fn is_compared(&self) -> bool {
        self.trace.header.spec.mutant.is_some()
    }
}

impl Observer for Keeper<'_> {
    fn begin(&mut self, nodes: Vec<Variables>) {
        self.start.clone_from(&nodes);
        self.now = nodes;
    }

    fn step(&mut self, index: usize, step: Step, knows: Variables) -> ControlFlow<()> {
        let node = step.node.index();
        let changes = changes(&self.now[node], &knows);
        if self.is_compared() {
            self.known.push(Some(knows.clone()));
        }
        self.now[node] = knows;
        let is_same = matches!(&self.trace.events[index], Event::Step(said) if *said == step);
        self.show(shown(&step, changes));
        if is_same {
            return ControlFlow::Continue(());
        }
        self.differs = Some(index);
        ControlFlow::Break(())
    }

    fn other(&mut self, _index: usize, event: &Event) {
        self.known.push(None);
        let (kind, node, message) = match event {
            Event::Crash { node, .. } => ("crash", Some(node.0), None),
            Event::Lost { id, .. } => ("lost", None, Some(id.0)),
            Event::Step(_) => return,
        };
        let text = event.to_string();
        self.show(Shown { at: event.at(), text, kind, node, message, ..Shown::default() });
    }
}

/// A node whose variables are others than before, which no algorithm has, would be shown anew.
fn changes(before: &Variables, after: &Variables) -> Vec<(usize, Value)> {
    let before = before.as_slice();
    let is_other = |&(place, value): &(usize, &Value)| {
        before.get(place).is_none_or(|variable| variable.value != *value)
    };
    let values = after.as_slice().iter().map(|variable| &variable.value).enumerate();
    values.filter(is_other).map(|(place, value)| (place, value.clone())).collect()
}

fn shown(step: &Step, changes: Vec<(usize, Value)>) -> Shown {
    let kind = match &step.input {
        Input::Start => "start",
        Input::Request(_) => "request",
        Input::Release => "release",
        Input::Message { .. } => "message",
        Input::Timer(_) => "timer",
        Input::Suspect(_) => "suspect",
        Input::Trust(_) => "trust",
    };
    let sends = step.outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Send { id, to, message } => {
            let (kind, text) = (message.kind.clone(), message.to_string());
            Some(Sent { id: id.0, to: to.0, kind, text })
        }
        _ => None,
    });
    let granted = step.outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Granted(fence) => Some(fence.0),
        _ => None,
    });
    Shown {
        at: step.at,
        text: step.to_string(),
        kind,
        node: Some(step.node.0),
        message: step.delivers.map(|id| id.0),
        brought: match &step.input {
            Input::Message { message, .. } => Some(message.kind.clone()),
            _ => None,
        },
        sends: sends.collect(),
        granted,
        changes,
    }
}

/// The first thing that is wrong, with its place in the trace; what no single step shows is wrong at the end.
fn violation(
    trace: &Trace,
    keeper: &Keeper<'_>,
) -> Result<Option<(usize, Violation)>, PlayerError> {
    if let Some(index) = keeper.differs {
        let what = "the run differs from the trace here, and ends".to_string();
        return Ok(Some((index, Violation { event: keeper.place(index), what })));
    }
    let seen = replay(trace)?.violations.into_iter().next();
    let said = trace.header.violation.clone();
    Ok(match (seen, said) {
        (Some((number, seen)), said) => {
            let what = said.map_or(seen.clone(), |said| format!("{said}: {seen}"));
            Some((number - 1, Violation { event: keeper.place(number - 1), what }))
        }
        (None, Some(what)) => {
            let last = trace.events.len().saturating_sub(1);
            Some((last, Violation { event: keeper.place(last), what }))
        }
        (None, None) => None,
    })
}

/// Gives the same inputs to the correct algorithm until it does something else.
fn expected(trace: &Trace, keeper: &Keeper<'_>) -> Result<Option<Expected>, PlayerError> {
    let mut spec = trace.header.spec.clone();
    if spec.mutant.take().is_none() || keeper.differs.is_some() {
        return Ok(None);
    }
    let mut comparer = Comparer { trace, keeper, knows: None, found: None };
    follow(trace, &spec, &mut comparer)?;
    let Comparer { knows, found, .. } = comparer;
    Ok(match found {
        Some(expected) => Some(Expected { knows, ..expected }),
        None => knows.map(|knows| Expected {
            event: None,
            text: String::new(),
            correct: Vec::new(),
            broken: Vec::new(),
            variables: Variables::new(),
            knows: Some(knows),
        }),
    })
}

struct Comparer<'a> {
    trace: &'a Trace,
    keeper: &'a Keeper<'a>,
    knows: Option<(usize, Variables)>,
    found: Option<Expected>,
}

impl Observer for Comparer<'_> {
    fn begin(&mut self, _nodes: Vec<Variables>) {}

    fn step(&mut self, index: usize, step: Step, knows: Variables) -> ControlFlow<()> {
        if self.keeper.is_beyond(index) {
            return ControlFlow::Break(());
        }
        let place = self.keeper.place(index);
        let broken = self.keeper.known.get(index).and_then(Option::as_ref);
        if self.knows.is_none() && broken.is_some_and(|broken| *broken != knows) {
            self.knows = Some((place, knows.clone()));
        }
        let Event::Step(said) = &self.trace.events[index] else { return ControlFlow::Continue(()) };
        if said.outcomes == step.outcomes {
            return ControlFlow::Continue(());
        }
        let words = |step: &Step| step.outcomes.iter().map(Outcome::to_string).collect();
        self.found = Some(Expected {
            event: Some(place),
            text: step.to_string(),
            correct: words(&step),
            broken: words(said),
            variables: knows,
            knows: None,
        });
        ControlFlow::Break(())
    }

    fn other(&mut self, _index: usize, _event: &Event) {}
}

#[cfg(test)]
mod tests;
