//! How a lock comes into being at this member: its family, its seats, and their first steps.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use catraca_core::{NodeId, Start};

use super::{Key, Shard};
use crate::driver::{LockIndex, Outputs};
use crate::kind::{Kind, Slot, Stimulus, kind_of};
use crate::lock::{Lock, Rules};
use crate::refusal::Refusal;
use crate::view::Seating;

/// The instances of one namespace with one layout.
pub(super) struct Family {
    pub(super) namespace: usize,
    pub(super) permits: u32,
    pub(super) seating: Seating,
    /// Where the token begins, if the algorithm's tree grows from there.
    pub(super) root: NodeId,
    pub(super) rules: Rules,
    /// Whether its algorithm wants to know who has crashed.
    pub(super) listens: bool,
    pub(super) kind: Box<dyn Kind>,
}

impl Clone for Family {
    fn clone(&self) -> Self {
        Family { kind: self.kind.boxed_clone(), ..*self }
    }
}

impl Shard {
    #[cold]
    pub(super) fn create(
        &mut self,
        key: Key<'_>,
        hash: u64,
        out: &mut Outputs<'_>,
    ) -> Result<LockIndex, Refusal> {
        let lock = match self.is_frozen {
            // It gets its seats when the next view begins.
            true => Lock::new(key.name, key.permits, 0, 0, core::iter::empty()),
            false => self.seated_lock(key)?,
        };
        let index = match self.free.pop() {
            Some(free) => {
                self.locks[free as usize] = lock;
                free
            }
            None => {
                self.locks.push(lock);
                self.locks.len() as u32 - 1
            }
        };
        let (locks, hasher) = (&self.locks, &self.hasher);
        let hash_of = |&index: &u32| hasher.hash_one(&*locks[index as usize].name);
        self.table.insert_unique(hash, index, hash_of);
        if !self.is_frozen {
            self.start(LockIndex(index), out);
        }
        Ok(LockIndex(index))
    }

    /// The same whatever room there is: others have begun it.
    pub(super) fn create_beyond(
        &mut self,
        key: Key<'_>,
        hash: u64,
        out: &mut Outputs<'_>,
    ) -> Result<LockIndex, Refusal> {
        let created = self.create(key, hash, out);
        self.beyond_room += usize::from(created.is_ok());
        created
    }

    /// A lock with instances of the present view.
    fn seated_lock(&mut self, key: Key<'_>) -> Result<Lock, Refusal> {
        let view = Arc::clone(&self.view);
        let namespace = view.namespace(key.name);
        let home = view.home(key.name);
        let seating = view.seating(namespace, key.permits, home);
        let start = match self.rules.starts_late_instances_from_table() {
            true => self.held.start(key, &view, seating),
            false => Start::idle(),
        };
        let family = self.family(namespace, key, seating, &start)?;
        let slots = self.slots(family, seating, &start);
        Ok(Lock::new(key.name, key.permits, family as u16, home as u16, slots))
    }

    /// New instances for all seats of this member.
    pub(super) fn slots(
        &mut self,
        family: usize,
        seating: Seating,
        start: &Start,
    ) -> impl Iterator<Item = Slot> + use<'_> {
        let (me, kind) = (self.view.me, &mut self.families[family].kind);
        let slots: Vec<_> = (0..seating.seats as usize)
            .map(|seat| kind.create(seating.node(me, seat), start))
            .collect();
        slots.into_iter()
    }

    /// Lets the instances of a lock start, and tells them who has crashed.
    pub(super) fn start(&mut self, index: LockIndex, out: &mut Outputs<'_>) {
        for seat in 0..self.locks[index.0 as usize].seats() {
            self.step_seat(index, seat, Stimulus::Start, &mut None, out);
        }
        self.go_on(index, &mut None, out);
        if self.families[usize::from(self.locks[index.0 as usize].kind)].listens {
            for crashed in self.suspects.clone() {
                self.tell_of_crash(index, crashed, out);
            }
        }
    }

    /// The instances with this layout. Where the group looks the same from every home, all homes
    /// share one; where it looks the same wherever the token begins, so do all starts.
    pub(super) fn family(
        &mut self,
        namespace: usize,
        key: Key<'_>,
        seating: Seating,
        start: &Start,
    ) -> Result<usize, Refusal> {
        let permits = key.permits;
        let has_tree = self.view.has_tree(namespace, permits);
        let root = if has_tree { start.token() } else { NodeId(0) };
        let spec = self.view.spec(namespace, permits, seating).starting(Start::token_at(root));
        let home = if spec.clusters.is_some() { seating.home } else { 0 };
        let seating = Seating { home, ..seating };
        let is_it = |family: &Family| {
            (family.namespace, family.permits) == (namespace, permits)
                && (family.seating, family.root) == (seating, root)
        };
        if let Some(known) = self.families.iter().position(is_it) {
            return Ok(known);
        }
        let seats = |_| Refusal::Seats { name: key.name.to_string(), permits };
        let kind = kind_of(&spec).map_err(seats)?;
        let sets = self.view.knows_sets(namespace, permits);
        let epoch = self.rules.epoch_of_fences(self.view.epoch);
        let rules = Rules { epoch, turns: self.turns, sets };
        let listens = self.view.listens(namespace, permits);
        self.families.push(Family { namespace, permits, seating, root, rules, listens, kind });
        Ok(self.families.len() - 1)
    }
}
