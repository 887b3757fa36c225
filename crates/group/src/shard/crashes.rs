//! Members that the failure detector takes for crashed, and the locks whose algorithms are told.

use alloc::vec::Vec;

use super::Shard;
use crate::driver::{LockIndex, Outputs, Place};
use crate::kind::Stimulus;
use crate::lock::Lock;
use crate::refusal::Refusal;
use crate::view::Seating;

impl Shard {
    /// The detector takes `member` for crashed: the locks that listen go on without it.
    pub fn suspect(&mut self, member: usize, out: &mut Outputs<'_>) {
        self.suspects.push(member);
        for index in self.listeners() {
            self.tell_of_crash(index, member, out);
        }
    }

    /// The others go on without this member: whoever waits here for locks that listen to the
    /// detector is refused.
    pub fn exclude(&mut self, why: &Refusal, out: &mut Outputs<'_>) {
        for index in self.listeners() {
            self.refuse_all(index, why, out);
        }
    }

    /// Whether the others may take the lock at `place` for free because of what a detector says.
    pub fn listens(&self, place: Place) -> bool {
        let lock = &self.locks[place.lock.0 as usize];
        self.families[usize::from(lock.kind)].listens
    }

    /// The locks whose algorithms want to know who has crashed.
    fn listeners(&self) -> Vec<LockIndex> {
        let families = &self.families;
        let listens = |(_, lock): &(u32, &Lock)| families[usize::from(lock.kind)].listens;
        self.indexed().filter(listens).map(|(index, _)| LockIndex(index)).collect()
    }

    pub(super) fn tell_of_crash(&mut self, index: LockIndex, member: usize, out: &mut Outputs<'_>) {
        let lock = &self.locks[index.0 as usize];
        let seating = Seating { home: lock.home, ..self.families[usize::from(lock.kind)].seating };
        let seats = 0..seating.seats as usize;
        for own in seats.clone() {
            for crashed in seats.clone() {
                let stimulus = Stimulus::Suspect(seating.node(member, crashed));
                self.drive(index, own, stimulus, &mut None, out);
            }
        }
    }
}
