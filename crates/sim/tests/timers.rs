//! Timers run out exactly when they should: once, at the last time that was set, unless cancelled.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod watch;

use std::time::Duration;

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, Input, Message, NodeId, Start, TimerTag, property,
};
use catraca_sim::{Scenario, Time};
use serde::{Deserialize, Serialize};

use watch::{at, scheduled, watch_algorithm};

/// One thing that a step does with a timer.
#[derive(Clone, Copy)]
enum Do {
    Set(u32, u64),
    Cancel(u32),
}

/// Does at the start, and when each timer runs out, what the script says.
struct Script {
    start: &'static [Do],
    /// By tag.
    run_out: &'static [(u32, &'static [Do])],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Clockwork;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Never {}

impl Message for Never {
    const KINDS: &'static [&'static str] = &[];
    fn kind(&self) -> usize {
        match *self {}
    }
    fn is_possible(&self, _bounds: Bounds) -> bool {
        match *self {}
    }
}

fn perform(script: &[Do], out: &mut Effects<Never>) {
    for step in script {
        match *step {
            Do::Set(tag, millis) => out.set_timer(TimerTag(tag), Duration::from_millis(millis)),
            Do::Cancel(tag) => out.cancel_timer(TimerTag(tag)),
        }
    }
}

impl Algorithm for Clockwork {
    type Message = Never;
    type Config = Script;

    fn new(_me: NodeId, _script: &Script, _start: &Start) -> Self {
        Clockwork
    }

    fn on_start(&mut self, script: &Script, out: &mut Effects<Never>) {
        perform(script.start, out);
    }

    fn on_request(&mut self, _: &Script, _claim: Claim, _out: &mut Effects<Never>) {}

    fn on_release(&mut self, _script: &Script, _out: &mut Effects<Never>) {}

    fn on_message(&mut self, _: &Script, _from: NodeId, message: Never, _: &mut Effects<Never>) {
        match message {}
    }

    fn on_timer(&mut self, script: &Script, tag: TimerTag, out: &mut Effects<Never>) {
        let steps = script.run_out.iter().find(|(of, _)| *of == tag.0);
        perform(steps.map_or(&[][..], |(_, steps)| *steps), out);
    }
}

fn nodes(nodes: u32) -> Scenario {
    // Somebody has to ask for something; it is never granted and does not matter.
    scheduled("coordinator", nodes, &["0 at 0"])
}

/// When each timer ran out, where, in order.
fn run_outs(scenario: &Scenario, script: Script) -> Vec<((Time, NodeId), u32)> {
    let watched = watch_algorithm::<Clockwork>(scenario, script);
    let timers = watched.steps().filter_map(|step| match step.input {
        Input::Timer(TimerTag(tag)) => Some(((Time(step.at), step.node), tag)),
        _ => None,
    });
    timers.collect()
}

#[test]
fn a_timer_runs_out_once_after_exactly_its_time() {
    let script = Script { start: &[Do::Set(7, 2500), Do::Set(3, 1001)], run_out: &[] };
    assert_eq!(run_outs(&nodes(1), script), [(at("1.001", 0), 3), (at("2.5", 0), 7)]);
}

#[test]
fn a_timer_that_is_set_anew_runs_out_at_its_new_time_only() {
    let later = &[Do::Set(1, 1000), Do::Set(2, 500)];
    let script = Script { start: later, run_out: &[(2, &[Do::Set(1, 1200)])] };
    assert_eq!(run_outs(&nodes(1), script), [(at("0.5", 0), 2), (at("1.7", 0), 1)]);

    let earlier = &[Do::Set(1, 1000), Do::Set(1, 200)];
    let script = Script { start: earlier, run_out: &[] };
    assert_eq!(run_outs(&nodes(1), script), [(at("0.2", 0), 1)]);
}

#[test]
fn a_cancelled_timer_does_not_run_out_and_can_be_set_again() {
    let script = Script {
        start: &[Do::Set(1, 1000), Do::Set(2, 1000), Do::Set(3, 400), Do::Cancel(9)],
        run_out: &[(3, &[Do::Cancel(1), Do::Cancel(2), Do::Set(2, 3000)])],
    };
    assert_eq!(run_outs(&nodes(1), script), [(at("0.4", 0), 3), (at("3.4", 0), 2)]);
}

#[test]
fn a_timer_of_no_time_runs_out_after_the_step_that_sets_it() {
    let script = Script { start: &[Do::Set(1, 0)], run_out: &[(1, &[Do::Set(2, 0)])] };
    assert_eq!(run_outs(&nodes(1), script), [(at("0", 0), 1), (at("0", 0), 2)]);
}

#[test]
fn timers_of_different_nodes_do_not_touch_each_other_and_die_with_their_node() {
    let script =
        Script { start: &[Do::Set(1, 1000)], run_out: &[(1, &[Do::Cancel(1), Do::Set(2, 1000)])] };
    let crash = nodes(2).with("faults.events", "crash 1 at 1.5");
    assert_eq!(run_outs(&crash, script), [(at("1", 0), 1), (at("1", 1), 1), (at("2", 0), 2)]);
}

#[test]
fn a_timer_set_at_every_run_out_ticks_until_the_time_is_up() {
    let script = Script { start: &[Do::Set(1, 1000)], run_out: &[(1, &[Do::Set(1, 1000)])] };
    let ticks = run_outs(&nodes(1).with("run.time", 3.5), script);
    assert_eq!(ticks, [(at("1", 0), 1), (at("2", 0), 1), (at("3", 0), 1)]);
}

#[test]
fn somebody_who_waits_while_a_timer_runs_does_not_wait_for_ever_yet() {
    let script = Script { start: &[Do::Set(1, 60_000)], run_out: &[] };
    let watched = watch_algorithm::<Clockwork>(&nodes(1).with("run.time", 59), script);
    assert_eq!((watched.report.waiting, watched.report.violation), (1, None));

    let script = Script { start: &[Do::Set(1, 60_000)], run_out: &[] };
    let watched = watch_algorithm::<Clockwork>(&nodes(1), script);
    let violation = watched.report.violation.unwrap();
    assert_eq!(violation.invariant, property::NOBODY_WAITS_FOR_EVER);
    assert_eq!(violation.at, watch::units("60"));
}
