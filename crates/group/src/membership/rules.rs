//! The rules on which safety rests, one function each, so that a mutant can break one of them.

use core::fmt;
use core::time::Duration;

use crate::time::Time;
use crate::view::Epoch;

/// How long a member that was heard of may act, and when another one may be excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Whoever is not heard of for this long may be excluded.
    pub ttl: Duration,
    /// A member stops so long before that. It allows for clocks of different rates.
    pub margin: Duration,
}

impl Lease {
    /// That of members which were told nothing.
    pub const USUAL: Lease = Lease::of(Duration::from_secs(5));

    /// A lease with the usual margin.
    pub const fn of(ttl: Duration) -> Self {
        Lease { ttl, margin: Duration::from_nanos(ttl.as_nanos() as u64 / 5) }
    }

    /// How often a member beats.
    pub fn beat_interval(&self) -> Duration {
        self.ttl / 3
    }

    /// What is left of a time of this member when it is counted by another clock, which may be slower.
    pub fn seen_from_elsewhere(&self, time: Duration) -> Duration {
        let share = self.margin.as_nanos() * 1_000_000 / self.ttl.as_nanos().max(1);
        let less = time.as_nanos() * share / 1_000_000;
        time.saturating_sub(Duration::from_nanos(u64::try_from(less).unwrap_or(u64::MAX)))
    }

    /// How long a member that has sent a beat may act.
    pub fn validity(&self) -> Duration {
        self.ttl.saturating_sub(self.margin)
    }
}

/// What keeps two from being inside. Each function is one rule; mutants change one.
pub(crate) trait Rules: fmt::Debug + Sync {
    /// Until when a member is valid whose beat was sent at `sent` and answered at `answered`.
    ///
    /// It counts from the sending: the answer may have taken any time, during which others have
    /// already begun to count.
    fn valid_until(&self, lease: Lease, sent: Time, _answered: Time) -> Time {
        sent + lease.validity()
    }

    /// Whether a member may be excluded whose last beat was received at `received`.
    ///
    /// It counts from the receipt, by the clock of whoever excludes: no clock is compared with
    /// another.
    fn may_exclude(&self, lease: Lease, received: Time, now: Time) -> bool {
        now >= received + lease.ttl
    }

    /// From when on a beat counts for others that an answer shows which was asked for at `asked` and
    /// received at `received`.
    ///
    /// The beat may have been sent at any time before the answer, also after it was asked for.
    fn heard_at(&self, _asked: Time, received: Time) -> Time {
        received
    }

    /// Whether the clock is looked at before a grant leaves. An alarm does not do: a member that was paused
    /// may come to its alarm later than to what has come meanwhile.
    fn looks_at_clock(&self) -> bool {
        true
    }

    /// For how long a client may trust what a member tells it that is valid for `left`.
    fn certain_for(&self, lease: Lease, left: Duration) -> Duration {
        lease.seen_from_elsewhere(left)
    }

    /// Whether an exclusion fails if the excluded member has beaten meanwhile.
    fn guards_exclusion(&self) -> bool {
        true
    }

    /// Whether a beat fails if the member has been excluded meanwhile.
    fn guards_beats(&self) -> bool {
        true
    }

    /// Whether algorithms stop here before it is reported what is held.
    fn stops_before_reporting(&self) -> bool {
        true
    }

    /// Whether names that somebody is inside of are reported, whatever the view is for.
    fn remembers_held_names(&self) -> bool {
        true
    }

    /// Whether the table of the view `of` is one for the view `present`.
    ///
    /// Of an earlier one it is not, even if everybody of then is still there: somebody may have been let in
    /// since.
    fn is_table_for(&self, of: Epoch, present: Epoch) -> bool {
        of == present
    }

    /// Whether members that do not reach all of the others are asked to leave.
    fn asks_cut_off_to_leave(&self) -> bool {
        true
    }

    /// Whether members that are asked to leave do so by themselves. Until then they may believe to be valid.
    fn lets_cut_off_leave(&self) -> bool {
        true
    }

    /// Whether a member that leaves waits until nobody can believe to be inside there.
    fn waits_until_drained(&self) -> bool {
        true
    }

    /// The epoch that is a part of fences of the view `of`.
    fn epoch_of_fences(&self, of: Epoch) -> Epoch {
        of
    }

    /// Whether a table may be made of so many reports of a view with so many members.
    fn has_enough_reports(&self, reports: usize, members: usize) -> bool {
        reports == members
    }

    /// Whether the durable holds of members that are gone belong into a table.
    fn keeps_durable_holds(&self) -> bool {
        true
    }

    /// Whether a durable hold is confirmed before the registry has said that it is written.
    fn confirms_unwritten(&self) -> bool {
        false
    }

    /// Whether writing a durable hold fails if its member has been excluded meanwhile, or may have given
    /// it up.
    fn guards_durable_holds(&self) -> bool {
        true
    }

    /// Whether a timed hold is confirmed before another member has said that it remembers it.
    fn confirms_unremembered(&self) -> bool {
        false
    }

    /// Whether the timed holds of members that are gone belong into a table.
    fn keeps_timed_holds(&self) -> bool {
        true
    }

    /// For how long a timed hold is remembered that has so much left.
    fn remembers_for(&self, left: Duration) -> Duration {
        left
    }

    /// Whether those who remember a timed hold are told when it is over.
    fn tells_of_timed_releases(&self) -> bool {
        true
    }

    /// From when on the next one may be let in, although the holder has not released what is ended by force:
    /// when that holder, who was told `now`, cannot be certain of it any more.
    fn forced_until(&self, certain: Time, _now: Time) -> Time {
        certain
    }

    /// Whether messages of an earlier or a later view than the present one are told apart from its own.
    fn tells_epochs_apart(&self) -> bool {
        true
    }

    /// Whether an instance that is created after the view has begun starts from what is held.
    fn starts_late_instances_from_table(&self) -> bool {
        true
    }

    /// Whether a release between two views is carried out when the next one begins.
    fn notes_releases(&self) -> bool {
        true
    }

    /// Whether a member waits until the run of it before this one is out of the view.
    fn waits_for_predecessor(&self) -> bool {
        true
    }
}

/// The rules as they are.
#[derive(Debug)]
pub(crate) struct Sound;

impl Rules for Sound {}
