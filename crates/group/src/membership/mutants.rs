//! Deliberately broken rules, to show that simulation and checker catch what they should.

use core::fmt;
use core::time::Duration;

use super::rules::{Lease, Rules};
use crate::time::Time;

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
