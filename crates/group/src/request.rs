//! Requests of any form: for one lock, one permit, or a set of locks; and what they were granted.
//!
//! A request has one part for each instance that guards its names. The parts are asked for one after
//! the other, in the same order everywhere, so no circle of waiting can close. When all of them are
//! granted, the request is a hold: an entry in the member's table until it is released.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::num::NonZeroU64;

use catraca_core::{Claim, Fence};

use crate::driver::Place;
use crate::durable::HoldId;
use crate::lock::{Owner, Set};
use crate::name::LockName;
use crate::refusal::Refusal;
use crate::session::BYTES_OF_A_NAME;
use crate::shard::Key;
use crate::time::Time;
use crate::view::{MOST_PERMITS, View};
use crate::wait::Wait;

/// The most locks that one request asks for.
pub const MOST_NAMES: usize = 256;

/// Tells the requests and holds of a member apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(crate) NonZeroU64);

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquire {
    /// The locks: all of them, or none.
    pub names: Vec<String>,
    /// How many may be inside each at a time.
    pub permits: u32,
    /// How long to wait.
    pub wait: Wait,
}

/// Who made a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The program that runs the member.
    Program,
    /// A session, which numbers its requests itself.
    Session(Owner, u32),
    /// Somebody who wants a durable hold.
    Durable(HoldId),
    /// The session of a timed hold.
    Timed(Owner),
}

impl Origin {
    /// Who is responsible.
    pub fn owner(self) -> Owner {
        match self {
            Origin::Program => Owner::PROGRAM,
            Origin::Session(owner, _) | Origin::Timed(owner) => owner,
            Origin::Durable(_) => Owner::DURABLE,
        }
    }
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The member does not grant locks yet.
    Queued,
    /// It waits at this place for its next part.
    Waiting(Place),
    /// It has all of its parts, since then.
    Held(Time),
}

/// Since when something is held is shown, and decides nothing.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        core::mem::discriminant(self).hash(hasher);
        if let State::Waiting(place) = self {
            place.hash(hasher);
        }
    }
}

/// What one instance guards of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    /// The name of the lock, or the pattern of a namespace whose names are taken in sets.
    key: Box<str>,
    /// The names and their resources, of a namespace whose names are taken in sets.
    pub(crate) set: Option<Box<Set>>,
    /// Where it is held, and with which fence, once it is.
    pub(crate) held: Option<(Place, Fence)>,
}

impl Part {
    pub(crate) fn key(&self, permits: u32) -> Key<'_> {
        Key { name: &self.key, permits }
    }

    pub(crate) fn covers(&self, name: &str) -> bool {
        match &self.set {
            Some(set) => set.names.iter().any(|one| **one == *name),
            None => *self.key == *name,
        }
    }
}

/// A request, or the hold that it has become.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) origin: Origin,
    /// The names in the order of asking.
    pub(crate) names: Vec<String>,
    pub(crate) permits: u32,
    /// Whether it does not wait for others to leave.
    pub(crate) refuses: bool,
    pub(crate) parts: Vec<Part>,
    pub(crate) state: State,
    /// What the other members were asked on its behalf.
    pub(crate) question: Option<u64>,
    /// Whether the end of its patience is timed.
    pub(crate) has_timer: bool,
}

impl Request {
    /// Checks what is asked for, and finds what guards it.
    pub(crate) fn new(origin: Origin, asked: Acquire, view: &View) -> Result<Self, Refusal> {
        let Acquire { names, permits, wait } = asked;
        let parts = parts(&names, permits, view)?;
        let refuses = matches!(wait, Wait::No(_));
        let (state, question, has_timer) = (State::Queued, None, false);
        Ok(Request { origin, names, permits, refuses, parts, state, question, has_timer })
    }

    /// How much its names count among those of all requests.
    pub(crate) fn name_bytes(&self) -> usize {
        self.names.iter().map(|name| name.len() + BYTES_OF_A_NAME).sum()
    }

    /// The next part that is to be asked for.
    pub(crate) fn next(&self) -> Option<&Part> {
        self.parts.iter().find(|part| part.held.is_none())
    }

    /// The next part is held.
    pub(crate) fn advance(&mut self, place: Place, fence: Fence) {
        if let Some(part) = self.parts.iter_mut().find(|part| part.held.is_none()) {
            part.held = Some((place, fence));
        }
    }

    /// Every place that it holds or waits at, the last one first.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        let waits = match self.state {
            State::Waiting(place) => Some(place),
            _ => None,
        };
        let held = self.parts.iter().rev().filter_map(|part| part.held.map(|(place, _)| place));
        waits.into_iter().chain(held)
    }

    /// A fence for each name, in the order of asking. Names that one instance guards have the same.
    pub(crate) fn fences(&self) -> Vec<u64> {
        let fence = |name: &String| {
            let part = self.parts.iter().find(|part| part.covers(name));
            part.and_then(|part| part.held).map_or(0, |(_, fence)| fence.0)
        };
        self.names.iter().map(fence).collect()
    }

    /// Whether one of its locks is guarded by an algorithm that relies on the detector.
    pub(crate) fn listens(&self, view: &View) -> bool {
        self.parts.iter().any(|part| view.listens(view.namespace(&part.key), self.permits))
    }
}

/// The instances that guard `names`, in the order in which they are asked for: single locks in
/// ascending order, and the names of a namespace that knows sets as one, in the place of its pattern.
pub(crate) fn parts(names: &[String], permits: u32, view: &View) -> Result<Vec<Part>, Refusal> {
    match (names.len(), permits) {
        (0, _) => return Err(Refusal::NoNames),
        (many, _) if many > MOST_NAMES => return Err(Refusal::TooManyNames(many)),
        (_, 0) | (_, MOST_PERMITS..) if permits != MOST_PERMITS => {
            return Err(Refusal::Permits(permits));
        }
        (2.., 2..) => return Err(Refusal::SetOfSemaphores),
        _ => {}
    }
    let mut guarded: BTreeMap<(&str, usize), Vec<&str>> = BTreeMap::new();
    for name in names {
        let name = LockName::new(name)?.as_str();
        let namespace = view.namespace(name);
        let sets = view.knows_sets(namespace, permits);
        let key = if sets { view.namespaces[namespace].pattern.as_str() } else { name };
        guarded.entry((key, namespace)).or_default().push(name);
    }
    let part = |((key, namespace), mut names): ((&str, usize), Vec<&str>)| {
        names.sort_unstable();
        names.dedup();
        let set = view.knows_sets(namespace, permits).then(|| {
            let claim = Claim::of(names.iter().map(|name| view.resource(namespace, name)));
            Box::new(Set { names: names.iter().map(|&name| name.into()).collect(), claim })
        });
        Part { key: key.into(), set, held: None }
    };
    Ok(guarded.into_iter().map(part).collect())
}

/// What to tell of an entry in the table of holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Which one.
    pub id: RequestId,
    /// The locks.
    pub names: Vec<String>,
    /// How many may be inside each at a time.
    pub permits: u32,
    /// Who is responsible.
    pub owner: Owner,
    /// A fence for each name.
    pub fences: Vec<u64>,
    /// Since when.
    pub since: Time,
    /// Which durable hold it is; nothing if it ends with its client or its member.
    pub durable: Option<HoldId>,
}

impl Hold {
    /// The hold that `request` has become, if it has.
    pub(crate) fn of(id: RequestId, request: &Request) -> Option<Self> {
        let State::Held(since) = request.state else { return None };
        let (names, owner) = (request.names.clone(), request.origin.owner());
        let (permits, fences) = (request.permits, request.fences());
        let durable = match request.origin {
            Origin::Durable(id) => Some(id),
            Origin::Program | Origin::Session(..) | Origin::Timed(_) => None,
        };
        Some(Hold { id, names, permits, owner, fences, since, durable })
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;
    use crate::view::tests::view;

    fn keys(names: &[&str], algorithm: &str) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let parts = parts(&names, 1, &view(3, 0, algorithm)).unwrap();
        parts.iter().map(|part| part.key(1).name.to_string()).collect()
    }

    #[test]
    fn single_locks_are_asked_for_in_ascending_order_and_once() {
        assert_eq!(keys(&["c", "a", "b", "a"], "naimi-trehel"), ["a", "b", "c"]);
        assert_eq!(keys(&["c", "a", "b"], "bouabdallah-laforest"), ["*"]);
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused() {
        let view = view(3, 0, "naimi-trehel");
        let refusal = |names: Vec<String>, permits| parts(&names, permits, &view).unwrap_err();
        let name = || "a".to_string();
        assert_eq!(refusal(vec![], 1), Refusal::NoNames);
        assert_eq!(refusal(vec![name(); 257], 1), Refusal::TooManyNames(257));
        for permits in [0, 65, u32::MAX] {
            assert_eq!(refusal(vec![name()], permits), Refusal::Permits(permits));
        }
        assert_eq!(refusal(vec![name(), name()], 2), Refusal::SetOfSemaphores);
        assert!(matches!(refusal(vec![format!("a b")], 1), Refusal::Name(_)));
        for permits in [1, 2, 64] {
            assert!(parts(&[name()], permits, &view).is_ok());
        }
    }
}
