//! Exhaustive exploration of whole members: the local queues in front of the locks, hand-over,
//! cancellation, fences and changes of the view.
//!
//! An algorithm alone knows one requester per node. What a client of the daemon meets is more: it
//! queues with others of its member, may get the lock from one of them without the algorithm, may give
//! up at any moment, and gets a fence that is packed from three counts. A [`World`] here is a small group
//! of [`WholeMember`](catraca_group::WholeMember)s, the very values that the daemon steps, with the
//! serialised messages between them and the clients of each. [`check`] goes through every order in
//! which clients ask, give up and leave, messages arrive and patience ends.
//!
//! ```
//! use catraca_check::group::{Setting, check, property};
//! use catraca_check::{Limits, Verdict};
//!
//! let setting = Setting::new("naimi-trehel");
//! let report = check(&setting, &Limits::default(), &mut |_| {})?;
//! assert_eq!(report.verdict, Verdict::Holds);
//!
//! let broken = setting.mutated("handover-keeps-fence")?;
//! let report = check(&broken, &Limits::default(), &mut |_| {})?;
//! let Verdict::Violated(violation) = report.verdict else { unreachable!() };
//! assert_eq!(violation.property, property::FENCES_INCREASE);
//! for step in &violation.steps {
//!     assert!(!step.action.is_empty());
//! }
//! # Ok::<(), catraca_check::group::SettingError>(())
//! ```
//!
//! # Decisions
//!
//! **Time stands still.** Patience that has been set can end at any moment, so nothing depends on how
//! long anything takes, and the states are finitely many.
//!
//! **Nobody has to ask.** A client that waits while nothing is on its way and nobody is in its way waits
//! for ever, although somebody else could still ask. The same holds for giving up: that a client may is
//! no excuse.
//!
//! **The view changes in one step.** All members that remain begin the new view at once, with the table
//! of what they hold; how they agree on it is not explored. Messages of the old view are still on their
//! way then.
//!
//! **No detector.** Members do not crash except by not being in the next view.

mod model;
pub mod mutants;
pub mod property;
pub(crate) mod setting;
mod words;
mod world;

use crate::explore::{Guard, Limits, Progress, Report, Verdict};
use crate::search::{Counts, End, search};
pub use model::MemberModel;
pub use setting::{NextView, Setting, SettingError};
pub use world::{Action, Client, Fault, Phase, Turn, World};

/// How a property is broken, in as few steps as possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The property's name, one of those in [`property`].
    pub property: &'static str,
    /// What is wrong, in words.
    pub what: String,
    /// The steps that lead there.
    pub steps: Vec<Step>,
}

/// A step of a counterexample, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What happens.
    pub action: String,
    /// What follows at once.
    pub effects: Vec<String>,
}

/// Explores every run of the group that `setting` describes.
///
/// `progress` is called about ten times a second, and once at the end.
pub fn check(
    setting: &Setting,
    limits: &Limits,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report<Violation>, SettingError> {
    setting.check()?;
    let model = MemberModel::new(setting.clone());
    let mut guard = Guard::new(limits);
    let mut pulse = |counts: &Counts| guard.pulse(counts, progress);
    let (counts, end) = search(&model, limits.threads, &mut pulse);
    progress(&guard.progress(&counts));
    let verdict = match end {
        End::Exhausted => Verdict::Holds,
        End::Stopped(verdict) => verdict,
        // The path begins with the choice of the first world, and there is only one.
        End::Violated { property, path } => {
            Verdict::Violated(Box::new(words::violation(&model, property, &path[1..])))
        }
        End::Lasting { path, cycle } => {
            Verdict::Violated(Box::new(words::lasting(&model, &path[1..], &cycle)))
        }
    };
    Ok(guard.report(counts, verdict))
}
