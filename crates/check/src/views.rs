//! Exhaustive exploration of groups that change: leases, exclusion, the way from view to view, and
//! members that come back.
//!
//! A [`World`] here is a small group of [`WholeMember`](catraca_group::WholeMember)s that have joined
//! through a registry, the very values that the daemon steps and the very
//! [`Store`](catraca_group::registry::Store) that the registry is. One member crashes, is restarted, is
//! paused or is cut off from the registry, at any step. [`check`] goes through every order in which
//! clients ask and leave, messages arrive, the registry carries out proposals, members hear of a new
//! view, time passes, and the member comes back.
//!
//! ```
//! use catraca_check::views::{Failure, Kind, Setting, check, property};
//! use catraca_check::{Limits, Verdict};
//!
//! let setting = Setting { members: 2, ..Setting::new("naimi-trehel", Failure::of(Kind::Pause, 1)) };
//! let report = check(&setting, &Limits::default(), &mut |_| {})?;
//! assert_eq!(report.verdict, Verdict::Holds);
//!
//! let report = check(&setting.mutated("valid-for-ever")?, &Limits::default(), &mut |_| {})?;
//! let Verdict::Violated(violation) = report.verdict else { unreachable!() };
//! assert_eq!(violation.property, property::MUTUAL_EXCLUSION);
//! # Ok::<(), catraca_check::views::SettingError>(())
//! ```
//!
//! # Decisions
//!
//! **Time passes in steps of a beat, everywhere at once.** A lease is three such steps long, and a member
//! is valid for two and a half: so a member that has beaten is valid after two steps, and may be excluded
//! after three. All members that run wake up on time and their beats are answered at once; whoever does
//! not is the one that fails. Clocks of different rates are not explored: the simulator's swarm draws
//! them.
//!
//! **Time stands still unless it matters.** Until something fails, every step of time would only renew the
//! leases. Afterwards it may pass at any moment, [`FREE_STEPS`] times, until the member is excluded; while a
//! member that crashed is in the view, nothing follows from a step of time until its lease has run out or a
//! client of it doubts, so time passes up to there at once. When nothing else can happen and somebody waits
//! whom nobody is in the way of, it passes on, up to [`MOST_STEPS`] times; whoever still waits then waits
//! for ever.
//!
//! **The registry** carries out beats and reads at once, and a proposal to change the view at any later
//! moment. Of a member that is cut off from it, one last beat is carried out whose answer comes at any
//! later moment. Each member hears of a new view at any later moment, or when time passes. A proposal that
//! can never be carried out, because there is another view since of which its member has heard, is turned
//! down at once: the member learns nothing from it, and proposes again only after time has passed.
//!
//! **Messages** between two members keep their order and arrive at any later moment, also those of a
//! member that has crashed. Messages to whoever has heard of a later view, or has stopped the view that
//! they belong to, are delivered as soon as they are the next of their channel: a view that is over
//! somewhere does not run there again, so they are ignored whenever they arrive. Connections come and go at
//! once: a crash is noticed by them, a pause is not.
//!
//! **Clients** hear at once what their member says, and trust it for as long as it says: they ask anew
//! in every step of time. The clients of a paused member do nothing, and trust what they were told.
//!
//! **Only one member fails, and only once.** What several do at a time is left to the swarm, and so are
//! links between members that are cut, reads that are answered late, and members that leave in order.

mod model;
pub mod mutants;
pub mod property;
mod setting;
mod words;
mod world;

use crate::explore::{Guard, Limits, Progress, Report, Verdict};
pub use crate::group::{Step, Violation};
use crate::search::{Counts, End, search};
pub use model::ViewModel;
pub use setting::{Failure, Kind, Setting, SettingError};
pub use world::{Action, Client, FREE_STEPS, Fault, MOST_STEPS, Phase, World};

/// Explores every run of the group that `setting` describes.
///
/// `progress` is called about ten times a second, and once at the end.
pub fn check(
    setting: &Setting,
    limits: &Limits,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report<Violation>, SettingError> {
    setting.check()?;
    let model = ViewModel::new(setting.clone());
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
