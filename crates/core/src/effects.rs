//! What a node may ask its driver to do.

use alloc::vec::{Drain, Vec};
use core::time::Duration;

use serde::Serialize;

use crate::{Fence, NodeId, TimerTag};

/// One thing that a driver does for a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect<M> {
    /// Send a message to another node.
    Send {
        /// The receiver, never the node itself.
        to: NodeId,
        /// What to say.
        message: M,
    },
    /// Let the application in.
    Granted(Fence),
    /// Give `Timer(tag)` after this long, instead of when the same tag was set for before.
    SetTimer {
        /// Which timer.
        tag: TimerTag,
        /// How long from now.
        after: Duration,
    },
    /// Do not give `Timer(tag)`.
    CancelTimer(TimerTag),
    /// Something that cannot happen in a correct run has happened. The text says what.
    Anomaly(&'static str),
}

/// The buffer that effects are pushed into. The driver owns it and keeps it between steps, so a
/// step allocates nothing once the buffer is warm and nothing transient is part of a node's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects<M>(Vec<Effect<M>>);

impl<M> Default for Effects<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> Effects<M> {
    /// An empty buffer.
    pub const fn new() -> Self {
        Effects(Vec::new())
    }

    /// Sends `message` to `to`.
    #[inline]
    pub fn send(&mut self, to: NodeId, message: M) {
        self.0.push(Effect::Send { to, message });
    }

    /// Sends `message` to every node of a group of `nodes` except `me`, in ascending order.
    #[inline]
    pub fn send_to_others(&mut self, me: NodeId, nodes: u32, message: &M)
    where
        M: Clone,
    {
        self.0.reserve(nodes as usize);
        for to in NodeId::all(nodes).filter(|&to| to != me) {
            self.send(to, message.clone());
        }
    }

    /// Lets the application in.
    #[inline]
    pub fn granted(&mut self, fence: Fence) {
        self.0.push(Effect::Granted(fence));
    }

    /// Sets the timer `tag`, or sets it anew.
    pub fn set_timer(&mut self, tag: TimerTag, after: Duration) {
        self.0.push(Effect::SetTimer { tag, after });
    }

    /// Cancels the timer `tag`.
    pub fn cancel_timer(&mut self, tag: TimerTag) {
        self.0.push(Effect::CancelTimer(tag));
    }

    /// Reports something that cannot happen in a correct run.
    #[cold]
    pub fn anomaly(&mut self, what: &'static str) {
        self.0.push(Effect::Anomaly(what));
    }

    /// What has been asked for, in order.
    pub fn as_slice(&self) -> &[Effect<M>] {
        &self.0
    }

    /// Who is to get a message, in order, once for each message.
    pub fn receivers(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.0.iter().filter_map(|effect| match effect {
            Effect::Send { to, .. } => Some(*to),
            _ => None,
        })
    }

    /// Takes everything out, in order, and keeps the memory.
    pub fn drain(&mut self) -> Drain<'_, Effect<M>> {
        self.0.drain(..)
    }
}
