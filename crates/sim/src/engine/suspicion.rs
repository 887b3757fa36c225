//! Suspicions of nodes that were alive: what breaks afterwards may be a consequence.

use std::fmt::Write;

use catraca_core::{Algorithm, NodeId, NodeSet, Phase};

use super::Simulation;
use crate::time::Time;

/// How many mistakes a report names.
const NAMED: usize = 3;

/// A live node that was taken for crashed.
#[derive(Clone, Copy, Debug)]
struct Mistake {
    observer: NodeId,
    suspect: NodeId,
    at: Time,
    /// What the suspect did.
    phase: Phase,
}

/// Whom each node suspects, and who was wrong.
#[derive(Debug, Default)]
pub(super) struct Suspicions {
    /// By observer; as long as the largest observer so far.
    known: Vec<NodeSet>,
    mistakes: Vec<Mistake>,
}

impl Suspicions {
    /// The mistakes so far as the end of a sentence; nothing if there were none.
    pub(super) fn cause(&self) -> String {
        let mut cause = String::new();
        for Mistake { observer, suspect, at, phase } in self.mistakes.iter().take(NAMED) {
            let stood = match phase {
                Phase::Idle => "was alive",
                Phase::Waiting => "waited",
                Phase::Inside => "was inside",
            };
            // Writing to a string cannot fail.
            let _ = write!(
                cause,
                "; node {suspect} was taken for crashed by node {observer} at {at} while it {stood}"
            );
        }
        if self.mistakes.len() > NAMED {
            let _ = write!(cause, "; and {} more mistakes", self.mistakes.len() - NAMED);
        }
        cause
    }
}

impl<A: Algorithm> Simulation<'_, A> {
    /// Looks whether the step that `node` has just taken made it suspect another node.
    #[inline]
    pub(super) fn note_suspicions(&mut self, now: Time, node: NodeId) {
        let Some(suspects) = self.nodes[node.index()].suspects() else { return };
        let Suspicions { known, mistakes } = &mut self.suspicions;
        if known.len() <= node.index() {
            known.resize(node.index() + 1, NodeSet::new());
        }
        let known = &mut known[node.index()];
        if *suspects == *known {
            return;
        }
        for suspect in suspects.iter().filter(|suspect| !known.contains(*suspect)) {
            let site = &self.sites[suspect.index()];
            if site.alive {
                mistakes.push(Mistake { observer: node, suspect, at: now, phase: site.phase });
            }
        }
        known.clone_from(suspects);
        self.upkeep.note_change(now);
    }
}
