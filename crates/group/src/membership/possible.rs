//! What other members can say about a view, judged before it is believed.
//!
//! What is held in the table of a view becomes the first state of every instance, at every member at once.
//! So nothing gets there that no member of this view can hold: a seat that an instance does not have would
//! be another node's, or nobody's.

use alloc::string::String;

use catraca_core::{Claim, ResourceId};

use super::ViewMessage;
use crate::durable::{Adopted, DurablePart, LONGEST_NOTE, LONGEST_OWNER};
use crate::name::LockName;
use crate::request::MOST_NAMES;
use crate::shard::{HeldLock, Key};
use crate::timed::{LONGEST_TOKEN, TIMED_TTL_RANGE, TimedCopy};
use crate::view::View;

/// So many locks are held in a whole group when a view begins, and so many holds change their members: more
/// than members together can have in memory.
pub(super) const MOST_HELD: usize = 1 << 24;

impl ViewMessage {
    /// How many entries it has.
    pub(super) fn entries(&self) -> usize {
        match self {
            ViewMessage::Begin { .. } => 0,
            ViewMessage::Report { part, .. } | ViewMessage::Table { part, .. } => part.len(),
            ViewMessage::Orphans { copies, .. } | ViewMessage::TakeOver { copies, .. } => {
                copies.len()
            }
            ViewMessage::Adopt { holds, .. } => holds.len(),
        }
    }

    /// Whether the member called `from` can have said it in this view.
    pub(super) fn is_possible(&self, from: &str, view: &View) -> bool {
        match self {
            ViewMessage::Begin { .. } => true,
            ViewMessage::Report { part, .. } => {
                part.iter().all(|held| held.member == from && held.is_possible(view))
            }
            ViewMessage::Table { part, .. } => part.iter().all(|held| held.is_possible(view)),
            ViewMessage::Orphans { copies, .. } | ViewMessage::TakeOver { copies, .. } => {
                copies.iter().all(|copy| copy.is_possible(view))
            }
            ViewMessage::Adopt { holds, .. } => holds.iter().all(|hold| hold.is_possible(view)),
        }
    }
}

/// Whether an instance of this view can be called so, and somebody can hold this of it.
fn can_hold(view: &View, name: &str, permits: u32, claim: &Claim) -> bool {
    if !view.can_have(Key { name, permits }) {
        return false;
    }
    let namespace = view.namespace(name);
    if !view.knows_sets(namespace, permits) {
        return *claim == Claim::single();
    }
    let namespace = &view.namespaces[namespace];
    let last = claim.resources().last();
    namespace.pattern == name && last.is_some_and(|&ResourceId(last)| last < namespace.resources)
}

/// Whether somebody can hold these names, and these parts of them.
fn can_have_parts(view: &View, names: &[String], permits: u32, parts: &[DurablePart]) -> bool {
    (1..=MOST_NAMES).contains(&names.len())
        && names.iter().all(|name| LockName::new(name).is_ok())
        && (1..=names.len()).contains(&parts.len())
        && parts.iter().all(|part| can_hold(view, &part.key, permits, &part.claim))
}

impl HeldLock {
    /// Whether it can be held in this view.
    fn is_possible(&self, view: &View) -> bool {
        let is_there = view.members.iter().any(|member| member.name == self.member);
        is_there && can_hold(view, &self.name, self.permits, &self.claim) && {
            let namespace = view.namespace(&self.name);
            u32::from(self.seat) < view.seating(namespace, self.permits, 0).seats
        }
    }
}

impl Adopted {
    /// Whether there can be such a durable hold in this view.
    fn is_possible(&self, view: &View) -> bool {
        let hold = &self.hold;
        can_have_parts(view, &hold.names, hold.permits, &hold.parts)
            && hold.fences.len() == hold.names.len()
            && hold.owner.len() <= LONGEST_OWNER
            && hold.request.len() <= LONGEST_OWNER
            && hold.note.len() <= LONGEST_NOTE
    }
}

impl TimedCopy {
    /// Whether there can be such a timed hold in this view.
    pub(crate) fn is_possible(&self, view: &View) -> bool {
        let hold = &self.hold;
        can_have_parts(view, &hold.names, hold.permits, &self.parts)
            && hold.fences.len() == hold.names.len()
            && hold.token.len() <= LONGEST_TOKEN
            && hold.ttl <= *TIMED_TTL_RANGE.end()
            && hold.left <= *TIMED_TTL_RANGE.end()
    }
}
