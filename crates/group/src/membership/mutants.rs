//! Deliberately broken rules, to show that simulation and checker catch what they should.

use core::fmt;
use core::time::Duration;

use super::rules::{Lease, Rules};
use crate::time::Time;
use crate::view::Epoch;

/// A broken rule.
#[derive(Clone, Copy)]
pub struct ViewMutant {
    /// Its name.
    pub name: &'static str,
    /// What is broken, in one sentence.
    pub breaks: &'static str,
    pub(crate) rules: &'static dyn Rules,
}

impl fmt::Debug for ViewMutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All of them.
pub const VIEW_MUTANTS: &[ViewMutant] = &[
    ViewMutant {
        name: "valid-for-ever",
        breaks: "a member that has beaten once believes itself valid for ever",
        rules: &ValidForEver,
    },
    ViewMutant {
        name: "valid-from-answer",
        breaks: "validity is counted from the answer of a beat instead of its sending",
        rules: &ValidFromAnswer,
    },
    ViewMutant {
        name: "excluded-early",
        breaks: "a member is excluded before its lease is over",
        rules: &ExcludedEarly,
    },
    ViewMutant {
        name: "blind-beat",
        breaks: "a beat is written although the member has been excluded",
        rules: &BlindBeat,
    },
    ViewMutant {
        name: "blind-exclusion",
        breaks: "a member is excluded although it has beaten meanwhile",
        rules: &BlindExclusion,
    },
    ViewMutant {
        name: "start-before-reports",
        breaks: "the table is made before everybody has reported",
        rules: &StartBeforeReports,
    },
    ViewMutant {
        name: "restart-at-once",
        breaks: "a member that is started again does not wait for the lease of the run before",
        rules: &RestartAtOnce,
    },
    ViewMutant {
        name: "no-epoch",
        breaks: "messages of an earlier view are taken for those of the present one",
        rules: &NoEpoch,
    },
    ViewMutant {
        name: "late-instance-idle",
        breaks: "an instance that is created after the view has begun starts as if nobody were inside",
        rules: &LateInstanceIdle,
    },
    ViewMutant {
        name: "release-forgotten",
        breaks: "whoever leaves between two views is inside for ever",
        rules: &ReleaseForgotten,
    },
    ViewMutant {
        name: "confirmed-unwritten",
        breaks: "a durable hold is confirmed before it is written",
        rules: &ConfirmedUnwritten,
    },
    ViewMutant {
        name: "blind-hold",
        breaks: "a durable hold is written although its member has been excluded, or gave it up",
        rules: &BlindHold,
    },
    ViewMutant {
        name: "holds-forgotten",
        breaks: "the durable holds of members that are gone are not in the table",
        rules: &HoldsForgotten,
    },
    ViewMutant {
        name: "confirmed-unremembered",
        breaks: "a timed hold is confirmed before another member remembers it",
        rules: &ConfirmedUnremembered,
    },
    ViewMutant {
        name: "copies-forgotten",
        breaks: "the timed holds of members that are gone are not in the table",
        rules: &CopiesForgotten,
    },
    ViewMutant {
        name: "copies-short",
        breaks: "a timed hold is remembered for a part of the time that it has left",
        rules: &CopiesShort,
    },
    ViewMutant {
        name: "timed-release-untold",
        breaks: "a timed hold is remembered although it was released",
        rules: &TimedReleaseUntold,
    },
    ViewMutant {
        name: "forced-at-once",
        breaks: "a hold that is ended by force is over before its client has heard of that",
        rules: &ForcedAtOnce,
    },
    ViewMutant {
        name: "valid-by-alarm",
        breaks: "a member takes itself for valid until its alarm rings, whatever the clock says",
        rules: &ValidByAlarm,
    },
    ViewMutant {
        name: "certain-too-long",
        breaks: "clients trust what they are told for a whole lease, whatever is left of that of their member",
        rules: &CertainTooLong,
    },
    ViewMutant {
        name: "heard-when-asked",
        breaks: "a beat of another member counts from when the registry was asked, not from when it answered",
        rules: &HeardWhenAsked,
    },
    ViewMutant {
        name: "reported-while-running",
        breaks: "algorithms go on at a member that has reported what is held there",
        rules: &ReportedWhileRunning,
    },
    ViewMutant {
        name: "old-table",
        breaks: "a view begins with the table of an earlier one",
        rules: &OldTable,
    },
    ViewMutant {
        name: "cut-off-unasked",
        breaks: "nobody is asked to leave who does not reach all of the others",
        rules: &CutOffUnasked,
    },
    ViewMutant {
        name: "cut-off-removed",
        breaks: "whoever does not reach all of the others is taken out of the view at once",
        rules: &CutOffRemoved,
    },
    ViewMutant {
        name: "left-undrained",
        breaks: "a member leaves although somebody is inside there",
        rules: &LeftUndrained,
    },
    ViewMutant {
        name: "fence-without-epoch",
        breaks: "fences begin anew in every view",
        rules: &FenceWithoutEpoch,
    },
    ViewMutant {
        name: "held-forgotten",
        breaks: "a new view forgets names that somebody is inside of",
        rules: &HeldForgotten,
    },
];

#[derive(Debug)]
struct ValidForEver;

impl Rules for ValidForEver {
    fn valid_until(&self, _: Lease, sent: Time, _: Time) -> Time {
        sent + Duration::from_secs(1_000_000)
    }
}

#[derive(Debug)]
struct ValidFromAnswer;

impl Rules for ValidFromAnswer {
    fn valid_until(&self, lease: Lease, _: Time, answered: Time) -> Time {
        answered + lease.ttl
    }
}

#[derive(Debug)]
struct ExcludedEarly;

impl Rules for ExcludedEarly {
    fn may_exclude(&self, lease: Lease, received: Time, now: Time) -> bool {
        now >= received + lease.ttl / 2
    }
}

#[derive(Debug)]
struct BlindBeat;

impl Rules for BlindBeat {
    fn guards_beats(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct BlindExclusion;

impl Rules for BlindExclusion {
    fn guards_exclusion(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct StartBeforeReports;

impl Rules for StartBeforeReports {
    fn has_enough_reports(&self, reports: usize, members: usize) -> bool {
        reports + 1 >= members
    }
}

#[derive(Debug)]
struct RestartAtOnce;

impl Rules for RestartAtOnce {
    fn waits_for_predecessor(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct NoEpoch;

impl Rules for NoEpoch {
    fn tells_epochs_apart(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct LateInstanceIdle;

impl Rules for LateInstanceIdle {
    fn starts_late_instances_from_table(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct ReleaseForgotten;

impl Rules for ReleaseForgotten {
    fn notes_releases(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct ConfirmedUnwritten;

impl Rules for ConfirmedUnwritten {
    fn confirms_unwritten(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct BlindHold;

impl Rules for BlindHold {
    fn guards_durable_holds(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct HoldsForgotten;

impl Rules for HoldsForgotten {
    fn keeps_durable_holds(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct ConfirmedUnremembered;

impl Rules for ConfirmedUnremembered {
    fn confirms_unremembered(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct CopiesForgotten;

impl Rules for CopiesForgotten {
    fn keeps_timed_holds(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct CopiesShort;

impl Rules for CopiesShort {
    fn remembers_for(&self, left: Duration) -> Duration {
        left / 4
    }
}

#[derive(Debug)]
struct TimedReleaseUntold;

impl Rules for TimedReleaseUntold {
    fn tells_of_timed_releases(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct ForcedAtOnce;

impl Rules for ForcedAtOnce {
    fn forced_until(&self, _: Time, now: Time) -> Time {
        now
    }
}

#[derive(Debug)]
struct ValidByAlarm;

impl Rules for ValidByAlarm {
    fn looks_at_clock(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct CertainTooLong;

impl Rules for CertainTooLong {
    fn certain_for(&self, lease: Lease, _: Duration) -> Duration {
        lease.ttl
    }
}

#[derive(Debug)]
struct HeardWhenAsked;

impl Rules for HeardWhenAsked {
    fn heard_at(&self, asked: Time, _: Time) -> Time {
        asked
    }
}

#[derive(Debug)]
struct ReportedWhileRunning;

impl Rules for ReportedWhileRunning {
    fn stops_before_reporting(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct OldTable;

impl Rules for OldTable {
    fn is_table_for(&self, of: Epoch, present: Epoch) -> bool {
        of <= present
    }
}

#[derive(Debug)]
struct CutOffUnasked;

impl Rules for CutOffUnasked {
    fn asks_cut_off_to_leave(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct CutOffRemoved;

impl Rules for CutOffRemoved {
    fn lets_cut_off_leave(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct LeftUndrained;

impl Rules for LeftUndrained {
    fn waits_until_drained(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct FenceWithoutEpoch;

impl Rules for FenceWithoutEpoch {
    fn epoch_of_fences(&self, _: Epoch) -> Epoch {
        Epoch::FIRST
    }
}

#[derive(Debug)]
struct HeldForgotten;

impl Rules for HeldForgotten {
    fn remembers_held_names(&self) -> bool {
        false
    }
}
