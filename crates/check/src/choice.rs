//! Names of steps that stay the same from version to version: links are made of them.

use std::fmt;
use std::str::FromStr;

use catraca_core::{Algorithm, NodeId, TimerTag};
use stateright::Model;

use crate::model::{GroupModel, Move};
use crate::world::{Action, Suspicion, World};

/// One step, by a name that needs no list of what is possible.
///
/// `a1` node 1 asks, `l1` it leaves, `m0-1` a message from 0 arrives at 1 (`m0-1-2`: of those that can, the
/// second), `t1-0` timer 0 of node 1 runs out, `c1` node 1 crashes, `s0-1` node 0 is told that 1 has crashed.
/// After `~` comes which messages leave, where the node crashes meanwhile: `a1~3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// What happens.
    pub what: What,
    /// The node that takes the step crashes meanwhile: the bits of its messages to the living that have left.
    pub sent: Option<u32>,
}

/// What happens in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// The application at this node asks to enter.
    Ask(NodeId),
    /// It leaves.
    Leave(NodeId),
    /// A message arrives.
    Message {
        /// Its sender.
        from: NodeId,
        /// Its receiver.
        to: NodeId,
        /// Which of those between the two that can arrive, counted from 1.
        which: u32,
    },
    /// A timer runs out.
    Timer(NodeId, TimerTag),
    /// A node crashes.
    Crash(NodeId),
    /// The detector tells a node that another has crashed.
    Suspect {
        /// Whom it tells.
        observer: NodeId,
        /// Who has crashed.
        suspect: NodeId,
    },
}

/// A text that is no step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no step: say a1, l1, m0-1, t1-0, c1 or s0-1")]
pub struct ChoiceError(String);

impl What {
    /// The node that takes the step, or crashes.
    pub fn node(self) -> NodeId {
        match self {
            What::Ask(node) | What::Leave(node) | What::Timer(node, _) | What::Crash(node) => node,
            What::Message { to, .. } => to,
            What::Suspect { observer, .. } => observer,
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Ask(node) => write!(f, "a{node}")?,
            What::Leave(node) => write!(f, "l{node}")?,
            What::Message { from, to, which: 1 } => write!(f, "m{from}-{to}")?,
            What::Message { from, to, which } => write!(f, "m{from}-{to}-{which}")?,
            What::Timer(node, tag) => write!(f, "t{node}-{}", tag.0)?,
            What::Crash(node) => write!(f, "c{node}")?,
            What::Suspect { observer, suspect } => write!(f, "s{observer}-{suspect}")?,
        }
        match self.sent {
            Some(sent) => write!(f, "~{sent}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        read(text).ok_or_else(|| ChoiceError(text.chars().take(40).collect()))
    }
}

fn read(text: &str) -> Option<Choice> {
    let (text, sent) = match text.split_once('~') {
        Some((text, sent)) => (text, Some(number(sent)?)),
        None => (text, None),
    };
    let letter = text.chars().next()?;
    let numbers = text.get(1..)?.split('-').map(number).collect::<Option<Vec<u32>>>()?;
    let what = match (letter, numbers.as_slice()) {
        ('a', &[node]) => What::Ask(NodeId(node)),
        ('l', &[node]) => What::Leave(NodeId(node)),
        ('c', &[node]) => What::Crash(NodeId(node)),
        ('m', &[from, to]) => What::Message { from: NodeId(from), to: NodeId(to), which: 1 },
        ('m', &[from, to, which]) if which > 0 => {
            What::Message { from: NodeId(from), to: NodeId(to), which }
        }
        ('t', &[node, tag]) => What::Timer(NodeId(node), TimerTag(tag)),
        ('s', &[observer, suspect]) => {
            What::Suspect { observer: NodeId(observer), suspect: NodeId(suspect) }
        }
        _ => return None,
    };
    Some(Choice { what, sent })
}

/// Digits alone: `+1` is no number here, so that every step has one name.
fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = text.len() == 1 || !text.starts_with('0');
    if plain && is_short { text.parse().ok() } else { None }
}

/// Everything that can happen in `world`, with its name, in the order of the model.
pub(crate) fn choices<A: Algorithm>(
    model: &GroupModel<A>,
    world: &World<A>,
) -> Vec<(Choice, Move)> {
    let mut moves = Vec::new();
    model.actions(world, &mut moves);
    let names: Vec<(Action, What)> = moves
        .iter()
        .filter_map(|chosen| match *chosen {
            Move::Whole(action) => Some(action),
            Move::CutShort { .. } => None,
        })
        .scan(None, |last, action| {
            let what = name(world, action, *last);
            *last = Some(what);
            Some((action, what))
        })
        .collect();
    let named = |action: Action| names.iter().find(|(it, _)| *it == action).map(|(_, what)| *what);
    let choice = |chosen: Move| {
        let (action, sent) = match chosen {
            Move::Whole(action) => (action, None),
            Move::CutShort { action, sent } => (action, Some(sent)),
        };
        Some((Choice { what: named(action)?, sent }, chosen))
    };
    moves.into_iter().filter_map(choice).collect()
}

/// The name of an action; the messages of a channel come one after the other, after `last`.
fn name<A: Algorithm>(world: &World<A>, action: Action, last: Option<What>) -> What {
    match action {
        Action::Request(node) => What::Ask(node),
        Action::Release(node) => What::Leave(node),
        Action::Crash(node) => What::Crash(node),
        Action::Deliver(place) => {
            let envelope = &world.in_flight()[place];
            let (from, to) = (envelope.from, envelope.to);
            let before = match last {
                Some(What::Message { from: sender, to: receiver, which })
                    if (sender, receiver) == (from, to) =>
                {
                    which
                }
                _ => 0,
            };
            What::Message { from, to, which: before + 1 }
        }
        Action::Fire(place) => {
            let (node, tag) = world.timers()[place];
            What::Timer(node, tag)
        }
        Action::Suspect(place) => {
            let Suspicion { observer, suspect } = world.suspicions()[place];
            What::Suspect { observer, suspect }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_reads_back_as_it_is_written() {
        for text in ["a0", "l12", "m0-1", "m0-1-2", "t1-0", "c3", "s0-1", "a1~3", "m0-1-2~5"] {
            assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_step_is_refused_whatever_it_is() {
        let long = "a".repeat(100_000);
        let texts =
            ["", "a", "a-1", "a1-2", "m1", "m1-2-0", "x1", "a+1", "a01", "a1~", "a1~x", "ä1"];
        for text in texts.into_iter().chain(["a4294967296", "~", "m0--1", &long]) {
            let error = text.parse::<Choice>().unwrap_err().to_string();
            assert!(error.contains("is no step") && error.len() < 200, "{error}");
        }
    }
}
