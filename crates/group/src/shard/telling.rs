//! What happens in a shard, told to whoever watches, and measured.

use catraca_core::Fence;

use super::{Counts, Key, Shard};
use crate::driver::{Change, Ending, Event, LockIndex, Outputs, Place};
use crate::histogram::Times;
use crate::lock::{Asker, Lock, Ticket};
use crate::time::Time;

/// Of callers that wait for their tickets themselves, one of so many is measured.
const SAMPLED: u64 = 64;

impl Shard {
    /// A client is inside that has waited until now.
    pub(super) fn measure_wait(&mut self, index: LockIndex, since: Time, now: Time) {
        self.times.waits.add(now.since(since), 1);
        if !self.left.is_empty()
            && let Some(left) = self.left.remove(&index)
        {
            self.times.handovers.add(now.since(left), 1);
        }
    }

    /// Tells whoever watches what happens to whoever is at `place`.
    #[inline]
    pub(super) fn tell(&self, place: Place, change: Change, out: &mut Outputs<'_>) {
        if out.driver.is_watched() {
            self.tell_watchers(place, change, out);
        }
    }

    #[cold]
    pub(super) fn tell_watchers(&self, place: Place, change: Change, out: &mut Outputs<'_>) {
        let lock = &self.locks[place.lock.0 as usize];
        let held = lock.holds().find(|hold| hold.ticket == place.ticket).map(|hold| &hold.asker);
        if let Some(asker) = held.or_else(|| lock.waiter(place.ticket)) {
            tell_of(lock, asker, change, out);
        }
    }

    /// Tells whoever watches that somebody leaves, or waits no more.
    #[cold]
    pub(super) fn tell_of_end(&self, place: Place, ending: Ending, out: &mut Outputs<'_>) {
        let lock = &self.locks[place.lock.0 as usize];
        let change = match lock.fence_of(place.ticket) {
            Some(fence) => ending.change(fence),
            None => Some(Change::GivesUp),
        };
        if let Some(change) = change {
            self.tell_watchers(place, change, out);
        }
    }
}

/// Somebody leaves. Of callers that wait for their tickets themselves only some are measured: they may
/// leave millions of times in a second, and looking at the clock would take longer than the rest. Returns the
/// fence and the time, where that was looked at.
#[inline]
pub(super) fn measure_hold(
    times: &mut Times,
    counts: &Counts,
    lock: &Lock,
    ticket: Ticket,
    out: &mut Outputs<'_>,
) -> Option<(Fence, Time)> {
    let hold = lock.holds().find(|hold| hold.ticket == ticket)?;
    let weight = match hold.asker.request {
        Some(_) => 1,
        None if counts.grants.is_multiple_of(SAMPLED) => SAMPLED,
        // Whoever watches is told the time anyway.
        None if out.driver.is_watched() => 0,
        None => return None,
    };
    let now = out.driver.now();
    if weight > 0 {
        times.holds.add(now.since(hold.since), weight);
    }
    Some((hold.fence, now))
}

/// Tells whoever watches what happens to whoever has asked for a lock.
pub(super) fn tell_of(lock: &Lock, asker: &Asker, change: Change, out: &mut Outputs<'_>) {
    let key = Key { name: &lock.name, permits: lock.permits };
    let names = asker.set.as_ref().map_or(&[][..], |set| &set.names);
    let Asker { owner, request, .. } = *asker;
    out.driver.event(Event { key, names, owner, request, change });
}
