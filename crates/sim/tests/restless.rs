//! Runs of algorithms that always have a message on its way: they end, and who waits for nothing is found.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use catraca_algorithms::Channels;
use catraca_core::{
    Algorithm, Bounds, Claim, Effects, Fence, Message, NodeId, Phase, Start, TimerTag,
};
use catraca_sim::{End, Hooks, Own, Report, Scenario, run_algorithm};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a ring differs from the plain one.
#[derive(Clone, Copy, Debug, Default)]
struct Flaw {
    /// Node 1 passes the token on although it waits for it.
    node_1_never_takes_it: bool,
    /// A node keeps the token until a timer runs out.
    by_timer: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Token(u64);

impl Message for Token {
    const KINDS: &'static [&'static str] = &["token"];

    fn kind(&self) -> usize {
        0
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        bounds.has_count(self.0)
    }
}

/// A node of a ring of three. With `SAYS_SO` it says that it never falls quiet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node<const SAYS_SO: bool> {
    me: NodeId,
    phase: Phase,
    token: Option<u64>,
}

impl<const SAYS_SO: bool> Node<SAYS_SO> {
    fn pass(&mut self, flaw: &Flaw, out: &mut Effects<Token>) {
        match self.token {
            Some(_) if flaw.by_timer => out.set_timer(TimerTag(0), Duration::from_millis(100)),
            Some(entries) => {
                self.token = None;
                out.send(NodeId((self.me.0 + 1) % 3), Token(entries));
            }
            None => {}
        }
    }
}

impl<const SAYS_SO: bool> Algorithm for Node<SAYS_SO> {
    type Message = Token;
    type Config = Flaw;

    const RESTLESS: bool = SAYS_SO;

    fn new(me: NodeId, _flaw: &Flaw, start: &Start) -> Self {
        Node { me, phase: Phase::Idle, token: (start.token() == me).then_some(0) }
    }

    fn on_start(&mut self, flaw: &Flaw, out: &mut Effects<Token>) {
        self.pass(flaw, out);
    }

    fn on_request(&mut self, _flaw: &Flaw, _claim: Claim, _out: &mut Effects<Token>) {
        self.phase = Phase::Waiting;
    }

    fn on_release(&mut self, flaw: &Flaw, out: &mut Effects<Token>) {
        self.phase = Phase::Idle;
        self.pass(flaw, out);
    }

    fn on_message(&mut self, flaw: &Flaw, _: NodeId, token: Token, out: &mut Effects<Token>) {
        self.token = Some(token.0);
        let takes = !(flaw.node_1_never_takes_it && self.me == NodeId(1));
        if self.phase == Phase::Waiting && takes {
            self.phase = Phase::Inside;
            self.token = Some(token.0 + 1);
            out.granted(Fence(token.0 + 1));
        } else {
            self.pass(flaw, out);
        }
    }

    fn on_timer(&mut self, _flaw: &Flaw, _tag: TimerTag, out: &mut Effects<Token>) {
        // Whoever asked after the timer was set waits for the next time round.
        self.pass(&Flaw::default(), out);
    }
}

const OWN: Own = Own { name: "ring", channels: Channels::Any };

fn ring() -> Scenario {
    Scenario::new().with("nodes", 3)
}

fn run<const SAYS_SO: bool>(scenario: &Scenario, flaw: Flaw) -> Report {
    run_algorithm::<Node<SAYS_SO>>(&scenario.setup_own(OWN).unwrap(), flaw, Hooks::default())
}

#[test]
fn a_run_ends_with_the_last_release_if_the_algorithm_says_that_it_never_falls_quiet() {
    for by_timer in [false, true] {
        let flaw = Flaw { by_timer, ..Flaw::default() };
        let report = run::<true>(&ring().with("workload.rounds", 2), flaw);
        assert_eq!((report.end, report.entries, report.waiting), (End::Served, 6, 0));
        assert_eq!(report.violation, None);
        let schedule = ring().with("workload.arrivals", "schedule");
        let late = schedule.with("workload.schedule", "1 at 500");
        let report = run::<true>(&late, flaw);
        assert_eq!((report.end, report.entries), (End::Served, 1), "it waits for the request");
        assert!(report.time > 500.0);
    }
}

#[test]
fn an_algorithm_that_does_not_say_so_is_told_to() {
    let report = run::<false>(&ring().with("workload.rounds", 1), Flaw::default());
    assert_eq!((report.end, report.entries, report.waiting), (End::Restless, 3, 0));
    assert!(report.end.gave_up().unwrap().contains("RESTLESS"));
}

#[test]
fn a_run_in_which_a_node_waits_while_the_token_goes_round_gives_up() {
    for by_timer in [false, true] {
        let flaw = Flaw { node_1_never_takes_it: true, by_timer };
        let rounds = run::<true>(&ring().with("workload.rounds", 2), flaw);
        assert_eq!((rounds.end, rounds.entries, rounds.waiting), (End::NobodyEnters, 4, 1));
        // Low load: the next node asks after this one has left, which never happens.
        let serial = ring().with("workload.arrivals", "serial").with("run.entries", 100);
        assert_eq!(run::<true>(&serial, flaw).end, End::NobodyEnters);
    }
}

#[test]
fn while_others_enter_a_run_goes_on_to_the_end_that_was_asked_for() {
    let flaw = Flaw { node_1_never_takes_it: true, by_timer: false };
    let report = run::<true>(&ring().with("run.entries", 500), flaw);
    assert_eq!((report.end, report.entries, report.waiting), (End::Entries, 500, 2));
    let bounded = run::<true>(&ring().with("run.entries", 500).with("run.max-bypass", 20), flaw);
    assert!(bounded.violation.unwrap().what.contains('1'), "overtaking can be bounded");
}

#[test]
fn requests_that_keep_coming_end_when_they_were_asked_to() {
    let open = ring().with("workload.arrivals", "open").with("workload.rate", 0.01);
    let report = run::<true>(&open.with("run.time", 10_000), Flaw::default());
    assert_eq!((report.end, report.violation), (End::Time, None));
    assert!(report.entries > 50, "{}", report.entries);
}
