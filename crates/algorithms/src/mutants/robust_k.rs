//! Broken variants of robust-k: the errors of the paper's pseudo-code, and one more.

use core::time::Duration;

use catraca_core::{Algorithm, Claim, Effects, NodeId, Phase, Stamp, TimerTag, property};

use super::{Caught, Listed, Mutation, Setting};
use crate::robust_k::{Config, Msg, RobustK};
use crate::sta::LastReceived;

pub(crate) const ALL: &[&dyn Mutation<RobustK>] =
    &[&ClockNotStored, &LastBySender, &LateExpectation, &DifferentIsNew, &AnswersOutliveCrashes];

/// Lines 25 to 28 as the paper has them: a count below zero surprises nobody.
fn reply_unquestioned(
    node: &mut RobustK,
    config: &Config,
    from: NodeId,
    count: u32,
    out: &mut Effects<Msg>,
) {
    if node.detector.suspects().contains(from) {
        return;
    }
    let owed = &mut node.reply_count[from.index()];
    *owed = owed.saturating_sub_unsigned(count);
    if node.phase == Phase::Waiting && node.reply_count[from.index()] == 0 {
        node.perm_count += 1;
        node.enter_if_permitted(config, out);
    }
}

/// Erratum 1: 'last := clock + 1' leaves the clock as it is.
struct ClockNotStored;

impl Mutation<RobustK> for ClockNotStored {
    fn listed(&self) -> Listed {
        Listed {
            name: "clock-not-stored",
            breaks: "a request leaves the clock alone, so the next one looks like a duplicate",
            caught: Caught::Checked {
                nodes: 2,
                requests: 2,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_request(
        &self,
        node: &mut RobustK,
        config: &Config,
        claim: Claim,
        out: &mut Effects<Msg>,
    ) {
        let clock = node.clock;
        node.on_request(config, claim, out);
        node.clock = clock;
    }
}

/// Erratum 2: the last message is remembered per sender.
struct LastBySender;

impl Mutation<RobustK> for LastBySender {
    fn listed(&self) -> Listed {
        Listed {
            name: "last-by-sender",
            breaks: "the last message is remembered per sender, not per origin",
            caught: Caught::Checked { nodes: 3, requests: 2, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn setting(&self) -> Setting {
        Setting { k: None, crashes: 1 }
    }

    fn on_message(
        &self,
        node: &mut RobustK,
        config: &Config,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Tree { origin, time, .. } => {
                // The entry of the sender decides; it names the message by origin and time.
                let message_number = Stamp { time, node: origin }.fence(config.cube.nodes()).0;
                let (of_origin, of_sender) = (origin.index(), from.index());
                let aside = node.sta.last[of_origin];
                let known = match node.sta.last[of_sender] {
                    LastReceived { time: number, hops } if number == message_number => {
                        LastReceived { time, hops }
                    }
                    _ => LastReceived::default(),
                };
                node.sta.last[of_origin] = known;
                node.on_message(config, from, message, out);
                let hops = node.sta.last[of_origin].hops;
                node.sta.last[of_origin] = aside;
                node.sta.last[of_sender] = LastReceived { time: message_number, hops };
            }
            Msg::Reply(count) => reply_unquestioned(node, config, from, count, out),
            _ => node.on_message(config, from, message, out),
        }
    }

    /// Only the origin sends again, as in the paper: its entry is the only one that is its own.
    fn on_suspect(
        &self,
        node: &mut RobustK,
        config: &Config,
        suspect: NodeId,
        out: &mut Effects<Msg>,
    ) {
        let mine = node.sta.last[node.me.index()];
        let mut of_senders = node.sta.last.clone();
        node.sta.last.fill(LastReceived::default());
        node.sta.last[node.me.index()] = mine;
        node.on_suspect(config, suspect, out);
        of_senders[node.me.index()] = node.sta.last[node.me.index()];
        node.sta.last = of_senders;
    }
}

/// Erratum 3: lines 10 and 11 are two steps.
struct LateExpectation;

/// The second of the two steps.
const EXPECT: TimerTag = TimerTag(65);

impl Mutation<RobustK> for LateExpectation {
    fn listed(&self) -> Listed {
        Listed {
            name: "late-expectation",
            breaks: "a request is sent in one step, and answers are expected in the next",
            caught: Caught::Checked {
                nodes: 2,
                requests: 1,
                property: property::NOBODY_WAITS_FOR_EVER,
            },
        }
    }

    fn on_request(
        &self,
        node: &mut RobustK,
        config: &Config,
        claim: Claim,
        out: &mut Effects<Msg>,
    ) {
        let expected = node.reply_count.clone();
        node.on_request(config, claim, out);
        node.reply_count = expected;
        out.set_timer(EXPECT, Duration::from_secs(1));
    }

    fn on_message(
        &self,
        node: &mut RobustK,
        config: &Config,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Reply(count) => reply_unquestioned(node, config, from, count, out),
            _ => node.on_message(config, from, message, out),
        }
    }

    fn on_timer(&self, node: &mut RobustK, config: &Config, tag: TimerTag, out: &mut Effects<Msg>) {
        if tag != EXPECT {
            return node.on_timer(config, tag, out);
        }
        for peer in NodeId::all(config.cube.nodes()).filter(|&peer| peer != node.me) {
            if !node.detector.suspects().contains(peer) {
                node.reply_count[peer.index()] += 1;
            }
        }
    }
}

/// A message is new if it is not the last one, even if it is older.
struct DifferentIsNew;

impl Mutation<RobustK> for DifferentIsNew {
    fn listed(&self) -> Listed {
        Listed {
            name: "different-is-new",
            breaks: "a late message of an earlier request is delivered a second time",
            caught: Caught::Checked { nodes: 3, requests: 2, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn setting(&self) -> Setting {
        Setting { k: None, crashes: 1 }
    }

    fn on_message(
        &self,
        node: &mut RobustK,
        config: &Config,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Tree { origin, time, .. } => {
                let last = &mut node.sta.last[origin.index()];
                if time < last.time {
                    *last = LastReceived::default();
                }
                node.on_message(config, from, message, out);
            }
            Msg::Reply(count) => reply_unquestioned(node, config, from, count, out),
            _ => node.on_message(config, from, message, out),
        }
    }
}

/// Lines 29 and 30 are left out.
struct AnswersOutliveCrashes;

impl Mutation<RobustK> for AnswersOutliveCrashes {
    fn listed(&self) -> Listed {
        Listed {
            name: "answers-outlive-crashes",
            breaks: "the answer of a node that crashes counts on, beside the place that it frees",
            caught: Caught::Checked { nodes: 3, requests: 1, property: property::MUTUAL_EXCLUSION },
        }
    }

    fn setting(&self) -> Setting {
        Setting { k: None, crashes: 1 }
    }

    fn on_suspect(
        &self,
        node: &mut RobustK,
        config: &Config,
        suspect: NodeId,
        out: &mut Effects<Msg>,
    ) {
        let has_answered = node.reply_count[suspect.index()] == 0;
        if node.phase == Phase::Waiting && has_answered {
            node.perm_count += 1;
        }
        node.on_suspect(config, suspect, out);
    }
}
